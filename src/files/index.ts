/** Files of arrays: what `import … from "tilewright/files"` offers. */
export { openNpy, readNpy, writeNpy } from "./npy.ts";
export type { NpyOptions } from "./npy.ts";
export { openNpz, readNpz, writeNpz } from "./npz.ts";
export type { NpzFile } from "./npz.ts";
export { openSafetensors, readSafetensors, writeSafetensors } from "./safetensors.ts";
export type { SafetensorsFile } from "./safetensors.ts";
export type { FileSource, HandleSource, SlicedSource } from "./source.ts";
export type { StoredArray } from "./stored-array.ts";
