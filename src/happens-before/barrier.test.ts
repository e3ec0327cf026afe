import { describe, expect, test } from "vitest";
import type { AnyOp } from "../ir/node.ts";
import { refType } from "../ir/types.ts";
import { dtypes } from "../formats/dtype.ts";
import { unknownLocation } from "../support/location.ts";
import { placeText } from "./access.ts";
import type { Origin } from "./access.ts";
import { BarrierState } from "./barrier.ts";
import { completion, Timeline } from "./knowledge.ts";
import { ExecutionBarrier } from "./execution-barrier.ts";
import { SemaphoreState } from "./semaphore.ts";

const place = { thread: "main", axes: ["i"], block: [0], iterations: [] };
const syncOp: AnyOp = {
  kind: "block_sync",
  operands: {},
  attributes: {},
  regions: {},
  results: [],
  location: unknownLocation,
};
const window = { id: 0, type: refType("gmem", dtypes.f32, [4]) };
const copyOp: AnyOp = {
  kind: "copy_async",
  operands: { source: window, destination: window },
  attributes: { fill: "zero", multicast: [], reduction: "none" },
  regions: {},
  results: [],
  location: unknownLocation,
};
const origin: Origin = { op: syncOp, place };
const copied: Origin = { op: copyOp, place };

function threads(count: number): readonly Timeline[] {
  let next = 0;
  return Array.from({ length: count }, () => new Timeline(() => next++));
}

function pair(): readonly [Timeline, Timeline] {
  const [first, second] = threads(2);
  if (first === undefined || second === undefined) throw new Error("two threads");
  return [first, second];
}

function wait(thread: Timeline, barrier: BarrierState, phase: number) {
  thread.acquire(barrier.phaseKnowledge(phase));
  return barrier.recordWait(phase, { ...origin, ...thread.passWait() });
}

describe("a barrier", () => {
  test("completes a phase with its last arrival and tells what all knew", () => {
    const [first, second] = pair();
    const barrier = new BarrierState(2);
    expect(barrier.arrive(first.publish(), origin)).toBeUndefined();
    expect(barrier.arrived).toEqual([origin]);
    expect(barrier.hasCompleted(0)).toBe(false);
    const completed = barrier.arrive(second.publish(), origin);
    expect(completed?.phase).toBe(0);
    expect(completed?.arrivals).toHaveLength(2);
    expect(barrier.phase).toBe(1);
    expect(barrier.arrived).toEqual([]);
    for (const { agent } of [first, second])
      expect(barrier.phaseKnowledge(0).generic.get(agent)).toBe(1);
  });

  test("arrives with the last of the parts that make an arrival", () => {
    const [first, second] = pair();
    const state = new BarrierState(1);
    expect(state.arrivePart(first.publish(), copied, 2)).toBeUndefined();
    expect(state.leftovers().arrivals).toEqual([copied]);
    const known = second.knowledge.generic;
    const completed = state.arrivePart(second.publish(), copied, 2);
    expect(completed?.arrivals).toHaveLength(1);
    expect(completed?.knowledge.generic.join(known)).toBe(completed?.knowledge.generic);
    expect(completed?.knowledge.generic.includes(first.agent, 1)).toBe(true);
    expect(state.leftovers().arrivals).toEqual([]);
  });

  test("tells with a phase what its own arrivals knew, not those before it", () => {
    const [first, second] = pair();
    const barrier = new BarrierState(1);
    barrier.arrive(first.publish(), origin);
    barrier.arrive(second.publish(), origin);
    expect(barrier.phaseKnowledge(1).generic.get(second.agent)).toBe(1);
    expect(barrier.phaseKnowledge(1).generic.get(first.agent)).toBe(0);
  });

  test("passes a wait by parity while the other parity runs", () => {
    const [thread] = pair();
    const barrier = new BarrierState(1);
    expect(barrier.passingPhase(0)).toBeUndefined();
    expect(barrier.passingPhase(1)).toBe(-1);
    expect(barrier.phaseKnowledge(-1).generic.get(thread.agent)).toBe(0);
    barrier.arrive(thread.publish(), origin);
    expect(barrier.passingPhase(0)).toBe(0);
    expect(barrier.passingPhase(1)).toBeUndefined();
  });

  test("keeps the last two phases", () => {
    const [thread] = pair();
    const barrier = new BarrierState(1);
    for (let phase = 0; phase < 5; phase++) barrier.arrive(thread.publish(), origin);
    expect(barrier.phaseKnowledge(4).generic.get(thread.agent)).toBe(5);
    expect(barrier.phaseKnowledge(3).generic.get(thread.agent)).toBe(4);
    expect(barrier.phaseKnowledge(2).generic.get(thread.agent)).toBe(0);
  });
});

describe("overruns", () => {
  test("are none where each wait is ordered before the next arrival", () => {
    const [producer, consumer] = pair();
    const [full, empty] = [new BarrierState(1), new BarrierState(1)];
    for (let phase = 0; phase < 4; phase++) {
      expect(full.arrive(producer.publish(), origin)?.overruns).toEqual([]);
      expect(wait(consumer, full, phase)).toBeUndefined();
      expect(empty.arrive(consumer.publish(), origin)?.overruns).toEqual([]);
      expect(wait(producer, empty, phase)).toBeUndefined();
    }
  });

  test("are none where only copies carry the order from the waiting thread", () => {
    const [producer, consumer] = pair();
    const [full, empty] = [new BarrierState(1), new BarrierState(1)];
    for (let phase = 0; phase < 4; phase++) {
      if (phase > 0) expect(wait(producer, empty, phase - 1)).toBeUndefined();
      const told = completion(producer.publish(), [{ agent: 1000 + phase, count: 1 }]);
      expect(full.arrive(told, copied)?.overruns).toEqual([]);
      expect(wait(consumer, full, phase)).toBeUndefined();
      expect(empty.arrive(consumer.publish(), origin)?.overruns).toEqual([]);
    }
  });

  test("are found although the wait came first", () => {
    const [producer, consumer] = pair();
    const barrier = new BarrierState(1);
    barrier.arrive(producer.publish(), origin);
    expect(wait(consumer, barrier, 0)).toBeUndefined();
    const completed = barrier.arrive(producer.publish(), origin);
    expect(completed?.overruns).toMatchObject([{ phase: 0, overrunBy: [origin] }]);
  });

  test("are found when the wait comes late", () => {
    const [producer, consumer] = pair();
    const barrier = new BarrierState(1);
    barrier.arrive(producer.publish(), origin);
    barrier.arrive(producer.publish(), origin);
    expect(wait(consumer, barrier, 0)).toMatchObject({ phase: 0, overrunBy: [origin] });
    expect(wait(consumer, barrier, 1)).toBeUndefined();
    barrier.arrive(producer.publish(), origin);
    barrier.arrive(producer.publish(), origin);
    expect(wait(consumer, barrier, 1)).toMatchObject({ phase: 1, overrunBy: [] });
  });

  test("are found for a wait that passed before the first phase", () => {
    const [producer, consumer] = pair();
    const barrier = new BarrierState(1);
    wait(producer, barrier, -1);
    expect(barrier.arrive(consumer.publish(), origin)?.overruns).toMatchObject([{ phase: -1 }]);
  });

  test("concern every waiting thread", () => {
    const [first, second, third] = threads(3);
    if (first === undefined || second === undefined || third === undefined) throw new Error();
    const barrier = new BarrierState(1);
    barrier.arrive(first.publish(), origin);
    wait(second, barrier, 0);
    wait(third, barrier, 0);
    first.acquire(second.publish());
    const overruns = barrier.arrive(first.publish(), origin)?.overruns ?? [];
    expect(overruns.map((overrun) => overrun.wait.agent)).toEqual([third.passWait().agent]);
  });
});

describe("leftovers", () => {
  test("are arrivals that completed no phase", () => {
    const [thread] = pair();
    const barrier = new BarrierState(2);
    barrier.arrive(thread.publish(), origin);
    expect(barrier.leftovers()).toEqual({
      arrivals: [origin],
      unawaited: undefined,
      extraPhases: 0,
    });
  });

  test("are phases behind the last wait, where they are more than one", () => {
    const [thread] = pair();
    const barrier = new BarrierState(1);
    barrier.arrive(thread.publish(), origin);
    wait(thread, barrier, 0);
    barrier.arrive(thread.publish(), origin);
    expect(barrier.leftovers().extraPhases).toBe(0);
    barrier.arrive(thread.publish(), origin);
    expect(barrier.leftovers().extraPhases).toBe(2);
    wait(thread, barrier, 2);
    expect(barrier.leftovers().extraPhases).toBe(0);
  });

  test("are copies nobody waited for", () => {
    const [thread] = pair();
    const barrier = new BarrierState(1);
    barrier.arrive(thread.publish(), origin);
    expect(barrier.leftovers().unawaited).toBeUndefined();
    barrier.arrive(thread.publish(), copied);
    expect(barrier.leftovers().unawaited?.phase).toBe(1);
    wait(thread, barrier, 1);
    expect(barrier.leftovers().unawaited).toBeUndefined();
    barrier.arrive(thread.publish(), copied);
    barrier.arrive(thread.publish(), origin);
    wait(thread, barrier, 3);
    expect(barrier.leftovers().unawaited?.phase).toBe(2);
    expect(wait(thread, barrier, 2)).toBeDefined();
    expect(barrier.leftovers().unawaited).toBeUndefined();
  });
});

describe("a semaphore", () => {
  test("tells a waiter what the signals up to its value knew", () => {
    const [first, second] = pair();
    const semaphore = new SemaphoreState();
    expect(semaphore.hasReached(1)).toBe(false);
    semaphore.signal(first.publish(), 1);
    semaphore.signal(second.publish(), 2);
    expect(semaphore.value).toBe(3);
    const early = semaphore.pass(1, false).generic;
    expect([early.get(first.agent), early.get(second.agent)]).toEqual([1, 0]);
    for (const value of [2, 3]) {
      const late = semaphore.pass(value, false).generic;
      expect([late.get(first.agent), late.get(second.agent)]).toEqual([1, 1]);
    }
    expect(semaphore.pass(0, false).generic.get(first.agent)).toBe(0);
  });

  test("gives the oldest units to a wait that decrements", () => {
    const [first, second] = pair();
    const semaphore = new SemaphoreState();
    semaphore.signal(first.publish(), 1);
    semaphore.signal(second.publish(), 1);
    const early = semaphore.pass(1, true).generic;
    expect(early.get(second.agent)).toBe(0);
    expect(semaphore.value).toBe(1);
    expect(semaphore.pass(1, true).generic.get(second.agent)).toBe(1);
    expect(semaphore.hasReached(1)).toBe(false);
    expect(() => semaphore.pass(1, true)).toThrow("passed for 1");
    semaphore.signal(first.publish(), 1);
    expect(semaphore.pass(1, true).generic.get(first.agent)).toBe(2);
  });

  test("is lowered by as much as a wait that decrements asked for", () => {
    const [first] = pair();
    const semaphore = new SemaphoreState();
    semaphore.signal(first.publish(), 3);
    semaphore.pass(2, true);
    expect(semaphore.value).toBe(1);
    expect(semaphore.hasReached(2)).toBe(false);
  });

  test("tells all it knows after a signal that lowers it", () => {
    const [first, second] = pair();
    const semaphore = new SemaphoreState();
    semaphore.signal(first.publish(), 3);
    semaphore.signal(second.publish(), -2);
    expect(semaphore.value).toBe(1);
    expect(semaphore.pass(1, false).generic.get(second.agent)).toBe(1);
  });
});

describe("a meeting", () => {
  test("lets all go on when the last has arrived, with what all knew", () => {
    const [first, second] = pair();
    const meeting = new ExecutionBarrier(2);
    for (let round = 1; round < 4; round++) {
      expect(meeting.isConcluded(first.agent)).toBe(false);
      expect(meeting.arrive(first.agent, first.publish(), origin)).toBe(false);
      expect(meeting.isAttending(first.agent)).toBe(true);
      expect(meeting.isConcluded(first.agent)).toBe(false);
      expect(meeting.arrived).toEqual([origin]);
      expect(meeting.arrive(second.agent, second.publish(), origin)).toBe(true);
      for (const thread of [second, first]) thread.acquire(meeting.leave(thread.agent));
      expect(first.knowledge.generic.get(second.agent)).toBe(round);
      expect(second.knowledge.generic.get(first.agent)).toBe(round);
    }
  });

  test("lets one arrive for the next meeting while others still leave this one", () => {
    const [first, second] = pair();
    const meeting = new ExecutionBarrier(2);
    meeting.arrive(first.agent, first.publish(), origin);
    meeting.arrive(second.agent, second.publish(), origin);
    meeting.leave(first.agent);
    expect(meeting.arrive(first.agent, first.publish(), origin)).toBe(false);
    expect(meeting.isConcluded(first.agent)).toBe(false);
    expect(meeting.leave(second.agent).generic.get(first.agent)).toBe(1);
  });

  test("refuses to be attended twice or left early", () => {
    const [first] = pair();
    const meeting = new ExecutionBarrier(2);
    expect(() => meeting.leave(first.agent)).toThrow("left before all arrived");
    meeting.arrive(first.agent, first.publish(), origin);
    expect(() => meeting.arrive(first.agent, first.publish(), origin)).toThrow("arrived twice");
    expect(() => meeting.leave(first.agent)).toThrow("left before all arrived");
  });
});

test("a place in words", () => {
  expect(placeText({ thread: "main", axes: [], block: [], iterations: [] })).toBe("thread main");
  const deep = { thread: "load", axes: ["i", "j"], block: [3, 0], iterations: [5, 2], warp: 1 };
  expect(placeText(deep)).toBe("thread load of block (i = 3, j = 0), iteration 5.2, warp 1");
});
