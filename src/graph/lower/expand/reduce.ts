/**
 * Reductions of much to little, in two steps: as one kernel they would have too few blocks to fill a GPU. The reduced axes
 * are cut into parts, each part is reduced by blocks of its own, and then the parts. Floats of 16 bits and fewer are summed in f32 through
 * both steps and rounded once.
 *
 *   bf16[8192, 768] over rows     24 blocks of 8192 rows  ->  f32[32, 768] by 768 blocks, then bf16[768]
 */
import type { GraphBuilder } from "../../infer/builder.ts";
import { combinerKind, isCombiner, neutralNumbers } from "../../ops/combiner.ts";
import { isFloatElement, isNarrowFloat } from "../../ops/elements.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { tensorType } from "../../ops/types.ts";
import { combiner, convert, reshape, splatOf, typeOfValue } from "../../transform/arithmetic.ts";
import { blockCount, blocked } from "../tiled/reduction-view.ts";

type Reduce = GraphOp<"stablehlo.reduce">;

/** As many blocks as keep a large GPU busy. */
const enoughBlocks = 512;
const leastReduced = 2048;
const leastPart = 64;

/** Into how many parts the reduced elements are cut; 1 where one kernel does it. */
function partsOf(op: Reduce): number {
  const [operand, ...others] = op.operands.inputs;
  const [result] = op.results;
  if (operand === undefined || result === undefined || others.length > 0) return 1;
  const { shape, element } = typeOfValue(operand);
  const view = blocked(shape, op.attributes.dimensions);
  if (view === undefined || !isCombiner(combinerKind(op.regions.body))) return 1;
  if (!isFloatElement(element) || typeOfValue(result).element !== element) return 1;
  const wanted = Math.ceil(enoughBlocks / Math.max(1, blockCount(view)));
  if (view.reduced < leastReduced || wanted < 2) return 1;
  let parts = Math.min(wanted, Math.floor(view.reduced / leastPart));
  while (view.reduced % parts !== 0) parts -= 1;
  return parts;
}

export function isWorthSplitting(op: Reduce): boolean {
  return partsOf(op) > 1;
}

export function expandReduce(op: Reduce, builder: GraphBuilder): readonly GraphValue[] {
  const [operand] = op.operands.inputs;
  const [init] = op.operands.init_values;
  const [result] = op.results;
  const kind = combinerKind(op.regions.body);
  if (operand === undefined || init === undefined || result === undefined || !isCombiner(kind))
    throw new Error("the reduction was found worth splitting");
  const { shape, element } = typeOfValue(operand);
  const view = blocked(shape, op.attributes.dimensions);
  if (view === undefined) throw new Error("the reduced axes lie side by side");
  const { outer, reduced, inner } = view;
  const parts = partsOf(op);
  const working = isNarrowFloat(element) ? "f32" : element;
  const wide = convert(builder, operand, working);
  const reduceAxis = (value: GraphValue, start: GraphValue, axis: number): GraphValue =>
    builder.one(
      "stablehlo.reduce",
      { inputs: [value], init_values: [start] },
      { dimensions: [axis] },
      { regions: { body: combiner(builder, working, kind) } },
    );
  const nothing = splatOf(builder, tensorType(working, []), neutralNumbers[kind](working));
  const cut = reshape(builder, wide, [outer, parts, reduced / parts, inner]);
  const some = reduceAxis(cut, nothing, 2);
  const all = reduceAxis(some, convert(builder, init, working), 1);
  return [reshape(builder, convert(builder, all, element), typeOfValue(result).shape)];
}
