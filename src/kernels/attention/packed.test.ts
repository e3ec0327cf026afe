/** Sequences of different lengths one behind the other, against float64 for each of them alone. */
import { describe, expect, test } from "vitest";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { hasPtxas } from "../../../test/ptxas.ts";
import { checkPacked } from "../../../test/support/packed-attention.ts";
import type { PackedCase } from "../../../test/support/packed-attention.ts";
import { bf16, f32, i32 } from "../../formats/dtype.ts";
import { array, dim } from "../../lang/index.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { numbersOf } from "../../../test/support/attention-reference.ts";
import { open } from "../../runtime/open.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { attention } from "./attention.ts";
import { attentionBackward } from "./backward.ts";

const offsets = { q: i32, k: i32 } as const;

async function check(kind: "simulator" | "emulator", one: PackedCase): Promise<void> {
  const device = await open(kind, { onNotes: () => undefined });
  await checkPacked(device, one);
  device.dispose();
}

const ragged = [
  [3, 5],
  [0, 4],
  [70, 33],
  [5, 0],
  [20, 150],
] as const;

const cases: { readonly [name: string]: PackedCase } = {
  whole: { lengths: ragged, rest: [2, 3], heads: [2, 1, 16, 16] },
  causal: { lengths: ragged, rest: [0, 0], heads: [2, 2, 16, 16], causal: true },
  "in one order, causal": {
    ...{ lengths: ragged, rest: [0, 1], heads: [2, 1, 16, 16], causal: true },
    deterministic: true,
  },
  "plain, in a window": {
    ...{ lengths: ragged, rest: [1, 0], heads: [2, 1, 16, 16], window: { left: 20 } },
    configuration: { kernel: "plain", rows: 32, columns: 32 },
    gradients: { kernel: "plain", rows: 32, columns: 32 },
  },
};

describe.each(Object.entries(cases))("%s", (_, one) => {
  test("is right on the simulator", async () => {
    await check("simulator", one);
  });
});

test("is right on the emulator", async () => {
  await check("emulator", {
    ...{
      lengths: [
        [3, 5],
        [66, 130],
      ],
      rest: [1, 1],
      heads: [1, 1, 16, 16],
      causal: true,
    },
    deterministic: true,
  });
});

describe("what is no number in one sequence stays there", () => {
  const lengths = [70, 3, 40];
  const [h, d] = [2, 16];
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const starts = fromNumbers(i32, [4], [0, 70, 73, 113]);
  const shape = [1, total, h, d];
  const ordinary = numbersOf(total * h * d, 3);
  // The second sequence, all of it.
  const spoilt = ordinary.map((value, index) => {
    const row = Math.floor(index / (h * d));
    return row >= 70 && row < 73 ? NaN : value;
  });
  test.each(["simulator", "emulator"] as const)("on the %s", async (kind) => {
    using device = await open(kind, { onNotes: () => undefined });
    const op = attention({
      ...{ q: bf16, k: bf16, v: bf16, offsets },
      configuration: { kernel: "specialised", consumers: 2, columns: 32, stages: 2 },
    });
    const outOf = async (values: readonly number[]) => {
      const given = fromNumbers(bf16, shape, values);
      const arrays = { q: given, k: given, v: given, qOffsets: starts, kOffsets: starts };
      return toNumbers((await device.run(op, arrays)).out);
    };
    const [wanted, found] = [await outOf(ordinary), await outOf(spoilt)];
    const others = (index: number) => {
      const row = Math.floor(index / (h * d));
      return row < 70 || row >= 73;
    };
    const kept = (values: ArrayLike<number>) => Array.from(values).filter((_, i) => others(i));
    expect(kept(found)).toEqual(kept(wanted));
    expect(
      Array.from(found).filter((value, index) => !others(index) && !Number.isNaN(value)),
    ).toEqual([]);
  });
});

test("what does not go with offsets is refused", () => {
  const given = { q: bf16, k: bf16, v: bf16, offsets };
  const bias = array(f32, [1, dim("h"), dim("s"), dim("t")]);
  const codeOf = (make: () => unknown): string => {
    try {
      make();
    } catch (error) {
      if (error instanceof TilewrightError) return error.code;
    }
    return "none";
  };
  expect(codeOf(() => attention({ ...given, bias }))).toBe("TW9902");
  const batches = array(bf16, [dim("b"), dim("s"), dim("h"), dim("d")]);
  expect(codeOf(() => attention({ ...given, q: batches }))).toBe("TW9902");
  const short = { q: array(i32, [3]), k: array(i32, [4]) };
  expect(codeOf(() => attention({ ...given, offsets: short }))).toBe("TW9902");
  const sizes = { s: 8, t: 8, h: 1, kv: 1, d: 16, e: 16, ends: 0 };
  expect(codeOf(() => attention(given).plan(sizes))).toBe("TW9902");
});

test.skipIf(!hasPtxas)("no registers are spilled, no products serialised", () => {
  const given = { q: bf16, k: bf16, v: bf16, causal: true, offsets };
  const sizes = { s: 16384, t: 16384, h: 16, kv: 2, d: 128, e: 128, ends: 17 };
  const kernels = [
    ...attention({ ...given, logSumExp: true }).kernels(sizes),
    ...attentionBackward(given).kernels(sizes),
  ];
  expect(assemblyProblems(kernels)).toEqual([]);
});
