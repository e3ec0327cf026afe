/**
 * Who could end a wait for a barrier: the ops of the program that arrive on it, each with the threads
 * that run it and what keeps them.
 *
 *   compute   full.wait()                       waits: nobody has arrived
 *   load      empty.wait()   copyAsync(…, full) would arrive, but waits for empty
 */
import type { AnyOp, Op, Region, Value } from "../ir/node.ts";
import { opName } from "../ir/op-names.ts";
import { regionList } from "../ir/traverse.ts";
import type { RelatedNote } from "../support/diagnostics.ts";
import { formatPosition } from "../support/location.ts";
import type { Agent } from "./agent.ts";

type Arrival = Op<"barrier_arrive"> | Op<"copy_async">;

interface Arriving {
  readonly op: Arrival;
  /** Numbers of the threads that run it. */
  readonly threads: readonly number[];
}

/** More arrivals than this make a report longer, not clearer. */
const shownArrivals = 4;

/** A note for each op that arrives on the barrier an agent waits for. */
export function arrivalNotes(waiting: readonly Agent[]): readonly RelatedNote[] {
  const barriers = new Map<Value, Agent>();
  for (const agent of waiting) {
    const { op } = agent.site;
    if (op.kind === "barrier_wait" && !barriers.has(op.operands.barrier))
      barriers.set(op.operands.barrier, agent);
  }
  return [...barriers].flatMap(([barrier, agent]) => {
    const { kernel } = agent.machine.program;
    const arriving = arrivalsOn(barrier, kernel.body, [...kernel.threads.keys()]);
    return arriving.slice(0, shownArrivals).map(({ op, threads }) => ({
      message: `${opName(op)} arrives on ${barrierName(barrier, agent)}, in ${threads.map((thread) => threadText(thread, agent)).join(" and ")}`,
      location: op.location,
    }));
  });
}

function arrivalsOn(
  barrier: Value,
  region: Region,
  threads: readonly number[],
): readonly Arriving[] {
  return region.ops.flatMap((op) => {
    if (isArrival(op)) return op.operands.barrier === barrier ? [{ op, threads }] : [];
    const inside = op.kind === "on_threads" ? op.attributes.threads : threads;
    return regionList(op).flatMap((inner) => arrivalsOn(barrier, inner, inside));
  });
}

function isArrival(op: AnyOp): op is Arrival {
  return op.kind === "barrier_arrive" || op.kind === "copy_async";
}

function barrierName(barrier: Value, { machine }: Agent): string {
  const allocation = machine.program.allocations.find(({ op }) => op.results.includes(barrier));
  return allocation?.op.attributes.name ?? "the barrier";
}

/** A thread of the waiting agent's block, and what keeps it. */
function threadText(thread: number, { machine, block }: Agent): string {
  const name = `thread ${machine.program.kernel.threads[thread] ?? thread}`;
  const agent = block.agents[thread];
  if (agent === undefined || agent.ended) return `${name}, which has ended`;
  return `${name}, which waits at ${formatPosition(agent.site.op.location.position)}`;
}
