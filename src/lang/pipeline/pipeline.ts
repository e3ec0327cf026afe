/**
 * `pipeline`: steps whose blocks are copied while earlier ones are worked on, by the thread that works on them.
 *
 *   depth 3, delay 0      step          0        1        2        3
 *   copies started   0 1 2              3        4        5
 *   waits for                   0        1        2        3
 *   body                        use 0    use 1    use 2    use 3      3 goes where 0 was, once body 0 is over
 *
 * It expands to what can be written by hand: buffers, barriers, a loop that starts the first copies, and one that waits,
 * runs the body, and starts the copies of a later step. With several program threads all of them run the body, and each
 * starts its part of every copy; `empty` barriers then tell that everybody is done with a slot.
 */
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { requireKnownOptions } from "../../support/options.ts";
import { commitShared } from "../async.ts";
import { loop, scoped } from "../control.ts";
import type { Scalar } from "../scalar.ts";
import type { Empty } from "../spec.ts";
import { clusterSync, threadIndex } from "../sync.ts";
import { activeTrace } from "../trace.ts";
import type { Trace } from "../trace.ts";
import { callBody } from "../traced.ts";
import type { Tree } from "../tree.ts";
import { hasAccumulator, holdBack, settle } from "./carries.ts";
import type { Settled } from "./carries.ts";
import { Drain, drainScratch } from "./drain.ts";
import type { DrainPlan } from "./drain.ts";
import { Feed, feedScratch } from "./feed.ts";
import { entriesOf, planFeeds, planOutputs, requireNames } from "./options.ts";
import type { BlocksOf, FeedDefaults, Formats, InputsOf, OutputsOf } from "./options.ts";
import { accessedByLanes } from "./reads.ts";
import { alone } from "./sharing.ts";
import type { Sharers } from "./sharing.ts";
import { Steps } from "./steps.ts";
import type { Axes, AxesOf, StepGrid } from "./steps.ts";

export interface PipelineOptions<G, I extends Formats, O extends Formats> {
  /** How many steps there are along each axis, last axis fastest; numbers known only as the kernel runs, too. */
  readonly grid: G;
  /** Windows that are copied into shared memory before their step. */
  readonly inputs?: InputsOf<AxesOf<G>, I>;
  /** Windows that are copied out of shared memory after their last step. */
  readonly outputs?: OutputsOf<AxesOf<G>, O>;
  /** How many blocks of each input there is room for; 2 unless given. */
  readonly depth?: number;
  /** How many steps ahead blocks are copied; as many as there is room for unless given. */
  readonly lookahead?: number;
  /** After how many more steps a block may be overwritten: 1 where an accumulator is carried, else 0. */
  readonly delay?: number;
  /** Inputs in the order in which their copies are started. */
  readonly prefetch?: readonly (keyof I & string)[];
  /** Every copy is waited for where it is started: slow, and the same results, for finding mistakes. */
  readonly synchronous?: boolean;
}

/** A pipeline that hands values from step to step. */
export interface CarryingPipeline<
  G,
  I extends Formats,
  O extends Formats,
  C,
> extends PipelineOptions<G, I, O> {
  /** The values that the first step starts with. */
  readonly carry: C;
}

/** What the body of a step gets: the step's indices and the blocks in shared memory. */
export type StepArgument<G, I extends Formats, O extends Formats> = AxesOf<G> &
  BlocksOf<I> &
  BlocksOf<O>;

export const pipelineOptions = [
  ...["grid", "inputs", "outputs", "depth", "lookahead", "delay", "prefetch", "synchronous"],
  "carry",
];

/** Runs `body` for every step, and gives what the last one hands on, with tiles in the place of accumulators. */
export function pipeline<
  const G extends StepGrid,
  const C extends Tree,
  const I extends Formats = Empty,
  const O extends Formats = Empty,
>(
  options: CarryingPipeline<G, I, O, C>,
  body: (blocks: StepArgument<G, I, O>, carry: C) => NoInfer<C>,
): Settled<C>;
export function pipeline<
  const G extends StepGrid,
  const I extends Formats = Empty,
  const O extends Formats = Empty,
>(options: PipelineOptions<G, I, O>, body: (blocks: StepArgument<G, I, O>) => void): void;
export function pipeline(
  options: PipelineOptions<StepGrid, Formats, Formats> & { readonly carry?: Tree },
  body: (blocks: never, carry: never) => unknown,
): unknown {
  const location = captureLocation();
  const trace = activeTrace("pipeline", location);
  requireKnownOptions("pipeline", options, pipelineOptions, "TW1033", location);
  const { carry, synchronous = false, inputs, outputs } = options;
  const steps = new Steps(options.grid, location);
  const namesOf = (group: string, specs: unknown): readonly string[] =>
    entriesOf(group, specs, location).map(([name]) => name);
  requireNames([steps.names, namesOf("inputs", inputs), namesOf("outputs", outputs)], location);
  const threads = threadsHere(trace);
  const surroundings = {
    trace,
    outer: [],
    inner: steps.names,
    copiers: threads,
    specialised: false,
    users: threads.count,
    synchronous,
    location,
  };
  const defaults: FeedDefaults = {
    depth: options.depth,
    lookahead: options.lookahead,
    delay: options.delay,
    usualDelay: hasAccumulator(carry) ? 1 : 0,
  };
  const feedPlans = planFeeds(inputs, defaults, options.prefetch, surroundings);
  const drainPlan: DrainPlan = {
    outputs: planOutputs(outputs, threads, surroundings),
    sharers: threads,
    writers: alone,
    synchronous,
  };
  const scratch = Object.assign(
    {},
    ...feedPlans.map((plan) => feedScratch(plan, location)),
    drainScratch(drainPlan),
  ) as ReturnType<typeof drainScratch>;
  const run = (objects: { readonly [name: string]: unknown }): Tree | undefined => {
    const feeds = feedPlans.map((plan) => new Feed(trace, plan, objects, location));
    const drain = new Drain(trace, drainPlan, objects, location);
    const step = body as unknown as StepBody;
    return new Run(trace, steps, feeds, drain, step, location).all(carry);
  };
  return scoped(scratch, run as (objects: unknown) => Tree);
}

/** The program threads that run a pipeline together. */
function threadsHere(trace: Trace): Sharers {
  return trace.runners === 1 ? alone : { count: trace.runners, part: threadIndex };
}

type StepBody = (blocks: { readonly [name: string]: unknown }, carry: unknown) => unknown;

/** What the loop of the steps carries. */
type Carried = {
  readonly carry: Tree;
  readonly odometer: readonly Scalar<"i32">[];
  readonly using: readonly ReturnType<Feed["start"]>[];
  readonly copying: readonly ReturnType<Feed["start"]>[];
  readonly ahead: readonly (readonly Scalar<"i32">[])[];
  readonly draining: readonly Scalar<"i32">[];
};

/** How many steps' products may run on when the next step ends, so that no block is released under them. */
export function productsKept(feeds: readonly Feed[]): number | undefined {
  const delays = feeds.flatMap(({ plan: { manual, pace, delay } }) =>
    manual ? [] : [pace === "sometimes" ? 1 : delay],
  );
  return delays.length === 0 ? undefined : Math.min(...delays);
}

/** The expansion of one pipeline. */
class Run {
  readonly #trace: Trace;
  readonly #steps: Steps;
  readonly #still: readonly Feed[];
  readonly #moving: readonly Feed[];
  readonly #drain: Drain;
  readonly #body: StepBody;
  readonly #location: Location;

  constructor(
    trace: Trace,
    steps: Steps,
    feeds: readonly Feed[],
    drain: Drain,
    body: StepBody,
    location: Location,
  ) {
    this.#trace = trace;
    this.#steps = steps;
    this.#still = feeds.filter(({ plan }) => plan.pace === "never");
    this.#moving = feeds.filter(({ plan }) => plan.pace !== "never");
    this.#drain = drain;
    this.#body = body;
    this.#location = location;
  }

  all(carry: Tree | undefined): Tree | undefined {
    const steps = this.#steps;
    const stillAt = this.#still.map((feed) => feed.start());
    const nowhere = steps.axes(steps.total, steps.start());
    for (const [position, feed] of this.#still.entries())
      feed.copy(stillAt[position] ?? feed.start(), nowhere);
    const begun = this.#moving.map((feed) => this.#prologue(feed));
    for (const [position, feed] of this.#still.entries())
      feed.landed((stillAt[position] ?? feed.start()).position);
    const stillBlocks = Object.assign(
      {},
      ...this.#still.map((feed, position) => feed.blocks(stillAt[position] ?? feed.start())),
    ) as { readonly [name: string]: unknown };
    const initial: Carried = {
      carry: carry ?? [],
      odometer: steps.start(),
      using: this.#moving.map((feed) => feed.start()),
      copying: begun.map(({ copying }) => copying),
      ahead: begun.map(({ odometer }) => odometer),
      draining: this.#drain.start(),
    };
    const end = loop({ to: steps.total, carry: initial }, (step, carried) =>
      this.#step(step, carried, stillBlocks, carry !== undefined),
    );
    const settled = settle(end.carry);
    for (const [position, feed] of this.#moving.entries()) {
      const using = end.using[position];
      if (using !== undefined) feed.finish(using, steps.total);
    }
    this.#drain.finish(end.draining, nowhere, () => steps.total.gt(0));
    this.#drain.settle();
    if ([...this.#moving, ...this.#still].some(({ plan }) => plan.peers !== undefined))
      clusterSync();
    return carry === undefined ? undefined : settled;
  }

  /** Starts the copies of the first steps. */
  #prologue(
    feed: Feed,
  ): Pick<Carried, "odometer"> & { readonly copying: ReturnType<Feed["start"]> } {
    const steps = this.#steps;
    const start = { copying: feed.start(), odometer: steps.start() };
    if (this.#atOnce(feed)) return start;
    return loop({ to: steps.total.minimum(feed.plan.lookahead), carry: start }, (step, state) => ({
      copying: feed.copy(state.copying, steps.axes(step, state.odometer)),
      odometer: steps.next(state.odometer),
    }));
  }

  #step(
    step: Scalar<"i32">,
    { carry, odometer, using, copying, ahead, draining }: Carried,
    still: { readonly [name: string]: unknown },
    carries: boolean,
  ): Carried {
    const steps = this.#steps;
    const axes = steps.axes(step, odometer);
    const following = steps.next(odometer);
    const taken = this.#moving.map((feed, position) =>
      feed.advance(using[position] ?? feed.start(), axes),
    );
    const begun = this.#copyNow(copying, axes);
    for (const [position, feed] of this.#moving.entries()) {
      const each = taken[position];
      if (each !== undefined) feed.receive(each);
    }
    this.#drain.begin();
    const blocks = taken.map((each, position) => this.#moving[position]?.blocks(each.using) ?? {});
    const outputs = this.#drain.blocks(draining);
    const before = this.#trace.position;
    const argument = Object.assign({}, axes, still, ...blocks, outputs) as {
      readonly [name: string]: unknown;
    };
    const label = "the body of pipeline";
    const handed = callBody(
      label,
      this.#location,
      this.#body,
      argument,
      carries ? carry : undefined,
    );
    const ops = this.#trace.opsSince(before);
    const next = carries ? holdBack(handed as Tree, productsKept(this.#moving)) : [];
    const used = blocks.flatMap((each) => Object.values(each));
    if (this.#drain.writesSteps || accessedByLanes(ops, used)) commitShared();
    const left = taken.map((each, position) => {
      const feed = this.#moving[position];
      if (feed === undefined) throw new Error("a feed was taken");
      return feed.leave(using[position] ?? each.using, each, step);
    });
    const drained = this.#drain.end(draining, {
      axes,
      next: steps.axes(step.add(1), following),
      last: () => step.add(1).eq(steps.total),
    });
    const refilled = this.#refill(step, begun, ahead);
    return { carry: next, odometer: following, using: left, draining: drained, ...refilled };
  }

  /** Whether copies of a feed are started in the step that uses them. */
  #atOnce({ plan: { lookahead, synchronous } }: Feed): boolean {
    return synchronous || lookahead === 0;
  }

  /** Starts the copies of the step that is ahead by each feed's lookahead. */
  #refill(
    step: Scalar<"i32">,
    copying: Carried["copying"],
    ahead: Carried["ahead"],
  ): Pick<Carried, "copying" | "ahead"> {
    const steps = this.#steps;
    const later = this.#moving.map((feed, position) => {
      const [state, odometer] = [copying[position] ?? feed.start(), ahead[position] ?? []];
      if (this.#atOnce(feed)) return state;
      const target = step.add(feed.plan.lookahead);
      return feed.copy(state, steps.axes(target, odometer), target.lt(steps.total));
    });
    return { copying: later, ahead: ahead.map((odometer) => steps.next(odometer)) };
  }

  /** Starts the copies that nothing has started ahead. */
  #copyNow(copying: Carried["copying"], axes: Axes): Carried["copying"] {
    return this.#moving.map((feed, position) => {
      const state = copying[position] ?? feed.start();
      return this.#atOnce(feed) ? feed.copy(state, axes) : state;
    });
  }
}
