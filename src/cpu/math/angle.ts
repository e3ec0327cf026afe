/**
 * Reducing angles in vectors of f64: x = n·π/2 + r with |r| ≤ π/4, where n is wanted modulo 4. Near zero r is x less products of
 * n and parts of π/2 that are so short that the products are exact. Where a lane lies further away, x / 2π is computed
 * modulo 1 from pieces of 1 / 2π:
 *
 *   x·piece = whole turns + fraction        exact, and so is the fraction; whole turns count for nothing
 *
 * Sums of fractions are brought back to a turn, which is exact as well. Of f32 the pieces for all exponents are few. Of f64 those
 * that count are chosen by the exponent, x is taken in two halves, and sums are pairs.
 */
import { twoOverPiBits, twoOverPiLength } from "../../ptx/math/angle.ts";
import type { Angle } from "../../ptx/math/float-arithmetic.ts";
import { op, read } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import type { VectorArithmetic } from "./vector-arithmetic.ts";

/** π/2 as a sum of which the first part has 33 bits, and of 26 bits each. */
const halfPi = {
  32: [1.5707963267341256, 6.077100506506192e-11],
  64: [
    1.5707963407039642, -1.3909067675399456e-8, 6.123233932053594e-17, 6.368317178484799e-25,
    -1.4973849048591698e-33,
  ],
} as const;
/** n has so many bits at most that products with a part are exact. */
const nearUpTo = { 32: 2 ** 20, 64: 2 ** 26 } as const;

export function reduceAngle(f: VectorArithmetic, x: Expression): Angle<Expression> {
  const { builder } = f;
  const near = nearAngle(f, x);
  const quarters = builder.variable(near.quarters, "quarters");
  const rest = builder.variable(near.rest, "rest");
  const excess = builder.variable(near.excess, "excess");
  // NaN is not beyond the limit.
  const isFar = f.compare("gt", f.abs(x), nearUpTo[f.precision]);
  builder.if(op("v128.any_true", isFar), () => {
    const turns = f.precision === 32 ? turnsOfSingle(f, x) : turnsOfDouble(f, x);
    const far = angleOfTurns(f, turns);
    builder.set(quarters, f.select(isFar, far.quarters, near.quarters));
    builder.set(rest, f.select(isFar, far.rest, near.rest));
    builder.set(excess, f.select(isFar, far.excess, near.excess));
  });
  return { quarters: read(quarters), rest: read(rest), excess: read(excess) };
}

function nearAngle(f: VectorArithmetic, x: Expression): Angle<Expression> {
  const { rounder } = f.format;
  const quarters = f.add(f.mul(x, 2 / Math.PI), rounder);
  const n = f.sub(quarters, rounder);
  if (f.precision === 32) {
    const [first, second] = halfPi[32];
    // All products with n = 0 are -0, so that an x of -0 stays.
    const rest = f.madd(n, -second, f.madd(n, -first, x));
    return { quarters, rest, excess: f.constant(0) };
  }
  const [first, ...others] = halfPi[64];
  let rest = f.sub(x, f.mul(n, first));
  let lost: Expression | undefined;
  for (const part of others) {
    const { high, low } = f.exactSum(rest, f.mul(n, -part));
    rest = high;
    lost = lost === undefined ? low : f.add(lost, low);
  }
  const pair = roundPair(f, rest, lost ?? f.constant(0));
  // An x of -0 stays.
  return { quarters, ...pair, rest: f.select(f.compare("eq", n, 0), x, pair.rest) };
}

function roundPair(
  f: VectorArithmetic,
  high: Expression,
  low: Expression,
): Pick<Angle<Expression>, "rest" | "excess"> {
  const rest = f.add(high, low);
  return { rest, excess: f.sub(f.sub(rest, high), low) };
}

interface Turns {
  readonly high: Expression;
  readonly low: Expression;
}

/** The angle of a part of a turn, from -1/2 to 1/2. */
function angleOfTurns(f: VectorArithmetic, { high, low }: Turns): Angle<Expression> {
  const { rounder } = f.format;
  const fourfold = f.mul(high, 4);
  const quarters = f.add(fourfold, rounder);
  const part = f.sub(fourfold, f.sub(quarters, rounder));
  if (f.precision === 32)
    return { quarters, rest: f.mul(part, Math.PI / 2), excess: f.constant(0) };
  // What `low` adds may outweigh what is left of `high`.
  const sum = f.exactSum(part, f.mul(low, 4));
  const product = f.exactProduct(sum.high, Math.PI / 2);
  const small = f.add(f.mul(sum.low, Math.PI / 2), f.mul(sum.high, 6.123233995736766e-17));
  return { quarters, ...roundPair(f, product.high, f.add(product.low, small)) };
}

/** `count` pieces of 1 / 2π of so many bits each, as integers. */
function pieces(bits: number, count: number): readonly number[] {
  const mask = (1n << BigInt(bits)) - 1n;
  const length = BigInt(bits * count);
  const available = BigInt(twoOverPiLength);
  const long =
    length > available
      ? twoOverPiBits << (length - available)
      : twoOverPiBits >> (available - length);
  return Array.from({ length: count }, (_, index) =>
    Number((long >> BigInt(bits * (count - 1 - index))) & mask),
  );
}

function fraction(f: VectorArithmetic, turns: Expression): Expression {
  return f.sub(turns, f.nearest(turns));
}

const singleBits = 28;
const singlePieces = pieces(singleBits, 7);

/** x has 24 bits, so that its products with pieces of 28 are exact. */
function turnsOfSingle(f: VectorArithmetic, x: Expression): Turns {
  let sum = f.constant(0);
  singlePieces.forEach((piece, index) => {
    const part = fraction(f, f.mul(x, piece * 2 ** (-singleBits * (index + 1) - 2)));
    sum = fraction(f, f.add(sum, part));
  });
  return { high: sum, low: f.constant(0) };
}

const doubleBits = 24;
const doublePieces = pieces(doubleBits, 50);
/** So many from the first one on that has a product with fractions. */
const piecesTaken = 9;

/** The pieces from the one on that the exponent asks for; x less as many of their bits. */
function window(
  f: VectorArithmetic,
  x: Expression,
): {
  readonly scaled: Expression;
  readonly taken: readonly Expression[];
} {
  const { bias, place } = f.format;
  const word = f.words("and", f.highWord(x), 0x7fffffff);
  const exponent = f.floatOfWord(f.words("shr", word, place));
  const left = f.mul(f.sub(exponent, bias + 54), 1 / doubleBits);
  const skipped = f.clamp(f.floor(left), 0, undefined);
  let table: readonly Expression[] = doublePieces.map((piece) => f.constant(piece));
  let remaining = skipped;
  for (const move of [32, 16, 8, 4, 2, 1]) {
    const isTaken = f.compare("ge", remaining, move);
    remaining = f.sub(remaining, f.select(isTaken, move, 0));
    table = Array.from({ length: move - 1 + piecesTaken }, (_, index) =>
      f.select(isTaken, table[index + move] ?? 0, table[index] ?? 0),
    );
  }
  // 2^-(24·skipped), as bits: `skipped` is at most 40.
  const power = f.sub(bias, f.mul(skipped, doubleBits));
  const bits = f.words("shl", f.lowWord(f.add(power, f.format.rounder)), place);
  return { scaled: f.mul(x, f.withHighWord(bits)), taken: table };
}

function turnsOfDouble(f: VectorArithmetic, x: Expression): Turns {
  const { scaled, taken } = window(f, x);
  const splitter = f.mul(scaled, 2 ** 27 + 1);
  const upper = f.sub(splitter, f.sub(splitter, scaled));
  const lower = f.sub(scaled, upper);
  let high = f.constant(0);
  let low = f.constant(0);
  taken.forEach((piece, index) => {
    const weighted = f.mul(piece, 2 ** (-doubleBits * (index + 1) - 2));
    for (const half of [upper, lower]) {
      const sum = f.exactSum(high, fraction(f, f.mul(half, weighted)));
      high = fraction(f, sum.high);
      low = f.add(low, sum.low);
    }
  });
  return { high, low };
}
