/**
 * Several processes, each a program of its own, that meet at collectives.
 *
 *   grid [[@f, @g], [@f, @g]]     rows are replicas, columns partitions; process = replica · partitions + partition
 *
 * A process is a generator that stops at a `Request`. The scheduler lets each run until it stops, then
 * answers the requests that can be answered: an exchange once every member of its group waits for it, a
 * receive once something was sent. When none can be answered and not all are done, they wait for
 * each other, which is reported.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { ChannelHandle } from "../ops/index.ts";
import type { ProcessCounts } from "../ranks/collective.ts";
import type { Datum } from "./value.ts";
import { pause } from "./frame.ts";
import type { ProcessPlace, Request, Steps } from "./frame.ts";

interface Process {
  readonly steps: Steps<readonly Datum[]>;
  waiting: Request | undefined;
  results: readonly Datum[] | undefined;
}

type Answer = readonly (readonly Datum[])[];

/** Where what is sent waits, and what feeds processes from the host. */
interface Surroundings {
  readonly sent: Map<string, (readonly Datum[])[]>;
  readonly infeed: () => readonly Datum[] | undefined;
}

export function* runProcesses(
  programs: readonly Steps<readonly Datum[]>[],
  infeed: () => readonly Datum[] | undefined,
): Steps<readonly (readonly Datum[])[]> {
  const processes = programs.map((steps): Process => ({
    steps,
    waiting: undefined,
    results: undefined,
  }));
  const surroundings: Surroundings = { sent: new Map(), infeed };
  for (const process of processes) yield* advance(process, []);
  while (processes.some(({ results }) => results === undefined)) {
    const answered = processes.map((_, index) => answerOf(processes, index, surroundings));
    if (answered.every((answer) => answer === undefined)) throw deadlock(processes);
    for (const [index, answer] of answered.entries())
      if (answer !== undefined) yield* advance(processes[index] as Process, answer);
  }
  return processes.map(({ results = [] }) => results);
}

/** Has a process go on until it waits for others. */
function* advance(process: Process, answer: Answer): Steps<void> {
  process.waiting = undefined;
  for (let step = process.steps.next(answer); ; step = process.steps.next([])) {
    if (step.done === true) {
      process.results = step.value;
      return;
    }
    if (step.value.kind !== "pause") {
      process.waiting = step.value;
      return;
    }
    yield pause;
  }
}

/** What a process gets that waits; undefined where it must wait on. */
function answerOf(
  processes: readonly Process[],
  index: number,
  { sent, infeed }: Surroundings,
): Answer | undefined {
  const request = processes[index]?.waiting;
  switch (request?.kind) {
    case undefined:
      return undefined;
    case "exchange":
      return exchanged(processes, request);
    case "send": {
      const queue = sent.get(request.channel) ?? [];
      sent.set(request.channel, [...queue, request.value]);
      return [];
    }
    case "receive": {
      const [first, ...rest] = sent.get(request.channel) ?? [];
      if (first === undefined) return undefined;
      sent.set(request.channel, rest);
      return [first];
    }
    case "infeed": {
      const value = infeed();
      return value === undefined ? undefined : [value];
    }
    case "outfeed":
      return [];
  }
}

function exchanged(
  processes: readonly Process[],
  { channel, group }: Request & { readonly kind: "exchange" },
): Answer | undefined {
  const values: (readonly Datum[])[] = [];
  for (const member of group) {
    const waiting = processes[member]?.waiting;
    if (waiting?.kind !== "exchange" || waiting.channel !== channel) return undefined;
    if (waiting.group.join() !== group.join()) return undefined;
    values.push(waiting.value);
  }
  return values;
}

function deadlock(processes: readonly Process[]): TilewrightError {
  const waiting = processes.flatMap(({ waiting: request }, index) =>
    request === undefined ? [] : [`process ${index} at ${describe(request)}`],
  );
  return new TilewrightError({
    code: "TW9503",
    message: "processes wait for each other and none can go on",
    location: processes.find(({ waiting: request }) => request !== undefined)?.waiting?.op.location,
    expected: "the same collectives in the same order in all processes of a group",
    found: waiting.join("; "),
  });
}

function describe(request: Request): string {
  if (request.kind === "exchange") return `a collective of processes ${request.group.join(", ")}`;
  return "channel" in request ? `${request.kind} on channel ${request.channel}` : request.kind;
}

/* ---- groups ---- */

export function processIndex({ replica, partition }: ProcessPlace, partitions: number): number {
  return replica * partitions + partition;
}

export type GroupMode = "replicas" | "partitions" | "replicas and partitions" | "flattened";

/** How all_gather, all_reduce and reduce_scatter read their groups. */
export function reductionMode(channel: ChannelHandle | undefined, global: boolean): GroupMode {
  if ((channel?.handle ?? 0) <= 0) return "replicas";
  return global ? "flattened" : "replicas and partitions";
}

/** How the other collectives read theirs. */
export function exchangeMode(channel: ChannelHandle | undefined): GroupMode {
  return (channel?.handle ?? 0) <= 0 ? "replicas" : "partitions";
}

/** The groups of processes that rows of numbers stand for; negative numbers fill up short rows. */
export function processGroups(
  rows: readonly (readonly number[])[],
  mode: GroupMode,
  { replicas, partitions }: ProcessCounts,
): readonly (readonly number[])[] {
  const count =
    mode === "partitions" ? partitions : mode === "flattened" ? replicas * partitions : replicas;
  const all = Array.from({ length: count }, (_, i) => i);
  const given = rows.length === 0 || rows.every((row) => row.length === 0) ? [all] : rows;
  const groups = given.map((row) => row.filter((id) => id >= 0));
  const at = (replica: number, partition: number) => replica * partitions + partition;
  const columns = Array.from({ length: partitions }, (_, i) => i);
  const lines = Array.from({ length: replicas }, (_, i) => i);
  switch (mode) {
    case "replicas":
      return groups.flatMap((group) => columns.map((p) => group.map((replica) => at(replica, p))));
    case "partitions":
      return groups.flatMap((group) =>
        lines.map((r) => group.map((partition) => at(r, partition))),
      );
    case "replicas and partitions":
      return groups.map((group) => columns.flatMap((p) => group.map((replica) => at(replica, p))));
    case "flattened":
      return groups;
  }
}
