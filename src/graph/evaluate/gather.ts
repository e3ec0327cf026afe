/**
 * Gather and scatter. Both walk the index vectors of `start_indices`; each vector names a place in the
 * operand, and a window of the operand lies there.
 *
 *   result index = batch part (which index vector)  +  offset part (which element of the window)
 *   operand index = start (from the vector)  +  batching axes (from the batch part)  +  offset
 *
 * Gather moves starts so that the window fits. Scatter drops a window that does not fit as a whole, as
 * XLA and JAX do; the specification would drop its single elements.
 */
import type { GatherNumbers, GraphRegion, ScatterNumbers } from "../ops/index.ts";
import type { AnyGraphOp } from "../ops/index.ts";
import { sizeOf, slotsOf } from "../ops/index.ts";
import { emptyTensor, tensor } from "./value.ts";
import type { Tensor } from "./value.ts";
import { pause, pieceWork } from "./frame.ts";
import type { Frame, Steps } from "./frame.ts";
import { regionFunction } from "./region.ts";
import { reader, writer } from "./scalars.ts";
import { indicesOf, placeOf, stridesOf, visitPlaces } from "./strides.ts";

/** What finding the place of a window counts as, beside its elements. */
const eachWindow = 16;

/** `values` with `value` inserted before position `at`, or at the end. */
function withInserted(values: readonly number[], at: number, value: number): number[] {
  return [...values.slice(0, at), value, ...values.slice(at)];
}

/** Where index vectors say that windows begin. */
interface Starts {
  readonly indices: Tensor;
  readonly vectorAxis: number;
  /** The operand's axis of each component. */
  readonly map: readonly number[];
  readonly operandBatching: readonly number[];
  readonly indicesBatching: readonly number[];
}

/** The start in the operand for a batch index; the array is fresh. */
function startsReader(
  { indices, vectorAxis, map, operandBatching, indicesBatching }: Starts,
  rank: number,
): (batch: readonly number[]) => number[] {
  const strides = stridesOf(indices.shape);
  const hasAxis = vectorAxis < indices.shape.length;
  return (batch) => {
    const start = new Array<number>(rank).fill(0);
    const at = hasAxis
      ? placeOf(withInserted(batch, vectorAxis, 0), strides)
      : placeOf(batch, strides);
    const step = hasAxis ? (strides[vectorAxis] as number) : 0;
    for (const [component, axis] of map.entries())
      start[axis] = Number(indices.data[at + component * step]);
    for (const [i, axis] of operandBatching.entries()) {
      const indicesAxis = indicesBatching[i] as number;
      const batchAxis = hasAxis && indicesAxis > vectorAxis ? indicesAxis - 1 : indicesAxis;
      start[axis] = batch[batchAxis] as number;
    }
    return start;
  };
}

function axesBeside(rank: number, ...taken: readonly (readonly number[])[]): readonly number[] {
  return Array.from({ length: rank }, (_, axis) => axis).filter(
    (axis) => !taken.some((axes) => axes.includes(axis)),
  );
}

export function* gather(
  operand: Tensor,
  indices: Tensor,
  numbers: GatherNumbers,
  sizes: readonly number[],
  shape: readonly number[],
): Steps<Tensor> {
  const result = emptyTensor({ element: operand.element, shape });
  const rank = operand.shape.length;
  const batchAxes = axesBeside(shape.length, numbers.offset_dims);
  const windowAxes = axesBeside(rank, numbers.collapsed_slice_dims, numbers.operand_batching_dims);
  const readStart = startsReader(
    {
      indices,
      vectorAxis: numbers.index_vector_dim,
      map: numbers.start_index_map,
      operandBatching: numbers.operand_batching_dims,
      indicesBatching: numbers.start_indices_batching_dims,
    },
    rank,
  );
  const own = stridesOf(operand.shape);
  const strides = stridesOf(shape);
  const window = windowAxes.map((axis) => sizes[axis] as number);
  const slots = slotsOf(operand.element);
  let work = 0;
  for (const batch of indicesOf(batchAxes.map((axis) => shape[axis] as number))) {
    const start = readStart(batch).map((each, axis) =>
      Math.min(Math.max(each, 0), (operand.shape[axis] as number) - (sizes[axis] as number)),
    );
    const from = {
      start: placeOf(start, own),
      strides: windowAxes.map((axis) => own[axis] as number),
    };
    const to = {
      start: placeOf(
        batch,
        batchAxes.map((axis) => strides[axis] as number),
      ),
      strides: numbers.offset_dims.map((axis) => strides[axis] as number),
    };
    yield* visitPlaces(window, from, to, (source, target) => {
      for (let slot = 0; slot < slots; slot++)
        result.data[slots * target + slot] = operand.data[slots * source + slot] as never;
    });
    work += eachWindow + sizeOf(window);
    if (work < pieceWork) continue;
    work = 0;
    yield pause;
  }
  return result;
}

export function* scatter(
  inputs: readonly Tensor[],
  indices: Tensor,
  updates: readonly Tensor[],
  numbers: ScatterNumbers,
  region: GraphRegion,
  frame: Frame,
  op: AnyGraphOp,
): Steps<readonly Tensor[]> {
  const results = inputs.map(({ element, shape, data }) => tensor(element, shape, data.slice()));
  const [{ shape: operandShape } = { shape: [] }] = inputs;
  const [{ shape: updateShape } = { shape: [] }] = updates;
  const rank = operandShape.length;
  const scatterAxes = axesBeside(updateShape.length, numbers.update_window_dims);
  const windowAxes = axesBeside(rank, numbers.inserted_window_dims, numbers.input_batching_dims);
  const readStart = startsReader(
    {
      indices,
      vectorAxis: numbers.index_vector_dim,
      map: numbers.scatter_dims_to_operand_dims,
      operandBatching: numbers.input_batching_dims,
      indicesBatching: numbers.scatter_indices_batching_dims,
    },
    rank,
  );
  const window = numbers.update_window_dims.map((axis) => updateShape[axis] as number);
  const sizes = new Array<number>(rank).fill(1);
  for (const [i, axis] of windowAxes.entries()) sizes[axis] = window[i] as number;
  const own = stridesOf(operandShape);
  const strides = stridesOf(updateShape);
  const combine = combiner(results, updates, regionFunction(region, frame, op));
  let work = 0;
  const each = 4 + 2 * region.ops.length;
  for (const batch of indicesOf(scatterAxes.map((axis) => updateShape[axis] as number))) {
    work += eachWindow + each * sizeOf(window);
    if (work >= pieceWork) {
      work = 0;
      yield pause;
    }
    const start = readStart(batch);
    const fits = start.every(
      (place, axis) =>
        place >= 0 && place + (sizes[axis] as number) <= (operandShape[axis] as number),
    );
    if (!fits) continue;
    const from = {
      start: placeOf(
        batch,
        scatterAxes.map((axis) => strides[axis] as number),
      ),
      strides: numbers.update_window_dims.map((axis) => strides[axis] as number),
    };
    const to = {
      start: placeOf(start, own),
      strides: windowAxes.map((axis) => own[axis] as number),
    };
    yield* visitPlaces(window, from, to, combine, each);
  }
  return results;
}

/** Combines the updates at one place with what the results have at another. */
function combiner(
  results: readonly Tensor[],
  updates: readonly Tensor[],
  run: ReturnType<typeof regionFunction>,
): (source: number, target: number) => void {
  const readUpdates = updates.map(reader);
  const readResults = results.map(reader);
  const write = results.map(({ element, data }) => writer(element, data));
  return (source, target) => {
    const old = readResults.map((read) => read(target));
    const update = readUpdates.map((read) => read(source));
    for (const [i, value] of run(...old, ...update).entries()) write[i]?.(target, value);
  };
}
