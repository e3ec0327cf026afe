/** Rules of the CHLO dialect. */
import type { GraphRules } from "../../ops/index.ts";
import * as control from "../control.ts";
import { unsupported } from "../frame.ts";
import type { Frame, RuleResult } from "../frame.ts";
import { raggedDot } from "../ragged-dot.ts";
import { topK } from "../sort.ts";
import { elementwise, refuse } from "./shared.ts";

export const chloRules = {
  "chlo.acos": elementwise,
  "chlo.acosh": elementwise,
  "chlo.asin": elementwise,
  "chlo.asin_acos_kernel": refuse("it is a part of the expansion of asin and acos"),
  "chlo.asinh": elementwise,
  "chlo.atan": elementwise,
  "chlo.atanh": elementwise,
  "chlo.bessel_i1e": elementwise,
  "chlo.conj": elementwise,
  "chlo.cosh": elementwise,
  "chlo.digamma": elementwise,
  "chlo.erf": elementwise,
  "chlo.erf_inv": elementwise,
  "chlo.erfc": elementwise,
  "chlo.is_inf": elementwise,
  "chlo.is_neg_inf": elementwise,
  "chlo.is_pos_inf": elementwise,
  "chlo.lgamma": elementwise,
  "chlo.sinh": elementwise,
  "chlo.square": elementwise,
  "chlo.tan": elementwise,
  "chlo.next_after": elementwise,
  "chlo.polygamma": elementwise,
  "chlo.zeta": elementwise,
  "chlo.mulhi": elementwise,
  "chlo.top_k": (op, frame) =>
    topK(frame.tensor(op.operands.operand), op.attributes.k, [
      frame.result(op, 0),
      frame.result(op, 1),
    ]),
  "chlo.ragged_dot": function* (op, frame) {
    const result = yield* raggedDot(
      frame.tensor(op.operands.lhs),
      frame.tensor(op.operands.rhs),
      frame.tensor(op.operands.group_sizes),
      op.attributes.ragged_dot_dimension_numbers,
      frame.result(op),
    );
    if (result === undefined) throw unsupported(op, "its groups have more than one axis");
    return [result];
  },
  "chlo.scan": (op, frame) =>
    control.scan(op, frame, {
      inputs: frame.tensors(op.operands.inputs),
      inits: frame.tensors(op.operands.inits),
      dimension: op.attributes.dimension,
      reversed: op.attributes.is_reverse,
      body: op.regions.body,
    }),
} satisfies Partial<GraphRules<[Frame], RuleResult>>;
