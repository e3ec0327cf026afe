/**
 * Stores and reductions from registers into the shared memory of a block of the cluster that complete on an
 * mbarrier there: `st.async` and `red.async`. They see memory as ordinary accesses do.
 */
import { forLanes, Issue } from "../asynchronous.ts";
import type {
  Collective,
  CollectiveInstruction,
  CollectiveRule,
  OperandView,
} from "../collective.ts";
import { bulkReduction, deliver } from "./bulk.ts";
import type { BulkReduction } from "./bulk.ts";
import { CarriedBytes } from "./bytes.ts";
import { completeAtBarriers, completionBarriers } from "./completion.ts";
import { reductionOf } from "./reduction.ts";

const typePattern = /^[busf](32|64)$/;

/** `[dst], value, [mbar]`; the value is a register or a vector of them. */
function remoteStore(
  instruction: CollectiveInstruction,
  reduction: BulkReduction | undefined,
): Collective | undefined {
  const [target, value, barrier] = instruction.operands;
  const bits = typePattern.exec(instruction.modifiers.at(-1) ?? "")?.[1];
  if (target === undefined || value === undefined || barrier === undefined) return undefined;
  if (bits === undefined) return undefined;
  const elements = value.operand.kind === "vector" ? value.elements : [value];
  const elementBytes = Number(bits) / 8;
  const bytes = elementBytes * elements.length;
  return forLanes(instruction, (issuer) => {
    const { machine, warp, lane } = issuer;
    const address = target.address(warp, lane);
    const request = { warp, instruction, lane, kind: "shared", address, bytes } as const;
    const place = machine.resolve({ ...request, alignment: bytes });
    const block = place.block ?? warp.block;
    const barriers = completionBarriers(issuer, barrier, [block], false);
    const carried = new CarriedBytes(bytes);
    const view = new DataView(carried.data.buffer);
    elements.forEach((element: OperandView, at) => {
      if (elementBytes === 4) view.setUint32(4 * at, element.word(warp, lane), true);
      else view.setBigUint64(8 * at, element.wide(warp, lane), true);
    });
    const issue = new Issue(issuer, "generic");
    issue.record(place, bytes, reduction === undefined ? "write" : "atomic");
    completeAtBarriers(issue, () => deliver(carried, place, reduction), barriers, bytes, block);
  });
}

/** `st.async`; other stores are no collective instructions. */
export const asyncStore: CollectiveRule = (instruction) =>
  instruction.modifiers[0] === "async" ? remoteStore(instruction, undefined) : undefined;

/** `red.async`. */
export const asyncReduction: CollectiveRule = (instruction) => {
  const { modifiers } = instruction;
  if (modifiers[0] !== "async") return undefined;
  const reduction = bulkReduction(reductionOf(modifiers), modifiers.at(-1));
  return reduction === undefined ? undefined : remoteStore(instruction, reduction);
};
