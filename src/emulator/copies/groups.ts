/**
 * Groups of copies, as each lane counts its own: a copy belongs to the open group until the lane commits
 * it; a wait looks at all groups but the newest few.
 *
 *   copy a   copy b   commit   copy c   commit   wait_group 1   -> a, b must be done; c may be under way
 */
import { Knowledge } from "../../happens-before/knowledge.ts";
import type { Issue } from "../asynchronous.ts";
import type { WarpView } from "../collective.ts";

/** A copy as its issuer waits for it. */
export interface Work {
  readonly issue: Issue;
  sourceRead: boolean;
  done: boolean;
}

/** Copies of a lane that an arrival is made for: those since the arrival before it, and all of that one's. */
export class Batch {
  readonly #works: readonly Work[];
  #earlier: Batch | undefined;
  #told: Knowledge | undefined;

  constructor(works: readonly Work[], earlier: Batch | undefined) {
    this.#works = works;
    this.#earlier = earlier;
  }

  /** What the copies tell when they are all done; undefined until then. */
  get told(): Knowledge | undefined {
    if (this.#told !== undefined) return this.#told;
    const before = this.#earlier === undefined ? Knowledge.none : this.#earlier.told;
    if (before === undefined || this.#works.some(({ done }) => !done)) return undefined;
    this.#told = this.#works.reduce(withFinished, before);
    this.#earlier = undefined;
    return this.#told;
  }
}

/** Lanes of a warp share copies, and mostly know the same of earlier ones. */
const joined = new WeakMap<Work, { readonly known: Knowledge; readonly result: Knowledge }>();

function withFinished(known: Knowledge, work: Work): Knowledge {
  const last = joined.get(work);
  if (last?.known === known) return last.result;
  const result = known.join(work.issue.finished);
  joined.set(work, { known, result });
  return result;
}

class LaneGroups {
  /** Copies since the last arrival that is made for copies, and that arrival. */
  since: Work[] = [];
  batch: Batch | undefined;
  open: Work[] = [];
  groups: (readonly Work[])[] = [];
  /** How many of the oldest groups are known to have been read. */
  read = 0;
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
    const found = this.#lane(lane);
    found.open.push(work);
    found.since.push(work);
  }

  /** All copies of the lane so far, for an arrival. */
  batch(lane: number): Batch {
    const found = this.#lane(lane);
    found.batch = new Batch(found.since, found.batch);
    found.since = [];
    return found.batch;
  }

  commit(lane: number): void {
    const groups = this.#lane(lane);
    groups.groups.push(groups.open);
    groups.open = [];
  }

  /** The copies that a wait must see: those of all groups of the lane but its newest `pending`. */
  awaited(lane: number, pending: number, part: "source" | "all"): readonly Work[] {
    const { groups, read } = this.#lane(lane);
    const end = Math.max(0, groups.length - pending);
    return groups.slice(part === "source" ? read : 0, end).flat();
  }

  /** Every copy of the lane that has not been awaited, committed or not. */
  unawaited(lane: number): readonly Work[] {
    const { groups, open } = this.#lane(lane);
    return [...groups.flat(), ...open];
  }

  /** Notes that such a wait has passed. */
  settle(lane: number, pending: number, part: "source" | "all"): void {
    const groups = this.#lane(lane);
    const end = Math.max(0, groups.groups.length - pending);
    if (part === "source") {
      groups.read = Math.max(groups.read, end);
      return;
    }
    groups.groups = groups.groups.slice(end);
    groups.read = Math.max(0, groups.read - end);
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
