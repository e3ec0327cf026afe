/**
 * The library's entry: everything `import … from "tilewright"` offers, named one by one. Nothing here
 * reaches the command line, so the entry bundles for a browser.
 *
 *   import { tensor, f32, kernel, open } from "tilewright";
 */
export { TilewrightError } from "./support/diagnostics.ts";
export type { DiagnosticCode } from "./support/diagnostics.ts";
export {
  bf16,
  bool,
  f16,
  f32,
  f4e2m1fn,
  f6e2m3fn,
  f6e3m2fn,
  f64,
  f8e4m3fn,
  f8e5m2,
  f8e8m0fnu,
  i16,
  i32,
  i4,
  i64,
  i8,
  tf32,
  u16,
  u32,
  u4,
  u64,
  u8,
} from "./formats/dtype.ts";
export type { DType, DTypeName, HostValue, Elements } from "./formats/dtype.ts";
export {
  fp8Block128x128,
  fp8Block1x128,
  mxfp4,
  mxfp6e2m3,
  mxfp6e3m2,
  mxfp8e4m3,
  mxfp8e5m2,
  nvfp4,
} from "./formats/scaled/formats.ts";
export type { ScaledFormat, ScaledFormatName } from "./formats/scaled/formats.ts";
export { formatScaledArray, scaledHostArray, scaledNumbers } from "./formats/scaled/host-array.ts";
export type {
  FormatScaledArrayOptions,
  ScaledHostArray,
  ScaledHostArrayOptions,
} from "./formats/scaled/host-array.ts";
export type { ScaleLayout } from "./formats/scaled/layout.ts";
export type { ScaleRounding } from "./formats/scaled/scale-rounding.ts";
export { decodeFloat, encodeFloat } from "./formats/float-codes.ts";
export type { CodedFloatName, ConversionOptions } from "./formats/floats.ts";
export { convertElements } from "./formats/convert.ts";
export { convertValue } from "./formats/values.ts";
export { packElements, unpackElements } from "./formats/packed.ts";
export {
  formatArray,
  fromElements,
  fromNested,
  fromNumbers,
  hostArray,
  toBigInts,
  toFloat32,
  toElements,
  toNested,
  toNumbers,
} from "./formats/hostarray.ts";
export type {
  GivenArray,
  HostArray,
  Nested,
  NestedList,
  PlainList,
  Storage,
} from "./formats/hostarray.ts";
export {
  accumulator,
  all,
  tensor,
  tensors,
  assert,
  printLayout,
  byTarget,
  tracedTarget,
  assumeBelow,
  assumeBetween,
  assumeMultipleOf,
  barrier,
  clusterBarrier,
  block,
  blockSync,
  castStochastic,
  cdiv,
  clusterArrive,
  clusterRank,
  clusterSync,
  clusterWait,
  delay,
  commitGlobal,
  commitGroup,
  commitShared,
  concatenate,
  constant,
  copyAsync,
  debugBreak,
  debugPrint,
  profile,
  dim,
  dot,
  scaledDot,
  elementRun,
  flip,
  extract,
  full,
  gmem,
  gridSize,
  histogram,
  inlinePtx,
  insert,
  iota,
  kernel,
  launchNextKernel,
  loop,
  pipeline,
  optimizationBarrier,
  prefetch,
  prefetchMaps,
  processors,
  randomKey,
  reduceWith,
  returnIf,
  ring,
  roll,
  scalar,
  scanWith,
  scoped,
  semaphore,
  setRegisters,
  slice,
  smem,
  tcgen05Commit,
  tcgen05Copy,
  tcgen05Mma,
  tmem,
  storeThrough,
  switchCase,
  takeAlong,
  threadIndex,
  tiles,
  topK,
  pingPong,
  union,
  vmap,
  waitForPreviousKernel,
  waitGroup,
  warps,
  warpSpecialized,
  wgmma,
  when,
  whileLoop,
  zeros,
} from "./lang/index.ts";
export type {
  Accumulator,
  Accuracy,
  All,
  ByTarget,
  TargetChoices,
  TensorList,
  TensorListSpec,
  TensorSpec,
  TensorSpecs,
  AccessOptions,
  AtomicFunction,
  AtomicOptions,
  Barrier,
  BarrierSpec,
  ClusterBarrier,
  ClusterBarrierSpec,
  BatchAxes,
  BatchedInputs,
  BlockMap,
  CarryingLoop,
  CarryingLoopControl,
  CarryingPipeline,
  ClusterSpec,
  Combine,
  Combined,
  CopyOptions,
  PairOptions,
  Tcgen05CommitOptions,
  Tcgen05MmaOptions,
  TmemOptions,
  DotDType,
  DotOptions,
  ScaledDotOptions,
  ScaledTile,
  GridSpec,
  IdentityOf,
  Index,
  InlineAccesses,
  InlineAddresses,
  InlineElements,
  InlineLanes,
  InlineMemory,
  InlineResults,
  InlineTile,
  InputOptions,
  InputSpecs,
  KernelDefinition,
  KernelSpec,
  LaunchSize,
  LoadOptions,
  LoadOrder,
  LoadScalarOptions,
  LoopBounds,
  LoopControl,
  MemoryOrder,
  MemoryScope,
  MemorySpec,
  Operand,
  OutputOptions,
  PickedRef,
  PipelineOptions,
  ProductOptions,
  ReduceOptions,
  SearchOptions,
  Ref,
  RegisterShares,
  Ring,
  RingPosition,
  RoundingOptions,
  RunSteps,
  Scalar,
  ScalarSpec,
  ScanOptions,
  ScopedSpec,
  ScopeOption,
  ScratchSpec,
  ScratchSpecs,
  Semaphore,
  SemaphoreSpec,
  Settled,
  SizeArithmetic,
  Slice,
  SliceOptions,
  SortOptions,
  SpecializedOptions,
  SpecializedStep,
  SpecializedTile,
  StoreOptions,
  StoreOrder,
  Tile,
  TileIndex,
  TileOptions,
  Tiles,
  ElementNumbers,
  ElementRun,
  RandomGenerator,
  RandomKey,
  RandomKeyOptions,
  ReduceWithOptions,
  ScanWithOptions,
  TopKOptions,
  Tree,
  PingPongOptions,
  PingPong,
  UnionSpec,
  VmapOptions,
  WindowIndex,
} from "./lang/index.ts";
export type { Cost, KernelCost, Rates, Roofline } from "./ir/cost/index.ts";
export type { Dimension, Size } from "./ir/size.ts";

export { Device } from "./device/device.ts";
export type { DeviceOptions } from "./device/device-options.ts";
export type { LaunchOptions, WaitLimits } from "./device/wait-limits.ts";
export type { RunLimits } from "./support/run-limits.ts";
export type { SharedTensor } from "./device/array-access.ts";
export type { MemoryUse } from "./device/memory-account.ts";
export { Stream } from "./device/stream.ts";
export { DeviceModule, DeviceTensorMap } from "./device/foreign-code.ts";
export type { CodeSettings, CodeValue } from "./device/foreign-code.ts";
export { BoundLaunch } from "./device/bound-launch.ts";
export { isOperation, Operation, operation } from "./device/operation.ts";
export type {
  OperationPlan,
  OperationSpec,
  Planned,
  PlannedArgument,
  PlannedLaunch,
  PlanSource,
  ScratchArray,
  TileCounts,
} from "./device/operation.ts";
export { DeviceArray, formatLeaks } from "./device/device-array.ts";
export type { Leak } from "./device/device-array.ts";
export type { CompilationRecord } from "./device/compilation.ts";
export { profileTrace } from "./device/profile/kernel-profile.ts";
export type { KernelProfile, ProfileSpan } from "./device/profile/kernel-profile.ts";
export { drawProfiles } from "./device/profile/drawing.ts";
export type { TimeUnit } from "./device/backend.ts";
export type { PerformanceNote } from "./ptx/notes/note.ts";
export type { DeviceArguments, HostResults, Launchable, RunArguments } from "./device/types.ts";
export { compileAhead } from "./lower/compile-ahead.ts";
export type { CompiledAhead } from "./lower/compile-ahead.ts";
export { CompiledKernel, kernelFromCompiled } from "./ptx/compiled-kernel.ts";
export type { CompiledCode, CompiledManifest } from "./ptx/compiled-kernel.ts";
export { loadKernel } from "./runtime/load-kernel.ts";
export { open } from "./runtime/open.ts";
export { deviceNames } from "./runtime/open-options.ts";
export type { DeviceName, OpenOptions } from "./runtime/open-options.ts";
export type { SimulatorOptions } from "./runtime/simulator-backend.ts";
export type { ScheduleName } from "./sim/index.ts";
export { defaultTarget, targets } from "./targets/target.ts";
export type { Feature, Target, TargetName } from "./targets/target.ts";

export type { BankUse } from "./layout/algebra/bank-conflicts.ts";
export type { Holder } from "./layout/algebra/element-maps.ts";
export { namedLayouts } from "./layout/algebra/named-layouts.ts";
export type { Blocking, LayoutName, MmaOperand, WarpGrid } from "./layout/algebra/named-layouts.ts";
export type { Broadcast } from "./layout/algebra/operations.ts";
export type {
  DistributedLayout,
  RegisterLayout,
  SplatLayout,
} from "./layout/algebra/register-layout.ts";
export { parseSharedLayout } from "./layout/algebra/shared-layout.ts";
export type { SharedLayout, Swizzle } from "./layout/algebra/shared-layout.ts";
export type { SharedView } from "./layout/algebra/shared-view.ts";
export { parseTmemLayout } from "./layout/algebra/tensor-memory.ts";
export type { TmemLayout, TmemPlace } from "./layout/algebra/tensor-memory.ts";
export { parseLayout } from "./layout/algebra/parse-layout.ts";
export type { Dealing } from "./layout/algebra/tilings.ts";
export type { SharedAccess } from "./layout/drawing/shared-drawing.ts";
export type { RelayoutKind, RelayoutPlan } from "./layout/relayout/steps.ts";
export { placeKernel } from "./layout/plan/place.ts";
export type { AllocatedPlacement as Placement, PlaceOptions } from "./layout/plan/place.ts";
export {
  bankConflicts,
  blockedLayout,
  broadcastLayout,
  byteOffset,
  coalescedLayout,
  drawLayoutText,
  drawRegisterLayout,
  drawRelayout,
  drawRelayoutText,
  drawSharedLayout,
  drawSharedText,
  holders,
  mmaFragment,
  placementReport,
  planRelayout,
  reduceLayout,
  registersPerLane,
  relayoutCost,
  replication,
  sliceView,
  stridedLayout,
  tiling,
  tmemPlace,
  transposeLayout,
  transposeView,
  wholeView,
} from "./layout/checked.ts";
