/**
 * Which ops share a kernel. Ops with memory of their own results are *kept*: results of the region, folds, what control
 * flow uses, and maps that several kernels use. All other maps are computed where they are used, in the kernel of what
 * uses them.
 *
 *   %0 = exp %x            one kernel: negate(exp x), whose root is %1
 *   %1 = negate %0
 *   %2 = reduce %1 …       another, if %1 is kept; the same one if nobody else uses %1
 *
 * A map is kept rather than computed again where that would be dear: where several kernels use it, or where a kernel
 * looks at its elements many times (products, windows, gathers, broadcasts). Views cost nothing and are never kept for
 * either reason; what they are views of is. Nor is a map kept for several kernels if what it is made from has no more
 * bytes than it has itself: reading that instead takes no longer, and saves the writing and the memory.
 *
 *   bf16 scores ──convert, scale, mask──▶ f32      half the bytes: each kernel that needs them converts them again
 *
 * A map that moves elements asks for its operand at other points than its own, and a chain in which each value is asked
 * for at two sets of points doubles them from op to op, as unrolled loops that write into what they read do. What would be
 * computed at more than a few sets of points in one kernel is kept, views too.
 *
 *   %2 = dynamic_update_slice %1, f(slice %1)      %1 at the points of %2 and at those of the slice
 */
import { capturesOf } from "../ops/captures.ts";
import { isElementwise } from "../ops/elementwise-kinds.ts";
import { elements } from "../ops/elements.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import type { GraphOpKind } from "../ops/table.ts";
import { operandsOf, regionsOf } from "../ops/traverse.ts";
import { isTensor, sizeOf } from "../ops/types.ts";
import { viewedProducts } from "./views/products.ts";
import { isInline, libraryCallOf, loweringOf, sharedOperand, tiledKernelOf } from "./record.ts";

/** Kinds that look at elements of their operands more than once, or at all of several operands for each element. */
const rereading: ReadonlySet<GraphOpKind> = new Set<GraphOpKind>([
  "stablehlo.dot_general",
  "stablehlo.dot",
  "chlo.ragged_dot",
  "stablehlo.convolution",
  "stablehlo.reduce_window",
  "stablehlo.select_and_scatter",
  "stablehlo.scatter",
  "stablehlo.torch_index_select",
]);

const fewParts = 4;

function countOf({ type }: GraphValue): number {
  return isTensor(type) ? sizeOf(type.shape) : 0;
}

function isRereading(op: AnyGraphOp): boolean {
  if (op.kind === "stablehlo.concatenate") return op.operands.inputs.length > fewParts;
  const [result] = op.results;
  // A gather of no more than there is looks at an element once, on average.
  if (op.kind === "stablehlo.gather" && result !== undefined)
    return countOf(result) > countOf(op.operands.operand);
  if (op.kind !== "stablehlo.broadcast_in_dim") return rereading.has(op.kind);
  const { operand } = op.operands;
  return result !== undefined && countOf(operand) > 1 && countOf(result) > countOf(operand);
}

/** Values that an op uses: its operands, and what its regions use of what is around them. */
export function usesOf(op: AnyGraphOp): readonly GraphValue[] {
  return [...operandsOf(op), ...regionsOf(op).flatMap(capturesOf)];
}

/** A constant that is written into kernels instead of being loaded. */
export function isSplat(op: AnyGraphOp): boolean {
  return (
    op.kind === "stablehlo.constant" &&
    !("kind" in op.attributes.value) &&
    op.attributes.value.splat
  );
}

/** What a map is computed from where nothing between is kept: values with memory, and how many ops that takes. */
interface Origin {
  readonly sources: ReadonlySet<GraphValue>;
  readonly ops: number;
}

/** More ops than these are not computed again. */
const mostRecomputed = 40;
/** A source that is so much smaller than what is made from it counts as nothing. */
const smallPart = 16;

function bytesOf(value: GraphValue): number {
  if (!isTensor(value.type)) return 0;
  return countOf(value) * Math.ceil(elements[value.type.element].bits / 8);
}

/** The maps that are as cheaply computed again as read. */
function cheapMaps(region: GraphRegion): ReadonlySet<AnyGraphOp> {
  const cheap = new Set<AnyGraphOp>();
  const origins = new Map<GraphValue, Origin>();
  for (const op of region.ops) {
    if (loweringOf(op).form !== "map" || regionsOf(op).length > 0) continue;
    const sources = new Set<GraphValue>();
    let ops = 1;
    for (const operand of operandsOf(op)) {
      const origin = origins.get(operand);
      ops += origin?.ops ?? 0;
      for (const source of origin?.sources ?? [operand]) sources.add(source);
    }
    const bytes = Math.max(...op.results.map(bytesOf));
    const read = [...sources]
      .map(bytesOf)
      .filter((own) => own * smallPart > bytes)
      .reduce((total, own) => total + own, 0);
    if (read > bytes || ops > mostRecomputed) continue;
    cheap.add(op);
    for (const value of op.results) origins.set(value, { sources, ops });
  }
  return cheap;
}

/** How the values of one op are used. */
class Usage {
  /** The kernels that use them, each with the sets of points that it asks for them at. */
  readonly points = new Map<AnyGraphOp, Set<object>>();
  isKept = false;
  isReread = false;

  ask(kernel: AnyGraphOp, points: Iterable<object>): void {
    const known = this.points.get(kernel) ?? new Set();
    for (const each of points) known.add(each);
    this.points.set(kernel, known);
  }

  /** The most sets of points that one kernel asks at. */
  get mostPoints(): number {
    return Math.max(0, ...Array.from(this.points.values(), ({ size }) => size));
  }
}

/** More sets of points than these are not computed in one kernel. */
const mostPoints = 16;

/** Ops that ask for operands at their own points, or at the same positions. */
function isAtOwnPoints({ kind }: AnyGraphOp): boolean {
  return isElementwise(kind) || kind === "stablehlo.reshape";
}

/** The ops of a region whose results have memory. */
export function keptOps(region: GraphRegion): ReadonlySet<AnyGraphOp> {
  const definitions = new Map(region.ops.flatMap((op) => op.results.map((value) => [value, op])));
  const usages = new Map(region.ops.map((op) => [op, new Usage()]));
  const usageOf = (value: GraphValue): Usage | undefined => {
    const op = definitions.get(value);
    return op === undefined ? undefined : usages.get(op);
  };
  const kept = new Set<AnyGraphOp>();
  const products = viewedProducts(region);
  const absorbed = new Set([...products.values()].flatMap((each) => each.absorbed));
  const cheap = cheapMaps(region);
  const results = new Set(region.results);
  const isResult = (op: AnyGraphOp): boolean => op.results.some((value) => results.has(value));
  // A splat is written wherever it has to be, so it needs no memory of its own to be handed on.
  const isWritten = (value: GraphValue): boolean => {
    const op = definitions.get(value);
    return op !== undefined && isSplat(op);
  };
  for (const value of region.results) {
    const usage = usageOf(value);
    if (usage !== undefined) usage.isKept = !isWritten(value);
  }
  for (const op of region.ops.toReversed()) {
    if (absorbed.has(op)) continue;
    const sources = products.get(op)?.sources;
    const own = usages.get(op) ?? new Usage();
    if (isKept(op, own, cheap.has(op))) kept.add(op);
    const isRoot = kept.has(op);
    const asked = isRoot ? new Map([[op, new Set<object>([own])]]) : own.points;
    for (const value of sources ?? usesOf(op)) {
      const usage = usageOf(value);
      if (usage === undefined) continue;
      askFor(usage, op, asked);
      const isCopied = isRoot && isCopying(op, isResult(op));
      usage.isKept ||=
        isCopied || sources !== undefined || needsMemory(op, value, isWritten(value));
      usage.isReread ||= (isRereading(op) && !isInline(op, value)) || (!isRoot && own.isReread);
    }
  }
  keepDeep(region, definitions, kept);
  return kept;
}

/** Asks for a value that an op uses, at the points at which kernels ask for the op. */
function askFor(
  usage: Usage,
  op: AnyGraphOp,
  asked: ReadonlyMap<AnyGraphOp, ReadonlySet<object>>,
): void {
  for (const [kernel, points] of asked)
    usage.ask(kernel, isAtOwnPoints(op) ? points : Array.from(points, () => ({})));
}

/** Whether an op with memory is copied from that of its operand, or shares it. */
function isCopying(op: AnyGraphOp, isResult: boolean): boolean {
  return isLibraryMap(op) || (sharedOperand(op) !== undefined && !isResult);
}

/** Whether an operation of the library moves what an op is of, from memory. */
function isLibraryMap(op: AnyGraphOp): boolean {
  return loweringOf(op).form === "map" && libraryCallOf(op) !== undefined;
}

/** Longer chains of ops than these are several kernels: tracing one op asks for the next, and the stack ends. */
const mostDeep = 256;

/**
 * Cuts chains that are too long for a kernel, all at the same depths: of the maps that are used behind a cut so many are kept that nothing deep is
 * computed on both sides of it. A program that goes back along a chain, as derivatives do, uses all of it behind a cut.
 */
function keepDeep(
  { ops }: GraphRegion,
  definitions: ReadonlyMap<GraphValue, AnyGraphOp>,
  kept: Set<AnyGraphOp>,
): void {
  const depths = new Map<AnyGraphOp, number>();
  const usedBehind = new Set<AnyGraphOp>();
  const within = (op: AnyGraphOp): readonly AnyGraphOp[] =>
    usesOf(op).flatMap((value) => {
      const definition = definitions.get(value);
      return definition === undefined || kept.has(definition) ? [] : [definition];
    });
  for (const op of ops) {
    const own = within(op);
    const depth = own.reduce((most, each) => Math.max(most, 1 + (depths.get(each) ?? 0)), 1);
    depths.set(op, depth);
    const before = Math.floor((depth - 1) / mostDeep) * mostDeep;
    for (const each of own)
      if ((depths.get(each) ?? 0) <= before && loweringOf(each).form === "map")
        usedBehind.add(each);
  }
  // What each is computed from, back to values that are kept; undefined where that is too much to be computed again.
  const cones = new Map<AnyGraphOp, ReadonlySet<AnyGraphOp> | undefined>();
  for (const op of ops) {
    const cone = new Set([op]);
    let isSmall = true;
    for (const each of within(op)) {
      const before = cones.get(each);
      if (before === undefined) isSmall = false;
      else for (const inner of before) cone.add(inner);
    }
    isSmall &&= cone.size <= mostRecomputed;
    cones.set(op, isSmall ? cone : undefined);
    if (usedBehind.has(op) && !isSmall) kept.add(op);
  }
}

/** Whether an op needs a value in memory: all but maps and folds do, and folds over whole windows. */
function needsMemory(op: AnyGraphOp, value: GraphValue, isWritten: boolean): boolean {
  const { form } = loweringOf(op);
  if (form === "map" || isInline(op, value)) return false;
  if (form === "fold")
    return libraryCallOf(op) !== undefined || tiledKernelOf(op)?.loadsWindows === true;
  return form !== "control" || isAsked(op, value) || !isWritten || isNeededWithin(op, value);
}

/** Whether an op in a branch or a loop needs a value from around it in memory. */
function isNeededWithin(op: AnyGraphOp, value: GraphValue): boolean {
  return regionsOf(op).some(
    (region) =>
      region.ops.some(
        (inner) => usesOf(inner).includes(value) && needsMemory(inner, value, true),
      ) || [...viewedProducts(region).values()].some(({ sources }) => sources.includes(value)),
  );
}

/** Whether a branch depends on the value. */
function isAsked(op: AnyGraphOp, value: GraphValue): boolean {
  if (op.kind === "stablehlo.if") return op.operands.pred === value;
  return op.kind === "stablehlo.case" && op.operands.index === value;
}

function isKept(op: AnyGraphOp, usage: Usage, isCheap: boolean): boolean {
  const lowering = loweringOf(op);
  if (lowering.form === "none") return false;
  if (lowering.form !== "map") return true;
  if (op.kind === "stablehlo.constant") return usage.isKept || !isSplat(op);
  if (usage.isKept || usage.mostPoints > mostPoints) return true;
  return !lowering.isFree && ((usage.points.size > 1 && !isCheap) || usage.isReread);
}

/** What a kernel is made of: the ops that are computed in it, in order, and the values that it loads. */
export interface Cone {
  readonly ops: readonly AnyGraphOp[];
  readonly inputs: readonly GraphValue[];
}

/** The ops and inputs that values need, down to values that have memory. */
export function coneOf(
  values: readonly GraphValue[],
  isStored: (value: GraphValue) => boolean,
  definitions: ReadonlyMap<GraphValue, AnyGraphOp>,
): Cone {
  const ops = new Set<AnyGraphOp>();
  const inputs = new Set<GraphValue>();
  const visit = (value: GraphValue): void => {
    if (isStored(value)) {
      inputs.add(value);
      return;
    }
    const op = definitions.get(value);
    if (op === undefined) throw new Error(`value ${value.id} has neither memory nor an op`);
    if (ops.has(op)) return;
    usesOf(op).forEach(visit);
    ops.add(op);
  };
  values.forEach(visit);
  return { ops: [...ops], inputs: [...inputs] };
}
