/** How long placing takes, in time of the processor, with room for busy machines. */
import { describe, expect, test } from "vitest";
import {
  flashAttention,
  matmulWithEpilogue,
  rowSoftmax,
  weightOnlyMatmul,
} from "./support/placed-kernels.ts";
import { longKernel } from "./support/long-kernel.ts";
import type { Kernel } from "../src/ir/node.ts";
import { defaultTarget } from "../src/targets/target.ts";
import { placeKernel } from "../src/layout/plan/place.ts";

const allowed = 50;
const slack = 6;

function milliseconds(kernel: Kernel): number {
  const before = process.cpuUsage();
  placeKernel(kernel, defaultTarget);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** The quickest of several times, once the code is warm. */
function quickest(kernel: Kernel, times: number): number {
  return Math.min(...Array.from({ length: times }, () => milliseconds(kernel)));
}

describe("kernels as users write them", () => {
  const kernels = { flashAttention, matmulWithEpilogue, rowSoftmax, weightOnlyMatmul };
  test.each(Object.entries(kernels))("%s", (_, make) => {
    expect(quickest(make().kernel, 6)).toBeLessThan(allowed * slack);
  });
});

test("time grows nearly as the number of ops", () => {
  const few = quickest(longKernel(2_500), 2);
  const many = quickest(longKernel(10_000), 1);
  // Four times the ops; far from the sixteen times of quadratic growth.
  expect(many / few).toBeLessThan(9);
});
