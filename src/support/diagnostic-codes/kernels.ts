/** Codes of operations and of the kernel library: TW99xx. */
import { registerCodes } from "./entry.ts";

export const kernelCodes = registerCodes({
  TW9901: {
    title: "formats that an operation does not take",
    cause:
      "Operations compute with certain formats, and products with certain pairs of them; nothing is converted silently.",
    example: "matmul({ a: bf16, b: f16 })",
    remedy: "use formats that the message lists; cast({ x, out }) converts an array",
  },
  TW9902: {
    title: "shapes that do not fit",
    cause:
      "The arrays of an operation do not share the sizes that they must share, or lie in memory in another way than it reads.",
    example: "matmul({ a: tensor(bf16, [m, k]), b: tensor(bf16, [n, k]) })",
    remedy:
      "give arrays of the expected shapes, and axes that they have; strides say that one lies by columns",
  },
  TW9903: {
    title: "precision that nobody said",
    cause:
      "f32 can be multiplied exactly or as tf32, and FP8 summed in several ways: the numbers differ, so it has to be said.",
    example: "matmul({ a: f32, b: f32 })",
    remedy:
      'say it: of f32 precision: "ieee" is exact and "tf32" fast, of FP8 accumulation: "promoted" is closer and "fast" faster; leave out what other formats do not take',
  },
  TW9904: {
    title: "option or configuration that cannot be",
    cause:
      "An option is none of those that the operation knows, or the configuration that was given has settings that its kernel does not know, or takes more than the GPU has.",
    example: 'matmul({ a: bf16, b: bf16, configuration: { kernel: "persistent", stages: 9, … } })',
    remedy: "give what is expected; a configuration can be left out",
  },
  TW9905: {
    title: "function that gives another tile",
    cause:
      "The function that an operation was given has to give tiles of the names, formats and shape that the operation expects, and to compute each element from elements in the same place.",
    example: "matmul({ a: bf16, b: bf16, epilogue: ({ sums }) => sums })",
    remedy:
      "end with cast(dtype), keep the shape, and reduce or move elements with another operation",
  },
  TW9908: {
    title: "plan that cannot be carried out",
    cause:
      "The plan of an operation launches a kernel without one of its arguments, or names an array that neither the operation nor its scratch has.",
    example:
      'operation({ name: "sum", plan: () => ({ launches: [{ kernel, arguments: {} }], … }) })',
    remedy:
      "give every parameter of every kernel an array of the operation, an array of scratch or a scalar",
  },
});
