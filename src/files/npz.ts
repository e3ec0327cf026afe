/**
 * npz files: zip archives with an npy file for each array, as np.savez and np.savez_compressed write
 * them. Names are without the ".npy" that entries end in.
 */
import { TilewrightError } from "../support/diagnostics.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { storedNpy, writeNpy } from "./npy.ts";
import type { NpyOptions } from "./npy.ts";
import { openRanges, reportedHere } from "./source.ts";
import type { FileSource } from "./source.ts";
import type { StoredArray } from "./stored-array.ts";
import { openZip, writeZip } from "./zip.ts";
import type { ZipEntry } from "./zip.ts";

const suffix = ".npy";

export interface NpzFile {
  readonly names: readonly string[];
  /** An array of which nothing but the header is read yet; a compressed one is expanded whole. */
  open(name: string, options?: NpyOptions): Promise<StoredArray>;
  /** All of an array. */
  read(name: string, options?: NpyOptions): Promise<HostArray>;
}

/** The arrays of an npz file, of which nothing but the directory is read yet. */
export function openNpz(source: FileSource): Promise<NpzFile> {
  return reportedHere(async () => {
    const entries = await openZip(await openRanges(source, "npz"));
    const arrays = new Map(
      entries
        .filter(({ name }) => name.endsWith(suffix))
        .map((entry) => [entry.name.slice(0, -suffix.length), entry]),
    );
    return {
      names: [...arrays.keys()],
      open: (name, options = {}) =>
        reportedHere(async () => storedNpy(await find(arrays, name).ranges(), options)),
      read: (name, options = {}) =>
        reportedHere(async () => {
          const bytes = await find(arrays, name).bytes();
          return (await storedNpy(await openRanges(bytes, "npz"), options)).read();
        }),
    };
  });
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
  options: NpyOptions = {},
): Promise<{ readonly [name: string]: HostArray }> {
  return reportedHere(async () => {
    const file = await openNpz(source);
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
