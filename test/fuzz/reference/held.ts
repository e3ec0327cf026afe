/** Tiles and scalars of the reference: a shape, and an element for each of its places in row-major order. */
import type { DType } from "../../../src/formats/dtype.ts";
import { elementAt } from "../strides.ts";
import type { Item } from "./numbers.ts";

export interface Held {
  readonly dtype: DType;
  /** Empty of a scalar. */
  readonly shape: readonly number[];
  readonly items: readonly Item[];
}

/** Elements by their places; undefined where there is none. */
export interface View {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly get: (place: readonly number[]) => Item | undefined;
}

export function countOf(shape: readonly number[]): number {
  return shape.reduce((product, extent) => product * extent, 1);
}

/** Every place of a shape, the last axis fastest. */
export function* placesOf(shape: readonly number[]): Generator<readonly number[]> {
  const place = shape.map(() => 0);
  for (let left = countOf(shape); left > 0; left--) {
    yield [...place];
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      place[axis] = (place[axis] ?? 0) + 1;
      if ((place[axis] ?? 0) < (shape[axis] ?? 1)) break;
      place[axis] = 0;
    }
  }
}

export function positionOf(shape: readonly number[], place: readonly number[]): number {
  return shape.reduce((sum, extent, axis) => sum * extent + (place[axis] ?? 0), 0);
}

export function placeOf(shape: readonly number[], position: number): readonly number[] {
  let rest = position;
  return shape
    .toReversed()
    .map((extent) => {
      const at = rest % extent;
      rest = Math.floor(rest / extent);
      return at;
    })
    .toReversed();
}

export function itemAt({ shape, items }: Held, place: readonly number[]): Item {
  const item = items[positionOf(shape, place)];
  if (item === undefined) throw new Error(`no element ${place.join(", ")}`);
  return item;
}

export function held(
  dtype: DType,
  shape: readonly number[],
  element: (place: readonly number[], position: number) => Item,
): Held {
  const items = Array.from(placesOf(shape), (place, position) => element(place, position));
  return { dtype, shape, items };
}

/** A place of a larger shape in one that repeats to it. */
function repeatedPlace(shape: readonly number[], place: readonly number[]): readonly number[] {
  const own = place.slice(place.length - shape.length);
  return own.map((at, axis) => (shape[axis] === 1 ? 0 : at));
}

export function broadcast(source: Held, shape: readonly number[]): Held {
  return held(source.dtype, shape, (place) => itemAt(source, repeatedPlace(source.shape, place)));
}

/** The shape that two repeat to, undefined where there is none. */
export function joined(
  left: readonly number[],
  right: readonly number[],
): readonly number[] | undefined {
  const rank = Math.max(left.length, right.length);
  const extents = Array.from({ length: rank }, (_, axis) => {
    const [a, b] = [left.at(axis - rank) ?? 1, right.at(axis - rank) ?? 1];
    return a === b || b === 1 ? a : a === 1 ? b : undefined;
  });
  return extents.every((extent) => extent !== undefined) ? extents : undefined;
}

export function elementwise(
  dtype: DType,
  operands: readonly Held[],
  element: (...items: Item[]) => Item,
): Held {
  const shape = operands.reduce<readonly number[]>(
    (all, operand) => joined(all, operand.shape) ?? all,
    [],
  );
  const whole = operands.map((operand) => broadcast(operand, shape));
  return held(dtype, shape, (_, position) =>
    element(...whole.map(({ items }) => items[position] ?? 0)),
  );
}

/** The elements along an axis through each place of the others, in their order. */
export function linesAlong(
  source: Held,
  axis: number,
): readonly { readonly place: readonly number[]; readonly items: readonly Item[] }[] {
  const others = source.shape.toSpliced(axis, 1);
  return Array.from(placesOf(others), (place) => ({
    place,
    items: Array.from({ length: source.shape[axis] ?? 1 }, (_, at) =>
      itemAt(source, place.toSpliced(axis, 0, at)),
    ),
  }));
}

export function transposed(source: Held, permutation: readonly number[]): Held {
  return held(
    source.dtype,
    permutation.map((axis) => source.shape[axis] ?? 1),
    (place) => {
      const from = source.shape.map(() => 0);
      permutation.forEach((axis, to) => (from[axis] = place[to] ?? 0));
      return itemAt(source, from);
    },
  );
}

export function viewOf(source: Held): View {
  const { dtype, shape } = source;
  return {
    dtype,
    shape,
    get: (place) =>
      place.every((at, axis) => at >= 0 && at < (shape[axis] ?? 0))
        ? itemAt(source, place)
        : undefined,
  };
}

/** A view of elements that lie apart in what is held. */
export function stridedView(
  source: Held,
  shape: readonly number[],
  strides: readonly number[],
): View {
  const { dtype, items } = source;
  return {
    dtype,
    shape,
    get: (place) =>
      place.every((at, axis) => at >= 0 && at < (shape[axis] ?? 0))
        ? items[elementAt(strides, place)]
        : undefined,
  };
}

export function transposedView(view: View, permutation: readonly number[]): View {
  return {
    dtype: view.dtype,
    shape: permutation.map((axis) => view.shape[axis] ?? 1),
    get: (place) => {
      const from = view.shape.map(() => 0);
      permutation.forEach((axis, to) => (from[axis] = place[to] ?? 0));
      return view.get(from);
    },
  };
}

export function reshapedView(view: View, shape: readonly number[]): View {
  return {
    dtype: view.dtype,
    shape,
    get: (place) =>
      place.every((at, axis) => at >= 0 && at < (shape[axis] ?? 0))
        ? view.get(placeOf(view.shape, positionOf(shape, place)))
        : undefined,
  };
}
