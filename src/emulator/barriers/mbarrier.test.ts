import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { largestCount, Mbarrier, tokenPending } from "./mbarrier.ts";

describe("an mbarrier", () => {
  test("ends a phase when nothing is pending and the transactions come to zero", () => {
    const barrier = new Mbarrier(2);
    expect(barrier.arrive(1)).toBeUndefined();
    expect(barrier.expect(64)).toBeUndefined();
    expect(barrier.arrive(1)).toBeUndefined();
    expect(barrier.phase).toBe(0);
    expect(barrier.complete(48)).toBeUndefined();
    expect(barrier.phase).toBe(0);
    expect(barrier.complete(16)).toBeUndefined();
    expect(barrier.phase).toBe(1);
    expect(barrier.pending).toBe(2);
  });

  test("takes bytes that land before they are announced", () => {
    const barrier = new Mbarrier(1);
    barrier.complete(16);
    expect(barrier.transactions).toBe(-16);
    barrier.expect(16);
    expect(barrier.phase).toBe(0);
    barrier.arrive(1);
    expect(barrier.phase).toBe(1);
  });

  test("tells by parity whether the phase before the running one has ended", () => {
    const barrier = new Mbarrier(1);
    expect([barrier.endedParity(0), barrier.endedParity(1)]).toEqual([false, true]);
    barrier.arrive(1);
    expect([barrier.endedParity(0), barrier.endedParity(1)]).toEqual([true, false]);
  });

  test("gives tokens that name the phase and what was pending", () => {
    const barrier = new Mbarrier(5);
    const { token } = barrier;
    barrier.arrive(2);
    expect(tokenPending(token)).toBe(5);
    expect(tokenPending(barrier.token)).toBe(3);
    expect(barrier.endedToken(token)).toBe(false);
    barrier.arrive(3);
    expect(barrier.endedToken(token)).toBe(true);
    expect(tokenPending(barrier.token)).toBe(5);
  });

  test("expects fewer arrivals once some have dropped out", () => {
    const barrier = new Mbarrier(3);
    barrier.arriveAndDrop(1);
    expect(barrier.pending).toBe(2);
    barrier.arrive(2);
    expect([barrier.phase, barrier.pending, barrier.expected]).toEqual([1, 2, 2]);
  });

  test("refuses what it cannot count", () => {
    const barrier = new Mbarrier(2);
    expect(barrier.arrive(3)).toEqual({ kind: "arrivals", pending: 2, arriving: 3 });
    expect(barrier.arriveWithoutCompleting(2)).toMatchObject({ kind: "completing" });
    expect(barrier.expect(largestCount)).toBeUndefined();
    expect(barrier.expect(1)).toMatchObject({ kind: "transactions" });
    expect(() => new Mbarrier(0)).toThrow(RangeError);
    expect(() => new Mbarrier(largestCount + 1)).toThrow(RangeError);
  });

  test("has another image for every state it can be in", () => {
    const seed = 4;
    const random = new Random(seed);
    const barrier = new Mbarrier(1000);
    const images = new Map<string, string>();
    for (let round = 0; round < 2000; round++) {
      if (random.below(2) === 0) barrier.arrive(Math.min(barrier.pending, 1 + random.below(9)));
      else if (random.below(2) === 0) barrier.expect(random.below(99));
      else barrier.complete(random.below(99));
      const { phase, pending, expected, transactions } = barrier;
      const state = [phase % 2, pending, expected, transactions].join();
      const image = `${barrier.image.low} ${barrier.image.high}`;
      expect(images.get(image) ?? state, `seed ${seed}`).toBe(state);
      images.set(image, state);
    }
  });
});
