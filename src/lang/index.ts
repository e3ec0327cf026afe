/**
 * The public names of the kernel language.
 *
 *   ({ i, x, out }) => out.at(slice(i.mul(128), 128)).store(x.at(slice(i.mul(128), 128)).load().exp())
 *     runs once, and every call records an op: slice_ref, load, unary exp, slice_ref, store
 */
export type {
  AccessOptions,
  AtomicFunction,
  AtomicOptions,
  LoadOptions,
  LoadScalarOptions,
  StoreOptions,
} from "./access.ts";
export type {
  LoadOrder,
  MemoryOrder,
  MemoryScope,
  ScopeOption,
  StoreOrder,
} from "./memory-order.ts";
export { accumulator } from "./accumulator.ts";
export type { Accumulator } from "./accumulator.ts";
export { flip, histogram, roll, takeAlong, topK } from "./arrange.ts";
export type { TopKOptions } from "./arrange.ts";
export { assumeBelow, assumeBetween, assumeMultipleOf } from "./assume.ts";
export { byTarget, tracedTarget } from "./by-target.ts";
export type { ByTarget, TargetChoices } from "./by-target.ts";
export { castStochastic } from "./stochastic.ts";
export { elementRun } from "./random-elements.ts";
export type { ElementNumbers, ElementRun } from "./random-elements.ts";
export { philoxBits } from "./random-generators.ts";
export type { RandomGenerator } from "./random-generators.ts";
export { joinedWords, philoxHashes, philox4x32, threefry2x32, wordsOf } from "./random-hashes.ts";
export { randomKey } from "./random.ts";
export type { RandomKey, RandomKeyOptions, UniformOptions } from "./random.ts";
export { reduceWith, scanWith } from "./combine.ts";
export type {
  Combine,
  Combined,
  IdentityOf,
  ReduceWithOptions,
  ScanWithOptions,
} from "./combine.ts";
export {
  tensor,
  tensors,
  barrier,
  clusterBarrier,
  gmem,
  scalar,
  semaphore,
  smem,
  tmem,
  union,
} from "./arguments.ts";
export type {
  TensorSpec,
  TensorListSpec,
  BarrierSpec,
  ClusterBarrierSpec,
  MemorySpec,
  ScalarSpec,
  ScopedSpec,
  ScratchSpec,
  SemaphoreSpec,
  TmemOptions,
  UnionSpec,
} from "./arguments.ts";
export {
  commitGlobal,
  commitGroup,
  commitShared,
  copyAsync,
  prefetch,
  prefetchMaps,
  waitGroup,
  wgmma,
} from "./async.ts";
export { tcgen05Commit, tcgen05Copy, tcgen05Mma } from "./tensor-memory.ts";
export type { PairOptions, Tcgen05CommitOptions, Tcgen05MmaOptions } from "./tensor-memory.ts";
export type { CopyOptions, ProductOptions } from "./async.ts";
export { loop, returnIf, scoped, switchCase, warps, when, whileLoop } from "./control.ts";
export type { CarryingLoop, CarryingLoopControl, LoopBounds, LoopControl } from "./control.ts";
export { extract, insert } from "./extract.ts";
export { concatenate, constant, dot, full, iota, zeros } from "./create.ts";
export { splitTerms, splitTile, finiteCorrections } from "./split-precision.ts";
export type { SplitPrecision } from "./split-precision.ts";
export type { DotDType, DotOptions } from "./create.ts";
export { assert, debugBreak, debugPrint, optimizationBarrier, printLayout } from "./debug.ts";
export { profile } from "./profile.ts";
export type { Operand } from "./elementwise.ts";
export type { Accuracy, RoundingOptions } from "./accuracy.ts";
export type { Index } from "./indices.ts";
export { inlinePtx } from "./inline-ptx.ts";
export type {
  InlineAccesses,
  InlineAddresses,
  InlineElements,
  InlineLanes,
  InlineMemory,
  InlineResults,
  InlineTile,
} from "./inline-ptx.ts";
export { isKernelDefinition, kernel } from "./kernel.ts";
export type { KernelDefinition } from "./kernel.ts";
export type { PickedRef, TileIndex } from "./gathered-ref.ts";
export {
  pipeline,
  ring,
  storeThrough,
  tiles,
  pingPong,
  warpSpecialized,
} from "./pipeline/index.ts";
export type {
  BlockMap,
  CarryingPipeline,
  InputOptions,
  OutputOptions,
  PipelineOptions,
  RegisterShares,
  Ring,
  RingPosition,
  RunSteps,
  Settled,
  SpecializedOptions,
  SpecializedStep,
  SpecializedTile,
  TileOptions,
  Tiles,
  PingPongOptions,
  PingPong,
} from "./pipeline/index.ts";
export type { Ref } from "./ref.ts";
export type { Scalar } from "./elementwise.ts";
export { cdiv, dim, processors } from "./sizes.ts";
export type { LaunchSize, SizeArithmetic } from "./sizes.ts";
export type {
  TensorSpecs,
  ClusterSpec,
  GridSpec,
  Empty,
  InputSpecs,
  KernelSpec,
  ScratchSpecs,
  Signature,
} from "./spec.ts";
export {
  blockSync,
  clusterArrive,
  clusterRank,
  clusterSync,
  clusterWait,
  delay,
  gridSize,
  launchNextKernel,
  setRegisters,
  threadIndex,
  waitForPreviousKernel,
} from "./sync.ts";
export type { Barrier } from "./barriers.ts";
export type { ClusterBarrier } from "./cluster-barriers.ts";
export type { Semaphore } from "./sync.ts";
export type { ReduceOptions, ScanOptions, SearchOptions, SortOptions, Tile } from "./tile.ts";
export type { TensorList } from "./tensor-list.ts";
export type { Tree } from "./tree.ts";
export { vmap } from "./vmap.ts";
export type { BatchAxes, BatchedInputs, VmapOptions } from "./vmap.ts";
export { all, block, slice } from "./window.ts";
export type { All, Slice, SliceOptions, WindowIndex } from "./window.ts";
export { scaledDot } from "./scaled-dot.ts";
export type { ScaledDotOptions, ScaledTile } from "./scaled-dot.ts";
