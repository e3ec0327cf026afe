/**
 * The groups in which the lanes of a warp run. Lanes that part at a branch go on as groups of their own and
 * wait for each other where their ways meet again:
 *
 *   { lanes 0…31, at 3 }   a jump at 3 parts them
 *   { lanes 0…15, at 4 }   { lanes 16…31, at 7 }        both bound for the join at 9
 *   { lanes 0…15, at 5 }   parked at 9: 16…31
 *   { lanes 0…31, at 9 }
 *
 * Parked lanes are let go without the others when those do not get on (they wait, or run for long): a lane
 * that spins for what another lane has yet to do must not keep that one from doing it.
 */
import { rearranged } from "../program/function.ts";
import type { ProgramFunction } from "../program/function.ts";

/** An activation of a function. */
export interface Frame {
  readonly function: ProgramFunction;
  /** Where its registers begin. */
  readonly base: number;
  /** Where its part of the lanes' stacks begins. */
  readonly localBase: number;
  /** How much of their stacks lanes had taken when they entered. */
  readonly taken?: Float64Array | undefined;
  readonly parent: Frame | undefined;
  readonly returnStep: number;
  /** Where the caller wants each result, on its own part of the stack. */
  readonly resultPlaces: readonly number[];
  /** Lanes that have not returned. */
  lanes: number;
}

/** A step at which lanes of a frame meet. */
export interface Join {
  readonly step: number;
  readonly frame: Frame;
  readonly outer: Join | undefined;
  /** Lanes that will come, those of them that have, and those that came and went on alone. */
  lanes: number;
  arrived: number;
  passed: number;
}

/** A barrier that a group has arrived at, and for which reconvergence. */
export interface Attendance {
  readonly barrier: object;
  readonly generation: number;
}

export interface Group {
  mask: number;
  step: number;
  frame: Frame;
  join: Join | undefined;
  attendance: Attendance | undefined;
  /** The cluster's count of changes when its last try failed; -1 where it can run. */
  blockedAt: number;
  /** Instructions since others of the warp last had their turn. */
  spent: number;
}

export class LaneGroups {
  readonly all: Group[];
  current: Group;
  /** Lanes that have not exited. */
  live: number;
  readonly #parked = new Set<Join>();

  constructor(mask: number, step: number, frame: Frame) {
    this.live = mask;
    this.current = newGroup(mask, step, frame, undefined);
    this.all = [this.current];
  }

  /**
   * Parts the running group: lanes of `taken` go on at `target`, the others at `otherwise`. They meet at
   * `reconvergence`, or, where that is -1, where the function returns to.
   */
  split(taken: number, target: number, otherwise: number, reconvergence: number): number {
    const group = this.current;
    const { frame, join } = group;
    const joinFrame = reconvergence < 0 ? frame.parent : frame;
    const step = reconvergence < 0 ? frame.returnStep : reconvergence;
    const isKnown = join?.step === step && join.frame === joinFrame;
    if (joinFrame !== undefined && !isKnown)
      group.join = {
        step,
        frame: joinFrame,
        outer: join,
        lanes: group.mask,
        arrived: 0,
        passed: 0,
      };
    const other = newGroup(group.mask & ~taken, otherwise, frame, group.join);
    group.mask = taken;
    group.step = target;
    this.all.push(other);
    this.settle(group);
    this.settle(other);
    return rearranged;
  }

  /** Parks a group that stands at its join. */
  settle(group: Group): void {
    const { join } = group;
    if (join === undefined || join.step !== group.step || join.frame !== group.frame) return;
    join.arrived |= group.mask;
    this.#remove(group);
    this.#parked.add(join);
    this.#complete(join);
  }

  #remove(group: Group): void {
    const position = this.all.indexOf(group);
    if (position >= 0) this.all.splice(position, 1);
  }

  #complete(join: Join): void {
    if (join.arrived !== 0 && join.arrived === join.lanes) this.#release(join);
  }

  /** Parked lanes go on, be it without the others. */
  #release(join: Join): void {
    const group = newGroup(join.arrived, join.step, join.frame, join.outer);
    join.lanes &= ~join.arrived;
    join.passed |= join.arrived;
    join.arrived = 0;
    this.#parked.delete(join);
    this.all.push(group);
    this.settle(group);
  }

  /** Lets all parked lanes go; whether there were any. */
  releaseParked(): boolean {
    const joins = [...this.#parked];
    for (const join of joins) if (join.arrived !== 0) this.#release(join);
    return joins.length > 0;
  }

  /** After a long turn of a group the others come first, and parked lanes stop waiting for it. */
  rotate(group: Group): void {
    group.spent = 0;
    if (this.hasParked) this.releaseParked();
    const position = this.all.indexOf(group);
    if (position < 0 || this.all.length === 1) return;
    this.all.splice(position, 1);
    this.all.push(group);
  }

  /** Lanes that have come to a join which the running group has yet to come to. */
  skipped(): number {
    let lanes = 0;
    for (let { join } = this.current; join !== undefined; join = join.outer)
      lanes |= join.arrived | join.passed;
    return lanes;
  }

  get hasParked(): boolean {
    return this.#parked.size > 0;
  }

  /** Lanes of the running group end. */
  exit(mask: number): void {
    const group = this.current;
    this.live &= ~mask;
    for (let frame: Frame | undefined = group.frame; frame !== undefined; frame = frame.parent)
      frame.lanes &= ~mask;
    const { join } = group;
    group.mask &= ~mask;
    if (group.mask === 0) this.#remove(group);
    this.#leave(join, mask, undefined);
  }

  /** Takes lanes off the joins from `join` out to `end`. */
  #leave(join: Join | undefined, mask: number, end: Join | undefined): void {
    for (let each = join; each !== undefined && each !== end; each = each.outer) {
      each.lanes &= ~mask;
      this.#complete(each);
    }
  }

  /** The running group goes on in another frame: a call's, or the caller's. */
  enter(frame: Frame, step: number): void {
    const group = this.current;
    const old = group.frame;
    group.frame = frame;
    group.step = step;
    if (old.parent !== frame) return;
    const { join } = group;
    let outer = join;
    while (outer !== undefined && outer.frame === old) outer = outer.outer;
    group.join = outer;
    this.#leave(join, group.mask, outer);
    this.settle(group);
  }

  /** Joins the running group with others that stand where it stands; whether there were any. */
  mergeAtStep(): boolean {
    const group = this.current;
    let merged = false;
    for (const other of [...this.all]) {
      const isHere = other.step === group.step && other.frame === group.frame;
      if (other === group || !isHere || other.attendance !== undefined) continue;
      const common = commonJoin(group.join, other.join);
      const [ours, theirs] = [group.join, other.join];
      group.join = common;
      this.#remove(other);
      this.#leave(ours, group.mask, common);
      this.#leave(theirs, other.mask, common);
      group.mask |= other.mask;
      merged = true;
    }
    return merged;
  }
}

function newGroup(mask: number, step: number, frame: Frame, join: Join | undefined): Group {
  return { mask, step, frame, join, attendance: undefined, blockedAt: -1, spent: 0 };
}

/** The innermost join that both are bound for. */
function commonJoin(left: Join | undefined, right: Join | undefined): Join | undefined {
  const outer = new Set<Join>();
  for (let join = left; join !== undefined; join = join.outer) outer.add(join);
  let join = right;
  while (join !== undefined && !outer.has(join)) join = join.outer;
  return join;
}
