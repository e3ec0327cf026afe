/**
 * TMA boxes of positions: some images, rows and columns of the result. All three are powers of two, and some box always wastes little, since
 * the batch makes up for short rows:
 *
 *   56 × 56   [2, 8, 8]      28 × 28   [8, 4, 4]      14 × 14   [32, 2, 2]
 */
import type { Triple } from "./problem.ts";

export type Box = readonly [images: number, rows: number, columns: number];

/** Powers of two up to `most`. */
export function powers(most: number): readonly number[] {
  return Array.from({ length: Math.log2(most) + 1 }, (_, exponent) => 2 ** exponent);
}

/** Boxes that cover all places of a result. */
export function boxesAcross(batch: number, [depth, height, width]: Triple, box: Box): number {
  const [images, rows, columns] = box;
  return Math.ceil(batch / images) * depth * Math.ceil(height / rows) * Math.ceil(width / columns);
}

/** The box of so many places whose tiles overhang the result least; of equal ones the widest. */
export function tightestBox(places: number, batch: number, output: Triple): Box {
  let best: Box = [1, 1, places];
  let least = Infinity;
  for (const columns of powers(places).toReversed())
    for (const rows of powers(places / columns).toReversed()) {
      const box: Box = [places / columns / rows, rows, columns];
      const count = boxesAcross(batch, output, box);
      if (count < least) [best, least] = [box, count];
    }
  return best;
}

/** The box of so many places that overhangs no rows and no columns, as wide as it can be. */
export function exactBox(places: number, [, height, width]: Triple): Box {
  const dividing = (extent: number): number =>
    powers(places).findLast((power) => extent % power === 0) ?? 1;
  const columns = Math.min(dividing(width), 8);
  const rows = Math.min(dividing(height), places / columns);
  return [places / columns / rows, rows, columns];
}

/** The part of a box that each of two threads has: half of its first axis that can be halved. */
export function halfBox([images, rows, columns]: Box): Box {
  if (images > 1) return [images / 2, rows, columns];
  return rows > 1 ? [images, rows / 2, columns] : [images, rows, columns / 2];
}
