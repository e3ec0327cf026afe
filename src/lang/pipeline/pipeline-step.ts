/**
 * One step of a pipeline, for the thread that works on its blocks:
 *
 *   take the slots · wait for their blocks · body · wait for older products · commit reads and writes · release · store
 */
import type { Location } from "../../support/location.ts";
import { commitShared } from "../async.ts";
import type { Scalar } from "../elementwise.ts";
import type { Trace } from "../trace.ts";
import { callBody } from "../traced.ts";
import type { Tree } from "../tree.ts";
import { holdBack } from "./carries.ts";
import type { Drain, Draining } from "./output-ring.ts";
import type { Feed, Using } from "./input-ring.ts";
import { accessedByThreads } from "./reads.ts";
import type { Axes, Odometer, Steps } from "./step-grid.ts";

export type Named = { readonly [name: string]: unknown };

/** What is handed from step to step. */
export type StepState = {
  /** The user's values; an empty list where there are none. */
  readonly carry: Tree;
  readonly odometer: Odometer;
  readonly using: readonly Using[];
  readonly draining: Draining;
};

/** What all steps of a run have in common. */
export interface StepWork {
  readonly trace: Trace;
  readonly steps: Steps;
  /** Feeds whose blocks move with the steps. */
  readonly feeds: readonly Feed[];
  readonly drain: Drain;
  /** The axes around the steps. */
  readonly tile: Axes;
  /** What the body gets besides: blocks that do not move with the steps. */
  readonly still: Named;
  /** Runs the user's function on its argument and on its carry. */
  readonly body: (argument: Named, carry: Tree, using: readonly Using[]) => unknown;
  readonly label: string;
  readonly location: Location;
  readonly carries: boolean;
  /** Runs when the slots are taken, before anybody waits for them. */
  readonly beforeWaiting?: () => void;
}

/** How many steps' products may run on when the next step ends, so that no block is released under them. */
function productsKept(feeds: readonly Feed[]): number | undefined {
  const delays = feeds.flatMap(({ plan: { manual, pace, delay } }) =>
    manual ? [] : [pace === "sometimes" ? 1 : delay],
  );
  return delays.length === 0 ? undefined : Math.min(...delays);
}

/** Works on one step. */
export function workStep(work: StepWork, step: Scalar<"i32">, state: StepState): StepState {
  const { trace, steps, feeds, drain, tile, still, carries } = work;
  const axes = { ...tile, ...steps.axes(step, state.odometer) };
  const following = steps.next(state.odometer);
  const pairs = feeds.map((feed, position) => {
    const before = state.using[position] ?? feed.start();
    return { feed, before, taken: feed.advance(before, axes) };
  });
  work.beforeWaiting?.();
  for (const { feed, taken } of pairs) feed.receive(taken);
  drain.begin();
  const blocks = pairs.map(({ feed, taken }) => feed.blocks(taken.using));
  const start = trace.position;
  const argument = Object.assign({}, axes, still, ...blocks, drain.blocks(state.draining)) as Named;
  const using = pairs.map(({ taken }) => taken.using);
  const handed = callBody(work.label, work.location, work.body, argument, state.carry, using);
  const ops = trace.opsSince(start);
  const carry = carries ? holdBack(handed as Tree, productsKept(feeds)) : [];
  const used = blocks.flatMap((each) => Object.values(each));
  if (drain.writesSteps || accessedByThreads(ops, used)) commitShared();
  const left = pairs.map(({ feed, before, taken }) => feed.leave(before, taken, step));
  const draining = drain.end(state.draining, {
    axes,
    next: { ...tile, ...steps.axes(step.add(1), following) },
    last: () => step.add(1).eq(steps.total),
  });
  return { carry, odometer: following, using: left, draining };
}
