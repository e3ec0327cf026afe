/**
 * Which writes of a tensor map a copy may rely on. Copies read maps through a proxy of their own, which
 * ordinary writes reach by a pair of fences:
 *
 *   warp 0   tensormap.replace [map]    fence.proxy.tensormap::generic.release     publishes …
 *   warp 1   acquires …                 fence.proxy.tensormap::generic.acquire [map], 128     copy [map, …]
 *
 * The release is a step of the writer behind its writes; the acquire covers the writes of all releases that
 * its warp knows of; a copy sees what the acquires cover that its issuer knows of.
 */
import { Clock } from "../../sim/order/clock.ts";
import type { Knowledge, Timeline } from "../../sim/order/knowledge.ts";

interface Acquire {
  readonly agent: number;
  readonly count: number;
  readonly covered: Clock;
}

/** Acquires of one map that are kept: the newest, which cover what the ones before did. */
const keptAcquires = 64;

export class MapOrder {
  /** The steps behind releases, by agent, oldest first. */
  readonly #releases = new Map<number, number[]>();
  /** By where the map lies in the heap. */
  readonly #acquires = new Map<number, Acquire[]>();

  release(timeline: Timeline): void {
    timeline.tick();
    const steps = this.#releases.get(timeline.agent);
    if (steps === undefined) this.#releases.set(timeline.agent, [timeline.count]);
    else steps.push(timeline.count);
  }

  acquire(timeline: Timeline, offset: number): void {
    const { generic } = timeline.knowledge;
    let covered = Clock.empty;
    for (const [agent, steps] of this.#releases) {
      const last = steps.findLast((step) => generic.includes(agent, step));
      if (last !== undefined) covered = covered.with(agent, last - 1);
    }
    timeline.tick();
    const found = this.#acquires.get(offset) ?? [];
    this.#acquires.set(offset, found);
    found.push({ agent: timeline.agent, count: timeline.count, covered });
    if (found.length > keptAcquires) found.shift();
  }

  /** The writes of a map that a copy sees whose issuer knows this. */
  visible({ generic }: Knowledge, offset: number): Clock {
    return (this.#acquires.get(offset) ?? [])
      .filter(({ agent, count }) => generic.includes(agent, count))
      .reduce((all, { covered }) => all.join(covered), Clock.empty);
  }
}

const orders = new WeakMap<object, MapOrder>();

/** The order of a launch. */
export function mapOrderOf(launch: object): MapOrder {
  const known = orders.get(launch) ?? new MapOrder();
  orders.set(launch, known);
  return known;
}
