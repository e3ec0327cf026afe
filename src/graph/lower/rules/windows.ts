/** Windows at points: which element a tap covers, and whether there is one. */
import type { Scalar, Tile } from "../../../lang/index.ts";
import type { Window } from "../../ops/windows.ts";
import {
  addIndex,
  divideIndex,
  isWithin,
  remainderIndex,
  scaleIndex,
  tileOfIndex,
} from "../points/indices.ts";
import type { Index } from "../points/indices.ts";
import { Points, axesOfPosition } from "../points/points.ts";

/** All of several conditions. */
export function allHold(conditions: readonly (boolean | Tile<"bool">)[]): boolean | Tile<"bool"> {
  if (conditions.includes(false)) return false;
  const open = conditions.filter((each) => each !== true) as readonly Tile<"bool">[];
  const [first, ...rest] = open;
  return first === undefined ? true : rest.reduce((all, each) => all.and(each), first);
}

/** The element that a tap of a window covers along an axis, and whether it is one. */
export function tapAt(
  position: Index,
  tap: Index,
  extent: number,
  { stride, baseDilation, windowDilation, low }: Omit<Window, "size">,
): { readonly index: Index; readonly isThere: boolean | Tile<"bool"> } {
  const dilated = addIndex(
    addIndex(scaleIndex(position, stride), scaleIndex(tap, windowDilation)),
    -low,
  );
  const inside = isWithin(dilated, 0, (extent - 1) * baseDilation + 1);
  if (baseDilation === 1) return { index: dilated, isThere: inside };
  const rest = remainderIndex(dilated, baseDilation);
  const onElement = typeof rest === "number" ? rest === 0 : tileOfIndex(rest).eq(0);
  return { index: divideIndex(dilated, baseDilation), isThere: allHold([inside, onElement]) };
}

export function windowTap(
  shape: readonly number[],
  windows: readonly Window[],
  position: readonly Index[],
  turn: number | Scalar<"i32">,
  tile: readonly number[],
): { readonly place: Points; readonly isThere: boolean | Tile<"bool"> } {
  const taps = axesOfPosition(
    turn,
    windows.map(({ size }) => size),
  );
  const axes = windows.map((window, axis) =>
    tapAt(position[axis] ?? 0, taps[axis] ?? 0, shape[axis] ?? 0, window),
  );
  const place = Points.at(
    shape,
    tile,
    axes.map(({ index }) => index),
  );
  return { place, isThere: allHold(axes.map(({ isThere }) => isThere)) };
}
