/**
 * The flight recorder: the last calls of a rank, each with its line, and where it stands. It costs two entries of a ring a call, so it is
 * always on; reports of hangs are made of it.
 *
 *   rank 2 waits at call 14 of ranks 0, 1, 2, 3, all_reduce (add) of f32[128], train.ts:31:9, for 30.0 s
 */
import type { CallNote, RankState } from "./link.ts";

export interface FlightEntry {
  readonly call: CallNote;
  /** Milliseconds, by the clock of `performance.now()`. */
  readonly begun: number;
  /** Undefined while it waits. */
  readonly ended: number | undefined;
}

/** Calls that are remembered. */
const remembered = 1024;

export class FlightRecorder {
  readonly #entries: { call: CallNote; begun: number; ended: number | undefined }[] = [];

  begin(call: CallNote): () => void {
    const entry = { call, begun: performance.now(), ended: undefined as number | undefined };
    this.#entries.push(entry);
    if (this.#entries.length > remembered) this.#entries.shift();
    return () => {
      entry.ended = performance.now();
    };
  }

  /** The last calls, oldest first. */
  get entries(): readonly FlightEntry[] {
    return this.#entries;
  }

  state(rank: number): RankState {
    const last = this.#entries.at(-1);
    const ended = this.#entries.findLast((entry) => entry.ended !== undefined);
    const isWaiting = last !== undefined && last.ended === undefined;
    return {
      rank,
      waiting: isWaiting ? last.call : undefined,
      last: ended?.call,
      since: performance.now() - ((isWaiting ? last.begun : ended?.ended) ?? performance.now()),
    };
  }
}

export function callText({ group, sequence, text, line }: CallNote): string {
  return `call ${sequence} of ranks ${group.join(", ")}, ${text}, ${line}`;
}

export function stateText({ rank, waiting, last, since }: RankState): string {
  const seconds = `for ${(since / 1000).toFixed(1)} s`;
  if (waiting !== undefined) return `rank ${rank} waits at ${callText(waiting)}, ${seconds}`;
  if (last === undefined) return `rank ${rank} has called nothing yet`;
  return `rank ${rank} waits nowhere ${seconds}; it came from ${callText(last)}`;
}
