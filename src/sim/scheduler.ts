/**
 * Schedules: which of the things that can happen next does. A seed decides everything.
 *
 * | schedule    | threads                                          | asynchronous operations       |
 * |-------------|--------------------------------------------------|-------------------------------|
 * | fixed       | one runs until it blocks or ends, in block order | complete as they are issued   |
 * | random      | any ready one after every observable step        | any time                      |
 * | adversarial | the one of highest priority; at random points    | when nothing else can happen, |
 * |             | the running one falls behind all others          | the newest first              |
 * | timed       | the one that comes first by modelled cycles      | after modelled cycles         |
 */
import type { CostContext } from "../ir/cost/index.ts";
import type { AnyOp } from "../ir/node.ts";
import type { Random } from "../support/random.ts";
import type { Target } from "../targets/target.ts";
import type { Agent, AsyncOperation } from "./agent.ts";
import { TimedSchedule } from "./timed-schedule.ts";

/** How the simulator lets threads take turns. */
export type ScheduleName = "fixed" | "random" | "adversarial" | "timed";

/** `start`: begin the next cluster. */
export type Choice = Agent | AsyncOperation | "start" | undefined;

/** Time that is more than a count of steps. */
export interface Clock {
  /** When what was chosen last happens. */
  readonly now: number;
  /** Lets the time of a step pass for its agent, and gives when it ends. */
  passed(agent: Agent, op: AnyOp): number;
}

export interface Schedule {
  /** Undefined where steps are all the time there is. */
  readonly clock?: Clock | undefined;
  /** Whether asynchronous operations complete as they are issued. */
  readonly immediate: boolean;
  ready(agent: Agent): void;
  issue(operation: AsyncOperation): void;
  /** Takes the next thing to do; undefined where nothing can happen. */
  next(canStart: boolean): Choice;
  /** Whether to choose anew after an observable step of the running agent. */
  interrupts(agent: Agent): boolean;
}

/**
 * Even the fixed schedule takes turns after so many observable steps, so that a thread may poll for another's result; and sooner,
 * down to the least, each time somebody ran out of them: where many blocks wait for the last one to start, each of their
 * looks is in vain.
 */
const [mostPatience, leastPatience] = [4096, 16] as const;

class FixedSchedule implements Schedule {
  readonly immediate = true;
  #queue: Agent[] = [];
  #head = 0;
  #steps = 0;
  #impatient = false;
  #patience: number = mostPatience;

  ready(agent: Agent): void {
    this.#queue.push(agent);
  }

  issue(): void {
    throw new Error("the fixed schedule completes operations as they are issued");
  }

  next(canStart: boolean): Choice {
    this.#steps = 0;
    const starts = canStart && (this.#impatient || this.#head === this.#queue.length);
    this.#impatient = false;
    if (starts) return "start";
    const agent = this.#queue[this.#head++];
    if (this.#head > 1024 && this.#head * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#head);
      this.#head = 0;
    }
    if (agent === undefined) this.#head = this.#queue.length;
    return agent;
  }

  interrupts(): boolean {
    this.#steps += 1;
    this.#impatient = this.#steps >= this.#patience;
    if (this.#impatient) this.#patience = Math.max(leastPatience, this.#patience / 2);
    return this.#impatient;
  }
}

function removeAt<T>(items: T[], position: number): T | undefined {
  const item = items[position];
  const last = items.pop();
  if (last !== undefined && position < items.length) items[position] = last;
  return item;
}

class RandomSchedule implements Schedule {
  readonly immediate = false;
  readonly #random: Random;
  readonly #ready: Agent[] = [];
  readonly #issued: AsyncOperation[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  ready(agent: Agent): void {
    this.#ready.push(agent);
  }

  issue(operation: AsyncOperation): void {
    this.#issued.push(operation);
  }

  next(canStart: boolean): Choice {
    const choices = this.#ready.length + this.#issued.length + (canStart ? 1 : 0);
    if (choices === 0) return undefined;
    const choice = this.#random.below(choices);
    if (choice < this.#ready.length) return removeAt(this.#ready, choice);
    const issued = choice - this.#ready.length;
    return issued < this.#issued.length ? removeAt(this.#issued, issued) : "start";
  }

  interrupts(): boolean {
    return true;
  }
}

/** Steps between the points where the running agent falls behind, on average. */
const changeInterval = 16;
/** Steps between completions forced on agents that never block, on average. */
const completionInterval = 1024;
/** More agents than this at once make no worse schedules, only slower ones. */
const crowd = 32;

class AdversarialSchedule implements Schedule {
  readonly immediate = false;
  readonly #random: Random;
  readonly #ready: Agent[] = [];
  readonly #issued: AsyncOperation[] = [];
  #lowest = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  ready(agent: Agent): void {
    if (agent.priority === 0) agent.priority = 1 + this.#random.uniform();
    this.#ready.push(agent);
  }

  issue(operation: AsyncOperation): void {
    this.#issued.push(operation);
  }

  next(canStart: boolean): Choice {
    const { length } = this.#ready;
    const starts = canStart && (length === 0 || (length < crowd && this.#random.below(2) === 0));
    if (starts) return "start";
    if (length === 0 || this.#random.below(completionInterval) === 0) {
      const newest = this.#issued.pop();
      if (newest !== undefined || length === 0) return newest;
    }
    let best = 0;
    for (let i = 1; i < length; i++)
      if ((this.#ready[i] as Agent).priority > (this.#ready[best] as Agent).priority) best = i;
    return removeAt(this.#ready, best);
  }

  interrupts(agent: Agent): boolean {
    if (this.#random.below(changeInterval) === 0) agent.priority = --this.#lowest;
    return true;
  }
}

export function createSchedule(
  name: ScheduleName,
  random: Random,
  context: CostContext,
  target: Target,
): Schedule {
  const makers: { readonly [N in ScheduleName]: () => Schedule } = {
    fixed: () => new FixedSchedule(),
    random: () => new RandomSchedule(random),
    adversarial: () => new AdversarialSchedule(random),
    timed: () => new TimedSchedule(context, target),
  };
  return makers[name]();
}
