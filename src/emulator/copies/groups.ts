/**
 * Groups of copies, as each lane counts its own: a copy belongs to the open group until the lane commits
 * it; a wait looks at all groups but the newest few.
 *
 *   copy a   copy b   commit   copy c   commit   wait_group 1   -> a, b must be done; c may be under way
 */
import type { Issue } from "../asynchronous.ts";
import type { WarpView } from "../collective.ts";

/** A copy as its issuer waits for it. */
export interface Work {
  readonly issue: Issue;
  sourceRead: boolean;
  done: boolean;
}

class LaneGroups {
  open: Work[] = [];
  groups: (readonly Work[])[] = [];
}

export class CopyGroups {
  readonly #lanes = new Map<number, LaneGroups>();

  #lane(lane: number): LaneGroups {
    let found = this.#lanes.get(lane);
    if (found === undefined) {
      found = new LaneGroups();
      this.#lanes.set(lane, found);
    }
    return found;
  }

  add(lane: number, work: Work): void {
    this.#lane(lane).open.push(work);
  }

  commit(lane: number): void {
    const groups = this.#lane(lane);
    groups.groups.push(groups.open);
    groups.open = [];
  }

  /** The copies of all groups of the lane but its newest `pending`. */
  awaited(lane: number, pending: number): readonly Work[] {
    const { groups } = this.#lane(lane);
    return groups.slice(0, Math.max(0, groups.length - pending)).flat();
  }

  /** Every copy of the lane that has not been awaited, committed or not. */
  unawaited(lane: number): readonly Work[] {
    const { groups, open } = this.#lane(lane);
    return [...groups.flat(), ...open];
  }

  /** Forgets the groups that a wait has seen done. */
  settle(lane: number, pending: number): void {
    const groups = this.#lane(lane);
    groups.groups = groups.groups.slice(Math.max(0, groups.groups.length - pending));
  }
}

/** The groups of `cp.async` and those of bulk copies are counted apart. */
export type GroupKind = "ordinary" | "bulk";

const groups: { readonly [K in GroupKind]: WeakMap<WarpView, CopyGroups> } = {
  ordinary: new WeakMap(),
  bulk: new WeakMap(),
};

export function groupsOf(kind: GroupKind, warp: WarpView): CopyGroups {
  let found = groups[kind].get(warp);
  if (found === undefined) {
    found = new CopyGroups();
    groups[kind].set(warp, found);
  }
  return found;
}
