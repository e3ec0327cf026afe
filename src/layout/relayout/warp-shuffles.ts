/**
 * Conversions within a warp: values stay in their lanes, or move by shuffles. Each digit of a coordinate
 * has an owner in the source and one in the target (see `common-digits.ts`). Seen from a lane of the target:
 *
 *   | source → target     | what it means                                                          |
 *   |---------------------|------------------------------------------------------------------------|
 *   | register → register | words are named anew; digits inside a word may change their part         |
 *   | register → thread   | which of the sender's words is wanted depends on the reader: a select    |
 *   | lane → register     | the reader's words lie in different lanes: a round for each             |
 *   | lane → thread       | a bit of the lane to read                                              |
 *
 * A lane can offer one word a round, so what it offers must follow from its own number. The bit that a
 * reader wants by ("register → lane") is therefore written into a bit of the lane it reads that is free
 * to choose: one in which the source is replicated, or one that a "lane → register" digit runs over.
 * In the second case reader and round v agree on lane bit = reader's bit ^ v. With the same bit on both
 * sides, the two lanes of a pair swap:
 *
 *   (R0 | L0) to (L0 | R0), round v:   offer word L0 ^ v,   read lane L0 ^ v,   put it in word L0 ^ v
 *
 * Round 0 stays within the lane, so k such pairs need 2^k - 1 shuffles for 2^k words. Elements narrower
 * than a word travel together where a digit is a register on both sides: those digits are packed into
 * words before, and unpacked after.
 */
import { laneBits } from "../algebra/index-bits.ts";
import { registersPerLane } from "../algebra/register-layout.ts";
import type { DistributedLayout } from "../algebra/register-layout.ts";
import { inRegisters, registersOf } from "./common-digits.ts";
import type { Correspondence, SharedDigit, ThreadUse } from "./common-digits.ts";
import { simplify } from "./simplify.ts";
import type { LaneStep } from "./simplify.ts";
import { nothing, slotsPerWord } from "./steps.ts";
import type { LaneMap, LaneSource, PackStep, SelectStep, ShuffleStep } from "./steps.ts";

/** How a "register → thread" digit is chosen by the sender, before any shuffle. */
interface Dropped {
  readonly digit: SharedDigit;
  /** Bit of the sender that says which half to offer. */
  readonly bit: number;
}

/** A "register → lane" digit and the "lane → register" digit that carries its bit. */
interface Swap {
  readonly given: SharedDigit;
  readonly taken: SharedDigit;
  /** The reader's bit, target owner of `given`. */
  readonly reader: number;
  /** The sender's bit, source owner of `taken`. */
  readonly sender: number;
}

interface Traffic {
  readonly packed: readonly SharedDigit[];
  readonly dropped: readonly Dropped[];
  readonly swaps: readonly Swap[];
  /** "Lane → register" digits with nothing to carry: a round for each value. */
  readonly gathered: readonly SharedDigit[];
  /** Register digits of both sides outside the words. */
  readonly kept: readonly SharedDigit[];
  /** The lane to read in round 0. */
  readonly lanes: LaneMap;
}

/** The steps, or undefined where values must leave their warp or a lane would have to offer two. */
export function planWithinWarp(
  correspondence: Correspondence,
  target: DistributedLayout,
  tile: readonly number[],
  bits: number,
): readonly LaneStep[] | undefined {
  const traffic = findTraffic(correspondence, slotsPerWord(bits));
  if (traffic === undefined) return undefined;
  const { shape } = correspondence;
  const registers = registersPerLane(target, tile);
  const slots = slotsPerWord(bits);
  return simplify(
    [
      packSource(traffic, shape),
      ...dropStages(traffic),
      ...swapStages(traffic, "sender", keptWords(traffic)),
      ...shuffleStage(traffic),
      ...swapStages(traffic, "reader", keptWords(traffic) << traffic.gathered.length),
      packTarget(traffic, shape, registers, slots),
    ],
    slots,
  );
}

function keptWords({ swaps, kept }: Traffic): number {
  return kept.reduce((count, { radix }) => count * radix, 1 << swaps.length);
}

function staysInWarp({ digits, source, target }: Correspondence): boolean {
  const warps = (mask: number): number => mask >> laneBits;
  const moves = digits.some(
    (digit) =>
      digit.source.thread !== undefined &&
      digit.source.thread >= laneBits &&
      digit.target.thread !== digit.source.thread,
  );
  return !moves && (warps(source.idle) & ~warps(target.idle)) === 0;
}

function findTraffic(correspondence: Correspondence, slots: number): Traffic | undefined {
  if (!staysInWarp(correspondence)) return undefined;
  const { digits, source } = correspondence;
  const packed = packedDigits(digits, slots);
  const kept = digits.filter((digit) => inRegisters(digit) && !packed.includes(digit));
  const matched = matchSlots(digits, source);
  if (matched === undefined) return undefined;
  const gathered = digits.filter(
    (digit) =>
      digit.source.thread !== undefined &&
      digit.target.thread === undefined &&
      !matched.swaps.some(({ taken }) => taken === digit),
  );
  const lanes = readLanes(correspondence, matched);
  return { packed, kept, gathered, ...matched, lanes };
}

/** Digits to share words: registers on both sides, those that share words already first. */
function packedDigits(digits: readonly SharedDigit[], slots: number): readonly SharedDigit[] {
  return packable(digits).slice(0, Math.log2(slots));
}

/** Bits that are registers on both sides, the lowest registers first. */
export function packable(digits: readonly SharedDigit[]): readonly SharedDigit[] {
  const reach = ({ source, target }: SharedDigit): number => Math.max(source.stride, target.stride);
  return digits
    .filter((digit) => inRegisters(digit) && digit.radix === 2)
    .sort((left, right) => reach(left) - reach(right));
}

interface Matched {
  readonly dropped: readonly Dropped[];
  readonly swaps: readonly Swap[];
}

/** Finds for every "register → lane" digit the bit of the sender that carries it. */
function matchSlots(digits: readonly SharedDigit[], source: ThreadUse): Matched | undefined {
  const dropped: Dropped[] = [];
  const swaps: Swap[] = [];
  const free = new Set<number>();
  for (let bit = 0; bit < laneBits; bit += 1) if ((source.replicated >> bit) & 1) free.add(bit);
  const takers = new Map<number, SharedDigit>();
  for (const digit of digits)
    if (digit.source.thread !== undefined && digit.target.thread === undefined)
      takers.set(digit.source.thread, digit);
  const place = (digit: SharedDigit, reader: number, sender: number): boolean => {
    const taken = takers.get(sender);
    if (free.delete(sender)) dropped.push({ digit, bit: sender });
    else if (taken !== undefined && takers.delete(sender))
      swaps.push({ given: digit, taken, reader, sender });
    else return false;
    return true;
  };
  const waiting: { digit: SharedDigit; reader: number }[] = [];
  for (const digit of digits) {
    const reader = digit.target.thread;
    if (digit.source.thread !== undefined || reader === undefined) continue;
    if (reader >= laneBits) dropped.push({ digit, bit: reader });
    else if (!place(digit, reader, reader)) waiting.push({ digit, reader });
  }
  for (const { digit, reader } of waiting) {
    const [sender] = [...free, ...takers.keys()];
    if (sender === undefined || !place(digit, reader, sender)) return undefined;
  }
  return { dropped, swaps };
}

/** The lane to read where every round number is zero. */
function readLanes({ digits, source, target }: Correspondence, matched: Matched): LaneMap {
  return Array.from({ length: laneBits }, (_, bit): LaneSource => {
    const drop = matched.dropped.find((dropped) => dropped.bit === bit);
    const swap = matched.swaps.find(({ sender }) => sender === bit);
    const owner = digits.find((digit) => digit.source.thread === bit);
    const idle = (source.idle >> bit) & 1;
    const alsoIdle = (target.idle >> bit) & 1;
    if (drop !== undefined) return { from: drop.digit.target.thread, flip: false };
    if (swap !== undefined) return { from: swap.reader, flip: false };
    if (owner !== undefined) return { from: owner.target.thread, flip: false };
    return { from: idle && !alsoIdle ? undefined : bit, flip: false };
  });
}

/** Words by swaps, then dropped digits, then kept ones. */
function packSource({ packed, dropped, swaps, kept }: Traffic, shape: readonly number[]): PackStep {
  const inside = 1 << packed.length;
  const given = [...swaps.map((swap) => swap.given), ...dropped.map(({ digit }) => digit)];
  const registers = registersOf([...packed, ...given, ...kept], "source", shape);
  const words = Array.from({ length: registers.length / inside }, (_, word) => [
    ...registers.subarray(word * inside, (word + 1) * inside),
  ]);
  return { kind: "pack", words };
}

/** Each stage halves the words: the lowest dropped digit goes. */
function dropStages({ dropped, swaps, kept }: Traffic): readonly SelectStep[] {
  const low = 1 << swaps.length;
  const high = kept.reduce((count, { radix }) => count * radix, 1);
  return dropped.map(({ bit }, stage) => {
    const count = (low * high) << (dropped.length - 1 - stage);
    const indices = Array.from({ length: count }, (_, index) => index);
    const zeros = indices.map((index) => (index % low) + Math.floor(index / low) * low * 2);
    return { kind: "select", bit, zeros, ones: zeros.map((zero) => zero + low) };
  });
}

/** The words of a swap change places in lanes whose bit is set. */
function swapStages(
  { swaps }: Traffic,
  end: "sender" | "reader",
  count: number,
): readonly SelectStep[] {
  return swaps.map((swap, position) => {
    const zeros = Array.from({ length: count }, (_, index) => index);
    const ones = zeros.map((index) => index ^ (1 << position));
    return { kind: "select", bit: swap[end], zeros, ones };
  });
}

/** One round for each word: number of the swaps, then of the gathered digits, then the kept ones. */
function shuffleStage(traffic: Traffic): readonly ShuffleStep[] {
  const { swaps, gathered, lanes } = traffic;
  const low = 1 << swaps.length;
  const values = 1 << gathered.length;
  const words = Array.from({ length: keptWords(traffic) * values }, (_, index) => {
    const value = Math.floor(index / low) % values;
    const flips = new Set([
      ...swaps.filter((_, position) => (index >> position) & 1).map(({ sender }) => sender),
      ...gathered
        .filter((_, position) => (value >> position) & 1)
        .map((digit) => digit.source.thread),
    ]);
    const round = lanes.map(({ from }, bit) => ({ from, flip: flips.has(bit) }));
    const own = round.every(({ from, flip }, bit) => from === bit && !flip);
    const word = (index % low) + low * Math.floor(index / (low * values));
    return { word, lanes: own ? undefined : round };
  });
  return [{ kind: "shuffle", words }];
}

function packTarget(
  { packed, swaps, gathered, kept }: Traffic,
  shape: readonly number[],
  count: number,
  slots: number,
): PackStep {
  const inside = 1 << packed.length;
  const taken = [...swaps.map((swap) => swap.taken), ...gathered];
  const words = Array.from({ length: Math.ceil(count / slots) }, () =>
    Array<number>(slots).fill(nothing),
  );
  registersOf([...packed, ...taken, ...kept], "target", shape).forEach((register, index) => {
    const word = words[Math.floor(register / slots)];
    if (register === nothing || word === undefined) return;
    word[register % slots] = Math.floor(index / inside) * slots + (index % inside);
  });
  return { kind: "pack", words };
}
