/** Slices, gathers and scatters at places that parameters give, many of which lie outside. */
import { at, flatOf, list, places, typeOf } from "./builder.ts";
import type { Builder, Value } from "./builder.ts";
import { integerNames, isFloat, settled } from "./scalars.ts";
import type { Scalar } from "./scalars.ts";
import { combiner, everyElement } from "./shared.ts";
import type { Draw } from "./shared.ts";

const indexElements = integerNames.filter((name) => !["i2", "ui2", "i4", "ui4"].includes(name));

const clamped = (value: Scalar, most: number): number =>
  (value as bigint) < 0n ? 0 : (value as bigint) > BigInt(most) ? most : Number(value);

export const dynamicSlice: Draw = (b) => {
  const x = b.any(everyElement);
  const element = b.pick(indexElements);
  const sizes = x.shape.map((extent) => b.between(0, extent));
  const starts = x.shape.map(() => b.value(element, []));
  const from = starts.map(({ data }, i) =>
    clamped(data[0] as Scalar, (x.shape[i] as number) - (sizes[i] as number)),
  );
  const data = places(sizes).map((place) =>
    at(
      x,
      place.map((p, i) => p + (from[i] as number)),
    ),
  );
  b.op("dynamic_slice", [x, ...starts], `slice_sizes = ${list(sizes)}`, {
    element: x.element,
    shape: sizes,
    data,
  });
};

export const dynamicUpdateSlice: Draw = (b) => {
  const x = b.any(everyElement);
  const element = b.pick(indexElements);
  const update = b.value(
    x.element,
    x.shape.map((extent) => b.between(0, extent)),
  );
  const starts = x.shape.map(() => b.value(element, []));
  const from = starts.map(({ data }, i) =>
    clamped(data[0] as Scalar, (x.shape[i] as number) - (update.shape[i] as number)),
  );
  const data = [...x.data];
  for (const place of places(update.shape))
    data[
      flatOf(
        x.shape,
        place.map((p, i) => p + (from[i] as number)),
      )
    ] = at(update, place);
  b.op("dynamic_update_slice", [x, update, ...starts], "", { ...x, data });
};

/** Where indices of gathers and scatters point, and which axes of the operand they move over. */
interface Indexing {
  readonly indices: Value;
  readonly batchShape: readonly number[];
  readonly vectorAxis: number;
  readonly startMap: readonly number[];
  readonly operandBatching: readonly number[];
  readonly indexBatching: readonly number[];
  readonly removed: readonly number[];
  startOf(place: readonly number[]): readonly bigint[];
}

/** Draws how an operand is indexed: which axes are batches, removed or moved over, and the indices. */
function indexing(b: Builder, x: Value): Indexing {
  const axes = b.order(x.shape.length);
  const operandBatching = axes.filter(() => b.chance(4)).sort((p, q) => p - q);
  const others = axes.filter((axis) => !operandBatching.includes(axis));
  const startMap = others.filter(() => !b.chance(3));
  const removed = others.filter(() => b.chance(2)).sort((p, q) => p - q);
  const own = Array.from({ length: b.below(3) }, () => (b.chance(10) ? 0 : b.between(1, 4)));
  // Batch axes lie anywhere among the axes of the indices.
  const slots = b.order(own.length + operandBatching.length);
  const batchShape: number[] = new Array<number>(slots.length);
  const indexBatching: number[] = [];
  for (const [i, slot] of slots.entries()) {
    if (i < operandBatching.length) {
      indexBatching.push(slot);
      batchShape[slot] = x.shape[operandBatching[i] as number] as number;
    } else batchShape[slot] = own[i - operandBatching.length] as number;
  }
  const implicit = startMap.length === 1 && b.chance(3);
  const vectorAxis = implicit ? batchShape.length : b.below(batchShape.length + 1);
  const shape = implicit
    ? batchShape
    : [...batchShape.slice(0, vectorAxis), startMap.length, ...batchShape.slice(vectorAxis)];
  const element = b.pick(indexElements);
  const indices = b.parameter(element, shape, () =>
    b.chance(6) ? b.scalar(element) : settled(element, BigInt(b.between(-1, 4))),
  );
  const shifted = indexBatching.map((axis) => (!implicit && axis >= vectorAxis ? axis + 1 : axis));
  return {
    indices,
    batchShape,
    vectorAxis,
    startMap,
    operandBatching,
    indexBatching: shifted,
    removed,
    startOf(place) {
      const full = new Array<bigint>(x.shape.length).fill(0n);
      for (const [k, axis] of startMap.entries())
        full[axis] = at(
          indices,
          implicit ? place : [...place.slice(0, vectorAxis), k, ...place.slice(vectorAxis)],
        ) as bigint;
      for (const [k, axis] of operandBatching.entries())
        full[axis] = BigInt(place[indexBatching[k] as number] as number);
      return full;
    },
  };
}

/** Window axes of a result among its batch axes: which are of the window, in rising order. */
function windowAxes(b: Builder, batch: number, window: number): readonly number[] {
  return b
    .order(batch + window)
    .slice(0, window)
    .sort((p, q) => p - q);
}

export const gather: Draw = (b) => {
  const x = b.any(everyElement);
  const how = indexing(b, x);
  const kept = x.shape
    .map((_, axis) => axis)
    .filter((axis) => !how.removed.includes(axis) && !how.operandBatching.includes(axis));
  const sizes = x.shape.map((extent, axis) =>
    kept.includes(axis)
      ? how.startMap.includes(axis)
        ? b.between(0, extent)
        : b.between(0, extent)
      : Math.min(1, extent),
  );
  if (x.shape.some((extent, axis) => !kept.includes(axis) && extent === 0)) return;
  const offsets = windowAxes(b, how.batchShape.length, kept.length);
  const rank = how.batchShape.length + kept.length;
  const batchAxes = Array.from({ length: rank }, (_, i) => i).filter((i) => !offsets.includes(i));
  const shape = Array.from({ length: rank }, (_, axis) =>
    offsets.includes(axis)
      ? (sizes[kept[offsets.indexOf(axis)] as number] as number)
      : (how.batchShape[batchAxes.indexOf(axis)] as number),
  );
  const data = places(shape).map((place) => {
    const start = how
      .startOf(batchAxes.map((axis) => place[axis] as number))
      .map((v, axis) => clamped(v, (x.shape[axis] as number) - (sizes[axis] as number)));
    for (const [k, axis] of kept.entries())
      start[axis] = (start[axis] as number) + (place[offsets[k] as number] as number);
    return at(x, start);
  });
  b.op(
    "gather",
    [x, how.indices],
    `dimension_numbers = #stablehlo.gather<offset_dims = [${offsets.join(", ")}], collapsed_slice_dims = [${how.removed.join(", ")}], operand_batching_dims = [${how.operandBatching.join(", ")}], start_indices_batching_dims = [${how.indexBatching.join(", ")}], start_index_map = [${how.startMap.join(", ")}], index_vector_dim = ${how.vectorAxis}>, slice_sizes = ${list(sizes)}, indices_are_sorted = false`,
    { element: x.element, shape, data },
  );
};

export const scatter: Draw = (b) => {
  const x = b.any(everyElement);
  const how = indexing(b, x);
  const kept = x.shape
    .map((_, axis) => axis)
    .filter((axis) => !how.removed.includes(axis) && !how.operandBatching.includes(axis));
  const sizes = kept.map((axis) => b.between(0, x.shape[axis] as number));
  if (x.shape.some((extent, axis) => !kept.includes(axis) && extent === 0)) return;
  const windows = windowAxes(b, how.batchShape.length, kept.length);
  const rank = how.batchShape.length + kept.length;
  const batchAxes = Array.from({ length: rank }, (_, i) => i).filter((i) => !windows.includes(i));
  const shape = Array.from({ length: rank }, (_, axis) =>
    windows.includes(axis)
      ? (sizes[windows.indexOf(axis)] as number)
      : (how.batchShape[batchAxes.indexOf(axis)] as number),
  );
  const updates = b.value(x.element, shape);
  const last = b.chance(3);
  const type = typeOf(x.element, []);
  const commuting = ["maximum", "minimum", "and", "or", "xor", "add", "subtract", "multiply"];
  const { text, f } = last
    ? {
        text: `{ ^bb0(%a: ${type}, %b: ${type}): stablehlo.return %b : ${type} }`,
        f: (_: Scalar, y: Scalar) => y,
      }
    : combiner(
        b,
        x.element,
        isFloat(x.element) ? ["maximum", "minimum"] : b.chance(3) ? undefined : commuting,
      );
  const data = [...x.data];
  // Index vectors apply one after another, each with its window.
  const ordered = places(how.batchShape).flatMap((batch) =>
    places(sizes).map((window) =>
      shape.map((_, axis) =>
        windows.includes(axis)
          ? (window[windows.indexOf(axis)] as number)
          : (batch[batchAxes.indexOf(axis)] as number),
      ),
    ),
  );
  for (const place of ordered) {
    const start = how.startOf(batchAxes.map((axis) => place[axis] as number));
    const fits = start.every((from, axis) => {
      const window = kept.includes(axis) ? (sizes[kept.indexOf(axis)] as number) : 1;
      return from >= 0n && from + BigInt(window) <= BigInt(x.shape[axis] as number);
    });
    if (!fits) continue;
    const to = start.map(Number);
    for (const [k, axis] of kept.entries())
      to[axis] = (to[axis] as number) + (place[windows[k] as number] as number);
    const flat = flatOf(x.shape, to);
    data[flat] = f(data[flat] as Scalar, at(updates, place));
  }
  b.op(
    "scatter",
    [x, how.indices, updates],
    `scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [${windows.join(", ")}], inserted_window_dims = [${how.removed.join(", ")}], input_batching_dims = [${how.operandBatching.join(", ")}], scatter_indices_batching_dims = [${how.indexBatching.join(", ")}], scatter_dims_to_operand_dims = [${how.startMap.join(", ")}], index_vector_dim = ${how.vectorAxis}>, indices_are_sorted = false, unique_indices = false`,
    { ...x, data },
    text,
  );
};
