/** How long placing takes, in time of the processor, with room for busy machines. */
import { describe, test } from "vitest";
import {
  flashAttention,
  matmulWithEpilogue,
  rowSoftmax,
  weightOnlyMatmul,
} from "./support/placed-kernels.ts";
import { longKernel } from "./support/long-kernel.ts";
import { expectGrowth, expectWithin } from "./support/processor-time.ts";
import type { Kernel } from "../src/ir/node.ts";
import { defaultTarget } from "../src/targets/target.ts";
import { placeKernel } from "../src/layout/plan/place.ts";

/** Milliseconds that placing a kernel takes once the code is warm, and how much more is allowed. */
const allowed = 50;
const slack = 6;

const place = (kernel: Kernel) => () => placeKernel(kernel, defaultTarget);

describe("kernels as users write them", () => {
  const kernels = { flashAttention, matmulWithEpilogue, rowSoftmax, weightOnlyMatmul };
  test.each(Object.entries(kernels))("%s", (_, make) => {
    expectWithin(allowed * slack, place(make().kernel));
  });
});

test("time grows nearly as the number of ops", () => {
  // Four times the ops; far from the sixteen times of quadratic growth.
  expectGrowth(9, place(longKernel(1_500)), place(longKernel(6_000)));
});
