/**
 * Where products find and leave their matrices in tensor memory: which lane and column of a block's 128 × 512 cells
 * belong to which element. Row m counts within the block, n over all columns of the product:
 *
 * | rows of the block, and how            | element (m, n) of D                            | placement |
 * |---------------------------------------|------------------------------------------------|-----------|
 * | 128                                   | lane m, column n                               | rows      |
 * | 64 of one block; of a pair, sparse    | lane 32 · (m / 16) + m mod 16, column n        | spread    |
 * | 64 of a pair; 64 by `.ws`             | lane m + 64 · (n ≥ N/2), column n mod N/2      | banks of 64 |
 * | 32 by `.ws`                           | lane m + 32 · (n / (N/4)), column n mod N/4    | banks of 32 |
 *
 * A in tensor memory lies by the same rows. With banks, each bank multiplies its own columns of D by the A in its
 * own lanes, so that A is there once for each bank.
 */

export type TmemPlacement = "rows" | "spread" | "banks of 64" | "banks of 32";

export interface ProductRows {
  /** M of the instruction. */
  readonly m: number;
  /** Whether a pair of blocks makes it. */
  readonly isPair: boolean;
  readonly isWeightStationary: boolean;
  readonly isSparse: boolean;
}

export function tmemPlacement(rows: ProductRows): TmemPlacement {
  const { m, isPair, isWeightStationary, isSparse } = rows;
  const own = isPair ? m / 2 : m;
  if (own === 128) return "rows";
  if (own === 32) return "banks of 32";
  if (isWeightStationary || (isPair && !isSparse)) return "banks of 64";
  return "spread";
}

/** Groups of lanes that hold different columns of D. */
export function tmemBanks(placement: TmemPlacement): 1 | 2 | 4 {
  if (placement === "banks of 64") return 2;
  return placement === "banks of 32" ? 4 : 1;
}

/** The lane of a row in a bank. */
export function tmemRowLane(placement: TmemPlacement, row: number, bank = 0): number {
  if (placement === "spread") return 32 * (row >> 4) + (row & 15);
  return row + (128 / tmemBanks(placement)) * bank;
}

/** Where row `row` and column `column` of D lie, of `columns` columns. */
export function tmemProductCell(
  placement: TmemPlacement,
  columns: number,
  row: number,
  column: number,
): { readonly row: number; readonly column: number } {
  const perBank = columns / tmemBanks(placement);
  const bank = Math.floor(column / perBank);
  return { row: tmemRowLane(placement, row, bank), column: column - bank * perBank };
}

/* ---- scales ---- */

/**
 * The byte of a scale: number `vector` of the scales that an instruction takes of a row, beginning at byte `id`. It
 * is replicated over the quarters of lanes; `isSplit` is for the scales of B of a pair with M = 128, of which either
 * half of the lanes has N/2 columns:
 *
 *   [256 rows, 4 scales]   row 33, scale 2   ->   column 1, byte 2, lanes 1, 33, 65, 97
 *                          row 129, scale 2  ->   column 4, …   further scales behind 8 columns
 */
export function tmemScaleByte(
  rows: number,
  row: number,
  id: number,
  vector: number,
  isSplit = false,
): { readonly lanes: readonly number[]; readonly column: number; readonly byte: number } {
  const perHalf = isSplit ? rows / 2 : rows;
  const half = Math.floor(row / perHalf);
  const within = row - half * perHalf;
  const word = (id + vector) >> 2;
  const copies = isSplit ? [64 * half, 64 * half + 32] : [0, 32, 64, 96];
  return {
    lanes: copies.map((copy) => copy + (within & 31)),
    column: (within >> 5) + word * 4 * Math.ceil(perHalf / 128),
    byte: (id + vector) & 3,
  };
}

/* ---- metadata of a sparse A ---- */

/**
 * The four bits that tell which elements of a group of a row a sparse A has. Of 16-bit elements and tf32 an instruction has 8
 * groups a row, of narrower ones 16:
 *
 * | groups | lane                                                        | column                   | nibble                    |
 * |--------|-------------------------------------------------------------|--------------------------|---------------------------|
 * | 8      | 32·(m / 32) + 16·((m / 16) mod 2) + m mod 8 + 8·(group / 4) | base + selector          | 4·((m / 8) mod 2) + group mod 4 |
 * | 16     | m                                                           | base + group / 8         | group mod 8               |
 *
 * Rows of a spread placement keep within their 16 lanes.
 */
export function tmemMetadataNibble(
  placement: TmemPlacement,
  groups: 8 | 16,
  row: number,
  group: number,
  selector: number,
): { readonly row: number; readonly column: number; readonly nibble: number } {
  if (groups === 16)
    return { row: tmemRowLane(placement, row), column: group >> 3, nibble: group & 7 };
  return {
    row: tmemRowLane(placement, row & ~15) + (row & 7) + 8 * (group >> 2),
    column: selector,
    nibble: 4 * ((row >> 3) & 1) + (group & 3),
  };
}

/* ---- copies from shared memory ---- */

export const tmemCopyShapes = [
  "128x256b",
  "128x128b",
  "64x128b.02_13",
  "64x128b.01_23",
  "32x128b",
  "4x256b",
] as const;
export type TmemCopyShape = (typeof tmemCopyShapes)[number];

export interface TmemCopy {
  readonly rows: number;
  /** Words of 32 bits of a row, which take a column each. */
  readonly words: 4 | 8;
  /** The lanes that a row goes to, relative to the address. */
  lanes(row: number): readonly number[];
}

export const tmemCopies: { readonly [S in TmemCopyShape]: TmemCopy } = {
  "128x256b": { rows: 128, words: 8, lanes: (row) => [row] },
  "128x128b": { rows: 128, words: 4, lanes: (row) => [row] },
  "64x128b.02_13": { rows: 64, words: 4, lanes: (row) => [row, row + 64] },
  "64x128b.01_23": {
    rows: 64,
    words: 4,
    lanes: (row) => [0, 32].map((copy) => (row & 31) + 64 * (row >> 5) + copy),
  },
  "32x128b": { rows: 32, words: 4, lanes: (row) => [0, 32, 64, 96].map((copy) => row + copy) },
  "4x256b": { rows: 4, words: 8, lanes: (row) => [32 * row] },
};
