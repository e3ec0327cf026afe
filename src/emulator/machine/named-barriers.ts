/**
 * The sixteen named barriers of a block (`bar.sync`). A barrier completes when the threads it was given have arrived, or, without a
 * number, all lanes of the block that have not exited. Warps that wait know by the generation whether the
 * phase they wait for is over.
 *
 *   bar.sync 1, 64      warp 0 arrives (32 of 64), waits for generation 0 to end
 *   bar.arrive 1, 64    warp 1 arrives (64 of 64): generation 1 begins, warp 0 goes on
 */
import { Knowledge } from "../../happens-before/knowledge.ts";
import { handedBy, nothingHanded } from "../checks/poll-acquires.ts";
import type { Handed } from "../checks/poll-acquires.ts";
import { populationCount } from "../arithmetic/bits.ts";

export interface WarpAtBarrier {
  readonly index: number;
  readonly live: number;
}

export interface Arrival {
  readonly warp: WarpAtBarrier;
  readonly mask: number;
  /** Lanes that the barrier waits for; undefined for all of the block. */
  readonly count: number | undefined;
  /** Whether the warp counts as a whole. */
  readonly aligned: boolean;
  /** Lanes whose predicate holds, for a reduction. */
  readonly predicate: number;
  readonly knowledge: Knowledge | undefined;
  readonly handed: Handed | undefined;
}

/** What a completed phase hands to those who waited. */
export interface BarrierPhase {
  readonly lanes: number;
  readonly holding: number;
  readonly knowledge: Knowledge;
  readonly handed: Handed;
}

export class Barrier {
  #generation = 0;
  #arrived = 0;
  #holding = 0;
  #count: number | undefined;
  #masks = new Map<number, number>();
  #gathered = Knowledge.none;
  #handed = nothingHanded;
  #last: BarrierPhase = { lanes: 0, holding: 0, knowledge: Knowledge.none, handed: nothingHanded };

  get generation(): number {
    return this.#generation;
  }

  get isIdle(): boolean {
    return this.#arrived === 0;
  }

  get arrivedLanes(): number {
    return this.#arrived;
  }

  /** What the last completed phase handed on. */
  get last(): BarrierPhase {
    return this.#last;
  }

  arrive({ warp, mask, count, aligned, predicate, knowledge, handed }: Arrival): void {
    this.#count = count;
    this.#arrived += aligned ? 32 : populationCount(mask);
    this.#holding += populationCount(predicate & mask);
    this.#masks.set(warp.index, (this.#masks.get(warp.index) ?? 0) | mask);
    if (knowledge !== undefined) this.#gathered = this.#gathered.join(knowledge);
    if (handed !== undefined) this.#handed = handedBy(this.#handed, handed);
  }

  /** Completes the phase where all have arrived; whether it did. */
  complete(warps: readonly WarpAtBarrier[]): boolean {
    if (this.#arrived === 0 || !this.#isFull(warps)) return false;
    const lanes = [...this.#masks.values()].reduce((sum, mask) => sum + populationCount(mask), 0);
    const handed = this.#handed;
    this.#last = { lanes, holding: this.#holding, knowledge: this.#gathered, handed };
    this.#generation += 1;
    this.#arrived = 0;
    this.#holding = 0;
    this.#masks = new Map();
    this.#gathered = Knowledge.none;
    this.#handed = nothingHanded;
    return true;
  }

  #isFull(warps: readonly WarpAtBarrier[]): boolean {
    if (this.#count !== undefined) return this.#arrived >= this.#count;
    return warps.every(({ index, live }) => (live & ~(this.#masks.get(index) ?? 0)) === 0);
  }
}

export class BlockBarriers {
  readonly all: readonly Barrier[] = Array.from({ length: 16 }, () => new Barrier());

  /** After lanes have exited: whether a barrier no longer waits for them. */
  completeAll(warps: readonly WarpAtBarrier[]): boolean {
    let completed = false;
    for (const barrier of this.all) if (barrier.complete(warps)) completed = true;
    return completed;
  }
}
