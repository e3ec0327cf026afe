/**
 * Sizes: extents and strides of arrays and numbers of blocks, which may depend on named dimensions
 * that are known only at launch. A size is a number, or a product of factors kept in one normal form,
 * so that equal sizes have equal text:
 *
 * | written                  | size                                                | text               |
 * |--------------------------|-----------------------------------------------------|--------------------|
 * | `128`                    | 128                                                 | `128`              |
 * | `n`                      | dimension n                                         | `n`                |
 * | `n` times `4`            | product, coefficient 4, factors [n]                 | `4*n`              |
 * | `cdiv(n, 128)`           | ceildiv of n by 128                                 | `ceildiv(n, 128)`  |
 * | `cdiv(4n, 2)`            | divides exactly: product, coefficient 2, factors [n]| `2*n`              |
 */

import { TilewrightError } from "../support/diagnostics.ts";

export interface Dimension {
  readonly kind: "dimension";
  readonly name: string;
  /** A divisor promised by the user and checked at launch. */
  readonly multipleOf: number;
}

export interface CeilDiv {
  readonly kind: "ceildiv";
  readonly of: SymbolicSize;
  readonly by: number;
}

export interface Product {
  readonly kind: "product";
  readonly coefficient: number;
  /** Sorted by text; at least one, and at least two where the coefficient is 1. */
  readonly factors: readonly (Dimension | CeilDiv)[];
}

export type SymbolicSize = Dimension | CeilDiv | Product;
export type Size = number | SymbolicSize;

/** Values of the named dimensions of one launch. */
export type DimensionValues = ReadonlyMap<string, number>;

export function dimension(name: string, multipleOf = 1): Dimension {
  return Object.freeze({ kind: "dimension", name, multipleOf });
}

export function multiplySizes(...sizes: readonly Size[]): Size {
  let coefficient = 1;
  const factors: (Dimension | CeilDiv)[] = [];
  for (const size of sizes) {
    if (typeof size === "number") coefficient *= size;
    else if (size.kind === "product") {
      coefficient *= size.coefficient;
      factors.push(...size.factors);
    } else factors.push(size);
  }
  const [first, ...others] = factors.sort((left, right) => compareText(left, right));
  if (first === undefined || coefficient === 0) return coefficient;
  if (others.length === 0 && coefficient === 1) return first;
  return Object.freeze({ kind: "product", coefficient, factors: Object.freeze(factors) });
}

function compareText(left: Size, right: Size): number {
  const [a, b] = [sizeText(left), sizeText(right)];
  return a < b ? -1 : a > b ? 1 : 0;
}

/** How many groups of `by` cover `size`. */
export function ceilDivSize(size: Size, by: number): Size {
  if (!Number.isInteger(by) || by <= 0) throw new RangeError(`cannot divide a size by ${by}`);
  if (typeof size === "number") return Math.ceil(size / by);
  if (by === 1) return size;
  if (size.kind === "product" && size.coefficient % by === 0)
    return multiplySizes(size.coefficient / by, ...size.factors);
  return Object.freeze({ kind: "ceildiv", of: size, by });
}

/** `size / by` where `by` divides it for every value of the dimensions that the text shows; else undefined. */
export function divideSizeExactly(size: Size, by: Size): Size | undefined {
  const numerator = asProduct(size);
  const denominator = asProduct(by);
  if (denominator.coefficient === 0 || numerator.coefficient % denominator.coefficient !== 0)
    return undefined;
  const remaining = [...numerator.factors];
  for (const factor of denominator.factors) {
    const position = remaining.findIndex((other) => sameSize(other, factor));
    if (position < 0) return undefined;
    remaining.splice(position, 1);
  }
  return multiplySizes(numerator.coefficient / denominator.coefficient, ...remaining);
}

function asProduct(size: Size): Pick<Product, "coefficient" | "factors"> {
  if (typeof size === "number") return { coefficient: size, factors: [] };
  return size.kind === "product" ? size : { coefficient: 1, factors: [size] };
}

/** The largest number known to divide `size`; 0 divides by everything and gives 0. */
export function knownDivisor(size: Size): number {
  if (typeof size === "number") return size;
  if (size.kind === "dimension") return size.multipleOf;
  if (size.kind === "ceildiv") return 1;
  return size.factors.reduce((divisor, factor) => divisor * knownDivisor(factor), size.coefficient);
}

export function sameSize(left: Size, right: Size): boolean {
  return sizeText(left) === sizeText(right);
}

export function sameShape(left: readonly Size[], right: readonly Size[]): boolean {
  return (
    left.length === right.length &&
    left.every((size, axis) => size === right[axis] || sameSize(size, right[axis] ?? -1))
  );
}

export function evaluateSize(size: Size, values: DimensionValues): number {
  if (typeof size === "number") return size;
  if (size.kind === "ceildiv") return Math.ceil(evaluateSize(size.of, values) / size.by);
  if (size.kind === "product")
    return size.factors.reduce(
      (total, factor) => total * evaluateSize(factor, values),
      size.coefficient,
    );
  const value = values.get(size.name);
  if (value === undefined) throw new Error(`dimension ${size.name} has no value`);
  return value;
}

/** A size that a kernel reckons with as an i32. */
export function evaluateIndexSize(size: Size, values: DimensionValues): number {
  const value = evaluateSize(size, values);
  if (value < 2 ** 31) return value;
  throw new TilewrightError({
    code: "TW4028",
    message: `the size ${sizeText(size)} of this launch is more than an index can be`,
    expected: "a size below 2^31",
    found: String(value),
  });
}

/** The dimensions that a size depends on. */
export function dimensionsOf(size: Size): readonly Dimension[] {
  if (typeof size === "number") return [];
  if (size.kind === "dimension") return [size];
  return size.kind === "ceildiv" ? dimensionsOf(size.of) : size.factors.flatMap(dimensionsOf);
}

export function sizeText(size: Size): string {
  if (typeof size === "number") return String(size);
  if (size.kind === "dimension") return size.name;
  if (size.kind === "ceildiv") return `ceildiv(${sizeText(size.of)}, ${size.by})`;
  const factors = size.factors.map(sizeText).join("*");
  return size.coefficient === 1 ? factors : `${size.coefficient}*${factors}`;
}

export function shapeText(shape: readonly Size[]): string {
  return `[${shape.map(sizeText).join(", ")}]`;
}
