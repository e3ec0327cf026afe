/** Runs the groups of a warp, turn by turn. */
import { populationCount } from "../arithmetic/bits.ts";
import { blocked } from "../program/function.ts";
import type { Step } from "../program/program.ts";
import type { Group } from "./divergence.ts";
import type { WarpState } from "./warp.ts";

/** Instructions after which a group lets others of its warp run, parked ones included. */
const groupTurn = 4096;

export interface Counters {
  laneInstructions: number;
  warpInstructions: number;
}

export class WarpRunner {
  readonly #steps: readonly Step[];
  readonly #counters: Counters;

  constructor(steps: readonly Step[], counters: Counters) {
    this.#steps = steps;
    this.#counters = counters;
  }

  /**
   * Runs up to `budget` instructions of a warp. `changes` is the cluster's count of changes: a group that failed
   * and has seen no change since is not asked again.
   */
  run(warp: WarpState, budget: number, changes: number): void {
    let left = budget;
    while (left > 0 && warp.live !== 0) {
      const group = this.#pick(warp, changes);
      if (group === undefined) {
        if (!warp.groups.releaseParked()) return;
        continue;
      }
      const used = this.#runGroup(warp, group, left, changes);
      left -= Math.max(used, 1);
    }
  }

  /** A group that can run: the first, since groups that have had their turn go to the end. */
  #pick(warp: WarpState, changes: number): Group | undefined {
    return warp.groups.all.find(({ blockedAt }) => blockedAt !== changes);
  }

  /** Runs a group until it waits, parks, parts or has had its turn; what it took of the turn. */
  #runGroup(warp: WarpState, group: Group, turn: number, changes: number): number {
    const { groups } = warp;
    const steps = this.#steps;
    const counters = this.#counters;
    groups.current = group;
    warp.base = group.frame.base;
    warp.localBase = group.frame.localBase;
    const { mask, join, frame } = group;
    const joinStep = join !== undefined && join.frame === frame ? join.step : -1;
    let done = 0;
    let used = 0;
    let { step } = group;
    let next = step;
    while (used < turn) {
      const { run, weight, cost } = steps[step] as Step;
      group.step = step;
      next = run(warp, mask);
      if (next === blocked) break;
      done += weight;
      // As it goes, because a step may read the clock.
      counters.warpInstructions += weight;
      used += cost;
      if (next < 0) break;
      step = next;
      group.step = step;
      if (step === joinStep) break;
    }
    counters.laneInstructions += done * populationCount(mask);
    group.spent += used;
    if (done > 0) group.blockedAt = -1;
    if (next === blocked) {
      if (group.attendance === undefined && groups.mergeAtStep()) return used + 1;
      group.blockedAt = changes;
    } else if (step === joinStep && next >= 0) groups.settle(group);
    else if (group.spent >= groupTurn) groups.rotate(group);
    return used;
  }
}
