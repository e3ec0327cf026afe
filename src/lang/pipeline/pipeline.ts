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
import { TilewrightError } from "../../support/diagnostics.ts";
import { atLocation, atOwnLines, captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { requireKnownOptions } from "../../support/options.ts";
import { loop } from "../control.ts";
import type { Scalar } from "../elementwise.ts";
import type { Empty } from "../spec.ts";
import { clusterSync, threadIndex } from "../sync.ts";
import { activeTrace } from "../trace.ts";
import type { Trace } from "../trace.ts";
import { wrongKind } from "../traced.ts";
import type { Tree } from "../tree.ts";
import { hasAccumulator, settle } from "./carries.ts";
import type { Settled } from "./carries.ts";
import { Drain, drainScratch } from "./output-ring.ts";
import type { DrainPlan } from "./output-ring.ts";
import { Feed, feedScratch } from "./input-ring.ts";
import type { Copying, FeedPlan } from "./input-ring.ts";
import { entriesOf, planFeeds, planOutputs, readOnlyWait, requireNames } from "./options.ts";
import type { BlocksOf, FeedDefaults, Formats, InputsOf, OutputsOf } from "./options.ts";
import { alone } from "../multicast.ts";
import type { Sharers } from "../multicast.ts";
import { workStep } from "./pipeline-step.ts";
import type { Named, StepState, StepWork } from "./pipeline-step.ts";
import { Steps } from "./step-grid.ts";
import type { Axes, AxesOf, Odometer, StepGrid } from "./step-grid.ts";
import { withScratch } from "./warp-scratch.ts";

/** Options of `pipeline`: the grid of steps, the inputs and the outputs. */
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
  /** In the end, outputs need only have been read from shared memory, and may still be on their way; they have landed unless given. */
  readonly waitReadOnly?: boolean;
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

const pipelineOptions = [
  ...["grid", "inputs", "outputs", "depth", "lookahead", "delay", "prefetch", "synchronous"],
  "carry",
  "waitReadOnly",
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
  return atLocation(location, () => pipelined(options, body, location));
}

function pipelined(
  options: PipelineOptions<StepGrid, Formats, Formats> & { readonly carry?: Tree },
  body: (blocks: never, carry: never) => unknown,
  location: Location,
): unknown {
  const trace = activeTrace("pipeline", location);
  requireKnownOptions("pipeline", options, pipelineOptions, "TW1033", location);
  const { carry, synchronous = false, inputs, outputs } = options;
  const steps = new Steps(options.grid, location);
  const namesOf = (group: string, specs: unknown): readonly string[] =>
    entriesOf(group, specs, location).map(([name]) => name);
  requireNames([steps.names, namesOf("inputs", inputs), namesOf("outputs", outputs)], location);
  const threads = threadsHere(trace, location);
  const surroundings = {
    trace,
    outer: [],
    inner: steps.names,
    copiers: threads,
    specialized: false,
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
  if (trace.warps !== undefined) requireOwnBlocks(feedPlans, location);
  const drainPlan: DrainPlan = {
    outputs: planOutputs(outputs, threads, surroundings),
    sharers: threads,
    writers: alone,
    synchronous,
    waitReadOnly: readOnlyWait("pipeline", options.waitReadOnly, location),
  };
  const scratch = Object.assign(
    {},
    ...feedPlans.map((plan) => feedScratch(plan, location)),
    drainScratch(drainPlan),
  ) as ReturnType<typeof drainScratch>;
  if (typeof body !== "function") wrongKind("the body of pipeline", "a function", body, location);
  const step = body as unknown as (argument: Named, carry?: Tree) => unknown;
  const run = (objects: { readonly [name: string]: unknown }): Tree | undefined =>
    new Run({
      trace,
      steps,
      feeds: feedPlans.map((plan) => new Feed(trace, plan, objects, location)),
      drain: new Drain(trace, drainPlan, objects, location),
      tile: {},
      body: (argument, handed) =>
        atOwnLines(() => (carry === undefined ? step(argument) : step(argument, handed))),
      label: "the body of pipeline",
      location,
      carries: carry !== undefined,
    }).all(carry);
  return withScratch(trace, scratch, run);
}

/** Warps do not wait for those of other blocks. */
function requireOwnBlocks(feeds: readonly FeedPlan[], location: Location): void {
  const shared = feeds.find(({ peers }) => peers !== undefined);
  if (shared === undefined) return;
  throw new TilewrightError({
    code: "TW1106",
    message: "a pipeline of single warps has a multicast",
    location,
    expected: "inputs that each block copies for itself",
    found: `multicast of ${shared.inputs.map(({ name }) => name).join(" and ")}`,
    remedy: "leave multicast out, or open the pipeline outside of warps",
  });
}

/** The program threads that run a pipeline together. */
function threadsHere(trace: Trace, location: Location): Sharers {
  if (trace.runners === 1) return alone;
  if (trace.warps !== undefined)
    throw new TilewrightError({
      code: "TW1106",
      message: "a pipeline stands in code of the warps of several threads",
      location,
      expected: "warps of one thread",
      found: `those of ${trace.runners}`,
      remedy: "put warps into the code of one thread",
    });
  if (trace.thread === undefined) return { count: trace.runners, part: threadIndex };
  throw new TilewrightError({
    code: "TW1106",
    message: `a pipeline stands in code that ${trace.thread} run`,
    location,
    expected: "code of one thread, or code that all threads of the block run",
    found: `the code of ${trace.thread}`,
  });
}

/** What the loop of the steps carries. */
type Carried = StepState & {
  readonly copying: readonly Copying[];
  readonly ahead: readonly Odometer[];
};

/** The expansion of one pipeline. */
class Run {
  readonly #still: readonly Feed[];
  readonly #moving: readonly Feed[];
  readonly #work: Omit<StepWork, "still">;

  constructor(work: Omit<StepWork, "still">) {
    this.#still = work.feeds.filter(({ plan }) => plan.pace === "never");
    this.#moving = work.feeds.filter(({ plan }) => plan.pace !== "never");
    this.#work = { ...work, feeds: this.#moving };
  }

  all(carry: Tree | undefined): Tree | undefined {
    const { steps, drain } = this.#work;
    const nowhere = steps.axes(steps.total, steps.start());
    const still = this.#still.map((feed) => ({ feed, state: feed.start() }));
    for (const { feed, state } of still) feed.copy(state, nowhere);
    const begun = this.#moving.map((feed) => this.#prologue(feed));
    for (const { feed, state } of still) feed.landed(state.position);
    const blocks = Object.assign(
      {},
      ...still.map(({ feed, state }) => feed.blocks(state)),
    ) as Named;
    const initial: Carried = {
      carry: carry ?? [],
      odometer: steps.start(),
      using: this.#moving.map((feed) => feed.start()),
      draining: drain.start(),
      copying: begun.map(({ copying }) => copying),
      ahead: begun.map(({ odometer }) => odometer),
    };
    const end = loop({ to: steps.total, carry: initial }, (step, carried) =>
      this.#step(step, carried, blocks),
    );
    const settled = settle(end.carry);
    for (const [position, feed] of this.#moving.entries()) {
      const using = end.using[position];
      if (using !== undefined) feed.finish(using, steps.total);
    }
    drain.finish(end.draining, nowhere, () => steps.total.gt(0));
    drain.settle();
    if (this.#work.trace.warps !== undefined) {
      this.#moving.forEach((feed, position) => {
        const using = end.using[position];
        if (using !== undefined) feed.rewind(feed.after(using));
      });
      for (const { feed, state } of still) feed.rewind(feed.next(state.position));
    }
    const feeds = [...this.#moving, ...this.#still];
    if (feeds.some(({ plan }) => plan.peers !== undefined)) clusterSync();
    return carry === undefined ? undefined : settled;
  }

  /** Starts the copies of the first steps. */
  #prologue(feed: Feed): { readonly copying: Copying; readonly odometer: Odometer } {
    const { steps } = this.#work;
    const start = { copying: feed.start(), odometer: steps.start() };
    if (this.#atOnce(feed)) return start;
    return loop({ to: steps.total.minimum(feed.plan.lookahead), carry: start }, (step, state) => ({
      copying: feed.copy(state.copying, steps.axes(step, state.odometer)),
      odometer: steps.next(state.odometer),
    }));
  }

  #step(step: Scalar<"i32">, { copying, ahead, ...state }: Carried, still: Named): Carried {
    const { steps } = this.#work;
    let begun = copying;
    const beforeWaiting = (): void => {
      begun = this.#copyNow(copying, steps.axes(step, state.odometer));
    };
    const next = workStep({ ...this.#work, still, beforeWaiting }, step, state);
    return { ...next, ...this.#refill(step, begun, ahead) };
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
    const { steps } = this.#work;
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
