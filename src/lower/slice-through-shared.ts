/**
 * Slices and concatenations whose elements must move between threads. The layout rules keep elements where they
 * are, and what is distributed over threads can be cut only at the borders between them:
 *
 *   f32 [1024] over 128 threads, without its first element: every thread would need its neighbour's, so the
 *   only layout from which the slice can be taken in place is a copy of all 1024 in every thread.
 *
 * Where the cheapest placement has such copies, the kernel is rewritten so that the rearrangement goes through
 * shared memory, and placed again; the cheaper of the two placements is kept.
 *
 *   %2 = slice %1 {[1], [1023]}      %9 = alloc smem [1024]                  at the top of the kernel
 *                                    store %9, %1                            once for all slices of %1
 *                                    %2 = load (slice_ref %9 at 1 of 1023)
 *
 *   %4 = concatenate %2, %3          %10 = alloc smem [1024]
 *                                    store (slice_ref %10 …), %2 … for each part
 *                                    %4 = load %10
 *
 * Shared memory belongs to the block, so only code that one program thread runs with all its threads can go through it.
 */
import type { AnyOp, Kernel, Op, Region, Value } from "../ir/node.ts";
import { rewriteKernel } from "../ir/rewrite/engine.ts";
import { defineRules, rule } from "../ir/rewrite/rules.ts";
import type { RewriteContext } from "../ir/rewrite/rules.ts";
import { changeBody, changeOps, changeRegions } from "../ir/rewrite/substitute.ts";
import { operandValues, regionList } from "../ir/traverse.ts";
import { scalarType } from "../ir/types.ts";
import type { TileType } from "../ir/types.ts";
import { i32 } from "../formats/dtype.ts";
import { lanesPerWarp, product } from "../layout/algebra/index-bits.ts";
import { registersPerLane } from "../layout/algebra/register-layout.ts";
import type { RegisterLayout } from "../layout/algebra/register-layout.ts";
import { tileOf } from "../layout/model/product-instructions.ts";
import { placeWithRetry, withMemory } from "../layout/plan/place.ts";
import type { PinOptions, Placement } from "../layout/plan/place.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { runToCompletion } from "../support/coroutine.ts";
import type { Coroutine } from "../support/coroutine.ts";
import type { Target } from "../targets/target.ts";

export interface RearrangeOptions extends PinOptions {
  /** Called with the kernel where it was written anew. */
  readonly observe?: ((step: string, kernel: Kernel) => void) | undefined;
}

/** Places a kernel, with rearrangements in place or through shared memory, whichever costs less. */
export function* placeRearranged(
  kernel: Kernel,
  target: Target,
  options: RearrangeOptions = {},
): Coroutine<Placement> {
  const direct = yield* placeWithRetry(kernel, target, options);
  const crowded = soleRearrangements(kernel).filter((op) => isCrowded(op, direct));
  if (crowded.length === 0) return direct;
  const crossing = throughShared(kernel, new Set(crowded.flatMap(({ results }) => results)));
  const placement = placeIfPossible(crossing, target, options);
  if (placement === undefined || placement.cost >= direct.cost) return direct;
  options.observe?.("rearrange", crossing);
  return placement;
}

/** Buffers may take more shared memory than there is. */
function placeIfPossible(
  kernel: Kernel,
  target: Target,
  options: PinOptions,
): Placement | undefined {
  try {
    return withMemory(runToCompletion(placeWithRetry(kernel, target, options)));
  } catch (error) {
    if (error instanceof TilewrightError) return undefined;
    throw error;
  }
}

type Rearrangement = Op<"slice"> | Op<"concatenate">;

/** Those that one program thread runs as a whole, in the order of the kernel. */
function soleRearrangements({ body, threads }: Kernel): readonly Rearrangement[] {
  const found: Rearrangement[] = [];
  const visit = (region: Region, alone: boolean): void => {
    for (const op of region.ops) {
      if (alone && (op.kind === "slice" || op.kind === "concatenate") && isAddressable(op))
        found.push(op);
      if (op.kind === "warps") continue;
      const inside = op.kind === "on_threads" ? op.attributes.threads.length === 1 : alone;
      for (const inner of regionList(op)) visit(inner, inside);
    }
  };
  visit(body, threads.length === 1);
  return found;
}

/** Elements of 4 bits are addressed in pairs, so windows on them begin and end between two of those. */
function isAddressable(op: Rearrangement): boolean {
  const tiles = [...operandValues(op), ...op.results].map(tileOf);
  if (tiles.every(({ dtype }) => dtype.bits >= 8)) return true;
  const starts = op.kind === "slice" ? op.attributes.starts : [];
  return [starts.at(-1) ?? 0, ...tiles.map(({ shape }) => shape.at(-1) ?? 1)].every(
    (extent) => extent % 2 === 0,
  );
}

/** Whether a tile of the op takes more registers than it would if lanes shared it out evenly. */
function isCrowded(op: Rearrangement, { kernel, layouts, needs }: Placement): boolean {
  const placed = [...operandValues(op), ...op.results].flatMap((value) => {
    const layout = layouts.get(value);
    return layout === undefined ? [] : [{ value, layout }];
  });
  return [...placed, ...(needs.get(op) ?? [])].some(({ value, layout }) =>
    holdsCopies(tileOf(value), layout, kernel.warps * lanesPerWarp),
  );
}

function holdsCopies({ shape }: TileType, layout: RegisterLayout, lanes: number): boolean {
  if (layout.kind === "splat") return false;
  return registersPerLane(layout, shape) > Math.ceil(product(shape) / lanes);
}

/** The kernel with the ops that make these values going through shared memory. */
function throughShared(kernel: Kernel, chosen: ReadonlySet<Value>): Kernel {
  const isChosen = ({ results }: AnyOp): boolean => results.some((result) => chosen.has(result));
  const allocations = new Set<Value>();
  const buffer = (context: RewriteContext, { dtype, shape }: TileType): Value => {
    const name = "rearranged";
    const made = context.createOne("alloc", {}, { space: "smem", dtype, shape, name });
    allocations.add(made);
    return made;
  };
  const stored = new Map<Value, Value>();
  const first = firstSlices(kernel.body, isChosen);
  const rules = defineRules("rearrange", {
    slice: rule("slice", (op, context) => {
      const [result] = op.results;
      const leader = result && first.get(result);
      if (leader === undefined) return undefined;
      const known = stored.get(leader);
      const ref = known ?? buffer(context, tileOf(op.operands.source));
      if (known === undefined) store(context, ref, op.operands.source);
      stored.set(leader, ref);
      return load(context, windowOf(context, ref, op.attributes.starts, op.attributes.sizes));
    }),
    concatenate: rule("concatenate", (op, context) => {
      const [result] = op.results;
      if (result === undefined || !isChosen(op)) return undefined;
      const ref = buffer(context, tileOf(result));
      let start = 0;
      for (const part of op.operands.parts) {
        const { shape } = tileOf(part);
        const starts = shape.map((_, axis) => (axis === op.attributes.axis ? start : 0));
        store(context, windowOf(context, ref, starts, shape), part);
        start += shape[op.attributes.axis] ?? 0;
      }
      return load(context, ref);
    }),
  });
  return allocatedFirst(rewriteKernel(kernel, rules), allocations);
}

/** For each slice by its result, that of the first slice of the same tile in the same region. */
function firstSlices(body: Region, isChosen: (op: AnyOp) => boolean): ReadonlyMap<Value, Value> {
  const leaders = new Map<Value, Value>();
  const visit = (region: Region): void => {
    const bySource = new Map<Value, Value>();
    for (const op of region.ops) {
      const [result] = op.results;
      if (op.kind === "slice" && result !== undefined && isChosen(op)) {
        const leader = bySource.get(op.operands.source) ?? result;
        bySource.set(op.operands.source, leader);
        leaders.set(result, leader);
      }
      regionList(op).forEach(visit);
    }
  };
  visit(body);
  return leaders;
}

function windowOf(
  context: RewriteContext,
  ref: Value,
  starts: readonly number[],
  sizes: readonly number[],
): Value {
  const offsets = starts.map((start) => context.createConstant(start, scalarType(i32)));
  return context.createOne("slice_ref", { ref, offsets }, { sizes, dropped: [] });
}

function store(context: RewriteContext, ref: Value, value: Value): void {
  context.create("store", { ref, value, indices: [] }, {}, {});
}

function load(context: RewriteContext, ref: Value): Value {
  return context.createOne("load", { ref, indices: [] }, {});
}

/** Memory is allocated in the body of the kernel, whose first ops these allocations become. */
export function allocatedFirst(kernel: Kernel, allocations: ReadonlySet<Value>): Kernel {
  const taken: AnyOp[] = [];
  const strip = (region: Region): Region =>
    changeOps(
      region,
      region.ops.flatMap((op) => {
        if (op.results.some((result) => allocations.has(result))) {
          taken.push(op);
          return [];
        }
        return [changeRegions(op, strip)];
      }),
    );
  const body = strip(kernel.body);
  return changeBody(kernel, changeOps(body, [...taken, ...body.ops]));
}
