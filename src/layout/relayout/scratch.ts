/**
 * Conversions through shared memory where both layouts have common digits. Every digit gets a bit of
 * the address in the scratch memory:
 *
 *   | bits of the address | digits                                                                  |
 *   |---------------------|-------------------------------------------------------------------------|
 *   | lowest              | those of one vector: registers of the side that stores or loads it       |
 *   | bank                | those that the lanes of one phase of a store or of a load differ in       |
 *   | above               | what remains                                                            |
 *   | top, counted        | registers on both sides: cut into chunks where the scratch would be large |
 *
 * Lanes of a phase must hit different banks, when they store and when they load. If a digit tells lanes
 * apart in the store only, and another in the load only, both can serve one bank bit: it holds their
 * exclusive or, and one of them lies above as well, so that addresses stay different. That is a swizzle
 * made to measure, and leaves no conflict:
 *
 *   rows by lanes to columns by lanes, 32 × 32 in f32: word = 32 · row + (column ^ row)
 *
 *   | phase                   | lanes differ in | banks            |
 *   |-------------------------|-----------------|------------------|
 *   | store, column 5 of all  | row             | 5 ^ row: all 32  |
 *   | load, row 7 of all      | column          | column ^ 7: all 32 |
 *
 * Several widths of vectors are tried; the cheapest by the model of `cost.ts` wins.
 */
import { laneBits, laneMask, lanesPerWarp, product, threadBits } from "../algebra/index-bits.ts";
import { phasesOf, wavefrontsOf } from "../algebra/bank-conflicts.ts";
import { registersPerLane } from "../algebra/register-layout.ts";
import type { DistributedLayout } from "../algebra/register-layout.ts";
import { countsCost, wordPermutes } from "./cost.ts";
import { inRegisters, registersOf } from "./common-digits.ts";
import type { Correspondence, SharedDigit, Side } from "./common-digits.ts";
import { nothing, slotsPerWord } from "./steps.ts";
import type {
  Access,
  AccessPattern,
  BarrierScope,
  Chunk,
  ExchangeStep,
  PackStep,
  RelayoutStep,
} from "./steps.ts";
import { packable } from "./warp-shuffles.ts";

/** Scratch memory above this is saved by doing the tile in chunks. */
export const scratchLimit = 16384;

const widestVector = 128;

/** Digits that vectors run over, from the lowest bit of the address. */
interface Vectors {
  readonly store: readonly SharedDigit[];
  readonly load: readonly SharedDigit[];
}

interface Tile {
  readonly correspondence: Correspondence;
  readonly target: DistributedLayout;
  readonly shape: readonly number[];
  readonly bits: number;
  /** Warps that hold the tile together. */
  readonly warps: number;
}

/** The cheapest steps through shared memory. */
export function planThroughScratch(tile: Tile): readonly RelayoutStep[] {
  let best: Draft | undefined;
  for (const vectors of vectorChoices(tile)) {
    const draft = draftWith(tile, vectors);
    if (best === undefined || draft.cost < best.cost) best = draft;
  }
  if (best === undefined) throw new Error("no vectors to try");
  return write(tile, best);
}

/** The widest first. */
function vectorChoices({ correspondence: { digits }, bits }: Tile): readonly Vectors[] {
  const most = Math.log2(widestVector / bits);
  const both = packable(digits).slice(0, most);
  const choices: Vectors[] = [];
  // Elements of 4 bits have no address of their own, so vectors of both sides hold the same pairs.
  const least = bits < 8 ? Math.min(1, both.length) : 0;
  for (let count = both.length; count >= least; count -= 1)
    choices.push({ store: both.slice(0, count), load: both.slice(0, count) });
  if (bits < 8) return choices;
  for (const side of ["source", "target"] as const) {
    const own = registersOnlyOf(digits, side);
    for (let count = Math.min(own.length, most - both.length); count > 0; count -= 1) {
      const wide = [...both, ...own.slice(0, count)];
      choices.push(side === "source" ? { store: wide, load: both } : { store: both, load: wide });
    }
  }
  return choices;
}

/** Bits that are registers on this side only, the lowest first. */
function registersOnlyOf(digits: readonly SharedDigit[], side: Side): readonly SharedDigit[] {
  return digits
    .filter((digit) => digit[side].thread === undefined && !inRegisters(digit))
    .sort((left, right) => left[side].stride - right[side].stride);
}

/** Where each digit lies in the scratch memory. */
interface Placement {
  /** Bytes to be combined by exclusive or when the digit is one. */
  readonly parts: ReadonlyMap<SharedDigit, number>;
  /** Bytes of all of them. */
  readonly bytes: number;
  /** Digits counted above. */
  readonly counted: readonly SharedDigit[];
  readonly elementBits: number;
}

/** All that decides the cost of a choice of vectors. */
interface Draft {
  readonly placement: Placement;
  readonly scope: BarrierScope;
  /** Values of the counted digits, and how many of them a chunk has. */
  readonly total: number;
  readonly together: number;
  readonly stores: DraftSide;
  readonly loads: DraftSide;
  /** The slot after the loads that each register of the target takes. */
  readonly loadSlots: Int32Array;
  readonly cost: number;
}

/** The vectors of one side. */
interface DraftSide {
  readonly side: Side;
  /** Elements of a vector. */
  readonly length: number;
  /** Elements of a vector in one word. */
  readonly inside: number;
  /** Digits of the registers outside the vector that are not counted. */
  readonly own: readonly SharedDigit[];
  /** The registers of all vectors one after the other, `nothing` outside the tile. */
  readonly registers: Int32Array;
  readonly pattern: AccessPattern;
}

function draftWith(tile: Tile, vectors: Vectors): Draft {
  const { correspondence, bits, target, shape, warps } = tile;
  const placement = place(tile, vectors);
  const total = product(placement.counted.map(({ radix }) => radix));
  const together = Math.max(1, Math.min(total, Math.floor(scratchLimit / placement.bytes)));
  const stores = draftSide(tile, vectors.store, placement, "source");
  const loads = draftSide(tile, vectors.load, placement, "target");
  const loadSlots = slotsAfterLoads(loads, registersPerLane(target, shape), bits);
  const scope = scopeOf(correspondence, warps);
  const barriers = { warp: 0, thread: 0, [scope]: 2 * Math.ceil(total / together) };
  const cost = countsCost({
    selects: 0,
    permutes:
      permutes(stores.registers, stores.inside, bits) +
      permutes(loadSlots, slotsPerWord(bits), bits),
    shuffles: 0,
    accesses: stores.pattern.instructions + loads.pattern.instructions,
    wavefronts: stores.pattern.wavefronts + loads.pattern.wavefronts,
    barriers,
  });
  return { placement, scope, total, together, stores, loads, loadSlots, cost };
}

function permutes(slots: Int32Array, inside: number, bits: number): number {
  let count = 0;
  for (let start = 0; start < slots.length; start += inside)
    count += wordPermutes(slots, start, Math.min(inside, slots.length - start), bits);
  return count;
}

function write(tile: Tile, draft: Draft): readonly RelayoutStep[] {
  const { placement, scope, total, together, stores, loads, loadSlots } = draft;
  const stored = chunkAccesses(stores, placement, together);
  const loaded = chunkAccesses(loads, placement, together);
  const chunks: Chunk[] = [];
  for (let chunk = 0; chunk * together < total; chunk += 1) {
    const [storing, loading] = [stored[chunk], loaded[chunk]];
    if (storing !== undefined && loading !== undefined)
      chunks.push({ stores: storing, loads: loading, guard: undefined });
  }
  const exchange: ExchangeStep = {
    kind: "exchange",
    scope,
    stores: stores.pattern,
    loads: loads.pattern,
    chunks,
    bytes: placement.bytes * together,
    elementBits: placement.elementBits,
  };
  return [
    packStep(stores.registers, stores.inside),
    exchange,
    packStep(loadSlots, slotsPerWord(tile.bits)),
  ];
}

function packStep(slots: Int32Array, inside: number): PackStep {
  const words = Array.from({ length: Math.ceil(slots.length / inside) }, (_, word) => [
    ...slots.subarray(word * inside, (word + 1) * inside),
  ]);
  return { kind: "pack", words };
}

/** The lanes of one phase: the lowest ones, fewer for wide vectors. */
function phaseLanes(digits: readonly SharedDigit[], bits: number): number {
  const bytes = Math.max(4, ((1 << digits.length) * bits) / 8);
  return laneBits - Math.log2(bytes / 4);
}

function place({ correspondence: { digits }, bits }: Tile, vectors: Vectors): Placement {
  const vector = vectors.store.length > vectors.load.length ? vectors.store : vectors.load;
  const elementBits = vector.length === 0 ? Math.max(8, bits) : bits;
  const rest = digits.filter((digit) => !vector.includes(digit) && !inRegisters(digit));
  const inPhase = (side: Side, lanes: number): readonly SharedDigit[] =>
    rest.filter((digit) => (digit[side].thread ?? threadBits) < lanes);
  const stored = inPhase("source", phaseLanes(vectors.store, elementBits));
  const loaded = inPhase("target", phaseLanes(vectors.load, elementBits));
  const shared = stored.filter((digit) => loaded.includes(digit));
  const storedOnly = stored.filter((digit) => !shared.includes(digit));
  const loadedOnly = loaded.filter((digit) => !shared.includes(digit));
  // Lanes with parts of one word are not in each other's way, and need no bank bit to be told apart.
  const narrow = Math.max(0, Math.log2(32 / elementBits) - vector.length);
  const inWord = [...shared, ...storedOnly, ...loadedOnly].slice(0, narrow);
  const inBank = (list: readonly SharedDigit[]): readonly SharedDigit[] =>
    list.filter((digit) => !inWord.includes(digit));
  const partners = inBank(storedOnly);
  const swizzled = inBank(loadedOnly).slice(0, partners.length);
  const placed = new Set([...vector, ...inWord, ...shared, ...partners, ...loadedOnly]);
  swizzled.forEach((digit) => placed.delete(digit));
  rest.forEach((digit) => placed.add(digit));
  const parts = new Map<SharedDigit, number>();
  for (const digit of placed) parts.set(digit, (elementBits * 2 ** parts.size) / 8);
  swizzled.forEach((digit, index) => {
    const partner = partners[index];
    if (partner !== undefined)
      parts.set(digit, (parts.get(digit) ?? 0) ^ (parts.get(partner) ?? 0));
  });
  const counted = digits.filter((digit) => inRegisters(digit) && !vector.includes(digit));
  const bytes = Math.max(1, (elementBits * 2 ** placed.size) / 8);
  return { parts, bytes, counted, elementBits };
}

function draftSide(
  { correspondence, bits, warps }: Tile,
  vector: readonly SharedDigit[],
  { parts, counted, elementBits }: Placement,
  side: Side,
): DraftSide {
  const { digits, shape } = correspondence;
  const own = registersOnlyOf(digits, side).filter((digit) => !vector.includes(digit));
  const length = 1 << vector.length;
  const registers = registersOf([...vector, ...own, ...counted], side, shape);
  const { idle, replicated } = correspondence[side];
  const waiting = (side === "source" ? idle | replicated : idle) & laneMask(warps);
  const threadParts = Array.from({ length: threadBits }, (_, bit) => {
    const owner = digits.find((digit) => digit[side].thread === bit);
    return owner === undefined ? 0 : (parts.get(owner) ?? 0);
  });
  const accesses = usedVectors(registers, length);
  const pattern = countWavefronts(
    threadParts,
    waiting,
    (length * elementBits) / 8,
    accesses,
    warps,
  );
  const inside = Math.min(length, slotsPerWord(bits));
  return { side, length, inside, own, registers, pattern };
}

/** The first element of a vector lies in the tile if any does. */
function usedVectors(registers: Int32Array, length: number): number {
  let count = 0;
  for (let first = 0; first < registers.length; first += length)
    if (registers[first] !== nothing) count += 1;
  return count;
}

/** The accesses of each chunk. */
function chunkAccesses(
  { length, inside, own, registers }: DraftSide,
  { parts, bytes }: Placement,
  together: number,
): readonly (readonly Access[])[] {
  const words = length / inside;
  const chunks: Access[][] = [];
  for (let index = 0; index * length < registers.length; index += 1) {
    const register = registers[index * length] as number;
    if (register === nothing) continue;
    const count = Math.floor(index / (1 << own.length));
    const offset = own.reduce(
      (sum, digit, position) => ((index >> position) & 1 ? sum ^ (parts.get(digit) ?? 0) : sum),
      0,
    );
    (chunks[Math.floor(count / together)] ??= []).push({
      words: Array.from({ length: words }, (_, word) => index * words + word),
      offset,
      base: (count % together) * bytes,
      register,
    });
  }
  return chunks;
}

function slotsAfterLoads(
  { registers, inside }: DraftSide,
  count: number,
  bits: number,
): Int32Array {
  const width = slotsPerWord(bits);
  const slots = new Int32Array(count).fill(nothing);
  registers.forEach((register, index) => {
    if (register !== nothing)
      slots[register] = Math.floor(index / inside) * width + (index % inside);
  });
  return slots;
}

/** All accesses of all warps are alike: addresses differ by an exclusive or, or by whole rows. */
function countWavefronts(
  threadParts: readonly number[],
  idle: number,
  vectorBytes: number,
  accesses: number,
  running: number,
): AccessPattern {
  const bytes = new Int32Array(lanesPerWarp);
  for (let lane = 0; lane < lanesPerWarp; lane += 1) {
    bytes[lane] =
      (lane & idle) > 0
        ? nothing
        : threadParts.reduce((sum, part, bit) => ((lane >> bit) & 1 ? sum ^ part : sum), 0);
  }
  const phases = phasesOf(bytes, vectorBytes).filter((words) => words.length > 0);
  const each = phases.reduce((sum, words) => sum + wavefrontsOf(words), 0);
  let warps = running;
  for (let mask = idle >> laneBits; mask > 0; mask &= mask - 1) warps /= 2;
  return {
    combine: "xor",
    threadParts,
    idle,
    vectorBytes,
    wavefronts: each * accesses * warps,
    ideal: phases.length * accesses * warps,
    instructions: accesses * warps,
  };
}

/** Whether every warp loads only what it stored itself. */
function scopeOf({ digits, source, target }: Correspondence, count: number): BarrierScope {
  const warps = laneMask(count) & ~laneMask(1);
  const same = digits.every((digit) => {
    const { thread } = digit.source;
    return thread === undefined || thread < laneBits || digit.target.thread === thread;
  });
  const stores = warps & ~(source.idle | source.replicated);
  const loads = warps & ~target.idle;
  return same && (loads & ~stores) === 0 ? "warp" : "thread";
}
