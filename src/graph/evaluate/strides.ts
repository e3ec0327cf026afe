/**
 * Walking arrays: strides, and copies of a box of elements from places of one array to places of another.
 * Every op that only moves elements is such a copy.
 *
 *   transpose [2, 3] -> [3, 2]     box [3, 2]   from strides [1, 3]   to strides [2, 1]
 *   reverse of an axis             from the last element, stride -1
 *   slice 1:9:2                    from element 1, stride 2
 *   broadcast                      stride 0
 */
import { slotsOf } from "../ops/index.ts";
import type { TensorData } from "../ops/index.ts";
import type { Tensor } from "./value.ts";
import { pause, pieceWork } from "./frame.ts";
import type { Steps } from "./frame.ts";

/** Elements between neighbours along each axis of a row-major array. */
export function stridesOf(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length).fill(1);
  for (let axis = shape.length - 2; axis >= 0; axis--)
    strides[axis] = (strides[axis + 1] as number) * (shape[axis + 1] as number);
  return strides;
}

/** The place of an index. */
export function placeOf(index: readonly number[], strides: readonly number[]): number {
  return index.reduce((place, each, axis) => place + each * (strides[axis] as number), 0);
}

/** Calls `visit` with every index of a box in row-major order; the array is the same one each time. */
export function forEachIndex(
  shape: readonly number[],
  visit: (index: readonly number[]) => void,
): void {
  const index = new Array<number>(shape.length).fill(0);
  if (shape.includes(0)) return;
  for (;;) {
    visit(index);
    let axis = shape.length - 1;
    for (; axis >= 0; axis--) {
      const next = (index[axis] as number) + 1;
      index[axis] = next;
      if (next < (shape[axis] as number)) break;
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

/** The indices of a box in row-major order; the array is the same one each time. */
export function* indicesOf(shape: readonly number[]): Generator<readonly number[], void> {
  const index = new Array<number>(shape.length).fill(0);
  if (shape.includes(0)) return;
  for (;;) {
    yield index;
    let axis = shape.length - 1;
    for (; axis >= 0; axis--) {
      const next = (index[axis] as number) + 1;
      index[axis] = next;
      if (next < (shape[axis] as number)) break;
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

/** Where a box of elements begins in an array, and how its axes step. */
export interface Walk {
  readonly start: number;
  readonly strides: readonly number[];
}

/** A row of places in two arrays: where it begins in each, how long it is, and the step in each. */
type VisitRow = (
  first: number,
  second: number,
  count: number,
  firstStep: number,
  secondStep: number,
) => void;

/**
 * Calls `visit` with the rows of a box in row-major order. Axes that lie behind each other in both arrays are one, so that
 * rows are as long as they can be: what is done for an element is a loop of the caller's, not a call.
 */
export function* visitRows(
  shape: readonly number[],
  first: Walk,
  second: Walk,
  visit: VisitRow,
  work = 1,
): Steps<void> {
  if (shape.includes(0)) return;
  const axes = joinedAxes(shape, first.strides, second.strides);
  const inner = axes.pop() ?? { extent: 1, first: 0, second: 0 };
  const index = new Array<number>(axes.length).fill(0);
  let left = first.start;
  let right = second.start;
  const longest = Math.ceil(pieceWork / work);
  let done = 0;
  for (;;) {
    for (let start = 0; start < inner.extent; start += longest) {
      const count = Math.min(longest, inner.extent - start);
      const [own, other] = [left + start * inner.first, right + start * inner.second];
      visit(own, other, count, inner.first, inner.second);
      done += count * work;
      if (done < pieceWork) continue;
      done = 0;
      yield pause;
    }
    let at = axes.length - 1;
    for (; at >= 0; at--) {
      const axis = axes[at] as JoinedAxis;
      const next = (index[at] as number) + 1;
      if (next < axis.extent) {
        index[at] = next;
        left += axis.first;
        right += axis.second;
        break;
      }
      index[at] = 0;
      left -= axis.first * (axis.extent - 1);
      right -= axis.second * (axis.extent - 1);
    }
    if (at < 0) return;
  }
}

interface JoinedAxis {
  readonly extent: number;
  readonly first: number;
  readonly second: number;
}

function joinedAxes(
  shape: readonly number[],
  first: readonly number[],
  second: readonly number[],
): JoinedAxis[] {
  const axes: JoinedAxis[] = [];
  for (const [axis, extent] of shape.entries()) {
    if (extent === 1) continue;
    const own = { extent, first: first[axis] as number, second: second[axis] as number };
    const outer = axes.at(-1);
    if (outer?.first === own.first * extent && outer.second === own.second * extent)
      axes[axes.length - 1] = { ...own, extent: outer.extent * extent };
    else axes.push(own);
  }
  return axes;
}

/** Calls `visit` with two places for every index of a box, in row-major order. */
export function visitPlaces(
  shape: readonly number[],
  first: Walk,
  second: Walk,
  visit: (first: number, second: number) => void,
  work = 1,
): Steps<void> {
  const row: VisitRow = (left, right, count, leftStep, rightStep) => {
    for (let i = 0; i < count; i++) visit(left + i * leftStep, right + i * rightStep);
  };
  return visitRows(shape, first, second, row, work);
}

/** Copies a box from one tensor's elements to another's. */
export function* copyBox(
  shape: readonly number[],
  source: Tensor,
  from: Walk,
  target: TensorData,
  to: Walk,
): Steps<void> {
  const { data } = source;
  // Elements of several words are rows of words, so that only three kinds of arrays are copied.
  const words = wordsOf(data);
  const targetWords = wordsOf(target);
  const perElement = slotsOf(source.element) * (data.BYTES_PER_ELEMENT / words.BYTES_PER_ELEMENT);
  const spread = ({ start, strides }: Walk): Walk => ({
    start: start * perElement,
    strides: [...strides.map((stride) => stride * perElement), 1],
  });
  yield* visitRows(
    [...shape, perElement],
    spread(from),
    spread(to),
    (left, right, count, leftStep, rightStep) => {
      if (leftStep === 1 && rightStep === 1 && count >= 16)
        targetWords.set(words.subarray(left, left + count), right);
      else
        for (let i = 0; i < count; i++)
          targetWords[right + i * rightStep] = words[left + i * leftStep] as number;
    },
  );
}

/** The bits of elements, as unsigned integers of at most 32 bits. */
function wordsOf(data: TensorData): Uint8Array | Uint16Array | Uint32Array {
  const { buffer, byteOffset, byteLength, BYTES_PER_ELEMENT: bytes } = data;
  if (bytes === 1) return new Uint8Array(buffer, byteOffset, byteLength);
  if (bytes === 2) return new Uint16Array(buffer, byteOffset, byteLength / 2);
  return new Uint32Array(buffer, byteOffset, byteLength / 4);
}
