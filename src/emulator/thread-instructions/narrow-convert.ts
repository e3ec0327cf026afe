/**
 * `cvt` to and from floats of 4, 6 and 8 bits, two or four in a register, and `.rs`, which rounds by random bits.
 *
 *   cvt.rn.satfinite.e2m1x2.f32 %b0, %f0, %f1         %f0 in the upper nibble, %f1 in the lower
 *   cvt.rn.f16x2.e2m3x2 %r0, %h0                      bits 13 to 8 and 5 to 0
 *   cvt.rs.satfinite.e4m3x4.f32 %r0, {%f0, %f1, %f2, %f3}, %r1
 */
import type { Operand } from "../../ptx/module.ts";
import type { SmallFloat } from "../arithmetic/narrow.ts";
import type { LaneInstruction } from "./rule.ts";
import { OperandError } from "./writer.ts";
import type { LaneWriter } from "./writer.ts";

const smallFormats: { readonly [type: string]: SmallFloat } = {
  e4m3: "f8e4m3fn",
  e5m2: "f8e5m2",
  e2m3: "f6e2m3fn",
  e3m2: "f6e3m2fn",
  e2m1: "f4e2m1fn",
};

interface Packed {
  readonly format: SmallFloat;
  /** Of a code. */
  readonly bits: number;
  /** From one code to the next. */
  readonly stride: number;
}

function packedFormat(type: string): Packed | undefined {
  const match = /^(e\dm\d)x([24])$/.exec(type);
  const format = smallFormats[match?.[1] ?? ""];
  if (format === undefined) return undefined;
  return { format, bits: Number(format[1]), stride: format === "f4e2m1fn" ? 4 : 8 };
}

/** Codes in one word, the first on top. */
function joined(codes: readonly string[], stride: number): string {
  return codes.map((code, at) => `(${code} << ${stride * (codes.length - 1 - at)})`).join(" | ");
}

function toSmall(instruction: LaneInstruction, writer: LaneWriter, packed: Packed): void {
  const encode = (number: string): string =>
    writer.local(`encodeSmall("${packed.format}", ${number}, ${instruction.has("relu")})`);
  const target = instruction.operand(0);
  if (instruction.type === "f32") {
    const codes = [1, 2].map((at) => encode(writer.single(instruction.operand(at))));
    return writer.setWord(target, joined(codes, packed.stride));
  }
  const table = instruction.type === "f16x2" ? "HN" : "BN";
  const word = writer.word(instruction.operand(1));
  const codes = [`${word} >>> 16`, `${word} & 0xffff`].map((half) => encode(`${table}[${half}]`));
  writer.setWord(target, joined(codes, packed.stride));
}

function fromSmall(instruction: LaneInstruction, writer: LaneWriter, packed: Packed): void {
  const word = writer.word(instruction.operand(1));
  const flags = `"f16", "rn", ${instruction.has("relu")}, false`;
  // Six bits lie in bytes whose upper two count for nothing.
  const mask = 2 ** packed.bits - 1;
  const [high, low] = [packed.stride, 0].map((shift) =>
    writer.local(
      `encodePart(decodeSmall("${packed.format}", (${word} >>> ${shift}) & ${mask}), ${flags})`,
    ),
  );
  writer.setWord(instruction.operand(0), `${low} | (${high} << 16)`);
}

function toScales(instruction: LaneInstruction, writer: LaneWriter): void {
  const flags = `${instruction.has("rp")}, ${instruction.has("satfinite")}`;
  const isPacked = instruction.type === "bf16x2";
  const first = writer.word(instruction.operand(1));
  const words = isPacked
    ? [`${first} & 0xffff0000`, `${first} << 16`]
    : [first, writer.word(instruction.operand(2))];
  const codes = words.map((word) => writer.local(`encodeScale(${word}, ${flags})`));
  writer.setWord(instruction.operand(0), joined(codes, 8));
}

function fromScales(instruction: LaneInstruction, writer: LaneWriter): void {
  const word = writer.word(instruction.operand(1));
  const codes = [8, 0].map((shift) => writer.local(`decodeScale((${word} >>> ${shift}) & 0xff)`));
  writer.setWord(instruction.operand(0), joined(codes, 16));
}

/** Where the random bits of each of four numbers lie: a byte each of 4-bit results, else a half for two. */
function randomShifts(stride: number): readonly number[] {
  return stride === 4 ? [24, 8, 16, 0] : [16, 16, 0, 0];
}

function elementsOf(operand: Operand): readonly Operand[] {
  if (operand.kind !== "vector") throw new OperandError("numbers that are no vector");
  return operand.elements;
}

function toSmallRandomly(instruction: LaneInstruction, writer: LaneWriter, packed: Packed): void {
  const { format, stride } = packed;
  const random = writer.word(instruction.operand(2));
  const relu = instruction.has("relu");
  const shifts = randomShifts(stride);
  const codes = elementsOf(instruction.operand(1)).map((operand, at) => {
    const bits = `${random} >>> ${shifts[at] ?? 0}`;
    const count = stride === 4 ? 8 : 16;
    return writer.local(
      `encodeSmallRandomly("${format}", ${writer.single(operand)}, ${bits}, ${count}, ${relu})`,
    );
  });
  writer.setWord(instruction.operand(0), joined(codes, stride));
}

function toHalvesRandomly(
  instruction: LaneInstruction,
  writer: LaneWriter,
  format: "f16" | "bf16",
): void {
  const random = writer.word(instruction.operand(3));
  const flags = `${instruction.has("relu")}, ${instruction.has("satfinite")}`;
  const codes = [1, 2].map((at) => {
    const bits = `${random} >>> ${at === 1 ? 16 : 0}`;
    const number = writer.single(instruction.operand(at));
    return writer.local(`encodeHalfRandomly("${format}", ${number}, ${bits}, ${flags})`);
  });
  writer.setWord(instruction.operand(0), joined(codes, 16));
}

/** Writes the conversion; false where it is none of these. */
export function convertNarrow(
  instruction: LaneInstruction,
  writer: LaneWriter,
  to: string,
  from: string,
): boolean {
  const target = packedFormat(to);
  const source = packedFormat(from);
  const isRandom = instruction.has("rs");
  if (target !== undefined && isRandom) toSmallRandomly(instruction, writer, target);
  else if (target !== undefined) toSmall(instruction, writer, target);
  else if (source !== undefined && to === "f16x2") fromSmall(instruction, writer, source);
  else if (to === "ue8m0x2") toScales(instruction, writer);
  else if (from === "ue8m0x2") fromScales(instruction, writer);
  else if (isRandom && (to === "f16x2" || to === "bf16x2"))
    toHalvesRandomly(instruction, writer, to === "f16x2" ? "f16" : "bf16");
  else return false;
  return true;
}
