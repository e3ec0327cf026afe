/** Ops that are other ops: the largest elements, composites and calls that JAX prints. */
import type { GraphBuilder } from "../../infer/builder.ts";
import type { GraphModule, GraphOp, GraphValue } from "../../ops/node.ts";
import { inlineRegion } from "../../ops/rebuild.ts";
import { isTensor, tensorType } from "../../ops/types.ts";
import { convert, iota, typeOfValue, zerosOf } from "../../transform/arithmetic.ts";
import { cannotRun } from "../storage.ts";

/** A sort in the total order of floats, largest first, that carries indices along; ties keep their order. */
export function largest(
  builder: GraphBuilder,
  operand: GraphValue,
  types: readonly GraphValue[],
): readonly GraphValue[] {
  const { shape, element } = typeOfValue(operand);
  const last = shape.length - 1;
  const indices = iota(builder, tensorType("i32", shape), last);
  const scalar = tensorType(element, []);
  const index = tensorType("i32", []);
  const comparator = builder.region([scalar, scalar, index, index], (inner, [lhs, rhs]) => [
    inner.one(
      "stablehlo.compare",
      { lhs: lhs as GraphValue, rhs: rhs as GraphValue },
      { comparison_direction: "GT", compare_type: "TOTALORDER" },
    ),
  ]);
  const sorted = builder.add(
    "stablehlo.sort",
    { inputs: [operand, indices] },
    { dimension: last, is_stable: true },
    { regions: { comparator } },
  );
  return sorted.map((value, i) => {
    const wanted = types[i];
    const limits = wanted === undefined || !isTensor(wanted.type) ? shape : wanted.type.shape;
    const cut = builder.one(
      "stablehlo.slice",
      { operand: value },
      {
        start_indices: shape.map(() => 0),
        limit_indices: limits,
        strides: shape.map(() => 1),
      },
    );
    return wanted === undefined ? cut : convert(builder, cut, typeOfValue(wanted).element);
  });
}

/** The decomposition of a composite, in its place. */
export function expandComposite(
  op: GraphOp<"stablehlo.composite">,
  builder: GraphBuilder,
  module: GraphModule,
): readonly GraphValue[] {
  const found = module.functions.get(op.attributes.decomposition);
  if (found === undefined)
    throw cannotRun(op, `the module has no function @${op.attributes.decomposition}`);
  return inlineRegion(builder, found.body, op.operands.inputs, op.name);
}

/** Zeros for what a call would only allocate. */
export function expandZeros(
  op: GraphOp<"stablehlo.custom_call">,
  builder: GraphBuilder,
): readonly GraphValue[] {
  return op.results.map((value) => zerosOf(builder, typeOfValue(value)));
}
