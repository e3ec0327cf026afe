/**
 * Sizes: extents and strides of arrays and numbers of blocks, which may depend on named dimensions
 * that are known only at launch. A size is a number, or a sum of products kept in one normal form,
 * so that equal sizes have equal text:
 *
 * | written                  | size                                                  | text               |
 * |--------------------------|-------------------------------------------------------|--------------------|
 * | `128`                    | 128                                                   | `128`              |
 * | `n`                      | dimension n                                           | `n`                |
 * | `n` times `4`            | product, coefficient 4, factors [n]                   | `4*n`              |
 * | `cdiv(n, 128)`           | ceildiv of n by 128                                   | `ceildiv(n, 128)`  |
 * | `cdiv(4n, 2)`            | divides exactly: product, coefficient 2, factors [n]  | `2*n`              |
 * | `128 cdiv(n, 128)`       | n where n promises to be a multiple of 128            | `n`                |
 * | `n` less `4m`, and `1`   | sum, constant 1, terms [n, product −4 m]              | `n - 4*m + 1`      |
 * | `n` divided by `4`       | floordiv of n by 4; a ceildiv where it is exact       | `floordiv(n, 4)`   |
 */

import { TilewrightError } from "../support/diagnostics.ts";
import { greatestCommonDivisor } from "../support/integers.ts";

/** A size that is known when a kernel is launched, from the shapes of its arguments or by name. */
export interface Dimension {
  readonly kind: "dimension";
  /** Its name, by which launches give its value. */
  readonly name: string;
  /** A divisor promised by the user and checked at launch. */
  readonly multipleOf: number;
}

export interface CeilDiv {
  readonly kind: "ceildiv";
  /** What is divided. */
  readonly of: SymbolicSize;
  /** The divisor. */
  readonly by: number;
}

/** How many whole groups of `by` there are. */
export interface FloorDiv {
  readonly kind: "floordiv";
  /** What is divided. */
  readonly of: SymbolicSize;
  /** The divisor. */
  readonly by: number;
}

/** What is multiplied. */
export type SizeFactor = Dimension | CeilDiv | FloorDiv;

export interface Product {
  readonly kind: "product";
  /** Below 0 only in a sum. */
  readonly coefficient: number;
  /** Sorted by text; at least one, and at least two where the coefficient is 1. */
  readonly factors: readonly SizeFactor[];
}

export interface Sum {
  readonly kind: "sum";
  /** What is added to the sum. */
  readonly constant: number;
  /** Those above 0 first, then by text; at least two where the constant is 0 and the first is above 0. */
  readonly terms: readonly (SizeFactor | Product)[];
}

export type SymbolicSize = SizeFactor | Product | Sum;
/** The extent of an axis: a number, or an expression over dimensions, which are known at launch. */
export type Size = number | SymbolicSize;

/** Values of the named dimensions of one launch. */
export type DimensionValues = ReadonlyMap<string, number>;

export function dimension(name: string, multipleOf = 1): Dimension {
  return Object.freeze({ kind: "dimension", name, multipleOf });
}

/** The dimension that a launch takes from its device: how many processors that has. */
export const processors = dimension("processors");

export function multiplySizes(...sizes: readonly Size[]): Size {
  // Most are numbers alone.
  let product = 1;
  let place = 0;
  for (; place < sizes.length; place += 1) {
    const size = sizes[place];
    if (typeof size !== "number") break;
    product *= size;
  }
  if (place === sizes.length) return product;
  const sum = sizes.find((size) => typeof size !== "number" && size.kind === "sum");
  if (sum === undefined || typeof sum === "number" || sum.kind !== "sum")
    return multiplyTerms(sizes as readonly (number | SizeFactor | Product)[]);
  const others = multiplySizes(...sizes.toSpliced(sizes.indexOf(sum), 1));
  return addSizes(...[sum.constant, ...sum.terms].map((term) => multiplySizes(term, others)));
}

function multiplyTerms(sizes: readonly (number | SizeFactor | Product)[]): Size {
  let coefficient = 1;
  const factors: SizeFactor[] = [];
  for (const size of sizes) {
    if (typeof size === "number") coefficient *= size;
    else if (size.kind === "product") {
      coefficient *= size.coefficient;
      factors.push(...size.factors);
    } else factors.push(size);
  }
  // A quotient without a rest, times its divisor.
  const whole = factors.findIndex(
    (factor) => factor.kind === "ceildiv" && isExact(factor) && coefficient % factor.by === 0,
  );
  const exact = factors[whole];
  if (exact?.kind === "ceildiv")
    return multiplySizes(coefficient / exact.by, exact.of, ...factors.toSpliced(whole, 1));
  const [first, ...others] = factors.sort((left, right) => compareText(left, right));
  if (first === undefined || coefficient === 0) return coefficient;
  if (others.length === 0 && coefficient === 1) return first;
  return Object.freeze({ kind: "product", coefficient, factors: Object.freeze(factors) });
}

function isExact({ of, by }: CeilDiv): boolean {
  return knownDivisor(of) % by === 0;
}

export function addSizes(...sizes: readonly Size[]): Size {
  let constant = 0;
  const terms = new Map<string, { coefficient: number; factors: readonly SizeFactor[] }>();
  const take = (size: Size): void => {
    if (typeof size === "number") constant += size;
    else if (size.kind === "sum") [size.constant, ...size.terms].forEach(take);
    else {
      const { coefficient, factors } = asProduct(size);
      const key = keyOf(size);
      const known = terms.get(key);
      terms.set(key, { factors, coefficient: coefficient + (known?.coefficient ?? 0) });
    }
  };
  sizes.forEach(take);
  const products = [...terms].map(([key, { coefficient, factors }]) => {
    const term = multiplySizes(coefficient, ...factors);
    return { term, isOther: typeof term !== "number" && keyOf(term) !== key };
  });
  // A quotient without a rest that has come together with its divisor is what was divided: a sum, or what another term is of.
  if (products.some(({ isOther }) => isOther))
    return addSizes(constant, ...products.map(({ term }) => term));
  const kept = products
    .map(({ term }) => term)
    .filter((term) => typeof term !== "number" && term.kind !== "sum")
    .sort((left, right) => signOf(right) - signOf(left) || compareText(left, right));
  const [first, ...others] = kept;
  if (first === undefined) return constant;
  const isTerm = constant === 0 && others.length === 0;
  if (isTerm && asProduct(first).coefficient > 0) return first;
  return Object.freeze({ kind: "sum", constant, terms: Object.freeze(kept) });
}

/** What terms of a sum that come together have in common. */
function keyOf(size: SymbolicSize): string {
  return isSum(size) ? sizeText(size) : asProduct(size).factors.map(sizeText).join("*");
}

function signOf(term: SizeFactor | Product): number {
  return Math.sign(asProduct(term).coefficient);
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
  return dividedEvenly(size, by) ?? Object.freeze({ kind: "ceildiv", of: size, by });
}

/** How many whole groups of `by` there are in `size`. */
export function floorDivSize(size: Size, by: number): Size {
  if (!Number.isInteger(by) || by <= 0) throw new RangeError(`cannot divide a size by ${by}`);
  if (typeof size === "number") return Math.floor(size / by);
  if (by === 1) return size;
  if (knownDivisor(size) % by === 0) return ceilDivSize(size, by);
  return Object.freeze({ kind: "floordiv", of: size, by });
}

/** The quotient where `by` divides every coefficient. */
function dividedEvenly(size: SymbolicSize, by: number): Size | undefined {
  const parts = size.kind === "sum" ? [size.constant, ...size.terms] : [size];
  const coefficients = parts.map((part) => asProduct(part).coefficient);
  if (coefficients.some((coefficient) => coefficient % by !== 0)) return undefined;
  return addSizes(
    ...parts.map((part) => {
      const { coefficient, factors } = asProduct(part);
      return multiplySizes(coefficient / by, ...factors);
    }),
  );
}

/** `size / by` where `by` divides it for every value of the dimensions that the text shows; else undefined. */
export function divideSizeExactly(size: Size, by: Size): Size | undefined {
  if (sameSize(size, by)) return size === 0 ? undefined : 1;
  if (isSum(by)) return undefined;
  if (isSum(size)) {
    const parts = size.constant === 0 ? size.terms : [size.constant, ...size.terms];
    const quotients = parts.map((term) => divideSizeExactly(term, by));
    const found = quotients.filter((quotient) => quotient !== undefined);
    return found.length === quotients.length ? addSizes(...found) : undefined;
  }
  const numerator = asProduct(size);
  const denominator = asProduct(by);
  if (denominator.coefficient === 0) return undefined;
  if (numerator.coefficient % denominator.coefficient !== 0)
    return dividePromised(numerator, denominator);
  const remaining = [...numerator.factors];
  for (const factor of denominator.factors) {
    const position = remaining.findIndex((other) => sameSize(other, factor));
    if (position < 0) return undefined;
    remaining.splice(position, 1);
  }
  return multiplySizes(numerator.coefficient / denominator.coefficient, ...remaining);
}

type Factored = Pick<Product, "coefficient" | "factors">;

/** The quotient where a dimension's promised divisor makes up for what the coefficient lacks. */
function dividePromised(
  { coefficient, factors }: Factored,
  denominator: Factored,
): Size | undefined {
  const shared = greatestCommonDivisor(coefficient, denominator.coefficient);
  const lacking = denominator.coefficient / shared;
  const position = factors.findIndex((factor) => knownDivisor(factor) % lacking === 0);
  const promised = factors[position];
  if (promised === undefined || knownDivisor(promised) === 0) return undefined;
  const others = factors.toSpliced(position, 1);
  const rest = multiplySizes(coefficient / shared, ...others);
  const quotient = divideSizeExactly(rest, multiplySizes(...denominator.factors));
  return quotient === undefined
    ? undefined
    : multiplySizes(quotient, ceilDivSize(promised, lacking));
}

function isSum(size: Size): size is Sum {
  return typeof size !== "number" && size.kind === "sum";
}

function asProduct(size: number | SizeFactor | Product): Factored {
  if (typeof size === "number") return { coefficient: size, factors: [] };
  return size.kind === "product" ? size : { coefficient: 1, factors: [size] };
}

/** The largest number known to divide `size`; 0 divides by everything and gives 0. */
export function knownDivisor(size: Size): number {
  if (typeof size === "number") return Math.abs(size);
  if (size.kind === "dimension") return size.multipleOf;
  if (size.kind === "ceildiv" || size.kind === "floordiv") {
    const divisor = knownDivisor(size.of);
    return divisor % size.by === 0 ? divisor / size.by : 1;
  }
  if (size.kind === "sum")
    return [size.constant, ...size.terms].map(knownDivisor).reduce(greatestCommonDivisor);
  const coefficient = Math.abs(size.coefficient);
  return size.factors.reduce((divisor, factor) => divisor * knownDivisor(factor), coefficient);
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

/** A number of elements, blocks or bytes, which is never below 0. */
export function evaluateSize(size: Size, values: DimensionValues): number {
  const value = valueOf(size, values);
  if (value >= 0) return value;
  throw new TilewrightError({
    code: "TW4033",
    message: `the size ${sizeText(size)} of this launch is below 0`,
    expected: "a size from 0 on",
    found: String(value),
  });
}

function valueOf(size: Size, values: DimensionValues): number {
  if (typeof size === "number") return size;
  if (size.kind === "ceildiv") return Math.ceil(valueOf(size.of, values) / size.by);
  if (size.kind === "floordiv") return Math.floor(valueOf(size.of, values) / size.by);
  if (size.kind === "sum")
    return size.terms.reduce((total, term) => total + valueOf(term, values), size.constant);
  if (size.kind === "product")
    return size.factors.reduce(
      (total, factor) => total * valueOf(factor, values),
      size.coefficient,
    );
  const value = values.get(size.name);
  if (value === undefined) throw new Error(`dimension ${size.name} has no value`);
  return value;
}

/** A size that a kernel reckons with as an i32. */
export function evaluateIndexSize(size: Size, values: DimensionValues): number {
  const value = valueOf(size, values);
  if (value >= -(2 ** 31) && value < 2 ** 31) return value;
  throw new TilewrightError({
    code: "TW4028",
    message: `the size ${sizeText(size)} of this launch is more than an index can be`,
    expected: "a size from -2^31 below 2^31",
    found: String(value),
  });
}

/** The dimensions that a size depends on. */
export function dimensionsOf(size: Size): readonly Dimension[] {
  if (typeof size === "number") return [];
  if (size.kind === "dimension") return [size];
  if (size.kind === "sum") return size.terms.flatMap(dimensionsOf);
  return size.kind === "product" ? size.factors.flatMap(dimensionsOf) : dimensionsOf(size.of);
}

/** The one dimension that a size of its value decides, and what it must be for that; undefined where none is. */
export function solveSize(
  size: Size,
  value: number,
): { readonly dimension: Dimension; readonly value: number } | undefined {
  if (typeof size === "number") return undefined;
  if (size.kind === "dimension") return { dimension: size, value };
  const [term, ...others] = size.kind === "sum" ? size.terms : [size];
  if (term === undefined || others.length > 0) return undefined;
  const { coefficient, factors } = asProduct(term);
  const [factor, ...more] = factors;
  if (factor?.kind !== "dimension" || more.length > 0) return undefined;
  const rest = value - (size.kind === "sum" ? size.constant : 0);
  return { dimension: factor, value: rest / coefficient };
}

export function sizeText(size: Size): string {
  if (typeof size === "number") return String(size);
  if (size.kind === "dimension") return size.name;
  if (size.kind === "ceildiv" || size.kind === "floordiv")
    return `${size.kind}(${sizeText(size.of)}, ${size.by})`;
  if (size.kind === "sum") return sumText(size);
  const factors = size.factors.map(sizeText).join("*");
  return size.coefficient === 1 ? factors : `${size.coefficient}*${factors}`;
}

/** Terms below 0 are subtracted: `n - 4*m + 1`. */
function sumText({ constant, terms }: Sum): string {
  const parts = constant === 0 ? terms : [...terms, constant];
  return parts
    .map((part, position) => {
      const { coefficient, factors } = asProduct(part);
      if (position === 0) return sizeText(part);
      const magnitude = sizeText(multiplySizes(Math.abs(coefficient), ...factors));
      return `${coefficient < 0 ? " - " : " + "}${magnitude}`;
    })
    .join("");
}

export function shapeText(shape: readonly Size[]): string {
  return `[${shape.map(sizeText).join(", ")}]`;
}

/** Elements from one to the next along each axis of an array without gaps. */
export function rowMajorSizes(shape: readonly Size[]): readonly Size[] {
  return shape.map((_, axis) => multiplySizes(...shape.slice(axis + 1)));
}
