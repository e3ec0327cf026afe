/** Functions computed in f64, and how to round from there. */
import { f32, f64, u32 } from "../../../formats/dtype.ts";
import type { Tile } from "../../../lang/index.ts";
import { constantTile, select } from "./bits.ts";

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
