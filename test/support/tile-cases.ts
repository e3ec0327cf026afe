/**
 * Random tiles in random layouts for tests of emission rules: a traced op is run on lanes by `tile-rules.ts`
 * and, for some seeds, assembled.
 */
import { expect, test } from "vitest";
import { tensor, f32 as f32Type, kernel } from "tilewright";
import { acceptsReduce } from "../../src/formats/arithmetic/functions.ts";
import { allocateElements, dtypes } from "../../src/formats/dtype.ts";
import type { DType, Elements } from "../../src/formats/dtype.ts";
import type { AnyOp, Kernel, Value } from "../../src/ir/node.ts";
import { fitsShape } from "../../src/layout/algebra/register-layout.ts";
import type {
  DistributedLayout,
  RegisterLayout,
} from "../../src/layout/algebra/register-layout.ts";
import { Functions } from "../../src/layout/model/layout-functions.ts";
import { Random } from "../../src/support/random.ts";
import { layoutOf, randomShape, randomSpelling } from "../layout-oracle.ts";
import { assembleRules, opOf, runRule } from "./tile-rules.ts";
import type { RuleRun, TileCodes } from "./tile-rules.ts";

export type Body = (x: never) => unknown;

export function traced(dtype: DType, shape: readonly number[], body: Body): Kernel {
  return kernel(
    {
      name: "k",
      grid: { i: 1 },
      inputs: { x: tensor(dtype, shape) },
      outputs: { out: tensor(f32Type, [1]) },
    },
    ({ x }) => {
      body(x.load() as never);
    },
  ).kernel;
}

export function laneCodes({ bits, kind }: DType, lanes: Elements): bigint[] {
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
export function randomElements(
  random: Random,
  dtype: DType,
  count: number,
  special: boolean,
): Elements {
  const lanes = allocateElements(dtype, count);
  const raw = new Uint8Array(lanes.buffer);
  const whole = new Float32Array(count).map(() => random.below(9) - 4);
  if (dtype.kind === "bool") return raw.map(() => random.below(2));
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
    return own;
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

export const same = (found: bigint, wanted: bigint, dtype: DType): boolean =>
  found === wanted || (isNan(found, dtype) && isNan(wanted, dtype));

export function randomLayout(
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

/** The elements around some axes. */
export interface Axis {
  readonly outer: number;
  readonly length: number;
  readonly inner: number;
}

export interface Case {
  readonly random: Random;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly lanes: Elements;
  readonly source: DistributedLayout;
  readonly read: DistributedLayout;
  readonly oneWarp: boolean;
  readonly about: string;
  /** Of a reduction: the axes that go, and the extents that stay. */
  readonly axes?: readonly number[];
  readonly kept?: readonly number[];
}

export function cases(
  name: string,
  names: readonly DType[],
  count: number,
  special: boolean,
  run: (one: Case) => RuleRun | undefined,
): void {
  test(name, () => {
    const runs: RuleRun[] = [];
    for (let seed = 1; seed <= count; seed += 1) {
      const random = new Random(seed * 7919);
      const dtype = random.pick(names);
      const shape = randomShape(random, 1 + random.below(3));
      const oneWarp = random.below(4) === 0;
      const read = randomLayout(random, shape, oneWarp);
      const source = random.below(2) ? read : randomLayout(random, shape, oneWarp);
      const size = shape.reduce((product, extent) => product * extent, 1);
      const lanes = randomElements(random, dtype, size, special);
      const about = `seed ${seed}: ${dtype.name}[${shape.join()}] ${source.text} to ${read.text}${oneWarp ? ", one warp" : ""}`;
      try {
        const ran = run({ random, dtype, shape, lanes, source, read, oneWarp, about });
        if (ran !== undefined) runs.push(ran);
      } catch (error) {
        throw new Error(`${about}: ${String(error)}`, { cause: error });
      }
    }
    expect(assembleRules(runs.slice(0, 8)), `what ptxas says of ${name}`).toBe("");
  });
}

export function outcome(
  one: Case,
  body: Body,
  kind: AnyOp["kind"],
  layouts: readonly (RegisterLayout | undefined)[],
  more: readonly { value(op: AnyOp): Value; codes: TileCodes; layout: RegisterLayout }[] = [],
): RuleRun {
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
  const sources = new Map<Value, TileCodes & { readonly layout: RegisterLayout }>([
    [value, { layout: source, dtype, shape, codes }],
  ]);
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

export function axisOf(shape: readonly number[], axes: readonly number[]): Axis {
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

export const all = Object.values(dtypes);
export const numbers = all.filter((dtype) => acceptsReduce("sum", dtype));

export function coordinates(element: number, shape: readonly number[]): number[] {
  const found: number[] = [];
  let rest = element;
  for (const extent of shape.toReversed()) {
    found.unshift(rest % extent);
    rest = Math.floor(rest / extent);
  }
  return found;
}

export function number(at: readonly number[], shape: readonly number[]): number {
  return at.reduce((sum, each, axis) => sum * (shape[axis] ?? 1) + each, 0);
}
