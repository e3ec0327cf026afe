/**
 * The check dialect: how StableHLO's tests say what they expect.
 *
 * | check              | an element passes where                                                     |
 * |--------------------|-----------------------------------------------------------------------------|
 * | expect_eq          | equal as numbers: -0 is +0, NaN equals nothing                              |
 * | expect_almost_eq   | both NaN, equal, or no further apart than the tolerance, in f64             |
 * | expect_close       | the distance in units of the last place lies between two bounds             |
 *
 * Units of the last place count the bit patterns as numbers with a sign: two NaNs are 0 apart, a number that
 * is not finite is infinitely far from one that is.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { AnyGraphOp, ElementType } from "../ops/index.ts";
import { elements, isComplexElement, isFloatElement, partOf } from "../ops/index.ts";
import { countOf, datumText } from "./value.ts";
import type { Tensor } from "./value.ts";
import { bitsOfReal } from "./elementwise/convert.ts";
import { domainOf, reader } from "./scalars.ts";
import type { Complex, Scalar } from "./scalars.ts";

type Holds = (actual: Scalar, expected: Scalar) => boolean;

function areEqual(actual: Scalar, expected: Scalar): boolean {
  if (typeof actual !== "object" || typeof expected !== "object") return actual === expected;
  return actual.re === expected.re && actual.im === expected.im;
}

function areNear(actual: number, expected: number, tolerance: number): boolean {
  if (actual !== actual || expected !== expected) return actual !== actual && expected !== expected;
  if (actual === expected) return true;
  if (!Number.isFinite(actual) || !Number.isFinite(expected)) return false;
  return Math.abs(actual - expected) <= tolerance;
}

/** A check of real numbers as one of any scalars. */
function byParts(holds: (actual: number, expected: number) => boolean): Holds {
  return (actual, expected) => {
    if (typeof actual !== "object") return holds(Number(actual), Number(expected));
    const other = expected as Complex;
    return holds(actual.re, other.re) && holds(actual.im, other.im);
  };
}

const scratch = new Float64Array(1);
const scratchInteger = new BigUint64Array(scratch.buffer);

/** The bits of a float as a number with a sign. */
function orderedBits(element: ElementType, value: number): bigint {
  const { bits } = elements[element];
  const sign = 1n << BigInt(bits - 1);
  let pattern: bigint;
  if (isFloatElement(element) && element !== "f64") pattern = BigInt(bitsOfReal(element, value));
  else {
    scratch[0] = value;
    pattern = scratchInteger[0] as bigint;
  }
  return (pattern & sign) === 0n ? pattern : -(pattern & (sign - 1n));
}

/** The distance of two floats in units of the last place. */
export function unitsApart(element: ElementType, actual: number, expected: number): number {
  if (actual !== actual && expected !== expected) return 0;
  if (Number.isFinite(actual) !== Number.isFinite(expected)) return Infinity;
  if (!Number.isFinite(actual)) return actual === expected ? 0 : Infinity;
  const distance = Number(orderedBits(element, actual) - orderedBits(element, expected));
  return Math.abs(distance);
}

export function expectEqual(op: AnyGraphOp, actual: Tensor, expected: Tensor): void {
  expectAll(op, actual, expected, areEqual, "equal elements");
}

export function expectAlmostEqual(
  op: AnyGraphOp,
  actual: Tensor,
  expected: Tensor,
  tolerance: number,
): void {
  const holds = byParts((left, right) => areNear(left, right, tolerance));
  expectAll(op, actual, expected, holds, `elements within ${tolerance}`);
}

export function expectClose(
  op: AnyGraphOp,
  actual: Tensor,
  expected: Tensor,
  least: number,
  greatest: number,
): void {
  const { element } = actual;
  const part = isComplexElement(element) ? partOf(element) : element;
  // The larger distance of a complex number's parts counts.
  const distance: (left: Scalar, right: Scalar) => number = (left, right) =>
    typeof left === "object"
      ? Math.max(
          unitsApart(part, left.re, (right as Complex).re),
          unitsApart(part, left.im, (right as Complex).im),
        )
      : domainOf(element) === "real"
        ? unitsApart(part, left as number, right as number)
        : Math.abs(Number(left) - Number(right));
  const distances = allDistances(actual, expected, distance);
  const largest = distances.reduce((most, each) => Math.max(most, each), 0);
  if (largest <= greatest && largest >= least) return;
  const holds: Holds = (left, right) => distance(left, right) <= greatest;
  expectAll(
    op,
    actual,
    expected,
    holds,
    `elements at most ${greatest} units of the last place apart`,
  );
  throw failure(op, `a distance of at least ${least} units of the last place`, `${largest}`);
}

function allDistances(
  actual: Tensor,
  expected: Tensor,
  distance: (left: Scalar, right: Scalar) => number,
): readonly number[] {
  const left = reader(actual);
  const right = reader(expected);
  return Array.from({ length: countOf(actual) }, (_, i) => distance(left(i), right(i)));
}

export function scalarText(value: Scalar | undefined): string {
  if (value === undefined) return "nothing";
  if (typeof value === "object") return `(${scalarText(value.re)}, ${scalarText(value.im)})`;
  return Object.is(value, -0) ? "-0" : String(value);
}

const listed = 4;

function expectAll(
  op: AnyGraphOp,
  actual: Tensor,
  expected: Tensor,
  holds: Holds,
  wanted: string,
): void {
  if (datumText(actual) !== datumText(expected))
    throw failure(op, datumText(expected), datumText(actual));
  const left = reader(actual);
  const right = reader(expected);
  const wrong: number[] = [];
  const count = countOf(actual);
  for (let i = 0; i < count; i++) if (!holds(left(i), right(i))) wrong.push(i);
  if (wrong.length === 0) return;
  const samples = wrong
    .slice(0, listed)
    .map((i) => `element ${i} is ${scalarText(left(i))}, not ${scalarText(right(i))}`);
  throw failure(op, wanted, `${wrong.length} of ${count} differ: ${samples.join("; ")}`);
}

function failure(op: AnyGraphOp, expected: string, found: string): TilewrightError {
  const name = op.kind === "stablehlo.custom_call" ? op.attributes.call_target_name : op.kind;
  return new TilewrightError({
    code: "TW9502",
    message: `${name} does not hold`,
    location: op.location,
    expected,
    found,
  });
}
