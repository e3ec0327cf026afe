/** Reductions and searches on random layouts and shapes, run on lanes, against the simulator's arithmetic. */
import { expect } from "vitest";
import { f32 as f32Type } from "tilewright";
import {
  all,
  axisOf,
  cases,
  coordinates,
  laneCodes,
  number,
  numbers,
  outcome,
  same,
} from "../../../../test/support/tile-cases.ts";
import type { Case } from "../../../../test/support/tile-cases.ts";
import { expectTile } from "../../../../test/support/tile-rules.ts";
import type { RuleRun } from "../../../../test/support/tile-rules.ts";
import { argElements, reduceElements } from "../../../formats/arithmetic/index.ts";
import {
  acceptsReduce,
  argFunctions,
  reduceFunctions,
} from "../../../formats/arithmetic/functions.ts";
import { allocateElements, dtypes } from "../../../formats/dtype.ts";
import type { DType, Elements } from "../../../formats/dtype.ts";
import { Functions } from "../../../layout/model/layout-functions.ts";

cases("reduce", all, 50, false, reduceCase);
cases("reduce, special numbers", numbers, 25, true, reduceCase);

function reduceCase(one: Case): RuleRun | undefined {
  const { random, dtype, shape, lanes, read, about } = one;
  const fns = reduceFunctions.filter((fn) => acceptsReduce(fn, dtype));
  if (fns.length === 0) return undefined;
  const fn = random.pick(fns);
  const every = shape.map((_, axis) => axis);
  const chosen = every.filter(() => random.below(2) === 0);
  const axes = chosen.length === 0 ? [random.below(shape.length)] : chosen;
  const kept = shape.filter((_, axis) => !axes.includes(axis));
  const layout = new Functions().reduce(shape, axes).apply(read);
  if (kept.length > 0 && layout === undefined) return undefined;
  const run = outcome({ ...one, axes, kept }, (x: never) => reduceIn(x, fn), "reduce", [layout]);
  // The axes that go brought behind those that stay.
  const order = [...every.filter((axis) => !axes.includes(axis)), ...axes];
  const gathered = lanes.slice() as Elements;
  const turned = order.map((axis) => shape[axis] ?? 1);
  gathered.forEach((_: unknown, element: number) => {
    const at = coordinates(element, turned);
    const from = number(
      every.map((axis) => at[order.indexOf(axis)] ?? 0),
      shape,
    );
    gathered[element] = lanes[from] as never;
  });
  const length = axes.reduce((product, axis) => product * (shape[axis] ?? 1), 1);
  const outer = lanes.length / length;
  const target = allocateElements(dtype, outer);
  reduceElements(fn, dtype, gathered, { outer, length, inner: 1 }, target);
  const codes = laneCodes(dtype, target);
  const where = `${about}, ${fn} over ${axes.join()}`;
  const [result] = run.results;
  if (kept.length > 0) expectTile(run, result, { dtype, shape: kept, codes }, where, same);
  else {
    if (result?.kind !== "scalar") throw new Error("no scalar");
    const mask = (1n << BigInt(dtype.kind === "bool" ? 1 : dtype.bits)) - 1n;
    for (let lane = 0; lane < 128; lane += 1) {
      const value = run.value(result.register, lane);
      if (!same(value & mask, (codes[0] ?? 0n) & mask, dtype))
        expect.fail(`${where}: lane ${lane} has another result`);
    }
  }
  return run;
}

/** Over the first axis; other axes are put in its place. */
function reduceIn(x: never, fn: string): unknown {
  const tile = x as {
    readonly [name: string]: (options: object) => unknown;
  } & { reduce(fn: string, options: object): unknown };
  const options = { axis: 0, keepDims: true };
  // Conditions that nobody uses are refused.
  if (fn === "and" || fn === "or" || fn === "xor")
    return (tile.reduce(fn, options) as { cast(to: DType): unknown }).cast(f32Type);
  return tile[fn]?.(options);
}

cases("arg_reduce", numbers, 25, true, (one) => {
  const { random, dtype, shape, lanes, read, about } = one;
  const axis = random.below(shape.length);
  const layout = new Functions().reduce(shape, [axis]).apply(read);
  const kept = shape.filter((_, each) => each !== axis);
  if (kept.length > 0 && layout === undefined) return undefined;
  const fn = random.pick(argFunctions);
  const run = outcome(
    one,
    (x: never) =>
      (x as Record<string, (...options: readonly object[]) => unknown>)[fn]?.(
        ...(kept.length === 0 ? [] : [{ axis }]),
      ),
    "arg_reduce",
    [layout],
  );
  const seen = axisOf(shape, [axis]);
  const target = new Int32Array(seen.outer * seen.inner);
  argElements(fn, dtype, lanes, seen, target);
  const codes = Array.from(target, (value) => BigInt(value));
  const [result] = run.results;
  if (kept.length > 0)
    expectTile(run, result, { dtype: dtypes.i32, shape: kept, codes }, `${about}, ${fn} ${axis}`);
  else {
    if (result?.kind !== "scalar") throw new Error("no scalar");
    for (let lane = 0; lane < 128; lane += 1)
      expect(run.value(result.register, lane), `${about}, ${fn}`).toBe(codes[0]);
  }
  return run;
});
