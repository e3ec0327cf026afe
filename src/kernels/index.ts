/** `tilewright/kernels`: operations that are ready to use, for any sizes. */
export { matmul } from "./matmul/matmul.ts";
export type { EpilogueInputs, Matmul, MatmulOperand, MatmulSpec } from "./matmul/matmul.ts";
export type { MatmulConfiguration } from "./matmul/configuration.ts";
export type { Accumulation, MatmulPrecision } from "./matmul/problem.ts";
