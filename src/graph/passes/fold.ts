/**
 * Computes ops of constants by the evaluator. Equal elements stay one: the op is evaluated for a single one
 * where it works element by element. Results of more than 64 KiB are left to be computed when they are needed.
 */
import { evaluate, isTensorDatum } from "../evaluate/index.ts";
import { GraphBuilder } from "../infer/builder.ts";
import { capturesOf, isPure } from "../ops/captures.ts";
import { elementwiseOps } from "../ops/elementwise.ts";
import { elementConstructor, isComplexElement, isFloatElement, slotsOf } from "../ops/elements.ts";
import { literal } from "../ops/literal.ts";
import type { Literal } from "../ops/literal.ts";
import { graphRegion, graphValue, moduleOf } from "../ops/node.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import { rebuildOp, replaceOperands } from "../ops/rebuild.ts";
import { operandsOf, regionsOf } from "../ops/traverse.ts";
import { isTensor, sizeOf, tensorType } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import { mapBodies, mapRegions } from "./pass.ts";
import type { GraphPass, OnRewrite } from "./pass.ts";

const largestResult = 64 * 1024;

function bytesOf({ element, shape }: TensorType): number {
  return sizeOf(shape) * slotsOf(element) * elementConstructor(element).BYTES_PER_ELEMENT;
}

type Constants = ReadonlyMap<GraphValue, Literal>;

/** The constants that an op is computed from; undefined where it depends on something else. */
function inputsOf(op: AnyGraphOp, constants: Constants): readonly Literal[] | undefined {
  const operands = operandsOf(op);
  const found = operands.flatMap((value) => constants.get(value) ?? []);
  const closed = regionsOf(op).every((region) => capturesOf(region).length === 0);
  const sized = op.results.every(({ type }) => isTensor(type) && bytesOf(type) <= largestResult);
  const computes = op.kind !== "stablehlo.constant" && operands.length > 0;
  return computes && found.length === operands.length && closed && isPure(op) && sized
    ? found
    : undefined;
}

/** Whether one element says it all: equal elements in operands of one shape, each computed on its own. */
function isOfOneElement(op: AnyGraphOp, inputs: readonly Literal[]): boolean {
  if (!Object.hasOwn(elementwiseOps, op.kind) || op.kind === "stablehlo.bitcast_convert")
    return false;
  const types = [...inputs.map(({ type }) => type), ...op.results.map(({ type }) => type)];
  const shape = inputs[0]?.type.shape.join();
  const alike = types.every((type) => isTensor(type) && type.shape.join() === shape);
  return alike && inputs.every(({ splat }) => splat);
}

function fold(op: AnyGraphOp, inputs: readonly Literal[]): readonly Literal[] {
  const single = isOfOneElement(op, inputs);
  const typed = (type: TensorType): TensorType => (single ? tensorType(type.element, []) : type);
  const types = op.results.flatMap(({ type }) => (isTensor(type) ? [type] : []));
  const builder = new GraphBuilder();
  const constants = new Map(
    operandsOf(op).map((value, i) => {
      const { type, data } = inputs[i] as Literal;
      const constant = { value: literal(typed(type), data) };
      return [value, builder.one("stablehlo.constant", {}, constant)];
    }),
  );
  const results = types.map((type) => graphValue(typed(type)));
  const computed = rebuildOp(op, { operand: (value) => constants.get(value) ?? value, results });
  const body = graphRegion([], [...builder.ops, computed], results);
  const tensors = evaluate(moduleOf(body), "main", []).filter(isTensorDatum);
  return types.map((type, i) => {
    const tensor = tensors[i];
    if (tensor === undefined) throw new Error("the op gives tensors");
    return literal(type, tensor.data);
  });
}

/** Whether only whole numbers are computed with, which nothing rounds. */
function isOfWholes(op: AnyGraphOp): boolean {
  return [...operandsOf(op), ...op.results].every(
    ({ type }) =>
      isTensor(type) && !isFloatElement(type.element) && !isComplexElement(type.element),
  );
}

function foldRegion(
  region: GraphRegion,
  outer: Constants,
  onRewrite: OnRewrite | undefined,
): GraphRegion {
  const constants = new Map(outer);
  const replaced = new Map<GraphValue, GraphValue>();
  const lookUp = (value: GraphValue): GraphValue => replaced.get(value) ?? value;
  const builder = new GraphBuilder();
  for (const original of region.ops) {
    const op = mapRegions(replaceOperands(original, lookUp), (inner) =>
      foldRegion(inner, constants, onRewrite),
    );
    const inputs = inputsOf(op, constants);
    if (inputs === undefined) {
      builder.append(op);
      if (op.kind === "stablehlo.constant" && !("kind" in op.attributes.value))
        for (const value of op.results) constants.set(value, op.attributes.value);
      continue;
    }
    onRewrite?.(isOfWholes(op) ? "of whole numbers" : "of floats");
    builder.within(op, () => {
      for (const [i, value] of fold(op, inputs).entries()) {
        const result = builder.one("stablehlo.constant", {}, { value });
        constants.set(result, value);
        const before = op.results[i];
        if (before !== undefined) replaced.set(before, result);
      }
    });
  }
  return graphRegion(region.parameters, builder.ops, region.results.map(lookUp));
}

export const foldPass: GraphPass = {
  name: "fold",
  rules: ["of whole numbers", "of floats"],
  run: (module, onRewrite) => mapBodies(module, (body) => foldRegion(body, new Map(), onRewrite)),
};
