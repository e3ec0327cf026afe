/** The cost of one op, once, its regions left out: one rule a kind. */
import { functionNatures } from "../../formats/arithmetic/functions.ts";
import type { BinaryFunction, UnaryFunction } from "../../formats/arithmetic/functions.ts";
import { isFloat, packedBytes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { GridAxis, Value } from "../node.ts";
import type { OpRules } from "../ops.ts";
import { evaluateSize, multiplySizes } from "../size.ts";
import type { DimensionValues } from "../size.ts";
import { isData } from "../types.ts";
import type { RefType } from "../types.ts";
import { addCosts, noCost, scaleCost } from "./cost.ts";
import type { Cost, ProductFormat } from "./cost.ts";

/** What the sizes in a kernel depend on. */
export interface CostContext {
  readonly dimensions: DimensionValues;
  readonly grid: readonly GridAxis[];
}

/** Elements of a tile, a scalar or an accumulator. */
function elements({ type }: Value): number {
  if (type.kind !== "tile" && type.kind !== "inflight") return 1;
  return type.shape.reduce((product, extent) => product * extent, 1);
}

function flops(count: number): Cost {
  return { ...noCost, flops: count };
}

/** `count` operations on numbers of the value's format; integers cost no flops. */
function floatFlops(value: Value, count: number): Cost {
  return isData(value.type) && isFloat(value.type.dtype) ? flops(count) : noCost;
}

function functionCost(fn: UnaryFunction | BinaryFunction, source: Value): Cost {
  const count = elements(source);
  return functionNatures[fn] === "transcendental"
    ? { ...noCost, transcendentals: count }
    : floatFlops(source, count);
}

/** How fast a product of numbers of this format is; f32 runs as tf32 where the program says so. */
function productFormat(dtype: DType, precision?: string): ProductFormat {
  if (dtype.bits === 64) return "f64";
  if (dtype.bits === 16) return "half";
  if (dtype.bits < 16) return "byte";
  return dtype.name === "tf32" || precision === "tf32" ? "tf32" : "f32";
}

/** A matrix product of `count` multiplications and additions. */
function productFlops(operand: Value, count: number, precision?: string): Cost {
  const { type } = operand;
  if (type.kind !== "tile" && type.kind !== "ref")
    throw new Error("tiles and windows are multiplied");
  const format = productFormat(type.dtype, precision);
  return { ...flops(count), products: { ...noCost.products, [format]: count } };
}

type Way = "read" | "written";

function windowOf({ type }: Value): RefType {
  if (type.kind !== "ref") throw new Error("only windows are read and written");
  return type;
}

/** Reading or writing a whole window. */
function access(ref: Value, way: Way, { dimensions }: CostContext): Cost {
  return moved(ref, evaluateSize(multiplySizes(...windowOf(ref).shape), dimensions), way);
}

/** Reading or writing `count` elements of a window. */
function moved(ref: Value, count: number, way: Way): Cost {
  const { dtype, space: memory } = windowOf(ref);
  const space = memory === "gmem" ? "gmem" : "smem";
  const traffic = { ...noCost.bytes[space], [way]: packedBytes(dtype, count) };
  return { ...noCost, bytes: { ...noCost.bytes, [space]: traffic } };
}

/** Reading and writing each element of a tile. */
function readAndWrite(ref: Value, value: Value): Cost {
  const count = elements(value);
  return addCosts([moved(ref, count, "read"), moved(ref, count, "written")]);
}

/** The sum index of a product [m, k] by [k, n]. */
function innerExtent({ type }: Value): number {
  const extent = type.kind === "tile" || type.kind === "ref" ? type.shape[1] : undefined;
  return typeof extent === "number" ? extent : 1;
}

/** Elements of a window of numbers that are known now. */
function windowElements(ref: Value): number {
  return windowOf(ref).shape.reduce<number>((count, extent) => count * Number(extent), 1);
}

const free = () => noCost;

export const costRules: OpRules<[CostContext], Cost> = {
  constant: free,
  block_index: free,
  grid_size: free,
  cluster_rank: free,
  thread_index: free,
  size: free,
  iota: free,
  unary: ({ operands, attributes }) => functionCost(attributes.fn, operands.source),
  classify: ({ operands }) => floatFlops(operands.source, elements(operands.source)),
  binary: ({ operands, attributes }) => functionCost(attributes.fn, operands.left),
  compare: ({ operands }) => floatFlops(operands.left, elements(operands.left)),
  assume: free,
  fma: ({ operands }) => flops(2 * elements(operands.a)),
  select: free,
  cast: free,
  bitcast: free,
  bitcast_width: free,

  broadcast: free,
  reshape: free,
  transpose: free,
  layout_cast: free,
  inline_ptx: free,
  inline_ptx_memory: free,
  is_simulated: free,
  address_of: free,
  optimization_barrier: free,
  slice: free,
  concatenate: free,
  reduce: ({ operands: { source }, results }) =>
    floatFlops(source, elements(source) - results.reduce((sum, one) => sum + elements(one), 0)),
  scan: ({ operands: { source } }) => floatFlops(source, elements(source)),
  arg_reduce: ({ operands: { source } }) => floatFlops(source, elements(source)),
  sort: ({ operands: { keys }, attributes }) => {
    const { axis, first } = attributes;
    const extent = first ?? (keys.type.kind === "tile" ? (keys.type.shape[axis] ?? 1) : 1);
    return floatFlops(keys, elements(keys) * Math.ceil(Math.log2(extent)));
  },
  scaled_dot: ({ operands: { left }, results }) => {
    const count = 2 * innerExtent(left) * results.reduce((sum, one) => sum + elements(one), 0);
    return productFlops(left, count, "native");
  },
  dot: ({ operands: { left }, attributes: { precision }, results }) => {
    const count = 2 * innerExtent(left) * results.reduce((sum, one) => sum + elements(one), 0);
    return productFlops(left, count, precision);
  },

  alloc: free,
  alloc_union: free,
  union_member: free,
  slice_ref: free,
  transpose_ref: free,
  reshape_ref: free,
  peer_ref: free,
  select_ref: free,
  load: ({ operands, results }) =>
    addCosts(results.map((result) => moved(operands.ref, elements(result), "read"))),
  store: ({ operands }) => moved(operands.ref, elements(operands.value), "written"),
  atomic: ({ operands }) => readAndWrite(operands.ref, operands.value),
  atomic_compare_exchange: ({ operands }) => readAndWrite(operands.ref, operands.value),
  atomic_load: ({ operands }) => moved(operands.ref, elements(operands.fill), "read"),
  atomic_store: ({ operands }) => moved(operands.ref, elements(operands.value), "written"),

  take_block: free,
  taken_block: free,
  copy_async: ({ operands, attributes }, context) => {
    const receivers = context.grid
      .filter(({ name }) => attributes.multicast.includes(name))
      .reduce((product, { cluster }) => product * cluster, 1);
    return addCosts([
      access(operands.source, "read", context),
      scaleCost(access(operands.destination, "written", context), receivers),
    ]);
  },
  // The load that follows is charged for the bytes.
  prefetch: free,
  prefetch_maps: free,
  commit_group: free,
  wait_group: free,
  proxy_fence: free,
  accumulator: free,
  wgmma: ({ operands: { accumulator, a, b } }, context) =>
    addCosts([
      productFlops(a, 2 * innerExtent(a) * elements(accumulator)),
      a.type.kind === "ref" ? access(a, "read", context) : noCost,
      access(b, "read", context),
    ]),
  wgmma_wait: free,

  // No board has a rate of tensor memory: what is counted is what products read of shared memory.
  alloc_tmem: free,
  tmem_member: free,
  tmem_load: free,
  tmem_store: free,
  tcgen05_mma: ({ operands: { sums, a, b } }, context) =>
    addCosts([
      productFlops(a, 2 * innerExtent(a) * windowElements(sums)),
      ...[a, b].flatMap((each) =>
        windowOf(each).space === "smem" ? [access(each, "read", context)] : [],
      ),
    ]),
  tcgen05_copy: ({ operands: { source } }, context) => access(source, "read", context),
  tcgen05_commit: free,

  alloc_barrier: free,
  linear_index: free,
  barrier_arrive: free,
  barrier_wait: free,
  barrier_test: free,
  delay: free,
  block_sync: free,
  cluster_arrive: free,
  cluster_wait: free,
  set_registers: free,
  grid_dependency: free,
  alloc_semaphore: free,
  semaphore_signal: free,
  semaphore_wait: free,
  semaphore_read: free,

  loop: free,
  while: free,
  if: free,
  switch: free,
  scoped: free,
  on_threads: free,
  warps: free,
  yield: free,
  debug_print: free,
  print_layout: free,
  profile_mark: free,
  assert: free,
  debug_break: free,

  // What the program says is counted, not what it takes to place it.
  convert_layout: free,
  alloc_scratch: free,
  lane_barrier: free,
  barriers_ready: free,
  products_wait: free,
  cluster_barrier: free,
  copies_read: free,
};
