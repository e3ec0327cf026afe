/**
 * Where the 128 threads of a program thread must synchronize for it to behave as one thread, and where their writes need a fence before the
 * asynchronous proxy (TMA, tensor cores) reads them.
 *
 *   store a        threads write a
 *   load a         another thread's elements                   pending: write a  ->  barrier
 *   load a         again: nothing                              pending: read a
 *   copyAsync a    one thread starts it, others may still read pending: read a   ->  barrier
 *   commitShared   a fence of each thread                      pending: fence
 *   copyAsync b    others may not have executed theirs         pending: fence    ->  barrier
 *
 * A cluster barrier is split in two, and orders only what precedes its arrival:
 *
 *   store a
 *   clusterArrive  what was pending has arrived                arrived: write a
 *   store b                                                    pending: write b  arrived: write a
 *   clusterWait    the others did what they did before         pending: write b
 *   load a         nothing
 *   load b         another thread's elements                   pending: write b  ->  barrier
 *
 * Accesses are followed in program order, by the bytes they touch (buffers that share bytes are one) and by global array. An iteration of a
 * loop follows the iteration before, so a body is followed until what is pending at its start no longer grows. Synchronization between
 * program threads, blocks and TMA is the user's, and is not analysed here.
 */
import type { AnyOp, Kernel, Region } from "../../ir/node.ts";
import type { Synchronization } from "../../ir/schema.ts";
import { releaseScope, repeats, synchronizationsOf, traitsOf } from "../../ir/traits.ts";
import { regionList } from "../../ir/traverse.ts";
import type { AccessFinder, Place, PlaceAccess } from "./accesses.ts";
import { Pending } from "./pending-accesses.ts";

export interface Need {
  /** A barrier of all threads of the program thread; its reason is printed behind it. */
  readonly barrier: string | undefined;
  /** A proxy fence first; its reason. */
  readonly fence: string | undefined;
}

/** What is missing before each op. */
export function neededBarriers(kernel: Kernel, finder: AccessFinder): ReadonlyMap<AnyOp, Need> {
  const needs = new Map<AnyOp, Need>();
  const steps = new Map<Region, readonly AnyOp[]>();
  for (const thread of kernel.threads.keys())
    new Planner({ finder, steps, needs, thread }).follow(kernel.body, new Pending());
  return needs;
}

interface PlannerContext {
  readonly finder: AccessFinder;
  /** The ops of a region that matter here: loops are followed several times, and each program thread on its own. */
  readonly steps: Map<Region, readonly AnyOp[]>;
  readonly needs: Map<AnyOp, Need>;
  readonly thread: number;
}

/** Follows what one program thread does. */
class Planner {
  readonly #context: PlannerContext;
  readonly #readUnasked: ReadonlySet<Place>;
  /** Whether each warp runs on its own, so that a barrier of its lanes is enough. */
  #oneWarp = false;

  constructor(context: PlannerContext) {
    this.#context = context;
    this.#readUnasked = context.finder.readUnasked();
  }

  /** Follows the region's ops; `pending` is changed to what is pending at its end. */
  follow(region: Region, pending: Pending): void {
    this.#stepsOf(region).forEach((op) => this.#step(op, pending));
  }

  #stepsOf(region: Region): readonly AnyOp[] {
    const { steps } = this.#context;
    const known = steps.get(region);
    if (known !== undefined) return known;
    const found = region.ops.filter((op) => this.#matters(op));
    steps.set(region, found);
    return found;
  }

  /** Whether the op accesses memory, releases, synchronizes, fences, or has regions. */
  #matters(op: AnyOp): boolean {
    return (
      traitsOf(op).regions !== "none" ||
      synchronizationsOf(op).length > 0 ||
      op.kind === "proxy_fence" ||
      releaseScope(op) !== "nobody" ||
      this.#context.finder.of(op).length > 0
    );
  }

  #step(op: AnyOp, pending: Pending): void {
    const accesses = this.#context.finder.of(op);
    if (accesses.length > 0) this.#settle(op, accesses, pending);
    if (releaseScope(op) !== "nobody") this.#fence(op, pending);
    this.#synchronize(op, "before", pending);
    accesses.forEach((access) => pending.record(access));
    // Users write this one themselves; the threads need not be synchronized.
    if (op.kind === "proxy_fence") pending.fence(op.attributes.space);
    this.#followRegions(op, pending);
    this.#synchronize(op, "after", pending);
    this.#context.finder.behind(op).forEach((access) => pending.record(access));
  }

  /** What must have happened before the op may access its places. */
  #settle(op: AnyOp, accesses: readonly PlaceAccess[], pending: Pending): void {
    const conflict = accesses.map((access) => pending.conflictOf(access)).find((each) => each);
    const unfenced = accesses.find((access) => pending.isUnfenced(access));
    const fenced = pending.fenced && accesses.some(({ proxy }) => proxy === "async");
    if (unfenced !== undefined) pending.fence("smem");
    if (conflict !== undefined || unfenced !== undefined || fenced) {
      const reader =
        unfenced?.actor === "one thread" ? "the copy engine touches" : "the tensor cores read";
      this.#need(op, {
        barrier: conflict ?? "all lanes have handed over what they wrote",
        fence: unfenced && `${reader} what lanes have written`,
      });
      pending.synchronize("whole");
    }
  }

  /** Whoever is told of the writes may multiply what was written, and `dot` asks for no hand-over. */
  #fence(op: AnyOp, pending: Pending): void {
    if (!pending.hasUnfenced(this.#readUnasked)) return;
    this.#need(op, {
      barrier: undefined,
      fence: "the tensor cores may read what lanes have written",
    });
    pending.fence("smem");
  }

  #need(op: AnyOp, need: Need): void {
    const { needs } = this.#context;
    const known = needs.get(op);
    needs.set(op, {
      barrier: known?.barrier ?? need.barrier,
      fence: known?.fence ?? need.fence,
    });
  }

  /** Where the op's own instructions synchronize the threads. */
  #synchronize(op: AnyOp, at: Synchronization["at"], pending: Pending): void {
    for (const each of synchronizationsOf(op))
      if (each.at === at && (each.who !== "warp" || this.#oneWarp)) pending.synchronize(each.part);
  }

  #followRegions(op: AnyOp, pending: Pending): void {
    const regions = regionList(op);
    switch (traitsOf(op).regions) {
      case "none":
        return;
      case "once":
        return this.#once(op, regions, pending);
      case "repeat":
        return this.#repeat(op, regions, pending);
      case "one of":
        return this.#oneOf(regions, pending);
      case "each warp":
        return this.#eachWarp(regions, pending);
      case "some threads":
        if (op.kind === "on_threads" && op.attributes.threads.includes(this.#context.thread))
          for (const region of regions) this.follow(region, pending);
    }
  }

  #once(op: AnyOp, regions: readonly Region[], pending: Pending): void {
    for (const region of regions) {
      this.follow(region, pending);
      const end = region.ops.at(-1);
      if (releaseScope(op) !== "nobody" && end !== undefined) this.#fence(end, pending);
    }
  }

  /** A round follows the one before. The condition of a loop runs once more than its body, which comes last. */
  #repeat(op: AnyOp, regions: readonly Region[], pending: Pending): void {
    for (;;) {
      const round = pending.copy();
      for (const region of regions) this.follow(region, round);
      round.forgetBoxes();
      if (!pending.include(round)) break;
    }
    const behindBody = pending.copy();
    for (const region of regions.slice(0, -1)) this.follow(region, pending);
    // A break leaves behind the body, before the condition.
    if (repeats(op) && op.attributes.breaks === true) pending.include(behindBody);
  }

  #oneOf(regions: readonly Region[], pending: Pending): void {
    const ends = regions.map((region) => {
      const own = pending.copy();
      this.follow(region, own);
      return own;
    });
    pending.clear();
    for (const end of ends) pending.include(end);
  }

  #eachWarp(regions: readonly Region[], pending: Pending): void {
    this.#oneWarp = true;
    for (const region of regions) this.follow(region, pending);
    this.#oneWarp = false;
  }
}
