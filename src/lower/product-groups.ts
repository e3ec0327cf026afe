/**
 * The stage that decides the wgmma groups of products. The hardware waits for groups, the language for products. A product is one
 * group of all its instructions, or a loop of one instruction, which commits a group each time:
 *
 *   %2 = wgmma %1, %a, %b {rolled = true, groups = 4}       64 of k: 4 instructions of 16
 *   %3 = wgmma_wait %2 {pending = 1, …, groups = 4}         one product is four groups
 *
 * The assembler takes longer for each wgmma than for hundreds of other instructions, and four of them as one in a loop are as fast
 * on a GPU. A group committed behind the loop would take an instruction of its own there, which costs tensor cores 3 %.
 *
 * A wait says how many groups it leaves, once for all paths to it. That is a number of products only where all of a kernel's have
 * equally many; otherwise none is a loop. The rule `product groups` of the verifier counts again along every path.
 */
import type { AnyOp, Kernel, Op, Region, Value } from "../ir/node.ts";
import {
  changeBody,
  changeEachOp,
  changeRegions,
  withAttributes,
} from "../ir/rewrite/substitute.ts";
import { walkOps } from "../ir/traverse.ts";
import type { TiledAxis } from "../layout/algebra/shared-view.ts";
import { tiledAxes } from "../layout/algebra/shared-view.ts";
import { storedAs } from "../layout/model/placed-types.ts";
import { operandAxes, wgmmaRows } from "../layout/model/product-instructions.ts";
import { windowsOf } from "../layout/model/windows.ts";
import { isInFlight } from "../targets/product-instructions.ts";

/** Groups that may be left running by a wait. */
const mostPending = 7;

/** The ordered kernel with its products in groups, and waits that count them. */
export function groupProducts(kernel: Kernel): Kernel {
  let multiplies = false;
  walkOps(kernel.body, ({ kind }) => {
    multiplies ||= kind === "wgmma" || kind === "wgmma_wait" || kind === "products_wait";
  });
  return multiplies ? changeBody(kernel, grouped(kernel.body, groupsOf(kernel))) : kernel;
}

function grouped(region: Region, groups: number): Region {
  return changeEachOp(region, (op) => {
    if (op.kind === "wgmma") return withAttributes(op, { groups });
    if (op.kind === "wgmma_wait" || op.kind === "products_wait")
      return withAttributes(op, { groups: op.attributes.pending * groups });
    return changeRegions(op, (inner) => grouped(inner, groups));
  });
}

/** Groups that each product of the kernel is. */
function groupsOf(kernel: Kernel): number {
  const counts = new Set<number>();
  let pending = 1;
  walkOps(kernel.body, (op) => {
    if (op.kind === "wgmma") counts.add(rolls(op, kernel) ? instructionsOf(op) : 1);
    else if (op.kind === "dot" && isInFlight(op.attributes.instruction)) counts.add(1);
    else if (isWait(op)) pending = Math.max(pending, op.attributes.pending);
  });
  const [count = 1] = counts;
  return counts.size === 1 && count * pending <= mostPending ? count : 1;
}

function isWait(op: AnyOp): op is Op<"wgmma_wait"> | Op<"products_wait"> {
  return op.kind === "wgmma_wait" || op.kind === "products_wait";
}

/** Whether the product may be a loop: of one slab of rows, by descriptors that go on evenly. */
function rolls(op: Op<"wgmma">, kernel: Kernel): boolean {
  const { a, b, accumulator, metadata } = op.operands;
  if (op.attributes.rolled !== true || metadata !== undefined || a.type.kind !== "ref")
    return false;
  const [rows] = accumulator.type.kind === "inflight" ? accumulator.type.shape : [];
  if (rows !== wgmmaRows(kernel.warps)) return false;
  const steps = instructionsOf(op);
  const depth = depthOf(op);
  const [left, right] = [alongSum(a, "left", kernel), alongSum(b, "right", kernel)];
  return [...left, ...right].every((axis) => axis !== undefined && isEven(axis, depth, steps));
}

/** Elements of the sum that an instruction takes: 32 bytes. */
function depthOf({ operands: { a } }: Op<"wgmma">): number {
  return a.type.kind === "ref" ? 256 / a.type.dtype.bits : 0;
}

function instructionsOf(op: Op<"wgmma">): number {
  const { type } = op.operands.b;
  const [depth] = type.kind === "ref" ? type.shape : [];
  return Number(depth) / depthOf(op);
}

/** How elements lie along the sum, with run-time offsets at 0 and at their divisor. */
function alongSum(
  factor: Value,
  side: "left" | "right",
  kernel: Kernel,
): readonly (TiledAxis | undefined)[] {
  const windows = windowsOf(kernel);
  const window = windows.of(factor);
  const layout = storedAs(windows.definitions.get(window.root));
  if (window.space === "gmem" || layout === undefined) return [undefined];
  const views = window.views(layout) ?? [];
  return views.map((view) => tiledAxes(view)?.axes[operandAxes[side].k]);
}

/** Whether steps are equally many bytes: within a run, or over whole ones. */
function isEven({ inner, step, jump }: TiledAxis, depth: number, steps: number): boolean {
  const within = steps <= 2 || (steps - 1) * depth < inner;
  return within || depth % inner === 0 || jump === inner * step;
}
