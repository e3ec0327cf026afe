/** Segments: rows see columns of their own segment alone, whatever else hides columns, forward and backward. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkForward, checkGradients } from "../../../test/support/attention-checks.ts";
import type { AttentionCase } from "../../../test/support/attention-reference.ts";
import type { Device } from "../../device/device.ts";
import { bf16, f16, f32, i32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { dim, tensor } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { attention } from "./attention.ts";
import { attentionBackward } from "./backward.ts";

/** Tiles of 32 columns, of which all rows see all but for segments: nothing else is compared. */
const whole: AttentionCase = {
  ...{ name: "of warps of their own", sizes: [1, 64, 64, 1, 1, 64, 64] },
  configuration: { kernel: "warp-specialized", consumers: 1, columns: 32, stages: 2 },
};
const odd: AttentionCase = { name: "of odd lengths", sizes: [2, 13, 15, 2, 1, 4, 4], dtype: f32 };

const cases: readonly AttentionCase[] = [
  ...[odd, whole],
  { name: "causal", sizes: [3, 35, 35, 2, 2, 16, 8], dtype: f32, causal: true },
  {
    ...{ name: "in a window, with a bias and a mask", sizes: [2, 33, 39, 2, 1, 8, 8] },
    ...{ dtype: f32, window: { left: 9, right: 4 }, bias: [true, false, true, true] },
    mask: "remainders",
  },
  {
    ...{ name: "of warps of their own, causal, f16", sizes: [1, 70, 70, 2, 2, 64, 64] },
    ...{ dtype: f16, causal: true, kernel: "warp-specialized" },
  },
];

describe.each([
  { name: "simulator", tried: cases },
  { name: "emulator", tried: [odd, whole] },
] as const)("on the $name", ({ name, tried }) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(name, { onNotes: () => undefined });
  });
  afterAll(() => {
    device.dispose();
  });

  test.each(tried)("segments $name", async (one) => {
    await checkForward(device, { ...one, segments: true });
  });

  test.each(tried)("gradients of segments $name", async ({ kernel: _, ...one }) => {
    await checkGradients(device, { ...one, segments: true });
  });
});

test("a row without a key of its segment gives zeros", async () => {
  const device = await open("simulator");
  try {
    const op = attention({ q: bf16, k: bf16, v: bf16, segmentIds: { query: i32, keyValue: i32 } });
    const ones = fromNumbers(bf16, [1, 3, 1, 16], new Float32Array(48).fill(1));
    const { out } = await device.run(op, {
      ...{ q: ones, k: ones, v: ones },
      querySegmentIds: fromNumbers(i32, [1, 3], [4, 9, 5]),
      keyValueSegmentIds: fromNumbers(i32, [1, 3], [4, 5, 5]),
    });
    expect([0, 16, 32].map((at) => toNumbers(out)[at])).toEqual([1, 0, 1]);
  } finally {
    device.dispose();
  }
});

describe("segments are refused", () => {
  const operands = { q: bf16, k: bf16, v: bf16 };
  const codeOf = (make: () => unknown): string | undefined => {
    try {
      make();
      return undefined;
    } catch (error) {
      return error instanceof TilewrightError ? error.code : String(error);
    }
  };

  test("of another format, of another shape, and beside offsets", () => {
    const ids = { query: i32, keyValue: i32 };
    const turned = tensor(i32, [dim("s"), dim("b")]);
    expect(codeOf(() => attention({ ...operands, segmentIds: { ...ids, query: turned } }))).toBe(
      "TW9902",
    );
    // @ts-expect-error segments are of i32
    expect(codeOf(() => attention({ ...operands, segmentIds: { ...ids, query: f32 } }))).toBe(
      "TW9902",
    );
    // @ts-expect-error keys have segments, too
    expect(codeOf(() => attention({ ...operands, segmentIds: { query: i32 } }))).toBeDefined();
    const offsets = { q: i32, k: i32 };
    expect(codeOf(() => attention({ ...operands, segmentIds: ids, offsets }))).toBe("TW9902");
    expect(codeOf(() => attentionBackward({ ...operands, segmentIds: ids }))).toBeUndefined();
  });
});
