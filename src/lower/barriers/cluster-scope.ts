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
import { toldBy, traitsOf } from "../../ir/traits.ts";
import { operandValues, regionList, walkOps } from "../../ir/traverse.ts";
import type { AccessFinder, Place } from "./accesses.ts";

/** Ops on barriers that must reach the whole cluster. */
export function findClusterScope(kernel: Kernel, finder: AccessFinder): ReadonlySet<AnyOp> {
  if (!tellsCluster(kernel)) return new Set();
  const steps = new Steps(finder, placesOfPeers(kernel, finder));
  const body = steps.of(kernel.body);
  // Where lanes do nothing that a peer could meet, nobody can tell of it.
  if (!steps.anyDone) return new Set();
  const told = new Told();
  const reaching = new Set<AnyOp>();
  let known: number;
  do {
    known = told.size;
    for (const thread of kernel.threads.keys())
      new Follower({ told, reaching, thread }).follow(body, new Set());
  } while (told.size > known);
  return new Set([...reaching, ...waitsFor(reaching, kernel)]);
}

/** Whether anything is told beyond the block at all. */
function tellsCluster({ body }: Kernel): boolean {
  let tells = false;
  walkOps(body, (op) => {
    tells ||= toldBy(op) === "cluster";
  });
  return tells;
}

/** Places that other blocks may touch too: reached by peers' windows or multicasts, or arrays that are written. */
function placesOfPeers(kernel: Kernel, finder: AccessFinder): ReadonlySet<Place> {
  const found = new Set<Place>();
  walkOps(kernel.body, (op) => {
    for (const { places, mode, ofPeer } of finder.of(op)) {
      const reached = ofPeer || (mode === "write" && toldBy(op) === "cluster");
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
    if (traitsOf(op).hears === "cluster" && barriersOf(op).some((each) => barriers.has(each)))
      waits.push(op);
  });
  return waits;
}

function barriersOf(op: AnyOp): readonly Value[] {
  return operandValues(op).filter(({ type }) => type.kind === "barrier");
}

/** The op's barriers or counters; without any, all who meet in its block, cluster or grid. */
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
  /** Places that its lanes touch, and other blocks, too. */
  readonly done: readonly Place[];
  readonly tells: readonly Channel[];
  readonly hears: readonly Channel[];
  readonly regions: readonly (readonly Step[])[];
}

/** Ops that matter here, found once: they are followed many times, and are few. */
class Steps {
  readonly #finder: AccessFinder;
  /** Places that other blocks may touch. */
  readonly #met: ReadonlySet<Place>;
  /** Whether any step does something. */
  anyDone = false;

  constructor(finder: AccessFinder, met: ReadonlySet<Place>) {
    this.#finder = finder;
    this.#met = met;
  }

  of({ ops }: Region): readonly Step[] {
    const steps: Step[] = [];
    for (const op of ops) {
      const regions = regionList(op).map((region) => this.of(region));
      const done = this.#doneBy(op);
      const scope = toldBy(op);
      // A copy tells whoever waits for it of what it relied on.
      const tells = scope !== "nobody" || barriersOf(op).length > 0 ? channelsOf(op, scope) : [];
      const { hears } = traitsOf(op);
      const heard = hears === "nobody" ? [] : channelsOf(op, hears);
      const matters = [done, tells, heard, ...regions].some(({ length }) => length > 0);
      if (matters) steps.push({ op, done, tells, hears: heard, regions });
    }
    return steps;
  }

  #doneBy(op: AnyOp): readonly Place[] {
    const places = this.#finder
      .of(op)
      .flatMap((access) => (access.proxy === "generic" ? access.places : []))
      .filter((place) => this.#met.has(place));
    this.anyDone ||= places.length > 0;
    return places;
  }
}

/** What anybody may have told so far, by what it was told through. */
class Told {
  readonly #byChannel = new Map<Channel, Set<Place>>();

  get size(): number {
    return [...this.#byChannel.values()].reduce((sum, { size }) => sum + size, 0);
  }

  tell({ tells }: Step, places: ReadonlySet<Place>): void {
    for (const channel of tells) {
      const known = this.#byChannel.get(channel) ?? new Set();
      this.#byChannel.set(channel, known);
      include(known, places);
    }
  }

  heardBy({ hears }: Step): ReadonlySet<Place> {
    const heard = new Set<Place>();
    for (const channel of hears) include(heard, this.#byChannel.get(channel) ?? new Set());
    return heard;
  }
}

interface Surroundings {
  readonly told: Told;
  readonly reaching: Set<AnyOp>;
  readonly thread: number;
}

/** Follows what lanes of one program thread did, and know of, on any way here; that only grows. */
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
    const { told, reaching } = this.#around;
    for (const place of step.done) done.add(place);
    if (toldBy(step.op) === "cluster" && done.size > 0) reaching.add(step.op);
    told.tell(step, done);
    include(done, told.heardBy(step));
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
