/**
 * The instruction descriptor of `tcgen05.mma`: shape, formats and a few switches in 32 bits.
 *
 * | bits      | f16, tf32, f8f6f4, i8                     | with block scales                       |
 * |-----------|-------------------------------------------|-----------------------------------------|
 * | 0–1       | selector of sparse metadata               | the same                                |
 * | 2         | sparse                                    | the same                                |
 * | 3         | saturate (i8)                             | 0                                       |
 * | 4–5       | D: f16 0, f32 1, s32 2                    | first byte of B's scales                |
 * | 7–9 10–12 | formats of A and B                        | the same                                |
 * | 13 14     | A, B negated                              | the same                                |
 * | 15 16     | A, B with rows side by side (MN-major)    | the same                                |
 * | 17–22     | N / 8                                     | N / 8                                   |
 * | 23        | 0                                         | scales: ue4m3 0, ue8m0 1                |
 * | 24–28     | M / 16                                    | M / 128 in bits 27–28                   |
 * | 29–30, 31 | 0; 30–31 the largest shift of `.ws`       | first byte of A's scales; k of 96       |
 */
import type { TermFormat } from "../../formats/arithmetic/tensor-core-terms.ts";

export type ProductKind = "f16" | "tf32" | "f8f6f4" | "i8" | "mxf8f6f4" | "mxf4" | "mxf4nvf4";
export type ElementFormat = TermFormat | "u8" | "s8";

export const productKinds: readonly ProductKind[] = [
  "f16",
  "tf32",
  "f8f6f4",
  "i8",
  "mxf8f6f4",
  "mxf4",
  "mxf4nvf4",
];

/** What the opcode tells. */
export interface ProductOpcode {
  readonly kind: ProductKind;
  readonly isPair: boolean;
  readonly isSparse: boolean;
  readonly isWeightStationary: boolean;
  /** Scales of a row that an instruction takes; 0 without scales. */
  readonly scales: 0 | 1 | 2 | 4;
}

export interface InstructionDescriptor {
  readonly m: number;
  readonly n: number;
  /** Of B: twice the elements that a sparse A has. */
  readonly k: number;
  readonly a: ElementFormat;
  readonly b: ElementFormat;
  readonly accumulator: "f16" | "f32" | "s32";
  readonly negatesA: boolean;
  readonly negatesB: boolean;
  readonly majorA: "k" | "mn";
  readonly majorB: "k" | "mn";
  readonly saturates: boolean;
  readonly selector: number;
  readonly scaleFormat: "ue8m0" | "ue4m3";
  readonly idA: number;
  readonly idB: number;
}

const narrow: readonly (ElementFormat | undefined)[] = [
  "f8e4m3fn",
  "f8e5m2",
  undefined,
  "f6e2m3fn",
  "f6e3m2fn",
  "f4e2m1fn",
];

const formats: { readonly [K in ProductKind]: readonly (ElementFormat | undefined)[] } = {
  f16: ["f16", "bf16"],
  tf32: [undefined, undefined, "tf32"],
  f8f6f4: narrow,
  i8: ["u8", "s8"],
  mxf8f6f4: narrow,
  mxf4: [undefined, "f4e2m1fn"],
  mxf4nvf4: [undefined, "f4e2m1fn"],
};

/** Elements of k of a dense A. */
const depths: { readonly [K in ProductKind]: number } = {
  f16: 16,
  tf32: 8,
  f8f6f4: 32,
  i8: 32,
  mxf8f6f4: 32,
  mxf4: 64,
  mxf4nvf4: 64,
};

const accumulators = ["f16", "f32", "s32"] as const;
const allowedAccumulators: { readonly [K in ProductKind]: readonly string[] } = {
  f16: ["f16", "f32"],
  tf32: ["f32"],
  f8f6f4: ["f16", "f32"],
  i8: ["s32"],
  mxf8f6f4: ["f32"],
  mxf4: ["f32"],
  mxf4nvf4: ["f32"],
};

function bits(word: number, from: number, count: number): number {
  return (word >>> from) & (2 ** count - 1);
}

type Formats = Pick<InstructionDescriptor, "a" | "b" | "accumulator">;

/** The formats that a descriptor names, or which of them there is not. */
function decodeFormats(word: number, { kind, scales }: ProductOpcode): Formats | string {
  const [left, right] = [bits(word, 7, 3), bits(word, 10, 3)];
  const [a, b] = [formats[kind][left], formats[kind][right]];
  if (a === undefined) return `format ${left} of A is none of kind::${kind}`;
  if (b === undefined) return `format ${right} of B is none of kind::${kind}`;
  const accumulator = scales === 0 ? accumulators[bits(word, 4, 2)] : "f32";
  if (accumulator !== undefined && allowedAccumulators[kind].includes(accumulator))
    return { a, b, accumulator };
  return `D of ${accumulator ?? "format 3"} is none of kind::${kind}`;
}

/** The descriptor of an opcode, or what is wrong with it. */
export function decodeInstructionDescriptor(
  word: number,
  opcode: ProductOpcode,
): InstructionDescriptor | string {
  const { kind, isSparse, scales } = opcode;
  const isScaled = scales !== 0;
  const isSet = (bit: number): boolean => bits(word, bit, 1) === 1;
  const reserved = reservedBits(word, opcode);
  if (reserved !== undefined) return reserved;
  const found = decodeFormats(word, opcode);
  if (typeof found === "string") return found;
  if (isSet(2) !== isSparse)
    return isSparse ? "bit 2 says that A is dense" : "bit 2 says that A is sparse";
  const descriptor: InstructionDescriptor = {
    ...found,
    m: isScaled ? 128 * bits(word, 27, 2) : 16 * bits(word, 24, 5),
    n: 8 * bits(word, 17, 6),
    k: depths[kind] * (isSparse ? 2 : 1),
    negatesA: isSet(13),
    negatesB: isSet(14),
    majorA: isSet(15) ? "mn" : "k",
    majorB: isSet(16) ? "mn" : "k",
    saturates: kind === "i8" && isSet(3),
    selector: bits(word, 0, 2),
    scaleFormat: isSet(23) ? "ue8m0" : "ue4m3",
    idA: isScaled ? bits(word, 29, 2) : 0,
    idB: isScaled ? bits(word, 4, 2) : 0,
  };
  return (
    formatProblem(descriptor, opcode) ??
    selectorProblem(descriptor, opcode) ??
    scaleProblem(descriptor, opcode) ??
    shapeProblem(descriptor, opcode) ??
    descriptor
  );
}

function reservedBits(
  word: number,
  { kind, scales, isWeightStationary }: ProductOpcode,
): string | undefined {
  const isScaled = scales !== 0;
  const reserved = isScaled
    ? [3, 6, 24, 25, 26, 31]
    : [...(kind === "i8" ? [] : [3]), 6, 23, 29, ...(isWeightStationary ? [] : [30, 31])];
  const set = reserved.filter((bit) => bits(word, bit, 1) === 1);
  if (set.length === 0) return undefined;
  return `bit ${set.join(", ")} is set, which means nothing here`;
}

/** Whether elements of a format are narrower than a byte. */
export function isSubByte(format: ElementFormat): boolean {
  return format.startsWith("f6") || format.startsWith("f4");
}

const firstBytes: { readonly [scales: number]: readonly number[] } = {
  1: [0, 1, 2, 3],
  2: [0, 2],
  4: [0],
};

function formatProblem(
  { a, b, accumulator, negatesA, negatesB, majorA, majorB }: InstructionDescriptor,
  { kind }: ProductOpcode,
): string | undefined {
  const isFourBit = kind === "mxf4" || kind === "mxf4nvf4";
  if (kind === "f16" && accumulator === "f16" && (a !== "f16" || b !== "f16"))
    return `${a} times ${b} into f16`;
  if (kind === "i8" && (negatesA || negatesB)) return "integers cannot be negated";
  for (const [major, format] of [
    [majorA, a],
    [majorB, b],
  ] as const)
    if (major === "mn" && (isFourBit || isSubByte(format)))
      return `${format} cannot lie with its rows side by side`;
  return undefined;
}

/** The largest selector of metadata; others mean nothing. */
const lastSelectors: { readonly [K in ProductKind]: number } = {
  f16: 1,
  tf32: 1,
  f8f6f4: 0,
  i8: 0,
  // Not looked at.
  mxf8f6f4: 3,
  mxf4: 3,
  mxf4nvf4: 3,
};

function selectorProblem(
  { selector }: InstructionDescriptor,
  { kind, isSparse }: ProductOpcode,
): string | undefined {
  if (!isSparse || selector <= lastSelectors[kind]) return undefined;
  return `metadata selector ${selector}, where ${lastSelectors[kind]} is the last one`;
}

function scaleProblem(
  { scaleFormat, idA, idB }: InstructionDescriptor,
  { kind, scales }: ProductOpcode,
): string | undefined {
  if (scales === 0) return undefined;
  if (scaleFormat === "ue4m3" && kind !== "mxf4nvf4") return `scales of ue4m3 with kind::${kind}`;
  for (const [id, name] of [
    [idA, "A"],
    [idB, "B"],
  ] as const)
    if (firstBytes[scales]?.includes(id) !== true)
      return `the scales of ${name} begin at byte ${id}, and there are ${scales}`;
  return undefined;
}

/** Multiples that N may be, and its smallest value. */
function columnsOf(
  { majorB }: InstructionDescriptor,
  { kind, isPair }: ProductOpcode,
): { readonly least: number; readonly step: number } {
  const isByteWide = kind === "f8f6f4" || kind === "i8" || kind === "mxf8f6f4";
  if (kind === "i8" && isPair) return { least: 32, step: 32 };
  if (isByteWide && majorB === "mn")
    return isPair ? { least: 32, step: 32 } : { least: 16, step: 16 };
  return isPair ? { least: 16, step: 16 } : { least: 8, step: 8 };
}

function shapeProblem(
  descriptor: InstructionDescriptor,
  opcode: ProductOpcode,
): string | undefined {
  const { m, n } = descriptor;
  const { kind, isPair, isWeightStationary, scales } = opcode;
  const shape = `M ${m}, N ${n}`;
  if (isWeightStationary)
    return [32, 64, 128].includes(m) && [64, 128, 256].includes(n)
      ? undefined
      : `${shape}, where .ws takes M of 32, 64 or 128 and N of 64, 128 or 256`;
  const rows = isPair ? [128, 256] : scales !== 0 ? [128] : [64, 128];
  if (!rows.includes(m)) return `${shape}, where M is ${rows.join(" or ")}`;
  const { least, step } = columnsOf(descriptor, opcode);
  const isOdd = kind === "i8" && !isPair && descriptor.majorB === "k" && n > 32 && n % 16 !== 0;
  if (n < least || n > 256 || n % step !== 0 || isOdd)
    return `${shape}, where N goes from ${least} to 256 in steps of ${isOdd ? 16 : step}`;
  return undefined;
}
