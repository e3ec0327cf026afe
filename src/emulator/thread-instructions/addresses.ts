/** Addresses between spaces: `cvta`, `isspacep`, `mapa`, `getctarank`; and hints, which do nothing. */
import { rankShift, sharedOffsetMask, windows } from "../addresses.ts";
import type { AddressSpace } from "../addresses.ts";
import { accessKind } from "./memory.ts";
import type { LaneInstruction, LaneRule, LaneRules } from "./rule.ts";
import { OperandError } from "./writer.ts";
import type { LaneWriter, Pair } from "./writer.ts";

function spaceOf(instruction: LaneInstruction): AddressSpace {
  const kind = accessKind(instruction.modifiers);
  if (kind === "generic") throw new OperandError("no state space");
  return kind;
}

/** Global addresses are generic ones as they are; others lie in a window of their own. */
const convertAddress: LaneRule = (instruction, writer) => {
  const space = spaceOf(instruction);
  const { low, high } = writer.pair(instruction.operand(1));
  const target = instruction.operand(0);
  if (space === "global") return writer.setPair(target, low, high);
  writer.setPair(target, low, instruction.has("to") ? "0" : `${windows[space]}`);
};

const isInSpace: LaneRule = (instruction, writer) => {
  const space = spaceOf(instruction);
  const { low, high } = writer.pair(instruction.operand(1));
  const target = instruction.operand(0);
  const window = windows[space];
  // Parameters of the entry lie in global memory, as far as their generic addresses tell.
  if (space === "global")
    return writer.setPredicate(
      target,
      `${high} >= ${window} || ${high} === ${windows.param} ? 1 : 0`,
    );
  // Without a word about the cluster, shared is what the block itself has.
  const own = instruction.has("shared::cluster")
    ? ""
    : ` && (${low} >>> ${rankShift}) === w.block.rank`;
  writer.setPredicate(target, `${high} === ${window}${own} ? 1 : 0`);
};

/** A shared address of the same offset in another block of the cluster. */
const mapAddress: LaneRule = (instruction, writer) => {
  const rank = writer.word(instruction.operand(2));
  const target = instruction.operand(0);
  const mapped = (low: string): string =>
    `(${low} & ${sharedOffsetMask}) | (${rank} << ${rankShift})`;
  const isGeneric = accessKind(instruction.modifiers) === "generic";
  if (!isGeneric && instruction.type === "u32")
    return writer.setWord(target, mapped(writer.word(instruction.operand(1))));
  const { low } = writer.pair(instruction.operand(1));
  writer.setPair(target, mapped(low), isGeneric ? `${windows.shared}` : "0");
};

const rankOf: LaneRule = (instruction, writer) => {
  const { low } = sharedAddress(instruction, writer);
  writer.setWord(instruction.operand(0), `${low} >>> ${rankShift}`);
};

function sharedAddress(instruction: LaneInstruction, writer: LaneWriter): Pair {
  const operand = instruction.operand(1);
  return instruction.type === "u32"
    ? { low: writer.word(operand), high: "0" }
    : writer.pair(operand);
}

const nothing: LaneRule = () => undefined;

export const addressRules: LaneRules = {
  cvta: convertAddress,
  isspacep: isInSpace,
  mapa: mapAddress,
  getctarank: rankOf,
  prefetch: nothing,
  prefetchu: nothing,
  applypriority: nothing,
  discard: nothing,
  pmevent: nothing,
  /** Policies of the cache are opaque; a kernel only hands them on. */
  createpolicy: (instruction, writer) => writer.setPair(instruction.operand(0), "0", "0"),
};
