/** Attention in float64 as its page has it, and numbers to try it on. */
import { bf16, f32 } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type {
  AttentionConfiguration,
  GradientConfiguration,
} from "../../src/kernels/attention/configuration.ts";
import type { Window } from "../../src/kernels/attention/problem.ts";
import { threefry } from "./threefry.ts";
import { masks } from "./attention-masks.ts";
import type { MaskName } from "./attention-masks.ts";

type AttentionFormat = "bf16" | "f16" | "f32" | "f8e4m3fn" | "f8e5m2";

export interface AttentionCase {
  readonly name: string;
  /** b, s, t, h, kv, d, e. */
  readonly sizes: readonly [number, number, number, number, number, number, number];
  readonly dtype?: DType<AttentionFormat>;
  /** Operands have scales, heads of them different ones. */
  readonly scales?: boolean;
  readonly causal?: boolean;
  readonly window?: Window;
  readonly softCap?: number;
  readonly scale?: number;
  readonly sinks?: boolean;
  /** Which axes of the bias are whole. */
  readonly bias?: readonly boolean[];
  /** Which columns rows see. */
  readonly mask?: MaskName;
  /** Rows see columns of their own segment alone; some have none. */
  readonly segments?: boolean;
  /** Part of the weights that is dropped, with the bits of a key of its own. */
  readonly dropout?: number;
  /** Scores fall with the distance, more in later heads. */
  readonly slopes?: boolean;
  /** Scores x become x + x² / 8. */
  readonly curved?: boolean;
  readonly configuration?: AttentionConfiguration;
  /** Which kernel is expected to be chosen. */
  readonly kernel?: AttentionConfiguration["kernel"];
  /** Of the gradients. */
  readonly gradients?: GradientConfiguration;
  readonly deterministic?: boolean;
}

/** Two words that dropout draws from. */
export const dropoutKey = [0x12345678, 0x9abcdef0] as const;

type Given = ReturnType<typeof inputsOf>;

/** Segments of 5 to 11 queries, other ones in each batch, and one that no key is of. */
export function queryId(batch: number, row: number): number {
  return row % 29 === 3 ? -7 : Math.floor(row / (5 + 3 * (batch % 3)));
}

/** The same of keys, which change over later, and come back. */
export function keyId(batch: number, column: number): number {
  return Math.floor(column / (7 + 2 * (batch % 3))) % 6;
}

/** Numbers between -1 and 1, this far apart: bf16 and wider formats hold them all exactly. */
export function numbersOf(count: number, seed: number, parts = 64): readonly number[] {
  return Array.from({ length: count }, (_, index) => {
    const mixed = Math.imul(index + 1, 2654435761) ^ Math.imul(seed, 40503);
    return (((mixed >>> 8) & (2 * parts - 1)) - parts) / parts;
  });
}

/** Parts of 1 that narrow formats hold exactly. */
const partsOf: { readonly [name: string]: number } = { f8e4m3fn: 8, f8e5m2: 4 };

/** What the numbers of a head are multiplied by. */
function scaleOfHead(head: number, seed: number): number {
  return 0.75 + 0.25 * ((head + seed) % 3);
}

export function inputsOf({
  sizes: [b, s, t, h, kv, d, e],
  dtype = bf16,
  bias,
  sinks,
  scales,
}: AttentionCase) {
  const made = (own: DType, shape: readonly number[], seed: number) => {
    const values = numbersOf(
      shape.reduce((product, extent) => product * extent, 1),
      ...[seed, partsOf[own.name]],
    );
    return { shape, values, array: fromNumbers(own, shape, values) };
  };
  // Arrays hold the numbers as they are, and the reference sees them multiplied.
  const operand = (shape: readonly [number, number, number, number], seed: number) => {
    const own = made(dtype, shape, seed);
    const [, , heads, size] = shape;
    const factors = Array.from({ length: heads }, (_, head) => scaleOfHead(head, seed));
    if (scales !== true) return own;
    const headOf = (index: number) => Math.floor(index / size) % heads;
    const values = own.values.map((value, index) => value * (factors[headOf(index)] ?? NaN));
    return { ...own, values, scale: fromNumbers(f32, [heads], factors) };
  };
  return {
    q: operand([b, s, h, d], 1),
    k: operand([b, t, kv, d], 2),
    v: operand([b, t, kv, e], 3),
    bias:
      bias &&
      made(
        f32,
        [b, h, s, t].map((size, axis) => (bias[axis] === true ? size : 1)),
        4,
      ),
    sinks: sinks === true ? made(f32, [h], 5) : undefined,
  };
}

interface Matrix {
  readonly shape: readonly number[];
  readonly values: readonly number[];
}

function placeOf({ shape }: Matrix, ...place: readonly number[]): number {
  return place.reduce(
    (sum, each, axis) => sum * (shape[axis] ?? 1) + (shape[axis] === 1 ? 0 : each),
    0,
  );
}

/** Where the numbers of a head begin. */
function startOf({ shape }: Matrix, batch: number, place: number, head: number): number {
  const [, places = 1, heads = 1, size = 1] = shape;
  return ((batch * places + place) * heads + head) * size;
}

function product(
  left: readonly number[],
  from: number,
  right: readonly number[],
  start: number,
  count: number,
): number {
  let sum = 0;
  for (let i = 0; i < count; i += 1) sum += (left[from + i] ?? NaN) * (right[start + i] ?? NaN);
  return sum;
}

function at(matrix: Matrix, ...place: readonly number[]): number {
  return matrix.values[placeOf(matrix, ...place)] ?? NaN;
}

/** What dropout multiplies the weights of a row by. */
function factorsOf(
  { dropout, sizes: [, , t, h] }: AttentionCase,
  { batch, head, row }: { readonly [N in "batch" | "head" | "row"]: number },
): readonly number[] {
  if (dropout === undefined) return Array.from({ length: t }, () => 1);
  const own = threefry(dropoutKey, [0, batch * h + head]);
  return Array.from({ length: t }, (_, column) => {
    const [high, low] = threefry(own, [0, (row * t + column) >>> 0]);
    // The upper 23 bits, behind the point.
    const drawn = ((high ^ low) >>> 9) / 2 ** 23;
    return drawn < Math.fround(1 - dropout) ? 1 / (1 - dropout) : 0;
  });
}

/** What one row of a head makes of its columns: their weights, and what the softmax divides by. */
function rowOf(one: AttentionCase, given: Given, [batch, row, head]: readonly number[]) {
  const [, , t, h, kv, d] = one.sizes;
  if (batch === undefined || row === undefined || head === undefined) throw new RangeError("place");
  const { q, k, bias, sinks } = given;
  const scale = one.scale ?? 1 / Math.sqrt(d);
  const left = one.window?.left ?? Infinity;
  const right = one.causal === true ? 0 : (one.window?.right ?? Infinity);
  const shared = Math.floor(head / (h / kv));
  const slopes = new Float64Array(t).fill(1);
  const ownSlopes = new Float64Array(t).fill(1);
  const factors = factorsOf(one, { batch, head, row });
  const scores = Array.from({ length: t }, (_, column) => {
    if (column < row - left || column > row + right) return -Infinity;
    if (one.mask !== undefined && !masks[one.mask].sees({ batch, head, row, column }))
      return -Infinity;
    if (one.segments === true && queryId(batch, row) !== keyId(batch, column)) return -Infinity;
    const own = startOf(q, batch, row, head);
    let score = scale * product(q.values, own, k.values, startOf(k, batch, column, shared), d);
    if (one.softCap !== undefined) {
      const bent = Math.tanh(score / one.softCap);
      slopes[column] = 1 - bent ** 2;
      score = one.softCap * bent;
    }
    if (bias) score += at(bias, batch, head, row, column);
    if (one.curved === true) {
      ownSlopes[column] = 1 + score / 4;
      slopes[column] = (slopes[column] ?? NaN) * (1 + score / 4);
      score += score ** 2 / 8;
    }
    if (one.slopes === true) score -= Math.abs(row - column) * 0.125 * (head + 1);
    return score;
  });
  if (sinks) scores.push(sinks.values[head] ?? NaN);
  const high = Math.max(-1e300, ...scores);
  const powers = scores.map((score) => Math.exp(score - high));
  const sum = powers.reduce((total, power) => total + power, 0);
  const weights = powers.slice(0, t).map((power) => (sum === 0 ? 0 : power / sum));
  const sink = sum === 0 ? 0 : (powers[t] ?? 0) / sum;
  return {
    shared,
    scale,
    slopes,
    ownSlopes,
    factors,
    weights,
    sink,
    logarithm: high + Math.log(sum),
  };
}

/** Numbers, and for each the sum of the magnitudes that were added up: what relative errors of the terms may make of it. */
export class Summed {
  readonly values: Float64Array;
  readonly magnitudes: Float64Array;

  constructor(count: number) {
    this.values = new Float64Array(count);
    this.magnitudes = new Float64Array(count);
  }

  add(index: number, term: number, magnitude = Math.abs(term)): void {
    this.values[index] = (this.values[index] ?? NaN) + term;
    this.magnitudes[index] = (this.magnitudes[index] ?? NaN) + magnitude;
  }

  /** Numbers from a place on, times one that is known as well as its magnitude says. */
  addTimes(
    index: number,
    numbers: readonly number[],
    from: number,
    count: number,
    { change, magnitude }: { readonly change: number; readonly magnitude: number },
  ): void {
    for (let i = 0; i < count; i += 1) {
      const number = numbers[from + i] ?? NaN;
      this.add(index + i, change * number, magnitude * Math.abs(number));
    }
  }
}

/** softmax(score) · v and the logarithm of the sum, in float64, as the documentation has it. */
export function expected(one: AttentionCase, given: Given) {
  const [b, s, , h, , , e] = one.sizes;
  const out = new Summed(b * s * h * e);
  const logSumExp = new Float64Array(b * h * s);
  for (let batch = 0; batch < b; batch += 1)
    for (let row = 0; row < s; row += 1)
      for (let head = 0; head < h; head += 1) {
        const { shared, weights, factors, logarithm } = rowOf(one, given, [batch, row, head]);
        logSumExp[(batch * h + head) * s + row] = logarithm;
        const index = ((batch * s + row) * h + head) * e;
        weights.forEach((weight, column) => {
          if (weight === 0) return;
          const part = weight * (factors[column] ?? NaN);
          const from = startOf(given.v, batch, column, shared);
          for (let i = 0; i < e; i += 1)
            out.add(index + i, part * (given.v.values[from + i] ?? NaN));
        });
      }
  return { out, logSumExp };
}

/** Powers less than 2⁻¹²⁶ are 0 to a GPU: what they give is lost, which a bound of 2⁻¹⁸ or more of this weight's share has room for. */
const leastWeight = 2 ** -108;

/** The gradients of Σ out · dOut in float64, by the formulas that the page of attention has. */
export function expectedGradients(one: AttentionCase, given: Given, dOut: readonly number[]) {
  const [b, s, t, h, kv, d, e] = one.sizes;
  const { q, k, v, bias } = given;
  const upstream = { shape: [b, s, h, e], values: dOut };
  const [dq, dk, dv] = [
    new Summed(b * s * h * d),
    new Summed(b * t * kv * d),
    new Summed(b * t * kv * e),
  ];
  const dSinks = new Summed(h);
  const dBias = bias && new Summed(bias.values.length);
  for (let batch = 0; batch < b; batch += 1)
    for (let row = 0; row < s; row += 1)
      for (let head = 0; head < h; head += 1) {
        const { shared, scale, slopes, ownSlopes, factors, weights, sink } = rowOf(one, given, [
          ...[batch, row, head],
        ]);
        const above = startOf(upstream, batch, row, head);
        const changes = weights.map((weight, column) => {
          let [sum, magnitude] = [0, 0];
          if (weight === 0) return { sum, magnitude };
          const factor = factors[column] ?? NaN;
          const from = startOf(v, batch, column, shared);
          for (let i = 0; i < e; i += 1) {
            const term = factor * (dOut[above + i] ?? NaN) * (v.values[from + i] ?? NaN);
            sum += term;
            magnitude += Math.abs(term);
          }
          return { sum, magnitude };
        });
        const delta = changes.reduce(
          (sum, each, column) => sum + each.sum * (weights[column] ?? 0),
          0,
        );
        const reach = changes.reduce(
          (sum, each, column) => sum + each.magnitude * (weights[column] ?? 0),
          0,
        );
        dSinks.add(head, -sink * delta, sink * reach);
        weights.forEach((weight, column) => {
          if (weight === 0) return;
          const slope = scale * weight * (slopes[column] ?? NaN);
          const change = slope * ((changes[column]?.sum ?? NaN) - delta);
          const sure = Math.max(weight, leastWeight);
          const steepest =
            Math.abs(scale) * sure * (Math.abs(slopes[column] ?? NaN) + unsureSlope(one));
          const magnitude = steepest * ((changes[column]?.magnitude ?? NaN) + reach);
          const [own, other] = [
            ((batch * s + row) * h + head) * d,
            ((batch * t + column) * kv + shared) * d,
          ];
          dq.addTimes(own, k.values, other, d, { change, magnitude });
          dk.addTimes(other, q.values, own, d, { change, magnitude });
          const part = weight * (factors[column] ?? NaN);
          const values = startOf(v, batch, column, shared);
          const whole = sure * Math.abs(factors[column] ?? NaN);
          dv.addTimes(values, dOut, above, e, { change: part, magnitude: whole });
          if (dBias && bias) {
            const ofScore = weight * (ownSlopes[column] ?? NaN);
            dBias.add(
              placeOf(bias, batch, head, row, column),
              ofScore * ((changes[column]?.sum ?? NaN) - delta),
              sure *
                Math.abs(ownSlopes[column] ?? NaN) *
                ((changes[column]?.magnitude ?? NaN) + reach),
            );
          }
        });
      }
  return { q: dq, k: dk, v: dv, sinks: dSinks, bias: dBias };
}

/** One less a square that is nearly one is known to the last bits of f32 alone, which are much of what f32 may be off. */
function unsureSlope({ softCap, dtype }: AttentionCase): number {
  if (softCap === undefined) return 0;
  return dtype?.name === "f32" ? 2 ** -3 : 2 ** -13;
}

/**
 * What a sum may be off by, however small it is. Powers below 2⁻¹²⁶ count as 0 on a GPU: of bf16 and f32 up to 2¹⁰ of them, times numbers
 * below 8, may be missing. The smallest numbers of f16 lie further apart than that.
 */
export const smallest = { bf16: 2 ** -113, f16: 2 ** -24, f32: 2 ** -113 } as const;

/** Errors are at most `bound` of the magnitudes that were summed up, or the smallest that counts. */
export function withinMagnitudes(
  found: ArrayLike<number>,
  wanted: Summed,
  bound: number,
  smallest: number,
): void {
  const { values, magnitudes } = wanted;
  requireCount(found, values);
  const wrong = Array.from(found).findIndex(
    (value, index) =>
      !(Math.abs(value - (values[index] ?? NaN)) <= bound * (magnitudes[index] ?? NaN) + smallest),
  );
  if (wrong !== -1)
    throw new Error(
      `[${wrong}]: ${found[wrong]} for ${values[wrong]} of magnitude ${magnitudes[wrong]}`,
    );
}

function requireCount(found: ArrayLike<number>, wanted: ArrayLike<number>): void {
  if (found.length !== wanted.length)
    throw new Error(`${found.length} elements for ${wanted.length}`);
}

export function closeTo(found: ArrayLike<number>, wanted: ArrayLike<number>, bound: number): void {
  requireCount(found, wanted);
  const wrong = Array.from(found).findIndex((value, index) => {
    const other = wanted[index] ?? NaN;
    return value !== other && !(Math.abs(value - other) <= bound * Math.max(1, Math.abs(other)));
  });
  if (wrong !== -1) throw new Error(`[${wrong}]: ${found[wrong]} for ${wanted[wrong]}`);
}
