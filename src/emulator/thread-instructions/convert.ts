/** `cvt` between every two types, and `cvt.pack`. */
import type { Operand } from "../../ptx/module.ts";
import { floatNumber } from "./compare.ts";
import { takePair } from "./integer.ts";
import { convertNarrow } from "./narrow-convert.ts";
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

/** What a conversion from f64 to a narrower float makes of NaN, as an expression of its words. */
const narrowNaNs: {
  readonly [F in "f16" | "bf16" | "f32"]: (low: string, high: string) => string;
} = {
  f16: (_low, high) => `narrowNaNToHalf(${high})`,
  bf16: (_low, high) => `narrowNaNToBfloat(${high})`,
  f32: (low, high) => `narrowNaN(${low}, ${high})`,
};

/** The call that leaves the f64 NaN of a source in the scratch pair. */
function wideNaN(instruction: LaneInstruction, writer: LaneWriter, from: FloatName): string {
  const source = instruction.operand(1);
  if (from === "f64") return `chooseNaN(${writer.nanOperand(source)})`;
  // The f32 operation that flushes leaves its own NaN.
  if (from === "f32")
    return `widenNaN(${instruction.has("ftz") ? "0x7fffffff" : writer.word(source)})`;
  const shift = from === "f16" ? 13 : 16;
  return `widenNaN(((${writer.word(source)} & 0x8000) << 16) | ((${writer.word(source)} & 0x7fff) << ${shift}))`;
}

/** Sets a float register; `exact` is not rounded to the format yet. */
function setFloat(
  instruction: LaneInstruction,
  writer: LaneWriter,
  to: FloatName,
  exact: string,
  nan = "chooseNaN()",
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
  if (to === "f32") text = singleText(instruction, text, mode);
  if (instruction.has("sat")) text = `saturate(${text})`;
  if (relu) text = `rectify(${text})`;
  if (to === "f32") writer.setSingle(target, text);
  else writer.setDouble(target, text, nan);
}

/** A number rounded to f32. */
function singleText(instruction: LaneInstruction, exact: string, mode: string): string {
  if (instruction.has("ftz")) return `singleFlushed(${exact}, "${mode}")`;
  return mode === "rn" ? `fround(${exact})` : `singleRounded(${exact}, "${mode}")`;
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
  const source = instruction.operand(1);
  const plain = instruction.modifiers.length === instruction.types.length;
  if (plain && to === from && to === "f64") {
    const { low, high } = writer.pair(source);
    return writer.setPair(instruction.operand(0), low, high);
  }
  if (plain && to === "f32" && (from === "f32" || from === "bf16"))
    return writer.setWord(
      instruction.operand(0),
      `${writer.word(source)} << ${from === "f32" ? 0 : 16}`,
    );
  // Only f32 operands are flushed, and not on their way to f16.
  const flushes = instruction.has("ftz") && from === "f32" && to !== "f16";
  const number = floatNumber(writer, source, from, flushes) ?? "0";
  const whole = instruction.oneOf(integerRoundings);
  const exact = whole === undefined ? number : `roundToInteger(${number}, "${whole}")`;
  if (to === "f64") setFloat(instruction, writer, to, exact, wideNaN(instruction, writer, from));
  else if (from === "f64") narrowDouble(instruction, writer, to, exact);
  else setFloat(instruction, writer, to, exact);
}

/** From f64 to a narrower float: NaN keeps its upper bits, unless it is saturated to zero. */
function narrowDouble(
  instruction: LaneInstruction,
  writer: LaneWriter,
  to: "f16" | "bf16" | "f32",
  exact: string,
): void {
  if (instruction.has("sat")) return setFloat(instruction, writer, to, exact);
  const mode = instruction.oneOf(["rz", "rm", "rp"]) ?? "rn";
  const bits =
    to === "f32"
      ? `bitsOfSingle(${singleText(instruction, exact, mode)})`
      : `encodePart(${exact}, "${to}", "${mode}", false, false)`;
  const [number = "0", low = "0", high = "0"] = writer
    .nanOperand(instruction.operand(1))
    .split(", ");
  writer.setWord(
    instruction.operand(0),
    `${number} === ${number} ? ${bits} : ${narrowNaNs[to](low, high)}`,
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

function toTf32(instruction: LaneInstruction, writer: LaneWriter): void {
  const mode = instruction.oneOf(["rna", "rz", "rn"]) ?? "rna";
  const number = writer.single(instruction.operand(1));
  const flags = `"${mode}", ${instruction.has("relu")}, ${instruction.has("satfinite")}`;
  const word = writer.word(instruction.operand(1));
  writer.setWord(instruction.operand(0), `encodeTf32(${number}, ${word}, ${flags})`);
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
  else return false;
  return true;
}

const convert: LaneRule = (instruction, writer) => {
  if (instruction.has("pack")) return packIntegers(instruction, writer);
  const [to = "", from = ""] = instruction.types;
  if (convertNarrow(instruction, writer, to, from)) return;
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
  const name = instruction.modifiers[2] ?? "";
  const match = /^([us])(2|4|8|16)$/.exec(name);
  if (match === null) throw new OperandError(`pack to .${name}`);
  const bits = Number(match[2]);
  const [least, most] =
    match[1] === "s" ? [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] : [0, 2 ** bits - 1];
  const ones = 2 ** bits - 1;
  const [a, b] = [1, 2].map((at) => {
    const word = writer.word(instruction.operand(at));
    return `(Math.max(${least}, Math.min(${most}, ${word})) & ${ones})`;
  });
  const both = `(${a} << ${bits}) | ${b}`;
  writer.setWord(
    instruction.operand(0),
    instruction.operandCount > 3
      ? `${both} | (${writer.word(instruction.operand(3))} << ${2 * bits})`
      : both,
  );
}

export const convertRules: LaneRules = { cvt: convert };
