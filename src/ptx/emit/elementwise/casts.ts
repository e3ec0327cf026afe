/**
 * Conversion of lone elements between any two formats, by the table in docs/numbers.md.
 *
 *   | from \ to          | bool   | integer                    | f64      | f32      | narrower float       |
 *   |--------------------|--------|----------------------------|----------|----------|----------------------|
 *   | bool               |        | one of two constants       | …        | …        | …                    |
 *   | integer to 16 bits | x ≠ 0  | low bits                   | cvt.rn   | exact    | f32, rounded         |
 *   | wider integer      | x ≠ 0  | low bits                   | cvt.rn   | cvt.rn   | odd f32, rounded     |
 *   | f64                | x ≠ 0  | cvt.rzi, NaN 0             |          | cvt.rn   | odd f32, rounded     |
 *   | f32 and narrower   | x ≠ 0  | f32, cvt.rzi, NaN 0        | exact    | exact    | f32, rounded         |
 *
 * Options of a conversion are modifiers: `.rzi` and `.rn` become those of the rounding that was chosen, low bits `cvt.sat`.
 * To a narrower float a number that f32 does not hold is rounded twice, both times to the same side.
 */
import { isFloat, isInteger } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { ConversionOptions, Rounding } from "../../../formats/floats.ts";
import type { Code } from "../../function-builder.ts";
import type { Register } from "../../module.ts";
import { float32, float64, integer } from "../../operands.ts";
import { elementClass } from "../values.ts";
import { literalBits } from "./constants.ts";
import type { Emission } from "./emission.ts";
import { elementFromF32, roundingModifiers } from "./from-f32.ts";
import { extendInteger, wrapInteger } from "./integers.ts";
import { oddF32 } from "./round-to-odd.ts";
import { elementToF32, fitsF32 } from "./to-f32.ts";

export function emitCast(
  emission: Emission,
  from: DType,
  to: DType,
  value: Register,
  choices: ConversionOptions = {},
): Register {
  const { overflow, rounding = "zero" } = choices;
  if (from === to && overflow !== "unit") return value;
  if (to.kind === "bool") return differsFromZero(emission, from, value);
  if (from.kind === "bool") return fromBool(emission, to, value);
  if (!isInteger(to)) return toFloat(emission, from, to, value, choices);
  if (!isInteger(from)) return floatToInteger(emission, from, to, value, rounding);
  return overflow === "saturate" && !holdsAll(to, from)
    ? saturatedInteger(emission.code, from, to, value)
    : integerToInteger(emission.code, from, to, value);
}

/* ---- bool ---- */

/** NaN too is not zero. */
function differsFromZero(emission: Emission, from: DType, value: Register): Register {
  const { code } = emission;
  if (from.name === "f64") return code.make("pred", "setp.neu.f64", value, float64(0));
  if (isFloat(from)) {
    const wide = elementToF32(emission, from, value);
    return code.make("pred", "setp.neu.f32", wide, float32(0));
  }
  const extended = extendInteger(code, from, value);
  return code.make("pred", `setp.ne.u${registerBits(from)}`, extended, integer(0));
}

function fromBool({ code }: Emission, to: DType, value: Register): Register {
  const type = elementClass(to);
  const one = integer(literalBits(to, true));
  const zero = integer(literalBits(to, false));
  return code.make(type, `selp.${type}`, one, zero, value);
}

/* ---- integers ---- */

/** Of the register that an integer format computes in. */
function registerBits({ bits }: DType): 32 | 64 {
  return bits === 64 ? 64 : 32;
}

function registerType(dtype: DType): string {
  return `${dtype.kind === "signed" ? "s" : "u"}${registerBits(dtype)}`;
}

/** Whether every number of one integer format is one of the other. */
function holdsAll(to: DType, from: DType): boolean {
  if (from.kind === "signed") return to.kind === "signed" && to.bits >= from.bits;
  return to.bits > from.bits || (to.kind === "unsigned" && to.bits === from.bits);
}

function integerToInteger(code: Code, from: DType, to: DType, value: Register): Register {
  if (from.bits === 16 && to.bits === 16) return value;
  const extended = extendInteger(code, from, value);
  if (to.bits === 64) {
    if (from.bits === 64) return value;
    return code.make("b64", from.kind === "signed" ? "cvt.s64.s32" : "cvt.u64.u32", extended);
  }
  const low = from.bits === 64 ? code.make("b32", "cvt.u32.u64", value) : extended;
  return to.bits < 16 && holdsAll(to, from) ? low : wrapInteger(code, to, low);
}

/** Within the bounds of the other format. The least one has no register of its own, and is cut once more. */
function saturatedInteger(code: Code, from: DType, to: DType, value: Register): Register {
  const source = extendInteger(code, from, value);
  const bits = Math.max(to.bits, 8);
  const type = `${to.kind === "signed" ? "s" : "u"}${bits}`;
  const register = bits === 64 ? "b64" : bits === 16 ? "b16" : "b32";
  const cut = code.make(register, `cvt.sat.${type}.${registerType(from)}`, source);
  return to.bits === 4 ? saturate(code, to, cut) : cut;
}

function floatToInteger(
  emission: Emission,
  from: DType,
  to: DType,
  value: Register,
  rounding: Rounding,
): Register {
  const { code } = emission;
  const type = registerType(to);
  const isWide = from.name === "f64";
  const source = isWide ? value : elementToF32(emission, from, value);
  const floatType = isWide ? "f64" : "f32";
  const register = to.bits === 64 ? "b64" : "b32";
  const opcode = `cvt.${roundingModifiers[rounding]}i.${type}.${floatType}`;
  const saturated = saturate(code, to, code.make(register, opcode, source));
  // Of f32 to 32 bits NaN gives 0 by itself.
  if (!isWide && to.bits !== 64) return narrowRegister(code, to, saturated);
  const isNan = code.make("pred", `setp.nan.${floatType}`, source, source);
  const known = code.make(register, `selp.${register}`, integer(0), saturated, isNan);
  return narrowRegister(code, to, known);
}

/** The conversion to 32 or 64 bits saturates; narrower formats have their bounds within. */
function saturate(code: Code, { bits, kind }: DType, value: Register): Register {
  if (bits >= 32) return value;
  if (kind === "unsigned") return code.make("b32", "min.u32", value, integer(2 ** bits - 1));
  const below = code.make("b32", "min.s32", value, integer(2 ** (bits - 1) - 1));
  return code.make("b32", "max.s32", below, integer(-(2 ** (bits - 1))));
}

/** Within bounds, only the register of 16 bits is another. */
function narrowRegister(code: Code, to: DType, value: Register): Register {
  return to.bits === 16 ? wrapInteger(code, to, value) : value;
}

/* ---- floats ---- */

function toFloat(
  emission: Emission,
  from: DType,
  to: DType,
  value: Register,
  choices: ConversionOptions,
): Register {
  const { code } = emission;
  const { overflow, rounding = "nearest" } = choices;
  if (to.name === "f64") return toF64(emission, from, value, choices);
  if (fitsF32(from)) {
    const wide = elementToF32(emission, from, value);
    return fitsTf32(from) && to.name === "tf32" && overflow === undefined
      ? wide
      : elementFromF32(emission, to, wide, choices);
  }
  // Twice toward zero might end at zero, which powers of two have not.
  const isToSide = rounding !== "nearest" && rounding !== "away" && to.name !== "f8e8m0fnu";
  const isOdd = to.name !== "f32" && !isToSide;
  const type = isFloat(from) ? "f64" : registerType(from);
  const single = isOdd
    ? oddF32(code, from, value)
    : code.make("b32", `cvt.${roundingModifiers[rounding]}.f32.${type}`, value);
  return elementFromF32(emission, to, single, choices);
}

function toF64(
  emission: Emission,
  from: DType,
  value: Register,
  { overflow, rounding = "nearest" }: ConversionOptions,
): Register {
  const { code } = emission;
  if (isInteger(from)) {
    const opcode = `cvt.${roundingModifiers[rounding]}.f64.${registerType(from)}`;
    return code.make("b64", opcode, extendInteger(code, from, value));
  }
  const wide =
    from.name === "f64"
      ? value
      : code.make("b64", "cvt.f64.f32", elementToF32(emission, from, value));
  return overflow === "unit" ? unitF64(code, wide) : wide;
}

/** From 0 to 1; what is not above 0, NaN too, is +0. */
function unitF64(code: Code, value: Register): Register {
  const isAbove = code.make("pred", "setp.gt.f64", value, float64(0));
  const above = code.make("b64", "selp.b64", value, float64(0), isAbove);
  return code.make("b64", "min.f64", above, float64(1));
}

/** Whether tf32 holds every number of the format, so that there is nothing to round. */
export function fitsTf32(from: DType): boolean {
  return from.bits <= 8 || from.name === "f16" || from.name === "bf16";
}
