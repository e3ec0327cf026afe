/**
 * Scatters as scatters that add. Which update an element gets when several are written to it is found out by scattering
 * the updates' numbers the same way: those that are found again at their places have won.
 */
import type { GraphBuilder } from "../../infer/builder.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { sizeOf, tensorType } from "../../ops/types.ts";
import {
  combiner,
  compare,
  iota,
  like,
  multiply,
  reshape,
  select,
  splatOf,
  typeOfValue,
  zerosOf,
} from "../arithmetic.ts";
import { scatterAdding } from "../scatter-transpose-rules.ts";

type Scatter = GraphOp<"stablehlo.scatter">;

function single(op: Scatter): { readonly operand: GraphValue; readonly update: GraphValue } {
  const [operand] = op.operands.inputs;
  const [update] = op.operands.updates;
  if (operand === undefined || update === undefined) throw new Error("the scatter has an operand");
  return { operand, update };
}

/** The op's places with other values; regions are those of the op, or add. */
function scattered(
  builder: GraphBuilder,
  op: Scatter,
  operand: GraphValue,
  update: GraphValue,
  combination: "replace" | "add",
): GraphValue {
  const { element } = typeOfValue(operand);
  const scalar = tensorType(element, []);
  const update_computation =
    combination === "add"
      ? combiner(builder, element, "stablehlo.add")
      : builder.region([scalar, scalar], (_, [, replacement]) => [replacement as GraphValue]);
  return builder.one(
    "stablehlo.scatter",
    { inputs: [operand], scatter_indices: op.operands.scatter_indices, updates: [update] },
    op.attributes,
    { regions: { update_computation } },
  );
}

/** The operand where nothing is written, plus the updates that win. */
export function expandReplacing(op: Scatter, builder: GraphBuilder): readonly GraphValue[] {
  const { operand, update } = single(op);
  const { shape } = typeOfValue(update);
  const count = sizeOf(shape);
  const line = iota(builder, tensorType("i32", [count]), 0);
  const numbers = reshape(builder, line, shape);
  const places = tensorType("i32", typeOfValue(operand).shape);
  const none = splatOf(builder, places, -1);
  const winners = scattered(builder, op, none, numbers, "replace");
  const isFree = compare(builder, "EQ", winners, none);
  const found = scatterAdding(
    {
      operand: places,
      update: tensorType("i32", shape),
      indices: op.operands.scatter_indices,
      numbers: op.attributes.scatter_dimension_numbers,
      sorted: op.attributes.indices_are_sorted,
      unique: op.attributes.unique_indices,
    },
    { operand: false, update: true },
  ).transpose(builder, [winners])[0];
  if (found === undefined) throw new Error("the winners have places");
  const wins = compare(builder, "EQ", found, numbers);
  const kept = select(builder, isFree, operand, zerosOf(builder, typeOfValue(operand)));
  const won = select(builder, wins, update, zerosOf(builder, typeOfValue(update)));
  return [scattered(builder, op, kept, won, "add")];
}

/** The operand times an array of ones into which the updates are written. */
export function expandMultiplying(op: Scatter, builder: GraphBuilder): readonly GraphValue[] {
  const { operand, update } = single(op);
  const ones = like(builder, operand, 1);
  return [multiply(builder, operand, scattered(builder, op, ones, update, "replace"))];
}
