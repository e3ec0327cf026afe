/**
 * How an asynchronous copy is made: the first of these that can, as the hardware and the layout of the
 * shared side allow.
 *
 *   | method    | moves                                                 | needs                                 |
 *   |-----------|-------------------------------------------------------|---------------------------------------|
 *   | tensor    | boxes by a tensor map, one for each tile              | rows of 16-byte multiples, strides and the start too, bounds of the array |
 *   | bulk      | runs of bytes, without a tensor map       | rows that follow on in both memories, inside the array |
 *   | cp.async  | 4, 8 or 16 bytes a lane, into shared memory           | neighbours on both sides              |
 *   | plain     | loads and stores of a lane                            | nothing                               |
 *
 * Multicast and reductions are made by TMA only: by tensor or bulk copies, whichever takes fewer instructions. A map says where the array
 * ends, so a window that must end with a smaller view, somewhere inside the array, cannot be a tensor copy.
 */
import { f64 } from "../../formats/dtype.ts";
import { roundsCopy } from "../../ir/infer/asynchronous.ts";
import type { Op } from "../../ir/node.ts";
import { isPromisedInside } from "../../ir/promises.ts";
import { knownDivisor, sameSize } from "../../ir/size.ts";
import type { Target } from "../../targets/target.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import { tiledAxes } from "../algebra/shared-view.ts";
import type { SharedView } from "../algebra/shared-view.ts";
import { insideAxes } from "../access/window.ts";
import type { GlobalBox } from "../access/window.ts";
import { contiguousAxis, globalAlignment } from "./access-cost.ts";
import { planBulk } from "./bulk-copies.ts";
import { costs } from "./cost.ts";
import { boxCount, planBoxes } from "./tensor-boxes.ts";
import type { BoxPlan } from "./tensor-boxes.ts";
import type { GlobalWindow, SharedWindow, Windows } from "./windows.ts";
import { windowBytes } from "./windows.ts";

export interface CopyMethod {
  readonly method: "tensor" | "bulk" | "cp.async" | "plain";
  /** Instructions that one lane issues (tensor and bulk), or bytes that a lane moves at once. */
  readonly pieces: number;
  readonly reason: string;
  /** How whoever wrote the copy can have TMA make it, where that is up to the window. */
  readonly remedy?: string | undefined;
}

/** What keeps TMA from a window that is written differently easily, and how. */
const mendable = {
  "it may begin before the array":
    "let it begin at 0 or behind it: slice(start.maximum(0), size), or a start that is never negative",
  "the copy would transpose":
    "let the array be contiguous along the axis that the product sums over, or spend the threads' time: wgmma reads tf32 and 8 bits along that axis alone",
  "the window is not known to begin at a multiple of 16 bytes":
    "let it begin at a multiple of 16 bytes, for instance a block's number times a block's size",
  "a stride of the array is not known to be a multiple of 16 bytes":
    'say what rows are a multiple of: dim("n", { multipleOf: 8 })',
  "rows of the array are not known to be multiples of 16 bytes":
    'say what rows are a multiple of: dim("n", { multipleOf: 8 })',
} as const;
type Mendable = keyof typeof mendable;

function remedyOf(problem: string): string | undefined {
  return Object.hasOwn(mendable, problem) ? mendable[problem as Mendable] : undefined;
}

/** Both windows of a copy. */
export interface CopyWindows {
  readonly global: GlobalWindow;
  readonly shared: SharedWindow;
  readonly intoShared: boolean;
}

export function copyWindows(op: Op<"copy_async">, windows: Windows): CopyWindows {
  const [source, destination] = [
    windows.of(op.operands.source),
    windows.of(op.operands.destination),
  ];
  if (source.space === "gmem" && destination.space !== "gmem")
    return { global: promised(op, source), shared: destination, intoShared: true };
  if (source.space !== "gmem" && destination.space === "gmem")
    return { global: promised(op, destination), shared: source, intoShared: false };
  throw new Error("an asynchronous copy has one side in global memory");
}

/** The window in global memory, which ends nowhere where it is promised to be inside. */
function promised(op: Op<"copy_async">, window: GlobalWindow): GlobalWindow {
  const { box } = window;
  if (box === undefined || !isPromisedInside(op)) return window;
  return { ...window, box: { ...box, axes: insideAxes(box.axes), required: [] } };
}

/** Whether f32 is rounded to tf32 on its way: by a tensor map, or by the lanes that copy it. */
export function isRounded({ operands: { source, destination } }: Op<"copy_async">): boolean {
  return (
    source.type.kind === "ref" &&
    destination.type.kind === "ref" &&
    roundsCopy(source.type, destination.type)
  );
}

/** Whether only TMA does what the op says. */
export function needsEngine(op: Op<"copy_async">): string | undefined {
  const { attributes } = op;
  if (attributes.multicast.length > 0) return "a multicast";
  if (attributes.pair === true) return "a copy for a pair of blocks";
  return attributes.reduction === "none" ? undefined : `a reduction by ${attributes.reduction}`;
}

export function copyMethod(
  op: Op<"copy_async">,
  windows: CopyWindows,
  layout: SharedLayout,
  target: Target,
): CopyMethod {
  const made = engineCopy(op, windows, layout, target);
  if (typeof made !== "string") return made;
  const reason = `no tensor copy: ${made}`;
  const remedy = remedyOf(made);
  const width = asynchronousWidth(windows, layout);
  const isPlain = op.attributes.fill === "zero" && !isRounded(op);
  if (windows.intoShared && width >= 4 && isPlain && target.features.includes("cp.async"))
    return { method: "cp.async", pieces: width, reason, remedy };
  return { method: "plain", pieces: width, reason, remedy };
}

/** More runs than that are copied by lanes, which start them together. */
const mostRuns = 64;

/** How TMA makes the copy, or why not. */
export function engineCopy(
  op: Op<"copy_async">,
  windows: CopyWindows,
  layout: SharedLayout,
  target: Target,
): CopyMethod | string {
  if (!target.features.includes("tma")) return `${target.name} has no tensor copies`;
  const boxes = tensorPieces(op, windows, layout);
  const runs = bulkRuns(op, windows, layout);
  const isFew = typeof runs === "number" && (needsEngine(op) !== undefined || runs <= mostRuns);
  if (isFew && (typeof boxes === "string" || runs < boxes))
    return { method: "bulk", pieces: runs, reason: "rows follow on in both memories" };
  if (typeof boxes === "string") return boxes;
  return { method: "tensor", pieces: boxes, reason: "the windows are boxes of a tensor map" };
}

/** How many runs of bytes make the copy, or why none do. */
function bulkRuns(
  op: Op<"copy_async">,
  { global, shared }: CopyWindows,
  layout: SharedLayout,
): number | string {
  if (isRounded(op)) return "only a tensor map rounds";
  if (op.attributes.pair === true) return "only tensor copies tell the leader of a pair";
  const views = shared.views(layout);
  if (views === undefined) return "the shared window is reshaped across what is stored apart";
  const plans = views.map((view) => planBulk(global, view));
  const problem = plans.find((plan) => typeof plan === "string");
  if (typeof problem === "string") return problem;
  const [plan] = plans;
  return plan === undefined || typeof plan === "string" ? "there is no view" : plan.runs.length;
}

/** What a copy is made with. */
export interface CopySetting {
  readonly sides: CopyWindows;
  /** How the shared side is stored. */
  readonly layout: SharedLayout;
  readonly target: Target;
}

/** Why a copy cannot be made in a certain way; undefined where it can. */
export function copyProblem(
  op: Op<"copy_async">,
  method: CopyMethod["method"],
  { sides, layout, target }: CopySetting,
): string | undefined {
  if (method === "tensor" || method === "bulk") {
    if (!target.features.includes("tma")) return `${target.name} has no tensor copies`;
    const pieces = (method === "tensor" ? tensorPieces : bulkRuns)(op, sides, layout);
    return typeof pieces === "string" ? pieces : undefined;
  }
  const needed = needsEngine(op);
  if (needed !== undefined) return `${needed} is made by TMA`;
  if (method === "plain") return undefined;
  if (!target.features.includes("cp.async")) return `${target.name} does not have it`;
  if (!sides.intoShared) return "it copies into shared memory";
  if (op.attributes.fill !== "zero") return "it fills with zeros";
  if (isRounded(op)) return "it does not round";
  const width = asynchronousWidth(sides, layout);
  return width >= 4 ? undefined : `it moves 4 bytes or more, and ${width} lie side by side`;
}

export function copyCost({ method, pieces }: CopyMethod, { shared }: CopyWindows): number {
  if (method === "tensor" || method === "bulk") return pieces;
  const perLane = windowBytes(shared) / 128 / pieces;
  return Math.ceil(perLane) * (method === "cp.async" ? costs.asynchronousCopy : costs.plainCopy);
}

/** Maps are parameters of 128 bytes, of which a kernel has 4 KiB on every target: three lists of so many fit. */
const mostMaps = 8;

/** How many boxes make the copy, or why none do. */
export function tensorPieces(
  op: Op<"copy_async">,
  { global, shared, intoShared }: CopyWindows,
  layout: SharedLayout,
): number | string {
  const stored = intoShared
    ? fillProblem(op, global)
    : (storeProblem(global) ?? reductionProblem(op, global));
  const problem = mapProblem(global) ?? stored;
  if (problem !== undefined) return problem;
  const views = shared.views(layout);
  if (views === undefined) return "the shared window is reshaped across what is stored apart";
  let pieces = 1;
  for (const view of views) {
    const plan = boxPlanOf(global, view);
    if (typeof plan === "string") return plan;
    pieces = boxCount(plan, view);
  }
  return pieces;
}

/** How the copy of a window on an array into or from a view of shared memory is cut into boxes, or why it is not. */
export function boxPlanOf(global: GlobalWindow, view: SharedView): BoxPlan | string {
  if (global.box === undefined) return "the array is reshaped across gaps";
  return planBoxes(global.box, view, contiguousAxis(global) ?? 0);
}

/** No element of a tensor map is an f64 that is added to another. */
export function reductionProblem(
  { attributes: { reduction } }: Op<"copy_async">,
  { dtype }: GlobalWindow,
): string | undefined {
  return reduction !== "none" && dtype === f64 ? "TMA adds no f64 by a tensor map" : undefined;
}

/** Elements of 8 bits are bytes to TMA, which has no NaN for those. */
function fillProblem(
  { attributes }: Op<"copy_async">,
  { dtype }: GlobalWindow,
): string | undefined {
  return attributes.fill === "nan" && dtype.bits === 8
    ? `TMA has no NaN of ${dtype.name}`
    : undefined;
}

function mapProblem({ dtype, start, box, arrays }: GlobalWindow): string | undefined {
  if (arrays > mostMaps)
    return `a list of ${arrays} arrays takes more than ${mostMaps} tensor maps`;
  if (box === undefined || box.moved !== undefined) return "the array is reshaped across gaps";
  const { array, axes, origin } = box;
  const kept = axes.map(({ root }) => root);
  if (!kept.some((root) => array[root]?.stride === 1))
    return array.some(({ stride }) => stride === 1)
      ? "the copy would gather single elements"
      : "no axis of the array is contiguous";
  const bytes = dtype.bits / 8;
  if (bytes < 1) {
    const within = partsOfBytes(box, 1 / bytes);
    if (within !== undefined) return within;
  }
  // Rows are multiples of 16 bytes, so that the start is one where its column is.
  if ((start * bytes) % 16 !== 0)
    return "the window is not known to begin at a multiple of 16 bytes" satisfies Mendable;
  for (const { stride } of array)
    if (stride !== 1 && (knownDivisor(stride) * bytes) % 16 !== 0)
      return "a stride of the array is not known to be a multiple of 16 bytes" satisfies Mendable;
  // A map has one axis without a stride: where another has a single element, its neighbours lie side by side, too.
  if (array.filter(({ stride }) => stride === 1).length > 1)
    return "a stride of the array is not known to be a multiple of 16 bytes" satisfies Mendable;
  const ofView = axes.some(({ root, bounds }) => {
    const { extent } = array[root] ?? { extent: 0 };
    return bounds.some(({ start: at, size }) => at !== origin[root] || !sameSize(size, extent));
  });
  return ofView ? "the window ends with a view that is smaller than the array" : undefined;
}

/** Elements smaller than a byte are copied as bytes, so that rows and the window are whole ones. */
function partsOfBytes({ array, origin }: GlobalBox, perByte: number): string | undefined {
  const row = array.findIndex(({ stride }) => stride === 1);
  const start = origin[row]?.fact;
  const divisor = BigInt(perByte);
  if (start === undefined || start.residue % divisor !== 0n || start.modulus % divisor !== 0n)
    return "the window is not known to begin with a byte";
  return knownDivisor(array[row]?.extent ?? 1) % perByte === 0
    ? undefined
    : "rows of the array are not known to be whole bytes";
}

/**
 * What TMA gets wrong when it writes, as an H200 showed: it knows no box that begins before
 * the array, and it writes the 16 bytes in which a row ends to their end.
 */
export function storeProblem({ dtype, box }: GlobalWindow): string | undefined {
  if (box === undefined) return undefined;
  if (box.origin.some(({ fact }) => fact.least < 0n))
    return "it may begin before the array" satisfies Mendable;
  const row = box.array.find(({ stride }) => stride === 1)?.extent ?? 1;
  return (knownDivisor(row) * dtype.bits) % 128 === 0
    ? undefined
    : ("rows of the array are not known to be multiples of 16 bytes" satisfies Mendable);
}

/** Bytes that lie side by side on both sides, 16 at most. */
function asynchronousWidth({ global, shared }: CopyWindows, layout: SharedLayout): number {
  const axis = contiguousAxis(global);
  const [view] = shared.views(layout) ?? [];
  const tiled = view && tiledAxes(view);
  const along = axis === undefined ? undefined : tiled?.axes[axis];
  const bytes = shared.dtype.bits / 8;
  if (along === undefined || along.step !== bytes) return bytes;
  const run = along.inner & -along.inner;
  return Math.max(bytes, Math.min(16, Math.min(run, globalAlignment(global)) * bytes));
}
