/** Codes of number formats and host arrays: TW0xxx. */
import { registerCodes } from "./entry.ts";

export const formatCodes = registerCodes({
  TW0001: {
    title: "data does not fit the shape",
    cause:
      "The data given for a host array holds another number of elements than its shape asks for.",
    example: "hostArray(f32, [4, 4], new Float32Array(15))",
    remedy: "give as many elements as the product of the shape",
  },
  TW0002: {
    title: "wrong kind of array for the format",
    cause:
      "Each format is stored in one kind of typed array: the numbers themselves where JavaScript has a typed array for them, bit patterns where it has none.",
    example: "hostArray(bf16, [2], new Float32Array([1, 2]))",
    remedy: "use `fromNumbers`, which converts from any array of numbers",
  },
  TW0003: {
    title: "not a shape",
    cause: "A shape is a list of extents, whole numbers from zero up.",
    example: "hostArray(f32, [4, -1])",
    remedy: "give each extent as a whole number, zero or more",
  },
  TW0004: {
    title: "not a value that a format can take",
    cause:
      "Elements are made from numbers, booleans, and BigInts of at most 64 bits, signed or unsigned.",
    example: "fromNumbers(u64, [1], [2n ** 64n])",
    remedy: "give a number, a boolean or a BigInt from -2^63 to 2^64 - 1",
  },
  TW0005: {
    title: "arrays of elements differ in length",
    cause: "A conversion writes one target element for each source element.",
    example: "convertElements(f32, bf16, new Float32Array(8), new Uint16Array(4))",
    remedy: "allocate as many target elements as there are source elements",
  },
  TW0006: {
    title: "too few bytes",
    cause: "The bytes to unpack end before the last element asked for.",
    example: "unpackElements(f32, new Uint8Array(15), 4)",
    remedy: "give all the bytes that the elements take, or ask for fewer elements",
  },
  TW0007: {
    title: "not a number format",
    cause: "Formats are objects, such as f32; the name of one, or nothing, was given.",
    example: 'fromNumbers("f32", [2], [1, 2])',
    remedy: "import the format and give it: fromNumbers(f32, [2], [1, 2])",
  },
  TW0008: {
    title: "object of another copy of tilewright",
    cause:
      "The program holds two copies of the library, one below each of two packages or one in a bundle, and something that one made was given to the other. They share nothing: not even their formats are the same objects.",
    example: "device.run(kernelOfAnotherPackage, { x })",
    remedy:
      "let the program load one copy: `npm ls tilewright` tells where each comes from, `npm dedupe` joins those whose versions allow it, and a package that makes kernels names tilewright as a peer dependency",
  },
  TW0009: {
    title: "more elements than the process can hold",
    cause:
      "Arrays of the host, and those of simulator and emulator, are typed arrays of JavaScript, which has a limit on their length and may find no memory for them.",
    example: "hostArray(f32, [2 ** 40])",
    remedy: "work on smaller arrays, or on parts of the array",
  },
  TW0010: {
    title: "elements and scales that do not belong together",
    cause:
      "An array in a format with scales has elements and scales in the format's own dtypes, and a scale for each block of the elements, in the layout that was named.",
    example: "scaledHostArray(mxfp4, elements, fromNumbers(f32, [1], [2]))",
    remedy: "give scales of the format's dtype, as many as the error says",
  },
});
