/**
 * The formats in which elements are combined. As in the simulator, narrow floats are combined in f32 and
 * rounded once at the end (their extremes, which need no rounding, two at a time as they are), and narrow integers wrap when they
 * are packed:
 *
 *   | elements        | combined in | register |
 *   |-----------------|-------------|----------|
 *   | tf32, f16, bf16 | f32         | b32      |
 *   | i4, i8, i16     | i32         | b32      |
 *   | u4, u8, u16     | u32         | b32      |
 *   | bool            | u32, 0 or 1 | b32      |
 *   | others          | their own   | b32, b64 |
 */
import type { ReduceFunction } from "../../../formats/arithmetic/functions.ts";
import { f32, i32, u32 } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import { registersPerLane } from "../../../layout/algebra/register-layout.ts";
import type { IntegerOperand, Register } from "../../module.ts";
import { float32, float64, integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { packWord, tileElements } from "../elements.ts";
import { floatBinary } from "../elementwise/floats.ts";
import { elementFromF32, wordFromF32 } from "../elementwise/from-f32.ts";
import { extendInteger, integerBinary, wrapInteger } from "../elementwise/integers.ts";
import { wordToF32 } from "../elementwise/to-f32.ts";
import { slotsOf } from "../values.ts";
import type { TileValue } from "../values.ts";

/** The format in which elements are combined. */
export function workingType(dtype: DType): DType {
  if (dtype.kind === "float") return dtype.bits === 64 ? dtype : f32;
  if (dtype.bits >= 32) return dtype;
  return dtype.kind === "signed" ? i32 : u32;
}

/** The elements of a tile in their working format, one for each register of its layout. */
export function workingElements(context: EmitContext, tile: TileValue): readonly Register[] {
  const { dtype, words, layout, shape } = tile;
  const { code } = context;
  if (dtype.kind === "float" && dtype.bits < 32) {
    const count = registersPerLane(layout, shape);
    const slots = slotsOf(dtype);
    return words.flatMap((word, index) =>
      wordToF32(context, dtype, word, Math.min(slots, count - index * slots)),
    );
  }
  const elements = tileElements(context, tile);
  if (dtype.kind === "bool")
    return elements.map((each) => code.make("b32", "selp.b32", integer(1), integer(0), each));
  return dtype.kind === "float"
    ? elements
    : elements.map((each) => extendInteger(code, dtype, each));
}

type Type = Pick<TileValue, "dtype" | "shape" | "layout">;

/** A tile of elements in their working format; undefined ones are padding. */
export function tileFromWorking(
  context: EmitContext,
  type: Type,
  elements: readonly (Register | undefined)[],
): TileValue {
  const { dtype } = type;
  const slots = slotsOf(dtype);
  const some = elements.find((each) => each !== undefined);
  if (some === undefined) throw new Error("a tile of padding alone");
  const words: Register[] = [];
  for (let start = 0; start < elements.length; start += slots) {
    const own = elements.slice(start, start + slots);
    words.push(wordFromWorking(context, dtype, own, some));
  }
  return { kind: "tile", ...type, words };
}

function wordFromWorking(
  context: EmitContext,
  dtype: DType,
  elements: readonly (Register | undefined)[],
  filler: Register,
): Register {
  if (dtype.kind === "float" && dtype.bits <= 32)
    return wordFromF32(
      context,
      dtype,
      elements.map((each) => each ?? filler),
    );
  const { code } = context;
  if (slotsOf(dtype) === 1) return elementFromWorking(context, dtype, elements[0] ?? filler);
  const lone = elements.map(
    (each) => each && (dtype.bits === 16 ? code.make("b16", "cvt.u16.u32", each) : each),
  );
  return lone.some((each) => each !== undefined) ? packWord(code, dtype, lone) : filler;
}

/** A lone element. */
export function elementFromWorking(
  context: EmitContext,
  dtype: DType,
  element: Register,
): Register {
  if (dtype.kind === "bool") return context.code.make("pred", "setp.ne.u32", element, integer(0));
  if (dtype.kind !== "float") return wrapInteger(context.code, dtype, element);
  return dtype.bits === 64 ? element : elementFromF32(context, dtype, element);
}

const steps = {
  sum: "add",
  prod: "mul",
  min: "min",
  max: "max",
  and: "and",
  or: "or",
  xor: "xor",
} as const satisfies { readonly [F in ReduceFunction]: string };

/** One step of a combination; `dtype` is a working format. */
export function combineStep(
  { code }: EmitContext,
  fn: ReduceFunction,
  dtype: DType,
  left: Register,
  right: Register,
): Register {
  const step = steps[fn];
  if (dtype.kind !== "float") return integerBinary(code, step, dtype, left, right);
  if (step === "and" || step === "or" || step === "xor") throw new Error(`${fn} of floats`);
  return floatBinary(code, step, dtype.bits === 64 ? 64 : 32, left, right);
}

const floatNeutral: { readonly [F in ReduceFunction]: number } = {
  // Adding -0 changes no number, not even -0.
  sum: -0,
  prod: 1,
  min: Infinity,
  max: -Infinity,
  and: NaN,
  or: NaN,
  xor: NaN,
};

/** The bits of what leaves every other operand of a step as it is; `dtype` is a working format. */
export function neutralElement(fn: ReduceFunction, { kind, bits }: DType): IntegerOperand {
  if (kind === "float")
    return integer((bits === 64 ? float64(floatNeutral[fn]) : float32(floatNeutral[fn])).bits);
  const top = 2n ** BigInt(bits - 1);
  const least = kind === "signed" ? -top : 0n;
  const greatest = kind === "signed" ? top - 1n : 2n * top - 1n;
  const values: { readonly [F in ReduceFunction]: bigint } = {
    sum: 0n,
    prod: 1n,
    min: greatest,
    max: least,
    and: kind === "signed" ? -1n : greatest,
    or: 0n,
    xor: 0n,
  };
  return integer(values[fn]);
}
