/** Runs an entry of a module on emulated memory: on the calling thread, or with a pool on several. */
import type { PtxModule } from "../ptx/module.ts";
import { EventLoopYield } from "../support/event-loop-yield.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { LimitWatch } from "../support/run-limits.ts";
import { prepare } from "./prepare.ts";
import { Grid } from "./machine/grid.ts";
import type { Launch } from "./machine/launch.ts";
import type { EmulatedMemory } from "./memory.ts";
import type { WorkerPool, Whole } from "./host-workers/worker-pool.ts";
import type { EmulatedLaunch, EmulationResult, EmulatorOptions } from "./types.ts";

/** What was found before the kernel stopped may well be why it did. */
function withEarlier(error: unknown, { findings }: Launch): unknown {
  if (!(error instanceof TilewrightError)) return error;
  return error.withNotes(
    findings.map((finding) => ({
      message: `before that, ${finding.code}: ${finding.summary}`,
      location: finding,
    })),
  );
}

/** Turns that each warp has once a launch is over. */
const lastRounds = 16;

/** A launch under way, with the limits that it runs under. */
class Run {
  readonly #state: Launch;
  readonly #grid: Grid;
  readonly #watch: LimitWatch;
  readonly #isOver: () => boolean;
  /** The round at which the launch ends, once it is over. */
  #lastRound = Infinity;
  readonly #yields = new EventLoopYield();

  constructor(state: Launch, grid: Grid, watch: LimitWatch, { isOver }: EmulatorOptions) {
    this.#state = state;
    this.#grid = grid;
    this.#watch = watch;
    this.#isOver = isOver ?? (() => false);
  }

  /** Takes a turn of what was begun; false once it has ended. Throws where a limit is reached. */
  #advance(): boolean {
    const grid = this.#grid;
    if (!this.#takeTurn() || this.#hasEnded()) return false;
    const reached = this.#watch.reached(this.#state.counters.warpInstructions);
    if (reached !== undefined) throw grid.stopped(reached);
    return true;
  }

  /** Lets one warp run. What goes wrong once the launch is over, such as waiting for whoever ended it, ends it at once. */
  #takeTurn(): boolean {
    try {
      return this.#grid.advance();
    } catch (error) {
      if (!(error instanceof TilewrightError) || !this.#isOver()) throw error;
      this.#lastRound = 0;
      return false;
    }
  }

  /** Whoever ended the launch has some rounds to say why. */
  #hasEnded(): boolean {
    const { rounds } = this.#grid;
    if (this.#lastRound === Infinity && this.#isOver()) this.#lastRound = rounds + lastRounds;
    return rounds >= this.#lastRound;
  }

  /** Runs what is left. */
  run(): void {
    while (!this.#hasEnded() && this.#grid.begin()) while (this.#advance());
  }

  /** Runs what is left, yielding to the event loop. */
  async runWithBreaks(): Promise<void> {
    while (await this.runNext());
  }

  /** Runs what comes next, yielding to the event loop; false where nothing was left. */
  async runNext(): Promise<boolean> {
    if (this.#hasEnded() || !this.#grid.begin()) return false;
    while (this.#advance()) if (this.#yields.isDue) await this.#yields.giveWay();
    if (this.#yields.isDue) await this.#yields.giveWay();
    return true;
  }
}

/**
 * Runs a launch to its end. Throws what stops a kernel on hardware too, with what was found before as
 * notes; other findings are given back.
 */
export function emulate(
  module: PtxModule,
  launch: EmulatedLaunch,
  memory: EmulatedMemory,
  options: EmulatorOptions,
): EmulationResult {
  const state = prepare(module, launch, memory, options);
  memory.lend();
  try {
    new Run(state, new Grid(state, launch), new LimitWatch(options.limits), options).run();
  } catch (error) {
    throw withEarlier(error, state);
  } finally {
    memory.takeBack();
  }
  const { findings, notes, printed, counters } = state;
  return { findings, notes, printed, counters };
}

/**
 * The same with a pool's threads where that is quicker, and yielding to the event loop. Until it is over, memory is lent:
 * more can be allocated, and nothing else.
 */
export async function emulateWith(
  pool: WorkerPool,
  module: PtxModule,
  launch: EmulatedLaunch,
  memory: EmulatedMemory,
  options: EmulatorOptions,
): Promise<EmulationResult> {
  const state = prepare(module, launch, memory, options);
  const whole = { module, launch, memory, options, state };
  memory.lend();
  try {
    return await runWith(pool, whole);
  } catch (error) {
    throw withEarlier(error, state);
  } finally {
    memory.takeBack();
  }
}

async function runWith(pool: WorkerPool, whole: Whole): Promise<EmulationResult> {
  const { state, launch, options } = whole;
  const { findings, notes, printed, counters } = state;
  const grid = new Grid(state, launch);
  const watch = new LimitWatch(options.limits);
  const run = new Run(state, grid, watch, options);
  const pace = watch.countsSteps ? undefined : await pool.pace(state);
  while (pace !== undefined && findings.length + notes.length === 0 && grid.clustersLeft > 0) {
    if (pace.isWorthwhile(grid.clustersLeft)) {
      const { nextCluster: firstCluster, clustersLeft: clusters } = grid;
      const more = await pool.run({ ...whole, watch, firstCluster, clusters });
      if (more === undefined) {
        const reached = watch.reached(counters.warpInstructions);
        if (reached !== undefined) throw grid.stoppedElsewhere(reached);
        break;
      }
      counters.laneInstructions += more.laneInstructions;
      counters.warpInstructions += more.warpInstructions;
      return { findings, notes, printed, counters };
    }
    await run.runNext();
    pace.clusterDone();
  }
  await run.runWithBreaks();
  return { findings, notes, printed, counters };
}
