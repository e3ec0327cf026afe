/**
 * Comparing a result with a reference, element by element, within bounds that the reference derives from
 * the arithmetic. A mismatch lists the worst elements:
 *
 *   TW5101: 3 of 1024 elements of out differ from the reference
 *     found:    element           found        expected      error / bound
 *               [0, 17]           1.25         1.5           4.2
 */
import { requireHostArray } from "../device/argument-checks.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { toNumbers } from "../formats/hostarray.ts";
import { scaledElementTexts, scaledNumbers } from "../formats/scaled/host-array.ts";
import type { ScaledHostArray } from "../formats/scaled/host-array.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { isRecord, optionText } from "../support/options.ts";

/** A reference value and how far a correct result may lie from it. */
export interface Reference {
  /** The right value. */
  readonly value: number;
  /** How far a result may be off. */
  readonly bound: number;
}

/** How far an array is off its reference. */
export interface Comparison {
  /** How many elements were compared. */
  readonly elements: number;
  /** The largest error as a fraction of its bound; at most 1. */
  readonly worst: number;
}

interface Mismatch extends Reference {
  readonly index: number;
  readonly found: number;
  readonly ratio: number;
}

const listed = 8;

/** What is compared: numbers in their shape, and what each of them is made of where that is more than it. */
interface Compared {
  readonly numbers: Float64Array;
  readonly shape: readonly number[];
  readonly textOf: ((index: number) => string) | undefined;
}

function isScaled(result: HostArray | ScaledHostArray): result is ScaledHostArray {
  return isRecord(result) && "format" in result;
}

function comparedOf(result: HostArray | ScaledHostArray): Compared {
  if (isScaled(result)) {
    const [numbers, textOf] = [scaledNumbers(result), scaledElementTexts(result)];
    return { numbers, shape: result.elements.shape, textOf };
  }
  requireHostArray("compareWithReference", result);
  return { numbers: toNumbers(result), shape: result.shape, textOf: undefined };
}

/**
 * Compares every element with its reference; throws TW5101 where any lies outside its bound. Of an array in a format with scales its numbers are compared, and
 * the element and the scale of each that is off are listed.
 */
export function compareWithReference(
  result: HostArray | ScaledHostArray,
  reference: (index: number) => Reference,
  name = "the result",
): Comparison {
  const compared = comparedOf(result);
  requireReference(reference);
  const { numbers } = compared;
  const mismatches: Mismatch[] = [];
  let worst = 0;
  numbers.forEach((found, index) => {
    const { value, bound } = requireValue(reference(index), index);
    const ratio = errorRatio(found, value, bound);
    if (ratio <= 1) worst = Math.max(worst, ratio);
    else mismatches.push({ index, found, value, bound, ratio });
  });
  if (mismatches.length > 0) throw mismatchError(compared, mismatches, name);
  return { elements: numbers.length, worst };
}

function requireReference(reference: unknown): void {
  if (typeof reference === "function") return;
  throw new TilewrightError({
    code: "TW4023",
    message: "compareWithReference takes a function second",
    expected: "(index) => ({ value, bound })",
    found: optionText(reference),
    remedy: "give a function that knows the value of each element, and its bound",
  });
}

/** What a reference gave for an element; of a bound below 0 every error would be within it. */
function requireValue(given: unknown, index: number): Reference {
  const isObject = typeof given === "object" && given !== null;
  const { value, bound } = (isObject ? given : {}) as Partial<Reference>;
  if (typeof value === "number" && typeof bound === "number" && !(bound < 0))
    return { value, bound };
  throw new TilewrightError({
    code: "TW4023",
    message: `the reference of compareWithReference gives no value with a bound for element ${index}`,
    expected: "{ value, bound }: numbers, the bound 0 or more",
    found: isObject
      ? `{ value: ${optionText(value)}, bound: ${optionText(bound)} }`
      : optionText(given),
    remedy: "give the right number of the element, and how far off a correct result may be",
  });
}

/** The error in units of its bound: 0 where the result is the reference, NaN and infinities included. */
function errorRatio(found: number, value: number, bound: number): number {
  if (Object.is(found, value) || found === value) return 0;
  const ratio = Math.abs(found - value) / bound;
  return Number.isNaN(ratio) ? Infinity : ratio;
}

function mismatchError(
  { numbers, shape, textOf }: Compared,
  mismatches: readonly Mismatch[],
  name: string,
): TilewrightError {
  const worstFirst = [...mismatches].sort((left, right) => right.ratio - left.ratio);
  const rows = worstFirst
    .slice(0, listed)
    .map(({ index, found, value, ratio }) => [
      `[${coordinates(index, shape).join(", ")}]`,
      textOf === undefined ? String(found) : `${found} = ${textOf(index)}`,
      String(value),
      ratio.toPrecision(3),
    ]);
  const widest = Math.max(20, ...rows.flat().map(({ length }) => length)) + 2;
  const table = [["element", "found", "expected", "error / bound"], ...rows]
    .map((cells) =>
      cells
        .map((cell) => cell.padEnd(widest))
        .join("")
        .trimEnd(),
    )
    .join("\n");
  const more = mismatches.length > listed ? `\n… and ${mismatches.length - listed} more` : "";
  const count = numbers.length;
  return new TilewrightError({
    code: "TW5101",
    message: `${mismatches.length} of ${count} elements of ${name} differ from the reference`,
    expected: "elements within the bounds of the reference",
    found: table + more,
  });
}

function coordinates(index: number, shape: readonly number[]): readonly number[] {
  const place: number[] = [];
  let rest = index;
  for (const extent of [...shape].reverse()) {
    place.unshift(rest % extent);
    rest = Math.floor(rest / extent);
  }
  return place;
}
