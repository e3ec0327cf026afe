/**
 * Where everybody is, when a run ends before its program does.
 *
 * Deadlock: no agent can make progress, and some have not ended. The report is the wait-for graph: each
 * waiting agent with its line, what it waits for, who has come, and who would come but waits itself.
 */
import { TilewrightError } from "../support/diagnostics.ts";
import type { RelatedNote } from "../support/diagnostics.ts";
import { unknownLocation } from "../support/location.ts";
import type { ReachedLimit } from "../support/run-limits.ts";
import type { Agent } from "./agent.ts";
import { arrivalNotes, arrivalsAwaited } from "./possible-arrivals.ts";
import type { AwaitedArrival } from "./possible-arrivals.ts";
import type { Machine } from "./machine.ts";
import { placeText } from "../happens-before/access.ts";
import type { Origin } from "../happens-before/access.ts";

/** More waits than this make a report longer, not clearer. */
const shownWaits = 12;

/** Somebody who waits. */
export interface Wait extends Origin {
  /** What for, and who has come so far. */
  readonly awaited: string;
}

/** Who waits for what, and who could end it: what the report of a deadlock says, for those who draw it. */
export interface WaitGraph {
  readonly waits: readonly Wait[];
  readonly arrivals: readonly AwaitedArrival[];
}

export function reportDeadlock(machine: Machine): never {
  const waiting = agentsLeft(machine);
  const [first] = waiting;
  if (first === undefined) throw new Error("a cluster is left with nobody in it");
  const notes: RelatedNote[] = waiting.slice(0, shownWaits).map((agent) => ({
    message: waitText(agent),
    location: agent.site.op.location,
  }));
  if (waiting.length > shownWaits)
    notes.push({ message: `and ${waiting.length - shownWaits} more wait` });
  const arrivals = arrivalsAwaited(waiting);
  notes.push(...arrivalNotes(arrivals));
  machine.onDeadlock?.({
    waits: waiting
      .slice(0, shownWaits)
      .map((agent) => ({ ...agent.origin(), awaited: awaitedText(agent) })),
    arrivals,
  });
  const { blocksNotStarted } = machine;
  const cause =
    blocksNotStarted === 0
      ? ""
      : `; ${blocksNotStarted} blocks have not started, since no more fit on the GPU at once`;
  return machine.findings.stop(
    {
      code: "TW3011",
      message: "deadlock: every program thread that has not ended waits",
      location: first.site.op.location,
      expected: "somebody left who can end the wait",
      found: `${waiting.length} waiting${cause}`,
      ...(blocksNotStarted > 0 && {
        remedy: "let blocks wait only for blocks before them, or launch no more than fit at once",
      }),
      notes,
    },
    first.site.op,
  );
}

/** The report of a run that came to a limit, with what was found before. */
export function stoppedRun(
  { running, findings }: Machine,
  { message, expected, found }: ReachedLimit,
): TilewrightError {
  const agents = agentsLeft({ running }).filter(({ position }) => position > 0);
  const notes: RelatedNote[] = agents.slice(0, shownWaits).map((agent) => ({
    message: standText(agent),
    location: agent.site.op.location,
  }));
  const unseen = agents.length - shownWaits;
  if (unseen > 0) notes.push({ message: `and ${unseen} more have not ended` });
  const earlier = findings.errors.map((finding) => ({
    message: `before that, ${finding.code}: ${finding.summary}`,
    location: finding,
  }));
  return new TilewrightError({
    code: "TW3022",
    message,
    location: notes[0]?.location ?? unknownLocation,
    expected,
    found,
    notes: [...notes, ...earlier],
  });
}

function agentsLeft({ running }: Pick<Machine, "running">): readonly Agent[] {
  return [...running].flatMap(({ blocks }) =>
    blocks.flatMap(({ agents }) => agents.flatMap(leftOf)),
  );
}

/** The agent itself, or the warps it waits for. */
function leftOf(agent: Agent): readonly Agent[] {
  if (agent.ended) return [];
  return agent.warps.length === 0 ? [agent] : agent.warps.flatMap(leftOf);
}

function standText(agent: Agent): string {
  if (agent.waitingFor !== undefined) return waitText(agent);
  return `${placeText(agent.place())} is at ${agent.site.op.kind}`;
}

function waitText(agent: Agent): string {
  return `${placeText(agent.place())} waits for ${awaitedText(agent)}`;
}

function awaitedText({ waitingFor }: Agent): string {
  return waitingFor?.() ?? "its turn";
}
