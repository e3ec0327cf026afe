/**
 * What a user calls an op. Reports speak of the call that stands in the user's program:
 *
 *   copy_async               copyAsync
 *   binary {fn = min}        minimum
 *   proxy_fence {space = …}  commitShared or commitGlobal
 *   barrier_wait             Barrier.wait
 */
import type {
  BinaryFunction,
  ClassifyFunction,
  UnaryFunction,
} from "../formats/arithmetic/functions.ts";
import type { AnyOp } from "./node.ts";
import type { OpAttributes, OpKind } from "./ops.ts";

type OpNames = {
  readonly [K in OpKind]: string | ((attributes: OpAttributes<K>) => string);
};

/** Functions whose methods are called otherwise. */
const methodNames: { readonly [F in UnaryFunction | BinaryFunction | ClassifyFunction]?: string } =
  {
    min: "minimum",
    max: "maximum",
    mul_high: "mulHigh",
    bit_reverse: "bitReverse",
    erf_inv: "erfInv",
    is_nan: "isNan",
    is_finite: "isFinite",
  };

/** The method of a function. */
export function methodName(fn: UnaryFunction | BinaryFunction | ClassifyFunction): string {
  return methodNames[fn] ?? fn;
}

const opNames: OpNames = {
  constant: "constant",
  block_index: "the grid",
  grid_size: "gridSize",
  cluster_rank: "clusterRank",
  thread_index: "threadIndex",
  size: "dim",
  iota: "iota",
  unary: ({ fn }) => methodName(fn),
  classify: ({ fn }) => methodName(fn),
  binary: ({ fn }) => methodName(fn),
  compare: ({ predicate }) => predicate,
  fma: "fma",
  assume: ({ multipleOf, below }) =>
    multipleOf !== undefined
      ? "assumeMultipleOf"
      : below === undefined
        ? "assumeBetween"
        : "assumeBelow",
  select: "select",
  cast: "cast",
  inline_ptx: "inlinePtx",
  inline_ptx_memory: "inlinePtx",
  is_simulated: "inlinePtx",
  optimization_barrier: "optimizationBarrier",
  bitcast: "bitcast",
  bitcast_width: "bitcast",
  broadcast: "broadcastTo",
  reshape: "reshape",
  transpose: "transpose",
  layout_cast: ({ hint, convert }) =>
    convert === true ? "convertLayout" : hint === true ? "layoutHint" : "layoutCast",
  slice: "slice",
  concatenate: "concatenate",
  reduce: ({ fn }) => fn,
  scan: ({ fn }) => `cum${fn}`,
  arg_reduce: ({ fn }) => fn,
  sort: "sort",
  scaled_dot: "scaledDot",
  dot: "dot",
  alloc: ({ space }) => space,
  alloc_union: "union",
  union_member: "union",
  slice_ref: "at",
  transpose_ref: "transpose",
  reshape_ref: "reshape",
  peer_ref: "peer",
  select_ref: "at",
  address_of: "inlinePtx",
  load: "load",
  store: "store",
  atomic: ({ fn }) => `atomic ${fn}`,
  atomic_compare_exchange: "compareExchange",
  atomic_load: "load",
  atomic_store: "store",
  take_block: "tiles",
  taken_block: "tiles",
  copy_async: "copyAsync",
  prefetch: "prefetch",
  prefetch_maps: "prefetchMaps",
  commit_group: "commitGroup",
  wait_group: "waitGroup",
  proxy_fence: ({ space }) => (space === "smem" ? "commitShared" : "commitGlobal"),
  accumulator: "accumulator",
  wgmma: "wgmma",
  wgmma_wait: ({ gives }) => (gives === "tile" ? "Accumulator.wait" : "Accumulator.waitPending"),
  alloc_tmem: "tmem",
  tmem_member: "union",
  tmem_load: "load",
  tmem_store: "store",
  tcgen05_mma: "tcgen05Mma",
  tcgen05_copy: "tcgen05Copy",
  tcgen05_commit: "tcgen05Commit",
  alloc_barrier: "barrier",
  linear_index: "Barrier.at",
  barrier_arrive: "Barrier.arrive",
  barrier_wait: "Barrier.wait",
  barrier_test: "Barrier.test",
  delay: "delay",
  block_sync: "blockSync",
  cluster_arrive: "clusterArrive",
  cluster_wait: "clusterWait",
  set_registers: "setRegisters",
  grid_dependency: "waitForPreviousKernel",
  alloc_semaphore: "semaphore",
  semaphore_signal: "Semaphore.signal",
  semaphore_wait: "Semaphore.wait",
  semaphore_read: "Semaphore.read",
  loop: "loop",
  while: "whileLoop",
  if: "when",
  switch: "switchCase",
  scoped: "scoped",
  on_threads: "a thread's code",
  warps: "warps",
  yield: "the end of a body",
  debug_print: "debugPrint",
  print_layout: "printLayout",
  profile_mark: "profile",
  assert: "assert",
  debug_break: "debugBreak",
  convert_layout: "a conversion",
  alloc_scratch: "scratch",
  lane_barrier: "a barrier between the threads of a program thread",
  barriers_ready: "the start of barriers",
  products_wait: "a wait for products",
  cluster_barrier: "a barrier of the cluster",
  copies_read: "a wait for copies",
};

/** The op's name in the user's program. */
export function opName(op: Pick<AnyOp, "kind" | "attributes">): string {
  const name = opNames[op.kind];
  if (typeof name === "string") return name;
  // TypeScript cannot see that the name and the attributes share their kind.
  return (name as (attributes: object) => string)(op.attributes);
}
