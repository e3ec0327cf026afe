/**
 * Which blocks of a grid are there; `warp-scheduler.ts` says which warp runs next. Blocks of a cluster come together.
 *
 * Clusters that do not communicate run one after the other, each by a random sequence of its own, so that it
 * does not matter which thread runs them. Of those that do, few run at a time, which is quick. In both
 * cases, when all of them wait, more are started, up to as many as the target holds, so that blocks may
 * wait for each other as far as they may on hardware.
 */
import { Knowledge } from "../../happens-before/knowledge.ts";
import type { TilewrightError } from "../../support/diagnostics.ts";
import type { ReachedLimit } from "../../support/run-limits.ts";
import type { EmulatedLaunch } from "../types.ts";
import { Block } from "./block.ts";
import { ClusterState } from "./cluster.ts";
import type { Launch } from "./launch.ts";
import { WarpScheduler } from "./warp-scheduler.ts";
import type { WarpState } from "./warp.ts";
import { deadlock, stopped } from "./deadlock.ts";

/** Blocks that are started before anyone waits, where they communicate. */
const eagerBlocks = 2;

export class Grid {
  readonly #launch: Launch;
  readonly #shape: EmulatedLaunch;
  readonly #clusterSize: number;
  readonly #limit: number;
  readonly #eager: number;
  readonly #scheduler: WarpScheduler;
  #nextBlock = 0;
  #endBlock: number;
  /** Clusters that others have taken before they started. */
  readonly #canceled = new Set<number>();
  /** Those with lanes that have not ended. */
  readonly #clusters = new Set<ClusterState>();

  constructor(launch: Launch, shape: EmulatedLaunch) {
    this.#launch = launch;
    this.#shape = shape;
    this.#clusterSize = shape.cluster ?? 1;
    this.#limit = residentLimit(launch, shape);
    // Work is taken from others only where hardware would not have started them at once.
    const takesWork = launch.program.sites.some(({ instruction }) =>
      instruction.opcode.startsWith("clusterlaunchcontrol.try_cancel"),
    );
    this.#eager = takesWork ? this.#limit : launch.program.communicates ? eagerBlocks : 0;
    launch.unstarted = () => this.#cancel();
    this.#scheduler = new WarpScheduler(
      launch,
      () => this.#start(),
      ({ cluster }) => {
        this.#retire(cluster);
      },
    );
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

  get #residentBlocks(): number {
    return this.#clusters.size * this.#clusterSize;
  }

  /** Takes a cluster that has not started, any of them: the index of its first block. */
  #cancel(): readonly [number, number, number] | undefined {
    const size = this.#clusterSize;
    const left: number[] = [];
    for (let cluster = this.#nextBlock / size; cluster * size < this.#endBlock; cluster++)
      if (!this.#canceled.has(cluster)) left.push(cluster);
    if (left.length === 0) return undefined;
    const cluster = this.#launch.random.pick(left);
    this.#canceled.add(cluster);
    const [x, y] = this.#shape.blocks;
    const block = cluster * size;
    return [block % x, Math.floor(block / x) % y, Math.floor(block / (x * y))];
  }

  /** Starts the next cluster; whether there was one, and room for it. */
  #start(): boolean {
    const size = this.#clusterSize;
    while (this.#canceled.has(this.#nextBlock / size)) this.#nextBlock += size;
    const hasRoom = this.#clusters.size === 0 || this.#residentBlocks + size <= this.#limit;
    if (this.#nextBlock >= this.#endBlock || !hasRoom) return false;
    const cluster = new ClusterState();
    const { checks, program } = this.#launch;
    const order = checks
      ? {
          newAgent: () => this.#launch.newAgent(),
          newRound: () => this.#launch.newRound(),
          start: Knowledge.none,
        }
      : undefined;
    for (let rank = 0; rank < size; rank++) {
      const index = this.#nextBlock++;
      const options = { index, rank, cluster, launch: this.#shape, program, order };
      cluster.blocks.push(new Block({ ...options, host: this.#launch }));
    }
    this.#clusters.add(cluster);
    for (const { warps } of cluster.blocks) for (const warp of warps) this.#scheduler.add(warp);
    return true;
  }

  /** Scheduling rounds so far. */
  get rounds(): number {
    return this.#scheduler.rounds;
  }

  /** Begins what comes next: a cluster by itself, or some that communicate; false where none is left. */
  begin(): boolean {
    if (!this.#launch.program.communicates) return this.#beginCluster();
    while (this.#residentBlocks < this.#eager && this.#start());
    return this.#clusters.size > 0;
  }

  /** Begins one cluster, after which there is no other. */
  beginOnly(cluster: number): void {
    this.#nextBlock = cluster * this.#clusterSize;
    this.#endBlock = this.#nextBlock + this.#clusterSize;
    this.#beginCluster();
  }

  #beginCluster(): boolean {
    this.#launch.beginCluster(this.nextCluster);
    return this.#start();
  }

  /** Lets one warp run for a while; false once all that was begun has ended. */
  advance(): boolean {
    if (this.#clusters.size === 0) {
      // What nobody waited for is over when the blocks are.
      while (this.#launch.hasPending) this.#launch.completeOne();
      return false;
    }
    if (this.#scheduler.advance()) return true;
    throw deadlock(this.#warps, this.#launch, this.#endBlock - this.#nextBlock);
  }

  get #warps(): readonly WarpState[] {
    return [...this.#clusters].flatMap(({ blocks }) =>
      blocks.flatMap(({ warps }) => warps.filter(({ live }) => live !== 0)),
    );
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

  /** A warp of a cluster has ended; where it was the last, others have room. */
  #retire(cluster: ClusterState): void {
    const isOver = cluster.blocks.every(({ warps }) => warps.every(({ live }) => live === 0));
    if (!isOver) return;
    this.#clusters.delete(cluster);
    this.#launch.clusterEnded(cluster);
    while (this.#residentBlocks < this.#eager && this.#start());
  }
}

/** How many blocks the whole target holds at a time. */
function residentLimit(
  { target, program }: Launch,
  { threads: lanes, sharedBytes }: EmulatedLaunch,
): number {
  const [x, y, z] = lanes;
  const reserved = 1024;
  const perProcessor = Math.min(
    target.blocksPerProcessor,
    Math.floor(target.threadsPerProcessor / (32 * Math.ceil((x * y * z) / 32))),
    Math.floor(
      target.sharedMemoryPerProcessor / (program.staticSharedBytes + sharedBytes + reserved),
    ),
  );
  return Math.max(1, perProcessor) * target.processors;
}
