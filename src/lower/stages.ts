/**
 * The stages from a traced kernel to one that runs, a line each, in their order. Every back end and command takes a kernel as far as it needs:
 *
 *   traced ──simplify──▶ simplified ───────────────────────────────────────▶ simulator
 *                           └──without meanings──pipeline──select──▶ selected
 *   selected ──place──▶ placed ──allocate──guard-bounds──tensor-maps──barriers──product-groups──▶ final ──emit──▶ PTX and a launch plan
 *
 * Selection and placement are solved together: an instruction whose operands cannot be stored for it is refused, and
 * another is selected (`layout/plan/place.ts`). Software pipelining and rearrangements through shared memory are tried up to `allocate`, which
 * refuses what does not fit.
 *
 * Stages share nothing but the kernel that they pass on. `observe` sees the kernel after each stage, which is what
 * `--dump` writes. The generators yield between stages, so that a caller can interleave other work.
 */
import { following } from "../ir/range-analysis/index.ts";
import type { Kernel } from "../ir/node.ts";
import { kernelFor } from "../ir/target-variants.ts";
import { walkOps } from "../ir/traverse.ts";
import { allocate } from "../layout/plan/allocate.ts";
import { withMemory } from "../layout/plan/place.ts";
import type { AllocatedPlacement, Placement } from "../layout/plan/place.ts";
import { placedKernel } from "../layout/plan/placed-kernel.ts";
import type { EmissionOptions } from "../ptx/emit/context.ts";
import { emitKernel } from "../ptx/emit/kernel.ts";
import type { Executable } from "../ptx/executable.ts";
import type { PerformanceNote } from "../ptx/notes/note.ts";
import { performanceNotes } from "../ptx/notes/performance-notes.ts";
import { requireBlockLimits } from "../sim/target-limits.ts";
import type { Target } from "../targets/target.ts";
import { guardBounds } from "./guard-bounds.ts";
import { groupProducts } from "./product-groups.ts";
import { assignTensorMaps } from "./tensor-maps.ts";
import { insertBarriers, verifyBarriers } from "./barriers/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { runToCompletion } from "../support/coroutine.ts";
import type { Coroutine } from "../support/coroutine.ts";
import { pipelineLoops } from "./software-pipelining/index.ts";
import { depthNotes } from "./software-pipelining/notes.ts";
import { verifyPlaced } from "./verify/index.ts";
import { deadCode } from "../passes/dead-code.ts";
import { requirePins } from "./pins.ts";
import { placeRearranged } from "./slice-through-shared.ts";
import { tensorProducts } from "./tensor-products.ts";
import { simplify } from "./simplify.ts";
import type { SimplifyOptions } from "./simplify.ts";
import { withoutMeanings } from "./strip-inline-ptx-reference.ts";

export interface LoweringOptions extends SimplifyOptions {
  /** Places tiles in any way that is possible instead of the cheapest, for fuzzers. */
  readonly seed?: number;
}

interface PlacingOptions extends LoweringOptions {
  readonly pinsHold: boolean;
}

/** A kernel with every decision in it, and how the decisions were found. */
export interface PlacedKernel {
  readonly kernel: Kernel;
  readonly placement: AllocatedPlacement;
}

/** A traced kernel as it runs on a target: with a layout for each tile and an instruction for each op. */
export function place(traced: Kernel, target: Target, options: LoweringOptions = {}): PlacedKernel {
  return runToCompletion(placing(traced, target, options));
}

function* placing(
  given: Kernel,
  target: Target,
  options: LoweringOptions = {},
): Coroutine<PlacedKernel> {
  const traced = kernelFor(given, target);
  // What is dead has no place, also where a test leaves dead code in.
  const simplified = withoutMeanings(deadCode(simplify(traced, options)));
  requireBlockLimits(simplified, target);
  yield;
  yield* requirePins(traced, target);
  const placement = yield* placePipelined(simplified, target, { ...options, pinsHold: true });
  options.observe?.("select", placement.kernel);
  yield;
  const placed = following(placement.kernel, placedKernel(placement));
  options.observe?.("place", placed);
  const allocated = following(placed, allocate(placed));
  options.observe?.("allocate", allocated);
  yield;
  const bounded = following(allocated, guardBounds(allocated));
  options.observe?.("guard-bounds", bounded);
  const mapped = following(bounded, assignTensorMaps(bounded));
  options.observe?.("tensor-maps", mapped);
  yield;
  const ordered = following(mapped, insertBarriers(mapped));
  options.observe?.("barriers", ordered);
  const kernel = following(ordered, groupProducts(ordered));
  options.observe?.("product-groups", kernel);
  yield;
  verifyPlaced(kernel);
  verifyBarriers(kernel);
  return { kernel, placement: withMemory(placement, allocated) };
}

/** Places a kernel with software-pipelined loops and products in tensor memory; without the latter, and then the former, where memory has no room for them. */
function* placePipelined(
  kernel: Kernel,
  target: Target,
  options: PlacingOptions,
): Coroutine<Placement> {
  const pipelined = pipelineLoops(kernel, target);
  const inTensors = tensorProducts(pipelined, target);
  if (inTensors !== pipelined) {
    const placement = yield* placedIfPossible(inTensors, target, options);
    if (placement !== undefined) {
      options.observe?.("pipeline", inTensors);
      return placement;
    }
  }
  if (pipelined === kernel) return yield* placeRearranged(kernel, target, options);
  try {
    const placement = withMemory(yield* placeRearranged(pipelined, target, options));
    options.observe?.("pipeline", pipelined);
    return placement;
  } catch (error) {
    if (!(error instanceof TilewrightError) || asksForDepth(kernel)) throw error;
    return yield* placeRearranged(kernel, target, options);
  }
}

function* placedIfPossible(
  kernel: Kernel,
  target: Target,
  options: PlacingOptions,
): Coroutine<Placement | undefined> {
  try {
    return withMemory(yield* placeRearranged(kernel, target, options));
  } catch (error) {
    if (error instanceof TilewrightError) return undefined;
    throw error;
  }
}

/** Whether a loop says how many steps it wants to have room for, so that having none is a mistake to report. */
function asksForDepth({ body }: Kernel): boolean {
  let asks = false;
  walkOps(body, (op) => {
    asks ||= op.kind === "loop" && op.attributes.depth !== undefined;
  });
  return asks;
}

/** A traced kernel ready to be launched on a target. */
export function lower(traced: Kernel, target: Target, options: LoweringOptions = {}): Executable {
  return emitKernel(place(traced, target, options).kernel);
}

export interface NotedExecutable {
  readonly executable: Executable;
  /** What makes it slower than it could be, as far as is known before it is assembled. */
  readonly notes: readonly PerformanceNote[];
}

/** A traced kernel ready to be launched, for a device that tells what slows it. */
export function lowerWithNotes(
  traced: Kernel,
  target: Target,
  options: EmissionOptions = {},
): NotedExecutable {
  return runToCompletion(loweringWithNotes(traced, target, options));
}

/** The same piece by piece. */
export function* loweringWithNotes(
  traced: Kernel,
  target: Target,
  options: EmissionOptions = {},
): Coroutine<NotedExecutable> {
  const { kernel, placement } = yield* placing(traced, target);
  yield;
  const executable = emitKernel(kernel, options);
  yield;
  const notes = performanceNotes(placement, executable.module);
  return { executable, notes: [...depthNotes(placement.kernel, target), ...notes] };
}
