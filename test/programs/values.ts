/**
 * Operands: values at which instructions change their behaviour, and random ones. A kind names what a
 * stream of operands holds; its type decides the register.
 *
 *   s32        edges such as −2³¹, −1, 0, 1, 2³¹ − 1; then random bits and small numbers
 *   f32        zeros, ones, subnormals, limits, infinities, NaNs of several bits; then random ones
 *   shift      counts from 0 past the width
 */
import { Random } from "../../src/support/random.ts";

interface FloatShape {
  readonly exponentBits: number;
  readonly fractionBits: number;
}

const floatShapes: { readonly [type: string]: FloatShape } = {
  f16: { exponentBits: 5, fractionBits: 10 },
  bf16: { exponentBits: 8, fractionBits: 7 },
  f32: { exponentBits: 8, fractionBits: 23 },
  f64: { exponentBits: 11, fractionBits: 52 },
};

function floatEdges({ exponentBits, fractionBits }: FloatShape): readonly bigint[] {
  const fraction = BigInt(fractionBits);
  const infinity = ((1n << BigInt(exponentBits)) - 1n) << fraction;
  const bias = (1n << BigInt(exponentBits - 1)) - 1n;
  const power = (exponent: bigint): bigint => (bias + exponent) << fraction;
  const sign = 1n << BigInt(exponentBits + fractionBits);
  const half = 1n << (fraction - 1n);
  return [
    0n,
    sign,
    power(0n),
    sign | power(0n),
    infinity,
    sign | infinity,
    infinity | half,
    sign | infinity | half | 5n,
    infinity | 1n,
    1n,
    sign | (1n << fraction) | 0n,
    (1n << fraction) - 1n,
    infinity - 1n,
    power(0n) | 1n,
    power(-1n),
    sign | power(1n) | half,
    sign - 1n,
    power(0n) - 1n,
  ];
}

function randomFloat({ exponentBits, fractionBits }: FloatShape, random: Random): bigint {
  const width = exponentBits + fractionBits + 1;
  const bits = BigInt.asUintN(width, (BigInt(random.bits()) << 32n) | BigInt(random.bits()));
  if (random.below(3) === 0) return bits;
  // Near one, so that sums of several lose and keep bits in every way.
  const bias = (1 << (exponentBits - 1)) - 1;
  const spread = random.below(2) === 0 ? 4 : Math.min(bias - 1, 40);
  const exponent = BigInt(bias - spread + random.below(2 * spread));
  const fraction = BigInt.asUintN(fractionBits, bits);
  const sign = (bits >> BigInt(width - 1)) << BigInt(width - 1);
  return sign | (exponent << BigInt(fractionBits)) | fraction;
}

function integerEdges(bits: number): readonly bigint[] {
  const top = 1n << BigInt(bits - 1);
  const all = (1n << BigInt(bits)) - 1n;
  const alternating = all / 3n;
  return [
    0n,
    1n,
    all,
    top,
    top - 1n,
    top + 1n,
    2n,
    all - 1n,
    alternating,
    all ^ alternating,
    3n,
    1n << BigInt(bits / 2),
    (1n << BigInt(bits / 2)) - 1n,
    7n,
    all - 6n,
    100n,
  ].map((value) => BigInt.asUintN(bits, value));
}

function randomInteger(bits: number, random: Random): bigint {
  let value = 0n;
  for (let drawn = 0; drawn < Math.max(64, bits); drawn += 32)
    value = (value << 32n) | BigInt(random.bits());
  value = BigInt.asUintN(bits, value);
  const choice = random.below(3);
  if (choice === 0) return value;
  const small = value >> BigInt(random.below(bits));
  return choice === 1 ? small : BigInt.asUintN(bits, -small);
}

export type KindBits = 16 | 32 | 64 | 128;

/** Width in bits, values at the edges and random ones. */
interface Kind {
  readonly bits: KindBits;
  readonly edges: readonly bigint[];
  readonly random: (random: Random) => bigint;
}

function floatKind(type: string): Kind {
  const shape = floatShapes[type] as FloatShape;
  const bits = (shape.exponentBits + shape.fractionBits + 1) as Kind["bits"];
  return { bits, edges: floatEdges(shape), random: (random) => randomFloat(shape, random) };
}

function integerKind(bits: KindBits): Kind {
  return { bits, edges: integerEdges(bits), random: (random) => randomInteger(bits, random) };
}

/** Two of a kind in a word, the edges of one against random ones of the other as well. */
function packed(half: Kind): Kind {
  const all = half.edges;
  return {
    bits: 32,
    edges: all.map((edge, at) => edge | ((all[(at * 5 + 3) % all.length] ?? 0n) << 16n)),
    random: (random) => half.random(random) | (half.random(random) << 16n),
  };
}

function listed(bits: 16 | 32 | 64, values: readonly number[], limit: number): Kind {
  const edges = values.map((value) => BigInt.asUintN(bits, BigInt(value)));
  return { bits, edges, random: (random) => BigInt(random.below(limit)) };
}

const singles = new DataView(new ArrayBuffer(8));

/** f32 numbers drawn from a range. */
function singleRange(draw: (random: Random) => number, edges: readonly number[]): Kind {
  const bitsOf = (value: number): bigint => {
    singles.setFloat32(0, value);
    return BigInt(singles.getUint32(0));
  };
  return { bits: 32, edges: edges.map(bitsOf), random: (random) => bitsOf(draw(random)) };
}

function withoutZero(kind: Kind): Kind {
  const replace = (value: bigint): bigint => (value === 0n ? 11n : value);
  return {
    ...kind,
    edges: kind.edges.map(replace),
    random: (random) => replace(kind.random(random)),
  };
}

/** Halves among which are those that a tensor copy fills in. */
function withOutside(half: Kind): Kind {
  return {
    ...half,
    edges: [0x7ff7n, 0xfff7n, 0xffffn, 0x7ff6n, ...half.edges.slice(0, 12), 0x7fffn],
  };
}

/** Around one, and around the smallest normal number: products of both are flushed or not by a hair. */
function nearFlush(type: "f16" | "f32"): { readonly factor: Kind; readonly least: Kind } {
  const { bits } = floatKind(type);
  const { exponentBits, fractionBits } = floatShapes[type] as FloatShape;
  const one = BigInt((1 << (exponentBits - 1)) - 1) << BigInt(fractionBits);
  const least = 1n << BigInt(fractionBits);
  const sign = 1n << BigInt(bits - 1);
  const around = (value: bigint, from: number): readonly bigint[] =>
    Array.from({ length: 8 }, (_, at) => value + BigInt(from + at) + (at % 3 === 0 ? sign : 0n));
  const kind = (value: bigint, from: number): Kind => ({
    bits,
    edges: around(value, from),
    random: (random) => value + BigInt(random.below(16) + from) + sign * BigInt(random.below(2)),
  });
  return { factor: kind(one, -6), least: kind(least, 0) };
}

/** f64 numbers that f32 rounds to its smallest normal number, or just does not. */
function leastSingle(): Kind {
  const ulps = [-1, -0.5, -0.375, -0.25, -0.125, -(2 ** -20), 0, 2 ** -20, 0.5, 1];
  const view = new DataView(new ArrayBuffer(8));
  const bitsOf = (value: number): bigint => {
    view.setFloat64(0, value);
    return view.getBigUint64(0);
  };
  const near = (ulp: number, sign: number): bigint => bitsOf(sign * (2 ** -126 + ulp * 2 ** -149));
  return {
    bits: 64,
    edges: ulps.flatMap((ulp) => [near(ulp, 1), near(ulp, -1)]),
    random: (random) => near(random.uniform() * 2 - 1, random.below(2) === 0 ? 1 : -1),
  };
}

const angleEdges = [0, -0, 1e-30, 0.5, -0.5, 1, -1, 3.14159, -3.14159, 1.5708, 6.2831, -6.2831];

const kinds: { [name: string]: Kind } = {
  f16: floatKind("f16"),
  bf16: floatKind("bf16"),
  f32: floatKind("f32"),
  f64: floatKind("f64"),
  tf32: floatKind("f32"),
  f16x2: packed(floatKind("f16")),
  bf16x2: packed(floatKind("bf16")),
  u16x2: packed(integerKind(16)),
  s16x2: packed(integerKind(16)),
  e4m3x2: integerKind(16),
  e5m2x2: integerKind(16),
  shift: listed(32, [0, 1, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, -1, 1 << 30], 72),
  lane: listed(32, [0, 1, 31, 16, 5, 7, 30, 2], 32),
  angle: singleRange((random) => (random.uniform() * 2 - 1) * 2 * Math.PI, angleEdges),
  outsidef16: withOutside(floatKind("f16")),
  outsidebf16: withOutside(floatKind("bf16")),
  outsidef16x2: packed(withOutside(floatKind("f16"))),
  outsidebf16x2: packed(withOutside(floatKind("bf16"))),
  factorf16: nearFlush("f16").factor,
  leastf16: nearFlush("f16").least,
  factorf32: nearFlush("f32").factor,
  leastf32: nearFlush("f32").least,
  leastSingle: leastSingle(),
  signedZero16: listed(16, [0, 1 << 15], 1),
  signedZero32: listed(32, [0, 1 << 31], 1),
  moderate: singleRange(
    (random) => (random.uniform() * 2 - 1) * 2 ** (random.below(200) - 100),
    [0, -0, 1, -1, 3, 2 ** -100, 2 ** 100, -(2 ** -100), Infinity, -Infinity, NaN, 1.5],
  ),
  nonzero16: withoutZero(integerKind(16)),
  nonzero32: withoutZero(integerKind(32)),
  nonzero64: withoutZero(integerKind(64)),
};
kinds.b128 = integerKind(128);
for (const bits of [16, 32, 64] as const)
  for (const sign of ["u", "s", "b"]) kinds[`${sign}${bits}`] = integerKind(bits);
for (const sign of ["u", "s", "b"]) kinds[`${sign}8`] = integerKind(16);

export function isKind(name: string): boolean {
  return kinds[name] !== undefined;
}

export function kindBits(name: string): KindBits {
  return kindOf(name).bits;
}

function kindOf(name: string): Kind {
  const kind = kinds[name];
  if (kind === undefined) throw new Error(`no operands are known of kind ${name}`);
  return kind;
}

/** The seed of a stream follows from its name, so that programs do not change with their neighbours. */
function seedOf(text: string): number {
  let seed = 17;
  for (const character of text) seed = (Math.imul(seed, 31) + character.charCodeAt(0)) | 0;
  return seed;
}

/**
 * A stream of operands, little-endian. The edges of the first operand run fastest, those of the second
 * once for each of them, so that all pairs of edges meet; behind them everything is random.
 */
export function operandStream(
  name: string,
  position: number,
  count: number,
): Uint8Array<ArrayBuffer> {
  const key = `${name}@${position} × ${count}`;
  const known = streams.get(key) ?? makeStream(name, position, count);
  streams.set(key, known);
  return known.slice();
}

/** Streams that have been made; many programs have the same. */
const streams = new Map<string, Uint8Array<ArrayBuffer>>();

function makeStream(name: string, position: number, count: number): Uint8Array<ArrayBuffer> {
  const { bits, edges, random: draw } = kindOf(name);
  const random = new Random(seedOf(`${name}@${position}`));
  const bytes = new Uint8Array((count * bits) / 8);
  const view = new DataView(bytes.buffer);
  const step = edges.length ** Math.min(position, 1);
  const edgeCount = Math.min(edges.length ** 2, 0.85 * count);
  for (let index = 0; index < count; index++) {
    const edge = edges[Math.floor(index / step) % edges.length] ?? 0n;
    // The third operand is an edge now and then.
    const takesEdge = position < 2 ? index < edgeCount : random.below(3) === 0;
    const value = takesEdge
      ? position < 2
        ? edge
        : (edges[random.below(edges.length)] ?? 0n)
      : draw(random);
    if (bits === 16) view.setUint16(2 * index, Number(value), true);
    else if (bits === 32) view.setUint32(4 * index, Number(value), true);
    else
      for (let at = 0; at < bits; at += 64)
        view.setBigUint64((bits * index + at) / 8, BigInt.asUintN(64, value >> BigInt(at)), true);
  }
  return bytes;
}
