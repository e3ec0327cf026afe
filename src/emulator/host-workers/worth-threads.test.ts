import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Pace } from "./worth-threads.ts";

describe("handing a launch over", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const program = {};
  const handover = { patience: 100, gain: 300 };
  const paceOf = (threads: number, paces = new WeakMap<object, number>()): Pace =>
    new Pace({ program, threads, handover, paces });

  /** Lets clusters run on the calling thread. */
  function run(pace: Pace, clusters: number, milliseconds: number): void {
    for (let cluster = 0; cluster < clusters; cluster++) {
      vi.advanceTimersByTime(milliseconds);
      pace.clusterDone();
    }
  }

  test("needs a while to judge by", () => {
    const pace = paceOf(4);
    expect(pace.isWorthwhile(1000)).toBe(false);
    run(pace, 9, 10);
    expect(pace.isWorthwhile(1000)).toBe(false);
    run(pace, 1, 10);
    expect(pace.isWorthwhile(1000)).toBe(true);
  });

  test("is for what is left and what threads make of it", () => {
    const pace = paceOf(4);
    run(pace, 10, 10);
    // A quarter of 600 ms, or a half: 450 ms and 300 ms are gained.
    expect(pace.isWorthwhile(60)).toBe(true);
    expect(pace.isWorthwhile(30)).toBe(false);
    const two = paceOf(2);
    run(two, 10, 10);
    expect([two.isWorthwhile(59), two.isWorthwhile(61)]).toEqual([false, true]);
  });

  test("is never for a lone cluster", () => {
    const pace = paceOf(8);
    run(pace, 1, 60_000);
    expect([pace.isWorthwhile(1), pace.isWorthwhile(2)]).toEqual([false, true]);
  });

  test("remembers programs that took long", () => {
    const paces = new WeakMap<object, number>();
    run(paceOf(2, paces), 1, 2000);
    expect(paceOf(2, paces).isWorthwhile(8)).toBe(true);
    const other = new Pace({ program: {}, threads: 2, handover, paces });
    expect(other.isWorthwhile(8)).toBe(false);
  });
});
