/**
 * The compiler's half of synchronisation: where the 128 lanes of a program thread must meet so that the
 * thread runs as if it were one, and where writes must be handed to the tensor cores.
 *
 *   store a        lanes write a
 *   load a         other lanes' elements: meet before          pending: write a  ->  barrier
 *   load a         again: nothing                              pending: read a
 *   copyAsync a    one lane starts it, others may still read   pending: read a   ->  barrier
 *   commitShared   a fence of each lane                        pending: fence
 *   copyAsync b    others may not have come to theirs          pending: fence    ->  barrier
 *
 * A cluster's barrier is a meeting in two halves, and orders only what lies before its first half:
 *
 *   store a
 *   clusterArrive  what was pending has arrived                arrived: write a
 *   store b                                                    pending: write b  arrived: write a
 *   clusterWait    the others did what they did before         pending: write b
 *   load a         nothing
 *   load b         other lanes' elements: meet before          pending: write b  ->  barrier
 *
 * Accesses are followed in the order of the program, by the bytes they touch (buffers that share bytes
 * are one) and by global array. A round of a loop follows the round before, so a body is followed until
 * what is pending at its start no longer grows. Ordering between program threads, blocks and the copy
 * engine is the user's, and is not looked at here.
 */
import type { AnyOp, Op, Region } from "../../../ir/node.ts";
import { regionList } from "../../../ir/traverse.ts";
import type { Placement } from "../../../layout/plan/place.ts";
import { AccessFinder } from "./accesses.ts";
import type { Access, Place } from "./accesses.ts";

export interface Need {
  /** All lanes of the program thread meet; the reason is printed behind the barrier. */
  readonly barrier: string | undefined;
  /** Writes are handed to the asynchronous proxy first. */
  readonly fence: string | undefined;
}

export type OrderingPlan = ReadonlyMap<AnyOp, Need>;

/** What lanes did and others may not know of, by place. */
interface Deeds {
  readonly reads: Map<Place, AnyOp>;
  readonly writes: Map<Place, AnyOp>;
  /** Hand-overs that the lane has made, and others may not have. */
  readonly fences: Map<Place, AnyOp>;
}

interface Pending {
  /** Since the lanes last met. */
  readonly open: Deeds;
  /** Before the last arrival on the cluster's barrier: over once that was waited for. */
  readonly arrived: Deeds;
  /** Written by lanes and not yet handed to the asynchronous proxy. */
  readonly unfenced: Map<Place, AnyOp>;
}

function noPending(): Pending {
  const none = (): Deeds => ({ reads: new Map(), writes: new Map(), fences: new Map() });
  return { open: none(), arrived: none(), unfenced: new Map() };
}

function copyOf(pending: Pending): Pending {
  const copy = noPending();
  include(copy, pending);
  return copy;
}

/** Adds what is pending on another way here; tells whether that was anything new. */
function include(into: Pending, other: Pending): boolean {
  const grown = [
    includeDeeds(into.open, other.open),
    includeDeeds(into.arrived, other.arrived),
    includePlaces(into.unfenced, other.unfenced),
  ];
  return grown.includes(true);
}

function includeDeeds(into: Deeds, other: Deeds): boolean {
  const grown = [
    includePlaces(into.reads, other.reads),
    includePlaces(into.writes, other.writes),
    includePlaces(into.fences, other.fences),
  ];
  return grown.includes(true);
}

function includePlaces(into: Map<Place, AnyOp>, other: ReadonlyMap<Place, AnyOp>): boolean {
  const before = into.size;
  for (const [place, op] of other) if (!into.has(place)) into.set(place, op);
  return into.size > before;
}

export function planOrdering(placement: Placement): OrderingPlan {
  const needs = new Map<AnyOp, Need>();
  const finder = new AccessFinder(placement);
  const { kernel } = placement;
  for (const thread of kernel.threads.keys())
    new Planner(finder, thread, needs).follow(kernel.body, noPending());
  return needs;
}

/** Follows what one program thread does. */
class Planner {
  readonly #finder: AccessFinder;
  readonly #readByDots: ReadonlySet<Place>;
  readonly #thread: number;
  readonly #needs: Map<AnyOp, Need>;

  constructor(finder: AccessFinder, thread: number, needs: Map<AnyOp, Need>) {
    this.#finder = finder;
    this.#readByDots = finder.readByDots();
    this.#thread = thread;
    this.#needs = needs;
  }

  /** Follows the region's ops; `pending` is changed to what is pending at its end. */
  follow(region: Region, pending: Pending): void {
    for (const op of region.ops) this.#step(op, pending);
  }

  #step(op: AnyOp, pending: Pending): void {
    const accesses = this.#finder.of(op);
    const conflict = accesses.map((access) => conflictOf(access, pending)).find((each) => each);
    const unfenced = accesses
      .filter(({ proxy }) => proxy === "async")
      .map(({ places }) => places.find((place) => pending.unfenced.has(place)))
      .find((place) => place !== undefined);
    const fenced = accesses.some(({ proxy }) => proxy === "async") && handedOver(pending);
    if (conflict !== undefined || unfenced !== undefined || fenced) {
      const reader = op.kind === "copy_async" ? "the copy engine touches" : "the tensor cores read";
      const fence = unfenced && `${reader} what lanes have written`;
      const barrier = conflict ?? "all lanes have handed over what they wrote";
      this.#need(op, { barrier, fence });
      clear(pending);
      if (unfenced !== undefined) pending.unfenced.clear();
    }
    if (releases.has(op.kind)) this.#handOver(op, pending);
    for (const access of accesses) record(op, access, pending);
    this.#pass(op, pending);
  }

  /** Whoever is told of the writes may multiply what was written, and `dot` asks for no hand-over. */
  #handOver(op: AnyOp, pending: Pending): void {
    if (![...pending.unfenced.keys()].some((place) => this.#readByDots.has(place))) return;
    this.#need(op, {
      barrier: undefined,
      fence: "the tensor cores may read what lanes have written",
    });
    pending.unfenced.clear();
    pending.open.fences.set(everything, op);
  }

  #need(op: AnyOp, need: Need): void {
    const known = this.#needs.get(op);
    this.#needs.set(op, {
      barrier: known?.barrier ?? need.barrier,
      fence: known?.fence ?? need.fence,
    });
  }

  /** What the op itself orders, and what its regions leave behind. */
  #pass(op: AnyOp, pending: Pending): void {
    if (op.kind === "loop" || op.kind === "while") {
      this.#repeat(op, pending);
      return;
    }
    if (op.kind === "on_threads") {
      if (op.attributes.threads.includes(this.#thread)) this.follow(op.regions.body, pending);
      return;
    }
    if (op.kind === "warps" || op.kind === "scoped") {
      // All lanes meet before and after; in between, warps on their own meet in their warp.
      clear(pending);
      this.follow(op.regions.body, pending);
      const end = op.regions.body.ops.at(-1);
      if (op.kind === "scoped" && end !== undefined) this.#handOver(end, pending);
      clear(pending);
      return;
    }
    if (op.kind === "proxy_fence") {
      if (op.attributes.space === "smem") pending.unfenced.clear();
      pending.open.fences.set(everything, op);
    }
    if (op.kind === "cluster_arrive") {
      includeDeeds(pending.arrived, pending.open);
      clearDeeds(pending.open);
    }
    if (op.kind === "cluster_wait") clearDeeds(pending.arrived);
    if (meets.has(op.kind)) clear(pending);
    const regions = regionList(op);
    if (regions.length === 0) return;
    const ends = regions.map((region) => {
      const own = copyOf(pending);
      this.follow(region, own);
      return own;
    });
    // One of the regions runs.
    clear(pending);
    pending.unfenced.clear();
    for (const end of ends) include(pending, end);
  }

  #repeat(op: Op<"loop"> | Op<"while">, pending: Pending): void {
    for (;;) {
      const round = copyOf(pending);
      for (const region of regionList(op)) this.follow(region, round);
      if (!include(pending, round)) break;
    }
    // The condition of a while loop runs once more than its body.
    if (op.kind === "while") this.follow(op.regions.condition, pending);
  }
}

/** Ops whose instructions have all lanes of the thread meet. */
const meets: ReadonlySet<AnyOp["kind"]> = new Set<AnyOp["kind"]>([
  "block_sync",
  "semaphore_wait",
  "wait_group",
  "semaphore_signal",
]);

/** Ops that tell other program threads and blocks of what was done before. */
const releases: ReadonlySet<AnyOp["kind"]> = new Set<AnyOp["kind"]>([
  "barrier_arrive",
  "block_sync",
  "cluster_arrive",
  "semaphore_signal",
  "scoped",
]);

/** What a hand-over is of. */
const everything: Place = { name: "all that was written", space: "gmem" };

/** All lanes have met. */
function clear({ open, arrived }: Pending): void {
  clearDeeds(open);
  clearDeeds(arrived);
}

function clearDeeds({ reads, writes, fences }: Deeds): void {
  reads.clear();
  writes.clear();
  fences.clear();
}

function handedOver({ open, arrived }: Pending): boolean {
  return open.fences.size > 0 || arrived.fences.size > 0;
}

/** Why lanes must meet before the access. */
function conflictOf({ places, mode }: Access, { open, arrived }: Pending): string | undefined {
  for (const place of places) {
    if (open.writes.has(place) || arrived.writes.has(place))
      return `other lanes may have written ${place.name}${mode === "read" ? "" : " before"}`;
    if (mode === "write" && (open.reads.has(place) || arrived.reads.has(place)))
      return `other lanes may still read ${place.name}`;
  }
  return undefined;
}

function record(op: AnyOp, { places, mode, by, proxy }: Access, pending: Pending): void {
  for (const place of places) {
    // What one lane starts is ordered by waiting for it.
    if (by === "lanes") pending.open[mode === "read" ? "reads" : "writes"].set(place, op);
    if (mode === "write" && proxy === "generic" && place.space === "smem")
      pending.unfenced.set(place, op);
  }
}
