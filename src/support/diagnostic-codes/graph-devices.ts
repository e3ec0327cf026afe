/** Codes of programs on devices: TW96xx. */
import { registerCodes } from "./entry.ts";

export const graphDeviceCodes = registerCodes({
  TW9601: {
    title: "op that no device runs",
    cause:
      "The op has no lowering to kernels: it works between devices, on quantised numbers, on shapes that are known only when it runs, or calls something outside the program.",
    example: "%0 = stablehlo.partition_id : tensor<ui32>",
    remedy: "run the program with --device evaluator, or rewrite it without the op",
  },
  TW9602: {
    title: "type that devices do not have",
    cause:
      "A value of the program has elements that kernels have no format for, more of them along an axis than indices of 32 bits count, or is no tensor.",
    example: "func.func @main(%x: tensor<4xf8E3M4>) -> tensor<4xf8E3M4>",
    remedy: "convert to an element type that kernels have, or run the program on the evaluator",
  },
});
