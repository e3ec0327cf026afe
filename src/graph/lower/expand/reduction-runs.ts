/**
 * Reductions over axes that lie apart, one run of neighbours after the other. By an op whose operands may change places the longest run
 * goes first, since least is left then; by any other region the innermost, which keeps the order of the elements. A region whose initial values
 * would change something if they took part in each run has its axes moved side by side.
 *
 *   f32[8, 64, 64, 32, 4] over 1, 2, 4      [8, 4096, 128] over 1, then [8, 32, 4] over 2
 *
 * Sums and products of floats of 16 bits and fewer are in f32 between, and rounded once.
 */
import type { GraphBuilder } from "../../infer/builder.ts";
import { combinerKind, isCombiner, neutralNumbers } from "../../ops/combiner.ts";
import { isNarrowFloat } from "../../ops/elements.ts";
import type { GraphOp, GraphRegion, GraphValue } from "../../ops/node.ts";
import { copyRegion } from "../../ops/rebuild.ts";
import type { GraphOpKind } from "../../ops/table.ts";
import { sizeOf, tensorType } from "../../ops/types.ts";
import {
  combiner,
  convert,
  reshape,
  splatOf,
  transpose,
  typeOfValue,
} from "../../transform/arithmetic.ts";
import { closedRegion, identityOf } from "./monoid.ts";
import { runsOf } from "../tiled/reduction-view.ts";

type Reduce = GraphOp<"stablehlo.reduce">;

function runsOfReduction({ operands, attributes }: Reduce) {
  const [first] = operands.inputs;
  const shape = first === undefined ? [] : typeOfValue(first).shape;
  return { shape, runs: runsOf(shape, attributes.dimensions) };
}

/** Whether other axes lie between the reduced ones. */
export function hasRuns(op: Reduce): boolean {
  const { shape, runs } = runsOfReduction(op);
  return sizeOf(shape) > 0 && runs.filter(({ isReduced }) => isReduced).length > 1;
}

/** Ops whose operands may change places, beside combiners. */
const commutative: ReadonlySet<GraphOpKind> = new Set<GraphOpKind>([
  "stablehlo.and",
  "stablehlo.or",
  "stablehlo.xor",
]);

/** The same reduction over one run: the reduced axes are moved to the end, in their order. */
function sideBySide(op: Reduce, builder: GraphBuilder): readonly GraphValue[] {
  const { inputs, init_values: inits } = op.operands;
  const { dimensions } = op.attributes;
  const { shape } = runsOfReduction(op);
  const axes = shape.map((_, axis) => axis);
  const kept = axes.filter((axis) => !dimensions.includes(axis));
  const order = [...kept, ...axes.filter((axis) => dimensions.includes(axis))];
  return builder.add(
    "stablehlo.reduce",
    { inputs: inputs.map((value) => transpose(builder, value, order)), init_values: inits },
    { dimensions: order.slice(kept.length).map((_, i) => kept.length + i) },
    { regions: { body: copyRegion(op.regions.body, new Map()) } },
  );
}

/** Whether initial values that take part more than once change nothing. */
function mayRepeatInits(op: Reduce, builder: GraphBuilder): boolean {
  const body = closedRegion(builder, op.regions.body);
  return body !== undefined && identityOf(builder, body, op.operands.init_values) !== undefined;
}

interface Between {
  readonly inputs: readonly GraphValue[];
  readonly inits: readonly GraphValue[];
  readonly body: GraphRegion;
}

/** Operands, initial values and region for all runs but the last, which takes in the program's own initial values. */
function betweenRuns(op: Reduce, builder: GraphBuilder): Between & { readonly last: Between } {
  const { inputs, init_values: inits } = op.operands;
  const { body } = op.regions;
  const [input, ...others] = inputs;
  const [init] = inits;
  const kind = combinerKind(body);
  const same = { inputs, inits, body };
  if (input === undefined || init === undefined || others.length > 0)
    return { ...same, last: same };
  // An initial value that "and" and "or" take in twice changes nothing; of xor it would be gone.
  if (kind === "stablehlo.xor")
    return { ...same, inits: [splatOf(builder, typeOfValue(init), 0)], last: same };
  if (!isCombiner(kind)) return { ...same, last: same };
  const { element } = typeOfValue(input);
  const isRounded = kind === "stablehlo.add" || kind === "stablehlo.multiply";
  const working = isRounded && isNarrowFloat(element) ? "f32" : element;
  const wide = {
    inputs: [convert(builder, input, working)],
    body: working === element ? body : combiner(builder, working, kind),
  };
  const nothing = splatOf(builder, tensorType(working, []), neutralNumbers[kind](working));
  const start = convert(builder, init, working);
  return { ...wide, inits: [nothing], last: { ...wide, inits: [start] } };
}

export function expandRuns(op: Reduce, builder: GraphBuilder): readonly GraphValue[] {
  const kind = combinerKind(op.regions.body);
  const isAnyOrder =
    op.operands.inputs.length === 1 &&
    kind !== undefined &&
    (isCombiner(kind) || commutative.has(kind));
  if (!isAnyOrder && !mayRepeatInits(op, builder)) return sideBySide(op, builder);
  const between = betweenRuns(op, builder);
  let { runs } = runsOfReduction(op);
  let values = between.inputs;
  for (;;) {
    const reduced = runs.filter(({ isReduced }) => isReduced);
    const longest = Math.max(...reduced.map(({ extent }) => extent));
    const at = isAnyOrder
      ? runs.findIndex(({ isReduced, extent }) => isReduced && extent === longest)
      : runs.findLastIndex(({ isReduced }) => isReduced);
    const extents = runs.map(({ extent }) => extent);
    const { inits, body } = reduced.length === 1 ? between.last : between;
    values = builder.add(
      "stablehlo.reduce",
      { inputs: values.map((value) => reshape(builder, value, extents)), init_values: inits },
      { dimensions: [at] },
      { regions: { body: copyRegion(body, new Map()) } },
    );
    runs = runs.toSpliced(at, 1);
    if (reduced.length === 1) break;
  }
  return values.map((value, i) => {
    const { shape, element } = typeOfValue(op.results[i] ?? value);
    return reshape(builder, convert(builder, value, element), shape);
  });
}
