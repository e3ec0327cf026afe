/**
 * Layouts of tensor memory: 128 lanes of 512 columns, 32 bits each. They say at which lane, column and
 * bit an element of a tile [rows, columns] lies.
 *
 *   | text                 | for                             | lane                        | column           |
 *   |----------------------|---------------------------------|-----------------------------|------------------|
 *   | tmem(full, pack p)   | 128 rows; p elements a column   | row                         | c / p            |
 *   | tmem(half, pack p)   | 64 rows of one block            | 32·(row / 16) + row % 16    | c / p            |
 *   | tmem(pair, pack p)   | 64 rows of each of two blocks, n columns | row + 64·(c ≥ n/2) | (c mod n/2) / p  |
 *   | tmem(twice, pack p)  | a left factor of such a product | row, and row + 64      | c / p            |
 *   | tmem(scales)         | 8-bit scales [rows, blocks of k] | row % 32, and 32, 64, 96 on | see below        |
 *   | tmem(halved scales)  | those of [2 · 128 columns, blocks] of such a product | 64·(row / 128) + row % 32, and 32 on | as of one atom of rows |
 *
 * Packed elements start at bit (c mod p) · 32 / p of their column; with p = 1 an element of 16 bits has a
 * column of its own. Scales come in atoms of 128 rows × 4 bytes. In atom (i, j), row r of 128 and scale
 * k of 4 lie in column 4·(i + atoms of rows · j) + r / 32, byte k, in each quarter of the lanes:
 *
 *   | row, scale | lanes          | column | byte |      two atoms of rows, [256, 8]
 *   |------------|----------------|--------|------|
 *   | 0, 0       | 0, 32, 64, 96  | 0      | 0    |
 *   | 33, 2      | 1, 33, 65, 97  | 1      | 2    |
 *   | 128, 0     | 0, 32, 64, 96  | 4      | 0    |
 *   | 0, 4       | 0, 32, 64, 96  | 8      | 0    |
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { optionText } from "../../support/options.ts";
import { namedLayouts, tcgen05Collective } from "./named-layouts.ts";
import { sameLayout } from "./register-layout.ts";
import type { RegisterLayout } from "./register-layout.ts";

export const tmemColumnLimit = 512;

/** Tiles of numbers, as the accumulators and operands of tcgen05 lie. */
export interface TmemMatrix {
  /** How rows of a tile are spread over the lanes of tensor memory. */
  readonly kind: "full" | "half" | "pair" | "twice";
  /** Elements that share a column. */
  readonly packing: number;
  /** The layout as text, which `parseTmemLayout` reads. */
  readonly text: string;
}

export interface TmemScales {
  /** How rows of a tile are spread over the lanes of tensor memory. */
  readonly kind: "scales";
  /** Whether either half of the lanes has scales of its own, 128 rows of 256, instead of all the same. */
  readonly isHalved: boolean;
  /** The layout as text, which `parseTmemLayout` reads. */
  readonly text: string;
}

/** How a tile lies in tensor memory. */
export type TmemLayout = TmemMatrix | TmemScales;
export type TmemKind = TmemLayout["kind"];

/** Where an element lies; several lanes where it is replicated. */
export interface TmemPlace {
  /** The lanes (rows) of tensor memory; several where it is replicated. */
  readonly lanes: readonly number[];
  /** The column. */
  readonly column: number;
  /** First bit in the column. */
  readonly bit: number;
}

export const tmemScales: TmemScales = Object.freeze({
  kind: "scales",
  isHalved: false,
  text: "tmem(scales)",
});
export const tmemHalvedScales: TmemScales = Object.freeze({
  kind: "scales",
  isHalved: true,
  text: "tmem(halved scales)",
});

export function tmemMatrix(kind: TmemMatrix["kind"], packing = 1): TmemMatrix {
  if (![1, 2, 4, 8].includes(packing))
    throw new TilewrightError({
      code: "TW6008",
      message: `${packing} elements cannot share a column`,
      expected: "1, 2, 4 or 8",
      found: String(packing),
    });
  const text = packing === 1 ? `tmem(${kind})` : `tmem(${kind}, pack ${packing})`;
  return Object.freeze({ kind, packing, text });
}

/** Reads a layout of tensor memory from its text, such as `"tmem(full)"`. */
export function parseTmemLayout(text: string): TmemLayout {
  const isText = typeof text === "string";
  if (isText && /^\s*tmem\(\s*scales\s*\)\s*$/.test(text)) return tmemScales;
  if (isText && /^\s*tmem\(\s*halved\s+scales\s*\)\s*$/.test(text)) return tmemHalvedScales;
  const match = !isText
    ? null
    : /^\s*tmem\(\s*(full|half|pair|twice)\s*(?:,\s*pack (\d+)\s*)?\)\s*$/.exec(text);
  if (match === null) {
    throw new TilewrightError({
      code: "TW6001",
      message: `${optionText(text)} is not the text of a layout in tensor memory`,
      expected:
        "tmem(full), tmem(half), tmem(pair), tmem(twice), each with pack p, tmem(scales) or tmem(halved scales)",
      found: optionText(text),
    });
  }
  return tmemMatrix(match[1] as TmemMatrix["kind"], Number(match[2] ?? 1));
}

const rowsOf: { readonly [K in TmemMatrix["kind"]]: number } = {
  ...{ full: 128, half: 64, pair: 64, twice: 64 },
};

/** Why tiles of this shape have no place in the layout; undefined where they have. */
export function tmemProblem(
  layout: TmemLayout,
  shape: readonly number[],
  bits: number,
): string | undefined {
  const [rows = 1, columns = 1] = shape;
  if (shape.length !== 2) return `a tile of ${shape.length} axes has no rows and columns`;
  if (layout.kind === "scales") {
    if (bits !== 8) return `scales have 8 bits, not ${bits}`;
    if (layout.isHalved && rows !== 256) return `${layout.text} has 256 rows, not ${rows}`;
    if (rows % 128 !== 0 || columns % 4 !== 0)
      return `scales come in atoms of 128 × 4, which do not divide [${rows}, ${columns}]`;
  } else {
    if (rows !== rowsOf[layout.kind])
      return `${layout.text} has ${rowsOf[layout.kind]} rows, not ${rows}`;
    if (bits * layout.packing > 32)
      return `${layout.packing} elements of ${bits} bits do not fit a column of 32`;
    const granule = layout.packing * (layout.kind === "pair" ? 2 : 1);
    if (columns % granule !== 0) return `${columns} columns are no multiple of ${granule}`;
  }
  const needed = columnsOf(layout, rows, columns);
  return needed <= tmemColumnLimit
    ? undefined
    : `the tile takes ${needed} columns of ${tmemColumnLimit}`;
}

/** Atoms of rows that lie beside each other; those of halves lie one above the other. */
function atomsBeside({ isHalved }: TmemScales, rows: number): number {
  return isHalved ? 1 : rows / 128;
}

function columnsOf(layout: TmemLayout, rows: number, columns: number): number {
  if (layout.kind === "scales") return atomsBeside(layout, rows) * columns;
  return columns / layout.packing / (layout.kind === "pair" ? 2 : 1);
}

function requireFit(layout: TmemLayout, shape: readonly number[], bits: number): void {
  const message = tmemProblem(layout, shape, bits);
  if (message === undefined) return;
  throw new TilewrightError({
    code: "TW6008",
    message,
    expected: "a tile of rows and columns that tensor memory holds in this layout",
    found: `[${shape.join(", ")}] of ${bits} bits in ${layout.text}`,
  });
}

/** Columns of 32 bits that a tile takes. */
export function tmemColumns(layout: TmemLayout, shape: readonly number[], bits: number): number {
  requireFit(layout, shape, bits);
  return columnsOf(layout, shape[0] ?? 1, shape[1] ?? 1);
}

type Placing = (
  layout: TmemLayout,
  row: number,
  column: number,
  shape: readonly number[],
) => TmemPlace;

function packed(layout: TmemLayout, lane: number, column: number): TmemPlace {
  const packing = layout.kind === "scales" ? 4 : layout.packing;
  return {
    lanes: [lane],
    column: Math.floor(column / packing),
    bit: (column % packing) * (32 / packing),
  };
}

const placings: { readonly [K in TmemKind]: Placing } = {
  full: (layout, row, column) => packed(layout, row, column),
  half: (layout, row, column) => packed(layout, 32 * (row >> 4) + (row & 15), column),
  pair: (layout, row, column, shape) => {
    const half = (shape[1] ?? 2) / 2;
    return packed(layout, row + (column < half ? 0 : 64), column % half);
  },
  twice: (layout, row, column) => ({ ...packed(layout, row, column), lanes: [row, row + 64] }),
  scales: (layout, row, column, shape) => {
    const isHalved = layout.kind === "scales" && layout.isHalved;
    const beside = isHalved ? 0 : row >> 7;
    const atom = beside + (isHalved ? 1 : (shape[0] ?? 128) / 128) * (column >> 2);
    const quarters = isHalved ? [0, 32].map((each) => 64 * (row >> 7) + each) : [0, 32, 64, 96];
    return {
      lanes: quarters.map((quarter) => quarter + (row & 31)),
      column: 4 * atom + ((row & 127) >> 5),
      bit: 8 * (column & 3),
    };
  },
};

/** Where the element at (row, column) of a tile lies, relative to the allocation's first column. */
export function tmemPlace(
  layout: TmemLayout,
  shape: readonly number[],
  bits: number,
  element: number,
): TmemPlace {
  requireFit(layout, shape, bits);
  const columns = shape[1] ?? 1;
  return placings[layout.kind](layout, Math.floor(element / columns), element % columns, shape);
}

/** The element that begins at a lane, column and bit; undefined where none does. */
export function tmemElement(
  layout: TmemLayout,
  shape: readonly number[],
  bits: number,
  { lane, column, bit }: { readonly lane: number; readonly column: number; readonly bit: number },
): number | undefined {
  requireFit(layout, shape, bits);
  const [rows = 1, columns = 1] = shape;
  if (column >= columnsOf(layout, rows, columns)) return undefined;
  const found =
    layout.kind === "scales"
      ? scaleAt(layout, rows, lane, column, bit)
      : matrixAt(layout, columns, lane, column, bit);
  return found === undefined ? undefined : found.row * columns + found.column;
}

interface Coordinates {
  readonly row: number;
  readonly column: number;
}

function scaleAt(
  layout: TmemScales,
  rows: number,
  lane: number,
  column: number,
  bit: number,
): Coordinates | undefined {
  if (bit % 8 !== 0) return undefined;
  const atom = column >> 2;
  const perColumn = atomsBeside(layout, rows);
  const above = layout.isHalved ? lane >> 6 : atom % perColumn;
  return {
    row: 128 * above + 32 * (column & 3) + (lane & 31),
    column: 4 * Math.floor(atom / perColumn) + bit / 8,
  };
}

function matrixAt(
  { kind, packing }: TmemMatrix,
  columns: number,
  lane: number,
  column: number,
  bit: number,
): Coordinates | undefined {
  const inside = (bit * packing) / 32;
  if (!Number.isInteger(inside)) return undefined;
  const along = column * packing + inside;
  if (kind === "full") return { row: lane, column: along };
  if (kind === "twice") return { row: lane & 63, column: along };
  if (kind === "pair") return { row: lane & 63, column: along + (lane < 64 ? 0 : columns / 2) };
  return (lane & 31) < 16 ? { row: 16 * (lane >> 5) + (lane & 15), column: along } : undefined;
}

/** Shapes of `tcgen05.ld` and `tcgen05.st`: lanes of tensor memory and bits of each a warp moves. */
export type TmemAccess = "32x32b" | "16x256b";

/**
 * The instruction that moves a tile between tensor memory and registers in this layout, whose elements
 * take a register of 32 bits each or fill one together; undefined where there is none.
 */
export function tmemAccess(
  layout: TmemLayout,
  registers: RegisterLayout,
  shape: readonly number[],
): TmemAccess | undefined {
  if (layout.kind === "scales" || shape.length !== 2) return undefined;
  if (layout.kind === "full" && sameLayout(registers, namedLayouts.tmemNative)) return "32x32b";
  if (layout.packing !== 1) return undefined;
  const fragments: { readonly [K in TmemMatrix["kind"]]: () => RegisterLayout | undefined } = {
    full: () => namedLayouts.tcgen05,
    half: () => namedLayouts.wgmma,
    pair: () => pairFragment(shape[1] ?? 1),
    twice: () => undefined,
  };
  const fragment = fragments[layout.kind]();
  return fragment !== undefined && sameLayout(registers, fragment) ? "16x256b" : undefined;
}

function pairFragment(columns: number): RegisterLayout | undefined {
  const power = columns >= 16 && (columns & (columns - 1)) === 0;
  return power ? tcgen05Collective(columns) : undefined;
}
