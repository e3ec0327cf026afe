/** Every rule on random layouts and shapes, run on lanes, against the arithmetic of the simulator. */
import { describe, expect, test } from "vitest";
import { array, f32 as f32Type, kernel } from "tilewright";
import { layoutOf, randomShape, randomSpelling } from "../../../../test/layout-oracle.ts";
import { expectTile, opOf, runRule } from "../../../../test/support/tile-rules.ts";
import type { TileCodes } from "../../../../test/support/tile-rules.ts";
import { argLanes, reduceLanes, scanLanes, sortLanes } from "../../../formats/arithmetic/index.ts";
import {
  acceptsReduce,
  argFunctions,
  reduceFunctions,
  scanFunctions,
} from "../../../formats/arithmetic/functions.ts";
import { allocateLanes, dtypes } from "../../../formats/dtype.ts";
import type { DType, Lanes } from "../../../formats/dtype.ts";
import type { AnyOp, Kernel, Value } from "../../../ir/node.ts";
import { fitsShape } from "../../../layout/algebra/register-layout.ts";
import type { DistributedLayout, RegisterLayout } from "../../../layout/algebra/register-layout.ts";
import { Functions } from "../../../layout/model/functions.ts";
import { Random } from "../../../support/random.ts";

type Body = (x: never) => unknown;

function traced(dtype: DType, shape: readonly number[], body: Body): Kernel {
  return kernel(
    {
      name: "k",
      grid: { i: 1 },
      inputs: { x: array(dtype as never, shape as never) },
      outputs: { out: array(f32Type, [1]) },
    },
    ({ x }: never) => {
      body((x as { load(): never }).load());
    },
  ).kernel;
}

function laneCodes({ bits, kind }: DType, lanes: Lanes): bigint[] {
  const raw = new Uint8Array(lanes.buffer, lanes.byteOffset, lanes.byteLength);
  const width = lanes.byteLength / lanes.length;
  const mask = (1n << BigInt(kind === "bool" ? 1 : bits)) - 1n;
  return Array.from(lanes as ArrayLike<unknown>, (_, index) => {
    let code = 0n;
    for (let byte = width - 1; byte >= 0; byte -= 1)
      code = (code << 8n) | BigInt(raw[index * width + byte] ?? 0);
    return code & mask;
  });
}

/** Whole numbers whose sums are exact in every order; with `special`, everything a float can be. */
function randomLanes(random: Random, dtype: DType, count: number, special: boolean): Lanes {
  const lanes = allocateLanes(dtype, count);
  const raw = new Uint8Array(lanes.buffer);
  const whole = new Float32Array(count).map(() => random.below(9) - 4);
  if (dtype.kind === "bool") return lanes.map(() => random.below(2)) as never;
  if (dtype.kind !== "float") {
    raw.forEach((_, index) => (raw[index] = random.below(256)));
    if (dtype.bits === 4) {
      const own = lanes as Int8Array;
      own.forEach(
        (value, index) => (own[index] = dtype.kind === "signed" ? (value << 28) >> 28 : value & 15),
      );
    }
    return lanes;
  }
  const specials = [NaN, Infinity, -Infinity, -0, 0, 0, -0, 1, 1, 2];
  if (special)
    whole.forEach(
      (_, index) => (whole[index] = random.below(2) ? random.pick(specials) : random.below(9) - 4),
    );
  if (dtype.name === "f16" || dtype.name === "bf16") {
    const own = lanes as Uint16Array;
    own.forEach((_, index) => (own[index] = shortCode(dtype.name, whole[index] ?? 0)));
    return own as Lanes;
  }
  whole.forEach((value, index) => ((lanes as Float32Array)[index] = value));
  return lanes;
}

function shortCode(name: string, value: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, value);
  const bits = view.getUint32(0);
  if (name === "bf16") return bits >>> 16;
  const sign = (bits >>> 16) & 0x8000;
  if (Number.isNaN(value)) return 0x7e00;
  if (!Number.isFinite(value)) return sign | 0x7c00;
  if (value === 0) return sign;
  return sign | ((((bits >>> 23) & 255) - 112) << 10) | ((bits >>> 13) & 1023);
}

function isNan(code: bigint, { name }: DType): boolean {
  const infinities: Record<string, readonly [bigint, bigint]> = {
    f16: [0x7fffn, 0x7c00n],
    bf16: [0x7fffn, 0x7f80n],
    f32: [0x7fffffffn, 0x7f800000n],
    tf32: [0x7fffffffn, 0x7f800000n],
    f64: [0x7fffffffffffffffn, 0x7ff0000000000000n],
  };
  const own = infinities[name];
  return own !== undefined && (code & own[0]) > own[1];
}

const same = (found: bigint, wanted: bigint, dtype: DType): boolean =>
  found === wanted || (isNan(found, dtype) && isNan(wanted, dtype));

function randomLayout(
  random: Random,
  shape: readonly number[],
  oneWarp = false,
): DistributedLayout {
  for (;;) {
    const spelling = randomSpelling(random, Math.max(1, shape.length));
    const layout = layoutOf(
      oneWarp
        ? {
            ...spelling,
            axes: spelling.axes.map((bits) => bits.filter((bit) => !bit.startsWith("W"))),
          }
        : spelling,
    );
    if (fitsShape(layout, shape)) return new Functions().normal(layout, shape) as DistributedLayout;
  }
}

interface Case {
  readonly random: Random;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly lanes: Lanes;
  readonly source: DistributedLayout;
  readonly read: DistributedLayout;
  readonly oneWarp: boolean;
  readonly about: string;
  /** Of a reduction: the axes that go, and the extents that stay. */
  readonly axes?: readonly number[];
  readonly kept?: readonly number[];
}

function cases(
  name: string,
  names: readonly DType[],
  count: number,
  special: boolean,
  run: (one: Case) => void,
): void {
  test(name, () => {
    for (let seed = 1; seed <= count; seed += 1) {
      const random = new Random(seed * 7919);
      const dtype = random.pick(names);
      const shape = randomShape(random, 1 + random.below(3));
      const oneWarp = random.below(4) === 0;
      const read = randomLayout(random, shape, oneWarp);
      const source = random.below(2) ? read : randomLayout(random, shape, oneWarp);
      const size = shape.reduce((product, extent) => product * extent, 1);
      const lanes = randomLanes(random, dtype, size, special);
      const about = `seed ${seed}: ${dtype.name}[${shape.join()}] ${source.text} to ${read.text}${oneWarp ? ", one warp" : ""}`;
      try {
        run({ random, dtype, shape, lanes, source, read, oneWarp, about });
      } catch (error) {
        throw new Error(`${about}: ${error instanceof Error ? error.stack : String(error)}`);
      }
    }
  });
}

function outcome(
  one: Case,
  body: Body,
  kind: AnyOp["kind"],
  layouts: readonly (RegisterLayout | undefined)[],
  more: readonly { value(op: AnyOp): Value; codes: TileCodes; layout: RegisterLayout }[] = [],
) {
  const { dtype, shape, lanes, source, read, oneWarp } = one;
  const { kernel: traces, op } = withAxes(traced(dtype, shape, body), kind, one);
  const load = opOf(traces, "load");
  const [value] = load.results;
  if (value === undefined) throw new Error("no value");
  const results = new Map<Value, RegisterLayout>();
  op.results.forEach((result, index) => {
    const layout = layouts[index];
    if (layout !== undefined) results.set(result, layout);
  });
  const codes = laneCodes(dtype, lanes);
  const sources = new Map([[value, { layout: source as RegisterLayout, dtype, shape, codes }]]);
  const needs = [{ value, layout: read as RegisterLayout }];
  for (const other of more) {
    sources.set(other.value(op), { layout: other.layout, ...other.codes });
    needs.push({ value: other.value(op), layout: read });
  }
  return runRule({ kernel: traces, op, sources, needs, results, oneWarp });
}

/** A reduction over other axes than the language offers. */
function withAxes(
  from: Kernel,
  kind: AnyOp["kind"],
  { axes, kept = [], dtype }: Case,
): { readonly kernel: Kernel; readonly op: AnyOp } {
  const op = opOf(from, kind);
  if (op.kind !== "reduce" || axes === undefined) return { kernel: from, op };
  const type = kept.length === 0 ? { kind: "scalar", dtype } : { kind: "tile", dtype, shape: kept };
  const changed = {
    ...op,
    attributes: { ...op.attributes, axes },
    results: [{ id: 9999, type }],
  } as AnyOp;
  const ops = from.body.ops.map((each) => (each === op ? changed : each));
  return { kernel: { ...from, body: { ...from.body, ops } }, op: changed };
}

function axisOf(shape: readonly number[], axes: readonly number[]) {
  const [first = 0] = axes;
  const last = axes.at(-1) ?? 0;
  const size = (list: readonly number[]): number =>
    list.reduce((product, each) => product * each, 1);
  return {
    outer: size(shape.slice(0, first)),
    length: size(shape.slice(first, last + 1)),
    inner: size(shape.slice(last + 1)),
  };
}

const all = Object.values(dtypes);
const numbers = all.filter((dtype) => acceptsReduce("sum", dtype));

describe("rules on lanes", () => {
  cases("layout_cast", all, 60, false, (one) => {
    const { dtype, shape, lanes, read, about } = one;
    const run = outcome(
      one,
      (x: { layoutCast(text: string): unknown }) => x.layoutCast(read.text),
      "layout_cast",
      [read],
    );
    expectTile(run, run.results[0], { dtype, shape, codes: laneCodes(dtype, lanes) }, about);
  });

  cases("transpose, reshape and slice", all, 60, false, (one) => {
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
    if (cut === undefined) return;
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
  });

  cases("reduce", all, 150, false, reduceCase);
  cases("reduce, special numbers", numbers, 60, true, reduceCase);

  function reduceCase(one: Case): void {
    const { random, dtype, shape, lanes, read, about } = one;
    const special = about.includes("special");
    const fns = reduceFunctions.filter((fn) => acceptsReduce(fn, dtype));
    if (fns.length === 0) return;
    const fn = random.pick(fns);
    if (special && (fn === "sum" || fn === "prod")) return;
    const first = random.below(shape.length);
    const last = first + random.below(shape.length - first);
    const axes = shape.map((_, axis) => axis).filter((axis) => axis >= first && axis <= last);
    const kept = shape.filter((_, axis) => !axes.includes(axis));
    const layout = new Functions().reduce(shape, axes).apply(read);
    if (kept.length > 0 && layout === undefined) return;
    const run = outcome({ ...one, axes, kept }, (x: never) => reduceIn(x, fn), "reduce", [layout]);
    const axis = axisOf(shape, axes);
    const target = allocateLanes(dtype, axis.outer * axis.inner);
    reduceLanes(fn, dtype, lanes, axis, target);
    const codes = laneCodes(dtype, target);
    const where = `${about}, ${fn} over ${axes.join()}`;
    const [result] = run.results;
    if (kept.length > 0) expectTile(run, result, { dtype, shape: kept, codes }, where, same);
    else {
      if (result?.kind !== "scalar") throw new Error("no scalar");
      const mask = (1n << BigInt(dtype.kind === "bool" ? 1 : dtype.bits)) - 1n;
      const values = run.machine.registers.get(result.register) ?? [];
      expect(values.length, where).toBe(128);
      for (const value of values)
        if (!same(value & mask, (codes[0] ?? 0n) & mask, dtype))
          expect.fail(`${where}: ${value.toString(16)}, not ${codes[0]?.toString(16)}`);
    }
  }

  cases("arg_reduce", numbers, 60, true, (one) => {
    const { random, dtype, shape, lanes, read, about } = one;
    const axis = random.below(shape.length);
    const layout = new Functions().reduce(shape, [axis]).apply(read);
    const kept = shape.filter((_, each) => each !== axis);
    if (kept.length > 0 && layout === undefined) return;
    const fn = random.pick(argFunctions);
    const run = outcome(
      one,
      (x: never) =>
        (x as Record<string, (...axis: readonly number[]) => unknown>)[fn]?.(
          ...(kept.length === 0 ? [] : [axis]),
        ),
      "arg_reduce",
      [layout],
    );
    const seen = axisOf(shape, [axis]);
    const target = new Int32Array(seen.outer * seen.inner);
    argLanes(fn, dtype, lanes, seen, target);
    const codes = Array.from(target, (value) => BigInt(value));
    const [result] = run.results;
    if (kept.length > 0)
      expectTile(run, result, { dtype: dtypes.i32, shape: kept, codes }, `${about}, ${fn} ${axis}`);
    else {
      if (result?.kind !== "scalar") throw new Error("no scalar");
      for (const value of run.machine.registers.get(result.register) ?? [])
        expect(value, `${about}, ${fn}`).toBe(codes[0]);
    }
  });

  cases("scan", numbers, 120, false, (one) => {
    const { random, dtype, shape, lanes, read, about } = one;
    const fn = random.pick(
      scanFunctions.filter((each) => each !== "prod" || dtype.kind !== "float"),
    );
    const axis = random.below(shape.length);
    const reverse = random.below(2) === 1;
    const names = { sum: "cumsum", prod: "cumprod", min: "cummin", max: "cummax" } as const;
    const run = outcome(
      one,
      (x: never) =>
        (x as Record<string, (axis: number, options: object) => unknown>)[names[fn]]?.(axis, {
          reverse,
        }),
      "scan",
      [read],
    );
    const target = allocateLanes(dtype, lanes.length);
    scanLanes(fn, dtype, lanes, axisOf(shape, [axis]), target, reverse);
    expectTile(
      run,
      run.results[0],
      { dtype, shape, codes: laneCodes(dtype, target) },
      `${about}, ${fn} ${axis} ${reverse}`,
      same,
    );
  });

  cases("sort", numbers, 30, true, (one) => {
    const { random, dtype, shape, lanes, read, about } = one;
    const axis = random.below(shape.length);
    const descending = random.below(2) === 1;
    const run = outcome(
      one,
      (x: { sort(axis: number, options: object): unknown }) => x.sort(axis, { descending }),
      "sort",
      [read],
    );
    const keys = lanes.slice() as Lanes;
    sortLanes(dtype, keys, [], axisOf(shape, [axis]), descending);
    expectTile(
      run,
      run.results[0],
      { dtype, shape, codes: laneCodes(dtype, keys) },
      `${about}, ${axis} ${descending}`,
      same,
    );
  });

  cases("sort with payloads", numbers, 30, true, (one) => {
    const { random, dtype, shape, lanes, read, about } = one;
    const axis = random.below(shape.length);
    const descending = random.below(2) === 1;
    const other = random.pick(all);
    const payload = randomLanes(random, other, lanes.length, false);
    const run = outcome(
      one,
      (x: {
        sortWith(axis: number, payloads: readonly unknown[], options: object): unknown;
        cast(to: DType): unknown;
      }) => x.sortWith(axis, [x.cast(other)], { descending }),
      "sort",
      [read, read],
      [
        {
          value: (op) => (op.operands as { payloads: Value[] }).payloads[0] as Value,
          codes: { dtype: other, shape, codes: laneCodes(other, payload) },
          layout: one.source,
        },
      ],
    );
    const keys = lanes.slice() as Lanes;
    const moved = payload.slice() as Lanes;
    sortLanes(dtype, keys, [moved], axisOf(shape, [axis]), descending);
    expectTile(run, run.results[0], { dtype, shape, codes: laneCodes(dtype, keys) }, about, same);
    expectTile(run, run.results[1], { dtype: other, shape, codes: laneCodes(other, moved) }, about);
  });
});

/** Over the first axis; other axes are put in its place. */
function reduceIn(x: never, fn: string): unknown {
  const tile = x as {
    readonly [name: string]: (axis: number, options: object) => unknown;
  } & { reduce(fn: string, axis: number, options: object): unknown };
  const options = { keep: true };
  // Conditions that nobody uses are refused.
  if (fn === "and" || fn === "or" || fn === "xor")
    return (tile.reduce(fn, 0, options) as { cast(to: DType): unknown }).cast(f32Type);
  return tile[fn]?.(0, options);
}

function coordinates(element: number, shape: readonly number[]): number[] {
  const found: number[] = [];
  let rest = element;
  for (const extent of shape.toReversed()) {
    found.unshift(rest % extent);
    rest = Math.floor(rest / extent);
  }
  return found;
}

function number(at: readonly number[], shape: readonly number[]): number {
  return at.reduce((sum, each, axis) => sum * (shape[axis] ?? 1) + each, 0);
}
