/** Rules of loops, branches, calls and tuples. */
import { unknownOpReason } from "../../ops/table.ts";
import type { GraphRules } from "../../ops/index.ts";
import * as control from "../control.ts";
import { evaluateCustomCall } from "../custom-calls.ts";
import { unsupported } from "../frame.ts";
import { manualComputation } from "../manual.ts";
import type { Frame, RuleResult } from "../frame.ts";
import { scalarNumber } from "../scalars.ts";

export const controlRules = {
  "stablehlo.while": ({ operands, regions }, frame) =>
    control.repeatWhile(frame, frame.data(operands.operand), regions.cond, regions.body),
  "stablehlo.case": ({ operands, regions }, frame) =>
    control.chooseBranch(frame, scalarNumber(frame.tensor(operands.index)), regions.branches),
  "stablehlo.if": ({ operands, regions }, frame) => {
    const holds = scalarNumber(frame.tensor(operands.pred)) !== 0;
    return control.chooseBranch(frame, holds ? 0 : 1, [regions.true_branch, regions.false_branch]);
  },
  "stablehlo.optimization_barrier": (op, frame) => frame.data(op.operands.operand),
  "func.call": (op, frame) =>
    frame.session.runFunction(
      op.attributes.callee,
      frame.data(op.operands.inputs),
      frame.session,
      op,
    ),
  "stablehlo.composite": (op, frame) =>
    frame.session.runFunction(
      op.attributes.decomposition,
      frame.data(op.operands.inputs),
      frame.session,
      op,
    ),
  "stablehlo.custom_call": evaluateCustomCall,
  "stablehlo.tuple": (op, frame) => [{ kind: "tuple", members: frame.data(op.operands.val) }],
  "stablehlo.get_tuple_element": (op, frame) => {
    const tuple = frame.datum(op.operands.operand);
    const member = tuple.kind === "tuple" ? tuple.members[op.attributes.index] : undefined;
    if (member === undefined) throw unsupported(op, "its operand has no such member");
    return [member];
  },
  "sdy.manual_computation": manualComputation,
  "sdy.sharding_constraint": (op, frame) => [frame.datum(op.operands.input)],
  "tilewright.custom_vjp": (op, frame) =>
    frame.session.runRegion(op.regions.body, frame.data(op.operands.inputs), frame),
  "tilewright.checkpoint": (op, frame) =>
    frame.session.runRegion(op.regions.body, frame.data(op.operands.inputs), frame),
  "tilewright.name": (op, frame) => [frame.datum(op.operands.operand)],
  "tilewright.stop_gradient": (op, frame) => [frame.datum(op.operands.operand)],
  foreign: (op) => {
    throw unsupported(op, unknownOpReason(op.attributes.op_name));
  },
} satisfies Partial<GraphRules<[Frame], RuleResult>>;
