/**
 * The registers that all arithmetic runs in, and the moves between them and elements.
 *
 * An operation walks its elements in pieces of 1024. It loads a piece of each operand into registers,
 * runs one loop over the registers, and stores the result, which replaces the first operand:
 *
 *   bf16 elements ──decode──▶ first  [1024 × f64]  ┐
 *                                               ├─ first[i] = first[i] + second[i] ──round──▶ bf16 elements
 *   bf16 elements ──decode──▶ second [1024 × f64]  ┘
 *
 * There are three kinds of register, so that a function is written three times and not twenty:
 *
 * | registers | element      | formats                                    | store                |
 * |-----------|--------------|--------------------------------------------|----------------------|
 * | float     | f64          | f64, f32, tf32, f16, bf16, f8e8m0fnu       | rounds to the format |
 * | integer   | 32-bit word  | bool, i4 … i32 extended by their sign, u32 | wraps to the width   |
 * | wide      | two words    | i64, u64, and f64 as bits; low word first  | copies               |
 *
 * The registers are constants of the module on purpose. A loop over typed arrays that it receives as
 * arguments reloads their lengths and addresses in every turn, which costs three times the arithmetic;
 * over constant arrays the compiled loop has the addresses in it. Imported names are not constant in
 * that sense, so a file of loops begins with aliases of its own. And `Number(a < b)` is free of the jump
 * that `a < b ? 1 : 0` makes, which the processor guesses wrong for half of random elements.
 *
 * Every NaN that arithmetic makes is stored as the format's one NaN, whatever sign and payload the
 * host's processor gave it.
 */
import { isWide } from "../dtype.ts";
import type { DType, DTypeName, Elements } from "../dtype.ts";
import { decodeTable, encodeFloat, floatFormats } from "../floats.ts";
import type { TableFloatName } from "../floats.ts";
import type { ArithmeticFloatName } from "./functions.ts";

/** Elements of a register. */
export const registerElements = 1024;

/** Which of the three registers of a kind; also the operand's position. */
export type Register = 0 | 1 | 2;

export const floatRegisters = new Float64Array(3 * registerElements);
export const integerRegisters = new Int32Array(3 * registerElements);
export const wideRegisters = new Int32Array(6 * registerElements);
/** Results and conditions of type bool. */
export const flagRegister = new Uint8Array(registerElements);

const floats = floatRegisters;
const integers = integerRegisters;
const wides = wideRegisters;
const elementsPerRegister = registerElements;
/** The words of the float registers, low word first. */
const floatWords = new Int32Array(floats.buffer);
const firstInteger = integers.subarray(0, elementsPerRegister);
const firstWide = wides.subarray(0, 2 * elementsPerRegister);

const staged64 = new Float64Array(elementsPerRegister);
const staged32 = new Float32Array(elementsPerRegister);
const staged16 = new Uint16Array(elementsPerRegister);

/** Typed arrays whose elements are numbers. */
export type NumberElements = Exclude<Elements, BigInt64Array | BigUint64Array>;

function piece<T extends Elements>(elements: T, start: number, count: number): T {
  return elements.length === count ? elements : (elements.subarray(start, start + count) as T);
}

/** Below this many elements a loop is faster than a call of `set`. */
const fewElements = 16;

function moveIn(
  source: NumberElements,
  start: number,
  count: number,
  register: NumberElements,
  offset: number,
): void {
  if (count <= fewElements) {
    for (let i = 0; i < count; i++) register[offset + i] = source[start + i] as number;
  } else {
    register.set(piece(source, start, count), offset);
  }
}

function moveOut(
  staged: NumberElements,
  target: NumberElements,
  start: number,
  count: number,
): void {
  if (count <= fewElements) {
    for (let i = 0; i < count; i++) target[start + i] = staged[i] as number;
  } else {
    target.set(piece(staged, 0, count), start);
  }
}

/* ---- floats ---- */

type NarrowName = "f16" | "bf16";

/** Where each format's numbers begin in `codeValues`. */
const codeBases: { readonly [N in TableFloatName]: number } = {
  f16: 0,
  bf16: 0x10000,
  f8e4m3fn: 0x20000,
  f8e5m2: 0x20100,
  f8e8m0fnu: 0x20200,
  f6e2m3fn: 0x20300,
  f6e3m2fn: 0x20400,
  f4e2m1fn: 0x20500,
};
/** The numbers of all codes, filled in when a format is first used. */
const codeValues = new Float32Array(0x20510);
const filledFormats = new Set<TableFloatName>();

function codeBase(name: TableFloatName): number {
  if (!filledFormats.has(name)) {
    codeValues.set(decodeTable(name), codeBases[name]);
    filledFormats.add(name);
  }
  return codeBases[name];
}

function hasCodes(name: DTypeName): name is TableFloatName {
  return Object.hasOwn(codeBases, name);
}

/** Loads `count` elements of a float format as numbers. */
export function loadFloats(
  dtype: DType,
  source: Elements,
  start: number,
  count: number,
  register: Register,
): void {
  const offset = register * elementsPerRegister;
  if (hasCodes(dtype.name)) {
    moveIn(source as Uint16Array, start, count, staged16, 0);
    const base = codeBase(dtype.name);
    for (let i = 0; i < count; i++) {
      floats[offset + i] = codeValues[base + (staged16[i] as number)] as number;
    }
  } else {
    moveIn(source as Float32Array | Float64Array, start, count, floats, offset);
  }
}

/** Rounds the first float register to the format, once, and stores it. */
export function storeFloats(dtype: DType, target: Elements, start: number, count: number): void {
  floatStores[dtype.name as StoredFloatName](count);
  moveOut(floatStages[dtype.name as StoredFloatName], target as NumberElements, start, count);
}

/** The floats that have arithmetic, powers of two among them. */
type StoredFloatName = ArithmeticFloatName | "f8e8m0fnu";

const floatStages: { readonly [N in StoredFloatName]: NumberElements } = {
  f64: staged64,
  f32: staged32,
  tf32: staged32,
  f16: staged16,
  bf16: staged16,
  f8e8m0fnu: staged16,
};

const floatStores: { readonly [N in StoredFloatName]: (count: number) => void } = {
  f64: stage64,
  f32: stage32,
  tf32: (count) => {
    roundToTf32(count);
    stage32(count);
  },
  f16: (count) => stage16("f16", count),
  bf16: (count) => stage16("bf16", count),
  f8e8m0fnu: (count) => {
    for (let i = 0; i < count; i++) staged16[i] = encodeFloat("f8e8m0fnu", floats[i] ?? 0);
  },
};

/**
 * `check` becomes NaN where a number is infinite or NaN. To add up is cheaper than to ask for each: the
 * elements are looked at again only where it did.
 */
function stage64(count: number): void {
  let check = 0;
  for (let i = 0; i < count; i++) {
    const value = floats[i] as number;
    staged64[i] = value;
    check += value * 0;
  }
  if (check !== 0) replaceNaNs(staged64, count);
}

function stage32(count: number): void {
  let check = 0;
  for (let i = 0; i < count; i++) {
    const value = floats[i] as number;
    staged32[i] = value;
    check += value * 0;
  }
  if (check !== 0) replaceNaNs(staged32, count);
}

function replaceNaNs(staged: Float32Array | Float64Array, count: number): void {
  for (let i = 0; i < count; i++) if (staged[i] !== staged[i]) staged[i] = NaN;
}

/**
 * High words of f64 patterns, without sign: those from `lowest` on and below `beyond` are normal
 * numbers of the format, which rounding may still carry into its infinity.
 */
interface NarrowRounding {
  readonly lowest: number;
  readonly beyond: number;
  /** What the change of bias takes off a high word. */
  readonly rebias: number;
  /** Mantissa bits in a high word that the format has not. */
  readonly shift: number;
  /** One less than half a unit in the last place. */
  readonly belowHalf: number;
}

function planNarrowRounding(name: NarrowName | "tf32"): NarrowRounding {
  const { bias, mantissaBits } = floatFormats[name];
  const shift = 20 - mantissaBits;
  return {
    lowest: (1024 - bias) << 20,
    beyond: (1024 + bias) << 20,
    rebias: (1023 - bias) << 20,
    shift,
    belowHalf: (1 << (shift - 1)) - 1,
  };
}

const narrowRoundings: { readonly [N in NarrowName]: NarrowRounding } = {
  f16: planNarrowRounding("f16"),
  bf16: planNarrowRounding("bf16"),
};

/**
 * Round to nearest even on the pattern of the f64 itself: the high word holds all bits that stay and
 * the first that goes; of the low word it only matters whether it is zero, which fits a last bit.
 */
function stage16(name: NarrowName, count: number): void {
  const { lowest, beyond, rebias, shift, belowHalf } = narrowRoundings[name];
  const range = beyond - lowest;
  let exceptions = 0;
  for (let i = 0; i < count; i++) {
    const high = floatWords[2 * i + 1] as number;
    const magnitude = high & 0x7fffffff;
    const kept = (magnitude - rebias) | Number(floatWords[2 * i] !== 0);
    const code = (kept + belowHalf + ((kept >>> shift) & 1)) >>> shift;
    staged16[i] = code | ((high >>> 16) & 0x8000);
    exceptions |= Number((magnitude - lowest) >>> 0 >= range);
  }
  if (exceptions !== 0) encodeExceptions(name, count);
}

/** Subnormal, infinite, too large and no numbers, and zeros: what `stage16` got wrong. */
function encodeExceptions(name: NarrowName, count: number): void {
  const { lowest, beyond } = narrowRoundings[name];
  for (let i = 0; i < count; i++) {
    const magnitude = (floatWords[2 * i + 1] as number) & 0x7fffffff;
    if (magnitude < lowest || magnitude >= beyond) {
      staged16[i] = encodeFloat(name, floats[i] as number);
    }
  }
}

const { lowest: lowestTf32, beyond: beyondTf32 } = planNarrowRounding("tf32");
/** Adding and subtracting this rounds a number below 2^-126 to a multiple of 2^-136, tf32's last bit there. */
const tf32Subnormal = 1.5 * 2 ** (52 - 136);

/** Rounds the first register in place; overflow is left to the conversion to f32 that follows. */
function roundToTf32(count: number): void {
  for (let i = 0; i < count; i++) {
    const high = floatWords[2 * i + 1] as number;
    const magnitude = high & 0x7fffffff;
    if (magnitude < lowestTf32) {
      const value = floats[i] as number;
      if (value > 0) floats[i] = value + tf32Subnormal - tf32Subnormal;
      else if (value < 0) floats[i] = -(tf32Subnormal - value - tf32Subnormal);
    } else if (magnitude < beyondTf32) {
      const kept = high | Number(floatWords[2 * i] !== 0);
      floatWords[2 * i + 1] = (kept + 0x1ff + ((kept >>> 10) & 1)) & ~0x3ff;
      floatWords[2 * i] = 0;
    }
  }
}

/* ---- integers ---- */

/** The elements as integers of the same width, or as pairs of words for 64-bit formats. */
export function laneBits(elements: Elements): Exclude<NumberElements, Float32Array | Float64Array> {
  if (elements instanceof Float32Array) {
    return new Int32Array(elements.buffer, elements.byteOffset, elements.length);
  }
  if (
    elements instanceof Float64Array ||
    elements instanceof BigInt64Array ||
    elements instanceof BigUint64Array
  ) {
    return new Int32Array(elements.buffer, elements.byteOffset, 2 * elements.length);
  }
  return elements;
}

/** Loads elements of at most 32 bits, each extended by its sign, or by zeros where it has none. */
export function loadIntegers(
  source: Elements,
  start: number,
  count: number,
  register: Register,
): void {
  moveIn(source as NumberElements, start, count, integers, register * elementsPerRegister);
}

/** Wraps the first integer register to the format's width and stores it. */
export function storeIntegers(dtype: DType, target: Elements, start: number, count: number): void {
  // Typed arrays wrap by themselves to the widths that they have.
  if (dtype.bits === 4) {
    if (dtype.kind === "signed") {
      for (let i = 0; i < count; i++) integers[i] = ((integers[i] as number) << 28) >> 28;
    } else {
      for (let i = 0; i < count; i++) integers[i] = (integers[i] as number) & 15;
    }
  }
  storeWords(target, start, count);
}

/** Stores the first integer register into elements of at most 32 bits that it is known to fit. */
export function storeWords(target: Elements, start: number, count: number): void {
  moveOut(firstInteger, target as NumberElements, start, count);
}

/** Loads 64-bit elements given as pairs of words. */
export function loadWides(
  words: NumberElements,
  start: number,
  count: number,
  register: Register,
): void {
  moveIn(words, 2 * start, 2 * count, wides, 2 * register * elementsPerRegister);
}

export function storeWides(words: NumberElements, start: number, count: number): void {
  moveOut(firstWide, words, 2 * start, 2 * count);
}

/* ---- flags ---- */

export function loadFlags(source: Uint8Array, start: number, count: number): void {
  moveIn(source, start, count, flagRegister, 0);
}

export function storeFlags(target: Uint8Array, start: number, count: number): void {
  moveOut(flagRegister, target, start, count);
}

/* ---- walking ---- */

/** The kind of register that a format with arithmetic, or bool, is computed in. */
export type RegisterKind = "float" | "integer" | "wide";

export function registerKind(dtype: DType): RegisterKind {
  if (dtype.kind === "float") return "float";
  return isWide(dtype) ? "wide" : "integer";
}

/** Calls `run` for each piece of `length` elements. */
export function forEachPiece(length: number, run: (start: number, count: number) => void): void {
  for (let start = 0; start < length; start += elementsPerRegister) {
    run(start, Math.min(elementsPerRegister, length - start));
  }
}

/* ---- whole arrays of numbers ---- */

/** Decodes elements of a float format, from `start` on, into `target` from its beginning. */
export function widenElements(
  dtype: DType,
  source: Elements,
  start: number,
  count: number,
  target: Float32Array | Float64Array,
): void {
  if (!hasCodes(dtype.name)) {
    target.set(piece(source as Float32Array | Float64Array, start, count));
    return;
  }
  forEachPiece(count, (done, length) => {
    loadFloats(dtype, source, start + done, length, 0);
    target.set(floats.subarray(0, length), done);
  });
}

/** Rounds numbers to the format, once, and stores them. */
export function narrowElements(
  dtype: DType,
  values: Float32Array | Float64Array,
  target: Elements,
): void {
  forEachPiece(values.length, (start, count) => {
    floats.set(piece(values, start, count));
    storeFloats(dtype, target, start, count);
  });
}
