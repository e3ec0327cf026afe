/** chlo.scan as a loop. */
import type { GraphBuilder } from "../../infer/builder.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { inlineRegion } from "../../ops/rebuild.ts";
import { tensorType } from "../../ops/types.ts";
import { binary, compare, reshape, splatOf, typeOfValue, zerosOf } from "../arithmetic.ts";

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
