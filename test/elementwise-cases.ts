/**
 * Operands for elementwise probes, what they should give, and the bytes of both in a probe's memory. Small
 * formats are tried with all their codes; of the others, numbers are made of a random head and a tail that
 * sits on a midpoint of some narrower format or just beside one.
 */
import {
  binaryElements,
  classifyElements,
  compareElements,
  fusedMultiplyAddElements,
  selectElements,
  unaryElements,
} from "../src/formats/arithmetic/index.ts";
import { convertElements } from "../src/formats/convert.ts";
import { allocateElements, isFloat } from "../src/formats/dtype.ts";
import type { DType, Elements } from "../src/formats/dtype.ts";
import { packElements, unpackElements } from "../src/formats/packed.ts";
import { readElement } from "../src/formats/values.ts";
import { Random } from "../src/support/random.ts";
import { resultFormat } from "./elementwise-probes.ts";
import type { Elementwise, ElementwiseProbe } from "./elementwise-probes.ts";
import { memoryBytes, probeLanes, probeWidth } from "./ptx-probe.ts";
import type { Probe } from "./ptx-probe.ts";

export interface ProbeRun {
  readonly probe: ElementwiseProbe;
  readonly count: number;
  readonly blocks: number;
  readonly operands: readonly Elements[];
  readonly expected: Elements;
}

/** A run of about `size` elements, or of all there are where there are fewer. */
export function planRun(probe: ElementwiseProbe, size: number, seed: number): ProbeRun {
  const perBlock = probeLanes * probeWidth(probe);
  const all = probe.operands.reduce((product, dtype) => product * codeCount(dtype), 1);
  const blocks = Math.ceil(Math.min(all, size) / perBlock);
  const count = blocks * perBlock;
  const operands = operandLanes(probe.operands, count, Math.min(all, size), seed);
  return { probe, count, blocks, operands, expected: reference(probe.computes, operands, count) };
}

/* ---- operands ---- */

/** 4-bit formats and bool have few codes, others as many as their bits. */
function codeCount({ kind, bits }: DType): number {
  return kind === "bool" ? 2 : 2 ** bits;
}

const known = new Map<string, readonly Elements[]>();

/** Probes of the same formats have the same operands. */
function operandLanes(
  dtypes: readonly DType[],
  count: number,
  size: number,
  seed: number,
): readonly Elements[] {
  const key = `${dtypes.map(({ name }) => name).join()} ${count} ${seed}`;
  const found = known.get(key);
  if (found !== undefined) return found;
  const codes = operandCodes(dtypes, new Random(seed), size);
  const lanes = dtypes.map((dtype, index) => {
    const list = codes[index] ?? [];
    return lanesOf(
      dtype,
      Array.from({ length: count }, (_, each) => list[each % list.length] ?? 0n),
    );
  });
  known.set(key, lanes);
  return lanes;
}

function operandCodes(
  dtypes: readonly DType[],
  random: Random,
  size: number,
): readonly (readonly bigint[])[] {
  const all = dtypes.reduce((product, dtype) => product * codeCount(dtype), 1);
  if (all <= size) {
    let stride = 1;
    return dtypes.map((dtype) => {
      const step = stride;
      stride *= codeCount(dtype);
      return Array.from({ length: all }, (_, index) =>
        BigInt(Math.floor(index / step) % codeCount(dtype)),
      );
    });
  }
  const lists = dtypes.map((dtype) =>
    Array.from({ length: size }, () => randomCode(dtype, random)),
  );
  // Equal operands, and operands that differ in little, are where signs of zero and ties come from.
  const [first, ...others] = lists;
  for (const [number, list] of others.entries())
    for (let index = 0; index < size; index += 5 + 2 * number)
      if (dtypes[number + 1] === dtypes[0])
        list[index] = nearCode(dtypes[0], first?.[index], random);
  return lists;
}

function nearCode(dtype: DType | undefined, code = 0n, random: Random): bigint {
  const bits = dtype?.bits ?? 8;
  const sign = random.below(2) === 0 ? 0n : 1n << BigInt(bits - 1);
  const unit = dtype?.name === "tf32" ? 1 << 13 : 1;
  return BigInt.asUintN(bits, (code ^ sign) + BigInt((random.below(3) - 1) * unit));
}

function randomWide(random: Random): bigint {
  return (BigInt(random.bits()) << 32n) | BigInt(random.bits());
}

/** `bits` bits: a random head of some length, and a tail of zeros, ones, a half, or one beside a half. */
function headAndTail(bits: number, random: Random): bigint {
  const length = BigInt(random.below(bits + 1));
  const tail = BigInt(bits) - length;
  const head = BigInt.asUintN(Number(length), randomWide(random)) << tail;
  const half = tail > 0n ? 1n << (tail - 1n) : 0n;
  const ones = (1n << tail) - 1n;
  const tails = [0n, half, half + 1n, half - 1n, ones, 1n, randomWide(random)];
  return head | BigInt.asUintN(Number(tail), random.pick(tails));
}

function randomCode(dtype: DType, random: Random): bigint {
  const { bits, kind, name } = dtype;
  if (kind === "bool") return BigInt(random.below(2));
  if (bits < 32) return BigInt(random.below(2 ** bits));
  if (!isFloat(dtype)) return randomInteger(bits, random);
  const mantissaBits = bits === 64 ? 52 : 23;
  const bias = bits === 64 ? 1023 : 127;
  const exponent = randomExponent(bias, random);
  const sign = BigInt(random.below(2)) << BigInt(bits - 1);
  const code =
    sign | (BigInt(exponent) << BigInt(mantissaBits)) | headAndTail(mantissaBits, random);
  return name === "tf32" ? (code >> 13n) << 13n : code;
}

function randomInteger(bits: number, random: Random): bigint {
  const magnitude = headAndTail(bits, random) >> BigInt(random.below(bits));
  return BigInt.asUintN(bits, random.below(2) === 0 ? magnitude : -magnitude);
}

/** Around 1, around the least numbers of the narrower formats, anywhere, and the two ends. */
function randomExponent(bias: number, random: Random): number {
  const greatest = 2 * bias + 1;
  const near = random.pick([0, 0, 8, 16, 31, 63, 127, -8, -15, -25, -127, -137, -150]);
  const choice = random.below(8);
  if (choice === 0) return random.below(greatest + 1);
  if (choice === 1) return random.pick([0, 1, greatest - 1, greatest]);
  return Math.min(greatest, Math.max(0, bias + near + random.below(9) - 4));
}

function lanesOf(dtype: DType, codes: readonly bigint[]): Elements {
  if (dtype.bits === 4 || dtype.kind === "bool") {
    const lanes = allocateElements(dtype, codes.length);
    const signed = dtype.kind === "signed";
    codes.forEach((code, index) => {
      lanes[index] = Number(signed ? BigInt.asIntN(4, code) : code);
    });
    return lanes;
  }
  const bytes = new Uint8Array((codes.length * dtype.bits) / 8);
  const view = new DataView(bytes.buffer);
  codes.forEach((code, index) => {
    for (let byte = 0; byte < dtype.bits / 8; byte++)
      view.setUint8((index * dtype.bits) / 8 + byte, Number((code >> BigInt(8 * byte)) & 0xffn));
  });
  return unpackElements(dtype, bytes, codes.length);
}

/* ---- what they should give ---- */

function reference(computes: Elementwise, operands: readonly Elements[], count: number): Elements {
  const [a, b, c] = operands;
  const lanes = (some: Elements | undefined): Elements => {
    if (some === undefined) throw new Error("an operand is missing");
    return some;
  };
  const isTest = computes.kind === "compare" || computes.kind === "classify";
  const flags = new Uint8Array(isTest ? count : 0);
  const target = isTest ? flags : allocateElements(resultFormat(computes), count);
  switch (computes.kind) {
    case "compare":
      compareElements(computes.predicate, computes.dtype, lanes(a), lanes(b), flags);
      break;
    case "classify":
      classifyElements(computes.fn, computes.dtype, lanes(a), flags);
      break;
    case "unary":
      unaryElements(computes.fn, computes.dtype, lanes(a), target, computes);
      break;
    case "binary":
      binaryElements(computes.fn, computes.dtype, lanes(a), lanes(b), target, computes);
      break;
    case "fma":
      fusedMultiplyAddElements(computes.dtype, lanes(a), lanes(b), lanes(c), target, computes);
      break;
    case "select":
      selectElements(lanes(a) as Uint8Array, lanes(b), lanes(c), target);
      break;
    case "cast":
      convertElements(computes.from, computes.to, lanes(a), target, computes);
  }
  return target;
}

/* ---- memory ---- */

/** The bytes of operands in the probe's memory. */
export function memoryImage(level: Probe["level"], dtype: DType, lanes: Elements): Uint8Array {
  if (level === "words" || dtype.kind === "bool") return packElements(dtype, lanes);
  const stride = memoryBytes(level, dtype, 1);
  const image = new Uint8Array(lanes.length * stride);
  const view = new DataView(image.buffer);
  if (dtype.bits < 32) {
    for (const [index, lane] of lanes.entries()) view.setInt32(index * stride, Number(lane), true);
    return image;
  }
  return packElements(dtype, lanes);
}

export function resultBytes({ probe, count }: ProbeRun): number {
  const width = probeWidth(probe);
  return (count / width) * memoryBytes(probe.level, probe.result, width);
}

/** Lone 16-bit elements leave the upper half of their four bytes alone. */
function resultImages(run: ProbeRun, image: Uint8Array): readonly [Uint8Array, Uint8Array] {
  const { level, result } = run.probe;
  const wanted = memoryImage(level, result, run.expected);
  if (level === "words" || result.bits !== 16) return [image, wanted];
  const lower = (bytes: Uint8Array): Uint8Array => bytes.filter((_, index) => index % 4 < 2);
  return [lower(image), lower(wanted)];
}

/** The first few elements that came out otherwise, any NaN being as good as another. */
export function differences(run: ProbeRun, image: Uint8Array): readonly string[] {
  const { probe, expected, operands } = run;
  const [found, wanted] = resultImages(run, image);
  if (found.every((byte, index) => byte === wanted[index])) return [];
  const actual = readResults(run, image);
  const differing: string[] = [];
  for (let index = 0; index < run.count && differing.length < 4; index++) {
    const value = actual(index);
    const right = readElement(probe.result, expected, index);
    if (Object.is(value, right)) continue;
    const from = probe.operands.map((dtype, each) => {
      const lanes = operands[each];
      return lanes === undefined ? "" : String(readElement(dtype, lanes, index));
    });
    differing.push(`${probe.name}(${from.join(", ")}) = ${String(value)}, not ${String(right)}`);
  }
  return differing;
}

/** Results as host values; lone narrow integers are read from all of their register. */
function readResults(
  { probe, count }: ProbeRun,
  image: Uint8Array,
): (index: number) => number | bigint | boolean {
  const { level, result } = probe;
  if (level === "element" && result.bits < 32 && result.kind !== "bool") {
    const view = new DataView(image.buffer, image.byteOffset, image.byteLength);
    const lane = allocateElements(result, 1);
    return (index) => {
      const register =
        result.bits === 16 ? view.getInt16(4 * index, true) : view.getInt32(4 * index, true);
      lane[0] = register;
      if (result.bits < 16 && lane[0] !== register) return register;
      return readElement(result, lane, 0);
    };
  }
  const lanes = unpackElements(result, image, count);
  return (index) => readElement(result, lanes, index);
}

/**
 * How many numbers of the format lie between results and what was expected, at most; infinitely many where
 * only one of the two is NaN. For floats in words.
 */
export function greatestDistance({ probe, count, expected }: ProbeRun, image: Uint8Array): number {
  const { result } = probe;
  const lanes = unpackElements(result, image, count);
  const found = orderedCodes(result, image);
  const wanted = orderedCodes(result, packElements(result, expected));
  const unit = result.name === "tf32" ? 2 ** 13 : 1;
  let greatest = 0;
  for (let index = 0; index < count; index++) {
    const nans = [lanes, expected].map((each) => Number.isNaN(readElement(result, each, index)));
    if (nans[0] === true && nans[1] === true) continue;
    if (nans[0] !== nans[1]) return Infinity;
    const distance = Math.abs(Number((found[index] ?? 0n) - (wanted[index] ?? 0n))) / unit;
    greatest = Math.max(greatest, distance);
  }
  return greatest;
}

/** The codes of floats as integers in the order of the numbers. */
function orderedCodes({ bits }: DType, image: Uint8Array): readonly bigint[] {
  const view = new DataView(image.buffer, image.byteOffset, image.byteLength);
  const read = {
    16: (at: number) => BigInt(view.getInt16(at, true)),
    32: (at: number) => BigInt(view.getInt32(at, true)),
    64: (at: number) => view.getBigInt64(at, true),
  }[bits as 16 | 32 | 64];
  const least = -(1n << BigInt(bits - 1));
  return Array.from({ length: (8 * image.length) / bits }, (_, index) => {
    const code = read((index * bits) / 8);
    return code < 0n ? least - code : code;
  });
}
