/** Runs as spans of time, and who waits for whom. */
import { describe, expect, test } from "vitest";
import { runKernel } from "../../test/simulation.ts";
import { f32 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import { tensor, barrier, copyAsync, kernel, loop, slice, smem } from "../lang/index.ts";
import type { WaitGraph } from "./index.ts";
import { RunTimeline, traceEvents } from "./index.ts";
import type { ScheduleName, Span } from "./index.ts";

const tiles = 4;

const handoff = kernel(
  {
    name: "handoff",
    threads: ["load", "compute"],
    inputs: { x: tensor(f32, [16 * tiles]) },
    outputs: { out: tensor(f32, [16 * tiles]) },
    scratch: { buffer: smem(f32, [tiles, 16]), full: barrier({ count: tiles }) },
  },
  ({ x, out, buffer, full, load, compute }) => {
    load(() => {
      loop(tiles, (tile) => {
        const source = x.at(slice(tile.mul(16), 16));
        copyAsync(source, buffer.at(tile), { barrier: full.at(tile) });
      });
    });
    compute(() => {
      loop(tiles, (tile) => {
        full.at(tile).wait();
        out.at(slice(tile.mul(16), 16)).store(buffer.at(tile).load());
      });
    });
  },
);

const x = fromNumbers(f32, [16 * tiles], new Float64Array(16 * tiles));

async function timelineOf(
  schedule: ScheduleName,
  seed = 0,
  limit?: number,
): Promise<{ readonly timeline: RunTimeline; readonly steps: number }> {
  const timeline = new RunTimeline(limit);
  const { statistics } = await runKernel(handoff, { x }, { schedule, seed, timeline });
  return { timeline, steps: statistics.steps };
}

const named = (spans: readonly Span[], kind: Span["kind"], op: string): readonly Span[] =>
  spans.filter((span) => span.kind === kind && span.op.kind === op);

describe("a timeline", () => {
  const turns = [0, 1, 2, 3].flatMap((seed) => [
    ["random", seed] as const,
    ["adversarial", seed] as const,
  ]);

  test.each([["fixed", 0] as const, ...turns])(
    "under the %s schedule, seed %i, has every step once",
    async (schedule, seed) => {
      const { timeline, steps } = await timelineOf(schedule, seed);
      const taken: number[] = new Array<number>(steps).fill(0);
      const count = (step: number): void => {
        taken[step] = (taken[step] ?? 0) + 1;
      };
      for (const { kind, from, to } of timeline.spans) {
        expect(to).toBeGreaterThan(from);
        expect(to).toBeLessThanOrEqual(steps + 1);
        if (kind === "runs") for (let step = from; step < to; step += 1) count(step);
        // A step that finds that it must wait is the first of the wait.
        else if (kind === "waits") count(from);
      }
      expect(timeline.complete).toBe(true);
      expect(taken).toEqual(new Array(steps).fill(1));
    },
  );

  test.each(turns)(
    "under the %s schedule, seed %i, has each copy end before the wait for it does",
    async (schedule, seed) => {
      const { spans } = (await timelineOf(schedule, seed)).timeline;
      const copies = named(spans, "beside", "copy_async");
      expect(copies.map(({ place }) => place.iterations)).toEqual([[0], [1], [2], [3]]);
      for (const { place, to } of copies) {
        const [passed] = named(spans, "runs", "barrier_wait").filter(
          (span) => String(span.place.iterations) === String(place.iterations),
        );
        expect(passed?.place.thread).toBe("compute");
        expect(passed?.from).toBeGreaterThanOrEqual(to);
      }
    },
  );

  test("says where it was cut off", async () => {
    const { timeline } = await timelineOf("random", 1, 10);
    expect(timeline.spans.length).toBe(10);
    expect(timeline.complete).toBe(false);
  });
});

test("a deadlock tells who waits for whom", async () => {
  const k = kernel(
    { name: "cycle", threads: ["left", "right"], scratch: { ping: barrier(), pong: barrier() } },
    ({ left, right, ping, pong }) => {
      left(() => {
        ping.wait();
        pong.arrive();
      });
      right(() => {
        pong.wait();
        ping.arrive();
      });
    },
  );
  const graphs: WaitGraph[] = [];
  await runKernel(k, {}, { onDeadlock: (graph) => graphs.push(graph) });
  const [graph] = graphs;
  expect(graphs.length).toBe(1);
  expect(graph?.waits.map(({ place, awaited }) => [place.thread, awaited])).toEqual([
    ["left", expect.stringMatching(/^phase 0 of barrier ping/)],
    ["right", expect.stringMatching(/^phase 0 of barrier pong/)],
  ]);
  const [left, right] = graph?.waits ?? [];
  expect(graph?.arrivals).toMatchObject([
    { barrier: "ping", wait: left?.op, threads: [{ thread: "right", keptAt: right?.op }] },
    { barrier: "pong", wait: right?.op, threads: [{ thread: "left", keptAt: left?.op }] },
  ]);
});

describe("trace events", () => {
  test("have every span once, on tracks where none overlap", async () => {
    const { spans } = (await timelineOf("adversarial", 2)).timeline;
    const events = traceEvents(spans).traceEvents;
    const complete = events.filter(({ ph }) => ph === "X");
    expect(complete.map(({ ts, dur }) => [ts, dur])).toEqual(
      spans.map(({ from, to }) => [from, to - from]),
    );
    const ends = new Map<number, number>();
    for (const { tid, ts = -1, dur = 0 } of complete) {
      expect(ts).toBeGreaterThanOrEqual(ends.get(tid) ?? 0);
      ends.set(tid, ts + dur);
    }
    const names = events
      .filter(({ name }) => name === "thread_name")
      .map(({ args }) => args["name"]);
    expect(names).toEqual(expect.arrayContaining(["load", "compute", "load, beside 1"]));
  });

  test("carry the user's line and the iteration", async () => {
    const { spans } = (await timelineOf("fixed")).timeline;
    const copies = traceEvents(spans).traceEvents.filter(
      ({ name, cat }) => name === "copy_async" && cat === "beside",
    );
    expect(copies.map(({ args }) => args["iteration"])).toEqual(["0", "1", "2", "3"]);
    expect(copies[0]?.args["line"]).toMatch(/timeline\.test\.ts:\d+:\d+$/);
  });
});
