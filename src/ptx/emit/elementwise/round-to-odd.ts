/**
 * Rounding to odd: toward zero, with the last bit set where anything was lost. A number so rounded to f32 is
 * off the midpoints at which a second rounding, to a format of at most 22 bits, decides; the two together are
 * one rounding of the exact number.
 *
 *   i64 2^40 + 2^32 + 1   just above the midpoint of two bf16 numbers
 *   nearest f32           2^40 + 2^32, the midpoint: bf16 would round to even, down
 *   odd f32               2^40 + 2^32 + 2^17: bf16 rounds up, as it should
 */
import { isFloat } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { Code } from "../../function-builder.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";

function oddWhere(code: Code, inexact: Register, truncated: Register): Register {
  const odd = code.make("b32", "or.b32", truncated, integer(1));
  return code.make("b32", "selp.b32", odd, truncated, inexact);
}

/** A product or fused sum of f32 rounded to odd: it is inexact where rounding up and down differ. */
export function oddResult(
  code: Code,
  operation: "mul" | "fma",
  operands: readonly Register[],
): Register {
  const rounded = (mode: string): Register =>
    code.make("b32", `${operation}.${mode}.f32`, ...operands);
  const inexact = code.make("pred", "setp.ne.f32", rounded("rm"), rounded("rp"));
  return oddWhere(code, inexact, rounded("rz"));
}

/** An f64, or an integer of 32 or 64 bits, as an f32 rounded to odd. */
export function oddF32(code: Code, dtype: DType, value: Register): Register {
  const type = isFloat(dtype) ? "f64" : `${dtype.kind === "signed" ? "s" : "u"}${dtype.bits}`;
  const truncated = code.make("b32", `cvt.rz.f32.${type}`, value);
  const restore = isFloat(dtype) ? "cvt.f64.f32" : `cvt.rzi.${type}.f32`;
  const restored = code.make(dtype.bits === 64 ? "b64" : "b32", restore, truncated);
  const inexact = code.make("pred", `setp.ne.${type}`, restored, value);
  return oddWhere(code, inexact, truncated);
}
