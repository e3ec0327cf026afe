/**
 * The boxes of tensor copies, as bytes. A box lies in shared memory row by row, the innermost axis along
 * a row; each row is one stretch of global memory, of which a part may be outside the array:
 *
 *   array of 5 × 3, box of 4 × 2 at (−1, 2)
 *
 *      column  −1  0  1  2  3  4
 *      row 2    ·  a  b  c             before 1, inside 3
 *      row 3    ·  ·  ·  ·             outside: inside 0
 *
 * A load fills what is outside, a store leaves it. With a swizzle a row takes the swizzle's whole width
 * in shared memory, and its chunks of 16 bytes change places by the bits of their address.
 */
import { encodeFloat } from "../../formats/floats.ts";
import { swizzleByte } from "../../layout/algebra/shared-layout.ts";
import type { Swizzle } from "../../layout/algebra/shared-layout.ts";
import { nowhere, tensorMapTypeBytes } from "../tensor-map.ts";
import type { TensorMap, TensorMapType } from "../tensor-map.ts";
import { pixelOffsets } from "./im2col.ts";

const chunk = 16;

export interface BoxRow {
  /** Where the row starts in the box as it lies in shared memory, before the swizzle. */
  readonly start: number;
  /** The address of the first byte inside the array. */
  readonly address: number;
  /** Bytes of the row before the first inside, and how many are inside. */
  readonly before: number;
  readonly inside: number;
}

/** How a map's boxes lie in shared memory. */
export interface BoxShape {
  /** Elements along each axis. */
  readonly counts: readonly number[];
  readonly rowBytes: number;
  /** Distance of rows. */
  readonly pitch: number;
  readonly rows: number;
  /** All elements together: what a load adds to a barrier's transactions. */
  readonly bytes: number;
  /** From the first byte to the last. */
  readonly span: number;
}

function boxCounts({ box, corners, elementStrides }: TensorMap): readonly number[] {
  if (corners !== undefined) return box;
  return box.map((extent, axis) =>
    axis === 0 ? extent : Math.ceil(extent / (elementStrides?.[axis] ?? 1)),
  );
}

export function boxShape(map: TensorMap): BoxShape {
  const counts = boxCounts(map);
  const rowBytes = (counts[0] ?? 1) * tensorMapTypeBytes[map.type];
  const rows = counts.slice(1).reduce((product, count) => product * count, 1);
  const pitch = Math.max(map.swizzle, rowBytes);
  return {
    counts,
    rowBytes,
    pitch,
    rows,
    bytes: rows * rowBytes,
    span: (rows - 1) * pitch + rowBytes,
  };
}

/**
 * The rows of the box at these coordinates, innermost coordinate first; of an im2col map a row a pixel, read
 * so far off.
 */
export function boxRows(
  map: TensorMap,
  coordinates: readonly number[],
  offsets: readonly number[] = [],
): readonly BoxRow[] {
  const { counts, rowBytes, pitch, rows } = boxShape(map);
  const { corners } = map;
  const pixels = corners && pixelOffsets(map, corners, coordinates, offsets);
  const elementBytes = tensorMapTypeBytes[map.type];
  const column = coordinates[0] ?? 0;
  const firstInside = Math.max(0, -column);
  const endInside = Math.min(counts[0] ?? 0, (map.extents[0] ?? 0) - column);
  const before = Math.min(rowBytes, firstInside * elementBytes);
  const inside = map.address === nowhere ? 0 : Math.max(0, endInside - firstInside) * elementBytes;
  const rowStart = map.address + (column + firstInside) * elementBytes;
  return Array.from({ length: rows }, (_, row) => {
    const offset = pixels ? pixels[row] : outerOffset(map, counts, coordinates, row);
    const start = row * pitch;
    if (offset === undefined) return { start, address: map.address, before, inside: 0 };
    return { start, address: rowStart + offset, before, inside };
  });
}

/** The bytes from the array's start to a row of the box; undefined where the row is outside. */
function outerOffset(
  map: TensorMap,
  counts: readonly number[],
  coordinates: readonly number[],
  row: number,
): number | undefined {
  let rest = row;
  let offset = 0;
  for (let axis = 1; axis < counts.length; axis++) {
    const count = counts[axis] ?? 1;
    const step = map.elementStrides?.[axis] ?? 1;
    const index = (coordinates[axis] ?? 0) + (rest % count) * step;
    if (index < 0 || index >= (map.extents[axis] ?? 0)) return undefined;
    offset += index * (map.strides[axis - 1] ?? 0);
    rest = Math.floor(rest / count);
  }
  return offset;
}

/** A NaN in every two bytes, whatever the type. */
const nanPattern: readonly number[] = [0xf7, 0x7f];

/** A row's bytes where nothing is inside. */
export function fillRow(map: TensorMap, row: Uint8Array): void {
  const pattern = map.fill === "nan" ? nanPattern : [0];
  for (let byte = 0; byte < row.length; byte++) row[byte] = pattern[byte % pattern.length] ?? 0;
}

const nanTf32 = 0x7fff_e000;

/** What a load makes of tf32, with or without .ftz; elements of the other types stay as they are. */
export function convertOnLoad(type: TensorMapType, row: Uint8Array): void {
  if (type !== "tf32" && type !== "tf32.ftz") return;
  const view = new DataView(row.buffer, row.byteOffset, row.byteLength);
  for (let byte = 0; byte < row.length; byte += 4) {
    const value = view.getFloat32(byte, true);
    view.setUint32(byte, Number.isNaN(value) ? nanTf32 : encodeFloat("tf32", value), true);
  }
}

/** Calls `move` for each stretch of a row that stays together: the byte of the row, its address, a length. */
export function forEachStretch(
  address: number,
  length: number,
  swizzle: Swizzle,
  move: (byte: number, address: number, length: number) => void,
): void {
  if (swizzle === 0) {
    move(0, address, length);
    return;
  }
  for (let byte = 0; byte < length; byte += chunk) {
    const here = address + byte;
    move(byte, swizzleByte(here, swizzle), Math.min(chunk, length - byte));
  }
}
