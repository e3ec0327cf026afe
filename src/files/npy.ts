/**
 * npy files, NumPy's own: a header (`npy-header.ts`), then the elements.
 *
 *   writeNpy(fromNumbers(f32, [2, 2], [1, 2, 3, 4]))   -> 128 bytes of header, 16 of elements
 */
import { TilewrightError } from "../support/diagnostics.ts";
import type { DType } from "../formats/dtype.ts";
import { toElements } from "../formats/hostarray.ts";
import { elementCount } from "../formats/shape.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { readNpyHeader, writeNpyHeader } from "./npy-header.ts";
import { openRanges, reportedHere, subrange } from "./source.ts";
import type { ByteRanges, FileSource } from "./source.ts";
import { storedArray, storedBytes } from "./stored-array.ts";
import type { StoredArray } from "./stored-array.ts";

/** Options for reading `.npy` files. */
export interface NpyOptions {
  /** The format of elements that NumPy knows only by their size, as it saves ml_dtypes' bfloat16. */
  readonly opaque?: DType | undefined;
}

/** The array of an npy file, of which nothing but the header is read yet. */
export function openNpy(source: FileSource, options: NpyOptions = {}): Promise<StoredArray> {
  return reportedHere(
    async () => (await storedNpy(await openRanges(source, "npy"), options)).array,
  );
}

/** All of an npy file. */
export function readNpy(source: FileSource, options: NpyOptions = {}): Promise<HostArray> {
  return reportedHere(async () => (await openNpy(source, options)).read());
}

/** An array and where it ends; what comes after it, such as another array, is left alone. */
export interface NpyPlace {
  readonly array: StoredArray;
  readonly end: number;
}

export async function storedNpy(file: ByteRanges, { opaque }: NpyOptions): Promise<NpyPlace> {
  const { start, ...header } = await readNpyHeader(file, opaque);
  const { layout, shape, parts } = header;
  const end = start + storedBytes(layout, parts * elementCount(shape));
  if (!Number.isSafeInteger(end))
    throw new TilewrightError({
      code: "TW0103",
      message: "the header of the npy file is damaged: no file is as large as its shape",
      expected: "fewer bytes than 2 ** 53",
      found: `(${shape.join(", ")})`,
    });
  if (end > file.size) await file.read(start, end);
  const elements = subrange(file, start, end);
  return { end, array: storedArray({ ...header, elements: () => Promise.resolve(elements) }) };
}

/** The bytes of an npy file; elements of 4 bits take a byte each, as ml_dtypes saves them. */
export function writeNpy(array: HostArray): Uint8Array {
  const header = writeNpyHeader(array.dtype, array.shape);
  const elements = toElements(array);
  const bytes = new Uint8Array(header.length + elements.byteLength);
  bytes.set(header);
  bytes.set(
    new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength),
    header.length,
  );
  return bytes;
}
