/** Rearranging ops on random layouts and shapes, run on lanes. */
import { tensor, concatenate, f32 as f32Type, iota, kernel } from "tilewright";
import {
  all,
  axisOf,
  cases,
  coordinates,
  laneCodes,
  number,
  numbers,
  outcome,
  randomElements,
  randomLayout,
  traced,
} from "../../../../test/support/tile-cases.ts";
import { expectTile, opOf, runRule } from "../../../../test/support/tile-rules.ts";
import type { TileCodes } from "../../../../test/support/tile-rules.ts";
import { convertElements } from "../../../formats/convert.ts";
import { allocateElements, dtypes } from "../../../formats/dtype.ts";
import type { AnyOp, Op, Value } from "../../../ir/node.ts";
import type { RegisterLayout } from "../../../layout/algebra/register-layout.ts";
import { Functions } from "../../../layout/model/layout-functions.ts";

cases("layout_cast", all, 25, false, (one) => {
  const { dtype, shape, lanes, read, about } = one;
  const run = outcome(
    one,
    (x: { layoutCast(text: string): unknown }) => x.layoutCast(read.text),
    "layout_cast",
    [read],
  );
  expectTile(run, run.results[0], { dtype, shape, codes: laneCodes(dtype, lanes) }, about);
  return run;
});

cases("transpose, reshape and slice", all, 25, false, (one) => {
  const { random, dtype, shape, lanes, read, about } = one;
  const codes = laneCodes(dtype, lanes);
  const functions = new Functions();
  const permutation = shape.map((_, axis) => axis).sort(() => random.below(3) - 1);
  const turned = functions.transpose(shape, permutation).apply(read);
  if (turned !== undefined) {
    const run = outcome(
      one,
      (x: { transpose(axes: readonly number[]): unknown }) => x.transpose(permutation),
      "transpose",
      [turned],
    );
    const to = permutation.map((axis) => shape[axis] ?? 1);
    const moved = codes.map((_, element) => {
      const at = coordinates(element, to);
      return (
        codes[
          number(
            shape.map((_, axis) => at[permutation.indexOf(axis)] ?? 0),
            shape,
          )
        ] ?? 0n
      );
    });
    if (shape.length > 1)
      expectTile(run, run.results[0], { dtype, shape: to, codes: moved }, about);
  }
  const flat = [codes.length];
  const reshaped = functions.reshape(shape, flat).apply(read);
  if (reshaped !== undefined && shape.length > 1) {
    const run = outcome(
      one,
      (x: { reshape(shape: readonly number[]): unknown }) => x.reshape(flat),
      "reshape",
      [reshaped],
    );
    expectTile(run, run.results[0], { dtype, shape: flat, codes }, about);
  }
  const starts = shape.map((extent) => random.below(extent));
  const sizes = shape.map((extent, axis) => 1 + random.below(extent - (starts[axis] ?? 0)));
  const cut = functions.slice(shape, starts, sizes).apply(read);
  if (cut === undefined) return undefined;
  const run = outcome(
    one,
    (x: { slice(starts: readonly number[], sizes: readonly number[]): unknown }) =>
      x.slice(starts, sizes),
    "slice",
    [cut],
  );
  const size = sizes.reduce((product, extent) => product * extent, 1);
  const window = Array.from({ length: size }, (_, element) => {
    const at = coordinates(element, sizes).map((each, axis) => each + (starts[axis] ?? 0));
    return codes[number(at, shape)] ?? 0n;
  });
  expectTile(run, run.results[0], { dtype, shape: sizes, codes: window }, about);
  return run;
});

cases("broadcast", all, 25, false, (one) => {
  const { random, dtype, shape, lanes, read, about } = one;
  // The result lies in `read`; some axes of the source are new in it or stretched.
  const axes = shape.map((_, axis) => axis).filter(() => random.below(3) > 0);
  const from = axes.map((axis) => (random.below(3) === 0 ? 1 : (shape[axis] ?? 1)));
  const layout = new Functions().repeat({ from, to: shape, axes }).apply(read);
  if (layout === undefined || layout.kind === "splat" || from.length === 0) return undefined;
  const codes = laneCodes(dtype, lanes);
  const own = codes.slice(
    0,
    from.reduce((product, extent) => product * extent, 1),
  );
  const kernelOf = traced(dtype, from, (x: { broadcastTo(shape: readonly number[]): unknown }) =>
    x.broadcastTo([...from.map(() => 2), ...from].slice(-from.length - 1)),
  );
  const [value] = opOf(kernelOf, "load").results;
  if (value === undefined) throw new Error("no value");
  const result = { id: 9999, type: { kind: "tile", dtype, shape } } as Value;
  const op = {
    ...opOf(kernelOf, "broadcast"),
    attributes: { shape, axes },
    results: [result],
  } as AnyOp;
  const ops = kernelOf.body.ops.map((each) => (each.kind === "broadcast" ? op : each));
  const source = randomLayout(random, from, one.oneWarp);
  const run = runRule({
    kernel: { ...kernelOf, body: { ...kernelOf.body, ops } },
    op,
    sources: new Map([[value, { layout: source, dtype, shape: from, codes: own }]]),
    needs: [{ value, layout }],
    results: new Map([[result, read]]),
    oneWarp: one.oneWarp,
  });
  const wanted = codes.map((_, element) => {
    const at = coordinates(element, shape);
    const back = axes.map((axis, index) => (from[index] === 1 ? 0 : (at[axis] ?? 0)));
    return own[number(back, from)] ?? 0n;
  });
  expectTile(run, run.results[0], { dtype, shape, codes: wanted }, `${about} from ${from.join()}`);
  return run;
});

cases("concatenate", all, 25, false, (one) => {
  const { random, dtype, shape, read, about } = one;
  const axis = random.below(shape.length);
  const functions = new Functions();
  const extents: number[] = [];
  for (let left = shape[axis] ?? 1; left > 0; left -= extents.at(-1) ?? 0)
    extents.push(1 + random.below(left));
  let start = 0;
  const parts = extents.map((extent) => {
    const own = shape.with(axis, extent);
    const starts = shape.map((_, each) => (each === axis ? start : 0));
    start += extent;
    return { own, layout: functions.slice(shape, starts, own).apply(read) };
  });
  if (parts.length < 2 || parts.some(({ layout }) => layout === undefined)) return undefined;
  const inputs = Object.fromEntries(
    parts.map(({ own }, index) => [`x${index}`, tensor(dtype as never, own as never)]),
  );
  const tracedKernel = kernel(
    { name: "k", grid: { i: 1 }, inputs, outputs: { out: tensor(f32Type, [1]) } },
    (given: Record<string, unknown>) => {
      const tiles = parts.map((_, index) => (given[`x${index}`] as { load(): unknown }).load());
      concatenate(tiles as never, { axis });
    },
  ).kernel;
  const op = opOf(tracedKernel, "concatenate") as Op<"concatenate">;
  const joined: bigint[] = [];
  const sources = new Map<Value, { layout: RegisterLayout } & TileCodes>();
  const needs: { value: Value; layout: RegisterLayout }[] = [];
  op.operands.parts.forEach((value, index) => {
    const part = parts[index];
    if (part?.layout === undefined) return undefined;
    const count = part.own.reduce((product, extent) => product * extent, 1);
    const codes = laneCodes(dtype, randomElements(random, dtype, count, false));
    const first = extents.slice(0, index).reduce((sum, extent) => sum + extent, 0);
    codes.forEach((code, element) => {
      const at = coordinates(element, part.own);
      joined[number(at.with(axis, (at[axis] ?? 0) + first), shape)] = code;
    });
    const layout = random.below(2) ? part.layout : randomLayout(random, part.own, one.oneWarp);
    sources.set(value, { layout, dtype, shape: part.own, codes });
    needs.push({ value, layout: part.layout });
  });
  const [result] = op.results;
  if (result === undefined) throw new Error("no result");
  const run = runRule({
    kernel: tracedKernel,
    op,
    sources,
    needs,
    results: new Map([[result, read]]),
    oneWarp: one.oneWarp,
  });
  expectTile(run, run.results[0], { dtype, shape, codes: joined }, `${about}, ${axis}`);
  return run;
});

cases("iota", numbers, 20, false, (one) => {
  const { random, dtype, shape, read, about } = one;
  const axis = random.below(shape.length);
  if (dtype.bits === 4 && (shape[axis] ?? 1) > 8) return undefined;
  const tracedKernel = traced(dtype, shape, () => iota(dtype as never, shape, { axis }));
  const op = opOf(tracedKernel, "iota");
  const [result] = op.results;
  // The kernel loads a tile that nobody reads, which has to lie somewhere.
  const [unread] = opOf(tracedKernel, "load").results;
  if (result === undefined || unread === undefined) throw new Error("no result");
  const run = runRule({
    kernel: tracedKernel,
    op,
    sources: new Map(),
    needs: [],
    results: new Map([
      [result, read],
      [unread, read],
    ]),
    oneWarp: one.oneWarp,
  });
  const { outer, length, inner } = axisOf(shape, [axis]);
  const target = allocateElements(dtype, outer * length * inner);
  const counts = new Int32Array(target.length).map(
    (_, element) => Math.floor(element / inner) % length,
  );
  convertElements(dtypes.i32, dtype, counts, target);
  expectTile(
    run,
    run.results[0],
    { dtype, shape, codes: laneCodes(dtype, target) },
    `${about}, ${axis}`,
  );
  return run;
});
