import { describe, expect, test } from "vitest";
import { expectWithin } from "../../test/support/processor-time.ts";
import { Clock } from "./clock.ts";
import type { Epoch } from "./knowledge.ts";
import { AsyncAgents } from "./async-agents.ts";

function agents(): { readonly pool: AsyncAgents; readonly made: () => number } {
  let next = 0;
  return { pool: new AsyncAgents(() => next++), made: () => next };
}

describe("agents of asynchronous operations", () => {
  test("are new while earlier operations may still run", () => {
    const { pool } = agents();
    const first = pool.take("read", Clock.empty);
    const second = pool.take("read", Clock.empty);
    expect(first).toEqual({ agent: 0, count: 1 });
    expect(second).toEqual({ agent: 1, count: 1 });
  });

  test("take their next step once the last is known to be finished", () => {
    const { pool } = agents();
    const first = pool.take("write", Clock.empty);
    const clock = Clock.empty.with(first.agent, first.count);
    expect(pool.take("write", clock)).toEqual({ agent: first.agent, count: 2 });
    expect(pool.take("write", clock).agent).not.toBe(first.agent);
  });

  test("are as many as the pipeline is deep", () => {
    const { pool, made } = agents();
    const depth = 6;
    const running: Epoch[] = [];
    let clock = Clock.empty;
    for (let operation = 0; operation < 1000; operation++) {
      const finished = running.length === depth ? running.shift() : undefined;
      if (finished !== undefined) clock = clock.with(finished.agent, finished.count);
      running.push(pool.take("read", clock));
    }
    expect(made()).toBe(depth);
  });

  test("of reads are reused while writes are never awaited", () => {
    expectWithin(1000, () => {
      const { pool, made } = agents();
      let clock = Clock.empty;
      for (let operation = 0; operation < 10_000; operation++) {
        const read = pool.take("read", clock);
        pool.take("write", clock);
        clock = clock.with(read.agent, read.count);
      }
      expect(made()).toBe(10_001);
    });
  });
});
