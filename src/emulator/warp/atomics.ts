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
import { accessKind } from "../lane/memory.ts";
import { OperandError } from "../lane/writer.ts";
import type { Found, WarpState } from "../machine/warp.ts";
import { eachLane } from "./rule.ts";
import type { WarpInstruction, WarpRule, WarpRules } from "./rule.ts";

const operations = ["add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas"] as const;
type AtomicOperation = (typeof operations)[number];

/** The new bits from the old ones and the operand. */
type Combine = (old: bigint, operand: bigint) => bigint;

/** Of a comparison and exchange, the operands are compared value and new value. */
interface AtomicForm {
  readonly bytes: number;
  readonly combine: Combine;
}

const doubles = new Float64Array(1);
const doubleBits = new BigUint64Array(doubles.buffer);

function doubleOf(bits: bigint): number {
  doubleBits[0] = bits;
  return doubles[0] as number;
}

function bitsOfDouble(value: number): bigint {
  doubles[0] = value;
  return doubleBits[0] as bigint;
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
  f64: { decode: doubleOf, encode: bitsOfDouble },
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

function floatCombine(operation: AtomicOperation, type: string, ftz: boolean): Combine | undefined {
  const codec = codecs[type];
  const combine = floatOperations[operation];
  if (codec === undefined || combine === undefined) return undefined;
  const read = ftz ? (bits: bigint) => flush(codec.decode(bits)) : codec.decode;
  return (old, operand) => {
    const result = combine(read(old), read(operand));
    return codec.encode(ftz ? flush(result) : result);
  };
}

function packedCombine(operation: AtomicOperation, type: string): Combine | undefined {
  const half = floatCombine(operation, type.slice(0, -2), false);
  if (half === undefined) return undefined;
  return (old, operand) =>
    half(old & 0xffffn, operand & 0xffffn) | (half(old >> 16n, operand >> 16n) << 16n);
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
  // Global f32 atomics keep subnormal numbers; those on shared memory flush them only where told to.
  const float = isMove
    ? undefined
    : isPacked
      ? packedCombine(operation, type)
      : floatCombine(operation, type, instruction.has("ftz"));
  return {
    bytes: bits / 8,
    combine: float ?? integerCombine(operation, bits, type.startsWith("s")),
  };
}

function readBits({ views, offset }: Found, bytes: number): bigint {
  if (bytes === 2) return BigInt(views.halves[offset >>> 1] as number);
  const low = BigInt((views.words[offset >>> 2] as number) >>> 0);
  if (bytes === 4) return low;
  return low | (BigInt((views.words[(offset >>> 2) + 1] as number) >>> 0) << 32n);
}

function writeBits({ views, offset }: Found, bytes: number, bits: bigint): void {
  views.states.fill(2, offset, offset + bytes);
  if (bytes === 2) {
    views.halves[offset >>> 1] = Number(bits);
    return;
  }
  views.words[offset >>> 2] = Number(BigInt.asIntN(32, bits));
  if (bytes === 8) views.words[(offset >>> 2) + 1] = Number(BigInt.asIntN(32, bits >> 32n));
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
  if (bytes === 8) view.setWide(warp, lane, bits);
  else view.setWord(warp, lane, Number(bits) | 0);
}

/** A vector or a single operand as a list. */
function parts(view: OperandView): readonly OperandView[] {
  return view.operand.kind === "vector" ? view.elements : [view];
}

const atomic: WarpRule = (instruction) => {
  const operation = instruction.lane.oneOf(operations);
  if (operation === undefined) throw new OperandError("atomic without an operation");
  const hasResult = instruction.lane.root === "atom";
  const { bytes, combine } = formOf(instruction, operation);
  if (bytes > 8) throw new OperandError("atomic on 128 bits");
  const kind = accessKind(instruction.lane.modifiers);
  const targets = hasResult ? parts(instruction.view(0)) : undefined;
  const at = hasResult ? 1 : 0;
  const address = instruction.view(at);
  const operands = parts(instruction.view(at + 1));
  const replacement = operation === "cas" ? instruction.view(at + 2) : undefined;
  return (warp, mask) => {
    eachLane(mask, (lane) => {
      const place = address.address(warp, lane);
      warp.addresses[lane] = kind === "shared" ? place + 4294967296 : place;
      const found = warp.locate(instruction.site, lane, kind, place, bytes * operands.length);
      operands.forEach((operand, position) => {
        const element = { views: found.views, offset: found.offset + position * bytes };
        const old = readBits(element, bytes);
        const value = readOperand(operand, warp, lane, bytes);
        const swaps = replacement === undefined || old === value;
        const next =
          replacement === undefined
            ? combine(old, value)
            : swaps
              ? readOperand(replacement, warp, lane, bytes)
              : old;
        if (next !== old) warp.host.changed();
        writeBits(element, bytes, next);
        const target = targets?.[position];
        if (target !== undefined) writeResult(target, warp, lane, old, bytes);
      });
    });
    warp.check(instruction.site, 0, mask);
    return mask;
  };
};

export const atomicRules: WarpRules = { atom: atomic, red: atomic };
