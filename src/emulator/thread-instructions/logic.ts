/** Bits: logic, shifts, fields, counts and permutations. */
import { integerTypeOf, takePair } from "./integer.ts";
import { integerWord } from "./rule.ts";
import type { LaneInstruction, LaneRule, LaneRules } from "./rule.ts";
import type { LaneWriter } from "./writer.ts";

function bitwise(operator: "&" | "|" | "^"): LaneRule {
  return (instruction, writer) => {
    const [target, a, b] = [0, 1, 2].map((at) => instruction.operand(at));
    if (target === undefined || a === undefined || b === undefined) return;
    if (instruction.type === "pred") {
      const left = writer.predicate(a);
      const parted = writer.readings;
      const right = writer.predicate(b);
      if (operator !== "^") {
        const flip = operator === "&" ? 1 : 0;
        writer.decides(parted, [`${left} ^ ${flip}`, `${right} ^ ${flip}`]);
      }
      return writer.setPredicate(target, `${left} ${operator} ${right}`);
    }
    if (integerTypeOf(instruction).bits !== 64)
      return writer.setWord(target, `${writer.word(a)} ${operator} ${writer.word(b)}`);
    const [left, right] = [writer.pair(a), writer.pair(b)];
    writer.setPair(
      target,
      `${left.low} ${operator} ${right.low}`,
      `${left.high} ${operator} ${right.high}`,
    );
  };
}

const not: LaneRule = (instruction, writer) => {
  const target = instruction.operand(0);
  if (instruction.type === "pred")
    return writer.setPredicate(target, `${writer.predicate(instruction.operand(1))} ^ 1`);
  if (integerTypeOf(instruction).bits !== 64)
    return writer.setWord(target, `~${writer.word(instruction.operand(1))}`);
  const { low, high } = writer.pair(instruction.operand(1));
  writer.setPair(target, `~${low}`, `~${high}`);
};

const logicalNot: LaneRule = (instruction, writer) => {
  const type = integerTypeOf(instruction);
  if (type.bits !== 64) {
    const word = integerWord(writer, instruction.operand(1), type);
    return writer.setWord(instruction.operand(0), `${word} === 0 ? 1 : 0`);
  }
  const { low, high } = writer.pair(instruction.operand(1));
  writer.setPair(instruction.operand(0), `(${low} | ${high}) === 0 ? 1 : 0`, "0");
};

/** Counts at or above the width shift everything out. */
function shift(left: boolean): LaneRule {
  return (instruction, writer) => {
    const type = integerTypeOf(instruction);
    const target = instruction.operand(0);
    const count = writer.word(instruction.operand(2));
    if (type.bits === 64) {
      const { low, high } = writer.pair(instruction.operand(1));
      const call = left
        ? `shiftLeft(${low}, ${high}, ${count})`
        : `shiftRight(${low}, ${high}, ${count}, ${type.signed})`;
      return takePair(writer, target, call);
    }
    const value = integerWord(writer, instruction.operand(1), type);
    const constant = instruction.constant(2);
    const operator = left ? "<<" : type.signed ? ">>" : ">>>";
    const beyond = !left && type.signed ? `${value} >> 31` : "0";
    if (constant !== undefined)
      return writer.setWord(
        target,
        constant >= 0 && constant < 32 ? `(${value} ${operator} ${constant}) | 0` : beyond,
      );
    writer.setWord(
      target,
      `(${count} >>> 0) < 32 ? (${value} ${operator} ${count}) | 0 : ${beyond}`,
    );
  };
}

const funnel: LaneRule = (instruction, writer) => {
  const [a, b, count] = [1, 2, 3].map((at) => writer.word(instruction.operand(at)));
  const left = instruction.has("l");
  const clamped = instruction.has("clamp");
  const call = `funnelShift(${a}, ${b}, ${count}, ${left}, ${clamped})`;
  writer.setWord(instruction.operand(0), call);
};

/** The usual tables as JavaScript operators. */
const knownTables: { readonly [table: number]: (a: string, b: string, c: string) => string } = {
  0x80: (a, b, c) => `${a} & ${b} & ${c}`,
  0xfe: (a, b, c) => `${a} | ${b} | ${c}`,
  0x96: (a, b, c) => `${a} ^ ${b} ^ ${c}`,
  0xf8: (a, b, c) => `${a} | (${b} & ${c})`,
  0xea: (a, b, c) => `(${a} & ${b}) | ${c}`,
  0xca: (a, b, c) => `(${a} & ${b}) | (~${a} & ${c})`,
  0xe8: (a, b, c) => `(${a} & ${b}) | (${a} & ${c}) | (${b} & ${c})`,
};

const lookUp: LaneRule = (instruction, writer) => {
  const [a = "", b = "", c = ""] = [1, 2, 3].map((at) => writer.word(instruction.operand(at)));
  const table = instruction.constant(4) ?? -1;
  const known = knownTables[table];
  const result = known === undefined ? `lookUp3(${a}, ${b}, ${c}, ${table})` : known(a, b, c);
  const target = instruction.operand(0);
  if (target.kind !== "pair") return writer.setWord(target, result);
  const word = writer.local(result);
  const given = writer.predicate(instruction.operand(5));
  const operator = instruction.has("or") ? "|" : "&";
  writer.setPredicate(target.second, `(${word} !== 0 ? 1 : 0) ${operator} ${given}`);
  writer.setWord(target.first, word);
};

const permute: LaneRule = (instruction, writer) => {
  const [a, b, selector] = [1, 2, 3].map((at) => writer.word(instruction.operand(at)));
  const target = instruction.operand(0);
  const mode = instruction.oneOf(["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]);
  if (mode !== undefined)
    return writer.setWord(target, `permuteByMode(${a}, ${b}, ${selector}, "${mode}")`);
  const constant = instruction.constant(3);
  if (constant === undefined || (constant & 0x8888) !== 0)
    return writer.setWord(target, `permuteBytes(${a}, ${b}, ${selector})`);
  writer.setWord(target, permuteText(a ?? "", b ?? "", constant));
};

/** A constant selection as shifts and masks, bytes that move together at once. */
function permuteText(a: string, b: string, selector: number): string {
  const parts = new Map<string, number>();
  for (let position = 0; position < 4; position++) {
    const pick = (selector >>> (4 * position)) & 7;
    const distance = position - (pick & 3);
    const key = `${pick < 4 ? a : b}|${distance}`;
    parts.set(key, (parts.get(key) ?? 0) | (0xff << (8 * position)));
  }
  return [...parts]
    .map(([key, mask]) => {
      const [word = "", distance = "0"] = key.split("|");
      const by = 8 * Number(distance);
      const moved = by === 0 ? word : by > 0 ? `(${word} << ${by})` : `(${word} >>> ${-by})`;
      return mask === -1 ? moved : `(${moved} & ${mask | 0})`;
    })
    .join(" | ");
}

const extract: LaneRule = (instruction, writer) => {
  const type = integerTypeOf(instruction);
  const target = instruction.operand(0);
  const [start, length] = [2, 3].map((at) => writer.word(instruction.operand(at)));
  if (type.bits !== 64) {
    const value = writer.word(instruction.operand(1));
    return writer.setWord(target, `extractField(${value}, ${start}, ${length}, ${type.signed})`);
  }
  const { low, high } = writer.pair(instruction.operand(1));
  const operands = `${low}, ${high}, ${start}, ${length}, ${type.signed}`;
  takePair(writer, target, `extractFieldWide(${operands})`);
};

const insert: LaneRule = (instruction, writer) => {
  const target = instruction.operand(0);
  const [start, length] = [3, 4].map((at) => writer.word(instruction.operand(at)));
  if (integerTypeOf(instruction).bits !== 64) {
    const [field, base] = [1, 2].map((at) => writer.word(instruction.operand(at)));
    return writer.setWord(target, `insertField(${field}, ${base}, ${start}, ${length})`);
  }
  const field = writer.pair(instruction.operand(1));
  const base = writer.pair(instruction.operand(2));
  const operands = `${field.low}, ${field.high}, ${base.low}, ${base.high}, ${start}, ${length}`;
  takePair(writer, target, `insertFieldWide(${operands})`);
};

const findHighest: LaneRule = (instruction, writer) => {
  const { bits, signed } = integerTypeOf(instruction);
  let found: string;
  if (bits === 64) {
    const { low, high } = writer.pair(instruction.operand(1));
    found = writer.local(`findHighestWide(${low}, ${high}, ${signed})`);
  } else found = writer.local(`findHighest(${writer.word(instruction.operand(1))}, ${signed})`);
  writer.setWord(
    instruction.operand(0),
    instruction.has("shiftamt") ? `${found} < 0 ? -1 : ${bits - 1} - ${found}` : found,
  );
};

function count(
  word: (value: string) => string,
  pair: (low: string, high: string) => string,
): LaneRule {
  return (instruction: LaneInstruction, writer: LaneWriter) => {
    if (integerTypeOf(instruction).bits !== 64)
      return writer.setWord(instruction.operand(0), word(writer.word(instruction.operand(1))));
    const { low, high } = writer.pair(instruction.operand(1));
    writer.setWord(instruction.operand(0), pair(low, high));
  };
}

const reverse: LaneRule = (instruction, writer) => {
  const target = instruction.operand(0);
  if (integerTypeOf(instruction).bits !== 64)
    return writer.setWord(target, `reverseBits(${writer.word(instruction.operand(1))})`);
  const { low, high } = writer.pair(instruction.operand(1));
  takePair(writer, target, `reverseBitsWide(${low}, ${high})`);
};

/** A helper of words with the modifier `.wrap` as its last argument. */
function wrapping(helper: string, takesSign = false): LaneRule {
  return (instruction, writer) => {
    const [a, b] = [1, 2].map((at) => writer.word(instruction.operand(at)));
    const signed = takesSign ? `${integerTypeOf(instruction).signed}, ` : "";
    const call = `${helper}(${a}, ${b}, ${signed}${instruction.has("wrap")})`;
    writer.setWord(instruction.operand(0), call);
  };
}

export const logicRules: LaneRules = {
  and: bitwise("&"),
  or: bitwise("|"),
  xor: bitwise("^"),
  not,
  cnot: logicalNot,
  shl: shift(true),
  shr: shift(false),
  shf: funnel,
  lop3: lookUp,
  prmt: permute,
  bfe: extract,
  bfi: insert,
  bfind: findHighest,
  popc: count(
    (value) => `populationCount(${value})`,
    (low, high) => `populationCount(${low}) + populationCount(${high})`,
  ),
  clz: count(
    (value) => `Math.clz32(${value})`,
    (low, high) => `${high} === 0 ? 32 + Math.clz32(${low}) : Math.clz32(${high})`,
  ),
  brev: reverse,
  fns: (instruction, writer) => {
    const [mask, start, n] = [1, 2, 3].map((at) => writer.word(instruction.operand(at)));
    writer.setWord(instruction.operand(0), `findNthSet(${mask}, ${start}, ${n})`);
  },
  szext: wrapping("extendFrom", true),
  bmsk: wrapping("maskOfBits"),
};
