/**
 * Products that the compiler makes in tensor memory although no loop carries their sum: what they begin with is stored there, the thread waits for the product, and
 * loads the sum at once. Factors in shared memory are multiplied where they lie; others are stored there before.
 *
 *   %s = dot %p, %v, %c        store %left, %p                          where it is no load of shared memory
 *                              proxy_fence smem
 *                              tmem_store %sums, %c                     where there is one
 *                              tcgen05_mma %sums, %left, %v_window
 *                              tcgen05_commit %multiplied; barrier_wait %multiplied
 *                              %s = tmem_load %sums
 *
 * That is done where it is counted to take fewer clocks than fragments of warps do; nothing of it was timed.
 */
import { bool } from "../formats/dtype.ts";
import type { AnyOp, Kernel, Op, Region, Value } from "../ir/node.ts";
import { countUses } from "../ir/rewrite/analysis.ts";
import { rewriteKernel } from "../ir/rewrite/engine.ts";
import { defineRules, rule } from "../ir/rewrite/rules.ts";
import type { RewriteContext } from "../ir/rewrite/rules.ts";
import { hasEffect } from "../ir/traits.ts";
import { refOf, regionList, walkOps } from "../ir/traverse.ts";
import { scalarType } from "../ir/types.ts";
import { allocatedColumns } from "../layout/model/tensor-memory.ts";
import { tensorShapeProblem, tileOf } from "../layout/model/product-instructions.ts";
import { productInstructions, tensorMemoryInstruction } from "../targets/product-instructions.ts";
import type { Target } from "../targets/target.ts";
import { allocatedFirst } from "./slice-through-shared.ts";

/** The kernel with such products; itself where there are none. */
export function tensorProducts(kernel: Kernel, target: Target): Kernel {
  if (tensorMemoryInstruction(target) === undefined) return kernel;
  const uses = countUses(kernel.body);
  const found = soleProducts(kernel, uses).filter(
    ({ op, windows }) =>
      tensorShapeProblem(op, target, kernel.warps) === undefined &&
      tensorClocks(op, windows) < fragmentClocks(op),
  );
  const chosen = withRoom(kernel, found, target);
  return chosen.size === 0 ? kernel : written(kernel, chosen);
}

type Side = "left" | "right";

/** A product, and the windows of shared memory that its factors are loaded from for it alone. */
interface SoleProduct {
  readonly op: Op<"dot">;
  readonly windows: { readonly [S in Side]?: Value };
}

/** Those that one program thread makes as a whole, in the order of the kernel. */
function soleProducts(
  { body, threads }: Kernel,
  uses: ReadonlyMap<Value, number>,
): readonly SoleProduct[] {
  const found: SoleProduct[] = [];
  const visit = (region: Region, alone: boolean): void => {
    // Loads whose memory nothing has changed since.
    let loaded = new Map<Value, Value>();
    for (const op of region.ops) {
      if (op.kind === "dot" && alone) found.push({ op, windows: windowsOf(op, loaded) });
      const window = op.kind === "load" ? wholeWindow(op, uses) : undefined;
      if (window !== undefined) for (const result of op.results) loaded.set(result, window);
      else if (hasEffect(op)) loaded = new Map();
      if (op.kind === "warps") continue;
      const inside = op.kind === "on_threads" ? op.attributes.threads.length === 1 : alone;
      for (const inner of regionList(op)) visit(inner, inside);
    }
  };
  visit(body, threads.length === 1);
  return found;
}

function windowsOf(
  { operands: { left, right } }: Op<"dot">,
  loaded: ReadonlyMap<Value, Value>,
): SoleProduct["windows"] {
  const [ofLeft, ofRight] = [loaded.get(left), loaded.get(right)];
  return { ...(ofLeft && { left: ofLeft }), ...(ofRight && { right: ofRight }) };
}

/** The window of shared memory that a load takes as it is, for one use. */
function wholeWindow(op: Op<"load">, uses: ReadonlyMap<Value, number>): Value | undefined {
  const { ref, indices, where, fill } = op.operands;
  const [result] = op.results;
  const isWhole = indices.length === 0 && where === undefined && fill === undefined;
  const isSole = result !== undefined && uses.get(result) === 1;
  return isWhole && isSole && refOf(ref).space === "smem" ? ref : undefined;
}

/** Multiplications of 16 bits that a processor's fragments make in a clock, and bytes that lanes move to shared and tensor memory. */
const [fragmentRate, sharedRate, tensorRate] = [1024, 128, 256];
/** Clocks until a product that is waited for begins, and after it. */
const waitingClocks = 400;

function fragmentClocks({ operands: { left, right } }: Op<"dot">): number {
  const [m = 1, k = 1] = tileOf(left).shape;
  const { shape, dtype } = tileOf(right);
  // FP8 is multiplied as f16, and integers as they are.
  const width = dtype.kind === "float" ? Math.max(16, dtype.bits) : dtype.bits;
  return (m * k * (shape[1] ?? 1) * width) / 16 / fragmentRate;
}

function tensorClocks({ operands }: Op<"dot">, windows: SoleProduct["windows"]): number {
  const { left, right, accumulator } = operands;
  const [a, b] = [tileOf(left), tileOf(right)];
  const [m = 1, k = 1] = a.shape;
  const n = b.shape[1] ?? 1;
  const instruction = productInstructions.tcgen05;
  const stored = [windows.left ? 0 : m * k, windows.right ? 0 : n * k];
  const bytes = ((stored[0] ?? 0) + (stored[1] ?? 0)) * (a.dtype.bits / 8);
  const moves = accumulator === undefined ? 1 : 2;
  const steps = k / (instruction.shape.depthBits / a.dtype.bits);
  return (
    bytes / sharedRate +
    (moves * m * n * 4) / tensorRate +
    steps * instruction.clocks(n) +
    waitingClocks
  );
}

/** As many of them, in their order, as there are columns for. */
function withRoom(
  { body }: Kernel,
  found: readonly SoleProduct[],
  { tensorMemoryColumns }: Target,
): ReadonlyMap<AnyOp, SoleProduct> {
  let columns = 0;
  walkOps(body, (op) => {
    if (op.kind === "alloc_tmem") columns += allocatedColumns(op);
  });
  const chosen = new Map<AnyOp, SoleProduct>();
  for (const each of found) {
    const own = tileOf(each.op.operands.right).shape[1] ?? 0;
    if (columns + own > tensorMemoryColumns) continue;
    columns += own;
    chosen.set(each.op, each);
  }
  return chosen;
}

function written(kernel: Kernel, chosen: ReadonlyMap<AnyOp, SoleProduct>): Kernel {
  const byResult = new Map<Value, SoleProduct>();
  for (const [op, product] of chosen)
    for (const result of op.results) byResult.set(result, product);
  const allocations = new Set<Value>();
  const allocated = (made: Value): Value => {
    allocations.add(made);
    return made;
  };
  const factor = (context: RewriteContext, value: Value, name: string): Value => {
    const { dtype, shape } = tileOf(value);
    const attributes = { space: "smem", dtype, shape, name } as const;
    const ref = allocated(context.createOne("alloc", {}, attributes));
    context.create("store", { ref, value, indices: [] }, {}, {});
    return ref;
  };
  const rules = defineRules("tensor products", {
    dot: rule("dot", (op, context) => {
      const [result] = op.results;
      const product = result && byResult.get(result);
      if (result === undefined || product === undefined) return undefined;
      const { left, right, accumulator } = op.operands;
      const { dtype, shape } = tileOf(result);
      const a = product.windows.left ?? factor(context, left, "left_factor");
      const b = product.windows.right ?? factor(context, right, "right_factor");
      const sums = allocated(context.createOne("alloc_tmem", {}, { dtype, shape, name: "sums" }));
      const counts = { count: 1, arrivals: 1, name: "multiplied" };
      const barrier = allocated(context.createOne("alloc_barrier", {}, counts));
      context.create("proxy_fence", {}, { space: "smem" }, {});
      if (accumulator !== undefined)
        context.create("tmem_store", { ref: sums, value: accumulator }, {}, {});
      const adds =
        accumulator === undefined ? context.createConstant(false, scalarType(bool)) : undefined;
      context.create("tcgen05_mma", { sums, a, b, adds }, {}, {});
      context.create("tcgen05_commit", { barrier }, {}, {});
      context.create("barrier_wait", { barrier }, {}, {});
      return context.createOne("tmem_load", { ref: sums }, {});
    }),
  });
  return allocatedFirst(rewriteKernel(kernel, rules), allocations);
}
