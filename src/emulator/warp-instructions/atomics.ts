/**
 * Atomics and reductions on memory: lanes one after the other, in an order that does not matter to a
 * correct program.
 */
import type { OperandView } from "../collective.ts";
import {
  bfloatNumbers,
  bitsOfSingle,
  encodeBfloat,
  encodeHalf,
  flush,
  halfNumbers,
  maximum,
  minimum,
  singleOfBits,
} from "../arithmetic/floats.ts";
import { sumInGlobal, sumInShared } from "../arithmetic/nans.ts";
import { windows, wordSize } from "../addresses.ts";
import { accessKind } from "../thread-instructions/memory.ts";
import { OperandError } from "../thread-instructions/writer.ts";
import type { Found, WarpState } from "../machine/warp.ts";
import { lowestLane } from "../program/lanes.ts";
import type { WarpInstruction, WarpRule, WarpRules } from "./rule.ts";

const operations = ["add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas"] as const;
type AtomicOperation = (typeof operations)[number];

/** Where the memory lies; sums of floats differ. */
type Space = "global" | "shared";

/** The new bits from the old ones and the operand. */
type Combine = (old: bigint, operand: bigint, space: Space) => bigint;

const genericShared = windows.shared * wordSize;
const genericGlobal = windows.global * wordSize;

/** Of a comparison and exchange, the operands are compared value and new value. */
interface AtomicForm {
  readonly bytes: number;
  readonly combine: Combine;
}

interface FloatCodec {
  readonly decode: (bits: bigint) => number;
  readonly encode: (value: number) => bigint;
}

const codecs: { readonly [type: string]: FloatCodec } = {
  f32: {
    decode: (bits) => singleOfBits(Number(bits) | 0),
    encode: (value) => BigInt(bitsOfSingle(Math.fround(value)) >>> 0),
  },
  f16: {
    decode: (bits) => halfNumbers[Number(bits)] as number,
    encode: (value) => BigInt(encodeHalf(value)),
  },
  bf16: {
    decode: (bits) => bfloatNumbers[Number(bits)] as number,
    encode: (value) => BigInt(encodeBfloat(value)),
  },
};

const floatOperations: {
  readonly [O in AtomicOperation]?: (a: number, b: number) => number;
} = {
  add: (a, b) => a + b,
  min: minimum,
  max: maximum,
};

/** Sums of f64 differ in what they make of NaNs. */
function addDoubles(old: bigint, operand: bigint, space: Space): bigint {
  return space === "global" ? sumInGlobal(old, operand) : sumInShared(old, operand);
}

function floatCombine(operation: AtomicOperation, type: string): Combine | undefined {
  if (type === "f64" && operation === "add") return addDoubles;
  const codec = codecs[type];
  const combine = floatOperations[operation];
  if (codec === undefined || combine === undefined) return undefined;
  return (old, operand) => codec.encode(combine(codec.decode(old), codec.decode(operand)));
}

function packedCombine(operation: AtomicOperation, type: string): Combine | undefined {
  const half = floatCombine(operation, type.slice(0, -2));
  if (half === undefined) return undefined;
  return (old, operand, space) =>
    half(old & 0xffffn, operand & 0xffffn, space) |
    (half(old >> 16n, operand >> 16n, space) << 16n);
}

function integerCombine(operation: AtomicOperation, bits: number, signed: boolean): Combine {
  const wrap = (value: bigint): bigint => BigInt.asUintN(bits, value);
  const number = (value: bigint): bigint => (signed ? BigInt.asIntN(bits, value) : value);
  const combinations: { readonly [O in AtomicOperation]: Combine } = {
    add: (old, operand) => wrap(old + operand),
    min: (old, operand) => (number(operand) < number(old) ? operand : old),
    max: (old, operand) => (number(operand) > number(old) ? operand : old),
    and: (old, operand) => old & operand,
    or: (old, operand) => old | operand,
    xor: (old, operand) => old ^ operand,
    inc: (old, operand) => (old >= operand ? 0n : old + 1n),
    dec: (old, operand) => (old === 0n || old > operand ? operand : old - 1n),
    exch: (_old, operand) => operand,
    cas: (_old, operand) => operand,
  };
  return combinations[operation];
}

function formOf(instruction: WarpInstruction, operation: AtomicOperation): AtomicForm {
  const { type } = instruction.lane;
  const bits = type === "f32" || type.endsWith("x2") ? 32 : Number(/\d+$/.exec(type)?.[0]);
  const isPacked = type.endsWith("x2");
  const isMove = operation === "exch" || operation === "cas";
  const float = isMove
    ? undefined
    : isPacked
      ? packedCombine(operation, type)
      : floatCombine(operation, type);
  return {
    bytes: bits / 8,
    combine: float ?? integerCombine(operation, bits, type.startsWith("s")),
  };
}

function readBits({ views, offset }: Found, bytes: number): bigint {
  if (bytes === 2) return BigInt(views.halves[offset >>> 1] as number);
  let bits = 0n;
  for (let at = bytes - 4; at >= 0; at -= 4)
    bits = (bits << 32n) | BigInt((views.words[(offset + at) >>> 2] as number) >>> 0);
  return bits;
}

function writeBits({ views, offset }: Found, bytes: number, bits: bigint): void {
  views.states.fill(2, offset, offset + bytes);
  if (bytes === 2) {
    views.halves[offset >>> 1] = Number(bits);
    return;
  }
  for (let at = 0; at < bytes; at += 4)
    views.words[(offset + at) >>> 2] = Number(BigInt.asIntN(32, bits >> BigInt(8 * at)));
}

function readOperand(view: OperandView, warp: WarpState, lane: number, bytes: number): bigint {
  return BigInt.asUintN(8 * bytes, view.wide(warp, lane));
}

function writeResult(
  view: OperandView,
  warp: WarpState,
  lane: number,
  bits: bigint,
  bytes: number,
): void {
  if (bytes >= 8) view.setWide(warp, lane, bits);
  else view.setWord(warp, lane, Number(bits) | 0);
}

/** A vector or a single operand as a list. */
function parts(view: OperandView): readonly OperandView[] {
  return view.operand.kind === "vector" ? view.elements : [view];
}

/** One lane's operation on one element; gives the old bits. */
type ElementRun = (warp: WarpState, lane: number, element: Found, space: Space) => void;

type WordCombine = (old: number, operand: number, space: Space) => number;

function wordRun(
  combine: WordCombine,
  operand: OperandView,
  replacement: OperandView | undefined,
  target: OperandView | undefined,
): ElementRun {
  return (warp, lane, { views, offset }, space) => {
    const at = offset >>> 2;
    const old = views.words[at] as number;
    const value = operand.word(warp, lane) | 0;
    let next = old;
    if (replacement === undefined) next = combine(old, value, space) | 0;
    else if (old === value) next = replacement.word(warp, lane) | 0;
    if (next !== old) warp.host.changed();
    views.words[at] = next;
    views.stateWords[at] = 0x02020202;
    target?.setWord(warp, lane, old);
  };
}

function wideRun(
  { bytes, combine }: AtomicForm,
  operand: OperandView,
  replacement: OperandView | undefined,
  target: OperandView | undefined,
): ElementRun {
  return (warp, lane, element, space) => {
    const old = readBits(element, bytes);
    const value = readOperand(operand, warp, lane, bytes);
    let next = old;
    if (replacement === undefined) next = combine(old, value, space);
    else if (old === value) next = readOperand(replacement, warp, lane, bytes);
    if (next !== old) warp.host.changed();
    writeBits(element, bytes, next);
    if (target !== undefined) writeResult(target, warp, lane, old, bytes);
  };
}

const unsignedLess = (a: number, b: number): boolean => a >>> 0 < b >>> 0;

/** Global memory flushes subnormal numbers, shared memory keeps them. */
function addSingles(old: number, operand: number, space: Space): number {
  const [a, b] = [singleOfBits(old), singleOfBits(operand)];
  if (space === "shared") return bitsOfSingle(Math.fround(a + b));
  return bitsOfSingle(flush(Math.fround(flush(a) + flush(b))));
}

/** Operations on 32-bit integers and f32 without BigInt. */
function wordCombine(operation: AtomicOperation, type: string): WordCombine | undefined {
  if (type === "f32" && operation === "add") return addSingles;
  if (!/^[usb]32$/.test(type)) return undefined;
  const isLess = type === "s32" ? (a: number, b: number) => a < b : unsignedLess;
  const combinations: { readonly [O in AtomicOperation]: WordCombine } = {
    add: (old, operand) => old + operand,
    min: (old, operand) => (isLess(operand, old) ? operand : old),
    max: (old, operand) => (isLess(old, operand) ? operand : old),
    and: (old, operand) => old & operand,
    or: (old, operand) => old | operand,
    xor: (old, operand) => old ^ operand,
    inc: (old, operand) => (unsignedLess(old, operand) ? old + 1 : 0),
    dec: (old, operand) => (old === 0 || unsignedLess(operand, old) ? operand : old - 1),
    exch: (_old, operand) => operand,
    cas: (_old, operand) => operand,
  };
  return combinations[operation];
}

/** Operands that leave a bit as it is, of operations that go bit by bit. */
const neutralBits: { readonly [O in AtomicOperation]?: number } = { and: -1, or: 0, xor: 0 };

/** The bits that lanes may change by a reduction of bits; filled anew for each. */
const touched = new Int32Array(32);

/**
 * The operand's neutral bits, of a reduction that leaves bytes of its word as they are: it reads nothing, and the hardware makes it at once, so it
 * does not meet those who read or write these. Single elements of 4 bits are stored by two of them.
 */
function neutralOf(operation: AtomicOperation, type: string, isRead: boolean): number | undefined {
  return isRead || !/^[usb]32$/.test(type) ? undefined : neutralBits[operation];
}

const atomic: WarpRule = (instruction) => {
  const { lane: parsed, site } = instruction;
  const operation = parsed.oneOf(operations);
  if (operation === undefined) throw new OperandError("atomic without an operation");
  if (parsed.has("async")) throw new OperandError("form of red.async");
  const form = formOf(instruction, operation);
  const { bytes } = form;
  const kind = accessKind(parsed.modifiers);
  const at = parsed.root === "atom" ? 1 : 0;
  const targets = at === 1 ? parts(instruction.view(0)) : [];
  const address = instruction.view(at);
  const replacement = operation === "cas" ? instruction.view(at + 2) : undefined;
  const word = wordCombine(operation, parsed.type);
  const runs = parts(instruction.view(at + 1)).map((operand, position) =>
    word === undefined
      ? wideRun(form, operand, replacement, targets[position])
      : wordRun(word, operand, replacement, targets[position]),
  );
  const toGeneric = kind === "shared" ? genericShared : 0;
  const operand = instruction.view(at + 1);
  const neutral = neutralOf(operation, parsed.type, at === 1);
  return (warp, mask) => {
    for (let rest = mask; rest !== 0; rest &= rest - 1) {
      const lane = lowestLane(rest);
      const place = address.address(warp, lane);
      warp.addresses[lane] = place + toGeneric;
      const space = place + toGeneric < genericGlobal ? "shared" : "global";
      const { views, offset } = warp.locate(site, lane, kind, place, bytes * runs.length);
      if (at === 1) warp.polled(views, offset);
      if (neutral !== undefined) touched[lane] = operand.word(warp, lane) ^ neutral;
      runs.forEach((run, position) =>
        run(warp, lane, { views, offset: offset + position * bytes }, space),
      );
    }
    warp.check(site, 0, mask, neutral === undefined ? undefined : touched);
    return mask;
  };
};

export const atomicRules: WarpRules = { atom: atomic, red: atomic };
