/** `tilewright/kernels`: operations that are ready to use, for any sizes. */
export { cast, copy, fill } from "./elementwise/cast.ts";
export type { CastSpec, CopySpec, FillOperation, FillSpec } from "./elementwise/cast.ts";
export { map } from "./elementwise/map.ts";
export type { MapInputs, MapOperation, MapOptions, MapResults } from "./elementwise/map.ts";
export type { MapConfiguration } from "./elementwise/map-kernel.ts";
export { crossEntropy } from "./rows/cross-entropy.ts";
export type { CrossEntropyOperation, CrossEntropySpec } from "./rows/cross-entropy.ts";
export { layerNorm, rmsNorm } from "./rows/norm.ts";
export type { LayerNormSpec, NormOperation, NormSpec } from "./rows/norm.ts";
export type { RowConfiguration } from "./rows/row-kernel.ts";
export { logSoftmax, softmax } from "./rows/softmax.ts";
export type { SoftmaxOperation, SoftmaxSpec } from "./rows/softmax.ts";
export { logSoftmaxBackward, softmaxBackward } from "./rows/softmax-backward.ts";
export type { SoftmaxBackwardOperation, SoftmaxBackwardSpec } from "./rows/softmax-backward.ts";
export { matmul } from "./matmul/matmul.ts";
export type { EpilogueInputs, Matmul, MatmulOperand, MatmulSpec } from "./matmul/matmul.ts";
export type { MatmulConfiguration } from "./matmul/configuration.ts";
export type { Accumulation, MatmulPrecision } from "./matmul/problem.ts";
