/**
 * Functions of two numbers that are made of the ops that there are, and so give one result on every device.
 *
 * | function    | floats                                           | integers                            |
 * |-------------|--------------------------------------------------|-------------------------------------|
 * | remainder   | `rem`, plus the divisor where the signs differ   | the same; by zero the dividend      |
 * | floorDivide | (x - remainder) / y, to the nearest whole number | the quotient, less 1 where it was rounded up |
 * | reciprocal  | 1 / x                                            |                                     |
 * | nextAfter   | the bits, plus or minus 1                        |                                     |
 */
import { dtypes, isFloat, isInteger } from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";
import { acceptsBinary, isArithmeticFloat } from "../formats/arithmetic/functions.ts";
import type {
  BinaryFunction,
  ComparePredicate,
  UnaryFunction,
} from "../formats/arithmetic/functions.ts";
import type { Value } from "../ir/node.ts";
import { isData } from "../ir/types.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { mannerOf } from "./accuracy.ts";
import type { Accuracy, RoundingOptions } from "./accuracy.ts";
import { shapeOf } from "./broadcast.ts";
import { constantValue } from "./constants.ts";
import { emitValue } from "./trace.ts";

/** Ops at one place of the user's program, over values of one shape. */
class Composer {
  readonly #location: Location;
  readonly #shape: readonly number[];

  constructor(value: Value, location: Location) {
    this.#location = location;
    this.#shape = shapeOf(value);
  }

  number(dtype: DType, value: number): Value {
    return constantValue(dtype, this.#shape, value, this.#location);
  }

  unary(fn: UnaryFunction, source: Value): Value {
    return emitValue("unary", { source }, { fn }, this.#location);
  }

  isNan(source: Value): Value {
    return emitValue("classify", { source }, { fn: "is_nan" }, this.#location);
  }

  binary(fn: BinaryFunction, left: Value, right: Value): Value {
    return emitValue("binary", { left, right }, { fn }, this.#location);
  }

  compare(predicate: ComparePredicate, left: Value, right: Value): Value {
    return emitValue("compare", { left, right }, { predicate }, this.#location);
  }

  select(condition: Value, ifTrue: Value, ifFalse: Value): Value {
    return emitValue("select", { condition, ifTrue, ifFalse }, {}, this.#location);
  }

  bits(source: Value, dtype: DType): Value {
    return emitValue("bitcast", { source }, { dtype }, this.#location);
  }
}

/** Whether the remainder of a division towards zero lies on the other side of zero than the divisor. */
function isOpposite(c: Composer, rest: Value, divisor: Value, zero: Value): Value {
  const signs = c.binary("xor", c.compare("lt", rest, zero), c.compare("lt", divisor, zero));
  return c.binary("and", c.compare("ne", rest, zero), signs);
}

/** Zeros have the sign of the divisor. */
export function floorRemainder(left: Value, right: Value, dtype: DType, location: Location): Value {
  requireAccepted("remainder", dtype, isNumber, location);
  const c = new Composer(left, location);
  const rest = c.binary("rem", left, right);
  if (dtype.kind === "unsigned") return rest;
  const zero = c.number(dtype, 0);
  const opposite = isOpposite(c, rest, right, zero);
  if (!isFloat(dtype)) {
    // Nothing is divided by zero, so that the dividend has no other side.
    const moved = c.binary("and", opposite, c.compare("ne", right, zero));
    return c.select(moved, c.binary("add", rest, right), rest);
  }
  const moved = c.select(opposite, c.binary("add", rest, right), rest);
  const signedZero = withSignOf(c, dtype, zero, right);
  return c.select(c.compare("eq", rest, zero), signedZero, moved);
}

/** The integers that hold the bits of a format, and from one number to the next. */
const codes: { readonly [name: string]: { readonly code: DType; readonly step: number } } = {
  f64: { code: dtypes.i64, step: 1 },
  f32: { code: dtypes.i32, step: 1 },
  tf32: { code: dtypes.i32, step: 2 ** 13 },
  f16: { code: dtypes.i16, step: 1 },
  bf16: { code: dtypes.i16, step: 1 },
};

function codeOf({ name }: DType): { readonly code: DType; readonly step: number } {
  const found = codes[name];
  if (found === undefined) throw new Error(`no codes of ${name}`);
  return found;
}

/** Refuses a dtype that a composed function has not, in its own name. */
function requireAccepted(
  method: string,
  dtype: DType,
  accepts: (dtype: DType) => boolean,
  location: Location,
): void {
  if (accepts(dtype)) return;
  const known = Object.values(dtypes).filter(accepts);
  throw new TilewrightError({
    code: "TW2005",
    message: `${method} is not defined for ${dtype.name}`,
    location,
    expected: known.map(({ name }) => name).join(", "),
    found: dtype.name,
    remedy: "cast to a format that has the function first, for example with .cast(f32)",
  });
}

/** Refuses formats without float arithmetic. */
export function requireFloat(method: string, dtype: DType, location: Location): void {
  requireAccepted(method, dtype, isArithmeticFloat, location);
}

const isNumber = (dtype: DType): boolean => acceptsBinary("rem", dtype);

/** Of integers the roundings to whole numbers are the integer. */
export function isWhole(dtype: DType, fn: UnaryFunction): boolean {
  return isInteger(dtype) && roundings.has(fn);
}

const roundings: ReadonlySet<UnaryFunction> = new Set(["floor", "ceil", "round", "trunc"]);

/** One over a number. */
export function reciprocal(
  value: Value,
  dtype: DType,
  options: Accuracy & RoundingOptions,
  location: Location,
): Value {
  requireFloat("reciprocal", dtype, location);
  const left = new Composer(value, location).number(dtype, 1);
  const attributes = {
    fn: "div",
    ...mannerOf("reciprocal", "div", dtype, options, location),
  } as const;
  return emitValue("binary", { left, right: value }, attributes, location);
}

/** The bits of numbers as those of another format, of as many bits each or of others. */
export function sameBits(source: Value, dtype: DType, location: Location): Value {
  // What is no dtype is refused as what bitcast takes.
  const known = Object.values(dtypes).find((each) => each === dtype);
  const bits = isData(source.type) ? source.type.dtype.bits : undefined;
  const isSame = known === undefined || known.bits === bits;
  return emitValue(isSame ? "bitcast" : "bitcast_width", { source }, { dtype }, location);
}

function withSignOf(c: Composer, dtype: DType, magnitude: Value, sign: Value): Value {
  const { code } = codeOf(dtype);
  const negative = c.compare("lt", c.bits(sign, code), c.number(code, 0));
  return c.select(negative, c.unary("neg", magnitude), magnitude);
}

export function floorQuotient(left: Value, right: Value, dtype: DType, location: Location): Value {
  requireAccepted("floorDivide", dtype, isNumber, location);
  const c = new Composer(left, location);
  const quotient = c.binary("div", left, right);
  if (dtype.kind === "unsigned") return quotient;
  const zero = c.number(dtype, 0);
  const rest = c.binary("rem", left, right);
  const opposite = isOpposite(c, rest, right, zero);
  const one = c.number(dtype, 1);
  if (!isFloat(dtype)) {
    const moved = c.binary("and", opposite, c.compare("ne", right, zero));
    return c.select(moved, c.binary("sub", quotient, one), quotient);
  }
  // The dividend less its remainder is a multiple of the divisor, but for its rounding.
  const whole = c.binary("div", c.binary("sub", left, rest), right);
  const lowered = c.select(opposite, c.binary("sub", whole, one), whole);
  const nearest = c.unary("round", lowered);
  const nothing = withSignOf(c, dtype, zero, quotient);
  const value = c.select(c.compare("eq", nearest, zero), nothing, nearest);
  return c.select(c.compare("eq", right, zero), quotient, value);
}

export function nextAfter(left: Value, right: Value, dtype: DType, location: Location): Value {
  requireFloat("nextAfter", dtype, location);
  const c = new Composer(left, location);
  const { code, step } = codeOf(dtype);
  const bits = c.bits(left, code);
  const zero = c.number(dtype, 0);
  const unit = c.number(code, step);
  const isUp = c.compare("gt", right, left);
  const isAway = c.compare("eq", isUp, c.compare("gt", left, zero));
  const stepped = c.select(isAway, c.binary("add", bits, unit), c.binary("sub", bits, unit));
  const least = c.bits(unit, dtype);
  const fromZero = c.select(isUp, least, c.unary("neg", least));
  const moved = c.select(c.compare("eq", left, zero), fromZero, c.bits(stepped, dtype));
  const value = c.select(c.compare("eq", left, right), right, moved);
  const unordered = c.binary("or", c.isNan(left), c.isNan(right));
  return c.select(unordered, c.binary("add", left, right), value);
}
