/**
 * Tiles of 16 bits in shared memory by `ldmatrix` and `stmatrix`: four matrices of 8 × 8 an instruction
 * instead of four instructions for a word each. A matrix has rows of 16 bytes; the hardware gives lane l
 * the pair in row l / 4, column 2 (l % 4), which is how the accumulator of wgmma lies, and takes the
 * address of row l % 8 of matrix l / 8 from lane l.
 *
 *   who owns what in the bytes of a tile        plain                .trans
 *   the pair of a word, L0, L1                  2, 4 and 8 bytes     anything: rows
 *   L2, L3, L4                                  anything: rows       2, 4 and 8 bytes
 *
 *   lane bits of an address:   0, 1, 2   the row         what the owners of rows add
 *                              3, 4      the matrix      what the next word, and the one after, add
 */
import type { TileParts } from "./lane-coordinates.ts";
import type { SharedPlaces } from "./shared-addresses.ts";
import type { DType } from "../../formats/dtype.ts";

const rowBits = 128;
const elementBits = 16;

/** A tile as rows of matrices. */
export interface MatrixRows {
  readonly transposed: boolean;
  /** What the three bits of a row's number add. */
  readonly ofRow: readonly [number, number, number];
  /** The place of the first element of each word. */
  readonly starts: readonly number[];
}

/** Undefined where the tile does not lie in rows of 16 bytes. */
export function matrixRows(
  { bits }: DType,
  parts: TileParts,
  places: SharedPlaces,
): MatrixRows | undefined {
  if (bits !== elementBits || !everyLaneHolds(parts)) return undefined;
  const rows = rowsOf(places);
  if (rows === undefined) return undefined;
  const { ofRow, starts } = rows;
  const others = [...ofRow, ...places.ofBits.slice(5), ...starts, ...places.ofMoves.flat()];
  return others.some((place) => place % rowBits !== 0) ? undefined : rows;
}

function everyLaneHolds({ axes, registers }: TileParts): boolean {
  const whole = axes.every(
    ({ most, extent, ofRegister }) => Math.max(...ofRegister) + most < extent,
  );
  return whole && registers % 2 === 0;
}

function rowsOf({ ofBits, ofRegister }: SharedPlaces): MatrixRows | undefined {
  const [l0 = 0, l1 = 0, l2 = 0, l3 = 0, l4 = 0] = ofBits;
  const pair = (ofRegister[1] ?? 0) - (ofRegister[0] ?? 0);
  const alike = ofRegister.every(
    (bits, register) =>
      register % 2 === 0 || (bits ?? 0) - (ofRegister[register - 1] ?? 0) === pair,
  );
  if (!alike || pair < 0) return undefined;
  const starts = ofRegister.filter((_, register) => register % 2 === 0).map((bits) => bits ?? 0);
  if (pair === elementBits && l0 === 2 * elementBits && l1 === 4 * elementBits)
    return { transposed: false, ofRow: [l2, l3, l4], starts };
  if (l2 === elementBits && l3 === 2 * elementBits && l4 === 4 * elementBits)
    return { transposed: true, ofRow: [pair, l0, l1], starts };
  return undefined;
}
