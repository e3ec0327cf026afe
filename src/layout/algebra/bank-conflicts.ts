/**
 * How often shared memory must be read or written to serve one access of a register layout to a view.
 *
 * Shared memory has 32 banks of 4 bytes: word n lies in bank n mod 32. A *wavefront* delivers one word of
 * each bank. What lanes of a warp ask for together is one *phase*; it takes as many wavefronts as the
 * busiest bank has different words to give. Lanes asking for the same word share it.
 *
 *   | bytes a lane | lanes of a phase | phases | wavefronts at best |
 *   |--------------|------------------|--------|--------------------|
 *   | 1, 2, 4      | 32               | 1      | 1                  |
 *   | 8            | 16               | 2      | 2                  |
 *   | 16           | 8                | 4      | 4                  |
 *
 * The accumulator of wgmma in bf16, two neighbours at a time, into rows of 128 bytes: lanes 0, 4, 8 … of
 * a warp hold the same columns of eight rows, all in one bank: eight wavefronts. Under the 128-byte
 * swizzle the eight rows lie in different chunks: one.
 *
 * Where all extents are powers of two, the address of an element is the exclusive or of what its lane,
 * its warp and its register contribute. One access of a warp then differs from every other by a
 * constant, which permutes the banks: it is enough to look at the first.
 */
import { lanesPerWarp } from "./index-bits.ts";
import { elementAt, elementTable, padding } from "./element-maps.ts";
import { atomExtents, registersPerLane, shownWarps, viewedShape } from "./register-layout.ts";
import type { DistributedLayout, RegisterLayout } from "./register-layout.ts";
import { bitReader, viewBits } from "./shared-view.ts";
import type { SharedView } from "./shared-view.ts";

const banks = 32;
const bytesPerBank = 4;

/** Cost of moving a whole tile between registers and shared memory. */
export interface BankUse {
  /** Accesses of all warps together. */
  readonly instructions: number;
  /** How many passes over shared memory the access takes. */
  readonly wavefronts: number;
  /** Wavefronts if no two lanes were in each other's way. */
  readonly ideal: number;
}

/** Registers that one access moves, in the order of their bytes, and where each lane's lie. */
export interface Access {
  readonly warp: number;
  readonly registers: readonly number[];
  /** First byte of each lane's vector; `padding` where the lane takes no part. */
  readonly bytes: Int32Array;
}

/** Wavefronts of a tile's accesses, `vectorBytes` (up to 16) a lane; undefined where the lanes do not
 * have so many bytes side by side. */
export function bankConflicts(
  registers: RegisterLayout,
  view: SharedView,
  vectorBytes: number,
): BankUse | undefined {
  if (registers.kind !== "splat" && isLinear(registers, view))
    return linearUse(registers, view, vectorBytes);
  const accesses = planAccesses(registers, view, vectorBytes);
  if (accesses === undefined) return undefined;
  let wavefronts = 0;
  let ideal = 0;
  for (const { bytes } of accesses) {
    for (const words of phasesOf(bytes, vectorBytes)) {
      if (words.length === 0) continue;
      wavefronts += wavefrontsOf(words);
      ideal += 1;
    }
  }
  return { instructions: accesses.length, wavefronts, ideal };
}

function isPowerOfTwo(value: number): boolean {
  return (value & (value - 1)) === 0;
}

/** Whether addresses are made of disjoint bits of lane, warp, register and the view's start. */
function isLinear(layout: DistributedLayout, view: SharedView): boolean {
  const { shape, strides, allocation, first } = view;
  const extents = [...shape, ...allocation, ...view.layout.tile];
  if (!extents.every(isPowerOfTwo)) return false;
  const viewed = viewedShape(layout, shape);
  if (!atomExtents(layout, shape).every((extent, axis) => extent <= (viewed[axis] ?? 1)))
    return false;
  let used = first;
  return shape.every((extent, axis) => {
    if (extent === 1) return true;
    const stride = strides[axis] ?? 0;
    const mask = (extent - 1) * stride;
    const free = isPowerOfTwo(stride) && (used & mask) === 0;
    used |= mask;
    return free;
  });
}

function linearUse(
  layout: DistributedLayout,
  view: SharedView,
  vectorBytes: number,
): BankUse | undefined {
  const vectorBits = vectorBytes * 8;
  if (vectorBytes > 16 || vectorBits < view.bits) return undefined;
  const { shape } = view;
  const bitOf = bitReader(view);
  const registers = registersPerLane(layout, shape);
  const contribution = (lane: number, register: number): number =>
    bitOf(elementAt(layout, shape, { warp: 0, lane, register }) ?? 0);
  const start = contribution(0, 0);
  let together = 0;
  for (let register = 0; register < registers; register += 1)
    if (Math.floor(contribution(0, register) / vectorBits) === Math.floor(start / vectorBits))
      together += 1;
  if (together * view.bits !== vectorBits) return undefined;
  const bytes = Int32Array.from({ length: lanesPerWarp }, (_, lane) => contribution(lane, 0) >> 3);
  if (bytes.some((byte) => byte % vectorBytes !== 0)) return undefined;
  const phases = phasesOf(bytes, vectorBytes);
  const instructions = (shownWarps(layout) * registers) / together;
  const wavefronts = phases.reduce((sum, words) => sum + wavefrontsOf(words), 0);
  return {
    instructions,
    wavefronts: instructions * wavefronts,
    ideal: instructions * phases.length,
  };
}

/** The words of each phase that lanes ask for. */
export function phasesOf(bytes: Int32Array, vectorBytes: number): readonly (readonly number[])[] {
  const lanes = Math.min(lanesPerWarp, (banks * bytesPerBank) / vectorBytes);
  const words = Math.max(1, vectorBytes / bytesPerBank);
  const phases: number[][] = [];
  for (let lane = 0; lane < bytes.length; lane += 1) {
    const phase = (phases[Math.floor(lane / lanes)] ??= []);
    const first = bytes[lane] as number;
    if (first === padding) continue;
    for (let word = 0; word < words; word += 1) phase.push(Math.floor(first / bytesPerBank) + word);
  }
  return phases;
}

export function bankOf(word: number): number {
  return word % banks;
}

/** What a phase asks of each bank: how many words, and which; a phase asks for as many words as there are banks. */
const wordsPerBank = new Uint8Array(banks);
const wordsOfBanks = new Int32Array(banks * banks);

/** How many different words the busiest bank has to give. */
export function wavefrontsOf(words: readonly number[]): number {
  wordsPerBank.fill(0);
  let most = 0;
  for (const word of words) {
    const bank = bankOf(word);
    const known = wordsPerBank[bank] as number;
    const start = bank * banks;
    let at = start;
    while (at < start + known && wordsOfBanks[at] !== word) at += 1;
    if (at < start + known) continue;
    wordsOfBanks[at] = word;
    wordsPerBank[bank] = known + 1;
    most = Math.max(most, known + 1);
  }
  return most;
}

/**
 * The accesses that move the tile. Every lane of an access uses the same registers; they must hold
 * exactly one aligned vector of bytes in each lane that takes part.
 */
export function planAccesses(
  layout: RegisterLayout,
  view: SharedView,
  vectorBytes: number,
): readonly Access[] | undefined {
  if (layout.kind === "splat" || vectorBytes > 16) return undefined;
  if (vectorBytes * 8 < view.bits) return undefined;
  const registers = registersPerLane(layout, view.shape);
  const elements = elementTable(layout, view.shape);
  const places = viewBits(view);
  const bitAt = (thread: number, register: number): number => {
    const element = elements[thread * registers + register] as number;
    return element === padding ? padding : (places[element] as number);
  };
  const vector = { bits: vectorBytes * 8, element: view.bits };
  const groups = groupRegisters(registers, vector, (register) => bitAt(0, register));
  if (groups === undefined) return undefined;
  const accesses: Access[] = [];
  for (let warp = 0; warp < shownWarps(layout); warp += 1) {
    for (const group of groups) {
      const starts = new Int32Array(lanesPerWarp);
      for (let lane = 0; lane < lanesPerWarp; lane += 1) {
        const thread = warp * lanesPerWarp + lane;
        const start = vectorStart(group, vector, (register) => bitAt(thread, register));
        if (start === undefined) return undefined;
        starts[lane] = start === padding ? padding : start / 8;
      }
      if (starts.some((start) => start !== padding))
        accesses.push({ warp, registers: group, bytes: starts });
    }
  }
  return accesses;
}

/** The width of a vector and of its elements, in bits. */
interface Vector {
  readonly bits: number;
  readonly element: number;
}

/** The registers of the first lane by the vector they lie in, each group in the order of the bits. */
function groupRegisters(
  registers: number,
  vector: Vector,
  bitAt: (register: number) => number,
): readonly (readonly number[])[] | undefined {
  const groups = new Map<number, number[]>();
  for (let register = 0; register < registers; register += 1) {
    const bit = bitAt(register);
    // The first lane has the smallest coordinates: its padding is padding in all lanes.
    if (bit === padding) continue;
    const key = Math.floor(bit / vector.bits);
    groups.set(key, [...(groups.get(key) ?? []), register]);
  }
  const found = [...groups.values()];
  if (found.some((group) => group.length * vector.element !== vector.bits)) return undefined;
  for (const group of found) group.sort((left, right) => bitAt(left) - bitAt(right));
  return found;
}

/** The first bit of a lane's vector, `padding` if it has none, undefined if it is not one vector. */
function vectorStart(
  group: readonly number[],
  vector: Vector,
  bitAt: (register: number) => number,
): number | undefined {
  const start = bitAt(group[0] ?? 0);
  if (start === padding)
    return group.every((register) => bitAt(register) === padding) ? padding : undefined;
  if (start % vector.bits !== 0) return undefined;
  const whole = group.every(
    (register, index) => bitAt(register) === start + index * vector.element,
  );
  return whole ? start : undefined;
}
