/** The wait-for graph of a deadlock as plain data: who waits, and through which barrier for whom. */
import { placeText } from "../../../../src/happens-before/access.ts";
import { opName } from "../../../../src/ir/op-names.ts";
import type { WaitGraph } from "../../../../src/sim/index.ts";
import type { DeadlockGraph, WaitEdge } from "../protocol.ts";
import type { SourceLines } from "./source-lines.ts";

export function deadlockGraph({ waits, arrivals }: WaitGraph, lines: SourceLines): DeadlockGraph {
  const edges = waits.flatMap((wait, waiter) =>
    arrivals
      .filter((arrival) => arrival.wait === wait.op)
      .flatMap(({ barrier, op, threads }) =>
        threads.map(({ thread, keptAt }): WaitEdge => {
          const keeps = (other: (typeof waits)[number]): boolean =>
            other.op === keptAt &&
            other.place.thread === thread &&
            String(other.place.block) === String(wait.place.block);
          const keeper = waits.findIndex(keeps);
          return {
            waiter,
            barrier,
            arrival: { op: opName(op), line: lines.lineOf(op.location.position) },
            thread,
            keptBy: keeper < 0 ? undefined : keeper,
          };
        }),
      ),
  );
  return {
    waits: waits.map(({ op, place, awaited }) => ({
      thread: place.thread,
      place: placeText(place),
      op: opName(op),
      line: lines.lineOf(op.location.position),
      awaited: lines.clean(awaited),
    })),
    edges,
  };
}
