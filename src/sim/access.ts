/** Windows that must not be used, reported where they are. */
import { opName } from "../ir/op-names.ts";
import type { Agent } from "./agent.ts";
import { placeText } from "../order/access.ts";
import type { View } from "./view.ts";

/** Stops the run where the view has an index that is not there, or leaves shared memory. */
export function requireUsable(agent: Agent, { memory, fault }: View): void {
  if (fault === undefined) return;
  const { op } = agent.site;
  const { name } = memory.description;
  const isIndex = fault.kind === "index";
  const last = fault.start + fault.size - 1;
  agent.machine.findings.stop(
    {
      code: isIndex ? "TW3005" : "TW3004",
      message: isIndex
        ? `${opName(op)} with index ${fault.start} on axis ${fault.axis} of ${name}, which has ${fault.extent}`
        : `${opName(op)} of a window that reaches outside ${name} on axis ${fault.axis}`,
      location: op.location,
      expected: `indices from 0 to ${fault.extent - 1}`,
      found: `${isIndex ? fault.start : `${fault.start} to ${last}`} in ${placeText(agent.place())}`,
      notes: [{ message: "the window is made here", location: fault.op.location }],
    },
    op,
  );
}
