/** Promises about integers: what the compiler makes of them, and what happens where they do not hold. */
import { describe, expect, test } from "vitest";
import {
  assumeBelow,
  assumeBetween,
  assumeMultipleOf,
  cdiv,
  compileAhead,
  dim,
  f32,
  fromNumbers,
  i16,
  i32,
  i64,
  i8,
  kernel,
  loop,
  open,
  scalar,
  slice,
  tensor,
  toNumbers,
  u32,
  u64,
  u8,
  when,
} from "tilewright";
import type { DeviceName, KernelDefinition, Scalar } from "tilewright";
import { TilewrightError } from "../support/diagnostics.ts";

const n = dim("n", { multipleOf: 64 });

/** Copies 64 numbers from a start that memory holds. */
function copyFrom(promise: (start: Scalar<"i32">) => Scalar<"i32">): KernelDefinition {
  return kernel(
    {
      name: "copy_from",
      inputs: { x: tensor(f32, [n]), starts: tensor(i32, [1]) },
      outputs: { out: tensor(f32, [64]) },
    },
    ({ x, starts, out }) => {
      out.store(x.at(slice(promise(starts.at(0).loadScalar()), 64)).load());
    },
  );
}

describe("of a start that memory holds", () => {
  const whole = dim("whole", { multipleOf: 512 });
  const ptxOf = (promise: (start: Scalar<"i32">) => Scalar<"i32">): string =>
    compileAhead(
      kernel(
        {
          name: "wide",
          inputs: { x: tensor(f32, [whole]), starts: tensor(i32, [1]) },
          outputs: { out: tensor(f32, [512]) },
        },
        ({ x, starts, out }) => {
          out.store(x.at(slice(promise(starts.at(0).loadScalar()), 512)).load());
        },
      ),
      "sm_90a",
    ).ptx;

  test("a divisor makes loads wide", () => {
    expect(ptxOf((start) => start)).not.toMatch(/ld\.global\S*\.v/);
    expect(ptxOf((start) => assumeMultipleOf(start, 6))).toMatch(/ld\.global\S*\.v2/);
    expect(ptxOf((start) => assumeMultipleOf(start, 12))).toMatch(/ld\.global\S*\.v4/);
  });

  test("bounds make tests go", () => {
    const divided = (start: Scalar<"i32">) => assumeMultipleOf(start, 512);
    expect(ptxOf(divided)).toContain("setp");
    const bounded = (start: Scalar<"i32">) => assumeBelow(assumeBetween(start, 0, 2 ** 20), whole);
    expect(ptxOf((start) => bounded(divided(start)))).not.toContain("setp");
    expect(ptxOf((start) => divided(bounded(start)))).not.toContain("setp");
  });

  test("nothing of it is tested by code for GPUs", () => {
    expect(ptxOf((start) => assumeMultipleOf(start, 64))).not.toMatch(/trap|rem\./);
  });
});

async function codeOf(
  name: DeviceName,
  run: (device: Awaited<ReturnType<typeof open>>) => Promise<unknown>,
): Promise<TilewrightError | undefined> {
  const device = await open(name, { onFindings: () => undefined });
  try {
    await run(device);
    return undefined;
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  } finally {
    device.dispose();
  }
}

describe.each(["simulator", "emulator"] as const)("on the %s", (name) => {
  const numbers = fromNumbers(
    f32,
    [128],
    Array.from({ length: 128 }, (_, index) => index),
  );
  const kept = (start: Scalar<"i32">): Scalar<"i32"> =>
    assumeBelow(assumeBetween(assumeMultipleOf(start, 16), 0, 112), n);

  test("a promise that holds changes no result", async () => {
    const device = await open(name);
    try {
      const starts = fromNumbers(i32, [1], [48]);
      const { out } = await device.run(copyFrom(kept), { x: numbers, starts });
      expect([...toNumbers(out ?? numbers)]).toEqual(
        Array.from({ length: 64 }, (_, index) => index + 48),
      );
    } finally {
      device.dispose();
    }
  });

  test.each([
    ["a multiple of 16", 8],
    ["a number from 0 to 112", -16],
    ["a number from 0 to 112", 128],
  ])("one that does not is told: %s, %i", async (text, start) => {
    const error = await codeOf(name, (device) =>
      device.run(copyFrom(kept), { x: numbers, starts: fromNumbers(i32, [1], [start]) }),
    );
    expect(error?.code).toBe("TW3026");
    expect(error?.message).toContain(`a number is said to be ${text}, and is not`);
    expect(error?.position?.file).toContain("assume.test.ts");
  });

  test("a named size is one of the launch", async () => {
    const below = kernel(
      {
        name: "below",
        grid: { i: cdiv(n, 64) },
        inputs: { x: tensor(f32, [n]), ids: tensor(i64, [n]) },
        outputs: { out: tensor(f32, [n]) },
      },
      ({ i, x, ids, out }) => {
        const here = slice(i.mul(64), 64);
        out
          .at(here)
          .store(x.at(assumeBelow(assumeBetween(ids.at(here).load(), 0n, 2n ** 31n), n)).load());
      },
    );
    const ids = (last: number): readonly number[] =>
      Array.from({ length: 128 }, (_, index) => (index === 127 ? last : 127 - index));
    const run = (last: number) =>
      codeOf(name, async (device) => {
        const { out } = await device.run(below, {
          x: numbers,
          ids: fromNumbers(i64, [128], ids(last)),
        });
        expect([...toNumbers(out)]).toEqual(ids(last));
      });
    expect(await run(0)).toBeUndefined();
    expect((await run(128))?.code).toBe("TW3026");
  });

  test.each([
    { dtype: i8, right: -96n, wrong: -95n },
    { dtype: u8, right: 240n, wrong: 241n },
    { dtype: i16, right: -32768n, wrong: 24n },
    { dtype: i32, right: -32n, wrong: 17n },
    { dtype: u32, right: 2n ** 32n - 16n, wrong: 2n ** 31n + 1n },
    { dtype: i64, right: -(2n ** 60n), wrong: 2n ** 60n + 1n },
    { dtype: u64, right: 2n ** 63n, wrong: 2n ** 63n + 8n },
  ])("tiles and scalars of $dtype.name", async ({ dtype, right, wrong }) => {
    const both = kernel(
      {
        name: "both",
        inputs: { x: tensor(dtype, [40]) },
        outputs: { out: tensor(dtype, [40]) },
      },
      ({ x, out }) => {
        const first = assumeMultipleOf(x.at(0).loadScalar(), 16);
        out.store(assumeBetween(assumeMultipleOf(x.load(), 16), right, right).maximum(first));
      },
    );
    const holding = (last: bigint) =>
      fromNumbers(
        dtype,
        [40],
        Array.from({ length: 40 }, (_, at) => (at === 37 ? last : right)),
      );
    const run = (last: bigint) => codeOf(name, (device) => device.run(both, { x: holding(last) }));
    expect(await run(right)).toBeUndefined();
    expect((await run(wrong))?.code).toBe("TW3026");
  });

  test("what does not run promises nothing", async () => {
    const guarded = kernel(
      {
        name: "guarded",
        inputs: { at: scalar(i32), times: scalar(i32) },
        outputs: { out: tensor(i32, [1]) },
      },
      ({ at, times, out }) => {
        out.at(0).store(0);
        when(at.lt(4), () => {
          out.at(0).store(assumeBetween(at, 0, 3));
        });
        loop(times, () => {
          out.at(0).store(assumeMultipleOf(at, 2));
        });
      },
    );
    const run = (at: number, times: number) =>
      codeOf(name, (device) => device.run(guarded, { at, times }));
    expect(await run(9, 0)).toBeUndefined();
    expect((await run(9, 1))?.code).toBe("TW3026");
    expect((await run(-1, 0))?.code).toBe("TW3026");
  });
});
