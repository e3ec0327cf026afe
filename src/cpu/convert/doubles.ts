/**
 * Numbers of 64 bits in two vectors: f64 as f32, and integers as f64, rounded as asked. Rounded "to odd", what is no number of the
 * narrower format becomes the neighbour whose last bit is 1, so that a later rounding to still fewer bits knows on which side it was.
 */
import type { Rounding } from "../../formats/floats.ts";
import { i32, op, shuffleLanes, splat } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import { demoteHalves, promoteHalves } from "../math/index.ts";
import { awayMask, chosen } from "./floats.ts";

/** Two vectors of two lanes each. */
export type Halves = readonly [low: Expression, high: Expression];

export type SingleRounding = Exclude<Rounding, "away"> | "odd";

export function mapHalves([low, high]: Halves, change: (half: Expression) => Expression): Halves {
  return [change(low), change(high)];
}

/** The lower words of four lanes of 64 bits, such as masks. */
export function lowWords([low, high]: Halves): Expression {
  return shuffleLanes(low, high, [0, 2, 4, 6]);
}

/** A comparison of two pairs, as a mask of 32-bit lanes. */
function compared(
  b: FunctionBuilder,
  name: "f64x2.ne" | "f64x2.gt" | "f64x2.lt",
  left: Halves,
  right: Halves,
): Expression {
  const masks: Halves = [op(name, left[0], right[0]), op(name, left[1], right[1])];
  return b.keep(lowWords(masks));
}

/** f64 as f32. */
export function singleOfDouble(
  b: FunctionBuilder,
  halves: Halves,
  rounding: SingleRounding,
): Expression {
  const nearest = demoteHalves(b, ...halves);
  if (rounding === "nearest") return nearest;
  const back = promoteHalves(b, nearest);
  const size = (pair: Halves): Halves => mapHalves(pair, (half) => b.keep(op("f64x2.abs", half)));
  const [found, wanted] = [size(back), size(halves)];
  const isAbove = compared(b, "f64x2.gt", found, wanted);
  if (rounding === "odd") {
    const isInexact = op("v128.and", compared(b, "f64x2.ne", back, halves), splat("i32x4", 1));
    return b.keep(op("v128.or", op("i32x4.add", nearest, isAbove), isInexact));
  }
  const isBelow = compared(b, "f64x2.lt", found, wanted);
  const away = awayMask(b, rounding, nearest);
  return b.keep(
    stepped(nearest, op("v128.andnot", isAbove, away), op("v128.and", isBelow, away), "i32x4"),
  );
}

/** The neighbours nearer to zero, and farther from it, where masks are set. */
function stepped(
  bits: Expression,
  nearer: Expression,
  farther: Expression,
  shape: "i32x4" | "i64x2",
): Expression {
  return op(`${shape}.sub`, op(`${shape}.add`, bits, nearer), farther);
}

const wordMask = 0xffff_ffffn;
const lowRounder = 2 ** 52;
const highRounder = 1.5 * 2 ** 52;

interface Words {
  /** The upper word times 2^32, and the lower one, as f64. */
  readonly high: Expression;
  readonly low: Expression;
}

function wordsOf(b: FunctionBuilder, value: Expression, isSigned: boolean): Words {
  const lowBits = op("v128.and", value, splat("i64x2", wordMask));
  const low = op(
    "f64x2.sub",
    op("v128.or", lowBits, splat("f64x2", lowRounder)),
    splat("f64x2", lowRounder),
  );
  const upper = op(isSigned ? "i64x2.shr_s" : "i64x2.shr_u", value, i32.of(32));
  const high = op(
    "f64x2.sub",
    op("i64x2.add", upper, splat("f64x2", highRounder)),
    splat("f64x2", highRounder),
  );
  return { high: b.keep(op("f64x2.mul", high, splat("f64x2", 2 ** 32))), low: b.keep(low) };
}

/** Integers of 64 bits as f64: both words are exact, and their sum rounds once. */
export function doubleOfInteger(
  b: FunctionBuilder,
  value: Expression,
  isSigned: boolean,
  rounding: SingleRounding,
): Expression {
  if (rounding === "odd") return oddDoubleOfInteger(b, value, isSigned);
  const { high, low } = wordsOf(b, value, isSigned);
  const sum = b.keep(op("f64x2.add", high, low));
  if (rounding === "nearest") return sum;
  // The upper word is zero or larger than the lower one, so that the difference is exact.
  const lost = b.keep(op("f64x2.sub", low, op("f64x2.sub", sum, high)));
  const isNegative = b.keep(op("f64x2.lt", sum, splat("f64x2", 0)));
  const zero = splat("f64x2", 0);
  // What was lost has the sign of the number where the sum is nearer to zero.
  const towards = b.keep(op("v128.xor", op("f64x2.lt", lost, zero), isNegative));
  const isLost = b.keep(op("f64x2.ne", lost, zero));
  const isAbove = op("v128.and", isLost, towards);
  const isBelow = op("v128.andnot", isLost, towards);
  if (rounding === "zero") return b.keep(op("i64x2.add", sum, isAbove));
  const away = b.keep(rounding === "down" ? isNegative : op("v128.not", isNegative));
  return b.keep(
    stepped(sum, op("v128.andnot", isAbove, away), op("v128.and", isBelow, away), "i64x2"),
  );
}

/** Bits below those that an f64 keeps gather in the last one. */
function oddDoubleOfInteger(b: FunctionBuilder, value: Expression, isSigned: boolean): Expression {
  const zero = splat("i64x2", 0);
  const size = isSigned ? b.keep(op("i64x2.abs", value)) : value;
  const isLong = op("i64x2.ne", op("i64x2.shr_u", size, i32.of(53)), zero);
  const dropped = op("v128.and", size, splat("i64x2", 0x7ff));
  const gathered = op("v128.and", op("i64x2.ne", dropped, zero), splat("i64x2", 0x800));
  const kept = op("v128.or", op("v128.and", size, splat("i64x2", -0x800)), gathered);
  const { high, low } = wordsOf(b, b.keep(chosen(isLong, kept, size)), false);
  const sum = b.keep(op("f64x2.add", high, low));
  if (!isSigned) return sum;
  const signs = op("v128.and", value, splat("i64x2", -(2n ** 63n)));
  // Of 0 the sign bit is not set, so that it stays +0.
  return b.keep(op("v128.or", sum, signs));
}
