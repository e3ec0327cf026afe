/**
 * Whether waits leave no more products in flight than they say. The hardware counts wgmma groups, and a product may be several of them; what
 * else is verified of products (`in-flight-products.ts`), and what the simulator checks of buffers that they read, counts products:
 *
 *   %2 = wgmma %1, … {groups = 4}                the youngest products, as groups: [4]
 *   %4 = wgmma %3, … {groups = 4}                [4, 4]
 *   products_wait {pending = 1, groups = 4}      leaves 4 groups, which are the youngest product; 5 would be a part of the other
 *
 * Groups complete in the order in which they were committed, so `groups` of a wait must be at most those of the `pending` youngest
 * products, on every path to it. Where paths join, each entry of the list keeps the smaller number. A loop is followed until its
 * list stays the same. How the counts were found is not used.
 */
import { noSlots } from "../../ir/make-op.ts";
import type { AnyOp, Kernel, Op, Region, Value } from "../../ir/node.ts";
import { repeats, traitsOf } from "../../ir/traits.ts";
import { regionList } from "../../ir/traverse.ts";
import { reject } from "../../ir/verify/report.ts";
import { bytesAlong, tiledAxes } from "../../layout/algebra/shared-view.ts";
import { storedAs } from "../../layout/model/placed-types.ts";
import { operandAxes, wgmmaRows } from "../../layout/model/product-instructions.ts";
import { windowsOf } from "../../layout/model/windows.ts";
import { walkAgents } from "./walk.ts";
import { isInFlight } from "../../targets/product-instructions.ts";

/** Groups of products that may still run, the youngest product first. */
type Running = readonly number[];

export function verifyProductGroups(kernel: Kernel): void {
  let longest = 0;
  let multiplies = false;
  walkAgents(kernel, (op, { warps }) => {
    if (op.kind === "wgmma") verifyLoop(op, kernel, warps);
    multiplies ||= op.kind === "wgmma";
    if (isWait(op)) longest = Math.max(longest, op.attributes.pending);
  });
  // One product more than waits leave tells whether there is anything to wait for.
  if (multiplies) follow(kernel.body, [], longest + 1);
}

type Wait = Op<"wgmma_wait"> | Op<"products_wait">;

function isWait(op: AnyOp): op is Wait {
  return op.kind === "wgmma_wait" || op.kind === "products_wait";
}

/** What may run behind the region, as far as `longest` products back. */
function follow({ ops }: Region, before: Running, longest: number): Running {
  return ops.reduce((running, op) => behind(op, running, longest), before);
}

function behind(op: AnyOp, running: Running, longest: number): Running {
  if (op.kind === "wgmma") return [op.attributes.groups ?? 1, ...running].slice(0, longest);
  if (isWait(op)) return waited(op, running);
  if (op.kind === "dot" && isInFlight(op.attributes.instruction)) return [];
  if (op.regions === noSlots) return running;
  if (repeats(op)) return behindLoop(op, running, longest);
  const ways = regionList(op).map((region) => follow(region, running, longest));
  const { regions } = traitsOf(op);
  // A thread may run none of the regions that are others'.
  const stays = regions === "once" || regions === "one of" ? [] : [running];
  return [...stays, ...ways].reduce(joined);
}

function behindLoop(op: Op<"loop"> | Op<"while">, before: Running, longest: number): Running {
  let running = before;
  for (;;) {
    const tested = op.kind === "while" ? follow(op.regions.condition, running, longest) : running;
    const round = joined(running, follow(op.regions.body, tested, longest));
    // A break leaves behind the body, before the condition.
    if (round.join() === running.join())
      return op.attributes.breaks === true ? joined(tested, running) : tested;
    running = round;
  }
}

/** Either of two lists; one that is shorter has nothing more to wait for. */
function joined(left: Running, right: Running): Running {
  const [longer, shorter] = left.length < right.length ? [right, left] : [left, right];
  return longer.map((groups, place) => Math.min(groups, shorter[place] ?? groups));
}

function waited(op: Wait, running: Running): Running {
  const { pending, groups = 0 } = op.attributes;
  const left = running.slice(0, pending);
  const most = left.reduce((sum, each) => sum + each, 0);
  // Where no more products run than may, it need not wait at all.
  if (running.length > pending && groups > most)
    reject(op, "TW6210", `${op.kind} leaves groups of more than ${pending} products`, {
      expected: `{groups = ${most}}, which are the youngest ${pending}`,
      found: `{groups = ${groups}}`,
    });
  return left;
}

/** A product of several groups is a loop: one slab of rows, and as many steps of the sum, each equally far from the one before. */
function verifyLoop(op: Op<"wgmma">, kernel: Kernel, warps: number): void {
  const { groups = 1 } = op.attributes;
  if (groups === 1) return;
  const { a, b, accumulator, metadata } = op.operands;
  const refuse = (problem: string): never =>
    reject(op, "TW6210", `wgmma cannot be ${groups} groups: ${problem}`, {
      expected: "one slab of rows, and a group for each step of the sum",
      found: problem,
    });
  if (a.type.kind !== "ref" || b.type.kind !== "ref" || metadata !== undefined)
    return refuse("it reads registers");
  const [rows] = accumulator.type.kind === "inflight" ? accumulator.type.shape : [];
  if (rows !== wgmmaRows(warps)) refuse(`its ${rows} rows are several slabs`);
  const depth = 256 / a.type.dtype.bits;
  const steps = Number(b.type.shape[0]) / depth;
  if (groups !== steps) refuse(`it has ${steps} instructions`);
  for (const side of ["left", "right"] as const)
    for (const starts of startsOf(side === "left" ? a : b, side, kernel, { depth, steps }))
      if (starts.some((start, index) => start !== index * (starts[1] ?? 0)))
        refuse(`bytes of its ${side} factor lie unevenly`);
}

/** The first byte of each step along the sum, for both views of a window. */
function startsOf(
  factor: Value,
  side: "left" | "right",
  kernel: Kernel,
  { depth, steps }: { readonly depth: number; readonly steps: number },
): readonly (readonly number[])[] {
  const windows = windowsOf(kernel);
  const window = windows.of(factor);
  const layout = storedAs(windows.definitions.get(window.root));
  const views = window.space === "gmem" || layout === undefined ? [] : (window.views(layout) ?? []);
  return views.flatMap((view) => {
    const axis = tiledAxes(view)?.axes[operandAxes[side].k];
    return axis ? [Array.from({ length: steps }, (_, step) => bytesAlong(axis, step * depth))] : [];
  });
}
