/**
 * Video instructions: arithmetic on parts of words, with a clamp, a second operation on the third operand or
 * a merge into it; and the same on two halves or four bytes at once.
 *
 *   vadd.s32.u32.s32.sat.min  %r0, %r1.b2, %r2.h0, %r3;      min(clamp(byte 2 of r1 + half 0 of r2), r3)
 *   vadd.u32.u32.u32          %r0.h1, %r1, %r2, %r3;         r3 with its half 1 replaced by the sum
 *   vsub2.s32.s32.s32.sat     %r0, %r1, %r2, %r3;            halves of r1 less those of r2
 *   vabsdiff4.u32.u32.u32.add %r0, %r1, %r2, %r3;            r3 and the four distances
 */
import type { Operand } from "../../ptx/module.ts";
import type { LaneInstruction, LaneRule, LaneRules } from "./rule.ts";
import { OperandError } from "./writer.ts";
import type { LaneWriter } from "./writer.ts";

/** Bits of a word. */
interface Part {
  readonly shift: number;
  readonly bits: number;
}

const whole: Part = { shift: 0, bits: 32 };

interface Selected {
  readonly register: Operand;
  /** Behind the point: `b3`, `h10`. */
  readonly selector: string | undefined;
  readonly isNegated: boolean;
}

function selected(operand: Operand): Selected {
  if (operand.kind === "negated") return { ...selected(operand.operand), isNegated: true };
  if (operand.kind !== "element")
    return { register: operand, selector: undefined, isNegated: false };
  return { register: operand.register, selector: operand.element, isNegated: false };
}

/** `b2` or `h1`. */
function partOf(selector: string | undefined): Part {
  if (selector === undefined) return whole;
  const match = /^([bh])([0-3])$/.exec(selector);
  const bits = match?.[1] === "b" ? 8 : 16;
  const number = Number(match?.[2]);
  if (match === null || bits * (number + 1) > 32) throw new OperandError(`selector .${selector}`);
  return { shift: bits * number, bits };
}

function isSigned(type: string | undefined): boolean {
  return type === "s32";
}

/** A source operand's part as a number. */
function source(writer: LaneWriter, operand: Operand, signed: boolean): string {
  const { register, selector } = selected(operand);
  const { shift, bits } = partOf(selector);
  return writer.local(`selectPart(${writer.word(register)}, ${shift}, ${bits}, ${signed})`);
}

/** Of two numbers of up to 33 bits. */
type Combine = (a: string, b: string) => string;

const combinations: { readonly [name: string]: Combine } = {
  add: (a, b) => `${a} + ${b}`,
  sub: (a, b) => `${a} - ${b}`,
  absdiff: (a, b) => `Math.abs(${a} - ${b})`,
  min: (a, b) => `Math.min(${a}, ${b})`,
  max: (a, b) => `Math.max(${a}, ${b})`,
  // Halves are rounded away from zero.
  avrg: (a, b) => `(${a} + ${b} + (${a} + ${b} >= 0 ? 1 : 0)) >> 1`,
};

const comparisons: { readonly [name: string]: Combine } = {
  eq: (a, b) => `${a} === ${b} ? 1 : 0`,
  ne: (a, b) => `${a} !== ${b} ? 1 : 0`,
  lt: (a, b) => `${a} < ${b} ? 1 : 0`,
  le: (a, b) => `${a} <= ${b} ? 1 : 0`,
  gt: (a, b) => `${a} > ${b} ? 1 : 0`,
  ge: (a, b) => `${a} >= ${b} ? 1 : 0`,
};

function comparisonOf(instruction: LaneInstruction): Combine {
  const comparison = comparisons[instruction.oneOf(["eq", "ne", "lt", "le", "gt", "ge"]) ?? ""];
  if (comparison === undefined) throw new OperandError("no comparison");
  return comparison;
}

/** The second operation on, or the merge into, the third operand. */
function finish(
  instruction: LaneInstruction,
  writer: LaneWriter,
  value: string,
  signed: boolean,
): void {
  const { register: target, selector } = selected(instruction.operand(0));
  if (instruction.operandCount < 4) return writer.setWord(target, `${value} | 0`);
  const third = writer.word(instruction.operand(3));
  const { shift: at, bits } = partOf(selector);
  // The upper half of a result is that of the number.
  if (selector === "h1")
    return writer.setWord(target, `(${value} & ~0xffff) | (${third} & 0xffff)`);
  if (selector !== undefined)
    return writer.setWord(target, `mergePart(${value}, ${at}, ${bits}, ${third})`);
  const second = instruction.modifiers.at(-1);
  if (second === "add") return writer.setWord(target, `((${value} | 0) + ${third}) | 0`);
  if (second !== "min" && second !== "max") throw new OperandError("third operand without a use");
  // Sums, and shifts that were clamped, are words with a sign by now; other numbers have all their bits.
  const isWord = /^v(?:add|sub)$/.test(instruction.root) || isClampedShift(instruction);
  const first = isWord ? `(${value} | 0)` : value;
  writer.setWord(target, `extremeWord(${first}, ${third}, ${second === "min"}, ${signed})`);
}

function isClampedShift({ root, modifiers }: LaneInstruction): boolean {
  return root.startsWith("vsh") && modifiers.includes("sat");
}

/** Clamps a number to the part of the result that it goes to; shifts clamp to words, whatever that is. */
function saturated(instruction: LaneInstruction, value: string, signed: boolean): string {
  if (!instruction.has("sat")) return value;
  if (instruction.root === "vshl") return `clampShifted(${value}, ${signed})`;
  const { bits } = partOf(selected(instruction.operand(0)).selector);
  if (bits < 32 && !isClampedShift(instruction))
    return `clampToHighest(${value}, ${signed ? 2 ** (bits - 1) - 1 : 2 ** bits - 1})`;
  // Unsigned words are not held up from above.
  return signed ? `clampToBits(${value}, 32, true)` : `Math.max(${value}, 0)`;
}

function scalar(combine: Combine): LaneRule {
  return (instruction, writer) => {
    const [result, left, right] = instruction.types.map(isSigned);
    const a = source(writer, instruction.operand(1), left === true);
    const b = source(writer, instruction.operand(2), right === true);
    const value = writer.local(saturated(instruction, combine(a, b), result === true));
    finish(instruction, writer, value, result === true);
  };
}

/** Shifts by up to 32, or by the lowest five bits. */
const counts = { clamp: (b: string) => `Math.min(${b}, 32)`, wrap: (b: string) => `(${b} & 31)` };

function shift(direction: "left" | "right"): LaneRule {
  const sign = direction === "left" ? "" : "-";
  return (instruction, writer) => {
    const mode = instruction.oneOf(["clamp", "wrap"]);
    if (mode === undefined) throw new OperandError("neither .clamp nor .wrap");
    scalar((a, b) => `Math.floor(${a} * 2 ** ${sign}${counts[mode](b)})`)(instruction, writer);
  };
}

const compare: LaneRule = (instruction, writer) => {
  const [left, right] = instruction.types.map(isSigned);
  const a = source(writer, instruction.operand(1), left === true);
  const b = source(writer, instruction.operand(2), right === true);
  const held = writer.local(comparisonOf(instruction)(a, b));
  finish(instruction, writer, held, left === true);
};

const multiplyAdd: LaneRule = (instruction, writer) => {
  const [a, b, c] = [1, 2, 3].map((at) => selected(instruction.operand(at)));
  if (a === undefined || b === undefined || c === undefined) return;
  const [, left, right] = instruction.types.map(isSigned);
  const negatesProduct = a.isNegated !== b.isNegated;
  const negatesAddend = c.isNegated && !negatesProduct;
  const scale = instruction.oneOf(["shr7", "shr15"]);
  const form = {
    shift: scale === undefined ? 0 : Number(scale.slice(3)),
    saturates: instruction.has("sat"),
    plusOne: instruction.has("po"),
    negatesProduct,
    negatesAddend,
    signed: left === true || right === true || negatesProduct || c.isNegated,
  };
  // Whole words have a sign, whatever their type says.
  const factors = [
    source(writer, instruction.operand(1), left === true || a.selector === undefined),
    source(writer, instruction.operand(2), right === true || b.selector === undefined),
  ];
  const addend = writer.word(c.register);
  const call = `videoProduct(${factors.join(", ")}, ${addend}, ${JSON.stringify(form)})`;
  writer.setWord(selected(instruction.operand(0)).register, call);
};

/** The elements of both sources that a selector names, lowest first: `h32` gives 2, 3. */
function elementsOf(selector: string | undefined, width: 2 | 4, first: number): readonly number[] {
  if (selector === undefined) return Array.from({ length: width }, (_, at) => first + at);
  const pattern = width === 2 ? /^h[0-3]{2}$/ : /^b[0-7]{4}$/;
  if (!pattern.test(selector)) throw new OperandError(`selector .${selector}`);
  return [...selector.slice(1)].reverse().map(Number);
}

/** Which elements of the result are computed: `b20` says 0 and 2. */
function maskOf(selector: string | undefined, width: 2 | 4): readonly boolean[] {
  const named = selector?.slice(1) ?? "3210";
  return Array.from({ length: width }, (_, at) => named.includes(`${at}`));
}

/** Two halves or four bytes at once. */
function parallel(
  width: 2 | 4,
  combineOf: (instruction: LaneInstruction) => Combine,
  hasResultType = true,
): LaneRule {
  return (instruction, writer) => {
    const bits = 32 / width;
    const types = instruction.types.map(isSigned);
    const [left, right] = hasResultType ? types.slice(1) : types;
    const signed = hasResultType && types[0] === true;
    const [target, a, b] = [0, 1, 2].map((at) => selected(instruction.operand(at)));
    if (target === undefined || a === undefined || b === undefined) return;
    const registers = [writer.word(a.register), writer.word(b.register)];
    const pick = (element: number, isSignedType: boolean): string =>
      `selectPart(${registers[element < width ? 0 : 1]}, ${bits * (element % width)}, ${bits}, ${isSignedType})`;
    const [first, second] = [
      elementsOf(a.selector, width, 0),
      elementsOf(b.selector, width, width),
    ];
    const combine = combineOf(instruction);
    let result = writer.word(instruction.operand(3));
    maskOf(target.selector, width).forEach((isComputed, at) => {
      if (!isComputed) return;
      const x = writer.local(pick(first[at] ?? 0, left === true));
      const y = writer.local(pick(second[at] ?? 0, right === true));
      const exact = writer.local(combine(x, y));
      const value = instruction.has("sat") ? `clampToBits(${exact}, ${bits}, ${signed})` : exact;
      result = writer.local(
        instruction.has("add")
          ? `(${result} + ${value}) | 0`
          : `mergePart(${value}, ${bits * at}, ${bits}, ${result})`,
      );
    });
    writer.setWord(target.register, result);
  };
}

function parallelRules(width: 2 | 4): LaneRules {
  const rules = Object.entries(combinations).map(
    ([name, combine]) => [`v${name}${width}`, parallel(width, () => combine)] as const,
  );
  return {
    ...Object.fromEntries(rules),
    [`vset${width}`]: parallel(width, comparisonOf, false),
  };
}

const scalarNames = ["add", "sub", "absdiff", "min", "max"] as const;

export const videoRules: LaneRules = {
  ...Object.fromEntries(
    scalarNames.map((name) => [`v${name}`, scalar(combinations[name] as Combine)] as const),
  ),
  vshl: shift("left"),
  vshr: shift("right"),
  vmad: multiplyAdd,
  vset: compare,
  ...parallelRules(2),
  ...parallelRules(4),
};
