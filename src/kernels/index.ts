/** `tilewright/kernels`: operations that are ready to use, for any sizes. */
export { cast, copy, fill } from "./elementwise/cast.ts";
export type { CastSpec, CopySpec, FillOperation, FillSpec } from "./elementwise/cast.ts";
export { map } from "./elementwise/map.ts";
export type { MapInputs, MapOperation, MapOptions, MapResults } from "./elementwise/map.ts";
export type { MapConfiguration } from "./elementwise/map-kernel.ts";
export { matmul } from "./matmul/matmul.ts";
export type { EpilogueInputs, Matmul, MatmulOperand, MatmulSpec } from "./matmul/matmul.ts";
export type { MatmulConfiguration } from "./matmul/configuration.ts";
export type { Accumulation, MatmulPrecision } from "./matmul/problem.ts";
