/**
 * Functions of f32 and f64. Each rounding is written out (`add.rn`), so that the assembler fuses no product
 * with a sum. What PTX has no exact instruction for comes from `math`, with the error that it declares.
 */
import type {
  BinaryIn,
  ClassifyFunction,
  ComparePredicate,
  DirectedRounding,
  RoundingManner,
  UnaryIn,
} from "../../../formats/arithmetic/functions.ts";
import { isMannered } from "../../../formats/arithmetic/rounded.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { Code } from "../../function-builder.ts";
import {
  halfFunction,
  isHalfFunction,
  isSingleFunction,
  mathFunctions,
  singleFunction,
} from "../../math/index.ts";
import type { HalfFormat } from "../../math/index.ts";
import type { Operand, Register } from "../../module.ts";
import { float32, float64, integer } from "../../operands.ts";

export type FloatUnaryFunction = UnaryIn<"float" | "number">;
export type FloatBinaryFunction = BinaryIn<"float" | "number">;

const approximations = mathFunctions.approximate;

/** The wide formats, in which the narrow ones compute too. */
export type FloatWidth = 32 | 64;

function make(
  code: Code,
  width: FloatWidth,
  operation: string,
  ...operands: readonly Operand[]
): Register {
  return code.make(`b${width}`, `${operation}.f${width}`, ...operands);
}

function test(
  code: Code,
  width: FloatWidth,
  comparison: string,
  left: Register,
  right: Operand,
): Register {
  return code.make("pred", `setp.${comparison}.f${width}`, left, right);
}

const number: { readonly [W in FloatWidth]: (value: number) => Operand } = {
  32: float32,
  64: float64,
};
const signBit: { readonly [W in FloatWidth]: number | bigint } = { 32: 2 ** 31, 64: 2n ** 63n };
const magnitudeBits: { readonly [W in FloatWidth]: number | bigint } = {
  32: 2 ** 31 - 1,
  64: 2n ** 63n - 1n,
};
const oneBits: { readonly [W in FloatWidth]: number | bigint } = {
  32: 0x3f800000,
  64: 0x3ff0000000000000n,
};

type Unary = (code: Code, width: FloatWidth, value: Register) => Register;

function rounding(mode: "rmi" | "rpi" | "rni" | "rzi"): Unary {
  return (code, width, value) => make(code, width, `cvt.${mode}.f${width}`, value);
}

function fromMath(fn: keyof typeof mathFunctions.f32.unary): Unary {
  return (code, width, value) => mathFunctions[`f${width}`].unary[fn](code, value);
}

const unaryEmitters: { readonly [F in FloatUnaryFunction]: Unary } = {
  // Not `neg` and `abs`, which may give a NaN other bits; they become these where nobody sees it (`ptx/fold-neg-abs.ts`).
  neg: (code, width, value) =>
    code.make(`b${width}`, `xor.b${width}`, value, integer(signBit[width])),
  abs: (code, width, value) =>
    code.make(`b${width}`, `and.b${width}`, value, integer(magnitudeBits[width])),
  sign(code, width, value) {
    const register = `b${width}` as const;
    const sign = code.make(register, `and.${register}`, value, integer(signBit[width]));
    const one = code.make(register, `or.${register}`, sign, integer(oneBits[width]));
    // Zeros and NaN are not ordered before or behind zero, and stay.
    const ordered = test(code, width, "ne", value, number[width](0));
    return code.make(register, `selp.${register}`, one, value, ordered);
  },
  floor: rounding("rmi"),
  ceil: rounding("rpi"),
  round: rounding("rni"),
  trunc: rounding("rzi"),
  sqrt: (code, width, value) => make(code, width, "sqrt.rn", value),
  rsqrt: fromMath("rsqrt"),
  exp: fromMath("exp"),
  exp2: fromMath("exp2"),
  expm1: fromMath("expm1"),
  log: fromMath("log"),
  log2: fromMath("log2"),
  log1p: fromMath("log1p"),
  sin: fromMath("sin"),
  cos: fromMath("cos"),
  tan: fromMath("tan"),
  atan: fromMath("atan"),
  asin: fromMath("asin"),
  acos: fromMath("acos"),
  tanh: fromMath("tanh"),
  sinh: fromMath("sinh"),
  cosh: fromMath("cosh"),
  asinh: fromMath("asinh"),
  acosh: fromMath("acosh"),
  atanh: fromMath("atanh"),
  cbrt: fromMath("cbrt"),
  erf: fromMath("erf"),
  erf_inv: fromMath("erf_inv"),
  erfc: fromMath("erfc"),
  logistic: fromMath("logistic"),
};

type Binary = (code: Code, width: FloatWidth, left: Register, right: Register) => Register;

const instruction =
  (operation: string): Binary =>
  (code, width, left, right) =>
    make(code, width, operation, left, right);

/** NaN where an operand is NaN, and -0 below +0. */
function extreme(fn: "min" | "max"): Binary {
  return (code, width, left, right) =>
    width === 32
      ? make(code, width, `${fn}.NaN`, left, right)
      : extremeOfF64(code, fn, left, right);
}

/** The operand that is a number, where the other is NaN, and -0 below +0. */
function extremeOfNumbers(fn: "min" | "max"): Binary {
  return (code, width, left, right) => {
    if (width === 32) return make(code, width, fn, left, right);
    const chosen = orderedExtreme(code, fn, left, right);
    const rightly = code.make("b64", "selp.b64", right, chosen, test(code, 64, "nan", left, left));
    return code.make("b64", "selp.b64", left, rightly, test(code, 64, "nan", right, right));
  };
}

/** f64 has no min.NaN. */
function extremeOfF64(code: Code, fn: "min" | "max", left: Register, right: Register): Register {
  const chosen = orderedExtreme(code, fn, left, right);
  const unordered = test(code, 64, "nan", left, right);
  return code.make("b64", "selp.b64", float64(NaN), chosen, unordered);
}

/**
 * Of two numbers of f64. Of equal numbers only the zeros may differ in bits, in the sign: a least one has
 * it if either has it, a greatest one if both have it.
 */
function orderedExtreme(code: Code, fn: "min" | "max", left: Register, right: Register): Register {
  const wanted = test(code, 64, fn === "min" ? "lt" : "gt", left, right);
  const ordered = code.make("b64", "selp.b64", left, right, wanted);
  const equal = test(code, 64, "eq", left, right);
  const joined = code.make("b64", fn === "min" ? "or.b64" : "and.b64", left, right);
  return code.make("b64", "selp.b64", joined, ordered, equal);
}

const binaryEmitters: { readonly [F in FloatBinaryFunction]: Binary } = {
  add: instruction("add.rn"),
  sub: instruction("sub.rn"),
  mul: instruction("mul.rn"),
  div: instruction("div.rn"),
  rem: (code, width, left, right) => mathFunctions[`f${width}`].binary.rem(code, left, right),
  min: extreme("min"),
  max: extreme("max"),
  fmin: extremeOfNumbers("min"),
  fmax: extremeOfNumbers("max"),
  pow: (code, width, left, right) => mathFunctions[`f${width}`].binary.pow(code, left, right),
  atan2: (code, width, left, right) => mathFunctions[`f${width}`].binary.atan2(code, left, right),
};

/** How a function is to be computed, where there is a choice. */
export interface FloatManner extends RoundingManner {
  readonly approximate?: boolean | undefined;
  /** The format that results of a function of f32 are rounded to before anybody sees them. */
  readonly roundedTo?: HalfFormat | undefined;
}

const roundingModifiers: { readonly [R in DirectedRounding]: string } = {
  zero: "rz",
  down: "rm",
  up: "rp",
};

/** The modifiers of an instruction that rounds: `rz.ftz`. */
export function roundingText({ rounding, flushToZero = false }: RoundingManner): string {
  const mode = rounding === undefined ? "rn" : roundingModifiers[rounding];
  return flushToZero ? `${mode}.ftz` : mode;
}

/** Approximations are of f32; that there is one was checked when the op was made, and so were roundings. */
export function floatUnary(
  code: Code,
  fn: FloatUnaryFunction,
  width: FloatWidth,
  value: Register,
  manner: FloatManner = {},
): Register {
  if (manner.approximate === true && fn in approximations.unary)
    return approximations.unary[fn as keyof typeof approximations.unary](code, value);
  if (isMannered(manner)) return make(code, width, `${fn}.${roundingText(manner)}`, value);
  const { roundedTo } = manner;
  if (roundedTo !== undefined && width === 32 && isSingleFunction(fn))
    return singleFunction(code, roundedTo, fn, value);
  return unaryEmitters[fn](code, width, value);
}

/** The same of a number of a narrow format, in f32, whose result is rounded to the format next. */
export function narrowFloatUnary(
  code: Code,
  fn: FloatUnaryFunction,
  { name }: DType,
  value: Register,
  manner: FloatManner = {},
): Register {
  const isAccurate = manner.approximate !== true && !isMannered(manner);
  if (isAccurate && (name === "bf16" || name === "f16") && isHalfFunction(fn))
    return halfFunction(code, name, fn, value);
  return floatUnary(code, fn, 32, value, manner);
}

export function floatBinary(
  code: Code,
  fn: FloatBinaryFunction,
  width: FloatWidth,
  left: Register,
  right: Register,
  manner: FloatManner = {},
): Register {
  if (manner.approximate === true && fn in approximations.binary)
    return approximations.binary[fn as keyof typeof approximations.binary](code, left, right);
  if (isMannered(manner)) return make(code, width, `${fn}.${roundingText(manner)}`, left, right);
  return binaryEmitters[fn](code, width, left, right);
}

export function floatFma(
  code: Code,
  width: FloatWidth,
  a: Register,
  b: Register,
  c: Register,
  manner: RoundingManner = {},
): Register {
  return make(code, width, `fma.${roundingText(manner)}`, a, b, c);
}

/** Whether numbers are unordered matters to `ne` alone, which holds for them. */
export function floatComparison(predicate: ComparePredicate): string {
  return predicate === "ne" ? "neu" : predicate;
}

export function floatCompare(
  code: Code,
  predicate: ComparePredicate,
  width: FloatWidth,
  left: Register,
  right: Register,
): Register {
  return test(code, width, floatComparison(predicate), left, right);
}

const classifyEmitters: {
  readonly [F in ClassifyFunction]: (code: Code, width: FloatWidth, value: Register) => Register;
} = {
  is_nan: (code, width, value) => test(code, width, "nan", value, value),
  is_finite: (code, width, value) =>
    test(code, width, "lt", make(code, width, "abs", value), number[width](Infinity)),
};

export function floatClassify(
  code: Code,
  fn: ClassifyFunction,
  width: FloatWidth,
  value: Register,
): Register {
  return classifyEmitters[fn](code, width, value);
}
