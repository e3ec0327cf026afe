/**
 * Layouts from nested tilings, for those who think in tiles rather than bits. Each tile splits the last
 * axes of what there is so far; at the end some axes are dealt to warps, some to lanes, one is the vector
 * that lies in neighbouring registers, and the rest are further registers, the last fastest.
 *
 *   tiling([[64, 8], [16, 8], [8, 8], [2]], { warps: [-7], lanes: [-3, -2], vector: -1 })
 *
 *   | after tile | axes inside the first tile            |
 *   |------------|---------------------------------------|
 *   | 64 × 8     | 64, 8                                 |
 *   | 16 × 8     | 4, 1, 16, 8                           |
 *   | 8 × 8      | 4, 1, 2, 1, 8, 8                      |
 *   | 2          | 4, 1, 2, 1, 8, 4, 2                   |
 *
 * Counted from the end, axis -7 are the four warps, -3 and -2 are 8 · 4 lanes with the last fastest, -1
 * is the vector of two: the wgmma accumulator, `(L2 L3 L4 R1 W0 W1 | R0 L0 L1)`.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import {
  bitRun,
  exponentOf,
  laneBit,
  laneBits,
  registerBit,
  warpBit,
  warpBits,
} from "./index-bits.ts";
import type { Bit } from "./index-bits.ts";
import { axesLayout } from "./register-layout.ts";
import type { DistributedLayout } from "./register-layout.ts";

/** An axis of the tiled shape, counted from the end, or lanes that hold copies. */
export type TiledAxis = number | { readonly replicate: number };

/** Which axes of a tiling are spread over warps, threads and registers. */
export interface Dealing {
  /** Axes over the warps, major first; four in all, or as many as the program thread has. */
  readonly warps: readonly TiledAxis[];
  /** Axes over the lanes, major first; 32 in all. */
  readonly lanes: readonly TiledAxis[];
  /** The axis whose elements lie in neighbouring registers. */
  readonly vector: number;
}

/** A piece of a coordinate: which axis of the tile, from which bit, how many bits. */
interface Piece {
  readonly axis: number;
  readonly from: number;
  readonly bits: number;
}

export function tiling(tiles: readonly (readonly number[])[], dealing: Dealing): DistributedLayout {
  const pieces = tiles.reduce(splitPieces, undefined) ?? [];
  const owners = dealPieces(pieces, dealing);
  const rank = tiles[0]?.length ?? 0;
  const axes = Array.from({ length: rank }, (_, axis) => {
    const own = pieces.flatMap((piece, index) => (piece.axis === axis ? [{ piece, index }] : []));
    own.sort((left, right) => left.piece.from - right.piece.from);
    return own.flatMap(({ index }) => owners[index] ?? []);
  });
  return axesLayout(axes);
}

function splitPieces(
  pieces: readonly Piece[] | undefined,
  tile: readonly number[],
): readonly Piece[] {
  const exponents = tile.map((extent) => {
    const exponent = exponentOf(extent);
    if (exponent === undefined)
      throw tilingError(`tile extent ${extent} is not a power of two`, "a power of two", extent);
    return exponent;
  });
  if (pieces === undefined) return exponents.map((bits, axis) => ({ axis, from: 0, bits }));
  const kept = pieces.slice(0, pieces.length - tile.length);
  const split = pieces.slice(pieces.length - tile.length);
  if (split.length < tile.length)
    throw tilingError(
      `tile [${tile.join(", ")}] has too many axes`,
      `at most ${pieces.length}`,
      tile.length,
    );
  const outer: Piece[] = [];
  const inner: Piece[] = [];
  for (const [index, piece] of split.entries()) {
    const bits = exponents[index] ?? 0;
    if (bits > piece.bits)
      throw tilingError(
        `tile [${tile.join(", ")}] does not divide the tile before`,
        `an extent that divides ${2 ** piece.bits}`,
        2 ** bits,
      );
    outer.push({ ...piece, from: piece.from + bits, bits: piece.bits - bits });
    inner.push({ ...piece, bits });
  }
  return [...kept, ...outer, ...inner];
}

/** The bits of each piece: warps and lanes as dealt, then registers, vector first. */
function dealPieces(pieces: readonly Piece[], dealing: Dealing): readonly (readonly Bit[])[] {
  const owners: (readonly Bit[] | undefined)[] = pieces.map(() => undefined);
  const deal = (axis: number, make: (index: number) => Bit, next: number): number => {
    const index = pieces.length + axis;
    const piece = pieces[index];
    if (piece === undefined || axis >= 0)
      throw tilingError(`there is no axis ${axis}`, `an axis from -${pieces.length} to -1`, axis);
    if (owners[index] !== undefined)
      throw tilingError(`axis ${axis} is dealt twice`, "each axis once", axis);
    owners[index] = bitRun(make, next, piece.bits);
    return next + piece.bits;
  };
  const dealThreads = (axes: readonly TiledAxis[], make: (index: number) => Bit) => {
    let next = 0;
    for (const axis of axes.toReversed())
      next = typeof axis === "number" ? deal(axis, make, next) : next + replicaBits(axis.replicate);
    return next;
  };
  requireDealt(dealThreads(dealing.warps, warpBit), 2, warpBits);
  requireDealt(dealThreads(dealing.lanes, laneBit), laneBits, laneBits);
  let registers = deal(dealing.vector, registerBit, 0);
  for (let axis = -1; axis >= -pieces.length; axis -= 1)
    if (owners[pieces.length + axis] === undefined) registers = deal(axis, registerBit, registers);
  return owners.map((bits) => bits ?? []);
}

function requireDealt(bits: number, least: number, most: number): void {
  if (bits >= least && bits <= most) return;
  throw tilingError(
    `${2 ** bits} are dealt where there are ${2 ** least}`,
    least === most ? `${2 ** least}` : `${2 ** least} to ${2 ** most}`,
    2 ** bits,
  );
}

function replicaBits(count: number): number {
  const exponent = exponentOf(count);
  if (exponent === undefined)
    throw tilingError(`${count} copies are not a power of two`, "a power of two", count);
  return exponent;
}

function tilingError(message: string, expected: string, found: number): TilewrightError {
  return new TilewrightError({ code: "TW6004", message, expected, found: String(found) });
}
