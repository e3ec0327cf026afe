/**
 * Which warp runs next. Runnable warps are scheduled in rounds whose order the seed decides; the others sleep until something they may wait
 * for happens, so that waiting costs nothing, however many wait:
 *
 *   a warp is blocked at …                       and sleeps until
 *   bar.sync, mbarrier, wait_group, setmaxnreg   something changes in its cluster
 *   a loop that polls memory                     a word that it polled has another value (`spin-detection.ts`)
 *
 * A change in a cluster wakes all of its warps; polled words are compared after each round. When no warp is runnable, pending asynchronous
 * operations complete, further clusters start, and sleeping warps poll once more, in that order; if none of this helps, the launch is
 * deadlocked (`deadlock.ts`). Further clusters also start from time to time, for warps that wait for them without being caught spinning.
 */
import type { ClusterState } from "./cluster.ts";
import type { Launch } from "./launch.ts";
import { WarpRunner } from "./warp-runner.ts";
import type { WarpState } from "./warp.ts";

/** Instructions that a warp runs in one go, at most. */
const longestTurn = 512;
/** Rounds without a change after which warps that do not poll are looked at too. */
const patience = 64;
/** Rounds without a change after which another cluster comes, in case somebody waits for it in no way we know. */
const longPatience = 256;
/**
 * Rounds after which another cluster comes, whatever happens meanwhile: warps of a block may poll together, with barriers and
 * shared memory between, so that something changes all the time.
 */
const longestWait = 1024;
/** Sleepers are woken this often, whatever they watch. */
const longestSleep = 1024;

export class WarpScheduler {
  readonly #launch: Launch;
  readonly #runner: WarpRunner;
  /** Starts another cluster; whether there was one, and room for it. */
  readonly #start: () => boolean;
  readonly #ended: (warp: WarpState) => void;
  /** Those of this round, from a position on, and those of the next. */
  #round: WarpState[] = [];
  #offset = 0;
  #turn = 0;
  #next: WarpState[] = [];
  readonly #pollers = new Set<WarpState>();
  #rounds = 0;
  #quietRounds = 0;
  /** Rounds since another cluster was let in. */
  #waited = 0;
  #version = -1;

  constructor(launch: Launch, start: () => boolean, ended: (warp: WarpState) => void) {
    this.#launch = launch;
    this.#start = start;
    this.#ended = ended;
    this.#runner = new WarpRunner(launch.program.steps, launch.counters);
  }

  /** Rounds so far. */
  get rounds(): number {
    return this.#rounds;
  }

  /** A warp begins. */
  add(warp: WarpState): void {
    this.#next.push(warp);
  }

  /** Lets one warp run for a while; false where nothing can happen any more. */
  advance(): boolean {
    if (this.#turn >= this.#round.length && !this.#beginRound()) return this.#stir();
    const { random } = this.#launch;
    const warp = this.#round[(this.#turn + this.#offset) % this.#round.length] as WarpState;
    this.#turn += 1;
    this.#run(warp);
    if (this.#launch.hasPending && random.below(4) === 0) this.#wake(this.#launch.completeOne());
    return true;
  }

  #beginRound(): boolean {
    this.#rounds += 1;
    const { version, random } = this.#launch;
    const isQuiet = version === this.#version;
    this.#quietRounds = isQuiet ? this.#quietRounds + 1 : 0;
    this.#version = version;
    if (!isQuiet) this.#wakePollers((warp) => warp.spin.sawChange);
    else if (this.#rounds % longestSleep === 0) this.#wakePollers(() => true);
    this.#waited += 1;
    if (this.#quietRounds >= longPatience || this.#waited >= longestWait) {
      this.#waited = 0;
      if (this.#start()) this.#quietRounds = 0;
    }
    [this.#round, this.#next] = [this.#next, []];
    this.#turn = 0;
    this.#offset = this.#round.length === 0 ? 0 : random.below(this.#round.length);
    return this.#round.length > 0;
  }

  #run(warp: WarpState): void {
    const launch = this.#launch;
    const { cluster } = warp;
    const { version } = launch;
    launch.cluster = cluster;
    warp.spin.hasPolled = false;
    this.#runner.run(warp, 1 + launch.random.below(longestTurn), cluster.changes);
    if (launch.version !== version) warp.spin.forget();
    warp.isAwake = false;
    this.#wake(cluster);
    if (warp.live === 0) this.#ended(warp);
    else if (!warp.isAwake) this.#settle(warp);
  }

  /** A warp goes on, or sleeps. */
  #settle(warp: WarpState): void {
    const { spin, groups, cluster } = warp;
    const isBlocked = groups.all.every(({ blockedAt }) => blockedAt === cluster.changes);
    const isSuspect = spin.hasPolled || this.#quietRounds >= patience;
    const sleeps = isBlocked || (isSuspect && spin.isSpinning(warp));
    if (!sleeps) {
      warp.isAwake = true;
      this.#next.push(warp);
      return;
    }
    if (isBlocked) return;
    spin.rememberPolled();
    this.#pollers.add(warp);
  }

  /** Wakes all of a cluster in which something has changed. */
  #wake(cluster: ClusterState): void {
    if (cluster.changes === cluster.seenChanges) return;
    cluster.seenChanges = cluster.changes;
    for (const { warps } of cluster.blocks) for (const warp of warps) this.#rouse(warp);
  }

  #rouse(warp: WarpState): void {
    if (warp.isAwake || warp.live === 0) return;
    warp.isAwake = true;
    this.#pollers.delete(warp);
    warp.spin.forget();
    this.#next.push(warp);
  }

  #wakePollers(isDue: (warp: WarpState) => boolean): boolean {
    let woken = false;
    for (const warp of this.#pollers)
      if (isDue(warp)) {
        this.#rouse(warp);
        woken = true;
      }
    return woken;
  }

  /** Nobody is awake: makes something happen, if it can. */
  #stir(): boolean {
    const launch = this.#launch;
    if (launch.hasPending) {
      this.#wake(launch.completeOne());
      return true;
    }
    if (this.#start()) return true;
    const { version } = launch;
    return this.#wakePollers(({ spin }) => {
      const isNew = spin.checkedVersion !== version;
      spin.checkedVersion = version;
      return isNew;
    });
  }
}
