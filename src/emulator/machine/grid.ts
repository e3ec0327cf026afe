/**
 * Schedules a grid: which blocks are there, and which warp runs next. Blocks of a cluster come together.
 *
 * Clusters that do not communicate run one after the other, each by a random sequence of its own, so that it
 * does not matter which thread runs them. Of those that do, few run at a time, which is quick. In both
 * cases, when all of them wait, more are started, up to as many as the target holds, so that blocks may
 * wait for each other as far as they may on hardware.
 */
import { Knowledge } from "../../sim/order/knowledge.ts";
import type { TilewrightError } from "../../support/diagnostics.ts";
import type { ReachedLimit } from "../../support/run-limits.ts";
import type { EmulatedLaunch } from "../types.ts";
import { Block } from "./block.ts";
import type { Launch } from "./launch.ts";
import { RepetitionFinder } from "./repetition.ts";
import { WarpRunner } from "./runner.ts";
import type { BlockState, WarpState } from "./warp.ts";
import { deadlock, stopped } from "./deadlock.ts";

/** Instructions that a warp runs in one go, at most. */
const longestTurn = 512;
/** Blocks that are started before anyone waits, where they communicate. */
const eagerBlocks = 2;

interface Round {
  readonly count: number;
  readonly offset: number;
  readonly version: number;
  readonly isLooking: boolean;
  turn: number;
  progressed: boolean;
  ended: boolean;
}

export class Grid {
  readonly #launch: Launch;
  readonly #shape: EmulatedLaunch;
  readonly #clusterSize: number;
  readonly #limit: number;
  readonly #eager: number;
  readonly #runner: WarpRunner;
  #repetition = new RepetitionFinder();
  #nextBlock = 0;
  #endBlock: number;
  #blocks: Block[] = [];
  #warps: WarpState[] = [];
  #round: Round | undefined;
  #rounds = 0;

  constructor(launch: Launch, shape: EmulatedLaunch) {
    this.#launch = launch;
    this.#shape = shape;
    this.#clusterSize = shape.cluster ?? 1;
    this.#limit = residentLimit(launch, shape);
    this.#eager = launch.program.communicates ? eagerBlocks : 0;
    this.#runner = new WarpRunner(launch.program.steps, launch.counters);
    const [x, y, z] = shape.blocks;
    this.#endBlock = x * y * z;
  }

  /** The cluster that comes next. */
  get nextCluster(): number {
    return this.#nextBlock / this.#clusterSize;
  }

  get clustersLeft(): number {
    return (this.#endBlock - this.#nextBlock) / this.#clusterSize;
  }

  /** Starts the next cluster; whether there was one, and room for it. */
  #start(): boolean {
    const size = this.#clusterSize;
    const hasRoom = this.#blocks.length === 0 || this.#blocks.length + size <= this.#limit;
    if (this.#nextBlock >= this.#endBlock || !hasRoom) return false;
    const cluster: BlockState[] = [];
    const { checks, program } = this.#launch;
    const order = checks
      ? { newAgent: () => this.#launch.newAgent(), start: Knowledge.none }
      : undefined;
    for (let rank = 0; rank < size; rank++) {
      const index = this.#nextBlock++;
      const options = { index, rank, cluster, launch: this.#shape, program, order };
      const block = new Block({ ...options, host: this.#launch });
      cluster.push(block);
      this.#blocks.push(block);
      this.#warps.push(...block.warps);
    }
    return true;
  }

  /** Turns that warps have had so far. */
  get rounds(): number {
    return this.#rounds;
  }

  /** Begins what comes next: a cluster by itself, or some that communicate; false where none is left. */
  begin(): boolean {
    if (!this.#launch.program.communicates) return this.#beginCluster();
    while (this.#blocks.length < this.#eager && this.#start());
    return this.#warps.length > 0;
  }

  /** Begins one cluster, after which there is no other. */
  beginOnly(cluster: number): void {
    this.#nextBlock = cluster * this.#clusterSize;
    this.#endBlock = this.#nextBlock + this.#clusterSize;
    this.#beginCluster();
  }

  #beginCluster(): boolean {
    this.#launch.beginCluster(this.nextCluster);
    this.#repetition = new RepetitionFinder();
    return this.#start();
  }

  /** Lets one warp run for a while; false once all that was begun has ended. */
  advance(): boolean {
    if (this.#warps.length === 0) {
      // What nobody waited for is over when the blocks are.
      while (this.#launch.hasPending) this.#launch.completeOne();
      return false;
    }
    this.#round ??= this.#beginRound();
    if (this.#takeTurn(this.#round)) return true;
    const round = this.#round;
    this.#round = undefined;
    this.#rounds += 1;
    this.#endRound(round);
    return true;
  }

  /** A round lets every warp run once, in an order that the seed decides. */
  #beginRound(): Round {
    const { random, version } = this.#launch;
    const count = this.#warps.length;
    const offset = random.below(count);
    this.#repetition.begin(version);
    const { isLooking } = this.#repetition;
    return { count, offset, version, isLooking, turn: 0, progressed: false, ended: false };
  }

  /** Whether the round has further turns. */
  #takeTurn(round: Round): boolean {
    const launch = this.#launch;
    const { random } = launch;
    const warp = this.#warps[(round.turn + round.offset) % round.count] as WarpState;
    const budget = 1 + random.below(longestTurn);
    const moved = this.#runner.run(warp, budget, launch.changes);
    if (moved && !(round.isLooking && this.#repetition.look(warp))) round.progressed = true;
    if (warp.live === 0) round.ended = true;
    if (launch.hasPending && random.below(4) === 0) launch.completeOne();
    round.turn += 1;
    return round.turn < round.count;
  }

  #endRound({ progressed, ended, version }: Round): void {
    const launch = this.#launch;
    if (ended) this.#retire();
    if (progressed || ended || launch.version !== version) return;
    if (launch.hasPending) launch.completeOne();
    else if (!this.#start()) throw deadlock(this.#warps, launch);
  }

  /** The report of a run that came to a limit: where its warps stand. */
  stopped(reached: ReachedLimit): TilewrightError {
    return stopped(this.#warps, this.#launch, reached);
  }

  /** The same where other threads had what is left. */
  stoppedElsewhere(reached: ReachedLimit): TilewrightError {
    const [first, last] = [this.#nextBlock, this.#endBlock - 1];
    const note = { message: `blocks ${first} to ${last} were under way on several threads` };
    return this.stopped(reached).withNotes([note]);
  }

  #retire(): void {
    this.#warps = this.#warps.filter(({ live }) => live !== 0);
    const remaining = this.#blocks.filter(
      ({ cluster }) => !cluster.every((block) => block.warps.every(({ live }) => live === 0)),
    );
    this.#blocks = remaining;
    while (this.#blocks.length < this.#eager && this.#start());
  }
}

/** How many blocks the whole target holds at a time. */
function residentLimit(
  { target, program }: Launch,
  { lanes, sharedBytes }: EmulatedLaunch,
): number {
  const [x, y, z] = lanes;
  const reserved = 1024;
  const perProcessor = Math.min(
    target.blocksPerProcessor,
    Math.floor(target.lanesPerProcessor / (32 * Math.ceil((x * y * z) / 32))),
    Math.floor(
      target.sharedMemoryPerProcessor / (program.staticSharedBytes + sharedBytes + reserved),
    ),
  );
  return Math.max(1, perProcessor) * target.processors;
}
