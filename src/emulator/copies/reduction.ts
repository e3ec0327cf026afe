/**
 * Element by element reductions of bulk copies and tensor copies into memory: `target op= source`.
 *
 * | operation     | on                          | gives                                                |
 * |---------------|-----------------------------|------------------------------------------------------|
 * | add           | u32 s32 u64 s64, floats     | wraps; floats round to nearest even                  |
 * | min max       | u32 s32 u64 s64 f16 bf16    | of a NaN and a number, the number                    |
 * | inc dec       | u32                         | counts up to, down from the source, then starts anew |
 * | and or xor    | 32 and 64 bits              |                                                      |
 *
 * Sums of floats keep subnormal numbers; those through a tensor map of f32.ftz take them for zero.
 */
import { decodeFloat, encodeFloat } from "../../formats/floats.ts";
import { flush } from "../arithmetic/floats.ts";
import { sumInGlobal } from "../arithmetic/nans.ts";

export const reductionOperations = ["add", "min", "max", "inc", "dec", "and", "or", "xor"] as const;
export type ReductionOperation = (typeof reductionOperations)[number];

/** The operation that modifiers name. */
export function reductionOf(modifiers: readonly string[]): ReductionOperation | undefined {
  return reductionOperations.find((operation) => modifiers.includes(operation));
}

export type ReductionType =
  | "u32"
  | "s32"
  | "u64"
  | "s64"
  | "f16"
  | "bf16"
  | "f32"
  | "f32.ftz"
  | "f64";

export const reductionTypeBytes: { readonly [T in ReductionType]: number } = Object.freeze({
  u32: 4,
  s32: 4,
  u64: 8,
  s64: 8,
  f16: 2,
  bf16: 2,
  f32: 4,
  "f32.ftz": 4,
  f64: 8,
});

type Combine = (target: DataView, source: DataView, at: number) => void;

function words(combine: (old: number, operand: number) => number): Combine {
  return (target, source, at) =>
    target.setUint32(at, combine(target.getUint32(at, true), source.getUint32(at, true)), true);
}

function signedWords(combine: (old: number, operand: number) => number): Combine {
  return (target, source, at) =>
    target.setInt32(at, combine(target.getInt32(at, true), source.getInt32(at, true)), true);
}

function wides(combine: (old: bigint, operand: bigint) => bigint): Combine {
  return (target, source, at) =>
    target.setBigUint64(
      at,
      BigInt.asUintN(64, combine(target.getBigUint64(at, true), source.getBigUint64(at, true))),
      true,
    );
}

function signedWides(combine: (old: bigint, operand: bigint) => bigint): Combine {
  return (target, source, at) =>
    target.setBigInt64(
      at,
      combine(target.getBigInt64(at, true), source.getBigInt64(at, true)),
      true,
    );
}

function halves(name: "f16" | "bf16", combine: (old: number, operand: number) => number): Combine {
  return (target, source, at) => {
    const old = decodeFloat(name, target.getUint16(at, true));
    const result = combine(old, decodeFloat(name, source.getUint16(at, true)));
    target.setUint16(at, Number.isNaN(result) ? 0x7fff : encodeFloat(name, result), true);
  };
}

/** Sums of f32; `kept` is what operands and results are taken for. */
function singles(kept: (value: number) => number): Combine {
  return (target, source, at) => {
    const terms = [target, source].map((view) => kept(view.getFloat32(at, true)));
    const sum = kept(Math.fround((terms[0] ?? 0) + (terms[1] ?? 0)));
    if (Number.isNaN(sum)) target.setUint32(at, 0x7fff_ffff, true);
    else target.setFloat32(at, sum, true);
  };
}

const addDoubles = wides(sumInGlobal);

/** The minimum, or with `less` the other way round the maximum; −0 lies below 0. */
function extremum(pick: (left: number, right: number) => number) {
  return (old: number, operand: number): number => {
    if (Number.isNaN(old)) return operand;
    return Number.isNaN(operand) ? old : pick(old, operand);
  };
}

const smaller = extremum(Math.min);
const larger = extremum(Math.max);
const wideSmaller = (old: bigint, operand: bigint): bigint => (operand < old ? operand : old);
const wideLarger = (old: bigint, operand: bigint): bigint => (operand > old ? operand : old);
const add = (old: number, operand: number): number => old + operand;
const addWide = (old: bigint, operand: bigint): bigint => old + operand;
const logic = {
  and: words((old, operand) => old & operand),
  or: words((old, operand) => old | operand),
  xor: words((old, operand) => old ^ operand),
};
const wideLogic = {
  and: wides((old, operand) => old & operand),
  or: wides((old, operand) => old | operand),
  xor: wides((old, operand) => old ^ operand),
};

const combines: {
  readonly [T in ReductionType]: { readonly [O in ReductionOperation]?: Combine };
} = {
  u32: {
    add: words(add),
    min: words(Math.min),
    max: words(Math.max),
    inc: words((old, operand) => (old >= operand ? 0 : old + 1)),
    dec: words((old, operand) => (old === 0 || old > operand ? operand : old - 1)),
    ...logic,
  },
  s32: { add: signedWords(add), min: signedWords(Math.min), max: signedWords(Math.max), ...logic },
  u64: { add: wides(addWide), min: wides(wideSmaller), max: wides(wideLarger), ...wideLogic },
  s64: {
    add: wides(addWide),
    min: signedWides(wideSmaller),
    max: signedWides(wideLarger),
    ...wideLogic,
  },
  f16: { add: halves("f16", add), min: halves("f16", smaller), max: halves("f16", larger) },
  bf16: { add: halves("bf16", add), min: halves("bf16", smaller), max: halves("bf16", larger) },
  f32: { add: singles((sum) => sum) },
  "f32.ftz": { add: singles(flush) },
  f64: { add: addDoubles },
};

/** Whether the operation is defined on the type. */
export function acceptsReduction(operation: ReductionOperation, type: ReductionType): boolean {
  return combines[type][operation] !== undefined;
}

/** target op= source, element by element. */
export function reduceBytes(
  operation: ReductionOperation,
  type: ReductionType,
  target: Uint8Array,
  source: Uint8Array,
): void {
  const combine = combines[type][operation];
  if (combine === undefined) throw new Error(`${operation} of ${type}`);
  const targetView = new DataView(target.buffer, target.byteOffset, target.byteLength);
  const sourceView = new DataView(source.buffer, source.byteOffset, source.byteLength);
  const bytes = reductionTypeBytes[type];
  for (let at = 0; at < target.length; at += bytes) combine(targetView, sourceView, at);
}
