/**
 * An array that lies in a file: its format and shape are known, its elements are read when asked for,
 * all of them or a range of rows.
 *
 * Elements are stored in one of few ways. A *layout* says how the bytes of a file become elements:
 *
 *   | bytes an element | little-endian | big-endian, order: "big"      |
 *   |------------------|---------------|-------------------------------|
 *   | 1 to 8           | as in memory  | bytes of each unit reversed   |
 *   | 1, of 4 bits     | low half of each byte (ml_dtypes)             |
 *   | 1, of 6 bits     | low bits of each byte (ml_dtypes)             |
 *   | 1/2, of 4 bits   | two a byte, the first in the low half         |
 *   | 3/4, of 6 bits   | one behind the other, from the lowest bit     |
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { allocateElements } from "../formats/dtype.ts";
import type { DType, Elements } from "../formats/dtype.ts";
import { fromElements, toElements } from "../formats/hostarray.ts";
import { elementCount } from "../formats/shape.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { denseBits, denseBytes, unpackDense } from "../formats/packed.ts";
import type { ByteRanges } from "./source.ts";
import { reportedHere } from "./source.ts";

/** How elements lie in the file. */
export interface ElementLayout {
  readonly dtype: DType;
  /** Whether elements of 4 and 6 bits share bytes. */
  readonly packed: boolean;
  readonly order: "little" | "big";
}

/** An array in a file, of which nothing but the header is read yet. */
export interface StoredArray {
  /** The format of the elements. */
  readonly dtype: DType;
  /** The extents of the axes. */
  readonly shape: readonly number[];
  /** All elements. */
  read(): Promise<HostArray>;
  /** The rows from `start` to `end`, exclusive, of the first axis. */
  rows(start: number, end: number): Promise<HostArray>;
}

/** Bytes that `count` elements take in the file. */
export function storedBytes({ dtype, packed }: ElementLayout, count: number): number {
  return packed ? denseBytes(dtype, count) : count * Math.max(1, dtype.bits / 8);
}

interface Placement {
  readonly layout: ElementLayout;
  readonly shape: readonly number[];
  /** The numbers of an element, which lie beside each other in any order of the axes and are one more axis of the array. */
  readonly parts?: 1 | 2;
  /** Whether the first axis varies fastest. */
  readonly fortran: boolean;
  /** The bytes of the elements alone. */
  readonly elements: () => Promise<ByteRanges>;
}

export function storedArray(placement: Placement): StoredArray {
  const { layout, parts = 1, fortran, elements } = placement;
  const shape = parts === 1 ? placement.shape : [...placement.shape, parts];
  const count = elementCount(shape);
  const read = async (start: number, end: number, part: readonly number[]) => {
    const ranges = await elements();
    const bytes = await ranges.read(storedBytes(layout, start), storedBytes(layout, end));
    return toArray(layout, part, bytes, fortran ? parts : undefined);
  };
  const rows = async (start: number, end: number): Promise<HostArray> => {
    const [extent, ...rest] = shape;
    if (extent === undefined || !(isRow(start) && isRow(end) && start <= end && end <= extent))
      throw noSuchRows(shape, start, end);
    const row = elementCount(rest);
    const part = [end - start, ...rest];
    // Rows of Fortran order lie scattered, and packed rows may begin within a byte.
    if (fortran || (layout.packed && (start * row * denseBits(layout.dtype)) % 8 !== 0))
      return cutRows(await read(0, count, shape), start * row, part);
    return read(start * row, end * row, part);
  };
  return {
    dtype: layout.dtype,
    shape,
    read: () => reportedHere(() => read(0, count, shape)),
    rows: (start, end) => reportedHere(() => rows(start, end)),
  };
}

function isRow(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function noSuchRows(shape: readonly number[], start: number, end: number): TilewrightError {
  return new TilewrightError({
    code: "TW0108",
    message: `an array of shape [${shape.join(", ")}] has no rows ${start} to ${end}`,
    expected: shape.length === 0 ? "an array with an axis" : `rows from 0 to ${shape[0]}`,
    found: `${start} to ${end}`,
  });
}

function cutRows(array: HostArray, first: number, shape: readonly number[]): HostArray {
  const elements = toElements(array).slice(first, first + elementCount(shape));
  return fromElements(array.dtype, shape, elements);
}

function toArray(
  layout: ElementLayout,
  shape: readonly number[],
  bytes: Uint8Array,
  fortranParts: 1 | 2 | undefined,
): HostArray {
  const { dtype } = layout;
  const elements = decodeElements(layout, bytes, elementCount(shape));
  if (dtype.kind === "bool")
    for (let i = 0; i < elements.length; i++) if (elements[i] !== 0) elements[i] = 1;
  return fromElements(
    dtype,
    shape,
    fortranParts === undefined ? elements : toRowMajor(dtype, shape, elements, fortranParts),
  );
}

function decodeElements(
  { dtype, packed, order }: ElementLayout,
  bytes: Uint8Array,
  count: number,
): Elements {
  if (packed) return unpackDense(dtype, bytes, count);
  const elements = allocateElements(dtype, count);
  const memory = new Uint8Array(elements.buffer);
  memory.set(bytes);
  if (order === "big") reverseUnits(memory, elements.BYTES_PER_ELEMENT);
  if (dtype.bits === 4) keepLowHalves(dtype, memory);
  if (denseBits(dtype) === 6) memory.forEach((byte, i) => (memory[i] = byte & 63));
  return elements;
}

function reverseUnits(memory: Uint8Array, unit: number): void {
  if (unit === 1) return;
  for (let start = 0; start < memory.length; start += unit)
    memory.subarray(start, start + unit).reverse();
}

function keepLowHalves(dtype: DType, memory: Uint8Array): void {
  for (let i = 0; i < memory.length; i++) {
    const nibble = (memory[i] as number) & 15;
    memory[i] = dtype.kind === "signed" ? (nibble << 28) >> 28 : nibble;
  }
}

/** Elements in the order of the last axis fastest, from that of the first; the parts of an element stay beside each other. */
function toRowMajor(
  dtype: DType,
  shape: readonly number[],
  elements: Elements,
  parts: 1 | 2,
): Elements {
  const result = allocateElements(dtype, elements.length);
  const index = new Array<number>(shape.length).fill(0);
  const strides = shape.map((_, axis) =>
    parts > 1 && axis === shape.length - 1 ? 1 : parts * elementCount(shape.slice(0, axis)),
  );
  let source = 0;
  for (let target = 0; target < elements.length; target++) {
    result[target] = elements[source] as never;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      source += strides[axis] as number;
      if ((index[axis] = (index[axis] as number) + 1) < (shape[axis] as number)) break;
      source -= (strides[axis] as number) * (shape[axis] as number);
      index[axis] = 0;
    }
  }
  return result;
}
