/** Runs that would never end, stopped: by steps, by time, by a signal; on the simulator and on the emulator. */
import { describe, expect, test } from "vitest";
import {
  tensor,
  assert,
  constant,
  f32,
  full,
  i32,
  kernel,
  loop,
  open,
  TilewrightError,
  whileLoop,
} from "tilewright";
import { Emulator } from "tilewright/emulator";
import { WorkerPool, EmulatedMemory, emulateWith } from "../src/emulator/index.ts";
import { parsePtx } from "../src/ptx/parser/index.ts";
import type { RunLimits } from "../src/support/run-limits.ts";
import { targets } from "../src/targets/target.ts";
import { runKernel } from "./simulation.ts";

const endless = kernel(
  { name: "endless", grid: { i: 2 }, outputs: { out: tensor(i32, [2]) } },
  ({ i, out }) => {
    out.at(i).store(
      whileLoop(
        constant(i32, 1),
        (v) => v.ne(0),
        (v) => v.mul(3),
      ),
    );
  },
);

const spinning = `.version 8.0
.target sm_80
.address_size 64
.visible .entry spin(.param .u64 flag) {
.reg .b64 %d<2>; .reg .b32 %r<2>;
ld.param.u64 %d0, [flag];
$again: add.u32 %r0, %r1, 1; mov.u32 %r1, %clock; bra $again;
ret;
}`;

/** What a run fails with, and the milliseconds of processor time that took: others have the machine too. */
async function failureOf(
  run: () => unknown,
): Promise<{ readonly error: TilewrightError; readonly spent: number }> {
  const start = process.cpuUsage();
  try {
    await run();
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    const { user, system } = process.cpuUsage(start);
    return { error, spent: (user + system) / 1000 };
  }
  throw new Error("the run came to an end");
}

function emulated(limits: RunLimits, threads = 1): Promise<unknown> {
  const memory = new EmulatedMemory();
  const launch = {
    entry: "spin",
    blocks: [2, 1, 1],
    threads: [64, 1, 1],
    sharedBytes: 0,
    parameters: [new Uint8Array(8)],
  } as const;
  const options = { target: targets.sm_90a, limits, checks: false };
  return emulateWith(new WorkerPool({ threads }), parsePtx(spinning), launch, memory, options);
}

const runners = {
  simulator: (limits: RunLimits) => runKernel(endless, {}, { limits }),
  emulator: (limits: RunLimits) => emulated(limits),
};

describe.each(Object.entries(runners))("on the %s", (name, run) => {
  const stands =
    name === "simulator"
      ? /thread main of block \(i = \d\)(?:, iteration \d+)? is at/
      : /warp \d of block \d.* stands at/;

  test("a limit of steps ends a run, at the same place each time", async () => {
    const first = await failureOf(() => run({ stepLimit: 5000 }));
    const second = await failureOf(() => run({ stepLimit: 5000 }));
    expect(first.error).toMatchObject({ code: "TW3022", expected: "at most 5000 steps" });
    expect(first.error.notes[0]?.message).toMatch(stands);
    expect(second.error.message).toBe(first.error.message);
  });

  test("a limit of time ends a run in time", async () => {
    const { error, spent } = await failureOf(() => run({ timeLimit: 60 }));
    expect(error).toMatchObject({ code: "TW3022", summary: "the run took all its time" });
    expect(error.notes[0]?.message).toMatch(stands);
    // By itself it would never end; what is compiled meanwhile counts too, on a slow machine.
    expect(spent).toBeLessThan(60 + 5000);
  });

  test("a signal ends a run, and timers are on time meanwhile", async () => {
    const controller = new AbortController();
    let ticks = 0;
    const timer = setInterval(() => {
      ticks += 1;
      if (ticks === 5) controller.abort(new Error("the page was closed"));
    }, 20);
    const { error } = await failureOf(() => run({ signal: controller.signal }));
    clearInterval(timer);
    expect(ticks).toBeGreaterThanOrEqual(5);
    expect(error).toMatchObject({
      code: "TW3022",
      summary: "the run was aborted: the page was closed",
    });
  });

  test("a signal that was aborted before stops a run at its first step", async () => {
    const { error } = await failureOf(() => run({ signal: AbortSignal.abort("enough") }));
    expect(error.summary).toBe("the run was aborted: enough");
  });
});

test("what was found before a stop is part of the report", async () => {
  const racing = kernel(
    { name: "racing", threads: ["a", "b"], outputs: { out: tensor(f32, [4]) } },
    ({ out }) => {
      loop(2 ** 31 - 1, () => {
        out.store(full(f32, [4], 1));
      });
    },
  );
  const limits = { stepLimit: 20_000 };
  const { error } = await failureOf(() => runKernel(racing, {}, { limits, schedule: "random" }));
  expect(error.code).toBe("TW3022");
  expect(error.notes.map(({ message }) => message)).toContainEqual(
    expect.stringMatching(/^before that, TW3001/),
  );
});

test("memory that is allocated during a launch has room when the launch is over", async () => {
  const device = await open("emulator");
  const before = device.allocate(f32, [4]);
  const slow = kernel(
    { name: "slow", inputs: { x: tensor(f32, [4]) }, outputs: { out: tensor(f32, [4]) } },
    ({ x, out }) => {
      out.store(loop({ to: 3000, carry: x.load() }, (_, sum) => sum.add(1)));
    },
  );
  const x = { dtype: f32, shape: [4], data: Float32Array.of(1, 2, 3, 4) };
  const running = device.run(slow, { x });
  await new Promise((resolve) => setTimeout(resolve, 5));
  // More than the heap has, so that it must grow.
  const large = device.allocate(f32, [2 ** 19]);
  const { out } = await running;
  expect([...out.data]).toEqual([3001, 3002, 3003, 3004]);
  const copy = await device.download(large);
  expect(copy.data).toHaveLength(2 ** 19);
  for (const each of [before, large]) each.dispose();
  device.dispose();
});

test.each(["simulator", "emulator"] as const)(
  "an assertion that fails ends an endless loop on the %s, and the device goes on",
  async (name) => {
    const device = await open(name);
    const asserting = kernel(
      { name: "asserting", outputs: { out: tensor(i32, [1]) } },
      ({ out }) => {
        out.at(0).store(
          whileLoop(
            constant(i32, 0),
            (c) => c.ge(0),
            (c) => {
              assert(c.lt(1000), "endless");
              return c.add(1).minimum(5000);
            },
          ),
        );
      },
    );
    await expect(device.run(asserting, {})).rejects.toThrow(/TW3012: assertion failed: endless/);
    const fine = kernel({ name: "fine", outputs: { out: tensor(i32, [1]) } }, ({ out }) => {
      out.at(0).store(7);
    });
    expect([...(await device.run(fine, {})).out.data]).toEqual([7]);
    device.dispose();
  },
);

describe("launches of tilewright/emulator", () => {
  const module = new Emulator().load(spinning);
  const shape = { blocks: 1, threads: 32, parameters: [0n] } as const;

  test("take limits", async () => {
    const emulator = new Emulator();
    const { error } = await failureOf(() => emulator.launch(module, { ...shape, stepLimit: 100 }));
    expect(error.code).toBe("TW3022");
    const timed = await failureOf(() => emulator.launch(module, { ...shape, timeLimit: 10 }));
    expect(timed.error.code).toBe("TW3022");
  });

  test.each([
    ["stepLimit", 0],
    ["stepLimit", 1.5],
    ["timeLimit", -1],
    ["timeLimit", Number.NaN],
    ["signal", "now"],
    ["signal", {}],
  ])("refuse %s %j", async (option, value) => {
    const settings = { ...shape, [option]: value };
    const { error } = await failureOf(() => new Emulator().launch(module, settings));
    expect(error.code).toBe("TW4016");
    expect(error.summary).toContain(`${option} of launch`);
  });
});
