/**
 * Functions of floats that kernels lack, over tiles of f64. Narrower formats are widened, computed and rounded once, so
 * their results are correctly rounded but for rare ties.
 *
 * | function      | how                                                                        |
 * |---------------|----------------------------------------------------------------------------|
 * | asin, acos    | atan2 of x and √((1 - x)(1 + x))                                           |
 * | sinh, cosh    | expm1, exp; beyond 20 the square of exp(x / 2), which overflows late       |
 * | asinh …       | log1p of what keeps the digits near the zero                               |
 * | cbrt          | exp(log / 3) and a step of Newton                                          |
 */
import { f32, f64, u32 } from "../../../formats/dtype.ts";
import type { Tile } from "../../../lang/index.ts";
import { constantTile, select, withSignOf } from "./bits.ts";

export type UnaryTile = (x: Tile) => Tile;

/** The function in f64, rounded to the format of the operand. */
export function inWide(f: UnaryTile): UnaryTile {
  return (x) => (x.dtype.name === "f64" ? f(x) : f(x.cast(f64)).cast(x.dtype));
}

/**
 * f64 as f32, cut off, with an odd last bit where something was: what is rounded to less than half of its bits next comes out as if it had
 * been rounded from f64 at once. To the nearest f32, what lies next to the middle of two numbers of FP8 would be the middle.
 */
export function toOdd(x: Tile): Tile {
  const near = x.cast(f32);
  const code = near.bitcast(u32);
  const back: Tile = near.cast(f64);
  const toZero = select(back.abs().gt(x.abs()), code.sub(1), code);
  return select(back.eq(x), code, toZero.or(1)).bitcast(f32);
}

export function wide(value: number): Tile {
  return constantTile(f64, value);
}

const one = (): Tile => wide(1);

/** √(1 - x²) without losing what is near 1. */
function cofunction(x: Tile): Tile {
  return one().sub(x).mul(x.add(1)).sqrt();
}

function hyperbolicSine(x: Tile): Tile {
  const size = x.abs();
  const grown = size.expm1();
  const near = grown.add(grown.div(grown.add(1))).mul(0.5);
  return withSignOf(select(size.lt(20), near, halfSquare(size)), x);
}

function hyperbolicCosine(x: Tile): Tile {
  const size = x.abs();
  const grown = size.exp();
  return select(size.lt(20), grown.add(one().div(grown)).mul(0.5), halfSquare(size));
}

/** e^x / 2, which overflows only where the result does. */
function halfSquare(x: Tile): Tile {
  const root = x.mul(0.5).exp();
  return root.mul(0.5).mul(root);
}

const large = 1e150;

function logOfTwice(x: Tile): Tile {
  return x.log().add(Math.LN2);
}

function hyperbolicArcSine(x: Tile): Tile {
  const size = x.abs();
  const square = size.mul(size);
  const near = size.add(square.div(square.add(1).sqrt().add(1))).log1p();
  return withSignOf(select(size.gt(large), logOfTwice(size), near), x);
}

function hyperbolicArcCosine(x: Tile): Tile {
  const above = x.sub(1);
  const near = above.add(above.mul(above.add(2)).sqrt()).log1p();
  const value = select(x.gt(large), logOfTwice(x), near);
  return select(x.lt(1), wide(NaN), value);
}

function hyperbolicArcTangent(x: Tile): Tile {
  const size = x.abs();
  const value = size.mul(2).div(one().sub(size)).log1p().mul(0.5);
  return withSignOf(value, x);
}

function cubeRoot(x: Tile): Tile {
  const size = x.abs();
  const start = size
    .log()
    .mul(1 / 3)
    .exp();
  const square = start.mul(start);
  const better = start.sub(start.sub(size.div(square)).mul(1 / 3));
  const isPlain = size.gt(0).and(size.lt(Infinity));
  return withSignOf(select(isPlain, better, size), x);
}

export const functionTiles = {
  acos: inWide((x) => cofunction(x).atan2(x)),
  asin: inWide((x) => x.atan2(cofunction(x))),
  atan: inWide((x) => x.atan()),
  acosh: inWide(hyperbolicArcCosine),
  asinh: inWide(hyperbolicArcSine),
  atanh: inWide(hyperbolicArcTangent),
  cosh: inWide(hyperbolicCosine),
  sinh: inWide(hyperbolicSine),
  cbrt: inWide(cubeRoot),
} satisfies { readonly [name: string]: UnaryTile };
