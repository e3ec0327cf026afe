/**
 * Barrier insertion: a program thread is a warpgroup of 128 threads and behaves as if it were one. The traits of its ops say what they access and
 * where threads synchronize; here the missing barriers and fences become ops, each with its reason.
 *
 *   alloc_barrier …                        alloc_barrier …
 *   store %a, %1                           barriers_ready
 *   %2 = dot %a, %b {instruction = wgmma}  store %a, %1
 *                                          proxy_fence {space = smem, reason = "the tensor cores read …"}
 *                                          lane_barrier {reason = "other lanes may have written a"}
 *                                          %2 = dot %a, %b {instruction = wgmma}
 *
 * | file               | decides                                                                |
 * |--------------------|------------------------------------------------------------------------|
 * | elected-warp.ts           | loops of waits and copies that one warp runs for all                   |
 * | needed-barriers.ts | `lane_barrier`, `proxy_fence`                                          |
 * | wgmma-register-waits.ts   | `products_wait`                                                        |
 * | cluster-scope.ts   | `scope` of arrivals and waits on barriers                              |
 * | arrival-counts.ts  | `scale` of barriers: an arrival of each warp, or one of all            |
 * | kernel-boundaries.ts            | `cluster_barrier` and `copies_read` where a kernel begins and ends     |
 *
 * `verifyBarriers` runs the same analyses on a kernel that has its barriers, and accepts none that is missing. Which windows are disjoint, so
 * that no barrier is needed between them, is decided by `disjoint-windows.ts` and verified by another method, `sampled-windows.ts`. Products are
 * verified by the rules `in-flight products` and `product groups` (`lower/verify`).
 */
import type { AnyOp, Kernel, Region } from "../../ir/node.ts";
import { changeBody, changeOps, changeRegions } from "../../ir/rewrite/substitute.ts";
import { releaseScope, traitsOf } from "../../ir/traits.ts";
import { regionList } from "../../ir/traverse.ts";
import { changedOp, makeOp, noSlots, nothing } from "../../ir/make-op.ts";
import { AccessFinder } from "./accesses.ts";
import { arrivalCountsOf } from "./arrival-counts.ts";
import type { ArrivalCounts } from "./arrival-counts.ts";
import { SummedBoxes } from "./disjoint-windows.ts";
import { electCopies } from "./elected-warp.ts";
import { verifyEnds, withEnds } from "./kernel-boundaries.ts";
import { neededBarriers } from "./needed-barriers.ts";
import type { Need } from "./needed-barriers.ts";
import { productsInFlight } from "./wgmma-register-waits.ts";
import { findClusterScope } from "./cluster-scope.ts";
import { SampledBoxes } from "./sampled-windows.ts";
import { visitEach } from "../../support/visit-each.ts";

/** The synchronization that each op needs before it. */
interface BarrierNeeds {
  readonly barriers: ReadonlyMap<AnyOp, Need>;
  readonly clusterScoped: ReadonlySet<AnyOp>;
  readonly arrivalCounts: ArrivalCounts;
}

interface Needs extends BarrierNeeds {
  readonly products: ReadonlyMap<AnyOp, number>;
}

function barrierNeeds(kernel: Kernel, accesses: AccessFinder): BarrierNeeds {
  return {
    barriers: neededBarriers(kernel, accesses),
    clusterScoped: findClusterScope(kernel, accesses),
    arrivalCounts: arrivalCountsOf(kernel),
  };
}

/** The placed kernel with its barriers and fences. */
export function insertBarriers(placed: Kernel): Kernel {
  const kernel = electCopies(placed);
  const found = barrierNeeds(kernel, new AccessFinder(kernel, SummedBoxes));
  const needs = { ...found, products: productsInFlight(kernel.body) };
  return withEnds(changeBody(kernel, orderedRegion(kernel.body, needs)));
}

function orderedRegion(region: Region, needs: Needs): Region {
  let unready: AnyOp | undefined;
  const ops: AnyOp[] = [];
  visitEach(region.ops, (op) => {
    const ready = unready !== undefined && traitsOf(op).results !== "memory" ? unready : undefined;
    if (ready !== undefined) unready = undefined;
    if (op.kind === "alloc_barrier") unready = op;
    if (op.kind === "barriers_ready") return ops.push(op);
    const inner =
      op.regions === noSlots ? op : changeRegions(op, (each) => orderedRegion(each, needs));
    if (ready !== undefined) ops.push(makeOp("barriers_ready", { location: ready.location }));
    before(op, needs).forEach((each) => ops.push(each));
    ops.push(withScale(withScope(inner, needs.clusterScoped.has(op)), needs.arrivalCounts));
  });
  return changeOps(region, ops);
}

/** What is inserted before the op. */
function before(op: AnyOp, { barriers, products }: Needs): readonly AnyOp[] {
  const found = barriers.get(op);
  const pending = products.get(op);
  if (found === undefined && pending === undefined) return nothing;
  const { location } = op;
  const { barrier, fence } = found ?? {};
  const fenced = { space: "smem", reason: fence } as const;
  return [
    ...(fence === undefined ? [] : [makeOp("proxy_fence", { attributes: fenced, location })]),
    ...(barrier === undefined
      ? []
      : [makeOp("lane_barrier", { attributes: { reason: barrier }, location })]),
    ...(pending === undefined
      ? []
      : [makeOp("products_wait", { attributes: { pending }, location })]),
  ];
}

/** Arrivals that may release to another block, and waits that may acquire from one, say their scope. */
function withScope(op: AnyOp, reaches: boolean): AnyOp {
  const told =
    releaseScope(op) === "cluster" && (op.kind === "barrier_arrive" || op.kind === "copy_async");
  if (!told && op.kind !== "barrier_wait" && op.kind !== "barrier_test") return op;
  const attributes = Object.freeze({ ...op.attributes, scope: reaches ? "cluster" : "block" });
  return changedOp(op, { attributes });
}

/** Barriers say how many arrivals of the hardware one of the language is. */
function withScale(op: AnyOp, arrivalCounts: ArrivalCounts): AnyOp {
  const barrier = op.results[0];
  if (op.kind !== "alloc_barrier" || barrier === undefined) return op;
  const attributes = Object.freeze({ ...op.attributes, scale: arrivalCounts(barrier) });
  return changedOp(op, { attributes });
}

/** Throws where a barrier or fence is missing. */
export function verifyBarriers(kernel: Kernel): void {
  const accesses = new AccessFinder(kernel, SampledBoxes);
  const { barriers, clusterScoped, arrivalCounts } = barrierNeeds(kernel, accesses);
  const [found] = barriers;
  if (found !== undefined) {
    const [op, { barrier, fence }] = found;
    throw new Error(`before ${op.kind} something is missing: ${fence ?? barrier ?? ""}`);
  }
  verifyRegion(kernel.body, { clusterScoped, arrivalCounts });
  verifyEnds(kernel);
}

function verifyRegion(
  { ops }: Region,
  needs: Pick<Needs, "clusterScoped" | "arrivalCounts">,
): void {
  const { clusterScoped, arrivalCounts } = needs;
  let unready = false;
  visitEach(ops, (op) => {
    if (unready && traitsOf(op).results !== "memory" && op.kind !== "barriers_ready")
      throw new Error(`${op.kind} comes before barriers are ready`);
    unready = op.kind === "alloc_barrier" || (unready && op.kind !== "barriers_ready");
    const { scope } = op.attributes as { readonly scope?: string };
    if (clusterScoped.has(op) && "scope" in op.attributes && scope !== "cluster")
      throw new Error(`${op.kind} does not reach the cluster`);
    const barrier = op.results[0];
    if (op.kind === "alloc_barrier" && barrier && op.attributes.scale !== arrivalCounts(barrier))
      throw new Error(`each arrival on a barrier is ${arrivalCounts(barrier)} of the hardware`);
    if (op.regions !== noSlots) for (const region of regionList(op)) verifyRegion(region, needs);
  });
}
