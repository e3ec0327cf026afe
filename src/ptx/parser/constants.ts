/**
 * Numbers in PTX text, and the constant expressions made of them.
 *
 *   255  0xFF  0377  0b11111111  255U     the same integer; 64 bits, signed unless it needs the top bit or U
 *   0f3F800000  0d3FF0000000000000  1.0   a float by its bits, a double by its bits, a double
 *   (1 << 4) + WARP_SZ * 2                evaluated here, as C does with 64-bit integers and doubles
 */
import { float64 } from "../operands.ts";
import type { FloatOperand, IntegerOperand } from "../module.ts";
import type { Scanner } from "./scanner.ts";

export type Constant = IntegerOperand | FloatOperand;

interface Integer {
  readonly kind: "integer";
  readonly value: bigint;
  readonly unsigned: boolean;
}

/** `operand` is kept as long as nothing is computed, so that a float keeps its width and bits. */
interface Float {
  readonly kind: "double";
  readonly value: number;
  readonly operand?: FloatOperand;
}

type Value = Integer | Float;

/** Lanes of a warp, the one predefined constant. */
const predefined = new Map([["WARP_SZ", 32n]]);

const nestingLimit = 100;

/** Reads a constant expression; one literal is the simplest. */
export function readConstant(scanner: Scanner): Constant {
  return operandOf(loneValue(scanner) ?? choice({ scanner, depth: 0 }));
}

/** Reads a constant expression that must be an integer of at most 53 bits, such as a size. */
export function readSize(scanner: Scanner, expected: string): number {
  const start = scanner.offset;
  const constant = readConstant(scanner);
  if (constant.kind === "integer" && typeof constant.value === "number") return constant.value;
  scanner.fail("TW7103", `${expected} is out of range`, start, "an integer of at most 53 bits");
}

/** Reads `+4`, `-4`, `+4*2-8`, or nothing: what follows the base of an address. */
export function readOffset(scanner: Scanner): number {
  const start = scanner.offset;
  let total = 0n;
  for (;;) {
    const sign = scanner.peek();
    if (sign !== "-" && sign !== "+") break;
    const negative = sign === "-";
    scanner.take(sign);
    const term = loneValue(scanner) ?? binary({ scanner, depth: 0 }, multiplicative);
    const { value } = integerOf(term, scanner, start);
    total += negative ? -value : value;
  }
  const offset = Number(BigInt.asIntN(64, total));
  if (Number.isSafeInteger(offset)) return offset;
  scanner.fail("TW7103", "an address's offset is out of range", start, "at most 53 bits");
}

/** A number with nothing around it, without the way through all operators. */
function loneValue(scanner: Scanner): Value | undefined {
  const start = scanner.offset;
  const numeral = scanner.loneNumeral();
  if (numeral === undefined) return undefined;
  if (!numeral.startsWith("-")) return numeralValue(scanner, numeral, start);
  return negate(numeralValue(scanner, numeral.slice(1), start));
}

function operandOf(value: Value): Constant {
  if (value.kind === "double") return value.operand ?? float64(value.value);
  const number = Number(value.value);
  return { kind: "integer", value: Number.isSafeInteger(number) ? number : value.value };
}

interface State {
  readonly scanner: Scanner;
  readonly depth: number;
}

/** Operators by how strongly they bind; longer ones before those they start with. */
const levels: readonly (readonly string[])[] = [
  ["||"],
  ["&&"],
  ["|"],
  ["^"],
  ["&"],
  ["==", "!="],
  ["<=", ">=", "<", ">"],
  ["<<", ">>"],
  ["+", "-"],
  ["*", "/", "%"],
];
const multiplicative = levels.length - 1;

function choice(state: State): Value {
  const { scanner } = state;
  const condition = binary(state, 0);
  if (!scanner.accept("?")) return condition;
  const inner = deeper(state);
  const whenTrue = choice(inner);
  scanner.take(":");
  const whenFalse = choice(inner);
  return isTrue(condition) ? whenTrue : whenFalse;
}

function deeper({ scanner, depth }: State): State {
  if (depth >= nestingLimit)
    scanner.fail(
      "TW7106",
      "too deeply nested expression",
      scanner.offset,
      `at most ${nestingLimit} deep`,
    );
  return { scanner, depth: depth + 1 };
}

function binary(state: State, level: number): Value {
  const operators = levels[level];
  if (operators === undefined) return unary(state);
  let left = binary(state, level + 1);
  for (;;) {
    const start = state.scanner.offset;
    const operator = operators.find((text) => acceptOperator(state.scanner, text));
    if (operator === undefined) return left;
    left = apply(operator, left, binary(state, level + 1), state.scanner, start);
  }
}

/** `|` is not the start of `||`, nor `<` of `<<`. */
function acceptOperator(scanner: Scanner, operator: string): boolean {
  if (operator.length === 1 && "|&<>".includes(operator)) {
    const { text, offset } = scanner;
    if (text.charAt(offset + 1) === operator) return false;
  }
  return scanner.accept(operator);
}

function unary(state: State): Value {
  const { scanner } = state;
  const start = scanner.offset;
  switch (scanner.peek()) {
    case "-":
      scanner.take("-");
      return negate(unary(deeper(state)));
    case "+":
      scanner.take("+");
      return unary(deeper(state));
    case "~": {
      scanner.take("~");
      const value = integerOf(unary(deeper(state)), scanner, start);
      return wrapped(~value.value, value.unsigned);
    }
    case "!":
      scanner.take("!");
      return truth(!isTrue(unary(deeper(state))));
    case "(":
      return parenthesised(state);
    default:
      return literal(scanner);
  }
}

function parenthesised(state: State): Value {
  const { scanner } = state;
  scanner.take("(");
  const start = scanner.offset;
  for (const [cast, unsigned] of [
    [".u64", true],
    [".s64", false],
  ] as const) {
    if (!scanner.acceptWord(cast)) continue;
    scanner.take(")");
    return wrapped(integerOf(unary(deeper(state)), scanner, start).value, unsigned);
  }
  const value = choice(deeper(state));
  scanner.take(")");
  return value;
}

function literal(scanner: Scanner): Value {
  const start = scanner.offset;
  if (scanner.atName()) {
    const value = predefined.get(scanner.name());
    if (value === undefined) scanner.fail("TW7102", "a number is missing", start, "a number");
    return { kind: "integer", value, unsigned: false };
  }
  return numeralValue(scanner, scanner.numeral(), start);
}

function numeralValue(scanner: Scanner, numeral: string, start: number): Value {
  const value = integerLiteral(numeral) ?? floatLiteral(numeral);
  if (value !== undefined) return value;
  scanner.fail("TW7103", `${numeral.slice(0, 40)} is not a number`, start, "a number of PTX");
}

function negate(value: Value): Value {
  if (value.kind === "double") return { kind: "double", value: -value.value };
  return wrapped(-value.value, value.unsigned);
}

function integerLiteral(numeral: string): Integer | undefined {
  const match = /^(?:(0[xX][0-9a-fA-F]+|0[bB][01]+|[1-9]\d*)|0([0-7]*))(U?)$/.exec(numeral);
  if (match === null) return undefined;
  const [, plain, octal = "", suffix] = match;
  const value = BigInt(plain ?? (octal === "" ? "0" : `0o${octal}`));
  if (value >= 1n << 64n) return undefined;
  return { kind: "integer", value, unsigned: suffix === "U" || value >= 1n << 63n };
}

const bits = new DataView(new ArrayBuffer(8));

function floatLiteral(numeral: string): Float | undefined {
  const [, form, digits = ""] = /^0([fFdD])([0-9a-fA-F]+)$/.exec(numeral) ?? [];
  if (form !== undefined) {
    const width = form === "f" || form === "F" ? 32 : 64;
    if (digits.length !== width / 4) return undefined;
    if (width === 32) {
      const pattern = Number.parseInt(digits, 16);
      bits.setUint32(0, pattern);
      const operand = { kind: "float", width, bits: pattern } as const;
      return { kind: "double", value: bits.getFloat32(0), operand };
    }
    const pattern = BigInt(`0x${digits}`);
    bits.setBigUint64(0, pattern);
    const operand = { kind: "float", width, bits: pattern } as const;
    return { kind: "double", value: bits.getFloat64(0), operand };
  }
  if (!/^(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(numeral)) return undefined;
  return /[.eE]/.test(numeral) ? { kind: "double", value: Number(numeral) } : undefined;
}

function integerOf(value: Value, scanner: Scanner, start: number): Integer {
  if (value.kind === "integer") return value;
  scanner.fail("TW7103", "an integer is needed where a float stands", start, "an integer");
}

function wrapped(value: bigint, unsigned: boolean): Integer {
  const kept = unsigned ? BigInt.asUintN(64, value) : BigInt.asIntN(64, value);
  return { kind: "integer", value: kept, unsigned };
}

function truth(holds: boolean): Integer {
  return { kind: "integer", value: holds ? 1n : 0n, unsigned: false };
}

function isTrue(value: Value): boolean {
  return Boolean(value.value);
}

const comparisons: Readonly<
  Record<string, (left: number | bigint, right: number | bigint) => boolean>
> = {
  "==": (left, right) => left === right,
  "!=": (left, right) => left !== right,
  "<": (left, right) => left < right,
  "<=": (left, right) => left <= right,
  ">": (left, right) => left > right,
  ">=": (left, right) => left >= right,
  "&&": (left, right) => Boolean(left) && Boolean(right),
  "||": (left, right) => Boolean(left) || Boolean(right),
};

const integerOperations: Readonly<Record<string, (left: bigint, right: bigint) => bigint>> = {
  "|": (left, right) => left | right,
  "^": (left, right) => left ^ right,
  "&": (left, right) => left & right,
  "<<": (left, right) => left << BigInt.asUintN(6, right),
  ">>": (left, right) => left >> BigInt.asUintN(6, right),
  "+": (left, right) => left + right,
  "-": (left, right) => left - right,
  "*": (left, right) => left * right,
  "/": (left, right) => left / right,
  "%": (left, right) => left % right,
};

const floatOperations: Readonly<Record<string, (left: number, right: number) => number>> = {
  "+": (left, right) => left + right,
  "-": (left, right) => left - right,
  "*": (left, right) => left * right,
  "/": (left, right) => left / right,
};

function apply(
  operator: string,
  left: Value,
  right: Value,
  scanner: Scanner,
  start: number,
): Value {
  const isFloat = left.kind === "double" || right.kind === "double";
  const unsigned =
    (left.kind === "integer" && left.unsigned) || (right.kind === "integer" && right.unsigned);
  const compare = comparisons[operator];
  const float = floatOperations[operator];
  if (isFloat) {
    const [a, b] = [Number(left.value), Number(right.value)];
    if (compare !== undefined) return truth(compare(a, b));
    if (float !== undefined) return { kind: "double", value: float(a, b) };
  }
  const a = wrapped(integerOf(left, scanner, start).value, unsigned).value;
  const b = wrapped(integerOf(right, scanner, start).value, unsigned).value;
  if (compare !== undefined) return truth(compare(a, b));
  if ((operator === "/" || operator === "%") && b === 0n)
    scanner.fail("TW7103", "a constant is divided by zero", start, "a divisor other than 0");
  const operation = integerOperations[operator];
  if (operation === undefined) throw new Error(`no operation for ${operator}`);
  return wrapped(operation(a, b), unsigned);
}
