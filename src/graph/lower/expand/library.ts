/** Ops that are other ops: the largest elements, scans, einsum, composites and calls that JAX prints. */
import type { GraphBuilder } from "../../infer/builder.ts";
import type { GraphModule, GraphOp, GraphValue } from "../../ops/node.ts";
import { inlineRegion } from "../../ops/rebuild.ts";
import { isTensor, tensorType } from "../../ops/types.ts";
import {
  binary,
  compare,
  convert,
  iota,
  reshape,
  splatOf,
  typeOfValue,
  zerosOf,
} from "../../transform/arithmetic.ts";
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

/** A loop over slices of an axis as a `while` that carries the outputs and writes a slice of each in every turn. */
export function expandScan(op: GraphOp<"chlo.scan">, builder: GraphBuilder): readonly GraphValue[] {
  const { inputs, inits } = op.operands;
  const { dimension, is_reverse: isReverse } = op.attributes;
  const outputs = op.results.slice(0, op.results.length - inits.length);
  const [first] = [...inputs, ...outputs];
  const extent = first === undefined ? 0 : (typeOfValue(first).shape[dimension] ?? 0);
  const counter = tensorType("i32", []);
  const start = [
    zerosOf(builder, counter),
    ...outputs.map((value) => zerosOf(builder, typeOfValue(value))),
    ...inits,
  ];
  const types = start.map(({ type }) => type);
  const cond = builder.region(types, (inner, [turn]) => [
    compare(inner, "LT", turn as GraphValue, splatOf(inner, counter, extent)),
  ]);
  const body = builder.region(types, (inner, parameters) => {
    const [turn, ...rest] = parameters as readonly [GraphValue, ...GraphValue[]];
    const at = isReverse
      ? binary(inner, "stablehlo.subtract", splatOf(inner, counter, extent - 1), turn)
      : turn;
    const zero = zerosOf(inner, counter);
    const startsOf = (value: GraphValue) =>
      typeOfValue(value).shape.map((_, axis) => (axis === dimension ? at : zero));
    const slices = inputs.map((operand) => {
      const { shape } = typeOfValue(operand);
      const cut = inner.one(
        "stablehlo.dynamic_slice",
        { operand, start_indices: startsOf(operand) },
        { slice_sizes: shape.map((each, axis) => (axis === dimension ? 1 : each)) },
      );
      const kept = shape.filter((_, axis) => axis !== dimension);
      return reshape(inner, cut, kept);
    });
    const carries = rest.slice(outputs.length);
    const results = inlineRegion(inner, op.regions.body, [...slices, ...carries]);
    const written = outputs.map((_, i) => {
      const operand = rest[i] as GraphValue;
      const { shape } = typeOfValue(operand);
      const one = shape.map((each, axis) => (axis === dimension ? 1 : each));
      const update = reshape(inner, results[i] as GraphValue, one);
      return inner.one(
        "stablehlo.dynamic_update_slice",
        { operand, update, start_indices: startsOf(operand) },
        {},
      );
    });
    const next = binary(inner, "stablehlo.add", turn, splatOf(inner, counter, 1));
    return [next, ...written, ...results.slice(outputs.length)];
  });
  return builder
    .add("stablehlo.while", { operand: start }, {}, { regions: { cond, body } })
    .slice(1);
}

/** Zeros for what a call would only allocate. */
export function expandZeros(
  op: GraphOp<"stablehlo.custom_call">,
  builder: GraphBuilder,
): readonly GraphValue[] {
  return op.results.map((value) => zerosOf(builder, typeOfValue(value)));
}
