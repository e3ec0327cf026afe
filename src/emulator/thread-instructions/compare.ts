/** Comparisons, selections and moves. */
import type { Operand } from "../../ptx/module.ts";
import { pairLess } from "./integer.ts";
import { integerType, integerWord } from "./rule.ts";
import type { LaneInstruction, LaneRule, LaneRules } from "./rule.ts";
import { OperandError } from "./writer.ts";
import type { LaneWriter } from "./writer.ts";

const comparisons = [
  "eq",
  "ne",
  "lt",
  "le",
  "gt",
  "ge",
  "lo",
  "ls",
  "hi",
  "hs",
  "equ",
  "neu",
  "ltu",
  "leu",
  "gtu",
  "geu",
  "num",
  "nan",
] as const;
type Comparison = (typeof comparisons)[number];

/** Operators of floats; those that also hold for NaN are the negations of the opposite. */
const floatComparisons: { readonly [C in Comparison]?: (a: string, b: string) => string } = {
  eq: (a, b) => `${a} === ${b}`,
  ne: (a, b) => `(${a} < ${b} || ${a} > ${b})`,
  lt: (a, b) => `${a} < ${b}`,
  le: (a, b) => `${a} <= ${b}`,
  gt: (a, b) => `${a} > ${b}`,
  ge: (a, b) => `${a} >= ${b}`,
  equ: (a, b) => `!(${a} < ${b} || ${a} > ${b})`,
  neu: (a, b) => `${a} !== ${b}`,
  ltu: (a, b) => `!(${a} >= ${b})`,
  leu: (a, b) => `!(${a} > ${b})`,
  gtu: (a, b) => `!(${a} <= ${b})`,
  geu: (a, b) => `!(${a} < ${b})`,
  num: (a, b) => `(${a} === ${a} && ${b} === ${b})`,
  nan: (a, b) => `(${a} !== ${a} || ${b} !== ${b})`,
};

/** lo, ls, hi and hs compare without sign. */
const unsignedNames: { readonly [C in Comparison]?: string } = {
  lo: "<",
  ls: "<=",
  hi: ">",
  hs: ">=",
};
const operators: { readonly [C in Comparison]?: string } = {
  eq: "===",
  ne: "!==",
  lt: "<",
  le: "<=",
  gt: ">",
  ge: ">=",
  ...unsignedNames,
};

/** An f16, bf16, f32 or f64 operand as a number; undefined for other types. */
export function floatNumber(
  writer: LaneWriter,
  operand: Operand,
  type: string,
  ftz = false,
): string | undefined {
  if (type === "f32") return ftz ? `flush(${writer.single(operand)})` : writer.single(operand);
  if (type === "f64") return writer.double(operand);
  const code = `${type === "f16" || type === "bf16" ? writer.word(operand) : ""} & 0xffff`;
  if (type === "f16") return ftz ? `flushHalf(HN[${code}])` : `HN[${code}]`;
  return type === "bf16" ? `BN[${code}]` : undefined;
}

/** A condition on two operands. */
function condition(
  instruction: LaneInstruction,
  writer: LaneWriter,
  type: string,
  operands: readonly [Operand, Operand],
): string {
  const comparison = instruction.oneOf(comparisons);
  if (comparison === undefined) throw new OperandError("no comparison");
  const [left, right] = operands;
  const ftz = instruction.has("ftz");
  const a = floatNumber(writer, left, type, ftz);
  const b = floatNumber(writer, right, type, ftz);
  if (a !== undefined && b !== undefined) {
    const text = floatComparisons[comparison]?.(writer.local(a), writer.local(b));
    if (text === undefined) throw new OperandError(`comparison .${comparison} of floats`);
    return text;
  }
  return integerCondition(writer, type, comparison, left, right);
}

function integerCondition(
  writer: LaneWriter,
  name: string,
  comparison: Comparison,
  left: Operand,
  right: Operand,
): string {
  const type = integerType(name);
  const operator = operators[comparison];
  if (type === undefined || operator === undefined)
    throw new OperandError(`comparison .${comparison} of .${name}`);
  const signed = type.signed && unsignedNames[comparison] === undefined;
  if (type.bits !== 64) {
    const a = integerWord(writer, left, { ...type, signed });
    const b = integerWord(writer, right, { ...type, signed });
    const equality = comparison === "eq" || comparison === "ne";
    const sign = signed || equality || type.bits < 32 ? "" : " >>> 0";
    return sign === "" ? `${a} ${operator} ${b}` : `(${a}${sign}) ${operator} (${b}${sign})`;
  }
  const a = writer.pair(left);
  const b = writer.pair(right);
  if (operator === "===") return `(${a.low} === ${b.low} && ${a.high} === ${b.high})`;
  if (operator === "!==") return `(${a.low} !== ${b.low} || ${a.high} !== ${b.high})`;
  if (operator === "<") return pairLess(a, b, signed);
  if (operator === ">") return pairLess(b, a, signed);
  return operator === "<=" ? `!${pairLess(b, a, signed)}` : `!${pairLess(a, b, signed)}`;
}

const booleanOperators = { and: "&", or: "|", xor: "^" } as const;

function combined(
  instruction: LaneInstruction,
  writer: LaneWriter,
  value: string,
  position: number,
): string {
  const operator = instruction.oneOf(["and", "or", "xor"]);
  if (operator === undefined) return value;
  const other = writer.predicate(instruction.operand(position));
  return `(${value}) ${booleanOperators[operator]} ${other}`;
}

const setPredicates: LaneRule = (instruction, writer) => {
  const target = instruction.operand(0);
  if (/x2$/.test(instruction.type)) return setPackedPredicates(instruction, writer);
  const operands = [instruction.operand(1), instruction.operand(2)] as const;
  const text = condition(instruction, writer, instruction.type, operands);
  const value = writer.local(`${text} ? 1 : 0`);
  const parted = writer.readings;
  const [first, second] = target.kind === "pair" ? [target.first, target.second] : [target];
  const firstValue = writer.local(combined(instruction, writer, value, 3));
  const secondValue =
    second === undefined ? "" : writer.local(combined(instruction, writer, `${value} ^ 1`, 3));
  if (second === undefined) {
    const flip = instruction.has("and") ? 1 : 0;
    const decides = flip === 1 || instruction.has("or");
    const other = decides ? writer.predicate(instruction.operand(3)) : "";
    if (decides) writer.decides(parted, [`${value} ^ ${flip}`, `${other} ^ ${flip}`]);
  }
  writer.setPredicate(first, firstValue);
  if (second !== undefined) writer.setPredicate(second, secondValue);
};

/** Two halves, a predicate each. */
function setPackedPredicates(instruction: LaneInstruction, writer: LaneWriter): void {
  const target = instruction.operand(0);
  if (target.kind !== "pair") throw new OperandError("two predicates are needed");
  const [low, high] = packedConditions(instruction, writer);
  const lowValue = writer.local(combined(instruction, writer, `${low} ? 1 : 0`, 3));
  const highValue = writer.local(combined(instruction, writer, `${high} ? 1 : 0`, 3));
  writer.setPredicate(target.first, lowValue);
  writer.setPredicate(target.second, highValue);
}

function packedConditions(
  instruction: LaneInstruction,
  writer: LaneWriter,
): readonly [string, string] {
  const comparison = instruction.oneOf(comparisons);
  const compare = comparison === undefined ? undefined : floatComparisons[comparison];
  if (compare === undefined) throw new OperandError("no comparison of floats");
  const table = instruction.type === "f16x2" ? "HN" : "BN";
  const flush = instruction.has("ftz") ? "flushHalf" : "";
  const [a, b] = [1, 2].map((at) => writer.word(instruction.operand(at)));
  const half = (word: string | undefined, from: number): string =>
    writer.local(`${flush}(${table}[(${word} >>> ${from}) & 0xffff])`);
  return [compare(half(a, 0), half(b, 0)), compare(half(a, 16), half(b, 16))];
}

const setValues: LaneRule = (instruction, writer) => {
  const [result = "", type = ""] = instruction.types;
  const target = instruction.operand(0);
  if (/x2$/.test(type)) {
    const conditions = packedConditions(instruction, writer).map((text) =>
      combined(instruction, writer, `${text} ? 1 : 0`, 3),
    );
    const one = { f16x2: "0x3c00", bf16x2: "0x3f80" }[result] ?? "0xffff";
    const [low, high] = conditions.map((text) => `((${text}) !== 0 ? ${one} : 0)`);
    return writer.setWord(target, `${low} | (${high} << 16)`);
  }
  const operands = [instruction.operand(1), instruction.operand(2)] as const;
  const text = condition(instruction, writer, type, operands);
  const value = combined(instruction, writer, `(${text}) ? 1 : 0`, 3);
  const ones: { readonly [type: string]: string } = {
    f32: `${0x3f800000}`,
    f16: "0x3c00",
    bf16: "0x3f80",
  };
  writer.setWord(target, `(${value}) !== 0 ? ${ones[result] ?? "-1"} : 0`);
};

function isWide(type: string): boolean {
  return type.endsWith("64");
}

const select: LaneRule = (instruction, writer) => {
  const [target, a, b] = [0, 1, 2].map((at) => instruction.operand(at));
  if (target === undefined || a === undefined || b === undefined) return;
  const choice = writer.predicate(instruction.operand(3));
  choose(writer, instruction.type, `${choice} !== 0`, target, a, b);
};

function choose(
  writer: LaneWriter,
  type: string,
  first: string,
  target: Operand,
  a: Operand,
  b: Operand,
): void {
  if (!isWide(type)) writer.setWord(target, `${first} ? ${writer.word(a)} : ${writer.word(b)}`);
  else {
    const [left, right] = [writer.pair(a), writer.pair(b)];
    const low = writer.local(`${first} ? ${left.low} : ${right.low}`);
    writer.setPair(target, low, `${first} ? ${left.high} : ${right.high}`);
  }
  writer.selects(`${first} ? 1 : 0`, [a, b]);
}

const selectBySign: LaneRule = (instruction, writer) => {
  const [type = "", signType] = instruction.types;
  const [target, a, b] = [0, 1, 2].map((at) => instruction.operand(at));
  if (target === undefined || a === undefined || b === undefined) return;
  const selector = instruction.operand(3);
  const value = signType === "f32" ? writer.single(selector) : writer.word(selector);
  choose(writer, type, `${value} >= 0`, target, a, b);
};

/** Packing, unpacking and plain copies. */
const move: LaneRule = (instruction, writer) => {
  const target = instruction.operand(0);
  const source = instruction.operand(1);
  const { type } = instruction;
  if (type === "pred") return writer.setPredicate(target, writer.predicate(source));
  if (target.kind === "vector") return unpack(writer, type, target.elements, source);
  if (source.kind === "vector") return pack(writer, type, target, source.elements);
  if (!isWide(type)) return writer.setWord(target, writer.word(source));
  const { low, high } = writer.pair(source);
  writer.setPair(target, low, high);
};

function typeWidth(type: string): number {
  return Number(/\d+$/.exec(type)?.[0] ?? 32);
}

/** The words of an operand that is wider than a word. */
function wordsOf(writer: LaneWriter, operand: Operand, width: number): readonly string[] {
  if (width <= 32) return [writer.word(operand)];
  if (width === 128) return writer.quad(operand);
  const { low, high } = writer.pair(operand);
  return [low, high];
}

function unpack(
  writer: LaneWriter,
  type: string,
  targets: readonly Operand[],
  source: Operand,
): void {
  const width = typeWidth(type);
  const part = width / targets.length;
  const words = wordsOf(writer, source, width).map((word) => writer.local(word));
  targets.forEach((target, position) => {
    const from = position * part;
    const word = words[from >>> 5] ?? "0";
    if (part === 64) writer.setPair(target, word, words[(from >>> 5) + 1] ?? "0");
    else if (part === 32) writer.setWord(target, word);
    else writer.setWord(target, `(${word} >>> ${from & 31}) & ${2 ** part - 1}`);
  });
}

function pack(
  writer: LaneWriter,
  type: string,
  target: Operand,
  sources: readonly Operand[],
): void {
  const width = typeWidth(type);
  const part = width / sources.length;
  const words = Array.from({ length: Math.max(1, width / 32) }, (): string[] => []);
  sources.forEach((source, position) => {
    const from = position * part;
    if (part === 64) {
      const { low, high } = writer.pair(source);
      words[from >>> 5]?.push(low);
      words[(from >>> 5) + 1]?.push(high);
      return;
    }
    const word = writer.word(source);
    const cut = part === 32 ? word : `((${word} & ${2 ** part - 1}) << ${from & 31})`;
    words[from >>> 5]?.push(cut);
  });
  const texts = words.map((parts) => parts.join(" | "));
  if (width === 128) return writer.setQuad(target, texts);
  const [low = "0", high] = texts;
  if (high === undefined) writer.setWord(target, low);
  else writer.setPair(target, writer.local(low), writer.local(high));
}

export const compareRules: LaneRules = {
  setp: setPredicates,
  set: setValues,
  selp: select,
  slct: selectBySign,
  mov: move,
};
