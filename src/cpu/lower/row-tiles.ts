/**
 * Tiles whose rows run along any axis, as kernels on rows take them: copied so that the axis is the last, in another format where those have not
 * its own, and back.
 *
 *   [outer, length, inner] bf16  ──▶  [outer, inner, length] f32  ──▶  a search, a sort of each row
 */
import type { Axis } from "../../formats/arithmetic/index.ts";
import type { DType } from "../../formats/dtype.ts";
import { castRule } from "./arithmetic.ts";
import type { HeldTile } from "./held.ts";
import { axisGroups, overElements } from "./loops-of-tiles.ts";
import type { Lowering } from "./lowering.ts";
import { origin } from "./position.ts";
import { storeIntoTile } from "./tiles.ts";

/** The tile with its axis as the last one, whose rows lie one behind the other; a copy that lives as long as the op that is lowered. */
export function asRows(
  lowering: Lowering,
  tile: HeldTile,
  { outer, length, inner }: Axis,
  dtype: DType = tile.dtype,
): HeldTile {
  const rows = lowering.temporaryTile(dtype, [outer, inner, length]);
  turn(lowering, { ...tile, shape: [outer, length, inner] }, rows);
  return rows;
}

/** Rows back to where their elements were. */
export function fromRows(
  lowering: Lowering,
  rows: HeldTile,
  { outer, length, inner }: Axis,
  tile: HeldTile,
): void {
  turn(lowering, rows, { ...tile, shape: [outer, length, inner] });
}

/** Copies a tile of three axes into one whose last two are exchanged. */
function turn(lowering: Lowering, from: HeldTile, to: HeldTile): void {
  const { shape } = to;
  const groups = axisGroups(shape, () => false);
  const count = shape.reduce((product, extent) => product * extent, 1);
  const rule = castRule(from.dtype, to.dtype);
  lowering.root("rows", count, (b) =>
    overElements(lowering, b, shape, groups, (elements, position) => {
      const [outer = origin, row = origin, column = origin] = position;
      const lanes = elements.tileLanes(from, [outer, column, row]);
      const code = { builder: elements.builderAt(position), relaxed: lowering.relaxed };
      storeIntoTile(elements, to, position, rule(code, lanes));
    }),
  );
}
