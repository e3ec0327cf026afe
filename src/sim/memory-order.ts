/** What loads, stores and updates with a memory order hand on and take over, element by element. */
import { acquires, releases } from "../ir/traits.ts";
import type { StatedOrder } from "../ir/traits.ts";
import { reachOf } from "../happens-before/memory-scopes.ts";
import type { Agent } from "./agent.ts";
import { visitRuns } from "./view.ts";
import type { View } from "./view.ts";

/** How an access touches its elements. */
export interface OrderedAccess {
  readonly reads: boolean;
  /** Whether it writes the element of this number in the window; a compare-and-swap that fails does not. */
  readonly writes: (flat: number) => boolean;
  /** Whether what it writes follows from what was there. */
  readonly updates: boolean;
}

/** Acquires what was released through the elements, then releases through them what the agent knows. */
export function orderAccess(
  agent: Agent,
  view: View,
  stated: StatedOrder,
  { reads, writes, updates }: OrderedAccess,
): void {
  const { timeline, block } = agent;
  if (timeline === undefined) return;
  const { released } = view.memory;
  const scope = reachOf[stated.scope];
  if (reads && acquires(stated) && !released.isEmpty)
    visitBytes(view, (byte) => {
      const known = released.acquire(byte, block, scope);
      if (known !== undefined) agent.acquire(known);
    });
  if (releases(stated)) {
    const knowledge = agent.publish();
    visitBytes(view, (byte, flat) => {
      if (writes(flat)) released.release(byte, block, scope, { knowledge, updates });
    });
  } else if (!updates && writes(0)) endReleases(view);
}

/** Stores that release nothing end what was released through their elements. */
export function endReleases(view: View): void {
  const { released } = view.memory;
  if (released.isEmpty) return;
  visitBytes(view, (byte) => {
    released.end(byte);
  });
}

function visitBytes(view: View, visit: (byte: number, flat: number) => void): void {
  const size = view.dtype.bits / 8;
  visitRuns(view, (element, flat, length, stride) => {
    for (let i = 0; i < length; i++) visit((element + i * stride) * size, flat + i);
  });
}
