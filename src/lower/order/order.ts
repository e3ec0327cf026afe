/**
 * The stage that orders lanes: a program thread is 128 lanes, and runs as if it were one. What its ops do to memory and
 * where they meet is in their traits; here the barriers and fences that are missing become ops, each with its reason.
 *
 *   alloc_barrier …                        alloc_barrier …
 *   store %a, %1                           barriers_ready
 *   %2 = dot %a, %b {instruction = wgmma}  store %a, %1
 *                                          proxy_fence {space = smem, reason = "the tensor cores read …"}
 *                                          lane_barrier {reason = "other lanes may have written a"}
 *                                          %2 = dot %a, %b {instruction = wgmma}
 *
 * | file        | decides                                                               |
 * |-------------|-----------------------------------------------------------------------|
 * | elect.ts    | loops of waits and copies that one warp runs for all                  |
 * | meetings.ts | `lane_barrier`, `proxy_fence`                                         |
 * | products.ts | `products_wait`                                                       |
 * | reach.ts    | `scope` of arrivals and waits on barriers                             |
 * | arrivals.ts | `scale` of barriers: one arrival of each warp, or one of all          |
 * | ends.ts     | `cluster_barrier` and `copies_read` where a kernel begins and ends    |
 *
 * `verifyOrder` asks the same questions of a kernel that has been ordered, and accepts no need that is left. Which windows lie apart,
 * so that lanes need not meet between them, it finds in another way (`boxes.ts` decides, `tried-boxes.ts` verifies). Products are held
 * to the rules `flight` and `groups` of the verifier.
 */
import type { AnyOp, Kernel, Region } from "../../ir/node.ts";
import { changeBody, changeOps, changeRegions } from "../../ir/rewrite/substitute.ts";
import { toldBy, traitsOf } from "../../ir/traits.ts";
import { regionList } from "../../ir/traverse.ts";
import { changedOp, makeOp, noSlots, nothing } from "../../ir/make-op.ts";
import { AccessFinder } from "./accesses.ts";
import { scalesOf } from "./arrivals.ts";
import type { Scales } from "./arrivals.ts";
import { SummedBoxes } from "./boxes.ts";
import { electCopies } from "./elect.ts";
import { verifyEnds, withEnds } from "./ends.ts";
import { findNeeds } from "./meetings.ts";
import type { Need } from "./meetings.ts";
import { productsInFlight } from "./products.ts";
import { findReach } from "./reach.ts";
import { TriedBoxes } from "./tried-boxes.ts";
import { visitEach } from "../../support/visit-each.ts";

/** What lanes need of each other, op by op. */
interface LaneNeeds {
  readonly meetings: ReadonlyMap<AnyOp, Need>;
  readonly reaching: ReadonlySet<AnyOp>;
  readonly scales: Scales;
}

interface Needs extends LaneNeeds {
  readonly products: ReadonlyMap<AnyOp, number>;
}

function laneNeeds(kernel: Kernel, accesses: AccessFinder): LaneNeeds {
  return {
    meetings: findNeeds(kernel, accesses),
    reaching: findReach(kernel, accesses),
    scales: scalesOf(kernel),
  };
}

/** The placed kernel with its lanes in order. */
export function order(placed: Kernel): Kernel {
  const kernel = electCopies(placed);
  const found = laneNeeds(kernel, new AccessFinder(kernel, SummedBoxes));
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
    ops.push(withScale(withScope(inner, needs.reaching.has(op)), needs.scales));
  });
  return changeOps(region, ops);
}

/** What the compiler owes the op. */
function before(op: AnyOp, { meetings, products }: Needs): readonly AnyOp[] {
  const meeting = meetings.get(op);
  const pending = products.get(op);
  if (meeting === undefined && pending === undefined) return nothing;
  const { location } = op;
  const { barrier, fence } = meeting ?? {};
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

/** Arrivals that another block may hear, and waits that may hear them, say how far they reach. */
function withScope(op: AnyOp, reaches: boolean): AnyOp {
  const told =
    toldBy(op) === "cluster" && (op.kind === "barrier_arrive" || op.kind === "copy_async");
  if (!told && op.kind !== "barrier_wait") return op;
  const attributes = Object.freeze({ ...op.attributes, scope: reaches ? "cluster" : "block" });
  return changedOp(op, { attributes });
}

/** Barriers say how many arrivals of the hardware one of the language is. */
function withScale(op: AnyOp, scales: Scales): AnyOp {
  const barrier = op.results[0];
  if (op.kind !== "alloc_barrier" || barrier === undefined) return op;
  const attributes = Object.freeze({ ...op.attributes, scale: scales(barrier) });
  return changedOp(op, { attributes });
}

/** Throws where lanes of a kernel may get out of order. */
export function verifyOrder(kernel: Kernel): void {
  const accesses = new AccessFinder(kernel, TriedBoxes);
  const { meetings, reaching, scales } = laneNeeds(kernel, accesses);
  const [meeting] = meetings;
  if (meeting !== undefined) {
    const [op, { barrier, fence }] = meeting;
    throw new Error(`before ${op.kind} something is missing: ${fence ?? barrier ?? ""}`);
  }
  verifyRegion(kernel.body, { reaching, scales });
  verifyEnds(kernel);
}

function verifyRegion({ ops }: Region, needs: Pick<Needs, "reaching" | "scales">): void {
  const { reaching, scales } = needs;
  let unready = false;
  visitEach(ops, (op) => {
    if (unready && traitsOf(op).results !== "memory" && op.kind !== "barriers_ready")
      throw new Error(`${op.kind} comes before barriers are ready`);
    unready = op.kind === "alloc_barrier" || (unready && op.kind !== "barriers_ready");
    const { scope } = op.attributes as { readonly scope?: string };
    if (reaching.has(op) && "scope" in op.attributes && scope !== "cluster")
      throw new Error(`${op.kind} does not reach the cluster`);
    const barrier = op.results[0];
    if (op.kind === "alloc_barrier" && barrier && op.attributes.scale !== scales(barrier))
      throw new Error(`each arrival on a barrier is ${scales(barrier)} of the hardware`);
    if (op.regions !== noSlots) for (const region of regionList(op)) verifyRegion(region, needs);
  });
}
