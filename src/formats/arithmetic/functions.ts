/**
 * The names of the arithmetic functions and the formats each is defined for. The op table of the IR
 * and the element loops beside this file both read them, so that an op exists exactly where it can run.
 *
 * | domain   | formats                                     | functions                              |
 * |----------|---------------------------------------------|----------------------------------------|
 * | float    | f64 f32 tf32 f16 bf16                       | floor … logistic, fmin fmax atan2, is_nan, fma |
 * | integer  | i4 … i64, u4 … u64                          | clz popcount bit_reverse shl shr mul_high |
 * | number   | float and integer                           | add … pow, neg abs sign, lt le gt ge   |
 * | logic    | integer and bool                            | and or xor not                         |
 * | equality | float, integer and bool                     | eq ne                                  |
 *
 * F8E8M0FNU, powers of two, has the functions of `scaleFunctions`: `mul` adds exponents. The other floats below 16 bits are storage
 * formats: they feed `dot` and casts, and have no arithmetic of their own.
 */
import type { DType, DTypeName } from "../dtype.ts";
import { isInteger } from "../dtype.ts";

export const unaryFunctions = [
  "neg",
  "abs",
  "sign",
  "not",
  "floor",
  "ceil",
  "round",
  "trunc",
  "sqrt",
  "rsqrt",
  "exp",
  "exp2",
  "expm1",
  "log",
  "log2",
  "log1p",
  "sin",
  "cos",
  "tan",
  "atan",
  "asin",
  "acos",
  "tanh",
  "sinh",
  "cosh",
  "asinh",
  "acosh",
  "atanh",
  "cbrt",
  "erf",
  "erf_inv",
  "erfc",
  "logistic",
  "clz",
  "popcount",
  "bit_reverse",
] as const;
export type UnaryFunction = (typeof unaryFunctions)[number];

/** Functions from a float to bool. */
export const classifyFunctions = ["is_nan", "is_finite"] as const;
export type ClassifyFunction = (typeof classifyFunctions)[number];

export const binaryFunctions = [
  "add",
  "sub",
  "mul",
  "div",
  "rem",
  "min",
  "max",
  "fmin",
  "fmax",
  "pow",
  "atan2",
  "and",
  "or",
  "xor",
  "shl",
  "shr",
  "mul_high",
] as const;
export type BinaryFunction = (typeof binaryFunctions)[number];

/**
 * What comes out of a function of floats: a number of its format as it is, one that is rounded to it, or one that
 * takes a function of the mathematics library. It is exact where no operands make it round or overflow: `rem` and `abs` are, `add` is not. What is
 * exact is not rounded to tf32 again, and what is transcendental costs more. Functions of integers alone are called rounded.
 */
export const functionNatures: {
  readonly [F in UnaryFunction | BinaryFunction]: "exact" | "rounded" | "transcendental";
} = {
  neg: "exact",
  abs: "exact",
  sign: "exact",
  not: "rounded",
  floor: "exact",
  ceil: "exact",
  round: "exact",
  trunc: "exact",
  sqrt: "transcendental",
  rsqrt: "transcendental",
  exp: "transcendental",
  exp2: "transcendental",
  expm1: "transcendental",
  log: "transcendental",
  log2: "transcendental",
  log1p: "transcendental",
  sin: "transcendental",
  cos: "transcendental",
  tan: "transcendental",
  atan: "transcendental",
  asin: "transcendental",
  acos: "transcendental",
  tanh: "transcendental",
  sinh: "transcendental",
  cosh: "transcendental",
  asinh: "transcendental",
  acosh: "transcendental",
  atanh: "transcendental",
  cbrt: "transcendental",
  erf: "transcendental",
  erf_inv: "transcendental",
  erfc: "transcendental",
  logistic: "transcendental",
  clz: "rounded",
  popcount: "rounded",
  bit_reverse: "rounded",
  add: "rounded",
  sub: "rounded",
  mul: "rounded",
  div: "rounded",
  rem: "exact",
  min: "exact",
  max: "exact",
  fmin: "exact",
  fmax: "exact",
  pow: "transcendental",
  atan2: "transcendental",
  and: "rounded",
  or: "rounded",
  xor: "rounded",
  shl: "rounded",
  shr: "rounded",
  mul_high: "rounded",
};

export const comparePredicates = ["eq", "ne", "lt", "le", "gt", "ge"] as const;
export type ComparePredicate = (typeof comparePredicates)[number];

/** What a comparison of two numbers says. */
export const compareNumbers: {
  readonly [P in ComparePredicate]: (left: number, right: number) => boolean;
} = {
  eq: (left, right) => left === right,
  ne: (left, right) => left !== right,
  lt: (left, right) => left < right,
  le: (left, right) => left <= right,
  gt: (left, right) => left > right,
  ge: (left, right) => left >= right,
};

export const reduceFunctions = ["sum", "prod", "min", "max", "and", "or", "xor"] as const;
export type ReduceFunction = (typeof reduceFunctions)[number];

export const scanFunctions = ["sum", "prod", "min", "max"] as const;
export type ScanFunction = (typeof scanFunctions)[number];

export const argFunctions = ["argmin", "argmax"] as const;
export type ArgFunction = (typeof argFunctions)[number];

/** A set of formats that share their functions; see the table above. */
export type Domain = "float" | "integer" | "number" | "logic" | "equality";

/** The floats that have arithmetic. */
export type ArithmeticFloatName = "f64" | "f32" | "tf32" | "f16" | "bf16";

const arithmeticFloats: ReadonlySet<DTypeName> = new Set<ArithmeticFloatName>([
  "f64",
  "f32",
  "tf32",
  "f16",
  "bf16",
]);

export function isArithmeticFloat(dtype: DType): dtype is DType<ArithmeticFloatName> {
  return arithmeticFloats.has(dtype.name);
}

const domainTests: { readonly [D in Domain]: (dtype: DType) => boolean } = {
  float: isArithmeticFloat,
  integer: isInteger,
  number: (dtype) => isArithmeticFloat(dtype) || isInteger(dtype),
  logic: (dtype) => isInteger(dtype) || dtype.kind === "bool",
  equality: (dtype) => isArithmeticFloat(dtype) || isInteger(dtype) || dtype.kind === "bool",
};

/** What the scales of blocks have, which are powers of two: no sums, for which a format without mantissa is of no use. */
export const scaleFunctions = ["mul", "div", "min", "max", "fmin", "fmax", "sqrt"] as const;
export type ScaleFunction = (typeof scaleFunctions)[number];

export function isScale({ name }: DType): boolean {
  return name === "f8e8m0fnu";
}

export function isScaleFunction(fn: UnaryFunction | BinaryFunction): fn is ScaleFunction {
  const known: readonly string[] = scaleFunctions;
  return known.includes(fn);
}

/** Whether `dtype` is a format of `domain`. */
export function inDomain(domain: Domain, dtype: DType): boolean {
  return domainTests[domain](dtype);
}

export const unaryDomain = {
  neg: "number",
  abs: "number",
  sign: "number",
  not: "logic",
  floor: "float",
  ceil: "float",
  round: "float",
  trunc: "float",
  sqrt: "float",
  rsqrt: "float",
  exp: "float",
  exp2: "float",
  expm1: "float",
  log: "float",
  log2: "float",
  log1p: "float",
  sin: "float",
  cos: "float",
  tan: "float",
  atan: "float",
  asin: "float",
  acos: "float",
  tanh: "float",
  sinh: "float",
  cosh: "float",
  asinh: "float",
  acosh: "float",
  atanh: "float",
  cbrt: "float",
  erf: "float",
  erf_inv: "float",
  erfc: "float",
  logistic: "float",
  clz: "integer",
  popcount: "integer",
  bit_reverse: "integer",
} as const satisfies { readonly [F in UnaryFunction]: Domain };

/** The unary functions of the domains `D`. */
export type UnaryIn<D extends Domain> = {
  [F in UnaryFunction]: (typeof unaryDomain)[F] extends D ? F : never;
}[UnaryFunction];

export const classifyDomain: { readonly [F in ClassifyFunction]: Domain } = {
  is_nan: "float",
  is_finite: "float",
};

export const binaryDomain = {
  add: "number",
  sub: "number",
  mul: "number",
  div: "number",
  rem: "number",
  min: "number",
  max: "number",
  fmin: "float",
  fmax: "float",
  pow: "number",
  atan2: "float",
  and: "logic",
  or: "logic",
  xor: "logic",
  shl: "integer",
  shr: "integer",
  mul_high: "integer",
} as const satisfies { readonly [F in BinaryFunction]: Domain };

/** The binary functions of the domains `D`. */
export type BinaryIn<D extends Domain> = {
  [F in BinaryFunction]: (typeof binaryDomain)[F] extends D ? F : never;
}[BinaryFunction];

export const compareDomain: { readonly [P in ComparePredicate]: Domain } = {
  eq: "equality",
  ne: "equality",
  lt: "number",
  le: "number",
  gt: "number",
  ge: "number",
};

export const reduceDomain: { readonly [F in ReduceFunction]: Domain } = {
  sum: "number",
  prod: "number",
  min: "number",
  max: "number",
  and: "logic",
  or: "logic",
  xor: "logic",
};

export const scanDomain: { readonly [F in ScanFunction]: Domain } = {
  sum: "number",
  prod: "number",
  min: "number",
  max: "number",
};

export const argDomain: { readonly [F in ArgFunction]: Domain } = {
  argmin: "number",
  argmax: "number",
};

export function acceptsUnary(fn: UnaryFunction, dtype: DType): boolean {
  return inDomain(unaryDomain[fn], dtype) || (isScale(dtype) && isScaleFunction(fn));
}

export function acceptsClassify(fn: ClassifyFunction, dtype: DType): boolean {
  return inDomain(classifyDomain[fn], dtype) || isScale(dtype);
}

export function acceptsBinary(fn: BinaryFunction, dtype: DType): boolean {
  return inDomain(binaryDomain[fn], dtype) || (isScale(dtype) && isScaleFunction(fn));
}

export function acceptsCompare(predicate: ComparePredicate, dtype: DType): boolean {
  return inDomain(compareDomain[predicate], dtype) || isScale(dtype);
}

export function acceptsReduce(fn: ReduceFunction, dtype: DType): boolean {
  return inDomain(reduceDomain[fn], dtype);
}

export function acceptsScan(fn: ScanFunction, dtype: DType): boolean {
  return inDomain(scanDomain[fn], dtype);
}

export function acceptsArg(fn: ArgFunction, dtype: DType): boolean {
  return inDomain(argDomain[fn], dtype);
}

/** The functions that GPUs approximate in f32; the narrower floats go through it. */
export const approximateFunctions = [
  "sqrt",
  "rsqrt",
  "exp",
  "exp2",
  "log",
  "log2",
  "sin",
  "cos",
  "tanh",
  "erf",
  "logistic",
  "div",
] as const satisfies readonly (UnaryFunction | BinaryFunction)[];
export type ApproximateFunction = (typeof approximateFunctions)[number];

export function acceptsApproximate(fn: UnaryFunction | BinaryFunction, dtype: DType): boolean {
  const known: readonly string[] = approximateFunctions;
  return known.includes(fn) && isArithmeticFloat(dtype) && dtype.name !== "f64";
}

/** Roundings other than to the nearest number, which all arithmetic has. */
export const directedRoundings = ["zero", "down", "up"] as const;
export type DirectedRounding = (typeof directedRoundings)[number];

/** How results are rounded, and whether subnormal numbers count as zeros; to the nearest and as numbers where it is not said. */
export interface RoundingManner {
  readonly rounding?: DirectedRounding | undefined;
  readonly flushToZero?: boolean | undefined;
}

/** The functions that GPUs round as asked, and the one that has no name among them. */
export const roundedFunctions = ["add", "sub", "mul", "div", "sqrt", "fma"] as const;
export type RoundedFunction = (typeof roundedFunctions)[number];

type AnyFunction = UnaryFunction | BinaryFunction | "fma";

export function isRounded(fn: AnyFunction): fn is RoundedFunction {
  const known: readonly string[] = roundedFunctions;
  return known.includes(fn);
}

/** f16 rounds to the nearest number alone, and so do the formats that compute in f32. */
export function acceptsRounding(fn: AnyFunction, { name }: DType): boolean {
  return isRounded(fn) && (name === "f32" || name === "f64");
}

/** bf16 has the exponents of f32, but no instructions that flush; quotients and roots of f16 are made in f32. */
export function acceptsFlush(fn: AnyFunction, { name }: DType): boolean {
  if (!isRounded(fn)) return false;
  return name === "f32" || (name === "f16" && fn !== "div" && fn !== "sqrt");
}

/** Formats with a fused multiply-add. */
export function acceptsFused(dtype: DType): boolean {
  return inDomain("float", dtype);
}

/** Formats that can be sorted. */
export function acceptsSort(dtype: DType): boolean {
  return inDomain("number", dtype);
}
