/** Floats of 16 bits as f32 and back, in vectors: widening is exact, narrowing rounds to the nearest, ties to even. */
import type { DType } from "../../formats/dtype.ts";
import { i32, op, splat } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import { keepLanes, vectorOf } from "./lanes.ts";
import type { Lanes } from "./lanes.ts";

type Convert = (b: FunctionBuilder, vector: Expression) => Expression;

const word = (value: number): Expression => splat("i32x4", value);

/** `ifTrue` where the mask is set. */
function chosen(mask: Expression, ifTrue: Expression, ifFalse: Expression): Expression {
  return op("v128.bitselect", ifTrue, ifFalse, mask);
}

/** The exponent of f16 is moved by a product with 2¹¹², which makes numbers of its subnormal ones, too. */
function widenHalf(b: FunctionBuilder, bits: Expression): Expression {
  const magnitude = b.keep(op("v128.and", bits, word(0x7fff)));
  const moved = b.keep(op("i32x4.shl", magnitude, i32.of(13)));
  const number = op("f32x4.mul", moved, splat("f32x4", 2 ** 112));
  const special = op("v128.or", moved, word(0x7f800000));
  const value = chosen(op("i32x4.ge_u", magnitude, word(0x7c00)), special, number);
  const sign = op("i32x4.shl", op("v128.and", bits, word(0x8000)), i32.of(16));
  return b.keep(op("v128.or", value, sign));
}

/** Below 2⁻¹⁴ a sum with a half rounds to multiples of 2⁻²⁴; above, the bits round by themselves. */
function narrowHalf(b: FunctionBuilder, value: Expression): Expression {
  const magnitude = b.keep(op("v128.and", value, word(0x7fffffff)));
  const odd = op("v128.and", op("i32x4.shr_u", magnitude, i32.of(13)), word(1));
  const rounded = op("i32x4.add", op("i32x4.add", magnitude, word(0xfff)), odd);
  const normal = op("i32x4.sub", op("i32x4.shr_u", rounded, i32.of(13)), word(0x1c000));
  const small = op(
    "i32x4.sub",
    op("f32x4.add", magnitude, splat("f32x4", 0.5)),
    splat("f32x4", 0.5),
  );
  const number = chosen(
    op("i32x4.lt_u", magnitude, splat("f32x4", 2 ** -14)),
    small,
    op("i32x4.min_u", normal, word(0x7c00)),
  );
  const known = chosen(op("i32x4.gt_u", magnitude, word(0x7f800000)), word(0x7e00), number);
  const sign = op("v128.and", op("i32x4.shr_u", value, i32.of(16)), word(0x8000));
  const isNan = op("f32x4.ne", value, value);
  return b.keep(op("v128.or", known, op("v128.andnot", sign, isNan)));
}

function widenBrain(b: FunctionBuilder, bits: Expression): Expression {
  return b.keep(op("i32x4.shl", bits, i32.of(16)));
}

function narrowBrain(b: FunctionBuilder, value: Expression): Expression {
  const odd = op("v128.and", op("i32x4.shr_u", value, i32.of(16)), word(1));
  const rounded = op("i32x4.add", op("i32x4.add", value, word(0x7fff)), odd);
  const isNumber = op("f32x4.eq", value, value);
  return b.keep(chosen(isNumber, op("i32x4.shr_u", rounded, i32.of(16)), word(0x7fc0)));
}

interface Narrow {
  readonly widen: Convert;
  readonly narrow: Convert;
}

const same: Convert = (_, vector) => vector;

/** Formats that compute in f32. */
const singles: { readonly [name: string]: Narrow } = {
  f32: { widen: same, narrow: same },
  f16: { widen: widenHalf, narrow: narrowHalf },
  bf16: { widen: widenBrain, narrow: narrowBrain },
};

/** Whether numbers of the format are f32, or are computed as f32 and rounded. */
export function computesInSingle({ name }: DType): boolean {
  return name in singles;
}

function singleOf({ name }: DType): Narrow {
  const found = singles[name];
  if (found === undefined) throw new Error(`${name} does not compute in f32`);
  return found;
}

/** The numbers as f32. */
export function widenFloats(b: FunctionBuilder, lanes: Lanes): Expression {
  return singleOf(lanes.dtype).widen(b, vectorOf(lanes));
}

/** Numbers of f32 rounded to the format. */
export function narrowFloats(b: FunctionBuilder, dtype: DType, value: Expression): Lanes {
  return keepLanes(b, dtype, singleOf(dtype).narrow(b, b.keep(value)));
}
