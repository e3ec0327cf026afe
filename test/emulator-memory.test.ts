/**
 * Memory of the emulator while launches are under way on threads: random programs of a device against a model of its arrays,
 * and programs of arrays. `npm run soak -- --work memory` and `--work programs` do the same for long, on real threads.
 */
import { describe, expect, test, vi } from "vitest";
import type { Answer } from "../src/emulator/host-workers/job.ts";
import { Random } from "../src/support/random.ts";
import { withHostTurns } from "./support/clocks.ts";
import { runArrayProgram } from "./support/emulated-programs.ts";
import { runMemorySchedule } from "./support/memory-schedules.ts";
import { PretendedThreads } from "./support/pretended-threads.ts";
import { takesAll } from "./support/sample.ts";

const seeds = (few: number, all: number): readonly number[] =>
  Array.from({ length: takesAll ? all : few }, (_, seed) => seed);

describe("arrays hold what a schedule makes of them", () => {
  test.each(seeds(8, 200))("seed %i", async (seed) => {
    const host = new PretendedThreads(new Random(~seed));
    const { result } = await withHostTurns(
      () => undefined,
      () => runMemorySchedule({ seed, host, steps: 40 }),
    );
    expect(result.launches).toBeGreaterThan(0);
    expect(result.downloads).toBeGreaterThan(0);
  });

  test("where no memory can be shared", async () => {
    vi.stubGlobal("SharedArrayBuffer", undefined);
    const host = new PretendedThreads();
    await runMemorySchedule({ seed: 1, host, steps: 30 }).finally(() => vi.unstubAllGlobals());
    expect(host.opened).toBe(0);
  });

  test("where threads end in the middle", async () => {
    const host = new PretendedThreads(new Random(5));
    let jobs = 0;
    host.onJob = () => (++jobs === 7 ? "ends" : undefined);
    await runMemorySchedule({ seed: 3, host, steps: 40 });
    expect(jobs).toBeGreaterThanOrEqual(7);
  });
});

test("programs of arrays give what they should, on threads", async () => {
  const answers: Answer[] = [];
  // A sum of 65,993 elements; products and convolutions take longer.
  for (const seed of takesAll ? seeds(0, 30) : [3]) {
    const host = new PretendedThreads(new Random(~seed));
    await runArrayProgram({ seed, host, threads: 3, size: 0.5 });
    answers.push(...host.answers);
  }
  expect(answers.length).toBeGreaterThan(0);
  expect(answers).not.toContain(undefined);
});
