/** What the tuner takes for right and for wrong, and what it refuses to try, on the simulator that plays a GPU. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { Device } from "../device/device.ts";
import { f32, f64, i32 } from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import { tensor, cdiv, dim, kernel, slice } from "../lang/index.ts";
import type { Tile } from "../lang/index.ts";
import { SimulatorBackend } from "../runtime/simulator-backend.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { tunable } from "./tunable.ts";
import { tune } from "./tune.ts";

class PlayedGpu extends SimulatorBackend {
  readonly board = { name: "NVIDIA H200", driver: "CUDA 13.0" };
}

const n = dim("n");
const quick = { rounds: 6, launches: 2, cases: [{ n: 512 }] };

/** Three choices, of which each makes something of x. */
function mapped(dtype: DType, make: (x: Tile<"f32">, span: number) => Tile<"f32">) {
  const format = dtype as typeof f32;
  return tunable({
    ...{ name: "mapped", choices: { span: [64, 128, 256] } },
    make: ({ span }) =>
      kernel(
        {
          ...{ name: `mapped_${span}`, grid: { i: cdiv(n, span) } },
          ...{ inputs: { x: tensor(format, [n]) }, outputs: { out: tensor(format, [n]) } },
        },
        ({ i, x, out }) => {
          const here = slice(i.mul(span), span);
          out.at(here).store(make(x.at(here).load(), span));
        },
      ),
  });
}

let device: Device;
beforeEach(() => {
  device = new Device(new PlayedGpu({ checks: false }));
});
afterEach(() => {
  expect(device.leaks).toEqual([]);
  device.dispose();
});

/** Choices that were found wrong. */
async function wrongOnes(operation: Parameters<typeof tune>[1]): Promise<readonly unknown[]> {
  const { cases } = await tune(device, operation, quick);
  return (cases[0]?.lines ?? []).flatMap((line) =>
    "rejected" in line && line.rejected === "wrong" ? [line.choice["span"]] : [],
  );
}

test("a large integer that is off by one is wrong, and so is f64 by more than its last bits", async () => {
  const large = mapped(i32, (x, span) => x.mul(0).add(span === 256 ? 1_000_000_001 : 1e9));
  expect(await wrongOnes(large)).toEqual([256]);
  const precise = mapped(f64, (x, span) => x.mul(0).add(span === 256 ? 1 + 1e-7 : 1));
  expect(await wrongOnes(precise)).toEqual([256]);
});

test("infinities and numbers whose squares are infinite are right where they are the same", async () => {
  expect(await wrongOnes(mapped(f32, (x) => x.mul(0).add(1).div(0)))).toEqual([]);
  const huge = mapped(f32, (x, span) => x.mul(1e30).mul(span === 256 ? 1 + 1e-6 : 1));
  expect(await wrongOnes(huge)).toEqual([]);
});

test.each([1e200, 1e-200, 1.7e308, 4e-320])(
  "f64 of about %d, whose squares there are not, is compared as any other",
  async (size) => {
    const off = (by: number) =>
      mapped(f64, (x, span) => x.mul(0).add(size * (span === 256 ? by : 1)));
    expect(await wrongOnes(off(1))).toEqual([]);
    // Of the least numbers there are some thousands alone.
    expect(await wrongOnes(off(size < 1e-310 ? 0.9 : 1 - 1e-7))).toEqual([256]);
  },
);

test("large and small blocks of numbers are one whole", async () => {
  const numbers = Float64Array.from({ length: 8192 }, (_, at) => (at < 4096 ? 1e200 : 1e-200));
  const scaled = (by: number) => mapped(f64, (x, span) => x.mul(span === 256 ? by : 1));
  const tried = async (by: number): Promise<readonly unknown[]> => {
    const inputs = () => ({ x: fromNumbers(f64, [8192], numbers) });
    const { cases } = await tune(device, scaled(by), { ...quick, cases: [{ n: 8192 }], inputs });
    return (cases[0]?.lines ?? []).filter((line) => "rejected" in line);
  };
  expect(await tried(1 + 1e-14)).toEqual([]);
  expect(await tried(1 + 1e-7)).toHaveLength(1);
});

test("integers that a first choice does not write are found, and others are not held against it", async () => {
  const partly = tunable({
    ...{ name: "partly", choices: { span: [128, 512] } },
    make: ({ span }) =>
      kernel(
        {
          ...{ name: `partly_${span}`, inputs: { x: tensor(i32, [n]) } },
          outputs: { out: tensor(i32, [n]) },
        },
        ({ x, out }) => {
          const here = slice(0, span);
          out.at(here).store(x.at(here).load());
        },
      ),
  });
  expect(await wrongOnes(partly)).toEqual([128]);
});

test("arrays that are updated are as they were given in every run", async () => {
  const added = (factor: number) =>
    tunable({
      ...{ name: "added", choices: { span: [64, 128, 256] } },
      make: ({ span }) =>
        kernel(
          {
            ...{ name: `added_${span}`, grid: { i: cdiv(n, span) } },
            ...{ inputs: { x: tensor(f32, [n]) }, inouts: { y: tensor(f32, [n]) } },
          },
          ({ i, x, y }) => {
            const here = slice(i.mul(span), span);
            const by = span === 256 ? factor : 1;
            y.at(here).store(y.at(here).load().add(x.at(here).load().mul(by)));
          },
        ),
    });
  expect(await wrongOnes(added(1))).toEqual([]);
  expect(await wrongOnes(added(2))).toEqual([256]);
});

test("inputs and cases that do not fit are refused before anything is tried", async () => {
  const operation = mapped(f32, (x) => x);
  const numbers = (count: number) => fromNumbers(f32, [count], new Float32Array(count));
  const refusals: readonly (readonly [object, string])[] = [
    [{ inputs: () => ({ X: numbers(512) }) }, "found:    X"],
    [{ inputs: () => ({ x: numbers(51) }) }, "expected: x of f32[512]"],
    [{ inputs: () => ({ x: 5 }) }, "found:    5"],
    [{ inputs: () => 5 }, "arrays and values by name"],
    [{ cases: [] }, "an empty list"],
    [{ cases: [{ n: 512 }, { n: 1.5 }] }, '{"n":1.5}'],
  ];
  for (const [options, words] of refusals)
    await expect(tune(device, operation, { ...quick, ...options })).rejects.toThrow(words);
});

test("a bucket that is no sizes by name is refused, not kept", async () => {
  for (const bucket of [() => 5, () => ({ n: 1.5 }), () => undefined]) {
    const operation = tunable({
      ...{ name: "mine", choices: { span: [128] }, bucket: bucket as never },
      make: () => kernel({ name: "mine", outputs: { out: tensor(f32, [n]) } }, () => undefined),
    });
    const told = await tune(device, operation, quick).catch((error: unknown) => error);
    expect(told instanceof TilewrightError ? told.code : told).toBe("TW9813");
  }
});

test("a rejection is in words of one line, without places in source files", async () => {
  const operation = mapped(f32, (x, span) => (span === 256 ? x.reshape([-3]) : x));
  const { cases } = await tune(device, operation, quick);
  const line = cases[0]?.lines.find((each) => "rejected" in each);
  const reason = line !== undefined && "reason" in line ? line.reason : "";
  expect(reason).toMatch(/^TW\d{4}: .*; found .*-3/u);
  expect(reason).not.toMatch(/\n|check\.test|TW\d{4}.*TW\d{4}/u);
});
