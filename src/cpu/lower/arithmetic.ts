/**
 * Elementwise functions on lanes: a rule where vectors have one, nothing where the host computes it. What they give is what
 * `src/formats/arithmetic` gives: integers wrap, a division by 0 gives −1, a shift by the width or more gives 0 or the sign.
 */
import type {
  BinaryFunction,
  ClassifyFunction,
  ComparePredicate,
  UnaryFunction,
} from "../../formats/arithmetic/functions.ts";
import type { DType } from "../../formats/dtype.ts";
import type { ConversionOptions } from "../../formats/floats.ts";
import { convertParts } from "../convert/index.ts";
import { i32, op, shuffleLanes, splat } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import { vectorMath } from "../math/index.ts";
import type { VectorBinary, VectorUnary } from "../math/index.ts";
import type { OpcodeName } from "../wasm/opcodes.ts";
import { bitReverse, dividedLanes, eachLane, shifted, wrapped } from "./integers.ts";
import type { Code } from "./code.ts";
import { computesInSingle, narrowFloats, widenFloats } from "./floats.ts";
import { halvesOf, keepLanes, laneKind, lowWords, vectorOf } from "./lanes.ts";
import type { Lanes } from "./lanes.ts";

export type LaneRule = (code: Code, ...operands: readonly Lanes[]) => Lanes;

type VectorRule = (b: FunctionBuilder, ...operands: readonly Expression[]) => Expression;

function operand(operands: readonly Lanes[], index: number): Lanes {
  const found = operands[index];
  if (found === undefined) throw new Error(`operand ${index} is missing`);
  return found;
}

/** A rule of f32 for the formats that compute in it; "bits" rules keep NaN as it is. */
function inSingle(dtype: DType, rule: VectorRule): LaneRule {
  return ({ builder: b }, ...operands) =>
    narrowFloats(b, dtype, rule(b, ...operands.map((lanes) => widenFloats(b, lanes))));
}

function eachPart(dtype: DType, rule: VectorRule): LaneRule {
  return ({ builder: b }, ...operands) =>
    keepLanes(
      b,
      dtype,
      ...operand(operands, 0).parts.map((_, half) =>
        rule(
          b,
          ...operands.map(({ parts }) => {
            const part = parts[half];
            if (part === undefined) throw new Error("lanes of other formats");
            return part;
          }),
        ),
      ),
    );
}

/** `1` with the sign, or the number itself where it is 0 or NaN. */
function signOf(shape: "f32x4" | "f64x2"): VectorRule {
  return (_, x) => {
    const value = x ?? splat(shape, 0);
    const one = op("v128.or", op("v128.and", value, splat(shape, -0)), splat(shape, 1));
    const hasSign = op(
      "v128.or",
      op(`${shape}.lt`, value, splat(shape, 0)),
      op(`${shape}.gt`, value, splat(shape, 0)),
    );
    return op("v128.bitselect", one, value, hasSign);
  };
}

function simple(name: OpcodeName): VectorRule {
  return (_, ...operands) => op(name, ...operands);
}

/** The number where the other is NaN. */
function passingNan(shape: "f32x4" | "f64x2", fn: "min" | "max"): VectorRule {
  return (b, left, right) => {
    const [x, y] = [left ?? splat(shape, 0), right ?? splat(shape, 0)];
    const first = op("v128.bitselect", y, x, op(`${shape}.ne`, x, x));
    const second = op("v128.bitselect", x, y, op(`${shape}.ne`, y, y));
    return op(`${shape}.${fn}`, b.keep(first), b.keep(second));
  };
}

function floatUnary(shape: "f32x4" | "f64x2", fn: UnaryFunction): VectorRule | undefined {
  const names: { readonly [F in UnaryFunction]?: OpcodeName } = {
    floor: `${shape}.floor`,
    ceil: `${shape}.ceil`,
    trunc: `${shape}.trunc`,
    round: `${shape}.nearest`,
    sqrt: `${shape}.sqrt`,
  };
  const name = names[fn];
  if (name !== undefined) return simple(name);
  return fn === "sign" ? signOf(shape) : undefined;
}

/** Only the sign bit changes, of NaN too. */
function changedSign(dtype: DType, fn: "neg" | "abs"): LaneRule {
  if (dtype.bits === 32) return eachPart(dtype, simple(`f32x4.${fn}`));
  if (dtype.bits === 64) return eachPart(dtype, simple(`f64x2.${fn}`));
  return eachPart(dtype, (_, bits) =>
    fn === "neg"
      ? op("v128.xor", bits ?? splat("i32x4", 0), splat("i32x4", 0x8000))
      : op("v128.and", bits ?? splat("i32x4", 0), splat("i32x4", 0x7fff)),
  );
}

const isSigned = ({ kind }: DType): boolean => kind === "signed";

function integerUnary(fn: UnaryFunction, dtype: DType): LaneRule | undefined {
  const wide = laneKind(dtype) === "i64";
  const shape = wide ? "i64x2" : "i32x4";
  const wrap = (rule: VectorRule): LaneRule =>
    eachPart(dtype, (b, ...operands) => wrapped(dtype, rule(b, ...operands)));
  if (fn === "not" && dtype.kind === "bool") return eachPart(dtype, simple("v128.not"));
  if (fn === "not") return wrap(simple("v128.not"));
  if (fn === "neg") return wrap(simple(`${shape}.neg`));
  if (fn === "abs" && !isSigned(dtype)) return (_, ...operands) => operand(operands, 0);
  if (fn === "abs") return wrap(simple(`${shape}.abs`));
  if (wide) return undefined;
  if (fn === "sign")
    return eachPart(dtype, (_, x) => {
      const value = x ?? splat("i32x4", 0);
      const zero = splat("i32x4", 0);
      if (!isSigned(dtype)) return op("v128.and", op("i32x4.ne", value, zero), splat("i32x4", 1));
      return op(
        "i32x4.sub",
        op("i32x4.lt_s", value, zero),
        op("i32x4.gt_s", value, splat("i32x4", 0)),
      );
    });
  if (fn === "bit_reverse")
    return eachPart(dtype, (b, x) => wrapped(dtype, bitReverse(b, dtype, x)));
  const mask = dtype.bits === 32 ? -1 : 2 ** dtype.bits - 1;
  if (fn === "popcount" || fn === "clz")
    return ({ builder: b }, ...operands) =>
      eachLane(b, dtype, [operand(operands, 0)], ([x = i32.of(0)]) => {
        const bits = op("i32.and", x, i32.of(mask));
        return fn === "popcount"
          ? op("i32.popcnt", bits)
          : i32.sub(op("i32.clz", bits), i32.of(32 - dtype.bits));
      });
  return undefined;
}

/** The rule of a function of one number, where vectors have one. */
export function unaryRule(fn: UnaryFunction, dtype: DType): LaneRule | undefined {
  if (dtype.kind !== "float") return integerUnary(fn, dtype);
  if (!computesInSingle(dtype) && dtype.name !== "f64") return undefined;
  if (fn === "neg" || fn === "abs") return changedSign(dtype, fn);
  const double = dtype.name === "f64";
  const rule = floatUnary(double ? "f64x2" : "f32x4", fn);
  if (rule !== undefined) return double ? eachPart(dtype, rule) : inSingle(dtype, rule);
  const known: { readonly [fn: string]: VectorUnary } = vectorMath[double ? "f64" : "f32"].unary;
  const math = known[fn];
  if (math === undefined) return undefined;
  return ({ builder, relaxed }, ...operands) => {
    const compute: VectorRule = (b, x) => math({ builder: b, relaxed }, x ?? splat("f32x4", 0));
    return (double ? eachPart(dtype, compute) : inSingle(dtype, compute))(
      { builder, relaxed },
      ...operands,
    );
  };
}

function floatBinary(shape: "f32x4" | "f64x2", fn: BinaryFunction): VectorRule | undefined {
  const names: { readonly [F in BinaryFunction]?: OpcodeName } = {
    add: `${shape}.add`,
    sub: `${shape}.sub`,
    mul: `${shape}.mul`,
    div: `${shape}.div`,
    min: `${shape}.min`,
    max: `${shape}.max`,
  };
  const name = names[fn];
  if (name !== undefined) return simple(name);
  if (fn === "fmin") return passingNan(shape, "min");
  return fn === "fmax" ? passingNan(shape, "max") : undefined;
}

/** Signs of lanes of 64 bits flipped, so that a signed comparison orders unsigned numbers. */
function orderedWide(dtype: DType, value: Expression): Expression {
  return isSigned(dtype) ? value : op("v128.xor", value, splat("i64x2", -(2n ** 63n)));
}

/** The upper half of products. */
function highProduct(dtype: DType): LaneRule {
  if (dtype.bits < 32)
    return eachPart(dtype, (_, x, y) =>
      wrapped(
        dtype,
        op(
          isSigned(dtype) ? "i32x4.shr_s" : "i32x4.shr_u",
          op("i32x4.mul", x ?? splat("i32x4", 0), y ?? splat("i32x4", 0)),
          i32.of(dtype.bits),
        ),
      ),
    );
  const sign = isSigned(dtype) ? "s" : "u";
  return eachPart(dtype, (b, x, y) => {
    const [left, right] = [x ?? splat("i32x4", 0), y ?? splat("i32x4", 0)];
    return shuffleLanes(
      b.keep(op(`i64x2.extmul_low_i32x4_${sign}`, left, right)),
      b.keep(op(`i64x2.extmul_high_i32x4_${sign}`, left, right)),
      [1, 3, 5, 7],
    );
  });
}

function integerBinary(fn: BinaryFunction, dtype: DType): LaneRule | undefined {
  const wide = laneKind(dtype) === "i64";
  const shape = wide ? "i64x2" : "i32x4";
  if (fn === "and" || fn === "or" || fn === "xor") return eachPart(dtype, simple(`v128.${fn}`));
  if (dtype.kind === "bool") return undefined;
  if (fn === "add" || fn === "sub" || fn === "mul")
    return eachPart(dtype, (_, ...operands) => wrapped(dtype, op(`${shape}.${fn}`, ...operands)));
  if (fn === "shl" || fn === "shr")
    return ({ builder: b }, ...operands) =>
      shifted(b, fn, dtype, operand(operands, 0), operand(operands, 1));
  if (fn === "min" || fn === "max") {
    if (!wide) return eachPart(dtype, simple(`i32x4.${fn}_${isSigned(dtype) ? "s" : "u"}`));
    return eachPart(dtype, (_, x, y) => {
      const [left, right] = [x ?? splat("i64x2", 0), y ?? splat("i64x2", 0)];
      const less = op("i64x2.lt_s", orderedWide(dtype, left), orderedWide(dtype, right));
      return fn === "min"
        ? op("v128.bitselect", left, right, less)
        : op("v128.bitselect", right, left, less);
    });
  }
  if (fn === "div" || fn === "rem")
    return ({ builder: b }, ...operands) =>
      dividedLanes(b, fn, dtype, operand(operands, 0), operand(operands, 1));
  return fn === "mul_high" && !wide ? highProduct(dtype) : undefined;
}

/** The rule of a function of two numbers, where vectors have one. */
export function binaryRule(fn: BinaryFunction, dtype: DType): LaneRule | undefined {
  if (dtype.kind !== "float") return integerBinary(fn, dtype);
  const double = dtype.name === "f64";
  if (!computesInSingle(dtype) && !double) return undefined;
  const rule = floatBinary(double ? "f64x2" : "f32x4", fn);
  if (rule !== undefined) return double ? eachPart(dtype, rule) : inSingle(dtype, rule);
  const known: { readonly [fn: string]: VectorBinary } = vectorMath[double ? "f64" : "f32"].binary;
  const math = known[fn];
  if (math === undefined) return undefined;
  return ({ builder, relaxed }, ...operands) => {
    const compute: VectorRule = (b, x, y) =>
      math({ builder: b, relaxed }, x ?? splat("f32x4", 0), y ?? splat("f32x4", 0));
    return (double ? eachPart(dtype, compute) : inSingle(dtype, compute))(
      { builder, relaxed },
      ...operands,
    );
  };
}

function maskLanes(b: FunctionBuilder, bool: DType, mask: Expression): Lanes {
  return keepLanes(b, bool, mask);
}

/** The rule of a comparison, which gives a mask. */
export function compareRule(
  predicate: ComparePredicate,
  dtype: DType,
  bool: DType,
): LaneRule | undefined {
  if (dtype.kind === "float") {
    if (dtype.name === "f64")
      return ({ builder: b }, ...operands) => {
        const [left, right] = [halvesOf(operand(operands, 0)), halvesOf(operand(operands, 1))];
        const [low, high] = ([0, 1] as const).map((half) =>
          b.keep(op(`f64x2.${predicate}`, left[half], right[half])),
        );
        if (low === undefined || high === undefined) throw new Error("two halves");
        return maskLanes(b, bool, lowWords(low, high));
      };
    if (!computesInSingle(dtype)) return undefined;
    return ({ builder: b }, ...operands) =>
      maskLanes(
        b,
        bool,
        op(`f32x4.${predicate}`, ...operands.map((lanes) => widenFloats(b, lanes))),
      );
  }
  if (laneKind(dtype) === "i64")
    return ({ builder: b }, ...operands) => {
      const [left, right] = [halvesOf(operand(operands, 0)), halvesOf(operand(operands, 1))];
      const [low, high] = ([0, 1] as const).map((half) => {
        const [x, y] = [left[half], right[half]];
        const equality = predicate === "eq" || predicate === "ne";
        return b.keep(
          equality
            ? op(`i64x2.${predicate}`, x, y)
            : op(`i64x2.${predicate}_s`, orderedWide(dtype, x), orderedWide(dtype, y)),
        );
      });
      if (low === undefined || high === undefined) throw new Error("two halves");
      return maskLanes(b, bool, lowWords(low, high));
    };
  // True is −1 in lanes, and greater than false.
  const sign = dtype.kind === "signed" ? "s" : "u";
  return ({ builder: b }, ...operands) =>
    maskLanes(
      b,
      bool,
      op(
        predicate === "eq" || predicate === "ne"
          ? `i32x4.${predicate}`
          : `i32x4.${predicate}_${sign}`,
        ...operands.map(vectorOf),
      ),
    );
}

/** The rule of a test of one float. */
export function classifyRule(
  fn: ClassifyFunction,
  dtype: DType,
  bool: DType,
): LaneRule | undefined {
  const test = (shape: "f32x4" | "f64x2", x: Expression): Expression =>
    fn === "is_nan"
      ? op(`${shape}.ne`, x, x)
      : op(`${shape}.lt`, op(`${shape}.abs`, x), splat(shape, Number.POSITIVE_INFINITY));
  if (dtype.name === "f64")
    return ({ builder: b }, ...operands) => {
      const [low, high] = halvesOf(operand(operands, 0)).map((half) => b.keep(test("f64x2", half)));
      if (low === undefined || high === undefined) throw new Error("two halves");
      return maskLanes(b, bool, lowWords(low, high));
    };
  if (!computesInSingle(dtype)) return undefined;
  return ({ builder: b }, ...operands) =>
    maskLanes(b, bool, test("f32x4", widenFloats(b, operand(operands, 0))));
}

/** The rule of a conversion. */
export function castRule(from: DType, to: DType, options: ConversionOptions = {}): LaneRule {
  if (from === to && options.overflow === undefined)
    return (_, ...operands) => operand(operands, 0);
  return (code, ...operands) =>
    keepLanes(
      code.builder,
      to,
      ...convertParts(code, from, to, operand(operands, 0).parts, options),
    );
}

/** The same bits as another format of the same width. */
export function bitcastRule(to: DType): LaneRule {
  return ({ builder: b }, ...operands) => {
    const { parts, dtype, scalar } = operand(operands, 0);
    const changes = to.bits < 32 && dtype.kind !== to.kind;
    const lanes = keepLanes(b, to, ...parts.map((part) => (changes ? wrapped(to, part) : part)));
    const isSame = !changes && laneKind(dtype) === laneKind(to);
    return isSame && scalar !== undefined ? { ...lanes, scalar } : lanes;
  };
}
