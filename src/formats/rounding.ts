/**
 * Conversions to floats and integers with a rounding or a bound of the caller's choice, one number at a time. A number lies
 * between two of the format, or is one of them:
 *
 *   0.3 as bf16       0.298828125    0.30078125        nearest, away, up: 0.30078125   zero, down: 0.298828125
 *   -0.3 as bf16     -0.30078125    -0.298828125       nearest, away, down: -0.30078125
 *   1e39 as f32      (2 - 2^-23) · 2^127    infinity   zero, down: the largest number; with `saturate` always
 *
 * Integers of 64 bits that an f64 does not hold come rounded to odd (`convert.ts`), which is on the same side of every
 * number of a narrower format as they are.
 */
import type { FloatName } from "./dtype.ts";
import { decodeFloat, encodeFloat, floatFormats, roundFloat } from "./floats.ts";
import type { CodedFloatName, ConversionOptions, Rounding } from "./floats.ts";

/** A number rounded to a number of the format. */
export function roundToFloat(
  name: FloatName,
  value: number,
  { rounding = "nearest", overflow }: ConversionOptions,
): number {
  const bounded = overflow === "unit" ? unitOf(value) : value;
  const rounded = name === "f64" ? bounded : roundBy(name, bounded, rounding);
  const isBeyond = overflow === "saturate" && Math.abs(rounded) === Infinity;
  return isBeyond ? Math.sign(rounded) * floatFormats[name].maxFinite : rounded;
}

/** From 0 to 1, as the modifier `sat` has it: NaN and -0 are +0. */
function unitOf(value: number): number {
  return value > 0 ? Math.min(value, 1) : 0;
}

function roundBy(name: CodedFloatName, value: number, rounding: Rounding): number {
  const size = Math.abs(value);
  if (rounding === "nearest" || !Number.isFinite(value) || size === 0)
    return roundFloat(name, value);
  const isNegative = value < 0;
  if (isNegative && !floatFormats[name].signed) return NaN;
  const [below, above] = neighbours(name, size);
  const chosen = isAbove(rounding, isNegative, size, below, above) ? above : below;
  return isNegative ? -chosen : chosen;
}

/** The numbers of the format on either side of a size; twice the same where it is one of them, or below them all. */
function neighbours(name: CodedFloatName, size: number): readonly [below: number, above: number] {
  const unit = name === "tf32" ? 0x2000 : 1;
  const code = encodeFloat(name, size);
  const nearest = decodeFloat(name, code);
  if (nearest === size) return [nearest, nearest];
  return nearest < size
    ? [nearest, decodeFloat(name, code + unit)]
    : [decodeFloat(name, Math.max(code - unit, 0)), nearest];
}

function isAbove(
  rounding: Exclude<Rounding, "nearest">,
  isNegative: boolean,
  size: number,
  below: number,
  above: number,
): boolean {
  if (rounding === "away") return size >= (below + Math.min(above, 2 ** 128)) / 2;
  return rounding === (isNegative ? "down" : "up");
}

/** A number rounded to a whole one. */
export const wholeNumber: {
  readonly [R in Exclude<Rounding, "away">]: (value: number) => number;
} = { nearest: nearestWhole, zero: Math.trunc, down: Math.floor, up: Math.ceil };

function nearestWhole(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  if (rest !== 0.5) return rest < 0.5 ? below : below + 1;
  return below % 2 === 0 ? below : below + 1;
}

/** An integer as an f64. */
export function integerToF64(value: bigint, rounding: Rounding): number {
  const nearest = Number(value);
  const difference = BigInt(nearest) - value;
  if (rounding === "nearest" || difference === 0n) return nearest;
  const towards = rounding === "zero" ? (value < 0n ? "up" : "down") : rounding;
  const isWrong = towards === "down" ? difference > 0n : difference < 0n;
  if (!isWrong) return nearest;
  // From 2^53 on neighbours are whole numbers, and a step of one code is the next.
  scratch[0] = nearest;
  const away = nearest > 0 === (towards === "up");
  scratchBits[0] = (scratchBits[0] ?? 0n) + (away ? 1n : -1n);
  return scratch[0];
}

const scratch = new Float64Array(1);
const scratchBits = new BigInt64Array(scratch.buffer);
