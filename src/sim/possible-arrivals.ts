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

type Arrival = Op<"barrier_arrive"> | Op<"copy_async"> | Op<"tcgen05_commit">;

interface Arriving {
  readonly op: Arrival;
  /** Numbers of the threads that run it. */
  readonly threads: readonly number[];
}

/** A thread that would arrive, and what keeps it: it has ended, or waits at an op. */
interface ArrivingThread {
  readonly thread: string;
  readonly keptAt: AnyOp | "ended";
}

/** An op that arrives on a barrier that somebody waits for. */
export interface AwaitedArrival {
  readonly barrier: string;
  /** The op that waits for it. */
  readonly wait: AnyOp;
  readonly op: AnyOp;
  readonly threads: readonly ArrivingThread[];
}

/** More arrivals than this make a report longer, not clearer. */
const shownArrivals = 4;

/** A note for each op that would arrive. */
export function arrivalNotes(arrivals: readonly AwaitedArrival[]): readonly RelatedNote[] {
  return arrivals.map(({ barrier, op, threads }) => ({
    message: `${opName(op)} arrives on ${barrier}${isOfPair(op) ? " of its pair's leader" : ""}, in ${threads.map(threadText).join(" and ")}`,
    location: op.location,
  }));
}

/** The ops that arrive on the barriers that agents wait for. */
export function arrivalsAwaited(waiting: readonly Agent[]): readonly AwaitedArrival[] {
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
      barrier: barrierName(barrier, agent),
      wait: agent.site.op,
      op,
      threads: threads.map((thread) => arrivingThread(thread, agent)),
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
  return op.kind === "barrier_arrive" || op.kind === "copy_async" || op.kind === "tcgen05_commit";
}

function isOfPair({ attributes }: AnyOp): boolean {
  return "pair" in attributes && attributes.pair === true;
}

function barrierName(barrier: Value, { machine }: Agent): string {
  const allocation = machine.program.allocations.find(({ op }) => op.results.includes(barrier));
  return allocation?.op.attributes.name ?? "the barrier";
}

/** A thread of the waiting agent's block. */
function arrivingThread(number: number, { machine, block }: Agent): ArrivingThread {
  const thread = machine.program.kernel.threads[number] ?? String(number);
  const agent = block.agents[number];
  return {
    thread,
    keptAt: agent === undefined || agent.ended ? "ended" : agent.site.op,
  };
}

function threadText({ thread, keptAt }: ArrivingThread): string {
  if (keptAt === "ended") return `thread ${thread}, which has ended`;
  return `thread ${thread}, which waits at ${formatPosition(keptAt.location.position)}`;
}
