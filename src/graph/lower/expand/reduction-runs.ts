/**
 * Reductions over axes that lie apart, one run of neighbours after the other. By an op whose operands may change places the longest run
 * goes first, since least is left then; by any other region the innermost, which keeps the order of the elements.
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
import { combiner, convert, reshape, splatOf, typeOfValue } from "../../transform/arithmetic.ts";
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

/** Ops whose operands may change places, beside those that have a neutral number. */
const commutative: ReadonlySet<GraphOpKind> = new Set<GraphOpKind>([
  "stablehlo.and",
  "stablehlo.or",
  "stablehlo.xor",
]);

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
  if (input === undefined || init === undefined || others.length > 0 || !isCombiner(kind))
    return { ...same, last: same };
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
