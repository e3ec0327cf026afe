/**
 * The layout check of every op kind: an op leaves elements in the threads that hold them, so the layouts of its operands decide those of its
 * results. A value that is needed in another layout must have been converted by `convert_layout`.
 *
 *   | op             | check                                                                              |
 *   |----------------|------------------------------------------------------------------------------------|
 *   | exp, add, cast | operands and result have the same layout; casts from 4 bits permute registers       |
 *   | transpose, sum | the result's layout is an image of the operand's                                    |
 *   | broadcastTo    | the operand's layout is an image of the result's                                    |
 *   | dot, wgmma     | the layouts that the instruction fixes                                              |
 *   | loop, when     | initial values, parameters, yielded values and results have the same layout         |
 *   | load, store    | any layout; index tiles and masks are images of it                                  |
 */
import type { AnyOp, Kernel, Op, OpOf, Region, Value } from "../../ir/node.ts";
import { repetitionsOf } from "../../ir/indexed.ts";
import type { AccessOp } from "../../ir/indexed.ts";
import { ruleOf } from "../../ir/ops.ts";
import type { OpRules } from "../../ir/ops.ts";
import { reject } from "../../ir/verify/report.ts";
import { walkOps, yieldedValues } from "../../ir/traverse.ts";
import { isSpread } from "../../ir/types.ts";
import {
  mmaFragment,
  mmaScales,
  wgmmaAccumulator,
  wgmmaLeft,
  wgmmaMetadata,
} from "../../layout/algebra/named-layouts.ts";
import { replicatedLayout } from "../../layout/algebra/register-layout.ts";
import type { RegisterLayout } from "../../layout/algebra/register-layout.ts";
import { parseLayout } from "../../layout/algebra/parse-layout.ts";
import { commonFunctions, widensHalves } from "../../layout/model/layout-functions.ts";
import type { Functions } from "../../layout/model/layout-functions.ts";
import { layoutOf } from "../../layout/model/placed-types.ts";
import { matrixOf, tileOf } from "../../layout/model/product-instructions.ts";
import { isInFlight } from "../../targets/product-instructions.ts";
import { tmemLayoutOf, tmemRoot, tmemStorage } from "../../layout/model/tensor-memory.ts";
import type { TmemLayout } from "../../layout/algebra/tensor-memory.ts";
import { definingOps } from "../../ir/rewrite/analysis.ts";

export function verifyLayouts({ body, warps }: Kernel): void {
  const functions = commonFunctions();
  let definitions: ReadonlyMap<Value, AnyOp> | undefined;
  const storageOf = (window: Value): TmemLayout =>
    tmemStorage(tmemRoot(window, (definitions ??= definingOps(body))));
  walkOps(body, (op) => {
    ruleOf(layoutChecks, op)(op, functions, warps, storageOf);
  });
}

/** The value is spread over lanes and lies in the layout. */
function lies(op: AnyOp, value: Value, wanted: RegisterLayout | undefined): void {
  const found = layoutOf(value);
  if (wanted === undefined)
    reject(op, "TW6203", `${op.kind} says nothing of where %${value.id} lies`, {
      expected: "a layout that follows from the op",
      found: found.text,
    });
  if (found.text !== wanted.text)
    reject(op, "TW6203", `%${value.id} of ${op.kind} lies in the wrong place`, {
      expected: wanted.text,
      found: found.text,
    });
}

function isTile({ type }: Value): boolean {
  return isSpread(type);
}

/** All tiles among the values lie as the first. */
function alike(op: AnyOp, values: readonly Value[]): void {
  const [first, ...others] = values.filter(isTile);
  if (first !== undefined) for (const other of others) lies(op, other, layoutOf(first));
}

function pointwise(op: AnyOp, operands: readonly Value[]): void {
  alike(op, [...op.results, ...operands]);
}

/** Somebody in particular holds each element. */
function spread(op: AnyOp, values: readonly Value[]): void {
  for (const value of values)
    if (isTile(value) && layoutOf(value).kind === "splat")
      reject(op, "TW6203", `%${value.id} of ${op.kind} is one number for all elements`, {
        expected: "a layout that says who holds each element",
        found: "splat",
      });
}

function oneNumber(op: AnyOp): void {
  for (const result of op.results)
    if (isTile(result) && layoutOf(result).kind !== "splat")
      reject(op, "TW6203", `%${result.id} of ${op.kind} is one number for all elements`, {
        expected: "splat",
        found: layoutOf(result).text,
      });
}

function handed(op: AnyOp, lists: readonly (readonly Value[])[]): void {
  op.results.forEach((result, position) => {
    alike(op, [result, ...lists.flatMap((list) => list[position] ?? [])]);
  });
}

function carried(op: Op<"loop"> | Op<"while">, regions: readonly Region[], body: Region): void {
  const first = op.kind === "loop" ? 1 : 0;
  const parameters = regions.map((region) => region.parameters.slice(first));
  handed(op, [op.operands.initial, ...parameters, yieldedValues(body)]);
}

function along(op: Op<"scan"> | Op<"sort">, operands: readonly Value[]): void {
  pointwise(op, operands);
  spread(op, op.results);
}

function dot(op: Op<"dot">, functions: Functions, threadWarps: number): void {
  const { left, right, accumulator } = op.operands;
  const [result] = op.results;
  if (result === undefined) return;
  if (accumulator !== undefined) alike(op, [result, accumulator]);
  const fixed = (value: Value, layout: RegisterLayout): void => {
    if (isTile(value)) lies(op, value, functions.normal(layout, tileOf(value).shape));
  };
  const { instruction, warps: [rows = 1, columns = 1] = [] } = op.attributes;
  if (isInFlight(instruction)) {
    fixed(result, wgmmaAccumulator(threadWarps));
    if (left.type.kind === "tile") fixed(left, wgmmaLeft(left.type.dtype.bits, threadWarps));
  } else if (instruction === "mma.sync") {
    const { bits } = tileOf(left).dtype;
    fixed(result, mmaFragment("accumulator", bits, { rows, columns }));
    fixed(left, mmaFragment("left", bits, { rows, columns }));
    fixed(right, mmaFragment("right", bits, { rows, columns }));
  } else {
    const [k = 1] = tileOf(left).shape.slice(1);
    const { shape } = tileOf(result);
    lies(op, left, functions.factor("left", shape, k).apply(layoutOf(result)));
    lies(op, right, functions.factor("right", shape, k).apply(layoutOf(result)));
  }
}

function scaledDot(op: Op<"scaled_dot">, functions: Functions): void {
  const { left, right, leftScales, rightScales, accumulator } = op.operands;
  const [result] = op.results;
  if (result === undefined) return;
  if (accumulator !== undefined) alike(op, [result, accumulator]);
  const { warps: [rows = 1, columns = 1] = [] } = op.attributes;
  const { bits } = tileOf(left).dtype;
  const grid = { rows, columns };
  const fixed = (value: Value, layout: RegisterLayout): void => {
    lies(op, value, functions.normal(layout, tileOf(value).shape));
  };
  fixed(result, mmaFragment("accumulator", bits, grid));
  fixed(left, mmaFragment("left", bits, grid));
  fixed(right, mmaFragment("right", bits, grid));
  fixed(leftScales, mmaScales("left", grid));
  fixed(rightScales, mmaScales("right", grid));
}

function written(op: Exclude<AccessOp, Op<"load">>, functions: Functions): void {
  const value = op.kind === "atomic_load" ? op.operands.fill : op.operands.value;
  const others = op.kind === "atomic_compare_exchange" ? [op.operands.expected] : [];
  alike(op, [value, ...others, ...op.results]);
  spread(op, [value]);
  picked(op, value, functions);
}

/** Each lane has the index and the mask of every element of the tile that it holds. */
function picked(op: AccessOp, tile: Value | undefined, functions: Functions): void {
  if (tile?.type.kind !== "tile") return;
  for (const { value, ...repetition } of repetitionsOf(op, tile.type.shape))
    lies(op, value, functions.repeat(repetition).apply(layoutOf(tile)));
}

function inlinePtx(op: OpOf<"inline_ptx" | "inline_ptx_memory">, functions: Functions): void {
  const { sources } = op.operands;
  const { layouts } = op.attributes;
  if (layouts === undefined) return pointwise(op, sources);
  for (const [position, value] of [...sources, ...op.results].entries())
    if (isTile(value))
      lies(op, value, functions.normal(parseLayout(layouts[position] ?? ""), tileOf(value).shape));
}

function rearranged(
  op: Op<"reshape"> | Op<"transpose"> | Op<"slice">,
  image: (shape: readonly number[]) => ReturnType<Functions["reshape"]>,
): void {
  const { source } = op.operands;
  const [result] = op.results;
  if (result !== undefined) lies(op, result, image(tileOf(source).shape).apply(layoutOf(source)));
}

function concatenated(op: Op<"concatenate">, functions: Functions): void {
  const [result] = op.results;
  if (result === undefined) return;
  const { axis } = op.attributes;
  let start = 0;
  for (const part of op.operands.parts) {
    const { shape } = tileOf(part);
    const starts = shape.map((_, each) => (each === axis ? start : 0));
    lies(op, part, functions.slice(tileOf(result).shape, starts, shape).apply(layoutOf(result)));
    start += shape[axis] ?? 0;
  }
}

function reduced(
  op: Op<"reduce"> | Op<"arg_reduce">,
  axes: readonly number[],
  functions: Functions,
): void {
  const { source } = op.operands;
  const [result] = op.results;
  spread(op, [source]);
  if (result !== undefined && isTile(result))
    lies(op, result, functions.reduce(tileOf(source).shape, axes).apply(layoutOf(source)));
}

const free = (): void => undefined;

const layoutChecks: OpRules<[Functions, number, (window: Value) => TmemLayout], void> = {
  constant: oneNumber,
  block_index: free,
  grid_size: free,
  cluster_rank: free,
  thread_index: free,
  size: free,
  iota: (op) => {
    spread(op, op.results);
  },
  unary: (op) => {
    pointwise(op, [op.operands.source]);
  },
  classify: (op) => {
    pointwise(op, [op.operands.source]);
  },
  binary: (op) => {
    pointwise(op, [op.operands.left, op.operands.right]);
  },
  compare: (op) => {
    pointwise(op, [op.operands.left, op.operands.right]);
  },
  assume: (op) => {
    pointwise(op, [op.operands.source]);
  },
  fma: (op) => {
    pointwise(op, [op.operands.a, op.operands.b, op.operands.c]);
  },
  select: (op) => {
    pointwise(op, [op.operands.condition, op.operands.ifTrue, op.operands.ifFalse]);
  },
  cast: (op, functions) => {
    const { source } = op.operands;
    const [result] = op.results;
    if (result === undefined || !widensHalves(op)) return pointwise(op, [source]);
    lies(op, result, functions.widen(tileOf(source).shape).apply(layoutOf(source)));
  },
  bitcast_width(op, functions) {
    const { source } = op.operands;
    const [result] = op.results;
    if (result === undefined) return;
    const [from, to] = [tileOf(source), tileOf(result)];
    const [wide, narrow] = from.dtype.bits > to.dtype.bits ? [source, result] : [result, source];
    const parts = tileOf(wide).dtype.bits / tileOf(narrow).dtype.bits;
    lies(op, narrow, functions.split(tileOf(wide).shape, parts).apply(layoutOf(wide)));
  },
  bitcast: (op) => {
    pointwise(op, [op.operands.source]);
  },

  broadcast(op, functions) {
    const { source } = op.operands;
    const [result] = op.results;
    if (result === undefined) return;
    if (!isTile(source)) return oneNumber(op);
    const { shape, axes } = op.attributes;
    const repeated = functions.repeat({ from: tileOf(source).shape, to: shape, axes });
    lies(op, source, repeated.apply(layoutOf(result)));
  },
  reshape(op, functions) {
    const { source } = op.operands;
    const { shape } = op.attributes;
    if (!isTile(source)) oneNumber(op);
    else if (shape.length === 0) lies(op, source, replicatedLayout);
    else rearranged(op, (from) => functions.reshape(from, shape));
  },
  transpose: (op, functions) => {
    rearranged(op, (shape) => functions.transpose(shape, op.attributes.permutation));
  },
  layout_cast(op, functions) {
    const { source } = op.operands;
    const [result] = op.results;
    if (result === undefined) return;
    alike(op, [result, source]);
    if (op.attributes.hint !== true)
      lies(op, result, functions.normal(parseLayout(op.attributes.layout), tileOf(result).shape));
  },
  optimization_barrier(op) {
    op.results.forEach((result, position) => {
      alike(op, [result, ...op.operands.values.slice(position, position + 1)]);
    });
  },
  inline_ptx: inlinePtx,
  inline_ptx_memory: inlinePtx,
  is_simulated: free,
  slice: (op, functions) => {
    const { starts, sizes } = op.attributes;
    rearranged(op, (shape) => functions.slice(shape, starts, sizes));
  },
  concatenate: concatenated,
  reduce: (op, functions) => {
    reduced(op, op.attributes.axes, functions);
  },
  arg_reduce: (op, functions) => {
    reduced(op, [op.attributes.axis], functions);
  },
  scan: (op) => {
    along(op, [op.operands.source]);
  },
  sort: (op) => {
    along(op, [op.operands.keys, ...op.operands.payloads]);
  },
  dot,
  scaled_dot: scaledDot,

  alloc: free,
  alloc_union: free,
  union_member: free,
  slice_ref: free,
  transpose_ref: free,
  reshape_ref: free,
  peer_ref: free,
  address_of: free,
  select_ref: free,
  load: (op, functions) => {
    const { fill } = op.operands;
    spread(op, op.results);
    if (fill?.type.kind === "tile") alike(op, [...op.results, fill]);
    picked(op, op.results[0], functions);
  },
  store: written,
  atomic: written,
  atomic_compare_exchange: written,
  atomic_load: written,
  atomic_store: written,

  take_block: free,
  taken_block: free,
  copy_async: free,
  prefetch: free,
  prefetch_maps: free,
  commit_group: free,
  wait_group: free,
  proxy_fence: free,
  accumulator(op, functions, warps) {
    const [result] = op.results;
    if (result === undefined) return;
    lies(op, result, functions.normal(wgmmaAccumulator(warps), op.attributes.shape));
    if (op.operands.initial !== undefined) alike(op, [result, op.operands.initial]);
  },
  wgmma(op, functions, warps) {
    alike(op, [...op.results, op.operands.accumulator]);
    const { a, metadata } = op.operands;
    const { bits } = matrixOf(a).dtype;
    if (a.type.kind === "tile") lies(op, a, functions.normal(wgmmaLeft(bits, warps), a.type.shape));
    if (metadata !== undefined)
      lies(op, metadata, functions.normal(wgmmaMetadata(bits, warps), tileOf(metadata).shape));
  },
  alloc_tmem: free,
  tmem_member: free,
  tmem_load: (op, functions, warps, storageOf) => {
    const [result] = op.results;
    const moved = tmemLayoutOf(op, warps, storageOf(op.operands.ref));
    if (result !== undefined) lies(op, result, functions.normal(moved, tileOf(result).shape));
  },
  tmem_store: (op, functions, warps, storageOf) => {
    const { ref, value } = op.operands;
    const moved = tmemLayoutOf(op, warps, storageOf(ref));
    lies(op, value, functions.normal(moved, tileOf(value).shape));
  },
  tcgen05_mma: free,
  tcgen05_copy: free,
  tcgen05_commit: free,
  wgmma_wait: (op) => {
    alike(op, [...op.results, op.operands.accumulator]);
  },

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

  loop: (op) => {
    carried(op, [op.regions.body], op.regions.body);
  },
  while: (op) => {
    carried(op, [op.regions.condition, op.regions.body], op.regions.body);
  },
  if: (op) => {
    handed(op, [op.regions.then, op.regions.otherwise].map(yieldedValues));
  },
  switch: (op) => {
    handed(op, op.regions.cases.map(yieldedValues));
  },
  scoped: (op) => {
    handed(op, [yieldedValues(op.regions.body)]);
  },
  on_threads: free,
  warps: free,
  yield: free,
  debug_print: free,
  print_layout: free,
  profile_mark: free,
  assert: free,
  debug_break: free,

  convert_layout: free,
  alloc_scratch: free,
  lane_barrier: free,
  barriers_ready: free,
  products_wait: free,
  cluster_barrier: free,
  copies_read: free,
};
