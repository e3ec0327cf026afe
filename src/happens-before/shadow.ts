/**
 * Finds unordered accesses to one allocation. Each granule (the smallest element that is accessed; a
 * byte in general) carries the number of a state; a state holds what later accesses can conflict with:
 *
 *   last write W, atomics since (a1, a2 …), reads since (r1, r2 …), observers since (o1, o2 …)
 *
 * | access  | must come after                   | new state                              |
 * |---------|-----------------------------------|----------------------------------------|
 * | read    | write, atomics                    | the same with the read added           |
 * | atomic  | write, reads                      | the same with the atomic added         |
 * | observe | write                             | the same with the observer added       |
 * | write   | write, atomics, reads, observers  | only the write                         |
 *
 * An atomic that updates what it finds stands for the atomics before it: it has seen them, and whoever comes
 * after it comes after them.
 *
 * That is enough: everything before W is ordered before W, or was reported when W came. Where W races
 * with the write before it, that one stays too: a reader who waited for either has not waited for both.
 * A state is made once for each state an access finds, so a run over granules that share a state is a
 * loop that compares and stores integers:
 *
 *   granules    0 0 0 0 0 0 0 0
 *   write A     1 1 1 1 1 1 1 1        1: W = A
 *   read B        2 2 2 2              2: W = A, reads (B)
 *   read C      3 4 4 4 4 3            3: W = A, reads (C)    4: W = A, reads (C, B)
 *
 * A read that a later read stands for is dropped: whoever is ordered after the later one is ordered
 * after it too. For that the later one's *asynchronous* clock must include it: the later one may be a copy,
 * whose end releases what it relied on and not what its issuer knew of without a fence; agents stand for themselves.
 */
import type { Access, AccessMode, Proxy } from "./access.ts";
import type { Clock } from "./clock.ts";
import type { Epoch, Knowledge } from "./knowledge.ts";

/** What an access must say for conflicts to be found; reports add who made it. */
export interface TrackedAccess extends Epoch {
  /** `observe`: a read that conflicts with plain writes alone, as one of a pair of atomics. */
  readonly mode: AccessMode | "observe";
  readonly proxy: Proxy;
  /** Which member of a union the window belongs to, from 1; 0 for memory that is in no union. */
  readonly member: number;
  /** The operation; conflicts of the same two are reported once. */
  readonly op: unknown;
  /** Of an observer: whether it wants what is there, so that somebody must have written it. */
  readonly wantsContents?: boolean | undefined;
  /** Of an atomic: whether what it writes follows from what was there. */
  readonly updates?: boolean | undefined;
  /**
   * An agent whose same step others know of behind a proxy fence alone. It is there where the end of the operation makes its access
   * visible to all proxies, as compilers in the field rely on, and some readers take that for a missing fence.
   */
  readonly fencedBy?: number | undefined;
  /** Whether it is such a reader. */
  readonly insistsOnFence?: boolean | undefined;
  /** Whether it may meet this other atomic or observer in any order; left out, it may meet all. */
  mayMeet?(other: TrackedAccess): boolean;
}

export type Conflict<A extends TrackedAccess = Access> =
  | {
      readonly kind: "race";
      readonly earlier: A;
      readonly current: A;
      readonly granule: number;
      /** `fence`: ordinary accesses would be ordered; the earlier agent's proxy fence is missing. */
      readonly missing: "order" | "fence";
    }
  | { readonly kind: "uninitialised"; readonly current: A; readonly granule: number }
  | {
      readonly kind: "union";
      readonly earlier: A;
      readonly current: A;
      readonly granule: number;
    };

/** Accesses of one kind since the last write, newest first. */
interface History<A> {
  readonly access: A;
  readonly older: History<A> | undefined;
  readonly size: number;
  /** The size at which to look for members that others stand for; doubles when few are. */
  readonly bound: number;
}

const smallestBound = 8;

interface State<A> {
  readonly write: A | undefined;
  /** The write before that one, where the two race. */
  readonly overtaken: A | undefined;
  readonly atomics: History<A> | undefined;
  readonly reads: History<A> | undefined;
  readonly observers: History<A> | undefined;
}

export interface ShadowOptions {
  readonly granules: number;
  readonly space: "smem" | "gmem" | "tmem";
  /** Whether reading a granule nobody has written is right. */
  readonly initialised: boolean;
}

/** What asynchronous operations rely on. No proxy stands before tensor memory. */
const asynchronousClocks: { readonly [S in ShadowOptions["space"]]: (known: Knowledge) => Clock } =
  {
    smem: ({ shared }) => shared,
    gmem: ({ global }) => global,
    tmem: ({ generic }) => generic,
  };

const untouched: State<never> = {
  write: undefined,
  overtaken: undefined,
  atomics: undefined,
  reads: undefined,
  observers: undefined,
};

export class ShadowMemory<A extends TrackedAccess = Access> {
  readonly #options: ShadowOptions;
  #granules: Int32Array | undefined;
  #states: State<A>[] = [untouched];
  /** How many states make a collection worth its scan of the granules. */
  #collectAt: number;

  constructor(options: ShadowOptions) {
    this.#options = options;
    this.#collectAt = this.#statesBeforeCollection(0);
  }

  /** How many states are held, for tests of its growth. */
  get stateCount(): number {
    return this.#states.length;
  }

  /** Starts an access by an agent (or on behalf of the issuer of a copy) that knows `knowledge`. */
  begin(access: A, knowledge: Knowledge): ShadowCursor<A> {
    const { granules, space, initialised } = this.#options;
    this.#granules ??= new Int32Array(granules);
    if (this.#states.length > this.#collectAt) this.#collect(this.#granules);
    const asynchronous = asynchronousClocks[space](knowledge);
    const step = new Step(access, knowledge.generic, asynchronous, initialised);
    return new ShadowCursor(this.#granules, this.#states, step);
  }

  /** Tells which granules nobody has written; undefined where all held something from the start. */
  unwritten(): ((granule: number) => boolean) | undefined {
    if (this.#options.initialised) return undefined;
    const granules = this.#granules;
    if (granules === undefined) return () => true;
    const isWritten = this.#states.map(({ write, atomics }) => (write ?? atomics) !== undefined);
    return (granule) => isWritten[granules[granule] as number] === false;
  }

  /** Visits runs of granules that were touched, with whether something may have been written there. */
  forEachTouched(visit: (start: number, length: number, isWritten: boolean) => void): void {
    const granules = this.#granules ?? new Int32Array(0);
    for (let start = 0; start < granules.length;) {
      const number = granules[start] as number;
      let end = start + 1;
      while (end < granules.length && granules[end] === number) end += 1;
      const { write, atomics } = this.#states[number] ?? untouched;
      if (number !== 0) visit(start, end - start, (write ?? atomics) !== undefined);
      start = end;
    }
  }

  /** Forgets everything: the memory of a new block. */
  clear(): void {
    if (this.#states.length === 1) return;
    this.#granules?.fill(0);
    this.#states = [untouched];
    this.#collectAt = this.#statesBeforeCollection(0);
  }

  #statesBeforeCollection(live: number): number {
    return 1024 + 2 * live + (this.#options.granules >>> 4);
  }

  /** Drops the states no granule has any more. */
  #collect(granules: Int32Array): void {
    const renumbered = new Int32Array(this.#states.length);
    const live: State<A>[] = [untouched];
    for (let granule = 0; granule < granules.length; granule++) {
      const old = granules[granule] as number;
      if (old === 0) continue;
      let renamed = renumbered[old] as number;
      if (renamed === 0) {
        renamed = live.length;
        renumbered[old] = renamed;
        live.push(this.#states[old] ?? untouched);
      }
      granules[granule] = renamed;
    }
    this.#states = live;
    this.#collectAt = this.#statesBeforeCollection(live.length);
  }
}

/** How many states are compared with a new one. Merging keeps memory from falling into ever smaller runs. */
const recentStates = 8;

function sameState<A>(left: State<A>, right: State<A>): boolean {
  return (
    left.write === right.write &&
    left.overtaken === right.overtaken &&
    sameHistory(left.atomics, right.atomics) &&
    sameHistory(left.reads, right.reads) &&
    sameHistory(left.observers, right.observers)
  );
}

function sameHistory<A>(left: History<A> | undefined, right: History<A> | undefined): boolean {
  return left === right || (left?.access === right?.access && left?.older === right?.older);
}

/** Replaces a state from `start` on; where another one, or the end, is met. */
function replaceWhile(
  granules: Int32Array,
  start: number,
  end: number,
  met: number,
  following: number,
): number {
  let granule = start;
  while (granule < end && granules[granule] === met) {
    granules[granule] = following;
    granule += 1;
  }
  return granule;
}

/** One access on its way through the granules it touches. Not to be used after the next `begin`. */
export class ShadowCursor<A extends TrackedAccess = Access> {
  readonly #granules: Int32Array;
  readonly #states: State<A>[];
  readonly #step: Step<A>;
  readonly #following = new Map<number, number>();
  #lastMet = -1;
  #lastFollowing = 0;

  constructor(granules: Int32Array, states: State<A>[], step: Step<A>) {
    this.#granules = granules;
    this.#states = states;
    this.#step = step;
  }

  /** What was found so far; a pair of ops once, at the first granule. */
  get conflicts(): readonly Conflict<A>[] {
    return this.#step.conflicts;
  }

  /** Touches `length` granules from `start`. */
  run(start: number, length: number): void {
    const end = start + length;
    const granules = this.#granules;
    if (start < 0 || end > granules.length)
      throw new Error(`granules ${start} to ${end} of ${granules.length}`);
    let granule = replaceWhile(granules, start, end, this.#lastMet, this.#lastFollowing);
    while (granule < end) {
      const met = granules[granule] as number;
      const following = this.#follow(met, granule);
      this.#lastMet = met;
      this.#lastFollowing = following;
      granule = replaceWhile(granules, granule, end, met, following);
    }
  }

  #follow(met: number, granule: number): number {
    const known = this.#following.get(met);
    if (known !== undefined) return known;
    const state = this.#states[met] ?? untouched;
    const following = this.#numberOf(this.#step.from(state, granule));
    this.#following.set(met, following);
    // An access may touch a granule twice, and the second time changes nothing.
    this.#following.set(following, following);
    return following;
  }

  /** The number of a state, the one it has where this access led to the same before. */
  #numberOf(state: State<A>): number {
    const states = this.#states;
    const oldest = Math.max(1, states.length - recentStates);
    for (let number = states.length - 1; number >= oldest; number--)
      if (sameState(states[number] ?? untouched, state)) return number;
    return states.push(state) - 1;
  }
}

/** The rules of the table above for one access. */
class Step<A extends TrackedAccess> {
  readonly conflicts: Conflict<A>[] = [];
  readonly #access: A;
  readonly #generic: Clock;
  readonly #asynchronous: Clock;
  /** What the access must find its predecessors in. */
  readonly #clock: Clock;
  readonly #initialised: boolean;
  readonly #written: State<A>;

  constructor(access: A, generic: Clock, asynchronous: Clock, initialised: boolean) {
    this.#access = access;
    this.#generic = generic;
    this.#asynchronous = asynchronous;
    this.#clock = access.proxy === "generic" ? generic : asynchronous;
    this.#initialised = initialised;
    this.#written = { ...untouched, write: access };
  }

  from(state: State<A>, granule: number): State<A> {
    const { mode } = this.#access;
    const { write, overtaken, atomics, reads, observers } = state;
    const isAfterWrite = write === undefined || this.#order(write, granule);
    if (overtaken !== undefined) this.#order(overtaken, granule);
    if (mode === "atomic" || mode === "observe") this.#orderStrangers(atomics, granule);
    else this.#orderAll(atomics, granule);
    if (mode === "atomic") this.#orderStrangers(observers, granule);
    if (mode === "observe" && this.#access.wantsContents === true)
      this.#checkContents(state, granule);
    if (mode === "observe") return { ...state, observers: this.#withObserver(observers) };
    if (mode !== "read") this.#orderAll(reads, granule);
    if (mode === "write") {
      this.#orderAll(observers, granule);
      return isAfterWrite ? this.#written : { ...this.#written, overtaken: write };
    }
    this.#checkContents(state, granule);
    return mode === "read"
      ? { ...state, reads: this.#added(reads) }
      : { ...state, atomics: this.#added(this.#access.updates === true ? undefined : atomics) };
  }

  /** Atomics that may not meet this one must be ordered with it like other accesses. */
  #orderStrangers(history: History<A> | undefined, granule: number): void {
    const current = this.#access;
    if (current.mayMeet === undefined) return;
    for (let link = history; link !== undefined; link = link.older) {
      const { access } = link;
      if (current.mayMeet(access) && access.mayMeet?.(current) !== false) continue;
      this.#order(access, granule);
    }
  }

  /** Whoever polls is there once. */
  #withObserver(observers: History<A> | undefined): History<A> {
    for (let link = observers; link !== undefined; link = link.older)
      if (link.access === this.#access && observers !== undefined) return observers;
    return this.#added(observers);
  }

  #orderAll(history: History<A> | undefined, granule: number): void {
    for (let link = history; link !== undefined; link = link.older)
      this.#order(link.access, granule);
  }

  /** Whether the access comes after `earlier`; reports that it does not. */
  #order(earlier: A, granule: number): boolean {
    const { agent, count } = earlier;
    if (agent === this.#access.agent || this.#clock.includes(agent, count)) {
      if (this.#lacksFence(earlier))
        this.#report({ kind: "race", earlier, current: this.#access, granule, missing: "fence" });
      return true;
    }
    const missing = this.#generic.includes(agent, count) ? "fence" : "order";
    this.#report({ kind: "race", earlier, current: this.#access, granule, missing });
    return false;
  }

  #lacksFence({ fencedBy, count }: A): boolean {
    const insists = this.#access.insistsOnFence === true && fencedBy !== undefined;
    return insists && !this.#clock.includes(fencedBy, count);
  }

  /** A reader wants something there, written under its own name. */
  #checkContents({ write, atomics }: State<A>, granule: number): void {
    const current = this.#access;
    const last = atomics?.access ?? write;
    if (last === undefined) {
      if (!this.#initialised) this.#report({ kind: "uninitialised", current, granule });
    } else if (last.member !== 0 && current.member !== 0 && last.member !== current.member)
      this.#report({ kind: "union", earlier: last, current, granule });
  }

  #report(conflict: Conflict<A>): void {
    const opOf = (one: Conflict<A>) => (one.kind === "uninitialised" ? undefined : one.earlier.op);
    const known = this.conflicts.some(
      (other) => other.kind === conflict.kind && opOf(other) === opOf(conflict),
    );
    if (!known) this.conflicts.push(conflict);
  }

  #standsFor({ agent, count }: A): boolean {
    return agent === this.#access.agent || this.#asynchronous.includes(agent, count);
  }

  #added(history: History<A> | undefined): History<A> {
    let older = history;
    while (older !== undefined && this.#standsFor(older.access)) older = older.older;
    if (older !== undefined && older.size >= older.bound) older = this.#pruned(older);
    return {
      access: this.#access,
      older,
      size: (older?.size ?? 0) + 1,
      bound: older?.bound ?? smallestBound,
    };
  }

  /** Looking at all members only when their number has doubled keeps an addition O(1) on average. */
  #pruned(history: History<A>): History<A> | undefined {
    const kept: A[] = [];
    for (let link: History<A> | undefined = history; link !== undefined; link = link.older)
      if (!this.#standsFor(link.access)) kept.push(link.access);
    const bound = Math.max(smallestBound, 2 * kept.length);
    return kept.reduceRight<History<A> | undefined>(
      (older, access) => ({ access, older, size: (older?.size ?? 0) + 1, bound }),
      undefined,
    );
  }
}
