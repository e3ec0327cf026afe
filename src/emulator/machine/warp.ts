/** A warp: the registers and stacks of 32 lanes, and what the steps of a program ask of it. */
import type { TilewrightError } from "../../support/diagnostics.ts";
import { sharedBase, spaceOf } from "../addresses.ts";
import type { BlockView, CollectiveInstruction, WarpView } from "../collective.ts";
import { memoryOf, noMemory } from "../memory.ts";
import type { MemoryViews } from "../memory.ts";
import type { Naming } from "../naming.ts";
import type { AccessKind } from "../thread-instructions/memory.ts";
import type { Marks } from "../host-workers/touched-bytes.ts";
import type { ArrayBytes } from "./launch-arrays.ts";
import type { ProgramFunction } from "../program/function.ts";
import { warpLanes } from "../program/registers.ts";
import { Knowledge } from "../../happens-before/knowledge.ts";
import { Learning } from "../checks/poll-acquires.ts";
import type { WarpTimeline } from "../checks/warp-timeline.ts";
import { scoped } from "../../happens-before/memory-scopes.ts";
import type { Scope } from "../../happens-before/memory-scopes.ts";
import type { BlockBarriers } from "./named-barriers.ts";
import type { ClusterState } from "./cluster.ts";
import { DynamicStack } from "./dynamic-stack.ts";
import type { RegisterBudget } from "./register-pool.ts";
import { LaneGroups } from "./divergence.ts";
import type { Frame } from "./divergence.ts";
import { SpinDetector } from "./spin-detection.ts";

/** Memory found by `locate`; one object, used over and over. */
export interface Found {
  views: MemoryViews;
  offset: number;
}

/** Part of what lanes store to the addresses of a row. */
export interface StoredBytes {
  readonly slot: number;
  readonly offset: number;
  readonly bytes: number;
}

/** What a warp asks of the launch it belongs to. */
export interface WarpHost {
  locate(
    warp: WarpState,
    site: number,
    lane: number,
    kind: AccessKind,
    address: number,
    bytes: number,
  ): Found;
  /**
   * Checks the accesses of a row of addresses; the lanes that read what nothing has written. `touched` has the bytes of its word that a lane
   * touches, where those are not all.
   */
  check(
    warp: WarpState,
    site: number,
    slot: number,
    mask: number,
    touched: Int32Array | undefined,
  ): number;
  /** Of those lanes, the ones for which it is these bytes of the access. */
  unwritten(warp: WarpState, slot: number, mask: number, offset: number, bytes: number): number;
  /** Lanes have stored a register that holds nothing defined. */
  storedUndefined(
    warp: WarpState,
    site: number,
    register: number,
    mask: number,
    stored: StoredBytes,
  ): void;
  undefinedRegister(warp: WarpState, site: number, register: number, mask: number): void;
  /** A lane has stored other bytes to a place than a lane before it, by the same instruction. */
  storedTwice(
    warp: WarpState,
    site: number,
    lane: number,
    views: MemoryViews,
    offset: number,
  ): void;
  clock(): number;
  /** Takes what a lane prints. */
  print(text: string): void;
  /** Memory for `malloc`: its address, or 0 where nothing is left. */
  allocate(bytes: number): number;
  /** Takes such memory back; whether there was any. */
  release(address: number): boolean;
  fence(warp: WarpState, scope: Scope): void;
  /** The report of lanes that went past an instruction which others of the warp wait at. */
  divergence(warp: WarpState, waiting: number, skipped: number): TilewrightError;
  illegalBudget(
    warp: WarpState,
    site: number,
    registers: number,
    expected: string,
  ): TilewrightError;
  /** A block has come to its end. */
  blockEnded(block: BlockState): void;
  /** Something changed that a waiting lane may be waiting for. */
  changed(): void;
  /** Counts of what lanes did to memory. */
  readonly activity: { stores: number };
  readonly heap: MemoryViews;
  readonly marks: Marks | undefined;
  /** The arrays that addresses came from. */
  readonly arrays: readonly ArrayBytes[];
  readonly parameters: MemoryViews;
  /** Addresses of the module's variables in global memory. */
  readonly symbols: Float64Array;
  readonly naming: Naming;
}

export interface BlockState extends BlockView {
  readonly warps: readonly WarpState[];
  readonly cluster: readonly BlockState[];
  readonly barriers: BlockBarriers;
  readonly budget: RegisterBudget;
}

const smallestStack = 64;

/**
 * Rows of addresses that a step leaves for its checks: one for each instruction, 96 at most. All warps share them: a step
 * is over, checks and all, before another warp has its turn.
 */
const stepAddresses = new Float64Array(96 * warpLanes);

export class WarpState implements WarpView {
  readonly index: number;
  readonly block: BlockState;
  readonly cluster: ClusterState;
  readonly host: WarpHost;
  readonly heap: MemoryViews;
  readonly marks: Marks | undefined;
  readonly arrays: readonly ArrayBytes[];
  readonly parameters: MemoryViews;
  readonly symbols: Float64Array;
  readonly lanesX = new Int32Array(warpLanes);
  readonly lanesY = new Int32Array(warpLanes);
  readonly lanesZ = new Int32Array(warpLanes);
  readonly specials: Int32Array;
  readonly activity: { stores: number };
  readonly timeline: WarpTimeline | undefined;
  readonly learning: Learning | undefined;
  readonly addresses = stepAddresses;
  readonly groups: LaneGroups;
  readonly flights = new Map<number, CollectiveInstruction>();
  readonly spin = new SpinDetector();
  /** Whether it has a turn to come; the others sleep. */
  isAwake = true;
  words: Int32Array;
  singles: Float32Array;
  doubles: Float64Array;
  /** The frame that is running: where its registers and its part of the stacks begin. */
  base = 0;
  localBase = 0;
  /** All lanes' stacks, one behind the other, and the bytes of each. */
  stack: MemoryViews;
  stackBytes: number;
  /** What lanes have taken of their stacks themselves. */
  readonly dynamic = new DynamicStack();
  readonly #found: Found;
  #kept: { readonly views: MemoryViews; readonly offset: number; readonly bytes: Uint8Array };
  #wordsUsed: number;
  #stackUsed: number;
  readonly #freeFrames = new Map<ProgramFunction, Frame[]>();
  /** Lanes at `bar.warp.sync` by the mask they name, and those let go. */
  readonly warpSync = { arrived: new Map<number, number>(), released: 0 };

  constructor(options: {
    readonly index: number;
    readonly block: BlockState;
    readonly cluster: ClusterState;
    readonly host: WarpHost;
    readonly entry: ProgramFunction;
    readonly live: number;
    readonly specials: Int32Array;
    readonly timeline: WarpTimeline | undefined;
  }) {
    const { index, block, cluster, host, entry, live, specials, timeline } = options;
    this.index = index;
    this.block = block;
    this.cluster = cluster;
    this.host = host;
    this.heap = host.heap;
    this.marks = host.marks;
    this.arrays = host.arrays;
    this.#found = { views: host.heap, offset: 0 };
    this.#kept = { views: host.heap, offset: 0, bytes: new Uint8Array() };
    this.activity = host.activity;
    this.parameters = host.parameters;
    this.symbols = host.symbols;
    this.specials = specials;
    this.timeline = timeline;
    this.learning = timeline === undefined ? undefined : new Learning(timeline);
    const buffer = new ArrayBuffer(4 * entry.layout.words);
    this.words = new Int32Array(buffer);
    this.singles = new Float32Array(buffer);
    this.doubles = new Float64Array(buffer);
    this.#wordsUsed = entry.layout.words;
    this.#stackUsed = entry.localBytes;
    this.stackBytes = Math.max(smallestStack, 16 * Math.ceil(entry.localBytes / 16));
    this.stack = entry.localBytes === 0 ? noMemory : memoryOf(warpLanes * this.stackBytes);
    this.groups = new LaneGroups(live, entry.firstStep, {
      function: entry,
      base: 0,
      localBase: 0,
      parent: undefined,
      returnStep: -1,
      resultPlaces: [],
      lanes: live,
    });
  }

  get live(): number {
    return this.groups.live;
  }

  get title(): string {
    return this.host.naming.warp(this.index, this.block.index);
  }

  /* ---- what steps call ---- */

  locate(site: number, lane: number, kind: AccessKind, address: number, bytes: number): Found {
    const { shared } = this.block;
    const offset = address - sharedBase(this.block.rank);
    const fits = offset >= 0 && offset + bytes <= shared.bytes.length;
    if (kind === "shared" && fits && offset % bytes === 0) {
      this.#found.views = shared;
      this.#found.offset = offset;
      return this.#found;
    }
    return this.host.locate(this, site, lane, kind, address, bytes);
  }

  check(site: number, slot: number, mask: number, touched?: Int32Array): number {
    return mask === 0 ? 0 : this.host.check(this, site, slot, mask, touched);
  }

  unwritten(slot: number, mask: number, offset: number, bytes: number): number {
    return this.host.unwritten(this, slot, mask, offset, bytes);
  }

  storedUndefined(
    site: number,
    register: number,
    mask: number,
    slot: number,
    offset: number,
    bytes: number,
  ): void {
    this.host.storedUndefined(this, site, register, mask, { slot, offset, bytes });
  }

  /** Whether one of the lanes has the address of this one, in a row of addresses. */
  hasStored(slot: number, lanes: number, lane: number): boolean {
    const { addresses } = this;
    const own = addresses[32 * slot + lane] as number;
    // Lanes have stacks of their own behind the same addresses.
    if (spaceOf(own) === "local") return false;
    for (let rest = lanes; rest !== 0; rest &= rest - 1)
      if (addresses[32 * slot + (31 - Math.clz32(rest & -rest))] === own) return true;
    return false;
  }

  /** Keeps bytes that a lane is about to store to, as another lane has just left them. */
  keep(views: MemoryViews, offset: number, bytes: number): void {
    this.#kept = { views, offset, bytes: views.bytes.slice(offset, offset + bytes) };
  }

  /** Reports two lanes that have stored different bytes to one place at once. */
  compareKept(site: number, lane: number): void {
    const { views, offset, bytes } = this.#kept;
    if (bytes.some((byte, at) => views.bytes[offset + at] !== byte))
      this.host.storedTwice(this, site, lane, views, offset);
  }

  undefined(site: number, register: number, mask: number): void {
    this.host.undefinedRegister(this, site, register, mask);
  }

  /** Reports reads of registers that an asynchronous instruction has under way: pairs of register and site. */
  inFlight(reads: readonly number[]): void {
    for (let at = 0; at < reads.length; at += 2) {
      const register = reads[at] as number;
      if (this.flights.has(this.base + register))
        this.host.undefinedRegister(this, reads[at + 1] as number, register, -1);
    }
  }

  polled(views?: MemoryViews, offset?: number): void {
    this.spin.polled(views, offset);
  }

  /** A conditional jump, a guard or a barrier: what polls told counts from here on. */
  decide(): void {
    this.learning?.decide();
  }

  see(knowledge: Knowledge): void {
    this.learning?.see(scoped(() => knowledge));
  }

  get found(): Knowledge {
    return this.learning?.handed.found[0] ?? Knowledge.none;
  }

  /** What the warp knew at its last fence, of whatever scope. */
  get fenced(): Knowledge {
    return this.learning?.fencedAt(0) ?? Knowledge.none;
  }

  learn(knowledge: Knowledge): void {
    this.learning?.learn(knowledge);
  }

  clock(word: number, before: number): number {
    // Whoever looks at the time may go round without a change and come to an end nevertheless.
    this.spin.forget();
    const time = this.host.clock() + before;
    return word === 0 ? time | 0 : Math.floor(time / 4294967296) | 0;
  }

  split(taken: number, target: number, otherwise: number, reconvergence: number): number {
    return this.groups.split(taken, target, otherwise, reconvergence);
  }

  /* ---- calls ---- */

  /** A frame for lanes that call a function; nothing in it is defined yet. */
  openFrame(
    callee: ProgramFunction,
    parent: Frame,
    returnStep: number,
    resultPlaces: readonly number[],
    lanes: number,
  ): Frame {
    const free = this.#freeFrames.get(callee)?.pop();
    const place = free ?? this.#placeFrame(callee);
    this.words.fill(0, place.base, place.base + callee.layout.places.size);
    const { base, localBase } = place;
    const taken = this.dynamic.save();
    return { function: callee, base, localBase, parent, returnStep, resultPlaces, lanes, taken };
  }

  #placeFrame(callee: ProgramFunction): { readonly base: number; readonly localBase: number } {
    const base = this.#wordsUsed;
    const localBase = 16 * Math.ceil(this.#stackUsed / 16);
    this.#wordsUsed += callee.layout.words;
    this.#stackUsed = localBase + callee.localBytes;
    if (this.#wordsUsed > this.words.length) this.#growRegisters();
    if (this.#stackUsed > this.stackBytes || this.stack.bytes.length === 0) this.#growStack();
    return { base, localBase };
  }

  #growRegisters(): void {
    const grown = new Int32Array(Math.max(2 * this.words.length, this.#wordsUsed));
    grown.set(this.words);
    this.words = grown;
    this.singles = new Float32Array(grown.buffer);
    this.doubles = new Float64Array(grown.buffer, 0, grown.length >>> 1);
  }

  #growStack(): void {
    const old = this.stack;
    const oldBytes = this.stackBytes;
    this.stackBytes = 16 * Math.ceil(Math.max(2 * oldBytes, this.#stackUsed) / 16);
    this.stack = memoryOf(warpLanes * this.stackBytes);
    if (old.bytes.length === 0) return;
    for (let lane = 0; lane < warpLanes; lane++) {
      const from = lane * oldBytes;
      const to = lane * this.stackBytes;
      this.stack.bytes.set(old.bytes.subarray(from, from + oldBytes), to);
      this.stack.states.set(old.states.subarray(from, from + oldBytes), to);
    }
  }

  /** Lanes leave a frame; whoever is last gives it back. */
  closeFrame(frame: Frame, mask: number): void {
    frame.lanes &= ~mask;
    this.dynamic.restoreAll(mask, frame.taken);
    if (frame.lanes !== 0) return;
    const free = this.#freeFrames.get(frame.function);
    if (free === undefined) this.#freeFrames.set(frame.function, [frame]);
    else free.push(frame);
  }
}
