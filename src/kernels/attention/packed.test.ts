/** Sequences of different lengths one behind the other, against float64 for each of them alone. */
import { describe, expect, onTestFinished, test } from "vitest";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { hasPtxas } from "../../../test/ptxas.ts";
import { checkPacked } from "../../../test/support/packed-attention.ts";
import type { PackedCase } from "../../../test/support/packed-attention.ts";
import { takesAll } from "../../../test/support/sample.ts";
import type { Device } from "../../device/device.ts";
import { bf16, f32, i32 } from "../../formats/dtype.ts";
import { tensor, dim } from "../../lang/index.ts";
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
  "wide heads, in one order, causal": {
    ...{ lengths: ragged, rest: [1, 1], heads: [1, 1, 136, 136], causal: true },
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
        [20, 130],
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
  const [h, d] = [1, 16];
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const starts = fromNumbers(i32, [4], [0, 70, 73, 113]);
  const shape = [1, total, h, d];
  const ordinary = numbersOf(total * h * d, 3);
  const isSpoilt = (index: number): boolean => {
    const row = Math.floor(index / (h * d));
    return row >= 70 && row < 73;
  };
  // The second sequence, all of it.
  const spoilt = ordinary.map((value, index) => (isSpoilt(index) ? NaN : value));
  const given = { q: bf16, k: bf16, v: bf16, offsets };
  const forward = attention({
    ...{ ...given, logSumExp: true },
    configuration: { kernel: "warp-specialized", consumers: 2, columns: 32, stages: 2 },
  });
  const backward = attentionBackward({ ...given, configuration: { kernel: "warp-specialized" } });
  const resultsOf = async (device: Device, values: readonly number[]) => {
    const own = fromNumbers(bf16, shape, values);
    const arrays = { q: own, k: own, v: own, qOffsets: starts, kOffsets: starts };
    const { out, logSumExp } = await device.run(forward, arrays);
    const { dq, dk, dv } = await device.run(backward, { ...arrays, out, logSumExp, dOut: own });
    return { out, dq, dk, dv };
  };
  // What the emulator runs is lowered from what the simulator would run.
  const kinds = takesAll ? (["simulator", "emulator"] as const) : (["emulator"] as const);
  test.each(kinds)("on the %s", async (kind) => {
    const device = await open(kind, { onNotes: () => undefined });
    onTestFinished(() => {
      device.dispose();
    });
    const [wanted, found] = [await resultsOf(device, ordinary), await resultsOf(device, spoilt)];
    for (const name of ["out", "dq", "dk", "dv"] as const) {
      const values = Array.from(toNumbers(found[name]));
      const expectedValues = Array.from(toNumbers(wanted[name]), (value, index) =>
        isSpoilt(index) ? NaN : value,
      );
      expect({ name, values }).toEqual({ name, values: expectedValues });
    }
  });
});

test("what does not go with offsets is refused", () => {
  const given = { q: bf16, k: bf16, v: bf16, offsets };
  const bias = tensor(f32, [1, dim("h"), dim("s"), dim("t")]);
  const codeOf = (make: () => unknown): string => {
    try {
      make();
    } catch (error) {
      if (error instanceof TilewrightError) return error.code;
    }
    return "none";
  };
  expect(codeOf(() => attention({ ...given, bias }))).toBe("TW9902");
  const batches = tensor(bf16, [dim("b"), dim("s"), dim("h"), dim("d")]);
  expect(codeOf(() => attention({ ...given, q: batches }))).toBe("TW9902");
  const short = { q: tensor(i32, [3]), k: tensor(i32, [4]) };
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
