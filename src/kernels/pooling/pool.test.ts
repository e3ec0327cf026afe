/** Pooling and its gradients against loops in float64, and gradients against differences. */
import { describe, expect, test } from "vitest";
import { everyPlace, placeIn, resultExtents } from "../../../test/support/convolution-reference.ts";
import type { ReferenceSizes } from "../../../test/support/convolution-reference.ts";
import { codeOf, expectClose, randomNumbers } from "../../../test/support/library-checks.ts";
import { takesAll } from "../../../test/support/sample.ts";
import { bf16, bool, f32, i32 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { Device } from "../../device/device.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { pool, poolBackward } from "./pool.ts";

interface Case {
  readonly sizes: ReferenceSizes;
  readonly isLast: boolean;
  readonly includePadding: boolean;
}

/** The elements of each window: its place in the result, and for each tap the place in x. */
function windowsOf({
  sizes,
  isLast,
}: Case): readonly (readonly [out: number, x: Map<number, number>])[] {
  const { batch, channels, input, taps, strides, dilation, before } = sizes;
  const output = resultExtents(sizes);
  const found: (readonly [number, Map<number, number>])[] = [];
  for (let n = 0; n < batch; n += 1)
    for (const at of everyPlace(output))
      for (let c = 0; c < channels; c += 1) {
        const own = new Map<number, number>();
        for (const [number, tap] of everyPlace(taps).entries()) {
          const source = at.map(
            (place, axis) =>
              place * (strides[axis] ?? 1) +
              (tap[axis] ?? 0) * (dilation[axis] ?? 1) -
              (before[axis] ?? 0),
          );
          if (source.every((index, axis) => index >= 0 && index < (input[axis] ?? 0)))
            own.set(number, placeIn(isLast, input, channels, [n, source, c]));
        }
        found.push([placeIn(isLast, output, channels, [n, at, c]), own]);
      }
  return found;
}

function shapeOf({ isLast, sizes: { batch, channels } }: Case, spatial: readonly number[]) {
  return isLast ? [batch, ...spatial, channels] : [batch, channels, ...spatial];
}

function specOf(given: Case, dtype: DType) {
  const { sizes, isLast, includePadding } = given;
  const { taps, strides, dilation, before, after } = sizes;
  return {
    x: tensor(dtype as typeof f32, shapeOf(given, sizes.input)),
    window: taps,
    channels: isLast ? ("last" as const) : ("first" as const),
    ...{ strides, dilation, includePadding },
    padding: before.map((each, axis) => [each, after[axis] ?? 0] as const),
  };
}

async function expectPools(
  device: Device,
  given: Case,
  seed: number,
  label: string,
): Promise<void> {
  const { sizes, includePadding } = given;
  const windows = windowsOf(given);
  const spec = specOf(given, f32);
  // Few numbers, so that windows have several greatest elements.
  const random = new Random(seed);
  const shape = shapeOf(given, sizes.input);
  const count = shape.reduce((all, extent) => all * extent, 1);
  const values = Array.from({ length: count }, () => random.below(7) - 3);
  const x = fromNumbers(f32, shape, values);
  const { out, tap } = await device.run(pool({ ...spec, kind: "max", tap: true }), { x });
  const found = { out: [...toNumbers(out)], tap: [...toNumbers(tap)] };
  const dOut = randomNumbers(f32, shapeOf(given, resultExtents(sizes)), seed + 1, 1);
  const gradients = { max: values.map(() => 0), average: values.map(() => 0) };
  const means = Array.from({ length: windows.length }, () => 0);
  const every = sizes.taps.reduce((all, extent) => all * extent, 1);
  for (const [place, own] of windows) {
    const best = Math.max(...[...own.values()].map((at) => values[at] ?? 0));
    const first = [...own].find(([, at]) => values[at] === best);
    expect(found.out[place], label).toBe(best);
    expect(found.tap[place], label).toBe(first?.[0] ?? -1);
    const divisor = includePadding ? every : Math.max(1, own.size);
    const share = dOut.values[place] ?? 0;
    if (first) gradients.max[first[1]] = (gradients.max[first[1]] ?? 0) + share;
    for (const at of own.values()) {
      means[place] = (means[place] ?? 0) + (values[at] ?? 0) / divisor;
      gradients.average[at] = (gradients.average[at] ?? 0) + share / divisor;
    }
  }
  const average = await device.run(pool({ ...spec, kind: "average" }), { x });
  expectClose(average.out, means, { relative: 4, absolute: 1e-6 });
  const back = { ...spec, kind: "max" } as const;
  const { dx } = await device.run(poolBackward(back), { dOut: dOut.array, tap });
  expectClose(dx, gradients.max, { relative: 8, absolute: 1e-6 });
  const mean = await device.run(poolBackward({ ...spec, kind: "average" }), { dOut: dOut.array });
  expectClose(mean.dx as HostArray, gradients.average, { relative: 8, absolute: 1e-6 });
}

function randomCase(random: Random, rank: number): Case {
  const each = (make: () => number): readonly number[] => Array.from({ length: rank }, make);
  const taps = each(() => 1 + random.below(3));
  const before = taps.map((tap) => random.below(tap));
  return {
    sizes: {
      ...{ batch: 1 + random.below(2), groups: 1, channels: 1 + random.below(9), outputs: 1 },
      input: each(() => 5 + random.below(4)),
      ...{ taps, before, after: before },
      strides: each(() => 1 + random.below(2)),
      dilation: each(() => 1 + random.below(2)),
    },
    isLast: random.uniform() < 0.6,
    includePadding: random.uniform() < 0.5,
  };
}

/** Of every number of axes several, under a schedule each. */
const cases = takesAll ? { simulator: 10, emulator: 5 } : { simulator: 6, emulator: 4 };

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  test("random windows over one to three axes", async () => {
    const random = new Random(61);
    for (let turn = 0; turn < cases[kind]; turn += 1) {
      const device = await open(kind, {
        ...(kind === "simulator" && { schedule: "random", seed: turn }),
      });
      const given = randomCase(random, 1 + (turn % (kind === "emulator" ? 2 : 3)));
      await expectPools(device, given, turn, `seed 61, turn ${turn}: ${JSON.stringify(given)}`);
      device.dispose();
    }
  });
});

test("long windows, formats, and numbers that are none", async () => {
  const device = await open("simulator");
  const wide = pool({ x: tensor(bf16, [1, 40, 3]), kind: "average", window: 40 });
  const x = randomNumbers(bf16, [1, 40, 3], 4, 1);
  const { out } = await device.run(wide, { x: x.array });
  const means = [0, 1, 2].map(
    (channel) => x.values.filter((_, at) => at % 3 === channel).reduce((a, b) => a + b, 0) / 40,
  );
  expectClose(out, means, { relative: 1, absolute: 1e-6 });
  const whole = pool({ x: tensor(i32, [1, 4, 1]), kind: "max", window: 2 });
  const greatest = await device.run(whole, { x: fromNumbers(i32, [1, 4, 1], [-9, -7, 5, 2]) });
  expect([...toNumbers(greatest.out)]).toEqual([-7, 5]);
  const odd = pool({ x: tensor(f32, [1, 4, 1]), kind: "max", window: 2, tap: true });
  const none = await device.run(odd, {
    x: fromNumbers(f32, [1, 4, 1], [NaN, NaN, -Infinity, -Infinity]),
  });
  expect([...toNumbers(none.out)]).toEqual([NaN, -Infinity]);
  expect([...toNumbers(none.tap)]).toEqual([0, 0]);
  device.dispose();
});

test.each(["simulator", "emulator"] as const)(
  "x that lies otherwise than by rows, on the %s",
  async (kind) => {
    const device = await open(kind);
    const strided = tensor(f32, [1, dim("n"), 2], { strides: [8, 1, 4] });
    const spec = { x: strided, kind: "max" as const, window: 2 };
    // The channels lie one after the other: 3 1 4 1 and 5 9 2 6.
    const x = fromNumbers(f32, [1, 4, 2], [3, 1, 4, 1, 5, 9, 2, 6]);
    const { out, tap } = await device.run(pool({ ...spec, tap: true }), { x });
    expect([...toNumbers(out)]).toEqual([3, 9, 4, 6]);
    expect([...toNumbers(tap)]).toEqual([0, 1, 0, 1]);
    const dOut = fromNumbers(f32, [1, 2, 2], [10, 20, 30, 40]);
    const back = poolBackward({ ...spec, x: tensor(f32, [1, 4, 2], { strides: [8, 1, 4] }) });
    const { dx } = await device.run(back, { dOut, tap });
    expect([...toNumbers(dx)]).toEqual([10, 0, 0, 20, 30, 0, 0, 40]);
    device.dispose();
  },
);

test("mistakes are reported", () => {
  const x = tensor(f32, [2, 8, 8, 4]);
  const refused: readonly (readonly [string, () => unknown])[] = [
    ["TW9901", () => pool({ x: tensor(bool, [2, 8, 4]), kind: "max", window: 2 })],
    ["TW9901", () => pool({ x: tensor(i32, [2, 8, 4]), kind: "average", window: 2 })],
    ["TW9901", () => poolBackward({ x: tensor(i32, [2, 8, 4]), kind: "max", window: 2 })],
    ["TW9902", () => pool({ x: tensor(f32, [2, 8]), kind: "max", window: 2 })],
    ["TW9902", () => pool({ x, kind: "max", window: 9 })],
    ["TW9904", () => pool({ x, kind: "least" as never, window: 2 })],
    ["TW9904", () => pool({ x, kind: "max", window: [2, 2, 2] })],
    ["TW9904", () => pool({ x, kind: "max", window: 0 })],
    ["TW9904", () => pool({ x, kind: "max", window: 2, channels: "second" as never })],
    ["TW9904", () => pool({ x, kind: "average", window: 2, tap: true })],
    ["TW1033", () => pool({ x, kind: "max", size: 2 } as never)],
    ["TW1033", () => poolBackward({ x, kind: "max", window: 2, tap: true } as never)],
  ];
  for (const [code, make] of refused) expect(codeOf(make), String(make)).toBe(code);
});
