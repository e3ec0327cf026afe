/**
 * The threads of a device, and how a launch is handed over to them. The calling thread begins alone; of a
 * launch that turns out long, threads try the rest on a copy of memory:
 *
 *   calling thread   clusters 0 … 3 │ copies memory               │ takes their memory over, or, where they
 *   thread 1                        │ clusters 4, 6, 7, 9 …       │ touched each other's bytes or met anything
 *   thread 2                        │ clusters 5, 8, 10 …         │ to report, runs clusters 4 … itself
 *
 * So what a launch gives and reports is what one thread gives and reports, whatever happens when.
 */
import type { PtxModule } from "../../ptx/module.ts";
import type { LimitWatch } from "../../support/run-limits.ts";
import type { Launch } from "../machine/launch.ts";
import type { EmulatedMemory } from "../memory.ts";
import type { EmulatedLaunch, EmulationCounters, EmulatorOptions } from "../types.ts";
import { canShareMemory, Helper } from "../../workers/port.ts";
import type { Outcome, ThreadHost as Host } from "../../workers/port.ts";
import { control, keepNewest } from "./job.ts";
import type { Answer, Job } from "./job.ts";
import { areApart, Marks } from "./touched-bytes.ts";
import { Pace } from "./worth-threads.ts";
import type { Handover } from "./worth-threads.ts";
import { giveBack, SharedMemory } from "./shared-memory.ts";
import type { SharedCopy } from "./shared-memory.ts";

/** Where threads come from. */
export type ThreadHost = Host<Job, Answer>;

/** A thread, and the modules that it has. */
class EmulatingHelper extends Helper<Job, Answer> {
  readonly modules = new Set<number>();
}

export interface WorkerPoolOptions {
  /** Threads that run blocks of a long launch; as many as the machine has processors unless given. */
  readonly threads?: number | undefined;
  readonly handover?: Handover | undefined;
  /** Node's or the browser's unless given. */
  readonly host?: ThreadHost | undefined;
}

/** A launch with all that belongs to it. */
export interface Whole {
  readonly module: PtxModule;
  readonly launch: EmulatedLaunch;
  readonly memory: EmulatedMemory;
  readonly options: EmulatorOptions;
  readonly state: Launch;
}

/** What is left of a launch. */
export interface Rest extends Whole {
  readonly watch: LimitWatch;
  readonly firstCluster: number;
  readonly clusters: number;
}

const usualHandover: Handover = { patience: 150, gain: 300 };
/** Times that a thread takes clusters: often enough for all to end together. */
const turnsPerThread = 8;

export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #shared = new SharedMemory();
  readonly #paces = new WeakMap<object, number>();
  /** Programs whose blocks got in each other's way. */
  readonly #undivided = new WeakSet<object>();
  readonly #numbers = new WeakMap<PtxModule, number>();
  #modules = 0;
  #host: ThreadHost | undefined;
  #helpers: EmulatingHelper[] = [];
  #isUnable = false;

  constructor(options: WorkerPoolOptions = {}) {
    this.#options = options;
  }

  /** How a launch is doing, by which to decide whether to hand it over; undefined where it stays. */
  async pace({ program }: Launch): Promise<Pace | undefined> {
    if (program.communicates || this.#undivided.has(program)) return undefined;
    const threads = await this.#threads();
    if (threads < 2) return undefined;
    const { handover = usualHandover } = this.#options;
    return new Pace({ program, threads, handover, paces: this.#paces });
  }

  async #threads(): Promise<number> {
    const { threads, host } = this.#options;
    if (threads === 1 || this.#isUnable || !canShareMemory()) return 1;
    // Behind the one module that a browser has a stand-in for.
    this.#host ??= host ?? (await import("../../workers/node.ts"));
    return threads ?? this.#host.processors();
  }

  /** Tries the rest of a launch on threads; undefined where the calling thread has to run it. */
  async run(rest: Rest): Promise<EmulationCounters | undefined> {
    const helpers = this.#hire(Math.min(await this.#threads(), rest.clusters));
    const work = helpers.length === 0 ? undefined : this.#prepare(rest, helpers);
    if (work === undefined) return undefined;
    const { copy, before, jobs } = work;
    const isReached = { value: false };
    const stopListening = rest.watch.onReached(() => {
      isReached.value = true;
      stopAll(jobs);
    });
    const outcomes = await runAll(helpers, jobs);
    stopListening();
    if (outcomes.includes("lost")) this.dispose();
    const counters = sumOf(outcomes);
    // The calling thread says where the launch was stopped.
    if (counters === undefined && isReached.value) return undefined;
    const made = copy.marks.map((buffer) => new Marks(buffer, copy.heap.size));
    if (counters === undefined || !areApart([...made, ...before])) {
      this.#undivided.add(rest.state.program);
      return undefined;
    }
    giveBack(copy.heap, rest.memory);
    return counters;
  }

  #hire(count: number): readonly EmulatingHelper[] {
    const { openPort } = this.#host ?? {};
    if (openPort === undefined || this.#isUnable) return [];
    try {
      while (this.#helpers.length < count) this.#helpers.push(new EmulatingHelper(openPort));
    } catch {
      this.dispose();
    }
    return this.#helpers.slice(0, count);
  }

  /** Copies memory for threads, and says what they are to do; undefined where the process has no room for it. */
  #prepare(rest: Rest, helpers: readonly EmulatingHelper[]): Work | undefined {
    try {
      const copy = this.#shared.take(rest.memory, helpers.length);
      const before = earlier(rest.state, copy.heap.size);
      return { copy, before, jobs: this.#jobs(rest, helpers, copy) };
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return undefined;
    }
  }

  #jobs(
    { module, launch, memory, options, state, firstCluster, clusters }: Rest,
    helpers: readonly EmulatingHelper[],
    { heap, marks }: SharedCopy,
  ): readonly Job[] {
    const number = this.#numbers.get(module) ?? this.#modules++;
    this.#numbers.set(module, number);
    const shared = new SharedArrayBuffer(4 * control.words);
    new Int32Array(shared)[control.next] = firstCluster;
    const { symbols } = state;
    // Threads report nothing, so that names need not travel.
    const nameless = { ...launch, names: undefined };
    // The calling thread keeps the limits, and says when to stop.
    const sent = { ...options, limits: undefined, isOver: undefined };
    const { allocations } = memory;
    const common = { launch: nameless, options: sent, symbols, heap, allocations, control: shared };
    return helpers.map(({ modules }, position) => {
      const content = modules.has(number) ? undefined : module;
      modules.add(number);
      keepNewest(modules);
      return {
        task: "emulation",
        ...common,
        module: { number, content },
        marks: marks[position] as SharedArrayBuffer,
        end: firstCluster + clusters,
        // Neighbours lie in the same pages of memory, so that a thread does well to take them together.
        stride: Math.ceil(clusters / (turnsPerThread * helpers.length)),
      };
    });
  }

  /** Ends the threads; from now on there is the calling one. */
  dispose(): void {
    this.#isUnable = true;
    for (const helper of this.#helpers) helper.end();
    this.#helpers = [];
  }
}

/** A launch made ready for threads. */
interface Work {
  readonly copy: SharedCopy;
  /** What the calling thread touched before. */
  readonly before: readonly Marks[];
  readonly jobs: readonly Job[];
}

/** Of a job that cannot travel: targets are described by users, with whatever they like. */
const refused: Outcome<Answer> = { answer: undefined };

/** Runs a job on each; all have stopped when it is over. */
function runAll(
  helpers: readonly EmulatingHelper[],
  jobs: readonly Job[],
): Promise<readonly Outcome<Answer>[]> {
  return Promise.all(
    helpers.map(async (helper, position) => {
      const job = jobs[position] as Job;
      const outcome = await helper.run(job).catch(() => refused);
      if (outcome === "lost" || outcome === refused)
        Atomics.store(new Int32Array(job.control), control.stop, 1);
      return outcome;
    }),
  );
}

function stopAll(jobs: readonly Job[]): void {
  for (const job of jobs) Atomics.store(new Int32Array(job.control), control.stop, 1);
}

function sumOf(outcomes: readonly Outcome<Answer>[]): EmulationCounters | undefined {
  let [laneInstructions, warpInstructions] = [0, 0];
  for (const outcome of outcomes) {
    if (outcome === "lost" || outcome.answer === undefined) return undefined;
    laneInstructions += outcome.answer.laneInstructions;
    warpInstructions += outcome.answer.warpInstructions;
  }
  return { laneInstructions, warpInstructions };
}

/**
 * What the calling thread touched before. Only checks need to know: clusters that ran before the copy was made
 * came first, as they do on one thread, but may race all the same.
 */
function earlier({ checker }: Launch, heapBytes: number): readonly Marks[] {
  if (checker === undefined) return [];
  const marks = Marks.of(heapBytes);
  checker.mark(marks);
  return [marks];
}
