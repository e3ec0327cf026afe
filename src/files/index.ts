/** Files of arrays: what `import … from "tilewright/files"` offers. */
export { openNpy, readNpy, readNpz, writeNpy, writeNpz, writeSafetensors } from "./checked.ts";
export type { NpyOptions } from "./npy.ts";
export { openNpz } from "./npz.ts";
export type { NpzFile } from "./npz.ts";
export { openSafetensors, readSafetensors } from "./safetensors.ts";
export type { SafetensorsFile } from "./safetensors.ts";
export type { FileSource, HandleSource, SlicedSource } from "./source.ts";
export type { StoredArray } from "./stored-array.ts";
