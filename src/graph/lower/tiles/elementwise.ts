/**
 * Every elementwise function of one or two operands, over tiles. Integers of fewer bits than their format and FP8 are
 * lifted before and settled after (`convert.ts`), so that the functions here see formats with arithmetic.
 */
import { dtypes, u8 } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { Tile } from "../../../lang/index.ts";
import { elements } from "../../ops/elements.ts";
import type { ElementType } from "../../ops/elements.ts";
import type { FloatOrder } from "../../ops/elementwise.ts";
import { isStorageOnly, narrowBits } from "../storage.ts";
import {
  alike,
  constantTile,
  select,
  signedBits,
  totalOrderKey,
  unsignedBits,
  unsignedOf,
  weakOrderKey,
} from "./bits.ts";
import { lifted, settled } from "./convert.ts";
import { toOdd } from "./functions.ts";
import { roundAwayFromZero, specialPairs, specialTiles } from "./special.ts";

type Unary = (x: Tile, element: ElementType) => Tile;
type Binary = (x: Tile, y: Tile, element: ElementType) => Tile;

const isBool = (element: ElementType): boolean => element === "i1";
const isFloat = (element: ElementType): boolean => elements[element].kind === "float";

/** The bits of an integer without those that repeat its sign in a wider format. */
function ownBits(x: Tile, element: ElementType): Tile {
  const bits = narrowBits(element);
  const code = unsignedBits(x);
  return bits === undefined ? code : code.and(2 ** bits - 1);
}

function extraBits(x: Tile, element: ElementType): number {
  return x.dtype.bits - (narrowBits(element) ?? x.dtype.bits);
}

export const unaryTiles = {
  "stablehlo.abs": (x) => x.abs(),
  "stablehlo.cbrt": (x) => x.cbrt(),
  "stablehlo.ceil": (x) => x.ceil(),
  "stablehlo.count_leading_zeros": (x, element) => {
    const code = ownBits(x, element);
    const zeros = code.clz();
    return zeros.sub(alike(zeros, extraBits(x, element))).bitcast(x.dtype);
  },
  "stablehlo.cosine": (x) => x.cos(),
  "stablehlo.exponential": (x) => x.exp(),
  "stablehlo.exponential_minus_one": (x) => x.expm1(),
  "stablehlo.floor": (x) => x.floor(),
  "stablehlo.imag": (x) => x.mul(0),
  "stablehlo.is_finite": (x) => x.isFinite(),
  "stablehlo.log": (x) => x.log(),
  "stablehlo.log_plus_one": (x) => x.log1p(),
  "stablehlo.logistic": (x) => x.logistic(),
  "stablehlo.negate": (x) => x.neg(),
  "stablehlo.not": (x) => x.not(),
  "stablehlo.popcnt": (x, element) => ownBits(x, element).popcount().bitcast(x.dtype),
  "stablehlo.real": (x) => x,
  "stablehlo.round_nearest_afz": roundAwayFromZero,
  "stablehlo.round_nearest_even": (x) => x.round(),
  "stablehlo.rsqrt": (x) => x.rsqrt(),
  "stablehlo.sign": (x) => x.sign(),
  "stablehlo.sine": (x) => x.sin(),
  "stablehlo.sqrt": (x) => x.sqrt(),
  "stablehlo.tan": (x) => x.tan(),
  "stablehlo.tanh": (x) => x.tanh(),
  "chlo.acos": (x) => x.acos(),
  "chlo.acosh": (x) => x.acosh(),
  "chlo.asin": (x) => x.asin(),
  "chlo.asinh": (x) => x.asinh(),
  "chlo.atan": (x) => x.atan(),
  "chlo.atanh": (x) => x.atanh(),
  "chlo.bessel_i1e": specialTiles.bessel_i1e,
  "chlo.conj": (x) => x,
  "chlo.cosh": (x) => x.cosh(),
  "chlo.digamma": specialTiles.digamma,
  "chlo.erf": (x) => x.erf(),
  "chlo.erf_inv": (x) => x.erfInv(),
  "chlo.erfc": (x) => x.erfc(),
  "chlo.is_inf": (x) => x.abs().eq(Infinity),
  "chlo.is_neg_inf": (x) => x.eq(-Infinity),
  "chlo.is_pos_inf": (x) => x.eq(Infinity),
  "chlo.lgamma": specialTiles.lgamma,
  "chlo.sinh": (x) => x.sinh(),
  "chlo.square": (x) => x.mul(x),
  "chlo.tan": (x) => x.tan(),
} satisfies { readonly [kind: string]: Unary };

function shiftRightLogical(x: Tile, amount: Tile, element: ElementType): Tile {
  return ownBits(x, element).shr(unsignedBits(amount)).bitcast(x.dtype);
}

/** The shift itself reads amounts as unsigned, in which a negative one is large. */
function shiftRightArithmetic(x: Tile, amount: Tile): Tile {
  const bits = signedBits(x);
  return bits.shr(amount.bitcast(bits.dtype)).bitcast(x.dtype);
}

/** An unsigned element's top bit is its sign here, which a wider format does not have. */
function arithmeticShift(x: Tile, amount: Tile, element: ElementType): Tile {
  const extra = extraBits(x, element);
  if (extra === 0 || elements[element].kind === "signed") return shiftRightArithmetic(x, amount);
  const distance = alike(x, extra);
  return shiftRightArithmetic(shiftRightArithmetic(x.shl(distance), distance), amount);
}

/** The upper half of a product twice as wide. */
function highProduct(x: Tile, y: Tile, element: ElementType): Tile {
  const { bits } = elements[element];
  const isSigned = elements[element].kind === "signed";
  if (bits <= 32) {
    const wideType: DType = isSigned ? dtypes.i64 : dtypes.u64;
    const product = x.cast(wideType).mul(y.cast(wideType));
    return product.shr(alike(product, bits)).cast(x.dtype);
  }
  const high = unsignedHighProduct(x.bitcast(dtypes.u64), y.bitcast(dtypes.u64));
  if (!isSigned) return high;
  // A negative factor counts 2^64 too much of the other.
  const zero = constantTile(dtypes.u64, 0);
  const less = select(x.lt(alike(x, 0)), y.bitcast(dtypes.u64), zero);
  const lessToo = select(y.lt(alike(y, 0)), x.bitcast(dtypes.u64), zero);
  return high.sub(less).sub(lessToo).bitcast(x.dtype);
}

function unsignedHighProduct(x: Tile, y: Tile): Tile {
  const half = alike(x, 32);
  const mask = alike(x, 0xffffffff);
  const [xHigh, xLow, yHigh, yLow] = [x.shr(half), x.and(mask), y.shr(half), y.and(mask)];
  const cross = xHigh.mul(yLow).add(xLow.mul(yLow).shr(half));
  const other = xLow.mul(yHigh).add(cross.and(mask));
  return xHigh.mul(yHigh).add(cross.shr(half)).add(other.shr(half));
}

/** One step of the element's own format, which FP8 is lifted from, from x towards y. */
function nextAfter(x: Tile, y: Tile, element: ElementType): Tile {
  const own = settled(x, element);
  const bits = signedBits(own);
  const isUp = y.gt(x);
  const isPositive = x.gt(0);
  const isAway = isUp.eq(isPositive);
  const stepped = select(isAway, bits.add(alike(bits, 1)), bits.sub(alike(bits, 1)));
  const ofBits = (code: Tile): Tile => lifted(code.bitcast(own.dtype), element);
  const least = ofBits(alike(bits, 1));
  const fromZero = select(isUp, least, least.neg());
  const moved = select(x.eq(0), fromZero, ofBits(stepped));
  const value = select(x.eq(y), y, moved);
  return select(x.isNan().or(y.isNan()), x.add(y), value);
}

export const binaryTiles = {
  "stablehlo.add": (x, y, element) => (isBool(element) ? x.or(y) : x.add(y)),
  "stablehlo.and": (x, y) => x.and(y),
  "stablehlo.atan2": (x, y, element) =>
    isStorageOnly(element) ? toOdd(x.cast(dtypes.f64).atan2(y.cast(dtypes.f64))) : x.atan2(y),
  "stablehlo.divide": (x, y) => x.div(y),
  "stablehlo.maximum": (x, y, element) => (isBool(element) ? x.or(y) : x.maximum(y)),
  "stablehlo.minimum": (x, y, element) => (isBool(element) ? x.and(y) : x.minimum(y)),
  "stablehlo.multiply": (x, y, element) => (isBool(element) ? x.and(y) : x.mul(y)),
  "stablehlo.or": (x, y) => x.or(y),
  "stablehlo.power": (x, y) => x.pow(y),
  "stablehlo.remainder": (x, y) => x.rem(y),
  "stablehlo.shift_left": (x, y) => x.shl(y),
  "stablehlo.shift_right_arithmetic": arithmeticShift,
  "stablehlo.shift_right_logical": shiftRightLogical,
  "stablehlo.subtract": (x, y) => x.sub(y),
  "stablehlo.xor": (x, y) => x.xor(y),
  "chlo.next_after": nextAfter,
  "chlo.polygamma": specialPairs.polygamma,
  "chlo.zeta": specialPairs.zeta,
  "chlo.mulhi": highProduct,
} satisfies { readonly [kind: string]: Binary };

export type Direction = "EQ" | "NE" | "GE" | "GT" | "LE" | "LT";

const comparisons: { readonly [D in Direction]: (x: Tile, y: Tile) => Tile } = {
  EQ: (x, y) => x.eq(y),
  NE: (x, y) => x.ne(y),
  GE: (x, y) => x.ge(y),
  GT: (x, y) => x.gt(y),
  LE: (x, y) => x.le(y),
  LT: (x, y) => x.lt(y),
};

/** Integers in the order of floats, where that is not the one in which floats are compared: FP8 has the same total order in its codes. */
const orderKeys: {
  readonly [O in FloatOrder]: ((x: Tile, element: ElementType) => Tile) | undefined;
} = {
  ieee: undefined,
  total: totalOrderKey,
  weak: (x, element) => weakOrderKey(lifted(x, element)),
};

/** Compares elements as they are stored, so that NaNs of FP8 still have their signs. */
export function compareTiles(
  direction: Direction,
  order: FloatOrder,
  element: ElementType,
  x: Tile,
  y: Tile,
): Tile {
  const compare = comparisons[direction];
  if (isBool(element)) return compare(x.cast(u8), y.cast(u8));
  const key = isFloat(element) ? orderKeys[order] : undefined;
  return key === undefined
    ? compare(lifted(x, element), lifted(y, element))
    : compare(key(x, element), key(y, element));
}

/** Of formats of floats the bits of an exponent, and the code above all finite magnitudes: infinity, or NaN where there is none. */
const floatCodes: {
  readonly [name: string]: { readonly exponent: number; readonly beyond: bigint };
} = {
  f64: { exponent: 11, beyond: 0x7ffn << 52n },
  f32: { exponent: 8, beyond: 0xffn << 23n },
  bf16: { exponent: 8, beyond: 0xffn << 7n },
  f16: { exponent: 5, beyond: 0x1fn << 10n },
  f8e5m2: { exponent: 5, beyond: 0x7cn },
  f8e4m3fn: { exponent: 4, beyond: 0x7fn },
};

/**
 * Rounds elements, as they are stored, to fewer bits: too large becomes infinite, what would be subnormal becomes zero. Codes of FP8
 * are rounded as 16 bits, since the largest may become one more than 7 bits.
 */
export function reducePrecision(x: Tile, exponent: number, mantissa: number): Tile {
  const { bits, name } = x.dtype;
  const format = floatCodes[name];
  if (format === undefined) throw new Error(`no codes of ${name}`);
  const ownMantissa = bits - 1 - format.exponent;
  const stored = unsignedBits(x);
  const code = bits === 8 ? stored.cast(unsignedOf(16)) : stored;
  const at = (value: bigint): Tile => constantTile(code.dtype, bits === 64 ? value : Number(value));
  const signMask = 1n << BigInt(bits - 1);
  const sign = code.and(at(signMask));
  const magnitude = code.and(at(signMask - 1n));
  const infinity = at(format.beyond);
  let rounded = magnitude;
  const dropped = ownMantissa - mantissa;
  if (dropped > 0) {
    const last = rounded.shr(at(BigInt(dropped))).and(at(1n));
    const half = (1n << BigInt(dropped - 1)) - 1n;
    const mask = ((1n << BigInt(bits)) - 1n) ^ ((1n << BigInt(dropped)) - 1n);
    rounded = rounded.add(last).add(at(half)).and(at(mask)).minimum(infinity);
  }
  if (exponent < format.exponent) {
    const bias = (1n << BigInt(format.exponent - 1)) - 1n;
    const reduced = (1n << BigInt(exponent - 1)) - 1n;
    const shift = BigInt(ownMantissa);
    const least = at((bias - reduced + 1n) << shift);
    const beyond = at((bias + reduced + 1n) << shift);
    rounded = select(rounded.lt(least), at(0n), select(rounded.ge(beyond), infinity, rounded));
  }
  const result = rounded.or(sign).cast(stored.dtype).bitcast(x.dtype);
  // Without mantissa bits there is no NaN.
  const isKept = mantissa === 0 ? magnitude.eq(infinity) : magnitude.ge(infinity);
  const special = mantissa === 0 ? infinity.cast(stored.dtype).bitcast(x.dtype) : x;
  return select(magnitude.lt(infinity), result, select(isKept, x, special));
}
