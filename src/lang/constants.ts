/**
 * Plain JavaScript values in a kernel. A number beside a tile becomes a constant of the tile's dtype:
 *
 * | dtype     | takes                                              | and makes of it            |
 * |-----------|----------------------------------------------------|----------------------------|
 * | floats    | numbers in range                                   | the nearest number it has  |
 * | i4 … u32  | whole numbers in range, as number or bigint        | the same number            |
 * | i64, u64  | whole numbers in range, exact as number or bigint  | the same number, as bigint |
 * | bool      | true and false                                     | itself                     |
 */
import { i32, isFloat, isWide } from "../formats/dtype.ts";
import type { DType, FloatName } from "../formats/dtype.ts";
import { floatFormats, roundFloat } from "../formats/floats.ts";
import type { Value } from "../ir/node.ts";
import type { Literal } from "../ir/schema.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { describe } from "./traced.ts";
import { activeTrace, emitValue } from "./trace.ts";

export function isPlain(item: unknown): item is number | bigint | boolean {
  return typeof item === "number" || typeof item === "bigint" || typeof item === "boolean";
}

/** `plain` as a constant of `dtype`: a scalar where the shape is empty. */
export function constantValue(
  dtype: DType,
  shape: readonly number[],
  plain: number | bigint | boolean,
  location: Location,
): Value {
  const value = literalOf(dtype, plain, location);
  if (dtype === i32 && shape.length === 0)
    return activeTrace("a number", location).number(Number(value), location);
  return emitValue("constant", {}, { value, dtype, shape: Object.freeze([...shape]) }, location);
}

/** Refuses what is no constant of `dtype`. */
export function requireLiteral(
  dtype: DType,
  plain: number | bigint | boolean,
  location: Location,
): void {
  literalOf(dtype, plain, location);
}

function literalOf(dtype: DType, plain: number | bigint | boolean, location: Location): Literal {
  if (dtype.kind === "bool")
    return typeof plain === "boolean" ? plain : refuse(dtype, plain, "true or false", location);
  if (isFloat(dtype)) return floatLiteral(dtype, plain, location);
  return integerLiteral(dtype, plain, location);
}

function integerLiteral(dtype: DType, plain: number | bigint | boolean, location: Location) {
  // Most by far: those need no arithmetic of any width.
  if (dtype === i32 && typeof plain === "number" && (plain | 0) === plain) return plain | 0;
  const [least, greatest] = integerRange(dtype);
  const wanted = `a whole number from ${least} to ${greatest}`;
  if (typeof plain === "boolean" || (typeof plain === "number" && !Number.isInteger(plain)))
    return refuse(dtype, plain, wanted, location);
  if (typeof plain === "number" && isWide(dtype) && !Number.isSafeInteger(plain))
    return refuse(dtype, plain, `${wanted}, as a bigint where a number is not exact`, location);
  const exact = BigInt(plain);
  if (exact < least || exact > greatest) return refuse(dtype, plain, wanted, location);
  return isWide(dtype) ? exact : Number(exact);
}

function integerRange(dtype: DType): readonly [bigint, bigint] {
  const bits = BigInt(dtype.bits);
  if (dtype.kind === "unsigned") return [0n, 2n ** bits - 1n];
  return [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n];
}

function floatLiteral(
  dtype: DType<FloatName>,
  plain: number | bigint | boolean,
  location: Location,
): number {
  if (typeof plain !== "number") return refuse(dtype, plain, "a number", location);
  const { signed, hasInfinity, hasZero, nan, maxFinite } = floatFormats[dtype.name];
  if (Number.isNaN(plain)) {
    return nan === undefined ? refuse(dtype, plain, "a number, not NaN", location) : NaN;
  }
  const rounded = roundFloat(dtype.name, plain, { overflow: "nan" });
  const inRange = Number.isFinite(plain)
    ? Number.isFinite(rounded) && (hasInfinity || Math.abs(plain) <= maxFinite)
    : hasInfinity;
  const inSign = (signed || plain > 0) && (hasZero || plain !== 0);
  if (!inRange || !inSign)
    return refuse(dtype, plain, `a number up to ${maxFinite} in magnitude`, location);
  return rounded;
}

function refuse(dtype: DType, plain: unknown, expected: string, location: Location): never {
  throw new TilewrightError({
    code: "TW1007",
    message: `${describe(plain)} is not a value of ${dtype.name}`,
    location,
    expected,
    found: `the ${typeof plain} ${describe(plain)}`,
  });
}
