/**
 * How much shared memory a block needs, before anything runs.
 *
 *   kernel level      a  b                        always there
 *   scoped (all)      c  | d e                    one after the other: the larger counts
 *   scoped (thread)   one for each thread of `on_threads`, for each warp in `warps`, at the same time
 *
 * Allocations start at multiples of 128 bytes, which copies and wgmma need; barriers take 8 bytes each.
 */
import { packedBytes } from "../formats/dtype.ts";
import type { AnyOp, Kernel, Region } from "../ir/node.ts";
import { opName } from "../ir/op-names.ts";
import { regionList } from "../ir/traverse.ts";
import type { Target } from "../targets/target.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { fittingStages } from "./pipeline-stages.ts";
import type { Stages } from "./pipeline-stages.ts";
import { product } from "./view.ts";

const alignment = 128;
const barrierBytes = 8;

function aligned(bytes: number): number {
  return Math.ceil(bytes / alignment) * alignment;
}

/** Bytes of shared memory that the op itself allocates, with other stages where it has any. */
function sharedBytesOf(op: AnyOp, stages?: Stages): number {
  if (op.kind === "alloc_union") return aligned(op.attributes.bytes);
  const share = stages?.ops.includes(op) === true ? stages.count / stages.given : 1;
  if (op.kind === "alloc_barrier") return op.attributes.count * share * barrierBytes;
  if (op.kind !== "alloc" || op.attributes.space !== "smem") return 0;
  const elements = product(op.attributes.shape.map(Number)) * share;
  return aligned(packedBytes(op.attributes.dtype, elements));
}

/** What a region needs at most: its own allocations, and scopes that others or its threads enter. */
interface Need {
  /** Allocated directly in the region. */
  own: number;
  /** The largest scope that all threads enter together. */
  together: number;
  /** The largest scope each thread enters alone. */
  alone: number[];
}

interface Context {
  /** The threads that run the region, each for itself; undefined while all run together. */
  readonly threads: readonly number[] | undefined;
  readonly copies: number;
  /** Warps of a thread. */
  readonly warps: number;
  readonly stages: Stages | undefined;
}

function measure(region: Region, context: Context, need: Need): Need {
  for (const op of region.ops) measureOp(op, context, need);
  return need;
}

function measureOp(op: AnyOp, context: Context, need: Need): void {
  need.own += sharedBytesOf(op, context.stages);
  if (op.kind === "on_threads")
    measure(op.regions.body, { ...context, threads: op.attributes.threads }, need);
  else if (op.kind === "warps")
    measure(op.regions.body, { ...context, copies: context.warps }, need);
  else if (op.kind === "scoped") measureScope(op.regions.body, context, need);
  else for (const region of regionList(op)) measure(region, context, need);
}

function measureScope(body: Region, context: Context, need: Need): void {
  const inner = measure(body, context, { own: 0, together: 0, alone: need.alone.map(() => 0) });
  if (context.threads === undefined && context.copies === 1) {
    need.together = Math.max(need.together, total(inner));
    return;
  }
  const threads = context.threads ?? need.alone.keys();
  for (const thread of threads) {
    const bytes = inner.own * context.copies + (inner.alone[thread] ?? 0);
    need.alone[thread] = Math.max(need.alone[thread] ?? 0, bytes);
  }
}

function total({ own, together, alone }: Need): number {
  const apart = alone.reduce((sum, bytes) => sum + bytes, 0);
  return own + Math.max(together, apart);
}

/** Bytes of shared memory a block of the kernel takes at most. */
export function sharedFootprint(kernel: Kernel, stages?: Stages): number {
  const alone = kernel.threads.map(() => 0);
  const context: Context = { threads: undefined, copies: 1, warps: kernel.warps, stages };
  return total(measure(kernel.body, context, { own: 0, together: 0, alone }));
}

/** The user's name for an allocation, or what it is where it has none. */
function allocationName(op: AnyOp): string {
  const { attributes } = op;
  return "name" in attributes && attributes.name !== undefined ? attributes.name : opName(op);
}

/** Throws where the kernel does not fit the target's shared memory. */
export function requireSharedMemory(kernel: Kernel, target: Target): number {
  const bytes = sharedFootprint(kernel);
  const limit = target.sharedMemoryPerBlock;
  if (bytes <= limit) return bytes;
  const notes: { message: string; location: AnyOp["location"] }[] = [];
  const visit = (region: Region): void => {
    for (const op of region.ops) {
      const own = sharedBytesOf(op);
      if (own > 0)
        notes.push({ message: `${allocationName(op)} takes ${own} bytes`, location: op.location });
      regionList(op).forEach(visit);
    }
  };
  visit(kernel.body);
  const stages = fittingStages(kernel, (fewer) => sharedFootprint(kernel, fewer) <= limit);
  throw new TilewrightError({
    code: "TW3013",
    message: `kernel ${kernel.name} needs ${bytes} bytes of shared memory`,
    location: kernel.location,
    expected: `at most ${limit} bytes in a block of ${target.name}`,
    found: `${bytes} bytes`,
    remedy: stages && stagesRemedy(stages, bytes),
    notes,
  });
}

function stagesRemedy({ ops, given, count }: Stages, bytes: number): string {
  const names = ops.map(allocationName).join(", ");
  return `use fewer stages of ${names}: ${given} stages need ${bytes} bytes; ${count} ${count === 1 ? "fits" : "fit"}`;
}
