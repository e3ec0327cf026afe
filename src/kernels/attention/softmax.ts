/**
 * The softmax over tiles of columns that come one after the other. A row keeps its largest exponent so far, the sum of the
 * powers beneath it, and the sum of the values; when a larger exponent comes, both sums are scaled down:
 *
 *   tile    exponents   largest   power of the change   sum of powers
 *   0       1  3        3         –                     2⁻² + 2⁰            = 1.25
 *   1       5  4        5         2⁻²                   1.25·2⁻² + 2⁰ + 2⁻¹ = 1.8125
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { full, zeros } from "../../lang/index.ts";
import type { Ref, Scalar, Tile } from "../../lang/index.ts";
import type { Exponents } from "./scores.ts";

const fast = { approximate: true } as const;

/**
 * A row whose exponents are all less has seen nothing. From there on f32 has no fractions: what rounding leaves of the largest exponent,
 * which the powers are taken beneath, would be an exponent of its own, and powers 0 or infinite.
 */
const leastExponent = -(2 ** 24);

/**
 * The format that powers are rounded to, and the exponent of the largest: 0, so that they are at most 1, or more where
 * the format would lose small ones. FP8 has numbers from 2⁻⁹ to 448, so the largest is 2⁸.
 */
export interface PowerFormat<D extends DTypeName = DTypeName> {
  readonly dtype: DType<D>;
  readonly lift: number;
  /** By how much exponents may be more than what they are taken beneath, before sums are scaled down to a larger one. */
  readonly slack?: number;
  /** The order that powers are multiplied in, where it is another: they are brought into it before they are rounded, and rounded ones share words. */
  readonly dealt?: (powers: Tile<"f32">) => Tile<"f32">;
}

export interface RowSums {
  readonly largest: Tile<"f32">;
  readonly sum: Tile<"f32">;
}

/** Rows before the first column: with a sink, one score that gives nothing. */
export function startingRows(
  rows: number,
  head: Scalar<"i32">,
  sinks: Ref<"f32"> | undefined,
  lift = 0,
): RowSums {
  if (sinks === undefined)
    return {
      largest: full(dtypes.f32, [rows, 1], -Infinity),
      sum: zeros(dtypes.f32, [rows, 1]),
    };
  const sink = sinks.at(head).loadScalar().mul(Math.LOG2E);
  const none = zeros(dtypes.f32, [rows, 1]);
  return { largest: none.add(sink), sum: none.add(2 ** lift) };
}

/**
 * The powers of a tile of scores, of those that dropout keeps, the sums with all of them, and what the sums before are scaled by. Powers are
 * rounded where they are asked for: a product that still reads the rounded ones before has their registers.
 */
export function addColumns<D extends DTypeName>(
  { scores, scale }: Exponents,
  { largest, sum }: RowSums,
  { dtype, lift, slack = 0, dealt = (powers) => powers }: PowerFormat<D>,
  kept?: () => Tile<"bool"> | undefined,
): {
  readonly rows: RowSums;
  readonly powers: () => Tile<D>;
  readonly change: Tile<"f32">;
} {
  const reached = scores.max({ axis: 1, keepDims: true }).mul(scale);
  const larger = largest.maximum(reached);
  const stays = () => reached.le(largest.add(slack)).and(largest.ge(leastExponent));
  const high = slack === 0 ? larger : stays().select(largest, larger);
  // A row that has seen nothing yet stays there: -∞ must not be subtracted from itself.
  const base = high.lt(leastExponent).select(zeros(dtypes.f32, high.shape), high);
  const change = largest.sub(base).exp2(fast);
  const powers = scores.fma(scale, lift === 0 ? base.neg() : base.neg().add(lift)).exp2(fast);
  return {
    rows: { largest: high, sum: sum.mul(change).add(powers.sum({ axis: 1, keepDims: true })) },
    powers: () =>
      dealt(kept?.()?.select(powers, zeros(dtypes.f32, powers.shape)) ?? powers).cast(dtype),
    change,
  };
}

export interface FinishOptions {
  readonly dropout?: number | undefined;
  /** Of the format of the powers. */
  readonly lift?: number;
  /** What values are multiplied by. */
  readonly factor?: Scalar<"f32"> | undefined;
}

/** The values of a row, divided by what dropout leaves, times what v is, and the logarithm of the sum of its exponentials. A row that saw nothing gives 0 and -∞. */
export function finishedRows(
  values: Tile<"f32">,
  { largest, sum }: RowSums,
  { dropout = 0, lift = 0, factor }: FinishOptions = {},
): { readonly values: Tile<"f32">; readonly logSumExp: Tile<"f32"> } {
  const isEmpty = sum.eq(0);
  const divisor = isEmpty.select(full(dtypes.f32, sum.shape, 1), sum);
  // One quotient a row; sums are from 1 on, so that it is a number like others.
  const left = full(dtypes.f32, sum.shape, 1).div(
    dropout === 0 ? divisor : divisor.mul(1 - dropout),
    fast,
  );
  return {
    values: values.mul(factor === undefined ? left : left.mul(factor)),
    logSumExp: (lift === 0 ? largest : largest.sub(lift)).add(sum.log2()).mul(Math.LN2),
  };
}
