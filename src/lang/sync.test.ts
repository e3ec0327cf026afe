/** Barriers that are asked without waiting: what is ordered by the answer, on the simulator and on the emulator. */
import { expect, test } from "vitest";
import { assembleNow, hasPtxas } from "../../test/ptxas.ts";
import { runKernel, schedules } from "../../test/simulation.ts";
import { f32, i32 } from "../formats/dtype.ts";
import { lower } from "../lower/stages.ts";
import { printPtx } from "../ptx/printer.ts";
import { targets } from "../targets/target.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { barrier, constant, delay, full, kernel, smem, tensor, when, whileLoop } from "./index.ts";

function codeOf(use: () => unknown): string {
  try {
    use();
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
  return "nothing was thrown";
}

/** One thread writes, the other reads: once the test says so, or without heeding it. */
function handedOver(heeds: boolean) {
  return kernel(
    {
      name: "handed_over",
      grid: { i: 1 },
      threads: ["writer", "reader"],
      outputs: { out: tensor(f32, [128]) },
      scratch: { shared: smem(f32, [128]), ready: barrier() },
    },
    ({ out, shared, ready, writer, reader }) => {
      writer(() => {
        shared.store(full(f32, [128], 3));
        ready.arrive();
      });
      reader(() => {
        if (heeds)
          whileLoop(
            constant(i32, 100),
            () => ready.test(0).not(),
            (time) => {
              delay(time);
              return time.add(10);
            },
          );
        else ready.test(0);
        out.store(shared.load());
      });
    },
  );
}

test("a test that says yes orders what came before the arrivals, under every schedule", async () => {
  for (const schedule of schedules) {
    const run = await runKernel(handedOver(true), {}, schedule);
    expect(run.findings).toEqual([]);
    expect(run.numbers("out")).toEqual(Array.from({ length: 128 }, () => 3));
  }
});

test("a test that says no orders nothing", async () => {
  const found: string[] = [];
  for (const schedule of schedules)
    found.push(
      ...(await runKernel(handedOver(false), {}, schedule)).findings.map(({ code }) => code),
    );
  expect(found).not.toEqual([]);
});

test("a wait after a test waits for the phase that it would have waited for", async () => {
  const twice = kernel(
    {
      name: "twice",
      grid: { i: 1 },
      outputs: { out: tensor(i32, [2]) },
      scratch: { ready: barrier() },
    },
    ({ out, ready }) => {
      const before = ready.test(0);
      ready.arrive();
      const after = ready.test(0);
      ready.wait();
      when(
        before,
        () => out.at(0).store(1),
        () => out.at(0).store(0),
      );
      when(
        after,
        () => out.at(1).store(1),
        () => out.at(1).store(0),
      );
    },
  );
  for (const schedule of schedules) {
    const run = await runKernel(twice, {}, schedule);
    expect(run.findings).toEqual([]);
    expect(run.numbers("out")).toEqual([0, 1]);
  }
});

/** Tests a barrier of an array of so many without saying which. */
const kernelOf = (count: number) => () =>
  kernel(
    { name: "unnamed", grid: { i: 1 }, outputs: {}, scratch: { ready: barrier({ count }) } },
    ({ ready }) => {
      ready.test(0);
    },
  );

test("what cannot be tested, and no time, are refused", () => {
  const refused = (use: () => void): string =>
    codeOf(() => kernel({ name: "refused", grid: { i: 1 }, outputs: {} }, use));
  const array = kernelOf(2);
  expect(codeOf(array)).toBe("TW2080");
  expect(refused(() => delay(-1))).toBe("TW1016");
  expect(refused(() => delay(1_000_001))).toBe("TW1016");
  expect(refused(() => delay(0.5))).toBe("TW1016");
});

test.skipIf(!hasPtxas)("the assembler takes tests and delays for every target", () => {
  for (const target of Object.values(targets)) {
    const { module } = lower(handedOver(true).kernel, target);
    const text = printPtx(module);
    expect(text).toContain("mbarrier.test_wait.parity");
    expect(text).toContain("nanosleep.u32");
    expect(assembleNow(text, target.name)).toBe("");
  }
});
