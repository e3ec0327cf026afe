/**
 * Numbers of an element type in program text.
 *
 * A decimal is rounded once to the element type. JavaScript reads it as an f64, and rounding that again
 * can only go wrong where the f64 lies next to a midpoint of the narrower type; there the decimal itself,
 * as a fraction of big integers, decides.
 *
 *   1.0000000596046448 as f32   f64: 1 + 2^-24, the midpoint; the decimal is above it: 1 + 2^-23
 */
import {
  elements,
  isComplexElement,
  isFloatElement,
  isWideElement,
  partOf,
} from "../ops/elements.ts";
import type { ElementType, FloatElement } from "../ops/elements.ts";
import { decodeElement, encodeElement } from "../ops/small-floats.ts";

const scratchFloat = new Float64Array(1);
const scratchBits = new BigInt64Array(scratchFloat.buffer);

/** The f64 `steps` representable numbers away from zero. */
function neighbour(value: number, steps: bigint): number {
  scratchFloat[0] = value;
  scratchBits[0] = (scratchBits[0] ?? 0n) + steps;
  return scratchFloat[0] ?? 0;
}

/** Numerator and denominator of a decimal without sign, or of an f64. */
function fractionOfDecimal(text: string): readonly [bigint, bigint] {
  const [, whole = "0", fraction = "", exponent = "0"] =
    /^[-+]?(\d+)(?:\.(\d*))?(?:[eE]([-+]?\d+))?$/.exec(text) ?? [];
  const power = Number(exponent) - fraction.length;
  const digits = BigInt(whole + fraction);
  return power >= 0 ? [digits * 10n ** BigInt(power), 1n] : [digits, 10n ** BigInt(-power)];
}

function fractionOfNumber(value: number): readonly [bigint, bigint] {
  scratchFloat[0] = Math.abs(value);
  const bits = scratchBits[0] ?? 0n;
  const exponent = Number(bits >> 52n);
  const mantissa = bits & 0xfffffffffffffn;
  const significand = exponent === 0 ? mantissa : mantissa | (1n << 52n);
  const power = Math.max(exponent, 1) - 1075;
  return power >= 0 ? [significand << BigInt(power), 1n] : [significand, 1n << BigInt(-power)];
}

/** Whether the decimal's magnitude is above (1), below (-1) or equal to (0) that of the number. */
function compareDecimal(text: string, value: number): number {
  const [a, b] = fractionOfDecimal(text);
  const [c, d] = fractionOfNumber(value);
  const difference = a * d - c * b;
  return difference > 0n ? 1 : difference < 0n ? -1 : 0;
}

/** The lane of the number that a decimal rounds to. */
function roundDecimal(name: FloatElement, text: string): number {
  const value = Number(text);
  if (name === "f64") return value;
  const encode = (number: number): number =>
    name === "f32" ? Math.fround(number) : encodeElement(name, number);
  const code = encode(value);
  // What is nothing as an f64 is far from the midpoints of narrower types, and its fraction may be endless.
  if (value === 0 || !Number.isFinite(value)) return code;
  const outward = encode(neighbour(value, 1n));
  const inward = encode(neighbour(value, -1n));
  if (Object.is(outward, code) && Object.is(inward, code)) return code;
  const side = compareDecimal(text, value);
  return side === 0 ? code : side > 0 ? outward : inward;
}

/** The bits of a hexadecimal number as a lane of a float. */
function floatOfBits(name: FloatElement, text: string): number | undefined {
  const bits = BigInt(text);
  if (bits >> BigInt(elements[name].bits) !== 0n) return undefined;
  if (name !== "f64" && name !== "f32") return Number(bits);
  const view = new DataView(new ArrayBuffer(8));
  if (name === "f64") view.setBigUint64(0, bits);
  else view.setUint32(0, Number(bits));
  return name === "f64" ? view.getFloat64(0) : view.getFloat32(0);
}

function parseInteger(name: ElementType, text: string): bigint | undefined {
  if (!/^-?(\d+|0x[0-9a-fA-F]+)$/.test(text)) return undefined;
  const value = text.startsWith("-") ? -BigInt(text.slice(1)) : BigInt(text);
  const { kind, bits } = elements[name];
  const width = BigInt(bits);
  const low = kind === "signed" ? -(1n << (width - 1n)) : 0n;
  const high = kind === "signed" ? 1n << (width - 1n) : 1n << width;
  // A hexadecimal number is the bits, so a signed one may be written beyond its largest value.
  if (text.startsWith("0x") && value >= high && value < 1n << width) return value - (1n << width);
  return value >= low && value < high ? value : undefined;
}

/** The lane of one number as text; undefined where the element type has no such number. */
export function parseNumber(name: ElementType, text: string): number | bigint | undefined {
  if (isComplexElement(name)) return parseNumber(partOf(name), text);
  if (isFloatElement(name)) {
    if (/^0x[0-9a-fA-F]+$/.test(text)) return floatOfBits(name, text);
    return /^[-+]?\d+(\.\d*)?([eE][-+]?\d+)?$/.test(text) ? roundDecimal(name, text) : undefined;
  }
  if (name === "i1" && (text === "true" || text === "false")) return text === "true" ? 1 : 0;
  const value = name === "i1" && text === "-1" ? 1n : parseInteger(name, text);
  return value === undefined || isWideElement(name) ? value : Number(value);
}

function hexadecimal(bits: bigint, width: number): string {
  return `0x${bits
    .toString(16)
    .toUpperCase()
    .padStart(Math.ceil(width / 4), "0")}`;
}

function bitsOfFloat(name: FloatElement, lane: number): bigint {
  if (name !== "f64" && name !== "f32") return BigInt(lane);
  const view = new DataView(new ArrayBuffer(8));
  if (name === "f64") view.setFloat64(0, lane);
  else view.setFloat32(0, lane);
  return name === "f64" ? view.getBigUint64(0) : BigInt(view.getUint32(0));
}

function decimalText(value: number, digits?: number): string {
  const text = Object.is(value, -0) ? `-${(0).toExponential(digits)}` : value.toExponential(digits);
  const [mantissa = "", exponent = ""] = text.split("e");
  const point = mantissa.includes(".") ? mantissa : `${mantissa}.0`;
  const sign = exponent.startsWith("-") ? "-" : "+";
  return `${point}e${sign}${exponent.replace(/^[-+]/, "").padStart(2, "0")}`;
}

function floatText(name: FloatElement, lane: number): string {
  const value = name === "f64" || name === "f32" ? lane : decodeElement(name, lane);
  if (!Number.isFinite(value)) return hexadecimal(bitsOfFloat(name, lane), elements[name].bits);
  const short = decimalText(value === 0 ? value : Number(value.toPrecision(6)), 6);
  return Object.is(roundDecimal(name, short), lane) ? short : decimalText(value);
}

/** One lane as text: six digits where those read back, all of them otherwise, bits where there are none. */
export function numberText(name: ElementType, lane: number | bigint): string {
  if (isComplexElement(name)) return floatText(partOf(name), Number(lane));
  if (isFloatElement(name)) return floatText(name, Number(lane));
  return name === "i1" ? String(Number(lane) !== 0) : String(lane);
}
