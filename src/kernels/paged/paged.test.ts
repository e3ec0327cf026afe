/**
 * Attention to a paged cache against float64. The bound is that of attention: powers are rounded to the format of q, and
 * results to theirs, each at most 2⁻⁸ of the largest value for bf16; FP8 is read exactly.
 */
import { afterAll, beforeAll, describe, test } from "vitest";
import type { Device } from "../../device/device.ts";
import { f16, f8e4m3fn, f8e5m2 } from "../../formats/dtype.ts";
import { open } from "../../runtime/open.ts";
import { checkPaged } from "../../../test/support/paged-check.ts";
import type { PagedCase } from "../../../test/support/paged-reference.ts";
import type { PagedConfiguration } from "./configuration.ts";

const small: PagedConfiguration = { rows: 16, warps: 1, columns: 16, stages: 2, ranges: 3 };

const cases: readonly PagedCase[] = [
  { name: "one sequence", lengths: [40], heads: [4, 1, 16, 16], size: 16, configuration: small },
  {
    name: "ragged, some empty",
    lengths: [0, 1, 33, 0, 70, 16],
    heads: [4, 2, 16, 16],
    size: 16,
    configuration: small,
  },
  {
    name: "pages of 32, tiles of parts of them",
    lengths: [100, 31],
    heads: [2, 1, 16, 32],
    size: 32,
    configuration: small,
  },
  {
    name: "tiles of several pages",
    lengths: [90, 5],
    heads: [2, 1, 16, 16],
    size: 16,
    configuration: { ...small, columns: 64 },
  },
  {
    name: "groups of 3",
    lengths: [45, 20],
    heads: [6, 2, 24, 16],
    size: 16,
    configuration: small,
  },
  {
    name: "some tokens, causal",
    lengths: [45, 20, 2],
    s: 5,
    heads: [4, 2, 16, 16],
    size: 16,
    causal: true,
    configuration: { ...small, ranges: 2 },
  },
  {
    name: "a window",
    lengths: [150, 20, 0],
    s: 3,
    heads: [2, 2, 16, 16],
    size: 16,
    causal: true,
    window: { left: 37 },
    configuration: small,
  },
  {
    name: "64 rows",
    lengths: [100, 7],
    s: 40,
    heads: [4, 2, 16, 16],
    size: 32,
    causal: true,
    configuration: { rows: 64, warps: 4, columns: 32, stages: 2, ranges: 3 },
  },
  {
    name: "capped and scaled, f16",
    lengths: [64],
    heads: [2, 1, 16, 16],
    size: 64,
    dtype: f16,
    softCap: 2,
    scale: 0.4,
    configuration: small,
  },
  {
    name: "FP8 with scales",
    lengths: [50, 17],
    heads: [4, 2, 32, 32],
    size: 16,
    kept: f8e4m3fn,
    scales: true,
    configuration: small,
  },
  {
    name: "FP8 of the other kind",
    lengths: [50],
    heads: [4, 2, 32, 32],
    size: 16,
    kept: f8e5m2,
    dtype: f16,
    configuration: small,
  },
  { name: "what is chosen", lengths: [130, 3], heads: [8, 2, 64, 64], size: 16 },
];

describe.each(["simulator", "emulator"] as const)("on the %s", (where) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(where);
  });
  afterAll(() => {
    device.dispose();
  });
  test.each(cases)("$name", async (one) => {
    await checkPaged(device, one);
  });
});
