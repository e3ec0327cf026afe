/**
 * What debugPrint and assert say, in the same words wherever a kernel runs:
 *
 *   [thread main of block (i = 3)] sum 12.5            a print
 *   false for 2 of 64 elements, at [0, 3], [0, 7]      what an assertion found
 */
import { coordinatesOf } from "../formats/shape.ts";
import type { DType, Elements } from "../formats/dtype.ts";
import { formatArray, fromElements } from "../formats/hostarray.ts";
import { readElement } from "../formats/values.ts";
import { inBoundsText, promiseText } from "../ir/promises.ts";
import type { Promised } from "../ir/promises.ts";
import type { DiagnosticDetails } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { parsePrintFormat } from "../support/print-format.ts";
import { placeText } from "../happens-before/access.ts";
import type { Place } from "../happens-before/access.ts";

/** A value as printed: numbers by themselves, tiles with their shape, and with all of their elements where that is asked for. */
export function valueText(
  dtype: DType,
  shape: readonly number[],
  elements: Elements,
  whole = false,
): string {
  return shape.length > 0
    ? formatArray(fromElements(dtype, shape, elements), { whole })
    : String(readElement(dtype, elements, 0));
}

/** A printed line: each `{}` or `{whole}` of the format takes the next value. */
export function printText(format: string, values: readonly string[], place: Place): string {
  const text = parsePrintFormat(format).texts.map((part, position) =>
    position === 0 ? part : (values[position - 1] ?? "") + part,
  );
  return `[${placeText(place)}] ${text.join("")}`;
}

/** How many elements are named one by one. */
const namedElements = 3;

/** Which elements of a tile of flags are false. */
export function falseText(flags: ArrayLike<number>, shape: readonly number[]): string {
  const named: string[] = [];
  let count = 0;
  for (let element = 0; element < flags.length; element += 1) {
    if (flags[element] !== 0) continue;
    count += 1;
    if (named.length < namedElements) named.push(`[${coordinatesOf(element, shape).join(", ")}]`);
  }
  const more = count > named.length ? ", …" : "";
  return `false for ${count} of ${flags.length} elements, at ${named.join(", ")}${more}`;
}

/** A promise about an integer that does not hold. */
export function promiseReport(
  promised: Promised,
  location: Location,
  found: string,
): DiagnosticDetails {
  return brokenPromise(promiseText(promised), location, found);
}

/** The same of a promise in words. */
export function brokenPromise(text: string, location: Location, found: string): DiagnosticDetails {
  return {
    code: "TW3026",
    message: `${text === inBoundsText ? "an access" : "a number"} is said to be ${text}, and is not`,
    location,
    expected: text,
    found,
  };
}

/** A loop whose step leads nowhere. */
export function stepReport(
  step: number | bigint,
  location: Location,
  place: string,
): DiagnosticDetails {
  return {
    code: "TW3014",
    message: `the step of the loop is ${step}`,
    location,
    expected: "a step of at least 1",
    found: `${step} in ${place}`,
  };
}

/** The report of a failed assertion. */
export function assertionReport(
  message: string,
  location: Location,
  found: string,
): DiagnosticDetails {
  return {
    code: "TW3012",
    message: `assertion failed: ${message}`,
    location,
    expected: "a condition that is true everywhere",
    found,
  };
}
