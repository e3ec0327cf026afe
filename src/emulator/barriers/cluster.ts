/**
 * The barrier of a cluster: every thread of every block arrives, and may then do other work before it
 * waits for all of them. Threads that have ended count as arrived for good.
 *
 *   block 0   arrive ·········· wait │
 *   block 1             arrive  wait │ all go on
 */
import { Knowledge } from "../../happens-before/knowledge.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { lanesOf } from "../asynchronous.ts";
import type {
  BlockView,
  CollectiveCall,
  CollectiveInstruction,
  CollectiveRule,
  WarpView,
} from "../collective.ts";

class ClusterBarrier {
  #phase = 0;
  #gathering = Knowledge.none;
  #ended = Knowledge.none;
  /** The lanes of each warp that have arrived in the running phase. */
  readonly #arrived = new Map<WarpView, number>();
  /** Lanes that have arrived and not yet waited, and the phase they arrived in. */
  readonly #owing = new Map<WarpView, Map<number, number>>();

  #owingOf(warp: WarpView): Map<number, number> {
    const found = this.#owing.get(warp) ?? new Map<number, number>();
    this.#owing.set(warp, found);
    return found;
  }

  arrive(warp: WarpView, mask: number, told: Knowledge): boolean {
    const owing = this.#owingOf(warp);
    if (lanesOf(mask).some((lane) => owing.has(lane))) return false;
    for (const lane of lanesOf(mask)) owing.set(lane, this.#phase);
    this.#arrived.set(warp, (this.#arrived.get(warp) ?? 0) | mask);
    this.#gathering = this.#gathering.join(told);
    return true;
  }

  /** Ends the phase when every lane that lives has arrived. */
  advance(cluster: readonly BlockView[]): boolean {
    for (const { warps } of cluster)
      for (const warp of warps)
        if ((warp.live & ~(this.#arrived.get(warp) ?? 0)) !== 0) return false;
    if (this.#arrived.size === 0) return false;
    this.#phase += 1;
    this.#arrived.clear();
    this.#ended = this.#gathering;
    this.#gathering = Knowledge.none;
    return true;
  }

  /** What the lanes learn if all of them may go on; "waiting" if not, undefined if some have not arrived. */
  wait(warp: WarpView, mask: number): Knowledge | "waiting" | undefined {
    const owing = this.#owingOf(warp);
    const lanes = lanesOf(mask);
    if (lanes.some((lane) => !owing.has(lane))) return undefined;
    if (lanes.some((lane) => owing.get(lane) === this.#phase)) return "waiting";
    for (const lane of lanes) owing.delete(lane);
    return this.#ended;
  }
}

const barriers = new WeakMap<BlockView, ClusterBarrier>();

function barrierOf({ block }: WarpView): ClusterBarrier {
  const [first = block] = block.cluster;
  const found = barriers.get(first) ?? new ClusterBarrier();
  barriers.set(first, found);
  return found;
}

function outOfOrder({ instruction, location }: CollectiveInstruction, warp: WarpView, why: string) {
  return new TilewrightError({
    code: "TW8080",
    message: `${instruction.opcode} in ${warp.title}: ${why}`,
    location,
    expected: "arrivals and waits in turns",
    found: why,
  });
}

function runArrive(instruction: CollectiveInstruction, { machine, warp, mask }: CollectiveCall) {
  const relaxed = instruction.modifiers.includes("relaxed");
  const told = relaxed ? warp.fenced : (warp.timeline?.publish() ?? Knowledge.none);
  const barrier = barrierOf(warp);
  if (!barrier.arrive(warp, mask, told))
    throw outOfOrder(instruction, warp, "it has arrived before and not waited since");
  if (barrier.advance(warp.block.cluster)) machine.changed();
  return "done" as const;
}

function runWait(instruction: CollectiveInstruction, { machine, warp, mask }: CollectiveCall) {
  const barrier = barrierOf(warp);
  // Threads that ended since the last arrival may have been the last ones waited for.
  if (barrier.advance(warp.block.cluster)) machine.changed();
  const learnt = barrier.wait(warp, mask);
  if (learnt === undefined) throw outOfOrder(instruction, warp, "it has not arrived");
  if (learnt === "waiting") return "retry" as const;
  warp.timeline?.acquire(learnt);
  return "done" as const;
}

/** `barrier.cluster.arrive` and `barrier.cluster.wait`; other barriers are none of this rule's. */
export const clusterBarrier: CollectiveRule = (instruction) => {
  const [scope, operation] = instruction.modifiers;
  if (scope !== "cluster") return undefined;
  const aligned = instruction.modifiers.includes("aligned");
  if (operation === "arrive") return { aligned, run: (call) => runArrive(instruction, call) };
  if (operation === "wait") return { aligned, run: (call) => runWait(instruction, call) };
  return undefined;
};
