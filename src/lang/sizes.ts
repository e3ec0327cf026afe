/**
 * Sizes as the user writes them. A size is a number, a named dimension, or a sum, difference, product or quotient of
 * sizes; used as an index in a kernel's body it becomes a scalar, which the host computes, so that nothing
 * of it can wrap around:
 *
 *   cdiv(n, 128)  ->  %0 = size {of = ceildiv(n, 128)}
 */
import { i32 } from "../formats/dtype.ts";
import type { Value } from "../ir/node.ts";
import {
  addSizes,
  ceilDivSize,
  dimension,
  floorDivSize,
  multiplySizes,
  sizeText,
} from "../ir/size.ts";
import type { Dimension, Size, SymbolicSize } from "../ir/size.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { constantValue } from "./constants.ts";
import { requireName } from "./names.ts";
import { emitValue } from "./trace.ts";
import { describe } from "./traced.ts";

/** Arithmetic of sizes that are known at launch, which the host computes exactly. */
export interface SizeArithmetic {
  /** The sum. */
  add(other: Size): LaunchSize;
  /** The difference, which must not be below 0 where it is an extent or a number of blocks. */
  sub(other: Size): LaunchSize;
  /** The product. */
  mul(other: Size): LaunchSize;
  /** How many whole groups of `by` there are; `cdiv` rounds up. */
  div(by: number): LaunchSize;
}

/** A size that is known at launch. */
export type LaunchSize = SymbolicSize & SizeArithmetic;

const arithmetic: SizeArithmetic & { [Symbol.toPrimitive](hint: string): never } = {
  add(this: Size, other) {
    return combined("add", this, other, captureLocation(), addSizes);
  },
  sub(this: Size, other) {
    return combined("sub", this, other, captureLocation(), (left, right) =>
      addSizes(left, multiplySizes(-1, right)),
    );
  },
  mul(this: Size, other) {
    return combined("mul", this, other, captureLocation(), multiplySizes);
  },
  div(this: Size, by) {
    const location = captureLocation();
    if (!isPositiveInteger(by))
      refuseSize("a size is divided by a positive whole number", by, location);
    return launchSize(floorDivSize(this, by), location);
  },
  [Symbol.toPrimitive](this: Size): never {
    throw new TilewrightError({
      code: "TW1001",
      message: `the size ${sizeText(this)} was used as a JavaScript value; it is known at launch`,
      expected: "arithmetic by methods",
      found: "an operator, a template string or a conversion of JavaScript",
      remedy: "write n.add(1), n.sub(m), n.mul(2) or n.div(4) in place of an operator",
    });
  },
};

function combined(
  method: string,
  left: Size,
  right: unknown,
  location: Location,
  combine: (left: Size, right: Size) => Size,
): LaunchSize {
  const isWhole = isSize(right) && (typeof right !== "number" || Number.isSafeInteger(right));
  if (!isWhole)
    throw new TilewrightError({
      code: "TW1027",
      message: `${method} of a size takes a whole number or another size`,
      location,
      expected: "a whole number or a size",
      found: describe(right),
    });
  return launchSize(combine(left, right), location);
}

/** Whether a size is one of a kernel's author, whose arithmetic is no part of it. */
export function isLaunchSize(value: object): boolean {
  return Object.getPrototypeOf(value) === arithmetic;
}

/** The size with its arithmetic; what is the same number at every launch is none. */
function launchSize<S extends SymbolicSize>(
  size: S | number,
  location: Location,
): S & SizeArithmetic {
  if (typeof size === "number")
    throw new TilewrightError({
      code: "TW1027",
      message: `this size is ${size} at every launch`,
      location,
      expected: "a size that depends on the launch",
      found: String(size),
      remedy: `write ${size}`,
    });
  const made: S & SizeArithmetic = Object.assign(Object.create(arithmetic) as SizeArithmetic, size);
  return Object.freeze(made);
}

/** A dimension whose extent is an argument of the launch, the same wherever the name stands. */
export function dim(
  name: string,
  options: { readonly multipleOf?: number } = {},
): Dimension & SizeArithmetic {
  const location = captureLocation();
  requireKnownOptions("dim", options, ["multipleOf"], "TW1033", location);
  const { multipleOf = 1 } = options;
  requireName("a dimension", name, location);
  if (!isPositiveInteger(multipleOf))
    refuseSize(
      `dimension ${name} cannot be a multiple of ${describe(multipleOf)}`,
      multipleOf,
      location,
    );
  return launchSize(dimension(name, multipleOf), location);
}

export { processors } from "../ir/size.ts";

/** How many blocks of `by` cover `size`. */
export function cdiv(size: number, by: number): number;
export function cdiv(size: SymbolicSize, by: number): LaunchSize;
export function cdiv(size: Size, by: number): Size;
export function cdiv(size: Size, by: number): Size {
  const location = captureLocation();
  const isCount = typeof size !== "number" || (Number.isSafeInteger(size) && size >= 0);
  if (!isSize(size) || !isCount || !isPositiveInteger(by))
    refuseSize(
      "cdiv takes a size and a positive whole number",
      isSize(size) && isCount ? by : size,
      location,
    );
  const quotient = ceilDivSize(size, by);
  return typeof quotient === "number" ? quotient : launchSize(quotient, location);
}

function refuseSize(message: string, found: unknown, location: Location): never {
  throw new TilewrightError({
    code: "TW1027",
    message,
    location,
    expected: "a positive whole number",
    found: describe(found),
  });
}

export function isPositiveInteger(item: unknown): item is number {
  return Number.isSafeInteger(item) && (item as number) > 0;
}

const sizeKinds: { readonly [K in SymbolicSize["kind"]]: true } = {
  dimension: true,
  ceildiv: true,
  floordiv: true,
  product: true,
  sum: true,
};

/** Whether `item` is a number or a size known at launch; a number is not yet checked. */
export function isSize(item: unknown): item is Size {
  if (typeof item === "number") return true;
  if (typeof item !== "object" || item === null || !("kind" in item)) return false;
  return typeof item.kind === "string" && item.kind in sizeKinds;
}

/** Whether `item` is a size that an array can have. */
export function isExtent(item: unknown): item is Size {
  return isSize(item) && (typeof item !== "number" || isPositiveInteger(item));
}

/** A size as a scalar value of the kernel. */
export function sizeValue(size: Size, location: Location): Value {
  if (typeof size === "number") return constantValue(i32, [], size, location);
  return emitValue("size", {}, { of: size }, location);
}
