/** `cvt` between every two types, and `cvt.pack`. */
import type { Operand } from "../../ptx/module.ts";
import { floatNumber } from "./compare.ts";
import { takePair } from "./integer.ts";
import { integerType, integerWord } from "./rule.ts";
import type { IntegerType, LaneInstruction, LaneRule, LaneRules } from "./rule.ts";
import { OperandError } from "./writer.ts";
import type { LaneWriter } from "./writer.ts";

type FloatName = "f16" | "bf16" | "f32" | "f64";

function isFloat(type: string): type is FloatName {
  return type === "f16" || type === "bf16" || type === "f32" || type === "f64";
}

function rangeOf({ bits, signed }: IntegerType): readonly [number, number] {
  return signed ? [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] : [0, 2 ** bits - 1];
}

/** Sets a register to an integer that has been cut to its type; wider registers take its sign. */
function setInteger(
  writer: LaneWriter,
  target: Operand,
  expression: string,
  { bits, signed }: IntegerType,
): void {
  const isPair = target.kind === "register" && writer.place(target).shape === "pair";
  const cut =
    bits === 32
      ? expression
      : signed
        ? `((${expression}) << ${32 - bits} >> ${32 - bits})`
        : `((${expression}) & ${2 ** bits - 1})`;
  if (!isPair) return writer.setWord(target, cut);
  const low = writer.local(cut);
  writer.setPair(target, low, signed ? `${low} >> 31` : "0");
}

/** Integers: cut or extend, clamped with `.sat`. */
function integerToInteger(
  instruction: LaneInstruction,
  writer: LaneWriter,
  to: IntegerType,
  from: IntegerType,
): void {
  const target = instruction.operand(0);
  const source = instruction.operand(1);
  const saturates = instruction.has("sat");
  if (from.bits === 64) {
    const { low, high } = writer.pair(source);
    if (to.bits === 64 && !saturates) return writer.setPair(target, low, high);
    if (!saturates) return setInteger(writer, target, low, to);
    const clamp = `clampWide(${low}, ${high}, ${from.signed}, ${to.bits}, ${to.signed})`;
    if (to.bits === 64) return takePair(writer, target, clamp);
    writer.line(`${clamp};`);
    return setInteger(writer, target, "SI[0]", to);
  }
  const word = integerWord(writer, source, from);
  if (to.bits === 64) {
    const low = writer.local(
      saturates && from.signed && !to.signed ? `Math.max(0, ${word})` : word,
    );
    return writer.setPair(target, low, from.signed ? `${low} >> 31` : "0");
  }
  if (!saturates) return setInteger(writer, target, word, to);
  const [least, most] = rangeOf(to);
  const value = from.signed ? word : `(${word} >>> 0)`;
  setInteger(writer, target, `Math.max(${least}, Math.min(${most}, ${value})) | 0`, to);
}

const integerRoundings = ["rni", "rzi", "rmi", "rpi"] as const;

function floatToInteger(
  instruction: LaneInstruction,
  writer: LaneWriter,
  to: IntegerType,
  from: FloatName,
): void {
  const number = floatNumber(writer, instruction.operand(1), from, instruction.has("ftz")) ?? "0";
  const mode = instruction.oneOf(integerRoundings) ?? "rzi";
  const target = instruction.operand(0);
  if (to.bits === 64)
    return takePair(writer, target, `toWideInteger(${number}, "${mode}", ${to.signed})`);
  const [least, most] = rangeOf(to);
  const nan = from === "f64" ? (2 ** (to.bits - 1)) | 0 : 0;
  setInteger(writer, target, `toInteger(${number}, "${mode}", ${least}, ${most}, ${nan})`, to);
}

/** Sets a float register; `exact` is not rounded to the format yet. */
function setFloat(
  instruction: LaneInstruction,
  writer: LaneWriter,
  to: FloatName,
  exact: string,
): void {
  const target = instruction.operand(0);
  const mode = instruction.oneOf(["rz", "rm", "rp"]) ?? "rn";
  const relu = instruction.has("relu");
  let text = exact;
  if (to === "f16" || to === "bf16") {
    const finite = instruction.has("satfinite");
    const flags = `"${to}", "${mode}", ${relu}, ${finite}`;
    if (instruction.has("sat")) text = `saturate(${text})`;
    return writer.setWord(target, `encodePart(${text}, ${flags})`);
  }
  if (to === "f32") text = mode === "rn" ? `fround(${text})` : `singleRounded(${text}, "${mode}")`;
  if (instruction.has("ftz") && to === "f32") text = `flush(${text})`;
  if (instruction.has("sat")) text = `saturate(${text})`;
  if (relu) text = `rectify(${text})`;
  if (to === "f32") writer.setSingle(target, text);
  else writer.setDouble(target, text);
}

function integerToFloat(
  instruction: LaneInstruction,
  writer: LaneWriter,
  to: FloatName,
  from: IntegerType,
): void {
  const source = instruction.operand(1);
  const mode = instruction.oneOf(["rz", "rm", "rp"]) ?? "rn";
  if (from.bits === 64) {
    const { low, high } = writer.pair(source);
    const operands = `${low}, ${high}, ${from.signed}, precisions.${to}, "${mode}"`;
    return setFloat(instruction, writer, to, writer.local(`fromWideInteger(${operands})`));
  }
  const word = integerWord(writer, source, from);
  setFloat(instruction, writer, to, from.signed || from.bits < 32 ? word : `(${word} >>> 0)`);
}

function floatToFloat(
  instruction: LaneInstruction,
  writer: LaneWriter,
  to: FloatName,
  from: FloatName,
): void {
  const number = floatNumber(writer, instruction.operand(1), from, instruction.has("ftz")) ?? "0";
  const whole = instruction.oneOf(integerRoundings);
  setFloat(
    instruction,
    writer,
    to,
    whole === undefined ? number : `roundToInteger(${number}, "${whole}")`,
  );
}

/** Two f32 into two halves, the first operand into the upper. */
function packHalves(
  instruction: LaneInstruction,
  writer: LaneWriter,
  format: "f16" | "bf16",
): void {
  const mode = instruction.oneOf(["rz", "rm", "rp"]) ?? "rn";
  const flags = `"${format}", "${mode}", ${instruction.has("relu")}, ${instruction.has("satfinite")}`;
  const [high, low] = [1, 2].map((at) =>
    writer.local(`encodePart(${writer.single(instruction.operand(at))}, ${flags})`),
  );
  writer.setWord(instruction.operand(0), `${low} | (${high} << 16)`);
}

const smallFormats: { readonly [type: string]: string } = {
  e4m3x2: "f8e4m3fn",
  e5m2x2: "f8e5m2",
};

function toSmall(instruction: LaneInstruction, writer: LaneWriter, format: string): void {
  const relu = instruction.has("relu");
  const encode = (number: string): string => `encodeSmall("${format}", ${number}, ${relu})`;
  const target = instruction.operand(0);
  if (instruction.type === "f32") {
    const [high, low] = [1, 2].map((at) =>
      writer.local(encode(writer.single(instruction.operand(at)))),
    );
    return writer.setWord(target, `${low} | (${high} << 8)`);
  }
  const table = instruction.type === "f16x2" ? "HN" : "BN";
  const word = writer.word(instruction.operand(1));
  const low = writer.local(encode(`${table}[${word} & 0xffff]`));
  const high = writer.local(encode(`${table}[${word} >>> 16]`));
  writer.setWord(target, `${low} | (${high} << 8)`);
}

function fromSmall(instruction: LaneInstruction, writer: LaneWriter, format: string): void {
  const word = writer.word(instruction.operand(1));
  const flags = `"f16", "rn", ${instruction.has("relu")}, false`;
  const low = writer.local(`encodePart(decodeSmall("${format}", ${word} & 0xff), ${flags})`);
  const high = writer.local(
    `encodePart(decodeSmall("${format}", (${word} >>> 8) & 0xff), ${flags})`,
  );
  writer.setWord(instruction.operand(0), `${low} | (${high} << 16)`);
}

function toTf32(instruction: LaneInstruction, writer: LaneWriter): void {
  const mode = instruction.oneOf(["rna", "rz", "rn"]) ?? "rna";
  const number = writer.single(instruction.operand(1));
  const flags = `"${mode}", ${instruction.has("relu")}, ${instruction.has("satfinite")}`;
  writer.setWord(instruction.operand(0), `encodeTf32(${number}, ${flags})`);
}

function convertFloats(
  instruction: LaneInstruction,
  writer: LaneWriter,
  to: string,
  from: string,
): boolean {
  if (to === "f16x2" && from === "f32") packHalves(instruction, writer, "f16");
  else if (to === "bf16x2" && from === "f32") packHalves(instruction, writer, "bf16");
  else if (to === "tf32") toTf32(instruction, writer);
  else if (smallFormats[to] !== undefined) toSmall(instruction, writer, smallFormats[to]);
  else if (smallFormats[from] !== undefined && to === "f16x2")
    fromSmall(instruction, writer, smallFormats[from]);
  else return false;
  return true;
}

const convert: LaneRule = (instruction, writer) => {
  if (instruction.has("pack")) return packIntegers(instruction, writer);
  const [to = "", from = ""] = instruction.types;
  if (convertFloats(instruction, writer, to, from)) return;
  const toInteger = integerType(to);
  const fromInteger = integerType(from);
  if (toInteger !== undefined && fromInteger !== undefined)
    integerToInteger(instruction, writer, toInteger, fromInteger);
  else if (toInteger !== undefined && isFloat(from))
    floatToInteger(instruction, writer, toInteger, from);
  else if (isFloat(to) && fromInteger !== undefined)
    integerToFloat(instruction, writer, to, fromInteger);
  else if (isFloat(to) && isFloat(from)) floatToFloat(instruction, writer, to, from);
  else throw new OperandError(`conversion from .${from} to .${to}`);
};

/** `cvt.pack.sat.u8.s32.b32 d, a, b, c`: a and b saturated, above the shifted low part of c. */
function packIntegers(instruction: LaneInstruction, writer: LaneWriter): void {
  const to = integerType(instruction.types[0] ?? "");
  if (to === undefined) throw new OperandError(`pack to .${instruction.types[0]}`);
  const [least, most] = rangeOf(to);
  const ones = 2 ** to.bits - 1;
  const [a, b] = [1, 2].map((at) => {
    const word = writer.word(instruction.operand(at));
    return `(Math.max(${least}, Math.min(${most}, ${word})) & ${ones})`;
  });
  const both = `(${a} << ${to.bits}) | ${b}`;
  writer.setWord(
    instruction.operand(0),
    instruction.operandCount > 3
      ? `${both} | (${writer.word(instruction.operand(3))} << ${2 * to.bits})`
      : both,
  );
}

export const convertRules: LaneRules = { cvt: convert };
