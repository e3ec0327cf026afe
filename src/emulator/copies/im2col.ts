/**
 * The pixels of an im2col copy. The array has channels, one to three axes of space and images; the map's
 * corners bound a box in space. A copy begins at a pixel of an image and takes so many in a row, through the
 * box and on into the next image; an offset moves where each is read, not where the box ends:
 *
 *   width 4, lower corner −1, upper corner −2: pixels −1 0 1 of each row
 *
 *      start 0, 4 pixels, offset 2      positions 0 1 | −1 0      read at 2 3 | 1 2, the latter a row below
 *
 * Pixels that are read outside of the array are filled, as are channels beyond the last.
 */
import type { Corners, TensorMap } from "../tensor-map.ts";

/** Where a pixel is along each axis but the channels'; moved in place. */
type Position = number[];

function step(map: TensorMap, { lower, upper }: Corners, position: Position): void {
  const images = lower.length;
  for (let axis = 0; axis < images; axis++) {
    const next = (position[axis] ?? 0) + (map.elementStrides?.[axis + 1] ?? 1);
    const last = (map.extents[axis + 1] ?? 1) - 1 + (upper[axis] ?? 0);
    if (next <= last) {
      position[axis] = next;
      return;
    }
    position[axis] = lower[axis] ?? 0;
  }
  position[images] = (position[images] ?? 0) + (map.elementStrides?.[images + 1] ?? 1);
}

/** Bytes from the array's start to each pixel; undefined for pixels outside. */
export function pixelOffsets(
  map: TensorMap,
  corners: Corners,
  coordinates: readonly number[],
  offsets: readonly number[],
): readonly (number | undefined)[] {
  const position = coordinates.slice(1);
  return Array.from({ length: map.box[1] ?? 1 }, () => {
    const read = position.map((at, axis) => at + (offsets[axis] ?? 0));
    step(map, corners, position);
    const isOutside = read.some((at, axis) => at < 0 || at >= (map.extents[axis + 1] ?? 0));
    if (isOutside) return undefined;
    return read.reduce((bytes, at, axis) => bytes + at * (map.strides[axis] ?? 0), 0);
  });
}
