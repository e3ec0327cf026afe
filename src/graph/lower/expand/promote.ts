/**
 * Combinations in a wider type than their operands have: the region takes and gives f32 where the elements are bf16. Devices
 * combine elements of the type that they load, so the operands are converted first, which is exact.
 *
 *   reduce(x: bf16) in f32     reduce(convert(x): f32) in f32
 */
import type { GraphBuilder } from "../../infer/builder.ts";
import type { GraphOp, GraphRegion, GraphValue } from "../../ops/node.ts";
import { inlineRegion } from "../../ops/rebuild.ts";
import { tensorType } from "../../ops/types.ts";
import { convert, typeOfValue } from "../../transform/arithmetic.ts";

type Reduction = GraphOp<"stablehlo.reduce"> | GraphOp<"stablehlo.reduce_window">;
type Scatter = GraphOp<"stablehlo.scatter">;
type SelectAndScatter = GraphOp<"stablehlo.select_and_scatter">;

function isWider(value: GraphValue, result: GraphValue | undefined): boolean {
  return result !== undefined && typeOfValue(result).element !== typeOfValue(value).element;
}

/** Whether the region computes in another type than the elements have. */
export function isPromoting(op: Reduction | Scatter | SelectAndScatter): boolean {
  const inputs = "inputs" in op.operands ? op.operands.inputs : [op.operands.operand];
  return inputs.some((input, i) => isWider(input, op.results[i]));
}

function converted(
  builder: GraphBuilder,
  values: readonly GraphValue[],
  results: readonly GraphValue[],
): readonly GraphValue[] {
  return values.map((value, i) =>
    convert(builder, value, typeOfValue(results[i] ?? value).element),
  );
}

export function promoteReduction(op: Reduction, builder: GraphBuilder): readonly GraphValue[] {
  const operands = {
    inputs: converted(builder, op.operands.inputs, op.results),
    init_values: converted(builder, op.operands.init_values, op.results),
  };
  const { regions } = op;
  return op.kind === "stablehlo.reduce"
    ? builder.add(op.kind, operands, op.attributes, { regions })
    : builder.add(op.kind, operands, op.attributes, { regions });
}

export function promoteScatter(op: Scatter, builder: GraphBuilder): readonly GraphValue[] {
  const operands = {
    ...op.operands,
    inputs: converted(builder, op.operands.inputs, op.results),
    updates: converted(builder, op.operands.updates, op.results),
  };
  return builder.add(op.kind, operands, op.attributes, { regions: op.regions });
}

/** The region that selects computes in the elements' own type, so it converts them back, which is exact too. */
export function promoteSelection(
  op: SelectAndScatter,
  builder: GraphBuilder,
): readonly GraphValue[] {
  const { operand, source, init_value: init } = op.operands;
  const own = typeOfValue(operand).element;
  const wide = typeOfValue(op.results[0] ?? operand).element;
  const scalar = tensorType(wide, []);
  const select: GraphRegion = builder.region([scalar, scalar], (inner, parameters) =>
    inlineRegion(
      inner,
      op.regions.select,
      parameters.map((each) => convert(inner, each, own)),
    ),
  );
  return builder.add(
    op.kind,
    {
      operand: convert(builder, operand, wide),
      source: convert(builder, source, wide),
      init_value: convert(builder, init, wide),
    },
    op.attributes,
    { regions: { select, scatter: op.regions.scatter } },
  );
}
