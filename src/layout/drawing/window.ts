/**
 * The part of a tile that a drawing shows. Tiles of one axis are one row; of more than two, the last two
 * axes are shown at the start of the others. Large tiles are cut to an atom of their layout, since the
 * rest repeats it.
 */
import { product } from "../algebra/bits.ts";
import { atomExtents } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";

export interface Window {
  readonly rows: number;
  readonly columns: number;
  /** Columns of the whole tile: the number of the element at (r, c) is r · pitch + c. */
  readonly pitch: number;
  /** Says what is left out; empty where all is shown. */
  readonly note: string;
}

const mostRows = 64;
const mostColumns = 32;

/** Cuts the tile to `limits`, or further where the drawing has no more room. */
export function cutWindow(
  shape: readonly number[],
  limits: { readonly rows: number; readonly columns: number },
): Window {
  const [allRows, pitch] = [shape.at(-2) ?? 1, shape.at(-1) ?? 1];
  const rows = Math.min(allRows, limits.rows, mostRows);
  const columns = Math.min(pitch, limits.columns, mostColumns);
  const complete = rows * columns === product(shape);
  const note = complete ? "" : `shown: ${rows} × ${columns} of ${shape.join(" × ")}`;
  return { rows, columns, pitch, note };
}

/** The window of a register layout: at least 8 × 8, else an atom. */
export function layoutWindow(layout: RegisterLayout, shape: readonly number[]): Window {
  if (layout.kind === "splat") return cutWindow(shape, { rows: 1, columns: 1 });
  const atom = atomExtents(layout, shape);
  if (layout.kind === "flat") {
    const columns = shape.at(-1) ?? 1;
    const rows = Math.ceil((atom[0] ?? 1) / columns);
    return cutWindow(shape, { rows: Math.max(8, rows), columns: mostColumns });
  }
  return cutWindow(shape, {
    rows: Math.max(8, atom.at(-2) ?? 1),
    columns: Math.max(8, atom.at(-1) ?? 1),
  });
}
