/** Issues an instruction that runs by itself: checks what it will touch, and puts it into the queue. */
import { Clock } from "../../happens-before/clock.ts";
import type { Issue } from "../asynchronous.ts";
import type { CollectiveInstruction, MachineView, WarpView } from "../collective.ts";
import { orderOf, recordTensor } from "./order.ts";
import { enqueue, queueOf } from "./queue.ts";
import { allocationOf } from "./state.ts";
import type { TensorRange } from "./state.ts";

export interface Submission {
  readonly machine: MachineView;
  readonly warp: WarpView;
  readonly lane: number;
  readonly instruction: CollectiveInstruction;
  readonly issue: Issue;
  /** By which later instructions stay in order with it, and with which of the earlier ones it does. */
  readonly kinds: readonly string[];
  readonly follows: readonly string[];
  readonly reads: readonly TensorRange[];
  readonly writes: readonly TensorRange[];
  readonly run: () => void;
}

export function submit(submission: Submission): void {
  const { machine, warp, lane, instruction, issue, kinds, follows, reads, writes, run } =
    submission;
  const after = queueOf(warp.block).before(follows);
  const order = orderOf(machine, warp);
  const common = { warp, lane, kinds, after, issue, run, isDone: false };
  if (order === undefined) {
    for (const range of [...reads, ...writes])
      allocationOf(machine, instruction, warp.title, range);
    enqueue(machine, { ...common, epochs: [], done: Clock.empty });
    return;
  }
  const known = order.withOrdered(follows);
  const epochs = { read: order.take("read"), write: order.take("write") };
  const issuer = { machine, warp, instruction };
  recordTensor(issuer, reads, "read", epochs.read, known);
  recordTensor(issuer, writes, "write", epochs.write, known);
  const all = [epochs.read, epochs.write];
  const done = order.issued(kinds, known, all);
  enqueue(machine, { ...common, epochs: all, done });
}
