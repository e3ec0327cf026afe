/**
 * Reductions over tiles. The reduced axes are neighbours, so that in memory the operand is [outer, reduced, inner]; a block folds windows of
 * a matrix, by whatever combines them (`combining.ts`).
 *
 *   inner = 1    matrix [outer, reduced]             windows of some rows, along the columns
 *   inner > 1    matrix [outer · reduced, inner]     windows of some columns of one outer index, along the rows
 *
 * Where that would be too few blocks (`reduction-view.ts`) the reduced elements are cut into parts: blocks fold one each, a second
 * kernel folds what they left, in order.
 */
import { i32 } from "../../../formats/dtype.ts";
import { cdiv, full, iota, loop, slice } from "../../../lang/index.ts";
import type { Scalar, Tile } from "../../../lang/index.ts";
import { elements } from "../../ops/elements.ts";
import { graphValue } from "../../ops/node.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { tensorType } from "../../ops/types.ts";
import { typeOfValue } from "../../transform/arithmetic.ts";
import { capturesOf } from "../../ops/captures.ts";
import type { KernelStep } from "../lowering.ts";
import { Points } from "../points/points.ts";
import { storageOf, tensorTypeOf } from "../storage.ts";
import { select } from "../tiles/bits.ts";
import { converted } from "../tiles/convert.ts";
import { combiningOf } from "./combining.ts";
import type { Combining } from "./combining.ts";
import { viewOf, viewOfParts } from "./reduction-view.ts";
import type { ReductionView } from "./reduction-view.ts";
import type { TiledKernel } from "./tiled.ts";

type Reduce = GraphOp<"stablehlo.reduce">;

/** One of the kernels of a reduction: what it folds, and whether that is elements or parts, and results or parts again. */
interface Stage {
  readonly view: ReductionView;
  readonly combining: Combining;
  readonly inputs: readonly GraphValue[];
  readonly isLast: boolean;
}

function reductionOf(op: Reduce) {
  const [first] = op.operands.inputs;
  // Complex numbers become pairs first.
  const isHeld = op.operands.inputs.every(
    (value) => storageOf(typeOfValue(value).element) !== undefined,
  );
  if (first === undefined || !isHeld) return undefined;
  const { shape, element } = tensorTypeOf(first);
  const view = viewOf(shape, op.attributes.dimensions, elements[element].bits);
  const combining = view === undefined ? undefined : combiningOf(op);
  return view === undefined || combining === undefined ? undefined : { view, combining };
}

/** The kernel of a reduction that blocks make as a whole. */
export function tiledReduce(op: Reduce): TiledKernel | undefined {
  const found = reductionOf(op);
  return found === undefined
    ? undefined
    : reduceKernel({ ...found, inputs: op.operands.inputs, isLast: true });
}

/** Whether a reduction would have too few blocks as one kernel. */
export function isInParts(op: Reduce): boolean {
  return (reductionOf(op)?.view.parts ?? 1) > 1;
}

/** What the kernels of a reduction in parts compute where they use it. */
export function reducedInline(op: Reduce): readonly GraphValue[] {
  return [...op.operands.inputs, ...op.operands.init_values, ...capturesOf(op.regions.body)];
}

export function reduceInParts(op: Reduce): readonly KernelStep[] {
  const found = reductionOf(op);
  if (found === undefined) throw new Error("blocks make parts of the reduction");
  const { view, combining } = found;
  const { inputs, init_values: inits } = op.operands;
  const around = [...inits, ...capturesOf(op.regions.body)];
  const parts = combining.working.map((element) =>
    graphValue(tensorType(element, [view.outer, view.parts, view.inner])),
  );
  const widest = Math.max(...combining.working.map((element) => elements[element].bits));
  const last = { view: viewOfParts(view, widest), combining, inputs: parts, isLast: true };
  return [
    {
      title: "parts",
      inputs: [],
      results: parts,
      key: `parts of ${op.attributes.dimensions.join()}`,
      uses: [...inputs, ...around],
      tiled: reduceKernel({ view, combining, inputs, isLast: false }),
    },
    {
      title: "whole",
      inputs: parts,
      results: op.results,
      key: `whole of ${op.attributes.dimensions.join()}`,
      uses: around,
      tiled: reduceKernel(last),
    },
  ];
}

function reduceKernel({ view, combining, inputs, isLast }: Stage): TiledKernel {
  const { outer, reduced, inner, along, depth, width, parts, part } = view;
  const isRows = along === 1;
  const tile = isRows ? [width, depth] : [depth, width];
  const kept = isRows ? [width, 1] : [1, width];
  const carried = combining.isWhole ? tile : kept;
  const matrix = isRows
    ? { rows: outer, columns: reduced }
    : { rows: outer * reduced, columns: inner };
  const [first] = inputs;
  const shape = first === undefined ? [] : tensorTypeOf(first).shape;
  const results = isRows ? cdiv(outer, width) : cdiv(inner, width);
  const suffix = combining.isWhole ? "" : "_with";
  return {
    title: `${isRows ? "rows" : "columns"}${suffix}`,
    grid: {
      ...(!isRows && { outer }),
      results,
      ...(parts > 1 && { part: parts }),
    },
    loadsWindows: false,
    body: ({ context, outputs, at }) => {
      const begin = at("results").mul(width);
      const neutral = combining.neutral(context);
      const start = neutral.map((value) => value.broadcastTo(carried));
      const sums = loop({ to: cdiv(part, depth), carry: start }, (step, carry) => {
        const own = step.mul(depth);
        const offset = parts > 1 ? at("part").mul(part).add(own) : own;
        const place = isRows
          ? { row: begin, column: offset }
          : { row: at("outer").mul(reduced).add(offset), column: begin };
        const points = Points.window(shape, tile, { ...matrix, ...place });
        const within = context.inner();
        const values = inputs.map((input, i) => {
          const working = combining.working[i] ?? "f32";
          const value = within.element(input, points);
          const lifted = converted(value, tensorTypeOf(input).element, working);
          return inside(lifted, neutral[i] ?? lifted, view, offset).broadcastTo(tile);
        });
        return combining
          .add(carry, values, along, within)
          .map((value) => value.broadcastTo(carried));
      });
      const whole = combining.along(sums, along);
      const found = isLast ? combining.finish(whole, context) : whole;
      for (const [i, value] of found.entries()) {
        const places = [
          isRows ? slice(begin, width) : at("outer"),
          parts > 1 ? at("part") : 0,
          isRows ? 0 : slice(begin, width),
        ] as const;
        outputs[i]
          ?.reshape([outer, parts, inner])
          .at(...places)
          .store(value.broadcastTo(kept).reshape([width]));
      }
    },
  };
}

/** Elements beyond the reduced ones change nothing. */
function inside(
  value: Tile,
  neutral: Tile,
  { reduced, depth, along, parts, part }: ReductionView,
  offset: Scalar<"i32">,
): Tile {
  if (parts * part === reduced) return value;
  const place = iota(i32, along === 1 ? [1, depth] : [depth, 1], { axis: along }).add(offset);
  return select(place.lt(full(i32, [1], reduced)), value, neutral);
}
