/**
 * Float arithmetic. A rule says what an operation does with numbers; operands and results are turned from
 * and into their format here:
 *
 *   | type          | operand      | result                                                       |
 *   |---------------|--------------|--------------------------------------------------------------|
 *   | f32           | number       | Math.fround: the f64 result of + - × ÷ √ rounds once more    |
 *   |               |              | without harm, since 53 ≥ 2·24 + 2                            |
 *   | f64           | number       | as it is                                                     |
 *   | f16, bf16     | table lookup | encoded from the f64 result, rounded once                    |
 *   | …x2           | both halves  | each half on its own                                         |
 *
 * Other roundings than to nearest go through exact integers.
 */
import type { Operand } from "../../ptx/module.ts";
import type { LaneInstruction, LaneRule, LaneRules } from "./rule.ts";
import { OperandError } from "./writer.ts";
import type { LaneWriter } from "./writer.ts";

export type FloatType = "f16" | "bf16" | "f32" | "f64";

export interface FloatForm {
  readonly type: FloatType;
  readonly packed: boolean;
  readonly ftz: boolean;
  readonly rounding: "rn" | "rz" | "rm" | "rp";
}

export function floatForm(instruction: LaneInstruction): FloatForm | undefined {
  const match = /^(f16|bf16|f32|f64)(x2)?$/.exec(instruction.type);
  if (match === null) return undefined;
  return {
    type: match[1] as FloatType,
    packed: match[2] !== undefined,
    ftz: instruction.has("ftz"),
    rounding: instruction.oneOf(["rz", "rm", "rp"]) ?? "rn",
  };
}

/** A result in f64 as an expression of the operands; `rounded` where it already is of the format. */
interface Computed {
  readonly expression: string;
  readonly rounded?: boolean;
}

type Operation = (operands: readonly string[], form: FloatForm) => Computed;

/** Operands as numbers, halves one after the other. */
function readNumbers(
  writer: LaneWriter,
  operands: readonly Operand[],
  form: FloatForm,
  part: number,
): readonly string[] {
  return operands.map((operand) => {
    const { type, packed, ftz } = form;
    if (type === "f64") return writer.double(operand);
    if (type === "f32" && packed) {
      const pair = writer.pair(operand);
      const single = `singleOfBits(${part === 0 ? pair.low : pair.high})`;
      return writer.local(ftz ? `flush(${single})` : single);
    }
    if (type === "f32")
      return ftz ? writer.local(`flush(${writer.single(operand)})`) : writer.single(operand);
    const table = type === "f16" ? "HN" : "BN";
    const word = writer.word(operand);
    const number = `${table}[${part === 0 ? `${word} & 0xffff` : `${word} >>> 16`}]`;
    return writer.local(ftz && type === "f16" ? `flushHalf(${number})` : number);
  });
}

/** What modifiers make of a number of the format. */
function finished(expression: string, instruction: LaneInstruction): string {
  let text = expression;
  if (instruction.has("sat")) text = `saturate(${text})`;
  if (instruction.has("relu")) text = `rectify(${text})`;
  return text;
}

/** A result in f32 or f64. */
function roundedText({ expression, rounded }: Computed, { type, ftz }: FloatForm): string {
  if (type === "f64") return expression;
  if (ftz) return `roundAndFlush(${expression})`;
  return rounded === true ? expression : `fround(${expression})`;
}

/** The code of a result in f16 or bf16. */
function halfCode(
  { expression }: Computed,
  instruction: LaneInstruction,
  { type, ftz }: FloatForm,
): string {
  const [encode, table] = type === "f16" ? ["encodeHalf", "HN"] : ["encodeBfloat", "BN"];
  const code = `${encode}(${ftz && type === "f16" ? `flushHalfResult(${expression})` : expression})`;
  const number = `${table}[${code}]`;
  const modified = finished(number, instruction);
  return modified === number ? code : `${encode}(${modified})`;
}

/** Of several NaNs of f64, the one that comes through: positions of operands, the first that is NaN counts. */
const nanOrders: { readonly [root: string]: readonly number[] } = {
  add: [1, 0],
  sub: [1, 0],
  mul: [1, 0],
  min: [1, 0],
  max: [1, 0],
  fma: [1, 2, 0],
  mad: [1, 2, 0],
  div: [0, 1],
};

function doubleResult(
  instruction: LaneInstruction,
  writer: LaneWriter,
  operands: readonly Operand[],
  expression: string,
): void {
  const order = nanOrders[instruction.root] ?? [0];
  const candidates = order.flatMap((position) => operands.slice(position, position + 1));
  const nan = candidates.map((operand) => writer.nanOperand(operand)).join(", ");
  writer.setDouble(instruction.operand(0), expression, `chooseNaN(${nan})`);
}

/** Sums of f32 whose first operands, all but the last, are f16 or bf16. */
function mixedSum(instruction: LaneInstruction, writer: LaneWriter, operation: Operation): void {
  const narrow = floatForm(instruction);
  if (narrow === undefined) throw new OperandError(`type .${instruction.type}`);
  const form: FloatForm = { ...narrow, type: "f32", packed: false };
  const last = instruction.operandCount - 1;
  const numbers = Array.from({ length: last }, (_, at) => {
    const operandForm = at + 1 === last ? form : narrow;
    return readNumbers(writer, [instruction.operand(at + 1)], operandForm, 0);
  }).flat();
  const text = finished(roundedText(operation(numbers, form), form), instruction);
  writer.setSingle(instruction.operand(0), text);
}

/** Makes a rule of an operation on numbers; the operands are those behind the result. */
function floatRule(operation: Operation, count: number): LaneRule {
  return (instruction, writer) => {
    const form = floatForm(instruction);
    if (instruction.types.length > 1) return mixedSum(instruction, writer, operation);
    if (form === undefined) throw new OperandError(`type .${instruction.type}`);
    const operands = Array.from({ length: count }, (_, at) => instruction.operand(at + 1));
    const target = instruction.operand(0);
    const { type, packed } = form;
    const compute = (part: number): Computed =>
      operation(readNumbers(writer, operands, form, part), form);
    if (type === "f32" && packed) {
      const [low = "", high = ""] = [0, 1].map((part) =>
        writer.local(`bitsOfSingle(${finished(roundedText(compute(part), form), instruction)})`),
      );
      return writer.setPair(target, low, high);
    }
    if (type === "f32")
      return writer.setSingle(target, finished(roundedText(compute(0), form), instruction));
    if (type === "f64") {
      const expression = finished(compute(0).expression, instruction);
      return doubleResult(instruction, writer, operands, expression);
    }
    const codes = (packed ? [0, 1] : [0]).map((part) =>
      writer.local(halfCode(compute(part), instruction, form)),
    );
    const [low = "0", high] = codes;
    writer.setWord(target, high === undefined ? low : `${low} | (${high} << 16)`);
  };
}

function isNarrow(type: FloatType): boolean {
  return type === "f16" || type === "bf16";
}

/** An operation that rounds to nearest by itself, or by a helper for other roundings. */
function roundable(
  nearest: (operands: readonly string[], form: FloatForm) => string,
  helper: string,
): Operation {
  return (operands, form) => {
    if (form.rounding === "rn") return { expression: nearest(operands, form) };
    const precision = form.ftz ? "endless" : form.type;
    const arguments_ = [...operands, `precisions.${precision}`, `"${form.rounding}"`].join(", ");
    return { expression: `${helper}(${arguments_})`, rounded: true };
  };
}

const add = roundable(([a, b]) => `${a} + ${b}`, "addRounded");
const subtract = roundable(([a, b]) => `${a} - ${b}`, "subtractRounded");
const multiply = roundable(([a, b]) => `${a} * ${b}`, "multiplyRounded");
const divide = roundable(([a, b]) => `${a} / ${b}`, "divideRounded");
const reciprocal = roundable(([a]) => `1 / ${a}`, "reciprocalRounded");
const squareRoot = roundable(([a]) => `Math.sqrt(${a})`, "squareRootRounded");
const fuseHelpers: { readonly [T in FloatType]: string } = {
  f64: "fusedMultiplyAdd",
  f32: "fuseSingle",
  f16: "fuseToOdd",
  bf16: "fuseToOdd",
};
const fuse = roundable((operands, { type, ftz }) => {
  const helper = ftz ? "fuseToOdd" : fuseHelpers[type];
  return `${helper}(${operands.join(", ")})`;
}, "fuseRounded");

/** The NaN that tensor copies fill in for halves outside of their array; its sign does not matter. */
const outsideHalf = 0x7ff7;

/** `fma.rn.oob`: zero where a factor was outside of its array. */
const fuseInside: LaneRule = (instruction, writer) => {
  const form = floatForm(instruction);
  if (form === undefined || !instruction.has("oob")) return floatRule(fuse, 3)(instruction, writer);
  const operands = [1, 2, 3].map((at) => instruction.operand(at));
  const [low = "0", high] = (form.packed ? [0, 1] : [0]).map((part) => {
    const isOutside = operands
      .slice(0, 2)
      .map((operand) => `((${writer.word(operand)} >>> ${16 * part}) & 0x7fff) === ${outsideHalf}`)
      .join(" || ");
    const product = fuse(readNumbers(writer, operands, form, part), form);
    return writer.local(`${isOutside} ? 0 : ${halfCode(product, instruction, form)}`);
  });
  writer.setWord(instruction.operand(0), high === undefined ? low : `${low} | (${high} << 16)`);
};

/** Approximations are computed in f64 and rounded: better than the hardware's, within its bounds. */
function approximate(text: (a: string) => string): Operation {
  return ([a = "NaN"]) => ({ expression: text(a) });
}

function extreme(keeps: "minimum" | "maximum"): LaneRule {
  return (instruction, writer) => {
    const form = floatForm(instruction);
    const three = form?.type === "f32" && instruction.operandCount === 4;
    const passesNaN = instruction.has("NaN");
    const native = keeps === "minimum" ? "Math.min" : "Math.max";
    const choose = (a: string, b: string): string => `${passesNaN ? native : keeps}(${a}, ${b})`;
    if (form !== undefined && instruction.has("xorsign")) {
      const magnitude = ([a, b]: readonly string[]): string =>
        choose(`Math.abs(${a})`, `Math.abs(${b})`);
      return extremeWithSign(instruction, writer, form, magnitude);
    }
    const operation: Operation = (operands) => {
      const isMagnitude = instruction.has("abs");
      const [a = "", b = "", c = ""] = operands.map((operand) =>
        isMagnitude ? `Math.abs(${operand})` : operand,
      );
      const both = choose(a, b);
      return { expression: three ? choose(both, c) : both, rounded: true };
    };
    floatRule(operation, three ? 3 : 2)(instruction, writer);
  };
}

/** `.xorsign.abs`: the sign is the product of both signs, those of NaNs too. */
function extremeWithSign(
  instruction: LaneInstruction,
  writer: LaneWriter,
  form: FloatForm,
  magnitude: (operands: readonly string[]) => string,
): void {
  const operands = [instruction.operand(1), instruction.operand(2)];
  const target = instruction.operand(0);
  const signs = writer.local(operands.map((operand) => writer.word(operand)).join(" ^ "));
  const chosen = (part: number): string => magnitude(readNumbers(writer, operands, form, part));
  if (!isNarrow(form.type)) return writer.setWord(target, `withSign(${chosen(0)}, ${signs})`);
  const encode = form.type === "f16" ? "encodeHalf" : "encodeBfloat";
  const [low = "0", high] = (form.packed ? [0, 1] : [0]).map((part) =>
    writer.local(`withHalfSign(${encode}(${chosen(part)}), ${signs} >>> ${16 * part})`),
  );
  writer.setWord(target, high === undefined ? low : `${low} | (${high} << 16)`);
}

/** `rcp` and `rsqrt` of f64, of which only the upper words are looked at. */
function upperWord(helper: string, otherwise: LaneRule): LaneRule {
  return (instruction, writer) => {
    if (instruction.type !== "f64" || !instruction.has("approx") || !instruction.has("ftz"))
      return otherwise(instruction, writer);
    const { high } = writer.pair(instruction.operand(1));
    writer.setPair(instruction.operand(0), "0", `${helper}(${high})`);
  };
}

const copySign: LaneRule = (instruction, writer) => {
  const target = instruction.operand(0);
  if (instruction.type === "f32") {
    const [sign, magnitude] = [1, 2].map((at) => writer.word(instruction.operand(at)));
    return writer.setWord(target, `(${magnitude} & 0x7fffffff) | (${sign} & 0x80000000)`);
  }
  const sign = writer.pair(instruction.operand(1));
  const magnitude = writer.pair(instruction.operand(2));
  const high = `(${magnitude.high} & 0x7fffffff) | (${sign.high} & 0x80000000)`;
  writer.setPair(target, writer.local(magnitude.low), high);
};

const testProperty: LaneRule = (instruction, writer) => {
  const property = instruction.modifiers[0] ?? "";
  const target = instruction.operand(0);
  if (instruction.type === "f32") {
    const bits = writer.word(instruction.operand(1));
    return writer.setPredicate(target, `hasProperty(${bits}, "${property}")`);
  }
  const { low, high } = writer.pair(instruction.operand(1));
  writer.setPredicate(target, `hasPropertyWide(${low}, ${high}, "${property}")`);
};

export const floatRules: LaneRules = {
  add: floatRule(add, 2),
  sub: floatRule(subtract, 2),
  mul: floatRule(multiply, 2),
  fma: fuseInside,
  mad: floatRule(fuse, 3),
  div: floatRule(divide, 2),
  rcp: upperWord("reciprocalHigh", floatRule(reciprocal, 1)),
  sqrt: floatRule(squareRoot, 1),
  min: extreme("minimum"),
  max: extreme("maximum"),
  neg: floatRule(([a]) => ({ expression: `-${a}`, rounded: true }), 1),
  abs: floatRule(([a]) => ({ expression: `Math.abs(${a})`, rounded: true }), 1),
  rsqrt: upperWord(
    "reciprocalRootHigh",
    floatRule(
      approximate((a) => `1 / Math.sqrt(${a})`),
      1,
    ),
  ),
  sin: floatRule(
    approximate((a) => `Math.sin(${a})`),
    1,
  ),
  cos: floatRule(
    approximate((a) => `Math.cos(${a})`),
    1,
  ),
  lg2: floatRule(
    approximate((a) => `Math.log2(${a})`),
    1,
  ),
  ex2: floatRule(
    approximate((a) => `2 ** ${a}`),
    1,
  ),
  tanh: floatRule(
    approximate((a) => `Math.tanh(${a})`),
    1,
  ),
  copysign: copySign,
  testp: testProperty,
};
