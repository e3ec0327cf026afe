/**
 * Views whose elements do not lie one after the other: transposed arrays, and parts of rows. Such a view says how
 * far apart its elements are along each axis, and spans memory of which it may leave elements out:
 *
 *   x: f32[3, 4]                 memory   0 1 2 3 4 5 6 7 8 9 10 11
 *   x.transpose()                shape [4, 3], strides [1, 4]: spans all twelve
 *   x.slice(1, 3, 1)             shape [3, 2], strides [4, 1]: spans 1 to 10, and leaves 3, 4, 7, 8 out
 *
 * Kernels that declare strides work on one as it lies. Everything else that reads or writes a view does it on the
 * host: the span is fetched, elements are picked from it or put into it, and in the latter case it is written back.
 */
import { allocateElements } from "../formats/dtype.ts";
import type { DType, DTypeName, Elements } from "../formats/dtype.ts";
import { fromElements, toElements } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { coordinatesOf, elementCount, rowMajorStrides } from "../formats/shape.ts";

/** Which elements of its span a view has. */
export interface StridedShape {
  readonly shape: readonly number[];
  /** In elements. */
  readonly strides: readonly number[];
}

/** Whether the elements lie one after the other; along an axis of one element strides say nothing. */
export function isContiguous({ shape, strides }: StridedShape): boolean {
  const expected = rowMajorStrides(shape);
  return (
    shape.includes(0) ||
    shape.every((extent, axis) => extent === 1 || strides[axis] === expected[axis])
  );
}

/** Elements from the first to the last, both included. */
export function spanOf({ shape, strides }: StridedShape): number {
  if (shape.includes(0)) return 0;
  return shape.reduce((reach, extent, axis) => reach + (extent - 1) * (strides[axis] ?? 0), 1);
}

/** Elements that are fetched for a view: its span, in whole bytes. */
export function fetchedElements(dtype: DType, view: StridedShape): number {
  const span = spanOf(view);
  return dtype.bits === 4 ? span + (span % 2) : span;
}

/** The elements of a view, from its span. */
export function gather<N extends DTypeName>(span: HostArray<N>, view: StridedShape): HostArray<N> {
  const lanes = toElements(span);
  const picked = allocateElements(span.dtype, elementCount(view.shape));
  visit(view, (place, element) => {
    picked[element] = lanes[place] as number & bigint;
  });
  return fromElements(span.dtype, view.shape, picked);
}

/** The span with the elements of the view replaced. */
export function scatter<N extends DTypeName>(
  span: HostArray<N>,
  view: StridedShape,
  values: HostArray<N>,
): HostArray<N> {
  const lanes: Elements<N> = toElements(span);
  const given = toElements(values);
  visit(view, (place, element) => {
    lanes[place] = given[element] as number & bigint;
  });
  return fromElements(span.dtype, span.shape, lanes);
}

/** Calls `use` with each element's place in the span, and its number in row-major order. */
function visit(
  { shape, strides }: StridedShape,
  use: (place: number, element: number) => void,
): void {
  const count = elementCount(shape);
  const rowLength = shape.at(-1) ?? 1;
  const step = strides.at(-1) ?? 1;
  for (let element = 0; element < count; element += rowLength) {
    const start = coordinatesOf(element, shape).reduce(
      (place, index, axis) => place + index * (strides[axis] ?? 0),
      0,
    );
    for (let column = 0; column < rowLength; column += 1)
      use(start + column * step, element + column);
  }
}
