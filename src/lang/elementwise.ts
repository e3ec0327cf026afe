/**
 * What tiles and scalars have in common: arithmetic, element by element. `K` is the kind of a result, `D` its dtype:
 *
 *   Tile<"f32">.lt(number)          is a Tile<"bool">
 *   Tile<"f32">.add(Tile<"f16">)    does not compile
 */
import type {
  ArithmeticFloatName,
  BinaryFunction,
  ClassifyFunction,
  ComparePredicate,
  UnaryFunction,
} from "../formats/arithmetic/functions.ts";
import type { DType, DTypeName, HostValue, IntegerName } from "../formats/dtype.ts";
import type { ConversionOptions } from "../formats/floats.ts";
import type { Value } from "../ir/node.ts";
import { opName } from "../ir/op-names.ts";
import type { SymbolicSize } from "../ir/size.ts";
import { isData } from "../ir/types.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { conversionOf, mannerOf } from "./accuracy.ts";
import type { Accuracy, ArithmeticOptions, Factors, RoundingOptions } from "./accuracy.ts";
import * as composed from "./composed.ts";
import { combine, make, noteCondition } from "./making.ts";
import { commonDType, resolveOperands } from "./operands.ts";
import type { Tile } from "./tile.ts";
import { emitValue, originOf } from "./trace.ts";
import type { Origin } from "./trace.ts";
import { origin, Traced, useValue } from "./traced.ts";

export type DataKind = "scalar" | "tile";

interface DataKinds<D extends DTypeName> {
  scalar: Scalar<D>;
  tile: Tile<D>;
}

/** A scalar or a tile, by its kind. */
export type DataOf<K extends DataKind, D extends DTypeName> = DataKinds<D>[K];

/** What may stand beside a value of dtype `D`: a number becomes a constant of it, a size that a launch knows an i32 scalar. */
export type Operand<D extends DTypeName> =
  | number
  | HostValue<D>
  | Scalar<D>
  | Tile<D>
  | (D extends "i32" ? SymbolicSize : never);

/** The result of combining a `K` with operands `O`: a tile if any of them is one. */
export type Combined<K extends DataKind, O, D extends DTypeName> = [
  Extract<O, { readonly kind: "tile" }>,
] extends [never]
  ? DataOf<K, D>
  : Tile<D>;

/** Where a function has only the formats `Has`: a value of dtype `D` that may be one of them, which tracing decides. */
type In<D extends DTypeName, Has extends DTypeName> = Elementwise<
  DataKind,
  [D] extends [Exclude<DTypeName, Has>] ? Has : D
>;

/** What floats with arithmetic, powers of two too, integers, both of them, or integers and bools have. */
type InFloats<D extends DTypeName> = In<D, ArithmeticFloatName>;
type InScales<D extends DTypeName> = In<D, ArithmeticFloatName | "f8e8m0fnu">;
type InIntegers<D extends DTypeName> = In<D, IntegerName>;
type InNumbers<D extends DTypeName> = In<D, ArithmeticFloatName | IntegerName>;
export type InLogic<D extends DTypeName> = In<D, IntegerName | "bool">;

export abstract class Elementwise<K extends DataKind, D extends DTypeName> extends Traced {
  abstract readonly kind: K;
  /** The number format of the elements. */
  readonly dtype: DType<D>;

  /** @internal */
  constructor(made: Origin) {
    super(made);
    const { type } = made.value;
    if (!isData(type)) throw new Error(`${type.kind} is not a value`);
    this.dtype = type.dtype as DType<D>;
  }

  /** @internal The scalar or tile for a result of this value and smaller ones. */
  abstract [make](made: Origin): DataOf<K, DTypeName>;

  /** Sum. */
  add<O extends Operand<D>>(other: O, options?: RoundingOptions): Combined<K, O, D> {
    return this.#binary("add", other, options);
  }

  /** Difference. */
  sub<O extends Operand<D>>(other: O, options?: RoundingOptions): Combined<K, O, D> {
    return this.#binary("sub", other, options);
  }

  /** Product; one of f32 may say of its other factor that it is often one. */
  mul<O extends Operand<D>>(other: O, options?: Factors & RoundingOptions): Combined<K, O, D> {
    return this.#binary("mul", other, options);
  }

  /** Quotient; of integers rounded towards zero. */
  div<O extends Operand<D>>(other: O, options?: Accuracy & RoundingOptions): Combined<K, O, D> {
    return this.#binary("div", other, options);
  }

  /** Remainder with the sign of the dividend, as `%` in JavaScript. */
  rem<O extends Operand<D>>(other: O): Combined<K, O, D> {
    return this.#binary("rem", other);
  }

  /** Remainder with the sign of the divisor, as NumPy's and Python's `%`. */
  remainder<O extends Operand<D>>(other: O): Combined<K, O, D> {
    return this.#composed("remainder", other, composed.floorRemainder);
  }

  /** Quotient rounded down, as NumPy's `floor_divide` and Python's `//`. */
  floorDivide<O extends Operand<D>>(other: O): Combined<K, O, D> {
    return this.#composed("floorDivide", other, composed.floorQuotient);
  }

  /** The next number of the format from this one towards `other`. */
  nextAfter<O extends Operand<D>>(this: InFloats<D>, other: O): Combined<K, O, D>;
  nextAfter<O extends Operand<D>>(other: O): Combined<K, O, D> {
    return this.#composed("nextAfter", other, composed.nextAfter);
  }

  /** The lesser of two elements; NaN if either is. */
  minimum<O extends Operand<D>>(other: O): Combined<K, O, D> {
    return this.#binary("min", other);
  }

  /** The greater of two elements; NaN if either is. */
  maximum<O extends Operand<D>>(other: O): Combined<K, O, D> {
    return this.#binary("max", other);
  }

  /** The lesser of two elements; of a number and NaN the number, as C's `fmin`. */
  fmin<O extends Operand<D>>(this: InScales<D>, other: O): Combined<K, O, D>;
  fmin<O extends Operand<D>>(other: O): Combined<K, O, D> {
    return this.#binary("fmin", other);
  }

  /** The greater of two elements; of a number and NaN the number, as C's `fmax`. */
  fmax<O extends Operand<D>>(this: InScales<D>, other: O): Combined<K, O, D>;
  fmax<O extends Operand<D>>(other: O): Combined<K, O, D> {
    return this.#binary("fmax", other);
  }

  /** This value raised to `exponent`. */
  pow<O extends Operand<D>>(exponent: O): Combined<K, O, D> {
    return this.#binary("pow", exponent);
  }

  /** The angle of the point with this value as y and `x` as x. */
  atan2<O extends Operand<D>>(this: InFloats<D>, x: O): Combined<K, O, D>;
  atan2<O extends Operand<D>>(x: O): Combined<K, O, D> {
    return this.#binary("atan2", x);
  }

  /** Bitwise and; of bools, logical and. */
  and<O extends Operand<D>>(this: InLogic<D>, other: O): Combined<K, O, D>;
  and<O extends Operand<D>>(other: O): Combined<K, O, D> {
    return this.#binary("and", other);
  }

  /** Bitwise or; of bools, logical or. */
  or<O extends Operand<D>>(this: InLogic<D>, other: O): Combined<K, O, D>;
  or<O extends Operand<D>>(other: O): Combined<K, O, D> {
    return this.#binary("or", other);
  }

  /** Bitwise exclusive or; of bools, inequality. */
  xor<O extends Operand<D>>(this: InLogic<D>, other: O): Combined<K, O, D>;
  xor<O extends Operand<D>>(other: O): Combined<K, O, D> {
    return this.#binary("xor", other);
  }

  /** Shifted left by `count` bits. */
  shl<O extends Operand<D>>(this: InIntegers<D>, count: O): Combined<K, O, D>;
  shl<O extends Operand<D>>(count: O): Combined<K, O, D> {
    return this.#binary("shl", count);
  }

  /** Shifted right by `count` bits; signed integers keep their sign. */
  shr<O extends Operand<D>>(this: InIntegers<D>, count: O): Combined<K, O, D>;
  shr<O extends Operand<D>>(count: O): Combined<K, O, D> {
    return this.#binary("shr", count);
  }

  /** The upper half of the product of integers, which has twice their bits. */
  mulHigh<O extends Operand<D>>(this: InIntegers<D>, other: O): Combined<K, O, D>;
  mulHigh<O extends Operand<D>>(other: O): Combined<K, O, D> {
    return this.#binary("mul_high", other);
  }

  /** Whether equal. */
  eq<O extends Operand<D>>(other: O): Combined<K, O, "bool"> {
    return this.#compare("eq", other);
  }

  /** Whether different. */
  ne<O extends Operand<D>>(other: O): Combined<K, O, "bool"> {
    return this.#compare("ne", other);
  }

  /** Whether less than `other`. */
  lt<O extends Operand<D>>(other: O): Combined<K, O, "bool"> {
    return this.#compare("lt", other);
  }

  /** Whether less than or equal to `other`. */
  le<O extends Operand<D>>(other: O): Combined<K, O, "bool"> {
    return this.#compare("le", other);
  }

  /** Whether greater than `other`. */
  gt<O extends Operand<D>>(other: O): Combined<K, O, "bool"> {
    return this.#compare("gt", other);
  }

  /** Whether greater than or equal to `other`. */
  ge<O extends Operand<D>>(other: O): Combined<K, O, "bool"> {
    return this.#compare("ge", other);
  }

  /** Negation. */
  neg(): DataOf<K, D> {
    return this.#unary("neg");
  }

  /** Magnitude. */
  abs(): DataOf<K, D> {
    return this.#unary("abs");
  }

  /** -1, 0 or 1. */
  sign(): DataOf<K, D> {
    return this.#unary("sign");
  }

  /** All bits inverted; of bools, logical not. */
  not(this: InLogic<D>): DataOf<K, D>;
  not(): DataOf<K, D> {
    return this.#unary("not");
  }

  /** Rounded down; integers stay. */
  floor(this: InNumbers<D>): DataOf<K, D>;
  floor(): DataOf<K, D> {
    return this.#unary("floor");
  }

  /** Rounded up; integers stay. */
  ceil(this: InNumbers<D>): DataOf<K, D>;
  ceil(): DataOf<K, D> {
    return this.#unary("ceil");
  }

  /** Rounded to the nearest whole number, ties to even; integers stay. */
  round(this: InNumbers<D>): DataOf<K, D>;
  round(): DataOf<K, D> {
    return this.#unary("round");
  }

  /** Rounded towards zero; integers stay. */
  trunc(this: InNumbers<D>): DataOf<K, D>;
  trunc(): DataOf<K, D> {
    return this.#unary("trunc");
  }

  /** One over this; rounded as a quotient. */
  reciprocal(this: InFloats<D>, options?: Accuracy & RoundingOptions): DataOf<K, D>;
  reciprocal(options: Accuracy & RoundingOptions = {}): DataOf<K, D> {
    const location = captureLocation();
    const value = composed.reciprocal(useValue(this, location), this.dtype, options, location);
    return this.#same(value, location);
  }

  /** Square root. */
  sqrt(this: InScales<D>, options?: Accuracy & RoundingOptions): DataOf<K, D>;
  sqrt(options?: Accuracy & RoundingOptions): DataOf<K, D> {
    return this.#unary("sqrt", options);
  }

  /** One over the square root. */
  rsqrt(this: InFloats<D>, options?: Accuracy): DataOf<K, D>;
  rsqrt(options?: Accuracy): DataOf<K, D> {
    return this.#unary("rsqrt", options);
  }

  /** e to this power. */
  exp(this: InFloats<D>, options?: Accuracy): DataOf<K, D>;
  exp(options?: Accuracy): DataOf<K, D> {
    return this.#unary("exp", options);
  }

  /** 2 to this power. */
  exp2(this: InFloats<D>, options?: Accuracy): DataOf<K, D>;
  exp2(options?: Accuracy): DataOf<K, D> {
    return this.#unary("exp2", options);
  }

  /** e to this power, minus 1, exact near 0. */
  expm1(this: InFloats<D>): DataOf<K, D>;
  expm1(): DataOf<K, D> {
    return this.#unary("expm1");
  }

  /** Natural logarithm. */
  log(this: InFloats<D>, options?: Accuracy): DataOf<K, D>;
  log(options?: Accuracy): DataOf<K, D> {
    return this.#unary("log", options);
  }

  /** Logarithm to base 2. */
  log2(this: InFloats<D>, options?: Accuracy): DataOf<K, D>;
  log2(options?: Accuracy): DataOf<K, D> {
    return this.#unary("log2", options);
  }

  /** Natural logarithm of 1 plus this, exact near 0. */
  log1p(this: InFloats<D>): DataOf<K, D>;
  log1p(): DataOf<K, D> {
    return this.#unary("log1p");
  }

  /** Sine, of radians. */
  sin(this: InFloats<D>, options?: Accuracy): DataOf<K, D>;
  sin(options?: Accuracy): DataOf<K, D> {
    return this.#unary("sin", options);
  }

  /** Cosine, of radians. */
  cos(this: InFloats<D>, options?: Accuracy): DataOf<K, D>;
  cos(options?: Accuracy): DataOf<K, D> {
    return this.#unary("cos", options);
  }

  /** Tangent, of radians. */
  tan(this: InFloats<D>): DataOf<K, D>;
  tan(): DataOf<K, D> {
    return this.#unary("tan");
  }

  /** The angle whose tangent it is, in radians from -π/2 to π/2; `atan2` knows all quadrants. */
  atan(this: InFloats<D>): DataOf<K, D>;
  atan(): DataOf<K, D> {
    return this.#unary("atan");
  }

  /** The angle whose sine it is, in radians from -π/2 to π/2; NaN beyond -1 and 1. */
  asin(this: InFloats<D>): DataOf<K, D>;
  asin(): DataOf<K, D> {
    return this.#unary("asin");
  }

  /** The angle whose cosine it is, in radians from 0 to π; NaN beyond -1 and 1. */
  acos(this: InFloats<D>): DataOf<K, D>;
  acos(): DataOf<K, D> {
    return this.#unary("acos");
  }

  /** Hyperbolic tangent. */
  tanh(this: InFloats<D>, options?: Accuracy): DataOf<K, D>;
  tanh(options?: Accuracy): DataOf<K, D> {
    return this.#unary("tanh", options);
  }

  /** Hyperbolic sine. */
  sinh(this: InFloats<D>): DataOf<K, D>;
  sinh(): DataOf<K, D> {
    return this.#unary("sinh");
  }

  /** Hyperbolic cosine. */
  cosh(this: InFloats<D>): DataOf<K, D>;
  cosh(): DataOf<K, D> {
    return this.#unary("cosh");
  }

  /** Inverse of the hyperbolic sine. */
  asinh(this: InFloats<D>): DataOf<K, D>;
  asinh(): DataOf<K, D> {
    return this.#unary("asinh");
  }

  /** Inverse of the hyperbolic cosine; NaN below 1. */
  acosh(this: InFloats<D>): DataOf<K, D>;
  acosh(): DataOf<K, D> {
    return this.#unary("acosh");
  }

  /** Inverse of the hyperbolic tangent; NaN beyond -1 and 1. */
  atanh(this: InFloats<D>): DataOf<K, D>;
  atanh(): DataOf<K, D> {
    return this.#unary("atanh");
  }

  /** Cube root, with the sign of the number. */
  cbrt(this: InFloats<D>): DataOf<K, D>;
  cbrt(): DataOf<K, D> {
    return this.#unary("cbrt");
  }

  /** Error function. */
  erf(this: InFloats<D>, options?: Accuracy): DataOf<K, D>;
  erf(options?: Accuracy): DataOf<K, D> {
    return this.#unary("erf", options);
  }

  /** Inverse of the error function; NaN beyond -1 and 1. */
  erfInv(this: InFloats<D>): DataOf<K, D>;
  erfInv(): DataOf<K, D> {
    return this.#unary("erf_inv");
  }

  /** 1 - erf(x), which keeps its digits where erf is near 1. */
  erfc(this: InFloats<D>): DataOf<K, D>;
  erfc(): DataOf<K, D> {
    return this.#unary("erfc");
  }

  /** 1 / (1 + exp(-x)). */
  logistic(this: InFloats<D>, options?: Accuracy): DataOf<K, D>;
  logistic(options?: Accuracy): DataOf<K, D> {
    return this.#unary("logistic", options);
  }

  /** How many zero bits lead. */
  clz(this: InIntegers<D>): DataOf<K, D>;
  clz(): DataOf<K, D> {
    return this.#unary("clz");
  }

  /** How many bits are one. */
  popcount(this: InIntegers<D>): DataOf<K, D>;
  popcount(): DataOf<K, D> {
    return this.#unary("popcount");
  }

  /** The bits in the opposite order. */
  bitReverse(this: InIntegers<D>): DataOf<K, D>;
  bitReverse(): DataOf<K, D> {
    return this.#unary("bit_reverse");
  }

  /** Whether NaN. */
  isNan(this: InScales<D>): DataOf<K, "bool">;
  isNan(): DataOf<K, "bool"> {
    return this.#classify("is_nan");
  }

  /** Whether neither NaN nor infinite. */
  isFinite(this: InScales<D>): DataOf<K, "bool">;
  isFinite(): DataOf<K, "bool"> {
    return this.#classify("is_finite");
  }

  /** This times `b`, plus `c`, rounded once. */
  fma<B extends Operand<D>, C extends Operand<D>>(
    this: InFloats<D>,
    b: B,
    c: C,
    options?: RoundingOptions,
  ): Combined<K, B | C, D>;
  fma<B extends Operand<D>, C extends Operand<D>>(
    b: B,
    c: C,
    options: RoundingOptions = {},
  ): Combined<K, B | C, D> {
    const location = captureLocation();
    const [first, second, third] = resolveOperands("fma", this.dtype, [this, b, c], location);
    const attributes = mannerOf("fma", "fma", this.dtype, options, location);
    const value = emitValue("fma", { a: first, b: second, c: third }, attributes, location);
    return combine(this, [b, c], value, location);
  }

  /**
   * Converted to another dtype by the conversion table; FP8 saturates by default. `rounding` chooses the way
   * to round and `overflow` what becomes of numbers that are beyond the dtype, where the conversion has the choice.
   */
  cast<E extends DTypeName>(dtype: DType<E>, options: ConversionOptions = {}): DataOf<K, E> {
    const location = captureLocation();
    const source = useValue(this, location);
    const attributes = { dtype, ...conversionOf(options, location) };
    return this.#same(emitValue("cast", { source }, attributes, location), location);
  }

  /** The same bits as another dtype; of one of another width the last axis is longer or shorter by as much, little-endian. */
  bitcast<E extends DTypeName>(dtype: DType<E>): DataOf<K, E> {
    const location = captureLocation();
    return this.#same(composed.sameBits(useValue(this, location), dtype, location), location);
  }

  /** `ifTrue` where this bool is true, `ifFalse` elsewhere. */
  select<E extends DTypeName>(
    this: Elementwise<K, "bool">,
    ifTrue: Tile<E>,
    ifFalse: Operand<NoInfer<E>>,
  ): Tile<E>;
  select<E extends DTypeName>(
    this: Elementwise<K, "bool">,
    ifTrue: Operand<NoInfer<E>>,
    ifFalse: Tile<E>,
  ): Tile<E>;
  select<E extends DTypeName>(
    this: Elementwise<K, "bool">,
    ifTrue: Scalar<E>,
    ifFalse: number | HostValue<NoInfer<E>> | Scalar<NoInfer<E>>,
  ): DataOf<K, E>;
  select<E extends DTypeName>(
    this: Elementwise<K, "bool">,
    ifTrue: number | HostValue<NoInfer<E>>,
    ifFalse: Scalar<E>,
  ): DataOf<K, E>;
  select(
    this: Elementwise<K, "bool">,
    ifTrue: Operand<DTypeName>,
    ifFalse: Operand<DTypeName>,
  ): Scalar | Tile {
    const location = captureLocation();
    const dtype = commonDType("select", [ifTrue, ifFalse], location);
    const [a, b, condition] = resolveOperands("select", dtype, [ifTrue, ifFalse, this], location);
    const operands = { condition, ifTrue: a, ifFalse: b };
    return combine(this, [ifTrue, ifFalse], emitValue("select", operands, {}, location), location);
  }

  #unary(fn: UnaryFunction, options: ArithmeticOptions = {}): DataOf<K, D> {
    const location = captureLocation();
    const source = useValue(this, location);
    if (composed.isWhole(this.dtype, fn)) return this.#same(source, location);
    const attributes = { fn, ...mannerOf(fn, fn, this.dtype, options, location) };
    const value = emitValue("unary", { source }, attributes, location);
    return this.#same(noteCondition(value, fn, location), location);
  }

  /** Of two operands, what `compose` makes of them. */
  #composed<O extends Operand<D>, E extends DTypeName>(
    name: string,
    other: O,
    compose: (left: Value, right: Value, dtype: DType, location: Location) => Value,
  ): Combined<K, O, E> {
    const location = captureLocation();
    const [left, right] = resolveOperands(name, this.dtype, [this, other], location);
    const value = noteCondition(compose(left, right, this.dtype, location), name, location);
    return combine(this, [other], value, location);
  }

  #classify(fn: ClassifyFunction): DataOf<K, "bool"> {
    const location = captureLocation();
    const value = emitValue("classify", { source: useValue(this, location) }, { fn }, location);
    const made = opName({ kind: "classify", attributes: { fn } });
    return this.#same(noteCondition(value, made, location), location);
  }

  #binary<O extends Operand<D>>(
    fn: BinaryFunction,
    other: O,
    options: ArithmeticOptions = {},
  ): Combined<K, O, D> {
    const name = opName({ kind: "binary", attributes: { fn } });
    return this.#composed(name, other, (left, right, dtype, location) => {
      const manner = mannerOf(fn, fn, dtype, options, location);
      return emitValue("binary", { left, right }, { fn, ...manner }, location);
    });
  }

  #compare<O extends Operand<D>>(predicate: ComparePredicate, other: O): Combined<K, O, "bool"> {
    return this.#composed(predicate, other, (left, right, _, location) =>
      emitValue("compare", { left, right }, { predicate }, location),
    );
  }

  /** A result of this value's own kind. */
  #same<E extends DTypeName>(value: Value, location: Location): DataOf<K, E> {
    return this[make](originOf(value, location)) as DataOf<K, E>;
  }
}

/** One number in a kernel, the same for all threads of a program thread. */
export class Scalar<D extends DTypeName = DTypeName> extends Elementwise<"scalar", D> {
  readonly kind = "scalar";
  /** @internal */
  [make](made: Origin): Scalar {
    return new Scalar(made);
  }
}

/** Whether `item` is a scalar or a tile of some trace. */
export function isDataObject(item: unknown): item is Scalar | Tile {
  return item instanceof Traced && isData(item[origin].value.type);
}

/** Whether `item` is a tile, of any rank. */
export function isTile(item: unknown): item is Tile {
  return item instanceof Elementwise && item.kind === "tile";
}
