/** Tiles in scratch memory: computed there by a loop, filled, moved, and made from scalars. */
import type { DType } from "../../formats/dtype.ts";
import type { Value } from "../../ir/node.ts";
import { i32, op } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import { rowStrides } from "./elements.ts";
import type { Elements } from "./elements.ts";
import type { Position } from "./position.ts";
import type { HeldTile } from "./held.ts";
import { loadScalar, slotBytes, slotShift, storeLanes, storeScalar } from "./lanes.ts";
import type { Lanes } from "./lanes.ts";
import { countOf, dtypeOf, shapeOf } from "./lazy.ts";
import { axisGroups, joins, overElements } from "./loops-of-tiles.ts";
import { tileAddress } from "./lowering.ts";
import type { Lowering } from "./lowering.ts";

/** Stores four elements of a tile; what is behind the last one of a row is written over by the next row. */
export function storeIntoTile(
  elements: Elements,
  tile: HeldTile,
  position: Position,
  lanes: Lanes,
): void {
  const { dtype, shape } = tile;
  const address = elements.address(
    `tile ${tile.offset}`,
    () => i32.add(tile.base, i32.of(tile.offset)),
    slotShift(dtype),
    rowStrides(shape),
    position,
  );
  storeLanes(elements.builderAt(position), address, lanes);
}

/** Computes a tile into memory, elements in rising order. */
export function computeInto(lowering: Lowering, value: Value, tile: HeldTile): void {
  const shape = shapeOf(value);
  const groups = axisGroups(shape, (outer, inner) => joins(lowering, value, outer, inner));
  lowering.root("tile", countOf(value), (b) =>
    overElements(lowering, b, shape, groups, (elements, position) =>
      storeIntoTile(elements, tile, position, elements.evaluate(value, position)),
    ),
  );
  lowering.failIfNoted();
}

/** The value as a tile in memory: computed now, where it is not there yet. */
export function tileOf(lowering: Lowering, value: Value): HeldTile {
  const held = lowering.held(value);
  if (held.kind === "tile") return held;
  const dtype = dtypeOf(value);
  if (held.kind === "scalar") return scalarTile(lowering, held.value, dtype);
  if (held.kind !== "lazy") throw new Error(`%${value.id} is a ${held.kind}, no tile`);
  const tile = lowering.temporaryTile(dtype, shapeOf(value));
  computeInto(lowering, value, tile);
  return tile;
}

/** A scalar as a tile of one element. */
export function scalarTile(lowering: Lowering, scalar: Expression, dtype: DType): HeldTile {
  const tile = lowering.temporaryTile(dtype, []);
  storeScalar(lowering.b, dtype, tile.base, scalar, tile.offset);
  return tile;
}

/** The one element of a tile as a scalar. */
export function tileScalar(lowering: Lowering, tile: HeldTile): Expression {
  return lowering.b.keep(loadScalar(tile.dtype, tile.base, tile.offset), "scalar");
}

export function tileBytes({ dtype, shape }: Pick<HeldTile, "dtype" | "shape">): number {
  return shape.reduce((product, extent) => product * extent, 1) * slotBytes(dtype);
}

export function copyTile(b: FunctionBuilder, from: HeldTile, to: HeldTile): void {
  if (isSameTile(from, to)) return;
  b.run(op("memory.copy", tileAddress(b, to), tileAddress(b, from), i32.of(tileBytes(from))));
}

/** Whether two tiles lie in the same memory. */
export function isSameTile(left: HeldTile, right: HeldTile): boolean {
  const [a, b] = [left.base, right.base];
  const sameBase = a === b || (a.form === "local" && b.form === "local" && a.local === b.local);
  return sameBase && left.offset === right.offset;
}
