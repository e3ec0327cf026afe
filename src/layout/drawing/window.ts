/**
 * The part of a tile that a drawing shows. A tile of one axis runs on from line to line; of more than two,
 * the last two axes are shown at the start of the others. A tile too large to be shown is cut to an atom
 * of its layout, since the rest repeats it.
 */
import { product } from "../algebra/index-bits.ts";
import { atomExtents } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";

export interface Window {
  readonly rows: number;
  readonly columns: number;
  /** The number of the element at (r, c) is r · pitch + c. */
  readonly pitch: number;
  /** What the rows are called, one by one. */
  readonly rowLabels: readonly string[];
  /** Says what is left out; empty where all is shown. */
  readonly note: string;
}

/** The most that a window may show. */
export interface WindowLimits {
  readonly rows: number;
  readonly columns: number;
}

/** Elements to a line where the tile has one axis. */
const lineLength = 16;
/** Tiles up to this are shown whole. */
const small: WindowLimits = { rows: 64, columns: 16 };
const narrow: WindowLimits = { rows: 128, columns: 8 };
const most: WindowLimits = { rows: 64, columns: 32 };

/** The start of the tile, within the limits. */
export function cutWindow(shape: readonly number[], limits: WindowLimits): Window {
  const lines = shape.length < 2;
  const all = product(shape);
  const pitch = lines ? Math.min(all, limits.columns) : (shape.at(-1) ?? 1);
  const rows = Math.min(lines ? Math.ceil(all / pitch) : (shape.at(-2) ?? 1), limits.rows);
  const columns = Math.min(pitch, limits.columns);
  const shown = Math.min(all, rows * columns);
  const window = lines ? `the first ${shown}` : `${rows} × ${columns}`;
  return {
    rows,
    columns,
    pitch,
    rowLabels: Array.from({ length: rows }, (_, row) => `${lines ? row * pitch : row}`),
    note: shown === all ? "" : `shown: ${window} of ${shape.join(" × ")}`,
  };
}

/** The window of a register layout: the whole tile if it is small, else an atom. */
export function layoutWindow(layout: RegisterLayout, shape: readonly number[]): Window {
  if (layout.kind === "splat") return cutWindow(shape, { rows: 1, columns: 1 });
  const atom = atomExtents(layout, shape);
  if (shape.length < 2) {
    const rows = Math.ceil(Math.max(64, atom[0] ?? 1) / lineLength);
    return cutWindow(shape, { rows: Math.min(rows, most.rows), columns: lineLength });
  }
  const tile = { rows: shape.at(-2) ?? 1, columns: shape.at(-1) ?? 1 };
  if ([small, narrow].some((limits) => within(tile, limits))) return cutWindow(shape, tile);
  const wanted =
    layout.kind === "flat"
      ? { rows: Math.max(8, Math.ceil((atom[0] ?? 1) / tile.columns)), columns: tile.columns }
      : { rows: Math.max(8, atom.at(-2) ?? 1), columns: Math.max(8, atom.at(-1) ?? 1) };
  const limits = wanted.columns <= narrow.columns ? narrow : most;
  return cutWindow(shape, {
    rows: Math.min(wanted.rows, limits.rows),
    columns: Math.min(wanted.columns, limits.columns),
  });
}

/** The larger of the windows of two layouts. */
export function relayoutWindow(
  before: RegisterLayout,
  after: RegisterLayout,
  shape: readonly number[],
): Window {
  const [first, second] = [layoutWindow(before, shape), layoutWindow(after, shape)];
  return first.rows * first.columns >= second.rows * second.columns ? first : second;
}

/** The numbers of the elements in the window's cells; undefined behind the end of the last line. */
export function windowElements(
  { rows, columns, pitch }: Window,
  shape: readonly number[],
): readonly (readonly (number | undefined)[])[] {
  const all = product(shape);
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_, column) => {
      const element = row * pitch + column;
      return element < all ? element : undefined;
    }),
  );
}

function within(window: WindowLimits, limits: WindowLimits): boolean {
  return window.rows <= limits.rows && window.columns <= limits.columns;
}
