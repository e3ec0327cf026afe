/**
 * Rounding by the order of a format's numbers: results are exact fractions, or roots of fractions, and a search over codes finds the
 * two numbers that they lie between. Nothing here is shared with the arithmetic that it is held against.
 */

/** numerator / denominator, the latter positive; its square root where `root` is set. */
export interface Exact {
  readonly numerator: bigint;
  readonly denominator: bigint;
  readonly root?: boolean;
}

export type Mode = "nearest" | "zero" | "down" | "up";

interface Format {
  /** The number of a code without its sign bit, which grows with the code. */
  readonly decode: (code: bigint) => number;
  readonly infinity: bigint;
  readonly leastNormal: number;
}

const view = new DataView(new ArrayBuffer(8));

const exactFormats: { readonly [name: string]: Format } = {
  f64: {
    decode(code) {
      view.setBigUint64(0, code);
      return view.getFloat64(0);
    },
    infinity: 0x7ff0000000000000n,
    leastNormal: 2 ** -1022,
  },
  f32: {
    decode(code) {
      view.setUint32(0, Number(code));
      return view.getFloat32(0);
    },
    infinity: 0x7f800000n,
    leastNormal: 2 ** -126,
  },
  f16: {
    decode(code) {
      const [exponent, mantissa] = [Number(code >> 10n), Number(code & 0x3ffn)];
      if (exponent === 31) return Infinity;
      return exponent === 0 ? mantissa * 2 ** -24 : (1024 + mantissa) * 2 ** (exponent - 25);
    },
    infinity: 0x7c00n,
    leastNormal: 2 ** -14,
  },
};

export function exactFormat(name: string): Format {
  const format = exactFormats[name];
  if (format === undefined) throw new Error(`no codes of ${name}`);
  return format;
}

/** A finite number as a fraction. */
export function exact(value: number): Exact {
  let [size, power] = [Math.abs(value), 0];
  while (!Number.isInteger(size)) [size, power] = [size * 2, power + 1];
  const numerator = BigInt(size) * (value < 0 ? -1n : 1n);
  return { numerator, denominator: 1n << BigInt(power) };
}

/** -1, 0 or 1, as the fraction is less than a number, equal to it or greater. */
function compare({ numerator, denominator, root = false }: Exact, value: number): number {
  const other = exact(value);
  const [left, right] = root
    ? [numerator * other.denominator ** 2n, other.numerator ** 2n * denominator]
    : [numerator * other.denominator, other.numerator * denominator];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** A positive fraction, to the number of the format below it or above it, or the nearer of the two. */
function roundMagnitude(value: Exact, { decode, infinity }: Format, mode: Mode): number {
  let [low, high] = [0n, infinity];
  // The number of `low` is at most the fraction, and that of `high` more.
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (compare(value, decode(middle)) >= 0) low = middle;
    else high = middle;
  }
  const below = decode(low);
  if (compare(value, below) === 0 || mode === "zero" || mode === "down") return below;
  const above = decode(high);
  if (mode === "up") return above;
  // Beyond the greatest number the next one would be two places further.
  const [first, second] = [exact(below), exact(high === infinity ? below : above)];
  const step = exact(below - decode(low - (low > 0n ? 1n : 0n)));
  const doubled = {
    numerator:
      high === infinity
        ? 2n * first.numerator * step.denominator + step.numerator * first.denominator
        : first.numerator * second.denominator + second.numerator * first.denominator,
    denominator:
      2n * first.denominator * (high === infinity ? step.denominator : second.denominator),
  };
  const middle = value.root === true ? square(doubled) : doubled;
  const left = value.numerator * middle.denominator;
  const right = middle.numerator * value.denominator;
  if (left !== right) return left < right ? below : above;
  return low % 2n === 0n ? below : above;
}

function square({ numerator, denominator }: Exact): Exact {
  return { numerator: numerator ** 2n, denominator: denominator ** 2n };
}

const mirrored: { readonly [M in Mode]: Mode } = {
  nearest: "nearest",
  zero: "zero",
  down: "up",
  up: "down",
};

/** An exact result other than zero as a number of the format; `flush` cuts what is below the normal numbers once it is rounded. */
export function roundExact(value: Exact, format: Format, mode: Mode, flush = false): number {
  const negative = value.numerator < 0n;
  const size = negative ? { ...value, numerator: -value.numerator } : value;
  const own = negative ? mirrored[mode] : mode;
  const rounded = roundMagnitude(size, format, own);
  const isTiny = flush && isFlushed(size, format, own);
  return (negative ? -1 : 1) * (isTiny ? 0 : rounded);
}

/** Whether it is below the normal numbers when it is rounded where the format has all of its places. */
function isFlushed(size: Exact, format: Format, mode: Mode): boolean {
  if (size.root === true) return false;
  const lifted = { ...size, numerator: size.numerator << 12n };
  return roundMagnitude(lifted, format, mode) < format.leastNormal * 2 ** 12;
}
