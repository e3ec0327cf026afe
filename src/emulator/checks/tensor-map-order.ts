/**
 * Which writes of a tensor map a copy may rely on. Copies read maps through a proxy of their own, which
 * ordinary writes reach by a pair of fences:
 *
 *   warp 0   tensormap.replace [map]    fence.proxy.tensormap::generic.release     publishes …
 *   warp 1   acquires …                 fence.proxy.tensormap::generic.acquire [map], 128     copy [map, …]
 *
 * A release is a step behind all writes that its warp knows of, its own and others'; an acquire covers what
 * lies behind the releases that its warp knows of; a copy sees what the acquires cover that its issuer knows of.
 * Only the newest of either are told apart; what older ones cover counts for everybody.
 */
import { Clock } from "../../happens-before/clock.ts";
import type { Knowledge, Timeline } from "../../happens-before/knowledge.ts";

/** A fence: the step behind it, and the writes that it covers. */
interface Fence {
  readonly agent: number;
  readonly count: number;
  readonly covered: Clock;
}

/** How many fences are told apart. */
const keptFences = 256;

/** Fences of one kind, newest last. */
class Fences {
  readonly #kept: Fence[] = [];
  #older = Clock.empty;

  add({ agent, count }: Timeline, covered: Clock): void {
    this.#kept.push({ agent, count, covered });
    if (this.#kept.length <= keptFences) return;
    const oldest = this.#kept.shift();
    if (oldest !== undefined) this.#older = this.#older.join(oldest.covered);
  }

  /** What those cover that lie before a point. */
  coveredBefore(known: Clock): Clock {
    return this.#kept
      .filter(({ agent, count }) => known.includes(agent, count))
      .reduce((all, { covered }) => all.join(covered), this.#older);
  }
}

export class MapOrder {
  readonly #releases = new Fences();
  /** By where the map lies in the heap. */
  readonly #acquires = new Map<number, Fences>();

  release(timeline: Timeline): void {
    const covered = timeline.knowledge.generic;
    timeline.tick();
    this.#releases.add(timeline, covered);
  }

  acquire(timeline: Timeline, offset: number): void {
    const covered = this.#releases.coveredBefore(timeline.knowledge.generic);
    timeline.tick();
    const fences = this.#acquires.get(offset) ?? new Fences();
    this.#acquires.set(offset, fences);
    fences.add(timeline, covered);
  }

  /** The writes of a map that a copy sees whose issuer knows this. */
  visible({ generic }: Knowledge, offset: number): Clock {
    return this.#acquires.get(offset)?.coveredBefore(generic) ?? Clock.empty;
  }
}

const orders = new WeakMap<object, MapOrder>();

/** The order of a launch. */
export function mapOrderOf(launch: object): MapOrder {
  const known = orders.get(launch) ?? new MapOrder();
  orders.set(launch, known);
  return known;
}
