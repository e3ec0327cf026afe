/** Pipelines that keep products in flight, and such whose blocks lanes read without writing any. */
import { describe, test } from "vitest";
import {
  accumulator,
  tensor,
  bf16,
  block,
  dot,
  f32,
  fromNumbers,
  kernel,
  pipeline,
} from "tilewright";
import { storeThrough, smem, warpSpecialized, waitGroup, wgmma, zeros } from "tilewright";
import type { KernelDefinition } from "tilewright";
import { requireClean, requireEmulated } from "./run.ts";

const [m, n, deep, steps] = [64, 16, 16, 5];

const numbers = (count: number, seed: number) =>
  Array.from({ length: count }, (_, place) => ((place * 7 + seed) % 9) - 4);
const [a, b] = [numbers(m * deep * steps, 1), numbers(n * deep * steps, 2)];
const product = Array.from({ length: m * n }, (_, place) => {
  const [row, column] = [Math.floor(place / n), place % n];
  let sum = 0;
  for (let k = 0; k < deep * steps; k += 1)
    sum += (a[row * deep * steps + k] ?? 0) * (b[k * n + column] ?? 0);
  return sum;
});
const expected = {
  inputs: {
    a: fromNumbers(bf16, [m, deep * steps], a),
    b: fromNumbers(bf16, [deep * steps, n], b),
  },
  results: { c: product },
};

const spec = {
  inputs: { a: tensor(bf16, [m, deep * steps]), b: tensor(bf16, [deep * steps, n]) },
  outputs: { c: tensor(f32, [m, n]) },
};

const inFlight = (depth: number, delay?: number): KernelDefinition =>
  kernel({ name: "in_flight", ...spec }, ({ a, b, c }) => {
    const sum = pipeline(
      {
        grid: { k: steps },
        inputs: {
          left: ({ k }) => a.at(block(0, m), block(k, deep)),
          right: ({ k }) => b.at(block(k, deep), block(0, n)),
        },
        depth,
        ...(delay !== undefined && { delay }),
        carry: accumulator(f32, [m, n]),
      },
      ({ left, right }, carry) => wgmma(carry, left, right),
    );
    c.store(sum);
  });

const byLanes = kernel({ name: "by_lanes", ...spec }, ({ a, b, c }) => {
  const sum = pipeline(
    {
      grid: { k: steps },
      inputs: {
        left: ({ k }) => a.at(block(0, m), block(k, deep)),
        right: ({ k }) => b.at(block(k, deep), block(0, n)),
      },
      carry: zeros(f32, [m, n]),
    },
    ({ left, right }, carry) =>
      dot(left.load().cast(f32), right.load().cast(f32), { accumulator: carry, precision: "ieee" }),
  );
  c.store(sum);
});

const specialized = kernel(
  {
    name: "warp_specialized",
    threads: ["copy", "compute"],
    ...spec,
    scratch: { result: smem(f32, [2, m, 8]) },
  },
  ({ a, b, c, result }) => {
    warpSpecialized(
      {
        grid: { k: steps },
        inputs: {
          left: ({ k }) => a.at(block(0, m), block(k, deep)),
          right: ({ k }) => b.at(block(k, deep), block(0, n)),
        },
        depth: 3,
      },
      ({ steps: run }) => {
        const sum = run(accumulator(f32, [m, n]), ({ left, right }, carry) =>
          wgmma(carry, left, right),
        );
        storeThrough(result, sum, c, [0, 0]);
        waitGroup(0, { read: true });
      },
    );
  },
);

const kernels: readonly (readonly [string, KernelDefinition])[] = [
  ["depth 1", inFlight(1)],
  ["depth 2", inFlight(2)],
  ["depth 3 and delay 0", inFlight(3, 0)],
  ["depth 4 and delay 2", inFlight(4, 2)],
  ["blocks read by lanes", byLanes],
  ["specialized threads", specialized],
];

describe.each(kernels)("products with %s", (_, definition) => {
  test("are right under twenty schedules", async () => {
    await requireClean(definition, expected, 20);
  });

  test("are right on the emulator", async () => {
    await requireEmulated(definition, expected);
  });
});
