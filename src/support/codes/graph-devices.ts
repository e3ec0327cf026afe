/** Codes of programs on devices: TW96xx. */
import { registerCodes } from "./entry.ts";

export const graphDeviceCodes = registerCodes({
  TW9601: {
    title: "op that no device runs",
    cause:
      "The op has no lowering to kernels: it works between devices, on complex or quantised numbers, on shapes that are known only when it runs, or calls something outside the program.",
    example:
      "%0 = stablehlo.fft %x, type = FFT, length = [8] : (tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>>",
    remedy: "run the program with --device evaluator, or rewrite it without the op",
  },
  TW9602: {
    title: "type that devices do not have",
    cause: "A value of the program has elements that kernels have no format for, or is no tensor.",
    example: "func.func @main(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>",
    remedy: "convert to an element type that kernels have, or run the program on the evaluator",
  },
});
