/** The lane's stack: `alloca`, `stacksave`, `stackrestore`. */
import type { LaneRule, LaneRules } from "./rule.ts";

/** What an allocation is a multiple of where nothing is said. */
const usualAlignment = 16;

const allocate: LaneRule = (instruction, writer) => {
  const size = writer.required(() => writer.pair(instruction.operand(1)).low);
  const alignment = instruction.operandCount > 2 ? instruction.constant(2) : usualAlignment;
  const call = `w.dynamic.take(l, ${size} >>> 0, ${alignment ?? usualAlignment})`;
  writer.setPair(instruction.operand(0), writer.local(call), "0");
};

const save: LaneRule = (instruction, writer) =>
  writer.setPair(instruction.operand(0), writer.local("w.dynamic.top(l)"), "0");

const restore: LaneRule = (instruction, writer) => {
  const top = writer.required(() => writer.pair(instruction.operand(0)).low);
  writer.line(`w.dynamic.restore(l, ${top} >>> 0);`);
};

export const stackRules: LaneRules = { alloca: allocate, stacksave: save, stackrestore: restore };
