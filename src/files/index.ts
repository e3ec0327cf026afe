/**
 * Files of arrays: what `import … from "tilewright/files"` offers.
 *
 *   weights.safetensors ──▶ { name: array }      whole, or the ranges that are asked for
 */
export {
  openNpy,
  openNpz,
  readNpy,
  readNpz,
  scaledArrayEntries,
  scaledArrayFrom,
  writeNpy,
  writeNpz,
  writeSafetensors,
} from "./checked.ts";
export type { NpyOptions } from "./npy.ts";
export type { NpzFile, NpzOptions } from "./npz.ts";
export type { NamedArrays, ScaledEntriesOptions, ScaledSchema } from "./scaled-arrays.ts";
export { openSafetensors, readSafetensors } from "./safetensors.ts";
export type { SafetensorsFile } from "./safetensors.ts";
export type { FileSource, HandleSource, SlicedSource } from "./source.ts";
export type { StoredArray } from "./stored-array.ts";
