/**
 * Which arrivals and waits on barriers need cluster scope. One with cluster scope costs a flush of caches on the GPU, and what TMA and the
 * tensor cores did needs none. So an arrival on a peer's barrier has cluster scope only where threads may have done something before it that
 * conflicts with the peer:
 *
 *   | before the arrival                                   | peer                            | scope   |
 *   |------------------------------------------------------|---------------------------------|---------|
 *   | wgmma reads a, TMA writes it                         | multicasts into a               | block   |
 *   | loads of a                                           | multicasts into a               | cluster |
 *   | loads of an array that the kernel never writes       |                                 | block   |
 *   | stores to own shared memory that no peer reaches     |                                 | block   |
 *   | stores to the output                                 | may store there, or load it     | cluster |
 *
 * A release passes on what was acquired before it, so all program threads are followed together: a wait acquires all that any of them
 * releases through the same barrier, in this block or another. Nothing is released for good, since a barrier releases only to those who wait
 * for it. A wait has the scope of the arrivals on its barrier.
 */
import type { AnyOp, Kernel, Region, Value } from "../../ir/node.ts";
import type { Scope } from "../../ir/schema.ts";
import { acquireScope, releaseScope, traitsOf } from "../../ir/traits.ts";
import { operandValues, regionList, walkOps } from "../../ir/traverse.ts";
import type { AccessFinder, Place } from "./accesses.ts";

/** Ops on barriers that must reach the whole cluster. */
export function findClusterScope(kernel: Kernel, finder: AccessFinder): ReadonlySet<AnyOp> {
  if (!releasesToCluster(kernel)) return new Set();
  const steps = new Steps(finder, placesOfPeers(kernel, finder));
  const body = steps.of(kernel.body);
  // Where no thread touches what a peer can reach, nothing has to be released.
  if (!steps.anyDone) return new Set();
  const released = new Released();
  const reaching = new Set<AnyOp>();
  let known: number;
  do {
    known = released.size;
    for (const thread of kernel.threads.keys())
      new Follower({ released, reaching, thread }).follow(body, new Set());
  } while (released.size > known);
  return new Set([...reaching, ...waitsFor(reaching, kernel)]);
}

/** Whether anything is released beyond the block at all. */
function releasesToCluster({ body }: Kernel): boolean {
  let releases = false;
  walkOps(body, (op) => {
    releases ||= releaseScope(op) === "cluster";
  });
  return releases;
}

/** Places that other blocks may touch too: reached by peers' windows or multicasts, or arrays that are written. */
function placesOfPeers(kernel: Kernel, finder: AccessFinder): ReadonlySet<Place> {
  const found = new Set<Place>();
  walkOps(kernel.body, (op) => {
    for (const { places, mode, ofPeer } of finder.of(op)) {
      const reached = ofPeer || (mode === "write" && releaseScope(op) === "cluster");
      for (const place of places) {
        const shared = place.space === "smem" && reached;
        if (shared || (place.space === "gmem" && mode === "write")) found.add(place);
      }
    }
  });
  return found;
}

/** Waits on the barriers of those that reach the cluster. */
function waitsFor(reaching: ReadonlySet<AnyOp>, kernel: Kernel): readonly AnyOp[] {
  const barriers = new Set([...reaching].flatMap(barriersOf));
  const waits: AnyOp[] = [];
  walkOps(kernel.body, (op) => {
    if (acquireScope(op) === "cluster" && barriersOf(op).some((each) => barriers.has(each)))
      waits.push(op);
  });
  return waits;
}

function barriersOf(op: AnyOp): readonly Value[] {
  return operandValues(op).filter(({ type }) => type.kind === "barrier");
}

/** The op's barriers or counters; without any, its block, cluster or grid. */
type Channel = Value | Scope;

function channelsOf(op: AnyOp, scope: Scope): readonly Channel[] {
  const own = operandValues(op).filter(
    ({ type: { kind } }) => kind === "barrier" || kind === "semaphore",
  );
  return own.length > 0 ? own : [scope];
}

/** What of an op matters here. */
interface Step {
  readonly op: AnyOp;
  /** Places that its threads touch, and other blocks, too. */
  readonly done: readonly Place[];
  readonly releases: readonly Channel[];
  readonly acquires: readonly Channel[];
  readonly regions: readonly (readonly Step[])[];
}

/** Ops that matter here, found once: they are followed many times, and are few. */
class Steps {
  readonly #finder: AccessFinder;
  /** Places that other blocks may touch. */
  readonly #shared: ReadonlySet<Place>;
  /** Whether any step does something. */
  anyDone = false;

  constructor(finder: AccessFinder, shared: ReadonlySet<Place>) {
    this.#finder = finder;
    this.#shared = shared;
  }

  of({ ops }: Region): readonly Step[] {
    const steps: Step[] = [];
    for (const op of ops) {
      const regions = regionList(op).map((region) => this.of(region));
      const done = this.#doneBy(op);
      const scope = releaseScope(op);
      // A copy releases what it relied on to whoever waits for it.
      const releases = scope !== "nobody" || barriersOf(op).length > 0 ? channelsOf(op, scope) : [];
      const acquires = acquireScope(op);
      const acquired = acquires === "nobody" ? [] : channelsOf(op, acquires);
      const matters = [done, releases, acquired, ...regions].some(({ length }) => length > 0);
      if (matters) steps.push({ op, done, releases, acquires: acquired, regions });
    }
    return steps;
  }

  #doneBy(op: AnyOp): readonly Place[] {
    const places = this.#finder
      .of(op)
      .flatMap((access) => (access.proxy === "generic" ? access.places : []))
      .filter((place) => this.#shared.has(place));
    this.anyDone ||= places.length > 0;
    return places;
  }
}

/** What anybody may have released so far, by what it was released through. */
class Released {
  readonly #byChannel = new Map<Channel, Set<Place>>();

  get size(): number {
    return [...this.#byChannel.values()].reduce((sum, { size }) => sum + size, 0);
  }

  release({ releases }: Step, places: ReadonlySet<Place>): void {
    for (const channel of releases) {
      const known = this.#byChannel.get(channel) ?? new Set();
      this.#byChannel.set(channel, known);
      include(known, places);
    }
  }

  acquiredBy({ acquires }: Step): ReadonlySet<Place> {
    const acquired = new Set<Place>();
    for (const channel of acquires) include(acquired, this.#byChannel.get(channel) ?? new Set());
    return acquired;
  }
}

interface Surroundings {
  readonly released: Released;
  readonly reaching: Set<AnyOp>;
  readonly thread: number;
}

/** Follows what threads of one program thread did, and know of, on any way here; that only grows. */
class Follower {
  readonly #around: Surroundings;

  constructor(around: Surroundings) {
    this.#around = around;
  }

  follow(steps: readonly Step[], done: Set<Place>): void {
    for (const step of steps) {
      this.#step(step, done);
      this.#followRegions(step, done);
    }
  }

  #step(step: Step, done: Set<Place>): void {
    const { released, reaching } = this.#around;
    for (const place of step.done) done.add(place);
    if (releaseScope(step.op) === "cluster" && done.size > 0) reaching.add(step.op);
    released.release(step, done);
    include(done, released.acquiredBy(step));
  }

  #followRegions({ op, regions }: Step, done: Set<Place>): void {
    if (op.kind === "on_threads" && !op.attributes.threads.includes(this.#around.thread)) return;
    if (traitsOf(op).regions === "one of") {
      const before = new Set(done);
      for (const region of regions) {
        const own = new Set(before);
        this.follow(region, own);
        include(done, own);
      }
      return;
    }
    for (const region of regions) this.follow(region, done);
    // What a round has done lies before the next one; no round adds to what the first two did.
    if (traitsOf(op).regions === "repeat") for (const region of regions) this.follow(region, done);
  }
}

function include(into: Set<Place>, other: ReadonlySet<Place>): void {
  for (const place of other) into.add(place);
}
