/** Rules of the ops of StableHLO's tests. */
import type { GraphRules } from "../../ops/index.ts";
import { expectAlmostEqual, expectClose, expectEqual, scalarText } from "../checks.ts";
import { countOf, datumText, tensorOfLiteral } from "../value.ts";
import type { Tensor } from "../value.ts";
import { unsupported } from "../frame.ts";
import type { Frame, RuleResult } from "../frame.ts";
import { runGrid } from "../grid.ts";
import { reader } from "../scalars.ts";
import { constant } from "./shared.ts";

function printed(value: Tensor): string {
  const read = reader(value);
  const values = Array.from({ length: countOf(value) }, (_, i) => scalarText(read(i)));
  return `${datumText(value)} {${values.join(", ")}}`;
}

export const testingRules = {
  "check.expect_eq": (op, frame) => {
    expectEqual(op, frame.tensor(op.operands.lhs), frame.tensor(op.operands.rhs));
    return [];
  },
  "check.expect_eq_const": (op, frame) => {
    expectEqual(
      op,
      frame.tensor(op.operands.lhs),
      constant(tensorOfLiteral(op.attributes.value), frame),
    );
    return [];
  },
  "check.expect_almost_eq": (op, frame) => {
    const { lhs, rhs } = op.operands;
    expectAlmostEqual(op, frame.tensor(lhs), frame.tensor(rhs), op.attributes.tolerance);
    return [];
  },
  "check.expect_almost_eq_const": (op, frame) => {
    const expected = constant(tensorOfLiteral(op.attributes.value), frame);
    expectAlmostEqual(op, frame.tensor(op.operands.lhs), expected, op.attributes.tolerance);
    return [];
  },
  "check.expect_close": (op, frame) => {
    const { min_ulp_difference: least, max_ulp_difference: greatest } = op.attributes;
    const { actual, expected } = op.operands;
    expectClose(op, frame.tensor(actual), frame.tensor(expected), least, greatest);
    return [];
  },
  "check.expect_serialized_eq": (op, frame) => {
    const { probe_id: probe, iteration } = op.attributes;
    const seen = frame.session.probes.get(probe)?.[iteration];
    if (seen === undefined) throw unsupported(op, `no probe ${probe} has run so often`);
    expectEqual(op, frame.tensor(op.operands.expected), seen);
    return [];
  },
  "interpreter.run_parallel": (op, frame) => runGrid(op, frame),
  "interpreter.print": (op, frame) => {
    frame.session.print(printed(frame.tensor(op.operands.operand)));
    return [];
  },
  "interpreter.probe": (op, frame) => {
    const value = frame.tensor(op.operands.operand);
    const { probes } = frame.session;
    const { probe_id: probe } = op.attributes;
    probes.set(probe, [...(probes.get(probe) ?? []), value]);
    return [value];
  },
} satisfies Partial<GraphRules<[Frame], RuleResult>>;
