import { describe, expect, test } from "vitest";
import { expectWithin } from "../../test/support/processor-time.ts";
import { Random } from "../support/random.ts";
import { Clock } from "./clock.ts";

type Naive = ReadonlyMap<number, number>;

function naiveJoin(left: Naive, right: Naive): Naive {
  const joined = new Map(left);
  for (const [agent, count] of right) joined.set(agent, Math.max(count, joined.get(agent) ?? 0));
  return joined;
}

function naiveCovers(left: Naive, right: Naive): boolean {
  return [...right].every(([agent, count]) => (left.get(agent) ?? 0) >= count);
}

function expectEqual(clock: Clock, naive: Naive, agents: readonly number[], label: string): void {
  expect(
    agents.map((agent) => clock.get(agent)),
    `${label}, agents ${agents.join(" ")}`,
  ).toEqual(agents.map((agent) => naive.get(agent) ?? 0));
}

describe("a clock", () => {
  test("knows nothing when empty", () => {
    expect(Clock.empty.get(0)).toBe(0);
    expect(Clock.empty.get(1_000_000)).toBe(0);
    expect(Clock.empty.includes(7, 1)).toBe(false);
    expect(Clock.empty.includes(7, 0)).toBe(true);
  });

  test("never goes back", () => {
    const clock = Clock.empty.with(3, 5);
    expect(clock.with(3, 2)).toBe(clock);
    expect(clock.with(3, 5)).toBe(clock);
    expect(clock.with(3, 6).get(3)).toBe(6);
    expect(clock.get(3)).toBe(5);
  });

  test("agrees with a map under random operations", () => {
    for (let seed = 0; seed < 40; seed++) {
      const random = new Random(seed);
      const agents = Array.from({ length: 30 }, () => random.below(1 << random.below(18)));
      const versions: { clock: Clock; naive: Naive }[] = [{ clock: Clock.empty, naive: new Map() }];
      for (let step = 0; step < 100; step++) {
        const { clock, naive } = random.pick(versions);
        const other = random.pick(versions);
        const label = `seed ${seed} step ${step}`;
        if (random.below(3) > 0) {
          const agent = random.pick(agents);
          const count = random.below(6);
          const changed = naiveJoin(naive, count === 0 ? new Map() : new Map([[agent, count]]));
          versions.push({ clock: clock.with(agent, count), naive: changed });
        } else {
          const joined = clock.join(other.clock);
          if (naiveCovers(naive, other.naive)) expect(joined, label).toBe(clock);
          else if (naiveCovers(other.naive, naive)) expect(joined, label).toBe(other.clock);
          versions.push({ clock: joined, naive: naiveJoin(naive, other.naive) });
        }
      }
      versions.forEach(({ clock, naive }, version) => {
        expectEqual(clock, naive, agents, `seed ${seed} version ${version}`);
      });
    }
  });

  test("gives back the one that covers the other, whatever their depths", () => {
    const small = Clock.empty.with(1, 1);
    const large = small.with(70_000, 1);
    expect(small.join(large)).toBe(large);
    expect(large.join(small)).toBe(large);
    expect(small.join(Clock.empty)).toBe(small);
    expect(Clock.empty.join(small)).toBe(small);
  });
});

describe("chains of agents", () => {
  const links = 20_000;

  test("cost a logarithm a link", () => {
    let handed = Clock.empty;
    let kept: Clock[] = [];
    expectWithin(1000, () => {
      handed = Clock.empty;
      kept = [];
      for (let agent = 0; agent < links; agent++) {
        handed = Clock.empty.with(agent, 1).join(handed).with(agent, 2);
        kept.push(handed);
      }
    });
    expect(handed.get(0)).toBe(2);
    expect(handed.get(links - 1)).toBe(2);
    expect(kept[100]?.get(100)).toBe(2);
    expect(kept[100]?.get(101)).toBe(0);
  });

  test("share what is old: joining a far newer clock is immediate", () => {
    let clock = Clock.empty;
    for (let agent = 0; agent < links; agent++) clock = clock.with(agent, 1);
    expectWithin(1000, () => {
      for (let round = 0; round < links; round++) {
        const own = clock.with(round, 2);
        const joined = own.join(clock.with(links - 1 - round, 3));
        if (!joined.includes(round, 2)) throw new Error(`round ${round} lost its own step`);
      }
    });
  });
});
