/** Integers in lanes: wrapping to a width, shifts, quotients, and what is computed lane by lane. */
import type { DType } from "../../formats/dtype.ts";
import { constant, i32, op, select, shuffleLanes, splat } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import {
  keepLanes,
  laneCount,
  laneKind,
  laneScalar,
  lanesOfScalars,
  selectLanes,
  vectorOf,
} from "./lanes.ts";
import type { Lanes } from "./lanes.ts";

/** A vector of words cut to the format's bits, extended as its lanes are; other formats stay as they are. */
export function wrapped(dtype: DType, vector: Expression): Expression {
  const { bits, kind } = dtype;
  if (bits >= 32) return vector;
  if (kind !== "signed") return op("v128.and", vector, splat("i32x4", 2 ** bits - 1));
  return op("i32x4.shr_s", op("i32x4.shl", vector, i32.of(32 - bits)), i32.of(32 - bits));
}

/** A result computed lane by lane from scalars. */
export function eachLane(
  b: FunctionBuilder,
  to: DType,
  operands: readonly Lanes[],
  compute: (scalars: readonly Expression[]) => Expression,
): Lanes {
  return lanesOfScalars(
    b,
    to,
    Array.from({ length: laneCount }, (_, index) =>
      compute(operands.map((lanes) => b.keep(laneScalar(lanes, index)))),
    ),
  );
}

/** A known amount of a shift of all lanes, from 0 up to the width. */
function knownAmount({ bits }: DType, { scalar }: Lanes): number | undefined {
  if (scalar?.form !== "constant" || typeof scalar.value === "object") return undefined;
  const amount = BigInt.asUintN(bits, BigInt(scalar.value));
  return amount < bits ? Number(amount) : bits;
}

/** Shifts of all lanes by one amount. */
function shiftedAlike(
  b: FunctionBuilder,
  fn: "shl" | "shr",
  dtype: DType,
  { parts }: Lanes,
  amount: number,
): Lanes {
  const wide = laneKind(dtype) === "i64";
  const { bits, kind } = dtype;
  const isSigned = fn === "shr" && kind === "signed";
  if (amount === bits && !isSigned)
    return keepLanes(b, dtype, ...parts.map(() => splat(wide ? "i64x2" : "i32x4", wide ? 0n : 0)));
  const shift = fn === "shl" ? "shl" : isSigned ? "shr_s" : "shr_u";
  const count = i32.of(Math.min(amount, bits - 1));
  return keepLanes(
    b,
    dtype,
    ...parts.map((part) => wrapped(dtype, op(`${wide ? "i64x2" : "i32x4"}.${shift}`, part, count))),
  );
}

/** Shifts by amounts of each lane; from the width on, 0 or the sign. */
export function shifted(
  b: FunctionBuilder,
  fn: "shl" | "shr",
  dtype: DType,
  value: Lanes,
  amount: Lanes,
): Lanes {
  const known = knownAmount(dtype, amount);
  if (known !== undefined) return shiftedAlike(b, fn, dtype, value, known);
  const type = laneKind(dtype) === "i64" ? "i64" : "i32";
  const { bits } = dtype;
  const number = (n: number): Expression => constant(type, type === "i64" ? BigInt(n) : n);
  const signed = dtype.kind === "signed";
  const shift = fn === "shl" ? "shl" : signed ? "shr_s" : "shr_u";
  const result = eachLane(b, dtype, [value, amount], ([x, by]) => {
    if (x === undefined || by === undefined) throw new Error("a shift of two");
    const unsigned = bits >= 32 ? by : b.keep(op("i32.and", by, i32.of(2 ** bits - 1)));
    const inside = b.keep(op(`${type}.lt_u`, unsigned, number(bits)));
    if (shift === "shr_s")
      return op(`${type}.shr_s`, x, select(inside, unsigned, number(type === "i64" ? 63 : 31)));
    return select(inside, op(`${type}.${shift}`, x, unsigned), number(0));
  });
  return keepLanes(b, dtype, ...result.parts.map((part) => wrapped(dtype, part)));
}

/** Quotients and remainders: of 32 bits in f64, where they are exact before they are cut. */
export function dividedLanes(
  b: FunctionBuilder,
  fn: "div" | "rem",
  dtype: DType,
  left: Lanes,
  right: Lanes,
): Lanes {
  const signed = dtype.kind === "signed";
  if (laneKind(dtype) === "i64")
    return eachLane(b, dtype, [left, right], ([x, y]) => {
      if (x === undefined || y === undefined) throw new Error("a quotient of two");
      const zero = constant("i64", 0n);
      const one = constant("i64", 1n);
      const isZero = b.keep(op("i64.eqz", y));
      // The least number divided by −1 traps; its negative is the same.
      const isMinus = b.keep(signed ? op("i64.eq", y, constant("i64", -1n)) : i32.of(0));
      const safe = b.keep(select(op("i32.or", isZero, isMinus), one, y));
      const sign = signed ? "s" : "u";
      if (fn === "div")
        return select(
          isZero,
          constant("i64", -1n),
          select(isMinus, op("i64.sub", zero, x), op(`i64.div_${sign}`, x, safe)),
        );
      return select(isZero, x, op(`i64.rem_${sign}`, x, safe));
    });
  const [x, y] = [vectorOf(left), vectorOf(right)];
  const sign = signed ? "s" : "u";
  const halves = ([0, 1] as const).map((half) => {
    const part = (vector: Expression): Expression =>
      op(
        `f64x2.convert_low_i32x4_${sign}`,
        half === 0 ? vector : shuffleLanes(vector, vector, [2, 3, 2, 3]),
      );
    return b.keep(op(`i32x4.trunc_sat_f64x2_${sign}_zero`, op("f64x2.div", part(x), part(y))));
  });
  const [low, high] = halves;
  if (low === undefined || high === undefined) throw new Error("two halves");
  const quotient = b.keep(shuffleLanes(low, high, [0, 1, 4, 5]));
  const isZero = b.keep(op("i32x4.eq", y, splat("i32x4", 0)));
  // 2³¹ would be cut to the greatest number.
  const isMinus = op("i32x4.eq", y, splat("i32x4", -1));
  const whole = signed
    ? b.keep(op("v128.bitselect", op("i32x4.neg", x), quotient, isMinus))
    : quotient;
  if (fn === "div") return keepLanes(b, dtype, wrapped(dtype, op("v128.or", whole, isZero)));
  const rest = keepLanes(b, dtype, op("i32x4.sub", x, op("i32x4.mul", whole, y)));
  return selectLanes(b, isZero, left, rest);
}

/** The format's bits in the opposite order. */
export function bitReverse(
  b: FunctionBuilder,
  { bits }: DType,
  x: Expression = splat("i32x4", 0),
): Expression {
  let value = x;
  for (const [shift, mask] of [
    [1, 0x55555555],
    [2, 0x33333333],
    [4, 0x0f0f0f0f],
    [8, 0x00ff00ff],
  ] as const) {
    const upper = op("v128.and", op("i32x4.shr_u", value, i32.of(shift)), splat("i32x4", mask));
    const lower = op("i32x4.shl", op("v128.and", value, splat("i32x4", mask)), i32.of(shift));
    value = b.keep(op("v128.or", upper, lower));
  }
  const whole = op(
    "v128.or",
    op("i32x4.shr_u", value, i32.of(16)),
    op("i32x4.shl", value, i32.of(16)),
  );
  return bits === 32 ? whole : op("i32x4.shr_u", whole, i32.of(32 - bits));
}
