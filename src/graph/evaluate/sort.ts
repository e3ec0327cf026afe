/** Sorting by a comparator, and the largest elements of a row. */
import type { AnyGraphOp, GraphRegion, TensorType } from "../ops/index.ts";
import { sizeOf, slotsOf } from "../ops/index.ts";
import { emptyTensor } from "./value.ts";
import type { Tensor } from "./value.ts";
import { totalOrder } from "./elementwise/convert.ts";
import { pause, pieceWork } from "./frame.ts";
import type { Frame, Steps } from "./frame.ts";
import { scalarRegion } from "./region.ts";
import { domainOf, reader, writer } from "./scalars.ts";
import type { Reader, Scalar } from "./scalars.ts";
import { indicesOf, placeOf, stridesOf } from "./strides.ts";

/** Sorts all inputs along an axis, together; elements that compare equal keep their order. */
export function* sort(
  inputs: readonly Tensor[],
  dimension: number,
  comparator: GraphRegion,
  frame: Frame,
  op: AnyGraphOp,
): Steps<readonly Tensor[]> {
  const [{ shape } = { shape: [] as readonly number[] }] = inputs;
  const axis = dimension < 0 ? dimension + shape.length : dimension;
  const extent = shape[axis] ?? 1;
  const step = stridesOf(shape)[axis] ?? 1;
  const isLess = scalarRegion(comparator, frame, op);
  const read = inputs.map(reader);
  const [only, ...others] = read;
  const results = inputs.map((input) => emptyTensor(input));
  const rows = shape.map((each, at) => (at === axis ? Math.min(1, each) : each));
  const strides = stridesOf(shape);
  let work = 0;
  const values = new Array<Scalar>(2 * inputs.length);
  const places = new Uint32Array(extent);
  const before =
    only !== undefined && others.length === 0
      ? (left: number, right: number) => isLess(only(left), only(right)) !== 0
      : (left: number, right: number) => {
          // Comparators take the operands' elements in turn: left and right of the first, of the second …
          for (let i = 0; i < read.length; i++) {
            values[2 * i] = (read[i] as Reader)(left);
            values[2 * i + 1] = (read[i] as Reader)(right);
          }
          return isLess(...values) !== 0;
        };
  for (const index of indicesOf(rows)) {
    const first = placeOf(index, strides);
    for (let i = 0; i < extent; i++) places[i] = first + i * step;
    const sorted = yield* mergeSort(places, before);
    for (const [which, { data, element }] of inputs.entries())
      for (let slot = 0, slots = slotsOf(element); slot < slots; slot++)
        for (let i = 0; i < extent; i++)
          (results[which] as Tensor).data[(first + i * step) * slots + slot] = data[
            (sorted[i] as number) * slots + slot
          ] as never;
    // Rows may be many and short.
    work += 16 * extent;
    if (work < pieceWork) continue;
    work = 0;
    yield pause;
  }
  return results;
}

/** Comparisons between two pauses. */
const comparisons = pieceWork / 8;

/** Sorts places so that equal ones keep their order: one comes earlier only where it is before the other. */
function* mergeSort(
  places: Uint32Array,
  before: (left: number, right: number) => boolean,
): Steps<Uint32Array> {
  let from: Uint32Array = places;
  let to: Uint32Array = new Uint32Array(places.length);
  for (let width = 1; width < places.length; width *= 2) {
    for (let start = 0; start < places.length; start += 2 * width) {
      const middle = Math.min(start + width, places.length);
      const end = Math.min(start + 2 * width, places.length);
      let left = start;
      let right = middle;
      for (let at = start; at < end; at++) {
        const takesRight =
          left === middle || (right < end && before(from[right] as number, from[left] as number));
        to[at] = from[takesRight ? right++ : left++] as number;
        // A comparison may be a region of ops.
        if (at % comparisons === comparisons - 1) yield pause;
      }
    }
    [from, to] = [to, from];
  }
  return from;
}

/** Above zero where `left` is the larger of two elements, in the total order of floats. */
function compare(left: Scalar, right: Scalar): number {
  return left > right ? 1 : left < right ? -1 : 0;
}

/** The k largest of the last axis, descending, ties by lower index, and their indices. */
export function* topK(
  operand: Tensor,
  k: number,
  types: readonly TensorType[],
): Steps<readonly Tensor[]> {
  const extent = operand.shape.at(-1) ?? 1;
  const rows = sizeOf(operand.shape.slice(0, -1));
  const [valuesType, indicesType] = types as [TensorType, TensorType];
  const values = emptyTensor(valuesType);
  const indices = emptyTensor(indicesType);
  const write = writer(values.element, values.data);
  const read = reader(operand);
  const order = domainOf(operand.element) === "real" ? totalOrder : compare;
  let work = 0;
  for (let row = 0; row < rows; row++) {
    const value = (i: number) => read(row * extent + i) as never;
    const items = yield* mergeSort(
      Uint32Array.from({ length: extent }, (_, i) => i),
      (left, right) => order(value(right), value(left)) < 0,
    );
    for (let i = 0; i < k; i++) {
      write(row * k + i, value(items[i] as number));
      indices.data[row * k + i] = items[i] as never;
    }
    work += 16 * extent;
    if (work < pieceWork) continue;
    work = 0;
    yield pause;
  }
  return [values, indices];
}
