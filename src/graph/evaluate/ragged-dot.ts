/**
 * chlo.ragged_dot: products over groups of rows, whose sizes are an operand. The ragged axis of the left
 * operand is one of
 *
 *   free          rows of group g meet slice g of the right operand; rows after the last group give zero
 *   contracting   one product a group, stacked in front
 *   batching      sizes only say how many batches count
 */
import type { RaggedDotNumbers, TensorType } from "../ops/index.ts";
import { emptyTensor, reshaped } from "./value.ts";
import type { Tensor } from "./value.ts";
import type { Steps } from "./frame.ts";
import { dotGeneral } from "./products.ts";
import { concatenate, dynamicUpdateSlice, slice } from "./shapes.ts";

function cut(value: Tensor, axis: number, from: number, to: number): Steps<Tensor> {
  const starts = value.shape.map((_, each) => (each === axis ? from : 0));
  const limits = value.shape.map((extent, each) => (each === axis ? to : extent));
  return slice(
    value,
    starts,
    limits,
    value.shape.map(() => 1),
  );
}

function withoutAxis(value: Tensor, axis: number): Tensor {
  return reshaped(
    value,
    value.shape.filter((_, each) => each !== axis),
  );
}

const below = (axes: readonly number[], axis: number): number[] =>
  axes.map((each) => (each > axis ? each - 1 : each));

export function* raggedDot(
  lhs: Tensor,
  rhs: Tensor,
  groupSizes: Tensor,
  numbers: RaggedDotNumbers,
  type: TensorType,
): Steps<Tensor | undefined> {
  const [ragged] = numbers.lhs_ragged_dimensions;
  if (ragged === undefined || groupSizes.shape.length !== 1) return undefined;
  const sizes = Array.from(groupSizes.data, Number);
  if (numbers.lhs_contracting_dimensions.includes(ragged))
    return yield* contractingGroups(lhs, rhs, sizes, numbers, ragged, type);
  if (numbers.lhs_batching_dimensions.includes(ragged))
    return yield* dotGeneral(lhs, rhs, numbers, type);
  return yield* freeGroups(lhs, rhs, sizes, numbers, ragged, type);
}

function* freeGroups(
  lhs: Tensor,
  rhs: Tensor,
  sizes: readonly number[],
  numbers: RaggedDotNumbers,
  ragged: number,
  type: TensorType,
): Steps<Tensor> {
  const [group = 0] = numbers.rhs_group_dimensions;
  const inner = {
    ...numbers,
    rhs_batching_dimensions: below(numbers.rhs_batching_dimensions, group),
    rhs_contracting_dimensions: below(numbers.rhs_contracting_dimensions, group),
  };
  const taken = [...numbers.lhs_batching_dimensions, ...numbers.lhs_contracting_dimensions];
  const free = lhs.shape.map((_, axis) => axis).filter((axis) => !taken.includes(axis));
  const resultAxis = numbers.lhs_batching_dimensions.length + free.indexOf(ragged);
  let result = emptyTensor(type);
  let start = 0;
  for (const [index, size] of sizes.entries()) {
    const end = Math.min(start + size, lhs.shape[ragged] as number);
    if (end > start) {
      const part = {
        ...type,
        shape: type.shape.map((extent, axis) => (axis === resultAxis ? end - start : extent)),
      };
      const right = withoutAxis(yield* cut(rhs, group, index, index + 1), group);
      const product = yield* dotGeneral(yield* cut(lhs, ragged, start, end), right, inner, part);
      const at = type.shape.map((_, axis) => (axis === resultAxis ? start : 0));
      result = yield* dynamicUpdateSlice(result, product, at);
    }
    start = end;
  }
  return result;
}

function* contractingGroups(
  lhs: Tensor,
  rhs: Tensor,
  sizes: readonly number[],
  numbers: RaggedDotNumbers,
  ragged: number,
  type: TensorType,
): Steps<Tensor> {
  const which = numbers.lhs_contracting_dimensions.indexOf(ragged);
  const rightAxis = numbers.rhs_contracting_dimensions[which] as number;
  const inner = { ...type, shape: type.shape.slice(1) };
  let start = 0;
  const products: Tensor[] = [];
  for (const size of sizes) {
    const end = Math.min(start + size, lhs.shape[ragged] as number);
    const product = yield* dotGeneral(
      yield* cut(lhs, ragged, start, end),
      yield* cut(rhs, rightAxis, start, end),
      numbers,
      inner,
    );
    start = end;
    products.push(reshaped(product, [1, ...inner.shape]));
  }
  return yield* concatenate(products, 0, type);
}
