/**
 * What convolutions read of their operand at one tap or at one position: a strided slice of the padded operand.
 *
 *   x, padded        . x x x x .
 *   tap 0 of 3       . x x x            position 0 of 3 over 4 taps     . x x x
 *   tap 2 of 3           x x x .        position 2                          x x x .
 */
import type { GraphBuilder } from "../infer/builder.ts";
import type { GraphOp, GraphValue } from "../ops/node.ts";
import { tensorType } from "../ops/types.ts";
import { splatOf, transpose, typeOfValue } from "../transform/arithmetic.ts";

type Convolution = GraphOp<"stablehlo.convolution">;

/** The operand with what its windows read beyond it, or without what none of them reads. */
export function paddedOperand(
  { operands, attributes }: Convolution,
  builder: GraphBuilder,
): GraphValue {
  const { element, shape } = typeOfValue(operands.lhs);
  const edges = (side: 0 | 1): readonly number[] =>
    shape.map((_, axis) => {
      const i = attributes.dimension_numbers.input_spatial_dimensions.indexOf(axis);
      return i < 0 ? 0 : (attributes.padding?.[i]?.[side] ?? 0);
    });
  const [low, high] = [edges(0), edges(1)];
  if ([...low, ...high].every((edge) => edge === 0)) return operands.lhs;
  return builder.one(
    "stablehlo.pad",
    { operand: operands.lhs, padding_value: splatOf(builder, tensorType(element, []), 0) },
    { edge_padding_low: low, edge_padding_high: high, interior_padding: shape.map(() => 0) },
  );
}

/** All places of a shape, in row-major order. */
export function positionsOf(extents: readonly number[]): readonly (readonly number[])[] {
  return extents.reduce<readonly (readonly number[])[]>(
    (before, extent) =>
      before.flatMap((each) => Array.from({ length: extent }, (_, at) => [...each, at])),
    [[]],
  );
}

/** A slice along the spatial axes, and where its axes go. */
interface Reading {
  readonly first: readonly number[];
  readonly step: readonly number[];
  readonly counts: readonly number[];
  /** Axes of the operand … */
  readonly order: readonly number[];
  /** … and where each of them is wanted; in this order unless it says so. */
  readonly to?: readonly number[];
}

export function readWindows(
  { attributes }: Convolution,
  whole: GraphValue,
  builder: GraphBuilder,
  { first, step, counts, order, to }: Reading,
): GraphValue {
  const { shape } = typeOfValue(whole);
  const [start, limit, strides] = [shape.map(() => 0), [...shape], shape.map(() => 1)];
  for (const [i, axis] of attributes.dimension_numbers.input_spatial_dimensions.entries()) {
    start[axis] = first[i] ?? 0;
    strides[axis] = step[i] ?? 1;
    limit[axis] = (first[i] ?? 0) + ((counts[i] ?? 1) - 1) * (step[i] ?? 1) + 1;
  }
  const read = builder.one(
    "stablehlo.slice",
    { operand: whole },
    { start_indices: start, limit_indices: limit, strides },
  );
  if (to === undefined) return transpose(builder, read, order);
  return transpose(
    builder,
    read,
    order.map((_, axis) => order[to.indexOf(axis)] ?? axis),
  );
}
