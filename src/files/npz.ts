/**
 * npz files: zip archives with an npy file for each array, as np.savez and np.savez_compressed write
 * them. Names are without the ".npy" that entries end in.
 */
import { TilewrightError } from "../support/diagnostics.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { storedNpy, writeNpy } from "./npy.ts";
import type { NpyOptions, NpyPlace } from "./npy.ts";
import { boundedRanges, openRanges, reportedHere } from "./source.ts";
import type { ByteRanges, FileSource } from "./source.ts";
import type { StoredArray } from "./stored-array.ts";
import { openZip, writeZip } from "./zip.ts";
import type { ZipEntry } from "./zip.ts";

const suffix = ".npy";
/** What an array may expand to unless more is asked for. */
const usualLimit = 2 ** 32;

/** Bytes behind an array that are read for the checksum. */
const readBehind = 4096;

/** Options for reading `.npz` files. */
export interface NpzOptions extends NpyOptions {
  /** The most bytes that a compressed array may expand to; 4 GiB unless said otherwise. */
  readonly expandedLimit?: number | undefined;
}

/** An opened `.npz` file, whose arrays are read one by one. */
export interface NpzFile {
  /** The names of the arrays, in the order of the file. */
  readonly names: readonly string[];
  /** An array of which nothing but the header is read yet. */
  open(name: string, options?: NpyOptions): Promise<StoredArray>;
  /** All of an array. */
  read(name: string, options?: NpyOptions): Promise<HostArray>;
}

/** The arrays of an npz file, of which nothing but the directory is read yet. */
export function openNpz(
  source: FileSource,
  { expandedLimit = usualLimit }: Omit<NpzOptions, "opaque"> = {},
): Promise<NpzFile> {
  return reportedHere(async () => {
    const entries = await openZip(await openRanges(source, "npz"), expandedLimit);
    const arrays = new Map(
      entries
        .filter(({ name }) => name.endsWith(suffix))
        .map((entry) => [entry.name.slice(0, -suffix.length), entry]),
    );
    return {
      names: [...arrays.keys()],
      open: (name, options = {}) =>
        reportedHere(async () => (await entryArray(find(arrays, name), options)).array),
      read: (name, options = {}) =>
        reportedHere(async () => {
          const entry = find(arrays, name);
          const { file, end, array } = await entryArray(entry, options);
          // A checksum is of the whole entry. What comes after the array is read if it is short, as NumPy does.
          if (file.size - end <= readBehind) entry.verify(await file.read(0, file.size));
          return array.read();
        }),
    };
  });
}

/** The array of an entry, and where it ends. */
async function entryArray(
  entry: ZipEntry,
  options: NpyOptions,
): Promise<NpyPlace & { readonly file: ByteRanges }> {
  const file = boundedRanges(await entry.ranges(), "npz");
  return { file, ...(await storedNpy(file, options)) };
}

function find(arrays: ReadonlyMap<string, ZipEntry>, name: string): ZipEntry {
  const entry = arrays.get(name);
  if (entry !== undefined) return entry;
  throw new TilewrightError({
    code: "TW0107",
    message: `the npz file has no array ${name}`,
    expected: [...arrays.keys()].join(", "),
    found: name,
  });
}

/** All arrays of an npz file by name. */
export function readNpz(
  source: FileSource,
  options: NpzOptions = {},
): Promise<{ readonly [name: string]: HostArray }> {
  return reportedHere(async () => {
    const file = await openNpz(source, options);
    const arrays: [string, HostArray][] = [];
    for (const name of file.names) arrays.push([name, await file.read(name, options)]);
    return Object.fromEntries(arrays);
  });
}

/** The bytes of an npz file, its entries stored as np.savez stores them. */
export function writeNpz(arrays: { readonly [name: string]: HostArray }): Uint8Array {
  return writeZip(
    Object.entries(arrays).map(([name, array]) => [`${name}${suffix}`, writeNpy(array)]),
  );
}
