/** Codes of operations and of the kernel library: TW90xx. */
import { registerCodes } from "./entry.ts";

export const kernelCodes = registerCodes({
  TW9008: {
    title: "plan that cannot be carried out",
    cause:
      "The plan of an operation launches a kernel without one of its arguments, or names an array that neither the operation nor its scratch has.",
    example:
      'operation({ name: "sum", plan: () => ({ launches: [{ kernel, arguments: {} }], … }) })',
    remedy:
      "give every parameter of every kernel an array of the operation, an array of scratch or a scalar",
  },
});
