/**
 * Schedules a grid: which blocks are there, and which warp runs next. Blocks of a cluster come together.
 *
 * Clusters that do not communicate run one after the other, each by a random sequence of its own, so that it
 * does not matter which thread runs them. Of those that do, few run at a time, which is quick. In both
 * cases, when all of them wait, more are started, up to as many as the target holds, so that blocks may
 * wait for each other as far as they may on hardware.
 */
import { Knowledge } from "../../sim/order/knowledge.ts";
import type { EmulatedLaunch } from "../types.ts";
import { Block } from "./block.ts";
import type { Launch } from "./launch.ts";
import { RepetitionFinder } from "./repetition.ts";
import { WarpRunner } from "./runner.ts";
import type { BlockState, WarpState } from "./warp.ts";
import { deadlock } from "./deadlock.ts";

/** Instructions that a warp runs in one go, at most. */
const longestTurn = 512;
/** Blocks that are started before anyone waits, where they communicate. */
const eagerBlocks = 2;

export class Grid {
  readonly #launch: Launch;
  readonly #shape: EmulatedLaunch;
  readonly #clusterSize: number;
  readonly #limit: number;
  readonly #eager: number;
  readonly #runner: WarpRunner;
  readonly #onRound: () => void;
  #repetition = new RepetitionFinder();
  #nextBlock = 0;
  #endBlock: number;
  #blocks: Block[] = [];
  #warps: WarpState[] = [];

  /** `onRound` is called before every round, and may throw to end the launch. */
  constructor(launch: Launch, shape: EmulatedLaunch, onRound: () => void = () => undefined) {
    this.#launch = launch;
    this.#shape = shape;
    this.#clusterSize = shape.cluster ?? 1;
    this.#limit = residentLimit(launch, shape);
    this.#eager = launch.program.communicates ? eagerBlocks : 0;
    this.#runner = new WarpRunner(launch.program.steps, launch.counters);
    this.#onRound = onRound;
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

  /** Runs what is left. */
  run(): void {
    if (!this.#launch.program.communicates) {
      while (this.runNext());
      return;
    }
    while (this.#blocks.length < this.#eager && this.#start());
    this.#runStarted();
  }

  /** Runs the next cluster by itself, with those that it turns out to wait for; false where none is left. */
  runNext(): boolean {
    this.#launch.beginCluster(this.nextCluster);
    this.#repetition = new RepetitionFinder();
    if (!this.#start()) return false;
    this.#runStarted();
    return true;
  }

  /** Runs one cluster, and no other. */
  runOnly(cluster: number): void {
    this.#nextBlock = cluster * this.#clusterSize;
    this.#endBlock = this.#nextBlock + this.#clusterSize;
    this.runNext();
  }

  #runStarted(): void {
    while (this.#warps.length > 0) this.#round();
    // What nobody waited for is over when the blocks are.
    while (this.#launch.hasPending) this.#launch.completeOne();
  }

  /** Lets every warp run once, in an order that the seed decides. */
  #round(): void {
    this.#onRound();
    const launch = this.#launch;
    const { random } = launch;
    const repetition = this.#repetition;
    let progressed = false;
    let ended = false;
    const count = this.#warps.length;
    const offset = random.below(count);
    const { version } = launch;
    repetition.begin(version);
    const isLooking = repetition.isLooking;
    for (let turn = 0; turn < count; turn++) {
      const warp = this.#warps[(turn + offset) % count] as WarpState;
      const budget = 1 + random.below(longestTurn);
      const moved = this.#runner.run(warp, budget, launch.changes);
      if (moved && !(isLooking && repetition.look(warp))) progressed = true;
      if (warp.live === 0) ended = true;
      if (launch.hasPending && random.below(4) === 0) launch.completeOne();
    }
    if (ended) this.#retire();
    if (progressed || ended || launch.version !== version) return;
    if (launch.hasPending) launch.completeOne();
    else if (!this.#start()) throw deadlock(this.#warps, launch);
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
