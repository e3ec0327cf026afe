/**
 * Loads at points. An array of a graph is one run of memory; it is read as a window where the points lie side by side
 * or all lanes want one element, as rows of neighbours where only the rows lie apart, and by index otherwise. An index never leaves the array: lanes beyond the result's
 * end, and lanes whose value is not used, read some element of it.
 */
import { slice } from "../../../lang/index.ts";
import type { Ref, Tile } from "../../../lang/index.ts";
import { clampIndex, isUniform, tileOfIndex } from "./indices.ts";
import type { Points } from "./points.ts";

/** The elements of a flat array at points of a tensor with as many elements. */
export function loadAt(ref: Ref, points: Points): Tile {
  const last = points.count - 1;
  if (last === 0) return ref.at(slice(0, 1)).load();
  const width = points.tile.reduce((product, extent) => product * extent, 1);
  if (points.run !== undefined) return ref.at(slice(points.run, width)).load();
  const window = points.window ?? points.pickedRows;
  if (window !== undefined) {
    const { rows, columns, row, column } = window;
    const [height = 1, across = 1] = points.tile;
    const matrix = ref.reshape([rows, columns]);
    if (isUniform(row)) return matrix.at(slice(row, height), slice(column, across)).load();
    // Runs of rows that are picked one by one.
    const picked = tileOfIndex(clampIndex(row, rows - 1)).reshape([height]);
    return matrix.at(picked, slice(column, across)).load();
  }
  const position = clampIndex(points.position, last);
  if (isUniform(position)) return ref.at(slice(position, 1)).load();
  return ref.at(position).load();
}
