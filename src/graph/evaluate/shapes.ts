/**
 * Ops that move elements: each is one copy of a box (`strides.ts`), or several.
 *
 * | op             | box            | read from the operand               | written to the result          |
 * |----------------|----------------|-------------------------------------|--------------------------------|
 * | broadcast      | result         | stride 0 along repeated axes        | in order                       |
 * | transpose      | result         | permuted strides                    | in order                       |
 * | reverse        | result         | from the end, negative strides      | in order                       |
 * | slice          | result         | from start, strides times the step  | in order                       |
 * | pad            | what survives  | what the edges do not cut           | from the low edge, in steps    |
 * | concatenate    | each operand   | in order                            | from its offset                |
 */
import { sizeOf, slotsOf } from "../ops/index.ts";
import type { TensorType } from "../ops/index.ts";
import { countOf, emptyTensor, splat, tensor } from "./value.ts";
import type { Tensor } from "./value.ts";
import { pause, pieceWork } from "./frame.ts";
import type { Steps } from "./frame.ts";
import { writer } from "./scalars.ts";
import { copyBox, placeOf, stridesOf } from "./strides.ts";

/** A tensor whose elements are read from places of another. */
function* gathered(
  source: Tensor,
  shape: readonly number[],
  from: { readonly start: number; readonly strides: readonly number[] },
): Steps<Tensor> {
  const result = emptyTensor({ element: source.element, shape });
  yield* copyBox(shape, source, from, result.data, { start: 0, strides: stridesOf(shape) });
  return result;
}

export function* broadcast(
  operand: Tensor,
  dimensions: readonly number[],
  shape: readonly number[],
): Steps<Tensor> {
  if (countOf(operand) === 1) return splat(operand, { element: operand.element, shape });
  const strides = new Array<number>(shape.length).fill(0);
  const own = stridesOf(operand.shape);
  for (const [axis, target] of dimensions.entries())
    if (operand.shape[axis] !== 1) strides[target] = own[axis] as number;
  return yield* gathered(operand, shape, { start: 0, strides });
}

export function* transpose(operand: Tensor, permutation: readonly number[]): Steps<Tensor> {
  const own = stridesOf(operand.shape);
  const shape = permutation.map((axis) => operand.shape[axis] as number);
  const strides = permutation.map((axis) => own[axis] as number);
  return yield* gathered(operand, shape, { start: 0, strides });
}

export function* reverse(operand: Tensor, dimensions: readonly number[]): Steps<Tensor> {
  const own = stridesOf(operand.shape);
  const strides = own.map((stride, axis) => (dimensions.includes(axis) ? -stride : stride));
  const start = dimensions.reduce(
    (sum, axis) => sum + ((operand.shape[axis] as number) - 1) * (own[axis] as number),
    0,
  );
  return yield* gathered(operand, operand.shape, { start, strides });
}

export function* slice(
  operand: Tensor,
  starts: readonly number[],
  limits: readonly number[],
  steps: readonly number[],
): Steps<Tensor> {
  const own = stridesOf(operand.shape);
  const shape = starts.map((start, axis) => {
    const extent = (limits[axis] as number) - start;
    return Math.max(0, Math.ceil(extent / (steps[axis] as number)));
  });
  const strides = own.map((stride, axis) => stride * (steps[axis] as number));
  return yield* gathered(operand, shape, { start: placeOf(starts, own), strides });
}

/** What is left of each axis after negative edges have cut it, and where it goes. */
function paddedAxis(
  extent: number,
  low: number,
  interior: number,
  resultExtent: number,
): { readonly first: number; readonly count: number; readonly target: number } {
  const step = interior + 1;
  const first = low < 0 ? Math.ceil(-low / step) : 0;
  const target = low + first * step;
  const fitting = target < resultExtent ? Math.floor((resultExtent - 1 - target) / step) + 1 : 0;
  return { first, count: Math.max(0, Math.min(extent - first, fitting)), target };
}

export function* pad(
  operand: Tensor,
  value: Tensor,
  low: readonly number[],
  interior: readonly number[],
  shape: readonly number[],
): Steps<Tensor> {
  const result = splat(value, { element: operand.element, shape });
  const axes = operand.shape.map((extent, axis) =>
    paddedAxis(extent, low[axis] as number, interior[axis] as number, shape[axis] as number),
  );
  const own = stridesOf(operand.shape);
  const strides = stridesOf(shape);
  yield* copyBox(
    axes.map(({ count }) => count),
    operand,
    {
      start: placeOf(
        axes.map(({ first }) => first),
        own,
      ),
      strides: own,
    },
    result.data,
    {
      start: placeOf(
        axes.map(({ target }) => target),
        strides,
      ),
      strides: strides.map((stride, axis) => stride * ((interior[axis] as number) + 1)),
    },
  );
  return result;
}

export function* concatenate(
  inputs: readonly Tensor[],
  dimension: number,
  type: TensorType,
): Steps<Tensor> {
  const result = emptyTensor(type);
  const strides = stridesOf(type.shape);
  let offset = 0;
  for (const input of inputs) {
    const from = { start: 0, strides: stridesOf(input.shape) };
    yield* copyBox(input.shape, input, from, result.data, {
      start: offset * (strides[dimension] as number),
      strides,
    });
    offset += input.shape[dimension] as number;
  }
  return result;
}

export function* iota(type: TensorType, dimension: number): Steps<Tensor> {
  const result = emptyTensor(type);
  const inner = sizeOf(type.shape.slice(dimension + 1));
  const extent = type.shape[dimension] as number;
  const write = writer(type.element, result.data);
  const count = countOf(result);
  const isWide = typeof result.data[0] === "bigint";
  const isComplex = slotsOf(type.element) === 2;
  for (let i = 0; i < count; i++) {
    const value = Math.floor(i / inner) % extent;
    write(i, isComplex ? { re: value, im: 0 } : isWide ? BigInt(value) : value);
    if (i % pieceWork === pieceWork - 1) yield pause;
  }
  return result;
}

/** Starts moved so that a box of the given sizes fits. */
function clampedStarts(
  operand: Tensor,
  starts: readonly number[],
  sizes: readonly number[],
): readonly number[] {
  return starts.map((start, axis) => {
    const last = (operand.shape[axis] as number) - (sizes[axis] as number);
    return Math.min(Math.max(start, 0), last);
  });
}

export function* dynamicSlice(
  operand: Tensor,
  starts: readonly number[],
  sizes: readonly number[],
): Steps<Tensor> {
  const own = stridesOf(operand.shape);
  const start = placeOf(clampedStarts(operand, starts, sizes), own);
  return yield* gathered(operand, sizes, { start, strides: own });
}

export function* dynamicUpdateSlice(
  operand: Tensor,
  update: Tensor,
  starts: readonly number[],
): Steps<Tensor> {
  const result = tensor(operand.element, operand.shape, operand.data.slice());
  const own = stridesOf(operand.shape);
  yield* copyBox(
    update.shape,
    update,
    { start: 0, strides: stridesOf(update.shape) },
    result.data,
    {
      start: placeOf(clampedStarts(operand, starts, update.shape), own),
      strides: own,
    },
  );
  return result;
}
