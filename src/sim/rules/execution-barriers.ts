/** Barriers of all threads of a block or cluster: an arrival and a wait, as two steps. */
import type { AnyOp } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import type { Agent, Outcome } from "../agent.ts";
import type { Block, SyncPoint } from "../block.ts";
import { arrivalsText } from "../race-messages.ts";
import { placeText } from "../../happens-before/access.ts";
import type { Assembler } from "../program.ts";

/** Arrivals are counted by agent; without checks a thread is known by its place in the cluster. */
function attendee(agent: Agent): number {
  const { block, thread } = agent;
  return block.rank * block.agents.length + thread;
}

export function arriveAt(agent: Agent, syncPoint: SyncPoint): Outcome {
  if (syncPoint.state.isAttending(attendee(agent))) reportSecondArrival(agent);
  const concluded = syncPoint.state.arrive(attendee(agent), agent.publish(), agent.origin());
  if (concluded) syncPoint.waiters.wake();
  return "switch";
}

export function waitAt(agent: Agent, syncPoint: SyncPoint): Outcome {
  const { state } = syncPoint;
  if (!state.isAttending(attendee(agent))) reportMissingArrival(agent);
  if (!state.isConcluded(attendee(agent)))
    return agent.wait(
      syncPoint.waiters,
      () => state.isConcluded(attendee(agent)),
      () =>
        `${syncPoint.name} (${state.arrived.length} of ${state.needed} so far); ${arrivalsText(state.arrived)}`,
    );
  agent.acquire(state.leave(attendee(agent)));
  return "switch";
}

/** Where all threads of the block meet. */
export function ownPoint({ syncPoint }: Block): SyncPoint {
  return syncPoint;
}

/** Emits a barrier of all threads that meet at the point. */
export function emitSync(code: Assembler, op: AnyOp, pointOf: (block: Block) => SyncPoint): void {
  code.emit(op, (agent) => arriveAt(agent, pointOf(agent.block)));
  code.emit(op, (agent) => waitAt(agent, pointOf(agent.block)));
}

function reportSecondArrival(agent: Agent): never {
  return reportMisuse(agent, "arrives twice without a wait between", "a wait after each arrival");
}

/** At the end of a thread: it must not leave an arrival behind that it has not waited for. */
export function requireNoArrival(agent: Agent, syncPoint: SyncPoint): void {
  const arrival = syncPoint.state.arrivalOf(attendee(agent));
  if (arrival === undefined) return;
  reportMisuse(
    agent,
    "is the last that a thread does: it ends without a wait",
    "a wait after each arrival",
    arrival.op,
  );
}

function reportMissingArrival(agent: Agent): never {
  return reportMisuse(agent, "waits without having arrived", "an arrival before each wait");
}

function reportMisuse(agent: Agent, what: string, expected: string, op = agent.site.op): never {
  return agent.machine.findings.stop(
    {
      code: "TW3018",
      message: `${opName(op)} ${what}`,
      location: op.location,
      expected,
      found: `none in ${placeText(agent.place())}`,
    },
    op,
  );
}
