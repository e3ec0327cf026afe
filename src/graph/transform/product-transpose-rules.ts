/** The linear maps of products: linear in each operand while the other is held. */
import type { GraphBuilder } from "../infer/builder.ts";
import { isKnownAlgorithm } from "../ops/dot-algorithms.ts";
import type { GraphValue } from "../ops/node.ts";
import type { DotNumbers } from "../ops/structures.ts";
import type { GraphAttributes } from "../ops/table.ts";

import type { TensorType } from "../ops/types.ts";
import { convert, transpose, typeOfValue } from "./arithmetic.ts";
import type { LinearMap } from "./linear.ts";
import { single } from "./maps.ts";

type DotAttributes = GraphAttributes<"stablehlo.dot_general">;

export function range(start: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => start + i);
}

function freeAxes(rank: number, ...taken: readonly (readonly number[])[]): readonly number[] {
  return range(0, rank).filter((axis) => !taken.flat().includes(axis));
}

function rising(axes: readonly number[]): readonly number[] {
  return [...axes].sort((left, right) => left - right);
}

interface Side {
  readonly batching: readonly number[];
  readonly contracting: readonly number[];
  readonly free: readonly number[];
  readonly rank: number;
}

function sidesOf(numbers: DotNumbers, lhs: TensorType, rhs: TensorType): readonly [Side, Side] {
  const side = (
    batching: readonly number[],
    contracting: readonly number[],
    { shape }: TensorType,
  ): Side => ({
    batching,
    contracting,
    free: freeAxes(shape.length, batching, contracting),
    rank: shape.length,
  });
  return [
    side(numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions, lhs),
    side(numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions, rhs),
  ];
}

/**
 * The cotangent of one side: the product's cotangent with the other side, over the other's free axes. Its
 * axes are batch, own free, and the other's contracted ones in rising order; they are put where they belong.
 */
function dotBack(
  builder: GraphBuilder,
  cotangent: GraphValue,
  held: GraphValue,
  own: Side,
  other: Side,
  ownIsLeft: boolean,
  type: TensorType,
  attributes: DotAttributes,
): GraphValue {
  const batch = own.batching.length;
  const freeStart = ownIsLeft ? batch + own.free.length : batch;
  const { element } = typeOfValue(cotangent);
  const { algorithm } = attributes;
  const product = builder.one(
    "stablehlo.dot_general",
    { lhs: cotangent, rhs: convert(builder, held, element) },
    {
      dot_dimension_numbers: {
        lhs_batching_dimensions: range(0, batch),
        rhs_batching_dimensions: other.batching,
        lhs_contracting_dimensions: range(freeStart, other.free.length),
        rhs_contracting_dimensions: other.free,
      },
      precision_config: attributes.precision_config,
      // One of FP8 is for operands of FP8, which a cotangent is not.
      ...(algorithm !== undefined &&
        isKnownAlgorithm(algorithm, element, element) && { algorithm }),
    },
  );
  const contracted = rising(other.contracting);
  const permutation = range(0, own.rank).map((axis) => {
    const batching = own.batching.indexOf(axis);
    if (batching >= 0) return batching;
    const free = own.free.indexOf(axis);
    if (free >= 0) return batch + free;
    const partner = other.contracting[own.contracting.indexOf(axis)] ?? 0;
    return batch + own.free.length + contracted.indexOf(partner);
  });
  return convert(builder, transpose(builder, product, permutation), type.element);
}

/** dot_general as a map of its left or right operand. */
export function dotMap(
  which: "lhs" | "rhs",
  lhs: GraphValue,
  rhs: GraphValue,
  result: TensorType,
  attributes: DotAttributes,
): LinearMap {
  const [left, right] = sidesOf(
    attributes.dot_dimension_numbers,
    typeOfValue(lhs),
    typeOfValue(rhs),
  );
  const isLeft = which === "lhs";
  const own = isLeft ? left : right;
  const other = isLeft ? right : left;
  const held = isLeft ? rhs : lhs;
  const type = typeOfValue(isLeft ? lhs : rhs);
  return single(
    result,
    (builder, tangent) =>
      builder.one(
        "stablehlo.dot_general",
        isLeft ? { lhs: tangent, rhs } : { lhs, rhs: tangent },
        attributes,
        { types: [result] },
      ),
    (builder, cotangent) => dotBack(builder, cotangent, held, own, other, isLeft, type, attributes),
  );
}
