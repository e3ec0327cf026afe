/** Sorting by a comparator, and the largest elements of a row. */
import type { AnyGraphOp, GraphRegion, TensorType } from "../ops/index.ts";
import { sizeOf } from "../ops/index.ts";
import { emptyTensor } from "./datum.ts";
import type { Tensor } from "./datum.ts";
import { totalOrder } from "./elementwise/convert.ts";
import type { Frame } from "./frame.ts";
import { scalarRegion } from "./region.ts";
import { domainOf, reader, writer } from "./scalars.ts";
import type { Scalar } from "./scalars.ts";
import { forEachPlace, stridesOf } from "./strides.ts";

/** Sorts all inputs along an axis, together; elements that compare equal keep their order. */
export function sort(
  inputs: readonly Tensor[],
  dimension: number,
  comparator: GraphRegion,
  frame: Frame,
  op: AnyGraphOp,
): readonly Tensor[] {
  const [{ shape } = { shape: [] as readonly number[] }] = inputs;
  const axis = dimension < 0 ? dimension + shape.length : dimension;
  const extent = shape[axis] ?? 1;
  const step = stridesOf(shape)[axis] ?? 1;
  const isLess = scalarRegion(comparator, frame, op);
  const read = inputs.map(reader);
  const results = inputs.map((input) => emptyTensor(input));
  const write = results.map(({ element, lanes }) => writer(element, lanes));
  const rows = shape.map((each, at) => (at === axis ? Math.min(1, each) : each));
  const walk = { start: 0, strides: stridesOf(shape) };
  forEachPlace(rows, walk, walk, (first) => {
    const items = Array.from({ length: extent }, (_, i) =>
      read.map((each) => each(first + i * step)),
    );
    // Comparators take the operands' elements in turn: left and right of the first, of the second …
    const before = (left: readonly Scalar[], right: readonly Scalar[]) =>
      isLess(...left.flatMap((value, i) => [value, right[i] as Scalar])) !== 0;
    items.sort((left, right) => (before(left, right) ? -1 : before(right, left) ? 1 : 0));
    for (const [i, item] of items.entries())
      for (const [which, value] of item.entries()) write[which]?.(first + i * step, value);
  });
  return results;
}

/** Above zero where `left` is the larger of two elements, in the total order of floats. */
function compare(left: Scalar, right: Scalar): number {
  return left > right ? 1 : left < right ? -1 : 0;
}

/** The k largest of the last axis, descending, ties by lower index, and their indices. */
export function topK(operand: Tensor, k: number, types: readonly TensorType[]): readonly Tensor[] {
  const extent = operand.shape.at(-1) ?? 1;
  const rows = sizeOf(operand.shape.slice(0, -1));
  const [valuesType, indicesType] = types as [TensorType, TensorType];
  const values = emptyTensor(valuesType);
  const indices = emptyTensor(indicesType);
  const write = writer(values.element, values.lanes);
  const read = reader(operand);
  const order = domainOf(operand.element) === "real" ? totalOrder : compare;
  for (let row = 0; row < rows; row++) {
    const items = Array.from({ length: extent }, (_, i) => i);
    const value = (i: number) => read(row * extent + i) as never;
    items.sort((left, right) => order(value(right), value(left)) || left - right);
    for (let i = 0; i < k; i++) {
      write(row * k + i, value(items[i] as number));
      indices.lanes[row * k + i] = items[i] as never;
    }
  }
  return [values, indices];
}
