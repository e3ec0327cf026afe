/** What is moved at once in shared memory: neighbouring bytes of a lane, or matrices of a whole warp. */
import { matrixRows } from "./ldmatrix.ts";
import type { TileParts } from "./lane-coordinates.ts";
import type { TileAccess } from "./affine-access.ts";
import { runsInMemory, sharedPlaces } from "./shared-addresses.ts";
import type { SharedBox } from "./window.ts";
import type { Unit } from "./unit.ts";

/** Up to so many elements of 16 bits side by side, matrices move more at once. */
const wordElements = 2;

export function widestShared(window: SharedBox, parts: TileParts, access: TileAccess): Unit {
  const places = sharedPlaces(window, parts);
  if (places === undefined) return { kind: "elements" };
  for (let elements = access.widest; elements * window.dtype.bits >= 8; elements /= 2) {
    if (sharedProblem(window, parts, access, elements, places) !== undefined) continue;
    const small = elements <= wordElements;
    const matrices = small && matrixProblem(window, parts, access, places) === undefined;
    return matrices ? { kind: "matrices" } : { kind: "shared", elements };
  }
  return { kind: "elements" };
}

export function sharedProblem(
  window: SharedBox,
  parts: TileParts,
  { gather }: TileAccess,
  elements: number,
  places = sharedPlaces(window, parts),
): string | undefined {
  const runs = places && runsInMemory(window, parts, places, elements);
  if (runs === undefined) return `not every thread has ${elements} elements that lie side by side`;
  const apart = runs.some((members) => gather?.agree(members) === false);
  return apart ? "neighbours have a mask of their own" : undefined;
}

export function matrixProblem(
  window: SharedBox,
  parts: TileParts,
  { matrices, gather }: TileAccess,
  places = sharedPlaces(window, parts),
): string | undefined {
  if (!matrices) return "not all lanes of a warp do the same";
  if (gather !== undefined) return "a mask picks elements";
  const rows = places && matrixRows(window.dtype, parts, places);
  return rows === undefined ? "the tile does not lie in rows of 16 bytes" : undefined;
}
