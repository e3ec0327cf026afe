/** Integers in lanes: wrapping and saturating to a width, and floats as integers. */
import type { DType } from "../../formats/dtype.ts";
import { i32, lane, op, shuffleLanes, splat } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import { chosen } from "./floats.ts";
import { lowWords, mapHalves } from "./doubles.ts";
import type { Halves } from "./doubles.ts";

const isSigned = ({ kind }: DType): boolean => kind === "signed";

function rangeOf(dtype: DType): readonly [least: bigint, greatest: bigint] {
  const bits = BigInt(dtype.bits);
  return isSigned(dtype) ? [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n] : [0n, 2n ** bits - 1n];
}

/** The low bits of lanes of 32, extended as the format is. */
export function wrapped(b: FunctionBuilder, dtype: DType, value: Expression): Expression {
  const { bits } = dtype;
  if (bits >= 32) return value;
  if (!isSigned(dtype)) return b.keep(op("v128.and", value, splat("i32x4", 2 ** bits - 1)));
  const up = op("i32x4.shl", value, i32.of(32 - bits));
  return b.keep(op("i32x4.shr_s", up, i32.of(32 - bits)));
}

/** Lanes of 32 bits cut to the range of a format of at most as many. */
export function saturated(
  b: FunctionBuilder,
  from: DType,
  to: DType,
  value: Expression,
): Expression {
  const [least, greatest] = rangeOf(to);
  if (!isSigned(from)) return b.keep(op("i32x4.min_u", value, splat("i32x4", greatest)));
  const above = op("i32x4.max_s", value, splat("i32x4", least));
  // What a signed number has not is no bound for it.
  const bound = greatest > 0x7fff_ffffn ? 0x7fff_ffffn : greatest;
  return b.keep(op("i32x4.min_s", above, splat("i32x4", bound)));
}

/** Lanes of 64 bits cut to the range of a format of at most as many. */
export function saturatedWide(
  b: FunctionBuilder,
  from: DType,
  to: DType,
  value: Expression,
): Expression {
  const [least, greatest] = rangeOf(to);
  const zero = splat("i64x2", 0);
  if (isSigned(from)) {
    const low = splat("i64x2", least);
    const raised = b.keep(chosen(op("i64x2.lt_s", value, low), low, value));
    if (greatest > 2n ** 63n - 1n) return raised;
    const high = splat("i64x2", greatest);
    return b.keep(chosen(op("i64x2.gt_s", raised, high), high, raised));
  }
  if (to.name === "u64") return value;
  const high = splat("i64x2", greatest);
  // A set top bit is a number beyond every other range.
  const isBeyond = op("v128.or", op("i64x2.gt_s", value, high), op("i64x2.lt_s", value, zero));
  return b.keep(chosen(isBeyond, high, value));
}

/** Integers of at most 32 bits in lanes of 64. */
export function extended(b: FunctionBuilder, from: DType, value: Expression): Halves {
  const sign = isSigned(from) ? "s" : "u";
  return [
    b.keep(op(`i64x2.extend_low_i32x4_${sign}`, value)),
    b.keep(op(`i64x2.extend_high_i32x4_${sign}`, value)),
  ];
}

export function truncatedWords(b: FunctionBuilder, halves: Halves): Expression {
  return b.keep(lowWords(halves));
}

/** Whole numbers of f32 as integers of at most 32 bits, cut to their range; NaN is 0. */
export function integerOfSingle(b: FunctionBuilder, to: DType, value: Expression): Expression {
  const sign = isSigned(to) ? "s" : "u";
  const whole = b.keep(op(`i32x4.trunc_sat_f32x4_${sign}`, value));
  return to.bits === 32 ? whole : saturated(b, to, to, whole);
}

/** The same of f64. */
export function integerOfDouble(b: FunctionBuilder, to: DType, halves: Halves): Expression {
  const sign = isSigned(to) ? "s" : "u";
  const words = mapHalves(halves, (half) => op(`i32x4.trunc_sat_f64x2_${sign}_zero`, half));
  const whole = b.keep(shuffleLanes(...words, [0, 1, 4, 5]));
  return to.bits === 32 ? whole : saturated(b, to, to, whole);
}

/** f64 as integers of 64 bits, a lane at a time, since vectors have no such conversion. */
export function wideOfDouble(b: FunctionBuilder, to: DType, halves: Halves): Halves {
  const sign = isSigned(to) ? "s" : "u";
  const whole = (half: Expression, index: number): Expression =>
    op(`i64.trunc_sat_f64_${sign}`, lane("f64x2.extract_lane", index, half));
  return mapHalves(halves, (half) =>
    b.keep(lane("i64x2.replace_lane", 1, op("i64x2.splat", whole(half, 0)), whole(half, 1))),
  );
}
