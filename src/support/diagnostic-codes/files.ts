/** Codes of files of arrays: TW01xx. */
import { registerCodes } from "./entry.ts";

export const fileCodes = registerCodes({
  TW0101: {
    title: "file of another kind",
    cause: "The bytes do not begin or end as files of this kind do.",
    example: 'readNpy(await readFile("weights.npz"))',
    remedy: "use the function of the file's kind: readNpy, readNpz or readSafetensors",
  },
  TW0102: {
    title: "file ends too early",
    cause:
      "The header promises bytes that the file does not have: a download or a copy was cut off.",
    example: "readNpy(bytes.subarray(0, 100))",
    remedy: "fetch the file again, and compare its size with that of the original",
  },
  TW0103: {
    title: "damaged header",
    cause:
      "The part of the file that says which arrays it holds cannot be read or contradicts itself.",
    example: 'a header with "shape": [2, -1]',
    remedy: "write the file again with the library that made it",
  },
  TW0104: {
    title: "element type without a format here",
    cause:
      "The file stores elements that no number format here can hold: records, text, Python objects, extended precision, six-bit floats.",
    example: 'np.save("people.npy", np.zeros(3, dtype=[("age", "i4")]))',
    remedy: "save one array of numbers for each field, in a type that the page on files lists",
  },
  TW0105: {
    title: "archive entry that cannot be read",
    cause:
      "An entry of the archive is encrypted, or compressed by a method that NumPy does not use.",
    example: "zip --encrypt weights.npz w.npy",
    remedy: "write the archive with np.savez or np.savez_compressed",
  },
  TW0106: {
    title: "damaged data",
    cause:
      "Compressed bytes of an archive cannot be expanded, or what they expand to has another size or checksum than the archive says.",
    example: "one changed byte in an npz file",
    remedy: "fetch the file again: a part of it was changed",
  },
  TW0107: {
    title: "no array of this name in the file",
    cause: "The file holds arrays under other names.",
    example: 'file.read("wieght")',
    remedy: "use one of the names that the file has",
  },
  TW0108: {
    title: "rows that the array does not have",
    cause:
      "A range of rows goes from a first to a last, exclusive, both from 0 to the first extent.",
    example: 'file.rows("w", 0, 1000) // of an array with 512 rows',
    remedy: "give whole numbers with 0 <= start <= end <= the first extent",
  },
  TW0109: {
    title: "array that this kind of file cannot hold",
    cause:
      "The kind of file has no element type for the array's format, or the name is not allowed.",
    example: "writeSafetensors({ w: hostArray(i4, [2]) })",
    remedy: "convert the array to a format that the page on files lists for this kind of file",
  },
  TW0110: {
    title: "nothing that bytes can be read from",
    cause:
      "Files are read from a Uint8Array, a Blob or a file handle of Node; a path is none of them.",
    example: 'readNpy("x.npy")',
    remedy: 'open the file first: readNpy(await readFile("x.npy")), or a handle for large files',
  },
  TW0111: {
    title: "array that expands to too much",
    cause:
      "A compressed array of an npz file would take more memory than the limit: a few kilobytes may stand for gigabytes.",
    example: "readNpz(bytes, { expandedLimit: 1024 })",
    remedy: "raise expandedLimit if the file can be trusted",
  },
  TW0112: {
    title: "arrays that stand for none in a format with scales",
    cause:
      "Checkpoints keep elements and scales under names that belong together; none of the known schemas has arrays of these names, dtypes and shapes.",
    example: 'scaledArrayFrom(await readSafetensors(file), "model.layers.0")',
    remedy: "give the name without what the schema adds to it, such as .weight or _blocks",
  },
});
