/**
 * Conversions through shared memory where the layouts have no common digits: one counts elements row by
 * row and the other by axes, and a row is no whole number of its vectors. The scratch memory holds the
 * tile row by row, the one order in which both sides have addresses that are sums of parts of the
 * thread's bits. Vectors are as wide as the registers of each side have neighbours.
 *
 *   flat(R0 L0 L1 …) to (… | L0 L1 …) on [4, 6] in f32
 *
 *   | side   | address of the vector                  | vector   |
 *   |--------|----------------------------------------|----------|
 *   | stores | 8·L0 + 16·L1 + …                       | 8 bytes  |
 *   | loads  | 4·L0 + 8·L1 + … + 24·row                | 4 bytes  |
 *
 * Padding would fall on its neighbours' addresses, so accesses are guarded by the numbers of their elements;
 * ranges of numbers are the chunks.
 */
import { laneMask, lanesPerWarp, product, threadBits } from "../algebra/index-bits.ts";
import { phasesOf, wavefrontsOf } from "../algebra/bank-conflicts.ts";
import { elementTable, padding } from "../algebra/element-maps.ts";
import { expand, expandFlat } from "../algebra/expansion.ts";
import { registersPerLane } from "../algebra/register-layout.ts";
import type { DistributedLayout } from "../algebra/register-layout.ts";
import { vectorWidth } from "../algebra/vectors.ts";
import { scratchLimit } from "./scratch.ts";
import { nothing, slotsPerWord } from "./steps.ts";
import type { Access, AccessPattern, Chunk, PackStep, RelayoutStep } from "./steps.ts";

/** One side of the conversion. */
interface PlainSide {
  readonly elements: Int32Array;
  readonly registers: number;
  /** Neighbours in a vector. */
  readonly width: number;
  readonly elementBits: number;
  readonly threadParts: readonly number[];
  /** Threads with one of these bits set take no part. */
  readonly idle: number;
}

type Guard = NonNullable<Chunk["guard"]>;

export function planPlainScratch(
  source: DistributedLayout,
  target: DistributedLayout,
  shape: readonly number[],
  bits: number,
  warps: number,
): readonly RelayoutStep[] {
  // Elements of 4 bits have no address of their own: without pairs on both sides they take a byte each.
  const lone = bits < 8 && [source, target].some((layout) => vectorWidth(layout, shape) === 1);
  const elementBits = lone ? 8 : bits;
  const widest = lone ? 1 : 128 / bits;
  const idle = source.replicated & laneMask(warps);
  const from = plainSide(source, shape, { elementBits, widest, idle, warps });
  const to = plainSide(target, shape, { elementBits, widest, idle: 0, warps });
  const total = product(shape);
  const perChunk = (scratchLimit * 8) / elementBits;
  const chunks: Chunk[] = [];
  for (let first = 0; first < total; first += perChunk) {
    const guard = { first, last: Math.min(total, first + perChunk) };
    const stores = guardedAccesses(from, guard, bits);
    chunks.push({ stores, loads: guardedAccesses(to, guard, bits), guard });
  }
  return [
    packVectors(from, bits),
    {
      kind: "exchange",
      scope: "thread",
      stores: countAccesses(from, chunks, "stores"),
      loads: countAccesses(to, chunks, "loads"),
      chunks,
      bytes: Math.ceil((Math.min(total, perChunk) * elementBits) / 8),
      elementBits,
    },
    unpackVectors(to, bits),
  ];
}

interface PlainOptions {
  readonly elementBits: number;
  readonly widest: number;
  readonly idle: number;
  readonly warps: number;
}

function plainSide(
  layout: DistributedLayout,
  shape: readonly number[],
  { elementBits, widest, idle, warps }: PlainOptions,
): PlainSide {
  const own = layout.kind === "flat" ? expandFlat(layout, shape) : expand(layout, shape);
  const threadParts = Array<number>(threadBits).fill(0);
  let stride = product(shape);
  own?.shape.forEach((extent, axis) => {
    stride /= extent;
    let weight = stride;
    for (const { thread, radix } of own.axes[axis] ?? []) {
      if (thread !== undefined) threadParts[thread] = (weight * elementBits) / 8;
      weight *= radix;
    }
  });
  return {
    elements: elementTable(layout, shape, warps),
    registers: registersPerLane(layout, shape),
    width: Math.min(widest, vectorWidth(layout, shape)),
    elementBits,
    threadParts,
    idle,
  };
}

function wordsOfVector({ width }: PlainSide, bits: number): number {
  return Math.ceil(width / slotsPerWord(bits));
}

/** The accesses that any lane has elements for. */
function guardedAccesses(side: PlainSide, guard: Guard, bits: number): readonly Access[] {
  const words = wordsOfVector(side, bits);
  const accesses: Access[] = [];
  const all = threads(side);
  for (let vector = 0; vector * side.width < side.registers; vector += 1) {
    const register = vector * side.width;
    if (!all.some((thread) => takesPart(side, thread, register, guard))) continue;
    accesses.push({
      words: Array.from({ length: words }, (_, word) => vector * words + word),
      offset: ((side.elements[register] ?? 0) * side.elementBits) / 8,
      base: (-guard.first * side.elementBits) / 8,
      register,
    });
  }
  return accesses;
}

function threads({ elements, registers }: PlainSide): readonly number[] {
  return Array.from({ length: elements.length / registers }, (_, thread) => thread);
}

function takesPart(side: PlainSide, thread: number, register: number, guard: Guard): boolean {
  if ((thread & side.idle) > 0) return false;
  const element = side.elements[thread * side.registers + register] as number;
  return element !== padding && element >= guard.first && element < guard.last;
}

/** Counts what the accesses of all warps take, one by one. */
function countAccesses(
  side: PlainSide,
  chunks: readonly Chunk[],
  accesses: "stores" | "loads",
): AccessPattern {
  const vectorBytes = Math.max(1, (side.width * side.elementBits) / 8);
  const bytes = new Int32Array(lanesPerWarp);
  const counts = { wavefronts: 0, ideal: 0, instructions: 0 };
  const { length } = threads(side);
  for (const { guard, ...chunk } of chunks) {
    if (guard === undefined) continue;
    for (const { register } of chunk[accesses]) {
      for (let first = 0; first < length; first += lanesPerWarp) {
        for (let lane = 0; lane < lanesPerWarp; lane += 1) {
          const thread = first + lane;
          const element =
            (side.elements[thread * side.registers + register] as number) - guard.first;
          const part = takesPart(side, thread, register, guard);
          bytes[lane] = part ? Math.floor((element * side.elementBits) / 8) : nothing;
        }
        const phases = phasesOf(bytes, vectorBytes).filter((words) => words.length > 0);
        for (const words of phases) counts.wavefronts += wavefrontsOf(words);
        counts.ideal += phases.length;
        counts.instructions += phases.length > 0 ? 1 : 0;
      }
    }
  }
  const { threadParts, idle } = side;
  return { combine: "add", threadParts, idle, vectorBytes, ...counts };
}

/** Vectors narrower than a word get words of their own. */
function packVectors(side: PlainSide, bits: number): PackStep {
  const inside = Math.min(side.width, slotsPerWord(bits));
  const words = Array.from({ length: side.registers / inside }, (_, word) =>
    Array.from({ length: inside }, (_, part) => word * inside + part),
  );
  return { kind: "pack", words };
}

function unpackVectors(side: PlainSide, bits: number): PackStep {
  const slots = slotsPerWord(bits);
  const inside = Math.min(side.width, slots);
  const words = Array.from({ length: Math.ceil(side.registers / slots) }, (_, word) =>
    Array.from({ length: slots }, (_, part) => {
      const register = word * slots + part;
      const held = register < side.registers && side.elements[register] !== padding;
      return held ? Math.floor(register / inside) * slots + (register % inside) : nothing;
    }),
  );
  return { kind: "pack", words };
}
