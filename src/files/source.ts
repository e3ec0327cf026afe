/**
 * Where the bytes of a file come from. Large files are read in ranges, so all that is asked of a source
 * is its size and a piece of it:
 *
 *   Uint8Array                  bytes that are in memory, as readFile() gives them
 *   Blob, File                  a file that a browser's user chose: .size and .slice(start, end)
 *   FileHandle of Node          fs.promises.open(path): .stat() and .read(buffer, offset, length, position)
 *
 * Anything with the methods of one of them serves, such as ranges of HTTP behind a Blob's form.
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import { optionText } from "../support/options.ts";

/** What a Blob offers to a reader. */
export interface SlicedSource {
  /** The number of bytes. */
  readonly size: number;
  /** The bytes from `start` up to `end`. */
  slice(start: number, end: number): { arrayBuffer(): Promise<ArrayBuffer> };
}

/** What a file handle of Node offers to a reader. */
export interface HandleSource {
  /** The size of the file, as Node's `FileHandle` gives it. */
  stat(): Promise<{ readonly size: number }>;
  /** Reads bytes into a buffer, as Node's `FileHandle` does. */
  read(
    buffer: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ readonly bytesRead: number }>;
}

/** Where a file's bytes come from: bytes, a `Blob` or `File`, or an open file handle of Node. */
export type FileSource = Uint8Array | SlicedSource | HandleSource;

/** A source whose size is known. */
export interface ByteRanges {
  readonly size: number;
  /** The bytes from `start` to `end`, exclusive; TW0102 where the file has not got them. */
  read(start: number, end: number): Promise<Uint8Array>;
}

/** Opens a source; `kind` names the file in reports. */
export async function openRanges(source: FileSource, kind: string): Promise<ByteRanges> {
  return boundedRanges(await rangesOf(source), kind);
}

/** The same bytes; who reads beyond their end hears of it. */
export function boundedRanges(ranges: ByteRanges, kind: string): ByteRanges {
  const { size } = ranges;
  return {
    size,
    async read(start, end) {
      if (start < 0 || end < start || end > size) throw tooShort(kind, end, size);
      const bytes = await ranges.read(start, end);
      if (bytes.length !== end - start) throw tooShort(kind, end, start + bytes.length);
      return bytes;
    },
  };
}

/** A part of a source as a source of its own. */
export function subrange(ranges: ByteRanges, start: number, end: number): ByteRanges {
  return { size: end - start, read: (from, to) => ranges.read(start + from, start + to) };
}

async function rangesOf(source: unknown): Promise<ByteRanges> {
  if (source instanceof Uint8Array)
    return {
      size: source.length,
      read: (start, end) => Promise.resolve(source.subarray(start, end)),
    };
  if (isHandle(source)) {
    const { size } = await source.stat();
    return { size, read: (start, end) => readHandle(source, start, end) };
  }
  if (isSliced(source)) {
    const read = async (start: number, end: number) =>
      new Uint8Array(await source.slice(start, end).arrayBuffer());
    return { size: source.size, read };
  }
  throw new TilewrightError({
    code: "TW0110",
    message: "bytes of a file cannot be read from this",
    expected: "a Uint8Array, a Blob or a file handle",
    found: optionText(source),
  });
}

function isHandle(source: unknown): source is HandleSource {
  return typeof source === "object" && source !== null && "stat" in source && "read" in source;
}

function isSliced(source: unknown): source is SlicedSource {
  if (typeof source !== "object" || source === null) return false;
  return "size" in source && typeof source.size === "number" && "slice" in source;
}

/** A handle may give fewer bytes than asked for, and gives none at the end of the file. */
async function readHandle(handle: HandleSource, start: number, end: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(end - start);
  let filled = 0;
  while (filled < bytes.length) {
    const { bytesRead } = await handle.read(bytes, filled, bytes.length - filled, start + filled);
    if (bytesRead <= 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}

function tooShort(kind: string, wanted: number, size: number): TilewrightError {
  return new TilewrightError({
    code: "TW0102",
    message: `the ${kind} file ends too early`,
    expected: `at least ${wanted} bytes`,
    found: `${size}`,
  });
}

/** Runs `body`; its reports name the line that called, which stacks do not show after an `await`. */
export async function reportedHere<T>(body: () => Promise<T>): Promise<T> {
  const location = captureLocation();
  try {
    return await body();
  } catch (error) {
    throw error instanceof TilewrightError ? error.located(location) : error;
  }
}
