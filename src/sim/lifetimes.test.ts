/** What lives longer than the op that made it: elements under another name, phases, knowledge of ended threads. */
import { expect, test } from "vitest";
import { runKernel, schedules } from "../../test/simulation.ts";
import { f32 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import { tensor, barrier, copyAsync, kernel, smem, warps, when } from "../lang/index.ts";
import type { Barrier } from "../lang/index.ts";

const ones = fromNumbers(f32, [8], Array(8).fill(1));
const hundreds = fromNumbers(f32, [8], Array(8).fill(100));

test("a reshaped tile keeps its elements while others are loaded", async () => {
  const k = kernel(
    {
      name: "renames",
      inputs: { x: tensor(f32, [8]), y: tensor(f32, [8]) },
      outputs: { out: tensor(f32, [2, 4]) },
    },
    ({ x, y, out }) => {
      const renamed = x.load().reshape([2, 4]);
      const other = y.load().neg().reshape([2, 4]);
      out.store(renamed.sub(other));
    },
  );
  const run = await runKernel(k, { x: ones, y: hundreds });
  expect(run.numbers("out")).toEqual(Array(8).fill(101));
});

test("warps go on counting the phases that their thread has waited for", async () => {
  const k = kernel({ name: "phases", scratch: { ready: barrier() } }, ({ ready }) => {
    ready.arrive();
    ready.wait();
    ready.arrive();
    warps(() => {
      ready.wait();
    });
  });
  for (const schedule of schedules)
    expect((await runKernel(k, {}, schedule)).findings, schedule.schedule).toEqual([]);
});

/** All warps wait for the first phase and warp 0 for the second; then the thread waits as `wait` says. */
function unevenWarps(wait: (ready: Barrier) => void) {
  return kernel(
    {
      name: "uneven",
      threads: ["waits", "arrives"],
      scratch: { ready: barrier(), seen: barrier({ arrivals: 4 }) },
    },
    ({ waits, arrives, ready, seen }) => {
      arrives(() => {
        ready.arrive();
        seen.wait();
        ready.arrive();
      });
      waits(() => {
        warps((warp) => {
          ready.wait();
          seen.arrive();
          when(warp.eq(0), () => ready.wait());
        });
        wait(ready);
      });
    },
  );
}

test("warps that wait unequally often leave a thread without a next phase", async () => {
  const again = unevenWarps((ready) => ready.wait());
  const never = unevenWarps(() => undefined);
  const named = unevenWarps((ready) => ready.wait({ parity: 1 }));
  for (const schedule of schedules) {
    const { findings } = await runKernel(again, {}, schedule);
    expect(findings.map(({ code }) => code)).toEqual(["TW3021"]);
    expect(findings[0]?.message).toContain("ready");
    for (const fine of [never, named])
      expect((await runKernel(fine, {}, schedule)).findings).toEqual([]);
  }
});

test("a copy that one thread awaited is over for the block, whichever thread ends last", async () => {
  const k = kernel(
    {
      name: "awaits",
      threads: ["loads", "idles"],
      inputs: { x: tensor(f32, [8]) },
      outputs: { out: tensor(f32, [8]) },
      scratch: { buffer: smem(f32, [8]), full: barrier() },
    },
    ({ loads, x, out, buffer, full }) => {
      loads(() => {
        copyAsync(x, buffer, { barrier: full });
        full.wait();
        out.store(buffer.load());
      });
    },
  );
  for (const schedule of schedules) {
    const run = await runKernel(k, { x: ones }, schedule);
    expect(run.findings, schedule.schedule).toEqual([]);
    expect(run.numbers("out")).toEqual(Array(8).fill(1));
  }
});
