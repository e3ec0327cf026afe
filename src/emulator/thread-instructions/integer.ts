/** Integer arithmetic. 64-bit values are pairs of words; see `arithmetic/wide.ts`. */
import type { Operand } from "../../ptx/module.ts";
import { carryRegister } from "../program/registers.ts";
import { integerType, integerWord } from "./rule.ts";
import type { IntegerType, LaneInstruction, LaneRule, LaneRules } from "./rule.ts";
import { OperandError } from "./writer.ts";
import type { LaneWriter, Pair } from "./writer.ts";

export function integerTypeOf(instruction: LaneInstruction): IntegerType {
  const type = integerType(instruction.type);
  if (type === undefined) throw new OperandError(`type .${instruction.type}`);
  return type;
}

/** Takes what a helper left in the scratch pair. */
export function takePair(writer: LaneWriter, operand: Operand, call: string): void {
  writer.line(`${call};`);
  writer.setPair(operand, "SI[0]", "SI[1]");
}

function addPairs(writer: LaneWriter, target: Operand, a: Pair, b: Pair): void {
  const low = writer.local(`(${a.low} + ${b.low}) | 0`);
  const carry = `((${low} >>> 0) < (${a.low} >>> 0) ? 1 : 0)`;
  const high = writer.local(`(${a.high} + ${b.high} + ${carry}) | 0`);
  writer.setPair(target, low, high);
}

function subtractPairs(writer: LaneWriter, target: Operand, a: Pair, b: Pair): void {
  const borrow = `((${a.low} >>> 0) < (${b.low} >>> 0) ? 1 : 0)`;
  const high = writer.local(`(${a.high} - ${b.high} - ${borrow}) | 0`);
  const low = writer.local(`(${a.low} - ${b.low}) | 0`);
  writer.setPair(target, low, high);
}

function saturatedWord(expression: string): string {
  return `Math.max(-2147483648, Math.min(2147483647, ${expression})) | 0`;
}

function packedHalves(writer: LaneWriter, instruction: LaneInstruction, sign: "+" | "-"): void {
  const a = writer.word(instruction.operand(1));
  const b = writer.word(instruction.operand(2));
  const low = `((${a} ${sign} ${b}) & 0xffff)`;
  writer.setWord(instruction.operand(0), `${low} | (((${a} >>> 16) ${sign} (${b} >>> 16)) << 16)`);
}

/** Sums and differences, with the carry that `.cc` leaves and `addc` takes. */
function sum(sign: "+" | "-", takesCarry: boolean): LaneRule {
  return (instruction, writer) => {
    if (/^[us]16x2$/.test(instruction.type)) return packedHalves(writer, instruction, sign);
    const { bits } = integerTypeOf(instruction);
    const [target, a, b] = [0, 1, 2].map((position) => instruction.operand(position));
    if (target === undefined || a === undefined || b === undefined) return;
    const leavesCarry = instruction.has("cc");
    if (takesCarry || leavesCarry) return sumWithCarry(instruction, writer, sign, takesCarry);
    if (bits === 64)
      return (sign === "+" ? addPairs : subtractPairs)(
        writer,
        target,
        writer.pair(a),
        writer.pair(b),
      );
    const exact = `${writer.word(a)} ${sign} ${writer.word(b)}`;
    writer.setWord(target, instruction.has("sat") ? saturatedWord(exact) : `(${exact}) | 0`);
  };
}

function sumWithCarry(
  instruction: LaneInstruction,
  writer: LaneWriter,
  sign: "+" | "-",
  takesCarry: boolean,
): void {
  const target = instruction.operand(0);
  const carry = takesCarry ? writer.predicate(carryRegister) : "0";
  const leavesCarry = instruction.has("cc");
  if (integerTypeOf(instruction).bits === 64) {
    const a = writer.pair(instruction.operand(1));
    const b = writer.pair(instruction.operand(2));
    const helper = sign === "+" ? "addWide" : "subtractWide";
    const out = writer.local(`${helper}(${a.low}, ${a.high}, ${b.low}, ${b.high}, ${carry})`);
    writer.setPair(target, "SI[0]", "SI[1]");
    if (leavesCarry) writer.setPredicate(carryRegister, out);
    return;
  }
  const a = writer.word(instruction.operand(1));
  const b = writer.word(instruction.operand(2));
  const exact = writer.local(`(${a} >>> 0) ${sign} (${b} >>> 0) ${sign} ${carry}`);
  writer.setWord(target, `${exact} | 0`);
  const out = sign === "+" ? `${exact} > 4294967295 ? 1 : 0` : `${exact} < 0 ? 1 : 0`;
  if (leavesCarry) writer.setPredicate(carryRegister, out);
}

/** The product as an expression of at most 32 bits; `.wide` of 16 bits included. */
function productWord(
  instruction: LaneInstruction,
  writer: LaneWriter,
  type: IntegerType,
  part: "lo" | "hi" | "wide",
): string {
  const a = integerWord(writer, instruction.operand(1), type);
  const b = integerWord(writer, instruction.operand(2), type);
  if (type.bits === 16) {
    const product = `Math.imul(${a}, ${b})`;
    return part === "hi" ? `(${product} >> 16)` : product;
  }
  if (part === "lo") return `Math.imul(${a}, ${b})`;
  return `${type.signed ? "multiplyHigh" : "multiplyHighUnsigned"}(${a}, ${b})`;
}

function partOf(instruction: LaneInstruction): "lo" | "hi" | "wide" {
  const part = instruction.oneOf(["lo", "hi", "wide"]);
  if (part === undefined) throw new OperandError("neither .lo, .hi nor .wide");
  return part;
}

function productPair(
  instruction: LaneInstruction,
  writer: LaneWriter,
  type: IntegerType,
  part: "lo" | "hi" | "wide",
): Pair {
  if (type.bits === 32) {
    const a = writer.word(instruction.operand(1));
    const b = writer.word(instruction.operand(2));
    const high = type.signed ? "multiplyHigh" : "multiplyHighUnsigned";
    return {
      low: writer.local(`Math.imul(${a}, ${b})`),
      high: writer.local(`${high}(${a}, ${b})`),
    };
  }
  const a = writer.pair(instruction.operand(1));
  const b = writer.pair(instruction.operand(2));
  const operands = `${a.low}, ${a.high}, ${b.low}, ${b.high}`;
  writer.line(
    part === "hi" ? `multiplyHighWide(${operands}, ${type.signed});` : `multiplyLow(${operands});`,
  );
  return { low: writer.local("SI[0]"), high: writer.local("SI[1]") };
}

function givesPair(type: IntegerType, part: "lo" | "hi" | "wide"): boolean {
  return type.bits === 64 || (type.bits === 32 && part === "wide");
}

const multiply: LaneRule = (instruction, writer) => {
  const type = integerTypeOf(instruction);
  const part = partOf(instruction);
  const target = instruction.operand(0);
  if (givesPair(type, part)) {
    const { low, high } = productPair(instruction, writer, type, part);
    writer.setPair(target, low, high);
  } else writer.setWord(target, productWord(instruction, writer, type, part));
};

function multiplyAdd(takesCarry: boolean): LaneRule {
  return (instruction, writer) => {
    const type = integerTypeOf(instruction);
    const part = partOf(instruction);
    const target = instruction.operand(0);
    const leavesCarry = instruction.has("cc");
    const carry = takesCarry ? writer.predicate(carryRegister) : "0";
    if (givesPair(type, part)) {
      const product = productPair(instruction, writer, type, part);
      const addend = writer.pair(instruction.operand(3));
      if (!takesCarry && !leavesCarry) return addPairs(writer, target, product, addend);
      const out = writer.local(
        `addWide(${product.low}, ${product.high}, ${addend.low}, ${addend.high}, ${carry})`,
      );
      writer.setPair(target, "SI[0]", "SI[1]");
      if (leavesCarry) writer.setPredicate(carryRegister, out);
      return;
    }
    const product = productWord(instruction, writer, type, part);
    const addend = writer.word(instruction.operand(3));
    if (!takesCarry && !leavesCarry) {
      const exact = `${product} + ${addend}`;
      writer.setWord(target, instruction.has("sat") ? saturatedWord(exact) : `(${exact}) | 0`);
      return;
    }
    const exact = writer.local(`(${product} >>> 0) + (${addend} >>> 0) + ${carry}`);
    writer.setWord(target, `${exact} | 0`);
    if (leavesCarry) writer.setPredicate(carryRegister, `${exact} > 4294967295 ? 1 : 0`);
  };
}

/** Operands of 24 bits, and of their 48-bit product either the low or the high 32. */
function product24(instruction: LaneInstruction, writer: LaneWriter): string {
  const { signed } = integerTypeOf(instruction);
  const [a, b] = [1, 2].map((position) => {
    const word = writer.word(instruction.operand(position));
    return signed ? `(${word} << 8 >> 8)` : `(${word} & 0xffffff)`;
  });
  return instruction.has("hi") ? `(Math.floor(${a} * ${b} / 65536) | 0)` : `Math.imul(${a}, ${b})`;
}

function divide(remainder: boolean): LaneRule {
  return (instruction, writer) => {
    const type = integerTypeOf(instruction);
    const target = instruction.operand(0);
    if (type.bits === 64) {
      const a = writer.pair(instruction.operand(1));
      const b = writer.pair(instruction.operand(2));
      const operands = `${a.low}, ${a.high}, ${b.low}, ${b.high}`;
      return takePair(writer, target, `divideWide(${operands}, ${type.signed}, ${remainder})`);
    }
    const a = integerWord(writer, instruction.operand(1), type);
    const b = integerWord(writer, instruction.operand(2), type);
    const helper = `${remainder ? "remainder" : "divide"}${type.signed ? "Signed" : "Unsigned"}`;
    writer.setWord(target, `${helper}(${a}, ${b})`);
  };
}

const absolute: LaneRule = (instruction, writer) => {
  const type = integerTypeOf(instruction);
  const target = instruction.operand(0);
  if (type.bits !== 64) {
    const a = integerWord(writer, instruction.operand(1), type);
    return writer.setWord(target, `(${a} < 0 ? -${a} : ${a}) | 0`);
  }
  const { low, high } = writer.pair(instruction.operand(1));
  const sign = writer.local(`${high} >> 31`);
  const flipped = { low: `(${low} ^ ${sign})`, high: `(${high} ^ ${sign})` };
  subtractPairs(writer, target, flipped, { low: sign, high: sign });
};

const negate: LaneRule = (instruction, writer) => {
  const target = instruction.operand(0);
  if (integerTypeOf(instruction).bits !== 64)
    return writer.setWord(target, `-${writer.word(instruction.operand(1))} | 0`);
  subtractPairs(writer, target, { low: "0", high: "0" }, writer.pair(instruction.operand(1)));
};

/** Whether a < b, for pairs. */
export function pairLess(a: Pair, b: Pair, signed: boolean): string {
  const high = signed ? `${a.high} < ${b.high}` : `(${a.high} >>> 0) < (${b.high} >>> 0)`;
  const low = `(${a.low} >>> 0) < (${b.low} >>> 0)`;
  return `(${a.high} === ${b.high} ? ${low} : ${high})`;
}

function extreme(keeps: "min" | "max"): LaneRule {
  return (instruction, writer) => {
    if (/^[us]16x2$/.test(instruction.type)) return extremeHalves(instruction, writer, keeps);
    const type = integerTypeOf(instruction);
    const target = instruction.operand(0);
    if (type.bits === 64) {
      const a = writer.pair(instruction.operand(1));
      const b = writer.pair(instruction.operand(2));
      const first = writer.local(
        keeps === "min" ? pairLess(a, b, type.signed) : pairLess(b, a, type.signed),
      );
      const low = writer.local(`${first} ? ${a.low} : ${b.low}`);
      const high = writer.local(`${first} ? ${a.high} : ${b.high}`);
      return writer.setPair(target, low, high);
    }
    const sign = type.signed || type.bits === 16 ? "" : " >>> 0";
    const [a, b] = [1, 2].map((at) => integerWord(writer, instruction.operand(at), type));
    const result = `Math.${keeps}(${a}${sign}, ${b}${sign}) | 0`;
    writer.setWord(target, instruction.has("relu") ? `Math.max(0, ${result})` : result);
  };
}

function extremeHalves(
  instruction: LaneInstruction,
  writer: LaneWriter,
  keeps: "min" | "max",
): void {
  const signed = instruction.type === "s16x2";
  const relu = instruction.has("relu") ? "Math.max(0, " : "(";
  const half = (position: number, high: boolean): string => {
    const word = writer.word(instruction.operand(position));
    if (signed) return high ? `(${word} >> 16)` : `(${word} << 16 >> 16)`;
    return high ? `(${word} >>> 16)` : `(${word} & 0xffff)`;
  };
  const low = `${relu}Math.${keeps}(${half(1, false)}, ${half(2, false)}))`;
  const high = `${relu}Math.${keeps}(${half(1, true)}, ${half(2, true)}))`;
  writer.setWord(instruction.operand(0), `(${low} & 0xffff) | (${high} << 16)`);
}

const sumOfDifferences: LaneRule = (instruction, writer) => {
  const type = integerTypeOf(instruction);
  const target = instruction.operand(0);
  if (type.bits === 64) {
    const [a, b, c] = [1, 2, 3].map((at) => writer.pair(instruction.operand(at)));
    if (a === undefined || b === undefined || c === undefined) return;
    const less = writer.local(pairLess(a, b, type.signed));
    const larger = {
      low: `(${less} ? ${b.low} : ${a.low})`,
      high: `(${less} ? ${b.high} : ${a.high})`,
    };
    const smaller = {
      low: `(${less} ? ${a.low} : ${b.low})`,
      high: `(${less} ? ${a.high} : ${b.high})`,
    };
    writer.line(`subtractWide(${larger.low}, ${larger.high}, ${smaller.low}, ${smaller.high}, 0);`);
    return takePair(writer, target, `addWide(SI[0], SI[1], ${c.low}, ${c.high}, 0)`);
  }
  const sign = type.signed || type.bits === 16 ? "" : " >>> 0";
  const a = integerWord(writer, instruction.operand(1), type);
  const b = integerWord(writer, instruction.operand(2), type);
  const c = writer.word(instruction.operand(3));
  writer.setWord(target, `(Math.abs((${a}${sign}) - (${b}${sign})) + ${c}) | 0`);
};

const dot4: LaneRule = (instruction, writer) => {
  const [a, b, c] = [1, 2, 3].map((at) => writer.word(instruction.operand(at)));
  const [left, right] = instruction.types.map((type) => type.startsWith("s"));
  writer.setWord(instruction.operand(0), `dotProduct4(${a}, ${b}, ${c}, ${left}, ${right})`);
};

const dot2: LaneRule = (instruction, writer) => {
  const [a, b, c] = [1, 2, 3].map((at) => writer.word(instruction.operand(at)));
  const [left, right] = instruction.types.map((type) => type.startsWith("s"));
  const high = instruction.has("hi");
  const operands = `${a}, ${b}, ${c}, ${left}, ${right}, ${high}`;
  writer.setWord(instruction.operand(0), `dotProduct2(${operands})`);
};

/** Rules whose opcodes also have float forms are taken only for integer types. */
export const integerRules: LaneRules = {
  add: sum("+", false),
  sub: sum("-", false),
  addc: sum("+", true),
  subc: sum("-", true),
  mul: multiply,
  mad: multiplyAdd(false),
  madc: multiplyAdd(true),
  mul24: (instruction, writer) =>
    writer.setWord(instruction.operand(0), product24(instruction, writer)),
  mad24: (instruction, writer) => {
    const exact = `${product24(instruction, writer)} + ${writer.word(instruction.operand(3))}`;
    writer.setWord(
      instruction.operand(0),
      instruction.has("sat") ? saturatedWord(exact) : `(${exact}) | 0`,
    );
  },
  div: divide(false),
  rem: divide(true),
  abs: absolute,
  neg: negate,
  min: extreme("min"),
  max: extreme("max"),
  sad: sumOfDifferences,
  dp4a: dot4,
  dp2a: dot2,
};
