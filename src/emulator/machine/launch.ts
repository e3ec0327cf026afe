/** A launch under way: what warps, and the rules of collective instructions, ask for. */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { DiagnosticDetails } from "../../support/diagnostics.ts";
import { Random } from "../../support/random.ts";
import type { Target } from "../../targets/target.ts";
import type { AccessRequest, MachineView, Place, RecordedAccess } from "../collective.ts";
import { reportLeftovers } from "../barriers/leftovers.ts";
import { reportUnfreed } from "../tensor-memory/allocation.ts";
import type { AccessKind } from "../thread-instructions/memory.ts";
import type { Heap, MemoryViews } from "../memory.ts";
import type { Naming } from "../naming.ts";
import type { Program, Site } from "../program/program.ts";
import { globalBase } from "../addresses.ts";
import { deviceHeap } from "../program/implicit-memory.ts";
import { Checker } from "../checks/checker.ts";
import type { Scope } from "../../happens-before/memory-scopes.ts";
import type { Marks } from "../host-workers/touched-bytes.ts";
import { ClusterState } from "./cluster.ts";
import { arraysOf } from "./launch-arrays.ts";
import type { ArrayBytes } from "./launch-arrays.ts";
import { AddressMap, otherBlock } from "./resolve-address.ts";
import type { Fault, Located, Request } from "./resolve-address.ts";
import { deviceHeapOf } from "./device-heap.ts";
import type { DeviceHeap } from "./device-heap.ts";
import { divergence } from "./deadlock.ts";
import type { BlockState, Found, WarpHost, WarpState, StoredBytes } from "./warp.ts";

export interface LaunchOptions {
  readonly program: Program;
  readonly memory: Heap;
  readonly parameters: MemoryViews;
  readonly constants: MemoryViews;
  readonly symbols: Float64Array;
  readonly target: Target;
  readonly seed: number;
  readonly checks: boolean;
  readonly naming: Naming;
  readonly isOwn: boolean;
  /** Takes note of what is touched, for a program that was compiled for it. */
  readonly marks?: Marks | undefined;
}

export class Launch implements WarpHost, MachineView {
  readonly program: Program;
  readonly target: Target;
  readonly parameters: MemoryViews;
  readonly symbols: Float64Array;
  readonly marks: Marks | undefined;
  readonly arrays: readonly ArrayBytes[];
  readonly checks: boolean;
  readonly naming: Naming;
  readonly isOwn: boolean;
  readonly findings: TilewrightError[] = [];
  readonly notes: TilewrightError[] = [];
  readonly printed: string[] = [];
  readonly counters = { laneInstructions: 0, warpInstructions: 0 };
  readonly checker: Checker | undefined;
  readonly activity = { stores: 0 };
  /** Global memory, whose views stay the same for as long as it is lent to this launch. */
  readonly heap: MemoryViews;
  readonly #memory: Heap;
  readonly #seed: number;
  readonly #addresses: AddressMap;
  readonly #found: Found;
  #random: Random;
  /** The cluster whose turn it is. */
  cluster = new ClusterState();
  #pending: { readonly cluster: ClusterState; readonly complete: () => void }[] = [];
  #changes = 0;
  #agents = 0;
  #rounds = 0;

  constructor(options: LaunchOptions) {
    const { program, memory, parameters, constants, symbols, target, seed, checks, naming } =
      options;
    this.#memory = memory;
    this.heap = memory.views;
    this.#seed = seed;
    this.marks = options.marks;
    this.program = program;
    this.target = target;
    this.parameters = parameters;
    this.symbols = symbols;
    this.#random = new Random(seed);
    this.checks = checks;
    this.naming = naming;
    this.isOwn = options.isOwn;
    this.arrays = arraysOf(program.provenance, parameters, memory);
    this.#addresses = new AddressMap(memory, constants, parameters, naming);
    this.#found = { views: memory.views, offset: 0 };
    this.checker = checks ? new Checker(this) : undefined;
  }

  get random(): Random {
    return this.#random;
  }

  /** Begins a cluster that runs by itself: its turns depend on the seed and its number alone. */
  beginCluster(cluster: number): void {
    this.#random = new Random(this.#seed ^ Math.imul(cluster, 0x9e3779b1));
  }

  /** Who knows which clusters have not started. */
  unstarted: (() => readonly [number, number, number] | undefined) | undefined;

  cancelCluster(): readonly [x: number, y: number, z: number] | undefined {
    return this.unstarted?.();
  }

  newAgent(): number {
    return this.#agents++;
  }

  /** A number for a round of a warp, from 1; see `checks/warp-timeline.ts`. */
  newRound(): number {
    return ++this.#rounds;
  }

  /** Changes with everything that lanes may wait for, plain stores included. */
  get version(): number {
    return this.#changes + this.activity.stores;
  }

  changed(): void {
    this.#changes += 1;
    this.cluster.changes += 1;
  }

  print(text: string): void {
    this.printed.push(text);
  }

  get #deviceHeap(): DeviceHeap {
    const slot = this.program.globals.findIndex(({ name }) => name === deviceHeap);
    return deviceHeapOf(this.#memory, this.symbols[slot] ?? globalBase);
  }

  allocate(bytes: number): number {
    return this.#deviceHeap.allocate(this.heap, bytes);
  }

  release(address: number): boolean {
    return this.#deviceHeap.free(this.heap, address);
  }

  clock(): number {
    return this.counters.warpInstructions;
  }

  fence(warp: WarpState, scope: Scope): void {
    this.checker?.fence(warp, scope);
  }

  divergence(warp: WarpState, waiting: number, skipped: number): TilewrightError {
    return divergence(this, warp, waiting, skipped);
  }

  illegalBudget(
    warp: WarpState,
    site: number,
    registers: number,
    expected: string,
  ): TilewrightError {
    const { instruction, location } = this.site(site);
    return new TilewrightError({
      code: "TW8022",
      message: `${instruction.opcode} of ${warp.title} cannot be granted`,
      location,
      expected,
      found: `${registers} registers`,
    });
  }

  blockEnded(block: BlockState): void {
    this.checker?.blockEnded(block);
    if (this.checks) reportUnfreed(this, block);
  }

  /** No lane of the cluster lives any more; what it has under way comes to its end. */
  clusterEnded(cluster: ClusterState): void {
    if (this.checker === undefined) return;
    while (this.#completeOf(cluster));
    for (const block of cluster.blocks) reportLeftovers(this, block);
  }

  check(
    warp: WarpState,
    site: number,
    slot: number,
    mask: number,
    touched: Int32Array | undefined,
  ): number {
    return this.checker?.accesses(warp, site, slot, mask, touched) ?? 0;
  }

  unwritten(warp: WarpState, slot: number, mask: number, offset: number, bytes: number): number {
    return this.checker?.unwritten(warp, slot, mask, offset, bytes) ?? 0;
  }

  storedUndefined(
    warp: WarpState,
    site: number,
    register: number,
    mask: number,
    stored: StoredBytes,
  ): void {
    this.checker?.storedUndefined(warp, site, register, mask, stored);
  }

  storedTwice(
    warp: WarpState,
    site: number,
    lane: number,
    views: MemoryViews,
    offset: number,
  ): void {
    this.checker?.storedTwice(warp, site, lane, views, offset);
  }

  undefinedRegister(warp: WarpState, site: number, register: number, mask: number): void {
    this.checker?.undefinedRegister(warp, site, register, mask);
  }

  site(number: number): Site {
    return this.program.sites[number] as Site;
  }

  findSite(number: number): Site | undefined {
    return this.program.sites[number];
  }

  /* ---- addresses ---- */

  locate(
    warp: WarpState,
    site: number,
    lane: number,
    kind: AccessKind,
    address: number,
    bytes: number,
  ): Found {
    const request = { warp, lane, kind, address, bytes, alignment: bytes };
    const place = this.site(site);
    const located = this.#locate(request, place);
    const other = otherBlock(located, request, place.instruction.opcode);
    if (other !== undefined) throw fault(other, request, place.instruction.opcode, place.location);
    this.#found.views = located.views;
    this.#found.offset = located.offset;
    return this.#found;
  }

  resolve(request: AccessRequest): Place {
    const warp = request.warp as WarpState;
    const { instruction, location } = request.instruction;
    const place = this.#locate({ ...request, warp }, { instruction, location });
    if (place.space === "global") this.marks?.touch(place.offset, request.bytes, "read");
    return place;
  }

  #locate(
    request: Request,
    { instruction, location }: Pick<Site, "instruction" | "location">,
  ): Located {
    const located = this.#addresses.locate(request);
    if ("code" in located) throw fault(located, request, instruction.opcode, location);
    if (this.checks && located.space === "global")
      this.#requireOwn(instruction, located.offset, request, location);
    return located;
  }

  /** An address that came from one array does not lead into another. */
  #requireOwn(
    instruction: Site["instruction"],
    offset: number,
    { warp, lane, bytes }: Request,
    location: Site["location"],
  ): void {
    const array = this.arrays[this.program.provenance.accesses.get(instruction) ?? -1];
    if (array?.address === undefined || (offset >= array.first && offset + bytes <= array.end))
      return;
    throw new TilewrightError({
      code: "TW8018",
      message: `${instruction.opcode} through one array lands in another, in lane ${lane} of ${warp.title}`,
      location,
      expected: `an address in ${this.naming.array(array.address)}`,
      found: this.naming.global(offset),
    });
  }

  wrote({ space, offset }: Place, bytes: number): void {
    if (space === "global") this.marks?.touch(offset, bytes, "write");
  }

  record(access: RecordedAccess): void {
    this.checker?.record(access);
  }

  /* ---- what completes later ---- */

  schedule(complete: () => void): void {
    this.#pending.push({ cluster: this.cluster, complete });
  }

  get hasPending(): boolean {
    return this.#pending.length > 0;
  }

  /** Completes one of the operations under way, whichever the seed says; the cluster that it belongs to. */
  completeOne(): ClusterState {
    const position = this.random.below(this.#pending.length);
    const operation = this.#pending[position];
    const last = this.#pending.pop();
    if (last !== undefined && position < this.#pending.length) this.#pending[position] = last;
    if (operation === undefined) return this.cluster;
    this.cluster = operation.cluster;
    operation.complete();
    this.changed();
    return operation.cluster;
  }

  /** Completes all that a cluster has under way by now; false where that is nothing. */
  #completeOf(cluster: ClusterState): boolean {
    const own = this.#pending.filter((operation) => operation.cluster === cluster);
    if (own.length === 0) return false;
    this.#pending = this.#pending.filter((operation) => operation.cluster !== cluster);
    this.cluster = cluster;
    for (const { complete } of own) complete();
    this.changed();
    return true;
  }

  report(details: DiagnosticDetails): void {
    this.findings.push(new TilewrightError(details));
  }

  note(details: DiagnosticDetails): void {
    this.notes.push(new TilewrightError(details));
  }
}

function fault(
  { code, found }: Fault,
  { warp, lane }: Request,
  opcode: string,
  location: Site["location"],
): TilewrightError {
  const where = `lane ${lane} of ${warp.title}`;
  const what = code === "TW8010" ? "is outside of memory" : "is misaligned";
  return new TilewrightError({
    code,
    message: `the address of ${opcode} ${what}, in ${where}`,
    location,
    expected:
      code === "TW8010"
        ? "an address within an array, shared or local memory"
        : "a multiple of the bytes that are accessed",
    found,
  });
}
