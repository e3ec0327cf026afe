/** Windows that must not be used, reported where they are. */
import type { AnyOp, Op } from "../ir/node.ts";
import { opName } from "../ir/op-names.ts";
import { inBoundsText, isPromisedInside } from "../ir/promises.ts";
import type { Agent } from "./agent.ts";
import { brokenPromise } from "./print-messages.ts";
import { placeText } from "../happens-before/access.ts";
import type { View } from "./view.ts";

/** Stops the run where the view has an index that is not there, or leaves shared memory. */
export function requireUsable(agent: Agent, { memory, fault }: View): void {
  if (fault === undefined) return;
  const { op } = agent.site;
  const { name } = memory.description;
  if (isPromisedInside(op)) breakPromise(agent, `${fault.start} on axis ${fault.axis} of ${name}`);
  if (fault.kind === "peer") return refuseRank(agent, fault.start, fault.op);
  if (fault.kind === "array" && fault.op.kind === "select_ref")
    return refuseArray(agent, fault.start, fault.op);
  const isIndex = fault.kind === "index";
  const last = fault.start + fault.size - 1;
  const { first, end } = fault;
  const there = `from ${first} to ${end - 1}`;
  const has = first >= end ? "none there" : first > 0 ? `those ${there}` : end;
  agent.machine.findings.stop(
    {
      code: isIndex ? "TW3005" : "TW3004",
      message: isIndex
        ? `${opName(op)} with index ${fault.start} on axis ${fault.axis} of ${name}, which has ${has}`
        : `${opName(op)} of a window that reaches outside ${name} on axis ${fault.axis}`,
      location: op.location,
      expected: first < end ? `indices ${there}` : "a window with elements",
      found: `${isIndex ? fault.start : `${fault.start} to ${last}`} in ${placeText(agent.place())}`,
      notes: [{ message: "the window is made here", location: fault.op.location }],
    },
    op,
  );
}

/** Stops the run at an access that is promised to be in bounds and is not. */
export function breakPromise(agent: Agent, found: string): never {
  const { op } = agent.site;
  const where = `${found} in ${placeText(agent.place())}`;
  return agent.machine.findings.stop(brokenPromise(inBoundsText, op.location, where), op);
}

function refuseArray(agent: Agent, index: number, selection: Op<"select_ref">): never {
  const { op } = agent.site;
  const { name = "the list" } = selection.attributes;
  const count = selection.operands.refs.length;
  return agent.machine.findings.stop(
    {
      code: "TW3005",
      message: `${opName(op)} with index ${index} of ${name}, which has ${count} arrays`,
      location: op.location,
      expected: `indices from 0 to ${count - 1}`,
      found: `${index} in ${placeText(agent.place())}`,
      notes: [{ message: "the array is chosen here", location: selection.location }],
    },
    op,
  );
}

/** Stops the run where it reaches for a block that the cluster does not have, maybe through a window. */
export function refuseRank(agent: Agent, rank: number, window?: AnyOp): never {
  const { op } = agent.site;
  return agent.machine.findings.stop(
    {
      code: "TW3019",
      message: `there is no block of rank ${rank} in the cluster`,
      location: op.location,
      expected: `a rank from 0 to ${agent.block.cluster.blocks.length - 1}`,
      found: `${rank} in ${placeText(agent.place())}`,
      notes:
        window === undefined
          ? []
          : [{ message: "the window is made here", location: window.location }],
    },
    op,
  );
}
