/** Rules of ops that combine elements by a region. */
import type { GraphOp, GraphRules } from "../../ops/index.ts";
import { windowsOf } from "../../ops/windows.ts";
import { emptyTensor } from "../value.ts";
import { promoted } from "../arithmetic.ts";
import type { Tensor } from "../value.ts";
import type { Frame, RuleResult } from "../frame.ts";
import { mapInPieces } from "../map.ts";
import { reduce, reduceWindow, selectAndScatter } from "../reduce.ts";
import type { Reduction } from "../reduce.ts";
import { regionFunction } from "../region.ts";
import type { Scalar } from "../scalars.ts";
import { sort } from "../sort.ts";
import { one } from "./shared.ts";

function reductionOf(
  op: GraphOp<"stablehlo.reduce"> | GraphOp<"stablehlo.reduce_window">,
  frame: Frame,
): Reduction {
  const types = op.results.map((_, i) => frame.result(op, i));
  const wide = (tensors: readonly Tensor[]): readonly Tensor[] =>
    tensors.map((each, i) => promoted(each, types[i]?.element ?? each.element));
  return {
    inputs: wide(frame.tensors(op.operands.inputs)),
    inits: wide(frame.tensors(op.operands.init_values)),
    body: op.regions.body,
    types,
    frame,
    op,
  };
}

export const reductionRules = {
  "stablehlo.reduce": (op, frame) => reduce(reductionOf(op, frame), op.attributes.dimensions),
  "stablehlo.reduce_window": (op, frame) =>
    reduceWindow(reductionOf(op, frame), windowsOf(op.attributes.window_dimensions, op.attributes)),
  "stablehlo.select_and_scatter": (op, frame) => {
    const operand = frame.tensor(op.operands.operand);
    const { element } = frame.result(op);
    const sizes = op.attributes.window_dimensions ?? operand.shape.map(() => 1);
    return one(
      selectAndScatter(
        operand,
        promoted(frame.tensor(op.operands.source), element),
        promoted(frame.tensor(op.operands.init_value), element),
        windowsOf(sizes, op.attributes),
        op.regions,
        frame,
        op,
      ),
    );
  },
  "stablehlo.sort": (op, frame) =>
    sort(
      frame.tensors(op.operands.inputs),
      op.attributes.dimension,
      op.regions.comparator,
      frame,
      op,
    ),
  "stablehlo.map": (op, frame) => {
    const run = regionFunction(op.regions.computation, frame, op);
    const compute = (...inputs: Scalar[]) => run(...inputs)[0] as Scalar;
    return one(
      mapInPieces(emptyTensor(frame.result(op)), compute, frame.tensors(op.operands.inputs)),
    );
  },
} satisfies Partial<GraphRules<[Frame], RuleResult>>;
