/**
 * Numbers of the float elements as codes, with StableHLO's conversions: to nearest even from an f64, and
 * beyond the largest number to infinity, to NaN where the format has no infinity, and to the largest
 * number where it has neither.
 *
 * | element       | exponent, mantissa bits, bias | beyond the largest | NaN             |
 * |---------------|-------------------------------|--------------------|-----------------|
 * | f8E5M2        | 5, 2, 15                      | infinity           | as IEEE         |
 * | f8E4M3, f8E3M4| 4, 3, 7 and 3, 4, 3           | infinity           | as IEEE         |
 * | f8E4M3FN      | 4, 3, 7                       | NaN                | all ones        |
 * | …FNUZ         | 4, 3, 8; 4, 3, 11; 5, 2, 16   | NaN                | 0x80: there is no -0 |
 * | f6…, f4…      | 2, 3, 1; 3, 2, 3; 2, 1, 1     | the largest        | none            |
 */
import { decodeFloat, encodeFloat } from "../../formats/floats.ts";
import { isFloatElement } from "./elements.ts";
import type { FloatElement } from "./elements.ts";
import type { Literal } from "./literal.ts";

type Special = "ieee" | "finite with nan" | "unsigned zero" | "finite";
type SmallFloat = Exclude<FloatElement, "f64" | "f32" | "f16" | "bf16" | "f8E8M0FNU">;

interface SmallFormat {
  readonly exponentBits: number;
  readonly mantissaBits: number;
  readonly bias: number;
  readonly special: Special;
}

function format(
  exponentBits: number,
  mantissaBits: number,
  bias: number,
  special: Special,
): SmallFormat {
  return Object.freeze({ exponentBits, mantissaBits, bias, special });
}

const smallFormats: { readonly [E in SmallFloat]: SmallFormat } = {
  f8E3M4: format(3, 4, 3, "ieee"),
  f8E4M3: format(4, 3, 7, "ieee"),
  f8E4M3FN: format(4, 3, 7, "finite with nan"),
  f8E4M3FNUZ: format(4, 3, 8, "unsigned zero"),
  f8E4M3B11FNUZ: format(4, 3, 11, "unsigned zero"),
  f8E5M2: format(5, 2, 15, "ieee"),
  f8E5M2FNUZ: format(5, 2, 16, "unsigned zero"),
  f6E2M3FN: format(2, 3, 1, "finite"),
  f6E3M2FN: format(3, 2, 3, "finite"),
  f4E2M1FN: format(2, 1, 1, "finite"),
};

/** Of every float element the bits of an exponent, and what is added to exponents in codes. */
export const floatExponents: {
  readonly [E in FloatElement]: { readonly exponentBits: number; readonly bias: number };
} = Object.freeze({
  f64: { exponentBits: 11, bias: 1023 },
  f32: { exponentBits: 8, bias: 127 },
  bf16: { exponentBits: 8, bias: 127 },
  f16: { exponentBits: 5, bias: 15 },
  f8E8M0FNU: { exponentBits: 8, bias: 127 },
  ...smallFormats,
});

/** Bits of a number's significand, with the one that codes leave out. */
export function significandBits(name: FloatElement): number {
  const wide = { f64: 53, f32: 24, f16: 11, bf16: 8, f8E8M0FNU: 1 } as const;
  return isSmallFloat(name) ? smallFormats[name].mantissaBits + 1 : wide[name];
}

function isSmallFloat(name: FloatElement): name is SmallFloat {
  return Object.hasOwn(smallFormats, name);
}

/** The greatest power of two among the numbers of an element of at most 8 bits; undefined for others. */
export function greatestPower(name: FloatElement): number | undefined {
  if (!isSmallFloat(name)) return undefined;
  return 2 ** Math.floor(Math.log2(tableOf(name).magnitudes.at(-1) ?? 1));
}

/** The numbers of the codes without sign, in rising order, and the code of each special value. */
interface SmallTable {
  readonly magnitudes: readonly number[];
  readonly sign: number;
  readonly beyond: number;
  readonly nan: number | undefined;
  readonly numbers: Float64Array;
}

function buildTable({ exponentBits, mantissaBits, bias, special }: SmallFormat): SmallTable {
  const sign = 1 << (exponentBits + mantissaBits);
  const reserved = special === "ieee" ? 1 << mantissaBits : special === "finite with nan" ? 1 : 0;
  const finite = sign - reserved;
  const magnitudes = Array.from({ length: finite }, (_, code) => {
    const exponent = code >> mantissaBits;
    const fraction = (code & ((1 << mantissaBits) - 1)) / (1 << mantissaBits);
    return exponent === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (exponent - bias);
  });
  const nans: { readonly [S in Special]: number | undefined } = {
    ieee: finite + (1 << (mantissaBits - 1)),
    "finite with nan": sign - 1,
    "unsigned zero": sign,
    finite: undefined,
  };
  const nan = nans[special];
  const beyond = special === "ieee" ? finite : (nan ?? finite - 1);
  const numbers = Float64Array.from({ length: 2 * sign }, (_, code) => {
    if (special === "unsigned zero" && code === sign) return NaN;
    const magnitude = magnitudes[code % sign];
    const unsigned = magnitude ?? (special === "ieee" && code % sign === finite ? Infinity : NaN);
    return code < sign ? unsigned : -unsigned;
  });
  return Object.freeze({ magnitudes, sign, beyond, nan, numbers });
}

const tables = new Map<SmallFloat, SmallTable>();

function tableOf(name: SmallFloat): SmallTable {
  const known = tables.get(name);
  if (known !== undefined) return known;
  const built = buildTable(smallFormats[name]);
  tables.set(name, built);
  return built;
}

/** The index of the magnitude nearest to `value`, to even on a tie; their number where it rounds beyond. */
function nearest(magnitudes: readonly number[], value: number): number {
  let low = 0;
  let high = magnitudes.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((magnitudes[middle] as number) <= value) low = middle;
    else high = middle;
  }
  const below = magnitudes[low] as number;
  const step = below - (magnitudes[low - 1] ?? 0);
  const above = magnitudes[high] ?? below + step;
  const half = (below + above) / 2;
  if (value === half) return low % 2 === 0 ? low : high;
  return value < half ? low : high;
}

function encodeSmall(name: SmallFloat, value: number): number {
  const { magnitudes, sign, beyond, nan } = tableOf(name);
  const { special } = smallFormats[name];
  // A format without NaN has no code for it; XLA makes it -0 in f4E2M1FN and its kin.
  if (Number.isNaN(value)) return nan ?? sign;
  const index = nearest(magnitudes, Math.abs(value));
  const code = index < magnitudes.length ? index : beyond;
  const negative = value < 0 || Object.is(value, -0);
  if (special === "unsigned zero" && (code === 0 || code === sign)) return code;
  return negative ? code | sign : code;
}

/** The bit pattern of the number of the element type that `value` rounds to; f64 and f32 have elements of numbers. */
export function encodeElement(name: Exclude<FloatElement, "f64" | "f32">, value: number): number {
  if (name === "f16" || name === "bf16") return encodeFloat(name, value);
  return name === "f8E8M0FNU" ? encodeFloat("f8e8m0fnu", value) : encodeSmall(name, value);
}

/** The number that a bit pattern stands for. */
export function decodeElement(name: Exclude<FloatElement, "f64" | "f32">, code: number): number {
  if (name === "f16" || name === "bf16") return decodeFloat(name, code);
  if (name === "f8E8M0FNU") return decodeFloat("f8e8m0fnu", code);
  return tableOf(name).numbers[code] as number;
}

/** The number that all elements of a constant are, whole and exact in 64 bits; undefined where they differ, or are complex. */
export function splatValue({ type, splat, data }: Literal): number | bigint | undefined {
  const [lane] = data;
  const { element } = type;
  if (!splat || lane === undefined || data.length > 1) return undefined;
  if (!isFloatElement(element) || element === "f64" || element === "f32") return lane;
  return decodeElement(element, Number(lane));
}
