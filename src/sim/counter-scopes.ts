/**
 * Ops on a counter that others may use at the same time. They are atomic for each other where each has the other's block in
 * its scope; otherwise they must be ordered like plain accesses, or a count may be lost:
 *
 *   block 0   signal(1, { scope: "block" })
 *   block 1   signal(1)                        a race: block 0's signal is atomic for block 0 alone
 */
import { opName } from "../ir/op-names.ts";
import type { Op } from "../ir/node.ts";
import { placeText } from "../happens-before/access.ts";
import type { Access } from "../happens-before/access.ts";
import { commonScope, reachOf } from "../happens-before/memory-scopes.ts";
import type { Agent } from "./agent.ts";
import type { Semaphore } from "./semaphores.ts";

/** Takes note of an op on a counter, and reports others that it races with. */
export function touchCounter(
  agent: Agent,
  { array, position, name }: Semaphore,
  op: Op<"semaphore_signal"> | Op<"semaphore_wait"> | Op<"semaphore_read">,
  mode: "atomic" | "observe",
): void {
  const { timeline, block, machine } = agent;
  if (timeline === undefined || array.shadow === undefined) return;
  const { scope = "device" } = op.attributes;
  const access: Access = {
    ...commonScope(block, reachOf[scope]),
    ...agent.access(timeline, mode, 0),
  };
  const cursor = array.shadow.begin(access, timeline.knowledge);
  cursor.run(position, 1);
  for (const conflict of cursor.conflicts) {
    if (conflict.kind !== "race") continue;
    const { earlier } = conflict;
    machine.findings.add(
      {
        code: "TW3001",
        message: `data race on ${name}: ${opName(op)} and ${opName(earlier.op)} reach different blocks, and are not ordered`,
        location: op.location,
        expected: "scopes with both blocks in them",
        found: useText(access),
        remedy: 'leave out the scope of both, or say { scope: "cluster" } within a cluster',
        notes: [
          { message: useText(earlier), location: earlier.op.location },
          { message: "the semaphores are allocated here", location: array.op.location },
        ],
      },
      earlier.op,
      op,
    );
  }
}

function useText({ op, place }: Access): string {
  const scope = "scope" in op.attributes ? op.attributes.scope : undefined;
  return `${opName(op)} of scope "${scope ?? "device"}" in ${placeText(place)}`;
}
