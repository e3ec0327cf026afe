/** Programs and arrays that would never end, stopped; operations of several launches; waits of every kind. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { tensor as arrayOf, f32, fromNumbers, kernel, open, TilewrightError } from "tilewright";
import type { Device } from "tilewright";
import { add, array, greaterEqual, jit, sum, useDevice, whileLoop } from "tilewright/arrays";
import { compilePlan, evaluate, parseGraph, Program } from "tilewright/graph";
import { LimitClock, LimitWatch } from "../src/support/run-limits.ts";
import type { RunLimits } from "../src/support/run-limits.ts";

const text = `func.func @main() -> tensor<i32> {
  %0 = stablehlo.constant dense<1> : tensor<i32>
  %1 = stablehlo.while(%x = %0) : tensor<i32>
    cond {
      %2 = stablehlo.compare GE, %x, %x : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2 = stablehlo.add %x, %x : tensor<i32>
      stablehlo.return %2 : tensor<i32>
    }
  return %1 : tensor<i32>
}`;

async function failureOf(run: () => unknown): Promise<TilewrightError> {
  try {
    await run();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("the run came to an end");
}

function endlessModule() {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("a program is missing");
  return module;
}

/** A loop without an end over an array. */
function endless(x: ReturnType<typeof array>) {
  return whileLoop(
    (state) => greaterEqual(sum(state), -1),
    (state) => add(state, state),
    x,
  );
}

const inc = kernel(
  { name: "inc", inputs: { x: arrayOf(f32, [4]) }, outputs: { out: arrayOf(f32, [4]) } },
  ({ x, out }) => out.store(x.load().add(1)),
);

let device: Device | undefined;

afterEach(async () => {
  await useDevice();
  device?.dispose();
  device = undefined;
});

describe("on the evaluator", () => {
  beforeEach(() => useDevice("evaluator"));

  test("steps are ops, and time is looked at between them", async () => {
    const module = endlessModule();
    const counted = await failureOf(() => evaluate(module, "main", [], { stepLimit: 100 }));
    expect(counted).toMatchObject({ code: "TW3022", expected: "at most 100 steps" });
    const timed = await failureOf(() => evaluate(module, "main", [], { timeLimit: 30 }));
    expect(timed).toMatchObject({ code: "TW3022", expected: "at most 30 ms" });
    const signal = AbortSignal.abort("enough");
    const aborted = await failureOf(() => evaluate(module, "main", [], { signal }));
    expect(aborted.summary).toBe("the run was aborted: enough");
  });

  test("arrays are computed under the limits of who reads them", async () => {
    const x = endless(array([1, 2]));
    expect((await failureOf(() => x.read({ stepLimit: 50 }))).code).toBe("TW3022");
    expect((await failureOf(() => x.values({ timeLimit: 30 }))).code).toBe("TW3022");
    const signal = AbortSignal.abort();
    expect((await failureOf(() => x.read({ signal }))).code).toBe("TW3022");
  });

  test("compiled functions have limits for each call", async () => {
    const limited = jit(endless, { timeLimit: 30 });
    expect((await failureOf(() => limited(array([1])))).code).toBe("TW3022");
    expect((await failureOf(() => limited(array([1])))).code).toBe("TW3022");
  });

  test.each([{ stepLimit: 0 }, { timeLimit: NaN }, { signal: {} }, { limit: 3 }])(
    "%j is refused",
    async (limits) => {
      const given = limits as RunLimits;
      const code = (await failureOf(() => array([1]).read(given))).code;
      expect(["TW4015", "TW4016"]).toContain(code);
    },
  );
});

describe.each(["simulator", "emulator"] as const)("on the %s", (name) => {
  const limits: readonly (readonly [string, () => RunLimits])[] = [
    ["steps", () => ({ stepLimit: 30 })],
    ["time", () => ({ timeLimit: 60 })],
    [
      "a signal",
      () => {
        const controller = new AbortController();
        setTimeout(() => {
          controller.abort("enough");
        }, 60);
        return { signal: controller.signal };
      },
    ],
  ];

  test.each(limits)("a program ends by %s, and the device goes on", async (_, make) => {
    device = await open(name);
    const program = await Program.load(device, compilePlan(endlessModule(), "main"));
    const { code } = await failureOf(() => program.run([], make()));
    expect(code).toBe("TW3022");
    await device.synchronize();
    const x = fromNumbers(f32, [4], [1, 2, 3, 4]);
    expect([...(await device.run(inc, { x })).out.data]).toEqual([2, 3, 4, 5]);
    program.dispose();
    expect(device.leaks).toEqual([]);
  });

  test.each(limits)("arrays end by %s, and others are computed after it", async (_, make) => {
    device = await open(name);
    await useDevice(device);
    const plus = async (value: number): Promise<void> => {
      const sums = add(array([1, 2]), value);
      expect(await sums.values()).toEqual([1 + value, 2 + value]);
      sums.dispose();
    };
    const x = endless(array([1, 2]));
    expect((await failureOf(() => x.read(make()))).code).toBe("TW3022");
    await plus(1);
    const called = jit(endless, make())(array([1, 2]));
    expect((await failureOf(() => called.read())).code).toBe("TW3022");
    await plus(2);
    await useDevice();
    expect(device.leaks).toEqual([]);
  });

  test("a program of short launches leaves the host its turns", async () => {
    device = await open(name);
    const program = await Program.load(device, compilePlan(endlessModule(), "main"));
    // It never ends by itself: that the timer is heard five times is what ends it.
    const controller = new AbortController();
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
      if (turns === 5) controller.abort();
    }, 1);
    const { code } = await failureOf(() => program.run([], { signal: controller.signal }));
    clearInterval(timer);
    expect(code).toBe("TW3022");
    program.dispose();
  });

  test("every wait has limits", async () => {
    device = await open(name);
    const open_ = device;
    const x = await open_.upload(fromNumbers(f32, [4], [1, 2, 3, 4]));
    expect(await open_.element(x, 2, { timeLimit: 1e6 })).toBe(3);
    const signal = AbortSignal.abort();
    const waits: readonly (() => Promise<unknown>)[] = [
      () => open_.element(x, 2, { signal }),
      () => open_.download(x, { signal }),
      () => open_.upload(fromNumbers(f32, [1], [1]), { signal }),
      () => open_.write(x, fromNumbers(f32, [4], [1, 2, 3, 4]), { signal }),
      () => open_.fill(x, 1, { signal }),
      () => open_.zeros(f32, [4], { signal }),
      () => open_.copy(x, x, { signal }),
      () => open_.time(() => undefined, { signal }),
      () => open_.run(inc, { x }, { signal }),
    ];
    for (const wait of waits) expect((await failureOf(wait)).code).toBe("TW3022");
    expect([...(await open_.download(x)).data]).toEqual([1, 2, 3, 4]);
    x.dispose();
  });
});

test("launches that share a time limit have one clock, which starts with the first", async () => {
  const clock = new LimitClock();
  const made = performance.now();
  await new Promise((resolve) => setTimeout(resolve, 20));
  const first = new LimitWatch({ timeLimit: 1e6, clock });
  expect(first.reached(1)).toBeUndefined();
  expect(clock.begin() - made).toBeGreaterThan(15);
  await new Promise((resolve) => setTimeout(resolve, 20));
  const second = new LimitWatch({ timeLimit: 15, clock });
  expect(second.reached(1)?.message).toBe("the run took all its time");
});
