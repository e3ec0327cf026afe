/**
 * Whether results agree with those of another compiler.
 *
 * Integers, bools and bits must be equal. Floats are judged by a reference, the widened evaluator's: ours may be
 * four times as far from it as the other's, and two units in the last place of the largest element besides.
 * NaN and infinities must stand in the same places.
 *
 *   |ours - reference|   ≤  4 · |theirs - reference| + 2 ulp(largest)
 *   |theirs - reference| ≤ 16 · max |ours - reference| + √(ulp(largest) · largest)
 *
 * Ranks add up in f32 what the evaluator adds in f64: their results are allowed eight units. The reference of f64 is f64 as well, so that it may be as wrong as ours, and theirs as it by the same roundings: there 64 units are
 * allowed.
 *
 * The reference is ours, too: were it wrong, or theirs the results of another program, the first line alone would hold
 * for whatever they are. By the second, theirs must have half of the digits of their format, unless rounding takes more
 * from ours.
 */
import type { ElementType } from "../ops/index.ts";
import { elements, isComplexElement, isFloatElement, partOf } from "../ops/index.ts";
import { scalarText } from "./checks.ts";
import type { Datum, Tensor } from "./value.ts";
import { countOf, datumText } from "./value.ts";
import { nextAfter } from "./elementwise/convert.ts";
import { numbersOf, reader, settler } from "./scalars.ts";

/** What is wrong with a result, as a sentence; undefined where it agrees. */
export function disagreement(
  ours: Datum,
  theirs: Tensor,
  reference: Datum,
  units = 2,
): string | undefined {
  if (datumText(ours) !== datumText(theirs))
    return `${datumText(ours)} where ${datumText(theirs)} is given`;
  if (ours.kind !== "tensor" || reference.kind !== "tensor") return undefined;
  const kind = elements[ours.element].kind;
  if (kind === "float" || kind === "complex") return floatsDisagree(ours, theirs, reference, units);
  return integersDisagree(ours, theirs);
}

function integersDisagree(ours: Tensor, theirs: Tensor): string | undefined {
  const left = reader(ours);
  const right = reader(theirs);
  const wrong = placesWhere(countOf(ours), (i) => left(i) !== right(i));
  return describe(
    wrong,
    countOf(ours),
    (i) => `${scalarText(left(i))}, not ${scalarText(right(i))}`,
  );
}

function floatsDisagree(
  ours: Tensor,
  theirs: Tensor,
  reference: Tensor,
  units: number,
): string | undefined {
  const [own, other, exact] = [ours, theirs, reference].map(numbersOf) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  const largest = largestOf(exact);
  const isWide = ours.element === "f64" || ours.element === "complex<f64>";
  const slack = (isWide ? 64 : units) * unitOf(ours.element, largest);
  const furthest = largestOf(own.map((number, i) => number - (exact[i] as number)));
  // A result of nothing but zeros does not say what was added up to them.
  const scale = largest === 0 ? 1 : largest;
  const apart = 16 * furthest + Math.sqrt(unitOf(ours.element, scale) * scale);
  const wrong = placesWhere(own.length, (i) => {
    const [a, b, r] = [own[i] as number, other[i] as number, exact[i] as number];
    if (!Number.isFinite(a) || !Number.isFinite(b)) return !Object.is(a, b);
    // Formats without infinities end at their largest number.
    if (!Number.isFinite(r)) return a !== b;
    return Math.abs(a - r) > 4 * Math.abs(b - r) + slack || Math.abs(b - r) > apart;
  });
  return describe(wrong, own.length, (i) => `${own[i]}, not ${other[i]} (exactly ${exact[i]})`);
}

/** The magnitude of the largest finite number. */
function largestOf(numbers: Float64Array): number {
  return numbers.reduce(
    (sofar, value) => (Number.isFinite(value) ? Math.max(sofar, Math.abs(value)) : sofar),
    0,
  );
}

/** The unit in the last place of a number. */
function unitOf(element: ElementType, most: number): number {
  const part = isComplexElement(element) ? partOf(element) : element;
  if (!isFloatElement(part)) return 0;
  const largest = settler(part)(most) as number;
  const above = nextAfter(part)(largest, Infinity);
  // Beyond the largest number lies infinity, NaN, or, where there is neither, minus zero.
  return above > largest && above !== Infinity
    ? above - largest
    : largest - nextAfter(part)(largest, 0);
}

function placesWhere(count: number, isWrong: (index: number) => boolean): readonly number[] {
  return Array.from({ length: count }, (_, i) => i).filter(isWrong);
}

function describe(
  wrong: readonly number[],
  count: number,
  text: (index: number) => string,
): string | undefined {
  if (wrong.length === 0) return undefined;
  const samples = wrong.slice(0, 3).map((i) => `element ${i} is ${text(i)}`);
  return `${wrong.length} of ${count} elements differ: ${samples.join("; ")}`;
}
