/**
 * `tilewright/kernels`: operations that are ready to use, for any sizes.
 *
 *   const op = matmul({ a: bf16, b: bf16, out: f32 });
 *   const { out } = await device.run(op, { a, b });      sizes are known here, and the configuration is chosen
 */
export { attention } from "./attention/attention.ts";
export type { Attention, AttentionOptions } from "./attention/attention.ts";
export { attentionBackward } from "./attention/backward.ts";
export type { AttentionBackward, AttentionBackwardSpec } from "./attention/backward.ts";
export type { AttentionConfiguration, GradientConfiguration } from "./attention/configuration.ts";
export type { AttentionSpec, ScorePlace, Window as AttentionWindow } from "./attention/problem.ts";
export {
  convolution,
  convolutionBackwardW,
  convolutionBackwardX,
} from "./convolution/convolution.ts";
export type {
  ConvolutionBackwardW,
  ConvolutionBackwardX,
  ConvolutionOperation,
  PixelConfiguration,
} from "./convolution/convolution.ts";
export type { ConvolutionSpec, PerAxis } from "./convolution/problem.ts";
export { cast, copy, fill } from "./elementwise/cast.ts";
export type { CastSpec, CopySpec, FillOperation, FillSpec } from "./elementwise/cast.ts";
export { map } from "./elementwise/map.ts";
export type { MapInputs, MapOperation, MapOptions, MapResults } from "./elementwise/map.ts";
export type { MapConfiguration } from "./elementwise/map-kernel.ts";
export { activations } from "./elementwise/activations.ts";
export { gated, rotary } from "./elementwise/gated-rotary.ts";
export type {
  GatedOperation,
  GatedSpec,
  RotaryOperation,
  RotarySpec,
} from "./elementwise/gated-rotary.ts";
export { gather } from "./movement/gather.ts";
export type { GatherOperation, GatherSpec } from "./movement/gather.ts";
export type { RowMoves } from "./movement/row-moves.ts";
export { scatter } from "./movement/scatter.ts";
export type {
  ScatterCombination,
  ScatterConfiguration,
  ScatterOperation,
  ScatterSpec,
} from "./movement/scatter.ts";
export { segmentReduce } from "./movement/segment-reduce.ts";
export type { SegmentReduceOperation, SegmentReduceSpec } from "./movement/segment-reduce.ts";
export { concatenate, pad, permute, slice } from "./movement/strided-copies.ts";
export type {
  ConcatenateOperation,
  ConcatenateSpec,
  PadSpec,
  PermuteSpec,
  SliceSpec,
} from "./movement/strided-copies.ts";
export { quantizeBlocks } from "./rows/quantize-blocks.ts";
export type {
  QuantizeBlocksConfiguration,
  QuantizeBlocksOperation,
  QuantizeBlocksSpec,
} from "./rows/quantize-blocks.ts";
export { pagedAttention } from "./paged/paged.ts";
export type { PagedAttention, PagedAttentionOptions } from "./paged/paged.ts";
export type { PagedConfiguration } from "./paged/configuration.ts";
export type { PagedAttentionSpec, PagedWindow } from "./paged/problem.ts";
export type {
  CategoricalOperation,
  CategoricalSpec,
  PermutationOperation,
  PermutationSpec,
} from "./random/sampling.ts";
export { dropout, random } from "./random/random.ts";
export type {
  BernoulliSpec,
  DrawConfiguration,
  DropoutOperation,
  DropoutSpec,
  RandomOperation,
  UniformSpec,
} from "./random/random.ts";
export { pool, poolBackward } from "./pooling/pool.ts";
export type {
  AveragePoolBackwardOperation,
  PoolBackwardOperation,
  PoolConfiguration,
  PoolForwardSpec,
  PoolOperation,
  PoolSpec,
} from "./pooling/pool.ts";
export { raggedDot } from "./ragged/ragged-dot.ts";
export type { RaggedDot, RaggedDotSpec } from "./ragged/ragged-dot.ts";
export { raggedOuter } from "./ragged/ragged-outer.ts";
export type { RaggedOuter, RaggedOuterSpec } from "./ragged/ragged-outer.ts";
export { argReduce } from "./reduce/arg-reduce.ts";
export type { ArgReduceOperation, ArgReduceSpec } from "./reduce/arg-reduce.ts";
export type { Combination } from "./reduce/combiners.ts";
export { bincount, histogram } from "./reduce/histogram.ts";
export type {
  BincountSpec,
  EdgesHistogramSpec,
  HistogramOperation,
  RangeHistogramSpec,
} from "./reduce/histogram.ts";
export type { HistogramConfiguration } from "./reduce/histogram-steps.ts";
export { reduce } from "./reduce/reduce.ts";
export type { ReduceInputs, ReduceOperation, ReduceSpec } from "./reduce/reduce.ts";
export { reduceWith } from "./reduce/reduce-with.ts";
export type { ReduceWithOperation, ReduceWithSpec } from "./reduce/reduce-with.ts";
export type { ReduceConfiguration } from "./reduce/reduce-kernel.ts";
export { crossEntropy } from "./rows/cross-entropy.ts";
export type { CrossEntropyOperation, CrossEntropySpec } from "./rows/cross-entropy.ts";
export { layerNorm, rmsNorm } from "./rows/norm.ts";
export type { LayerNormSpec, NormOperation, NormQuantization, NormSpec } from "./rows/norm.ts";
export { layerNormBackward, rmsNormBackward } from "./rows/norm-backward.ts";
export type {
  LayerNormBackwardSpec,
  NormBackwardConfiguration,
  NormBackwardOperation,
  NormBackwardSpec,
} from "./rows/norm-backward.ts";
export { quantize } from "./rows/quantize.ts";
export type { QuantizedFormat, QuantizeOperation, QuantizeSpec } from "./rows/quantize.ts";
export type { RowConfiguration } from "./rows/row-kernel.ts";
export { logSoftmax, softmax } from "./rows/softmax.ts";
export type { SoftmaxOperation, SoftmaxSpec } from "./rows/softmax.ts";
export { logSoftmaxBackward, softmaxBackward } from "./rows/softmax-backward.ts";
export type { SoftmaxBackwardOperation, SoftmaxBackwardSpec } from "./rows/softmax-backward.ts";
export { scan } from "./scan/scan.ts";
export type { ScanCombination, ScanOperation, ScanSpec } from "./scan/scan.ts";
export type { ScanConfiguration } from "./scan/scan-kernel.ts";
export { scanWith } from "./scan/scan-with.ts";
export type { ScanWithOperation, ScanWithSpec } from "./scan/scan-with.ts";
export { matmul } from "./matmul/matmul.ts";
export type {
  EpilogueInputs,
  Matmul,
  MatmulOperand,
  MatmulPrologue,
  MatmulSpec,
  QuantizedMatmulSpec,
  SparseMatmulSpec,
} from "./matmul/matmul.ts";
export { compress24, expand24 } from "./matmul/weights/compress-weights.ts";
export { sparse24 } from "./matmul/weights/sparse-weights.ts";
export type { Sparse24Spec, SparseFormat } from "./matmul/weights/sparse-weights.ts";
export { quantized } from "./matmul/weights/quantized.ts";
export type {
  QuantizedOptions,
  QuantizedSpec,
  ScaleFormat,
  WeightFormat,
} from "./matmul/weights/quantized.ts";
export { scaledMatmul } from "./matmul/scaled-matmul.ts";
export type { ScaledMatmulSpec, ScaledOperandFormat } from "./matmul/scaled-matmul.ts";
export { packWeights } from "./matmul/weights/pack-weights.ts";
export type { PackedScaleLayout, PackWeightsSpec } from "./matmul/weights/pack-weights.ts";
export { dequantizeWeights, quantizeWeights } from "./matmul/weights/quantize-weights.ts";
export type { QuantizeWeightsSpec } from "./matmul/weights/quantize-weights.ts";
export type { MatmulConfiguration, TiledConfiguration } from "./matmul/configuration.ts";
export type { EpilogueOutput, EpilogueOutputs } from "./matmul/epilogue/outputs.ts";
export type { Combine } from "./matmul/epilogue/types.ts";
export type { Accumulation, MatmulPrecision } from "./matmul/problem.ts";
export { searchSorted } from "./sort/search-sorted.ts";
export type { SearchSortedOperation, SearchSortedSpec } from "./sort/search-sorted.ts";
export { argsort, sort } from "./sort/sort.ts";
export type {
  ArgsortOperation,
  ArgsortSpec,
  SortConfiguration,
  SortOperation,
  SortSpec,
} from "./sort/sort.ts";
export type { RadixConfiguration } from "./sort/radix-kernels.ts";
export { topK } from "./sort/top-k.ts";
export type { TopKConfiguration, TopKOperation, TopKSpec } from "./sort/top-k.ts";
export { unique } from "./sort/unique.ts";
export type { UniqueOperation, UniqueSpec } from "./sort/unique.ts";
