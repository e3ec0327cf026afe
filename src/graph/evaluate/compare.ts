/**
 * Whether results agree with those of another compiler.
 *
 * Integers, bools and bits must be equal. Floats are judged by a reference, the widened evaluator's: ours may be
 * four times as far from it as the other's, and two units in the last place of the largest element besides.
 * NaN and infinities must stand in the same places.
 *
 *   |ours - reference| ≤ 4 · |theirs - reference| + 2 ulp(largest)
 */
import type { ElementType } from "../ops/index.ts";
import { elements, isComplexElement, isFloatElement, partOf } from "../ops/index.ts";
import { scalarText } from "./checks.ts";
import type { Datum, Tensor } from "./datum.ts";
import { countOf, datumText } from "./datum.ts";
import { nextAfter } from "./elementwise/convert.ts";
import { numbersOf, reader, settler } from "./scalars.ts";

/** What is wrong with a result, as a sentence; undefined where it agrees. */
export function disagreement(ours: Datum, theirs: Tensor, reference: Datum): string | undefined {
  if (datumText(ours) !== datumText(theirs))
    return `${datumText(ours)} where ${datumText(theirs)} is given`;
  if (ours.kind !== "tensor" || reference.kind !== "tensor") return undefined;
  const kind = elements[ours.element].kind;
  if (kind === "float" || kind === "complex") return floatsDisagree(ours, theirs, reference);
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

function floatsDisagree(ours: Tensor, theirs: Tensor, reference: Tensor): string | undefined {
  const [own, other, exact] = [ours, theirs, reference].map(numbersOf) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  const slack = 2 * unitOf(ours.element, exact);
  const wrong = placesWhere(own.length, (i) => {
    const [a, b, r] = [own[i] as number, other[i] as number, exact[i] as number];
    if (!Number.isFinite(a) || !Number.isFinite(b)) return !Object.is(a, b);
    return Math.abs(a - r) > 4 * Math.abs(b - r) + slack;
  });
  return describe(wrong, own.length, (i) => `${own[i]}, not ${other[i]} (exactly ${exact[i]})`);
}

/** The unit in the last place of the largest finite element. */
function unitOf(element: ElementType, exact: Float64Array): number {
  const part = isComplexElement(element) ? partOf(element) : element;
  if (!isFloatElement(part)) return 0;
  const most = exact.reduce(
    (sofar, value) => (Number.isFinite(value) ? Math.max(sofar, Math.abs(value)) : sofar),
    0,
  );
  const largest = settler(part)(most) as number;
  const above = nextAfter(part)(largest, Infinity);
  return Number.isFinite(above) ? above - largest : largest - nextAfter(part)(largest, 0);
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
