/**
 * The checks of a launch: registers and memory that are read before they are written, and races. Lanes of a
 * warp count as one agent; a warp's access is checked as a whole, after its lanes have made it.
 */
import type { Instruction } from "../../ptx/module.ts";
import { Knowledge } from "../../happens-before/knowledge.ts";
import { unknownLocation } from "../../support/location.ts";
import type { DiagnosticDetails, RelatedNote } from "../../support/diagnostics.ts";
import type { Conflict } from "../../happens-before/shadow.ts";
import type { BlockView, RecordedAccess } from "../collective.ts";
import type { BlockState, StoredBytes, WarpState } from "../machine/warp.ts";
import { byteStates } from "../memory.ts";
import type { MemoryViews } from "../memory.ts";
import type { Naming } from "../naming.ts";
import type { Site } from "../program/program.ts";
import type { Marks } from "../host-workers/touched-bytes.ts";
import { ElementStores, elementStorePart } from "./element-stores.ts";
import type { ElementStorePart } from "./element-stores.ts";
import { IntraWarpRaces } from "./intra-warp-races.ts";
import type { IntraWarpRace } from "./intra-warp-races.ts";
import { blockAt, eachPlace, offsetAt, Runs } from "./touched-ranges.ts";
import { MemoryOrder } from "./release-acquire.ts";
import { semanticsOf } from "./access-semantics.ts";
import type { AccessSemantics } from "./access-semantics.ts";
import { commonScope } from "../../happens-before/memory-scopes.ts";
import type { Scope } from "../../happens-before/memory-scopes.ts";
import { Shadows } from "./shadow-memory.ts";
import { Suspects } from "./undefined-origins.ts";
import type { Suspect } from "./undefined-origins.ts";
import type { AccessRuns, MemoryAccess } from "./shadow-memory.ts";

/** What the checks ask of the launch. */
export interface CheckedLaunch {
  readonly heap: MemoryViews;
  readonly naming: Naming;
  readonly isOwn: boolean;
  site(number: number): Site;
  findSite(number: number): Site | undefined;
  report(details: DiagnosticDetails): void;
  note(details: DiagnosticDetails): void;
}

type Race = Conflict<MemoryAccess> & { readonly kind: "race" };

/** Four bytes that have been written. */
const writtenWord = 0x02020202;

/** Products and copies beside tensor memory, before which compilers in the field leave out proxy fences. */
function isTensorCore({ opcode }: Instruction): boolean {
  return opcode.startsWith("tcgen05.");
}

/** Stands for the end of a block in reports. */
const blockEnd: Instruction = { kind: "instruction", opcode: "the end", operands: [] };

export class Checker {
  readonly #launch: CheckedLaunch;
  readonly #reported = new Set<string>();
  readonly #shadows = new Shadows();
  readonly #order = new MemoryOrder();
  readonly #semantics: AccessSemantics[] = [];
  readonly #runs = new Runs();
  /** The last access that a warp made at a site; a step's accesses from one site are one access. */
  readonly #last = new WeakMap<WarpState, Map<number, MemoryAccess>>();
  readonly #suspects = new Suspects();
  readonly #laneRaces = new IntraWarpRaces();
  readonly #elementStores = new ElementStores();
  readonly #elementStoreParts: (ElementStorePart | "neither")[] = [];
  readonly #numbers = new Map<Instruction, number>();

  constructor(launch: CheckedLaunch) {
    this.#launch = launch;
  }

  fence(warp: WarpState, scope: Scope): void {
    this.#order.fence(warp, scope);
  }

  #semanticsOf(site: number): AccessSemantics {
    const known = this.#semantics[site];
    if (known !== undefined) return known;
    const found = semanticsOf(this.#launch.site(site).instruction.opcode);
    this.#semantics[site] = found;
    return found;
  }

  /**
   * The accesses of a warp's lanes at a site, whose addresses are in a row of `warp.addresses`. Gives the lanes
   * that read bytes which nothing has written. `touchedBits` says which bits of its word a lane touches, where those are not all.
   */
  accesses(
    warp: WarpState,
    site: number,
    slot: number,
    mask: number,
    touchedBits: Int32Array | undefined,
  ): number {
    const { memory } = this.#launch.site(site);
    const { timeline } = warp;
    if (memory === undefined || timeline === undefined) return 0;
    const semantics = this.#semanticsOf(site);
    const runs = this.#runs;
    if (touchedBits === undefined) runs.collect(warp, slot, mask, memory.bytes);
    else runs.collectBytes(warp, slot, mask, touchedBits);
    const access = this.#begin(warp, site, memory.mode, semantics);
    const touched = this.#shadows.begin(access, timeline.knowledge);
    let written = true;
    for (let at = 0; at < runs.count; at++) {
      const block = runs.blocks[at];
      const offset = runs.offsets[at] as number;
      const bytes = runs.lengths[at] as number;
      if (memory.mode === "read" && written) written = this.#areWritten(block, offset, bytes);
      touched.run(block, offset, bytes);
    }
    this.#reportConflicts(touched);
    this.#lanesAmongThemselves(warp, site, slot, mask, semantics, memory, touchedBits);
    if (touchedBits !== undefined) this.#storesOfElements(warp, site, mask, touchedBits);
    if (semantics.strong) this.#synchronise(warp, slot, mask, semantics);
    if (written) return 0;
    const lanes = this.unwritten(warp, slot, mask, 0, memory.bytes);
    this.#suspects.load(warp, site, slot, lanes);
    return lanes;
  }

  /** Looks at updates by which elements of 4 bits are stored. */
  #storesOfElements(warp: WarpState, number: number, mask: number, touched: Int32Array): void {
    const { timeline } = warp;
    const part = this.#elementStorePart(number);
    if (part === undefined || timeline === undefined) return;
    const stores = this.#elementStores;
    const site = this.#launch.site(number);
    if (part === "sets") {
      const twice = stores.set(warp, mask, touched);
      if (twice !== undefined)
        this.#reportTwice(warp, number, twice.lane, this.#byteText(twice.block, twice.offset));
      return;
    }
    const { agent, count } = timeline;
    const { instruction, location } = site;
    const access: MemoryAccess = {
      ...{ agent, count, mode: "write", proxy: "generic", member: 0 },
      ...{ op: instruction, location, warp: warp.index, block: warp.block.index },
    };
    for (const found of stores.clear(warp, mask, touched, access, timeline.knowledge)) {
      const { conflict, block, start } = found;
      if (conflict.kind === "race")
        this.#reportRace(conflict, () => this.#byteText(block, (start + conflict.granule) / 2));
    }
    const race = stores.laneRace(warp, number, mask);
    if (race !== undefined) this.#reportLaneRace(warp, site, race);
  }

  #elementStorePart(number: number): ElementStorePart | undefined {
    if (!this.#launch.isOwn) return undefined;
    const known = this.#elementStoreParts[number];
    if (known !== undefined) return known === "neither" ? undefined : known;
    const [before, site, after] = [number - 1, number, number + 1].map((each) =>
      this.#launch.findSite(each),
    );
    const part = site && elementStorePart(site, before, after);
    this.#elementStoreParts[number] = part ?? "neither";
    return part;
  }

  /** Accesses that are meant to meet others are looked at where they write: others must not. */
  #lanesAmongThemselves(
    warp: WarpState,
    site: number,
    slot: number,
    mask: number,
    { strong, writes }: AccessSemantics,
    { bytes, mode }: { readonly bytes: number; readonly mode: "read" | "write" | "atomic" },
    touched: Int32Array | undefined,
  ): void {
    if (strong && !writes) return;
    const kind = strong ? "atomic" : mode;
    const races = this.#laneRaces;
    const race = races.access(this.#runs, warp, site, slot, mask, bytes, kind, touched);
    if (race !== undefined) this.#reportLaneRace(warp, this.#launch.site(site), race);
  }

  /** Lanes that read bytes, some way into what they read, which nothing has written. */
  unwritten(warp: WarpState, slot: number, mask: number, offset: number, bytes: number): number {
    let lanes = 0;
    eachPlace(warp, slot, mask, offset, (block, at, lane) => {
      if (!this.#areWritten(block, at, bytes)) lanes |= 1 << lane;
    });
    return lanes;
  }

  #areWritten(block: BlockState | undefined, offset: number, bytes: number): boolean {
    const { states, stateWords } = block?.shared ?? this.#launch.heap;
    if (areWritten(stateWords, offset >>> 2, (offset + bytes + 3) >>> 2)) return true;
    for (let at = offset; at < offset + bytes; at++)
      if (states[at] === byteStates.unwritten) return false;
    return true;
  }

  /** Shared memory stays as undefined as what was stored there; global memory others see. */
  storedUndefined(
    warp: WarpState,
    site: number,
    register: number,
    mask: number,
    { slot, offset, bytes }: StoredBytes,
  ): void {
    let seen = 0;
    eachPlace(warp, slot, mask, offset, (block, at, lane) => {
      if (block === undefined) seen |= 1 << lane;
      else {
        block.shared.states.fill(byteStates.unwritten, at, at + bytes);
        const name = registerName(warp, register);
        this.#suspects.store(warp, lane, { site, register: name }, block, at);
      }
    });
    if (seen !== 0) this.undefinedRegister(warp, site, register, seen);
  }

  /** Two lanes of a warp store different bytes to one place at once: which of them stay is open. */
  storedTwice(
    warp: WarpState,
    site: number,
    lane: number,
    views: MemoryViews,
    offset: number,
  ): void {
    const { naming, heap } = this.#launch;
    const text = views === heap ? naming.global(offset) : naming.shared(offset);
    this.#reportTwice(warp, site, lane, text);
  }

  #reportTwice(warp: WarpState, site: number, lane: number, text: string): void {
    const { instruction, location } = this.#launch.site(site);
    this.#once(`twice ${site}`, () => ({
      code: "TW8019",
      message: `lanes of ${warp.title} store different values to one place by ${instruction.opcode}`,
      location,
      expected: "one value, or a place for each lane",
      found: `lane ${lane} and one before it, ${text}`,
    }));
  }

  #begin(
    warp: WarpState,
    number: number,
    mode: "read" | "write" | "atomic",
    { strong, writes, updates, scope }: AccessSemantics,
  ): MemoryAccess {
    const { agent = 0, count = 0 } = warp.timeline ?? {};
    let ofWarp = this.#last.get(warp);
    if (ofWarp === undefined) {
      ofWarp = new Map();
      this.#last.set(warp, ofWarp);
    }
    const known = ofWarp.get(number);
    if (known?.count === count) return known;
    const { instruction, location } = this.#launch.site(number);
    const access: MemoryAccess = {
      agent,
      count,
      mode: !strong ? mode : writes ? "atomic" : "observe",
      proxy: "generic",
      member: 0,
      op: instruction,
      location,
      warp: warp.index,
      block: warp.block.index,
      updates,
      ...(strong ? commonScope(warp.block, scope) : {}),
    };
    ofWarp.set(number, access);
    return access;
  }

  #synchronise(warp: WarpState, slot: number, mask: number, semantics: AccessSemantics): void {
    for (let rest = mask; rest !== 0; rest &= rest - 1) {
      const lane = 31 - Math.clz32(rest & -rest);
      const address = warp.addresses[32 * slot + lane] as number;
      const block = blockAt(warp, address);
      this.#order.access(warp, block, offsetAt(address, block), semantics);
    }
  }

  /** An access that a collective instruction makes, or has made for it later. */
  record(recorded: RecordedAccess): void {
    const { place, bytes, mode, proxy, epoch, known, warp, lane, instruction } = recorded;
    const { ofMap, fencedBy } = recorded;
    if (place.space !== "global" && place.space !== "shared") return;
    const { agent, count } = epoch;
    const access: MemoryAccess = {
      agent,
      count,
      mode,
      proxy,
      member: 0,
      op: instruction.instruction,
      location: instruction.location,
      warp: warp.index,
      block: warp.block.index,
      ofMap,
      fencedBy,
      insistsOnFence: isTensorCore(instruction.instruction),
    };
    const touched = this.#shadows.begin(access, known);
    touched.run(place.block, place.offset, bytes);
    this.#reportConflicts(touched);
    const issuer = warp as WarpState;
    const race =
      mode === "atomic" ? undefined : this.#laneRaces.look(issuer, lane, place, bytes, mode);
    if (race !== undefined) this.#reportLaneRace(issuer, instruction, race);
  }

  /** Marks all bytes of the heap that were touched so far. */
  mark(marks: Marks): void {
    this.#shadows.mark(marks);
  }

  /** The end of a block takes its shared memory away from whoever still uses it. */
  blockEnded(block: BlockState): void {
    const [first] = block.warps;
    const { agent = 0, count = 0 } = first?.timeline ?? {};
    const access: MemoryAccess = {
      agent,
      count,
      mode: "write",
      proxy: "generic",
      member: 0,
      op: blockEnd,
      location: unknownLocation,
      warp: 0,
      block: block.index,
    };
    const known = block.warps.reduce(
      (all, { timeline }) => all.join(timeline?.knowledge ?? Knowledge.none),
      Knowledge.none,
    );
    const touched = this.#shadows.begin(access, known);
    touched.run(block, 0, block.shared.bytes.length);
    for (const { conflict, start } of touched.conflicts())
      if (conflict.kind === "race")
        this.#reportLateUse(conflict.earlier, block, start + conflict.granule);
  }

  /* ---- reports ---- */

  #once(key: string, details: () => DiagnosticDetails, say: "report" | "note" = "report"): void {
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    this.#launch[say](details());
  }

  #reportConflicts(touched: AccessRuns): void {
    for (const { conflict, block, start } of touched.conflicts())
      if (conflict.kind === "race")
        this.#reportRace(conflict, () => this.#byteText(block, start + conflict.granule));
  }

  #byteText(block: BlockView | undefined, offset: number): string {
    const { naming } = this.#launch;
    return block === undefined ? naming.global(offset) : naming.shared(offset);
  }

  #reportRace({ earlier, current, missing }: Race, byte: () => string): void {
    const code = missing !== "fence" ? "TW8014" : current.ofMap === true ? "TW8059" : "TW8015";
    // Other warps may meet the same two instructions the other way round.
    const places = [earlier, current].map((each) => `${each.op.opcode} ${place(each)}`).sort();
    const isNote = code === "TW8015" && isTensorCore(current.op);
    const say = isNote && !this.#launch.isOwn ? "note" : "report";
    this.#once(
      `${code} ${places.join(" ")}`,
      () => ({
        code,
        message: `${this.#describe(current)} is not ordered with ${this.#describe(earlier)}`,
        location: current.location,
        expected:
          missing === "fence"
            ? "a fence between the two, for accesses of another kind"
            : "a barrier or another order between the two",
        found: `both touch ${byte()}`,
        notes: [
          { message: `the other access is ${earlier.op.opcode}`, location: earlier.location },
        ],
      }),
      say,
    );
  }

  /** A use of shared memory that can come after the block has ended. */
  #reportLateUse(use: MemoryAccess, { index }: BlockState, offset: number): void {
    const { naming } = this.#launch;
    const { location, proxy, op } = use;
    const isAsync = proxy === "async" || op.opcode.startsWith("cp.async");
    const code = isAsync ? "TW8056" : "TW8014";
    const ending = index === use.block ? "its block" : naming.block(index);
    this.#once(`${code} ${op.opcode} ${place(use)} and the end`, () => ({
      code,
      message: isAsync
        ? `${this.#describe(use)} is not awaited`
        : `${this.#describe(use)} is not ordered with the end of ${ending}`,
      location,
      expected: isAsync ? `a wait for it before ${ending} ends` : "a barrier between the two",
      found: `it can still use ${naming.shared(offset)}`,
    }));
  }

  #reportLaneRace(
    { title }: WarpState,
    { instruction, location }: Pick<Site, "instruction" | "location">,
    { lane, otherSite, otherLane, block, offset }: IntraWarpRace,
  ): void {
    const other = this.#launch.site(otherSite);
    const { opcode } = other.instruction;
    const who = otherLane === undefined ? "other lanes" : `lane ${otherLane}`;
    const [one, two] = [this.#numberOf(instruction), this.#numberOf(other.instruction)];
    this.#once(`lanes ${Math.min(one, two)} ${Math.max(one, two)}`, () => ({
      code: "TW8023",
      message: `${instruction.opcode} of lane ${lane} of ${title} is not ordered with ${opcode} of ${who}`,
      location,
      expected: "__syncwarp, a barrier or another order between the two",
      found: `both touch ${this.#byteText(block, offset)}`,
      notes: [{ message: `the other access is ${opcode}`, location: other.location }],
    }));
  }

  /** Tells instructions apart. */
  #numberOf(instruction: Instruction): number {
    const known = this.#numbers.get(instruction) ?? this.#numbers.size;
    this.#numbers.set(instruction, known);
    return known;
  }

  #describe({ op, warp, block, proxy }: MemoryAccess): string {
    const by = proxy === "async" ? "issued by" : "of";
    return `${op.opcode} ${by} ${this.#launch.naming.warp(warp, block)}`;
  }

  undefinedRegister(warp: WarpState, site: number, register: number, mask: number): void {
    const { instruction, location } = this.#launch.site(site);
    const name = registerName(warp, register);
    const flight = warp.flights.get(warp.base + register);
    const lane = 31 - Math.clz32(mask & -mask);
    const suspect = this.#suspects.of(warp, lane);
    if (flight !== undefined)
      this.#once(`undefined ${site} ${register}`, () => ({
        code: "TW8070",
        message: `${instruction.opcode} reads ${name}, which ${flight.instruction.opcode} has under way`,
        location,
        expected: "wgmma.wait_group before it",
        found: "a product in flight",
        notes: [{ message: "it was started here", location: flight.location }],
      }));
    else if (suspect !== undefined)
      this.#reportSuspect(suspect, {
        message: `${instruction.opcode} depends on it by ${name}`,
        location,
      });
    else this.#reportUndefined({ site, warp, lane, register: name }, []);
  }

  #reportSuspect(suspect: Suspect, use: RelatedNote): void {
    if (suspect.kind === "store") {
      this.#reportUndefined(suspect, [use]);
      return;
    }
    const { site, warp, block, offset } = suspect;
    const { instruction, location } = this.#launch.site(site);
    const where = block === undefined ? "global" : "shared";
    this.#once(`unwritten ${site}`, () => ({
      code: "TW8013",
      message: `${instruction.opcode} of ${warp.title} reads ${where} memory that nothing has written`,
      location,
      expected: "bytes that were written before",
      found: this.#byteText(block, offset),
      notes: [use],
    }));
  }

  #reportUndefined(
    { site, warp, lane, register }: Omit<Suspect & { readonly kind: "store" }, "kind">,
    notes: readonly RelatedNote[],
  ): void {
    const { instruction, location } = this.#launch.site(site);
    this.#once(`undefined ${site} ${register}`, () => ({
      code: "TW8012",
      message: `${instruction.opcode} depends on ${register}, which holds nothing defined in lane ${lane} of ${warp.title}`,
      location,
      expected: "a register that every lane has written",
      found: `nothing in lane ${lane}`,
      notes,
    }));
  }
}

/** The name of a register of the running function. */
function registerName(warp: WarpState, register: number): string {
  const { layout } = warp.groups.current.frame.function;
  const place = [...layout.places.values()].find(({ number }) => number === register);
  return place?.register.name ?? "a register";
}

function areWritten(stateWords: Int32Array, start: number, end: number): boolean {
  for (let word = start; word < end; word++) if (stateWords[word] !== writtenWord) return false;
  return true;
}

function place({ location, block, warp }: MemoryAccess): string {
  const { position } = location;
  return position === undefined
    ? `${block} ${warp}`
    : `${position.file}:${position.line}:${position.column}`;
}
