/** Sequences of different lengths one behind the other, against float64 for each of them alone. */
import { describe, expect, test } from "vitest";
import { hasPtxas, describeAssembly } from "../../../test/ptxas.ts";
import {
  closeTo,
  expected,
  expectedGradients,
  numbersOf,
  withinMagnitudes,
} from "../../../test/support/attention-reference.ts";
import type { AttentionCase } from "../../../test/support/attention-reference.ts";
import { heldFactors } from "../../ptx/notes/held-factors.ts";
import { bf16, f32, i32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { array, dim } from "../../lang/index.ts";
import { lower } from "../../lower/pipeline.ts";
import { printPtx } from "../../ptx/printer.ts";
import { open } from "../../runtime/open.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { targets } from "../../targets/target.ts";
import { attention } from "./attention.ts";
import { attentionBackward } from "./backward.ts";
import type { AttentionConfiguration, GradientConfiguration } from "./configuration.ts";

interface PackedCase {
  /** Rows and columns of each sequence, and of what lies behind the last. */
  readonly lengths: readonly (readonly [s: number, t: number])[];
  readonly rest: readonly [s: number, t: number];
  readonly heads: readonly [h: number, kv: number, d: number, e: number];
  readonly causal?: boolean;
  readonly window?: { readonly left: number };
  readonly deterministic?: boolean;
  readonly configuration?: AttentionConfiguration;
  readonly gradients?: GradientConfiguration;
}

const bound = 2 ** -7;
const smallest = 2 ** -133;
const offsets = { q: i32, k: i32 } as const;

/** Where each sequence begins, and where the last ends. */
function startsOf(lengths: readonly number[]): readonly number[] {
  return lengths.reduce((starts, length) => [...starts, (starts.at(-1) ?? 0) + length], [0]);
}

function numbersFor({ lengths, rest, heads: [h, kv, d, e] }: PackedCase) {
  const starts = { q: startsOf(lengths.map(([s]) => s)), k: startsOf(lengths.map(([, t]) => t)) };
  const s = (starts.q.at(-1) ?? 0) + rest[0];
  const t = (starts.k.at(-1) ?? 0) + rest[1];
  const drawn = (shape: readonly number[], seed: number) => {
    const values = numbersOf(
      shape.reduce((product, extent) => product * extent, 1),
      seed,
    );
    return { shape, values, array: fromNumbers(bf16, shape, [...values]) };
  };
  return {
    starts,
    sizes: { s, t },
    q: drawn([1, s, h, d], 1),
    k: drawn([1, t, kv, d], 2),
    v: drawn([1, t, kv, e], 3),
    dOut: drawn([1, s, h, e], 4),
  };
}

/** One sequence as a case of its own, and its part of the numbers. */
function sequenceOf(one: PackedCase, numbers: ReturnType<typeof numbersFor>, index: number) {
  const [h, kv, d, e] = one.heads;
  const [s = 0, t = 0] = one.lengths[index] ?? [];
  const [top = 0, left = 0] = [numbers.starts.q[index], numbers.starts.k[index]];
  const part = (name: "q" | "k" | "v" | "dOut", from: number, count: number, width: number) => {
    const values = numbers[name].values.slice(from * width, (from + count) * width);
    const shape = [1, count, ...numbers[name].shape.slice(2)];
    return { shape, values, array: fromNumbers(bf16, shape, [...values]) };
  };
  const alone: AttentionCase = {
    name: `sequence ${index}`,
    sizes: [1, s, t, h, kv, d, e],
    ...(one.causal !== undefined && { causal: one.causal }),
    ...(one.window !== undefined && { window: one.window }),
  };
  const given = {
    ...{
      q: part("q", top, s, h * d),
      k: part("k", left, t, kv * d),
      v: part("v", left, t, kv * e),
    },
    ...{ bias: undefined, sinks: undefined },
  };
  return { alone, given, top, left, dOut: part("dOut", top, s, h * e).values };
}

/** Runs both passes and compares sequence by sequence; what lies behind the last gives 0. */
async function check(kind: "simulator" | "emulator", one: PackedCase): Promise<void> {
  const device = await open(kind, { onNotes: () => undefined });
  const { causal, window, deterministic, configuration, gradients } = one;
  const told = {
    ...{ q: bf16, k: bf16, v: bf16, offsets },
    ...(causal !== undefined && { causal }),
    ...(window !== undefined && { window }),
  };
  const forward = attention({
    ...told,
    logSumExp: true,
    ...(configuration !== undefined && { configuration }),
  });
  const backward = attentionBackward({
    ...told,
    ...(deterministic !== undefined && { deterministic }),
    ...(gradients !== undefined && { configuration: gradients }),
  });
  const numbers = numbersFor(one);
  const { s, t } = numbers.sizes;
  const [h, kv, d, e] = one.heads;
  const list = (values: readonly number[]) => fromNumbers(i32, [values.length], [...values]);
  const arrays = {
    ...{ q: numbers.q.array, k: numbers.k.array, v: numbers.v.array },
    ...{ qOffsets: list(numbers.starts.q), kOffsets: list(numbers.starts.k) },
  };
  const { out, logSumExp } = await device.run(forward, arrays);
  const found = await device.run(backward, { ...arrays, out, logSumExp, dOut: numbers.dOut.array });
  device.dispose();
  const [outs, logarithms] = [toNumbers(out), toNumbers(logSumExp)];
  const slices = { q: toNumbers(found.dq), k: toNumbers(found.dk), v: toNumbers(found.dv) };
  for (const [index, [rows, columns]] of one.lengths.entries()) {
    const { alone, given, top, left, dOut } = sequenceOf(one, numbers, index);
    const wanted = expected(alone, given);
    const part = outs.slice(top * h * e, (top + rows) * h * e);
    withinMagnitudes(part, wanted.out, bound, smallest);
    for (let head = 0; head < h; head += 1)
      closeTo(
        logarithms.slice(head * s + top, head * s + top + rows),
        [...wanted.logSumExp.slice(head * rows, (head + 1) * rows)],
        2 ** -17,
      );
    const sums = expectedGradients(alone, given, dOut);
    const parts = {
      q: slices.q.slice(top * h * d, (top + rows) * h * d),
      k: slices.k.slice(left * kv * d, (left + columns) * kv * d),
      v: slices.v.slice(left * kv * e, (left + columns) * kv * e),
    };
    for (const name of ["q", "k", "v"] as const)
      withinMagnitudes(parts[name], sums[name], 2 * bound, smallest);
  }
  const zeros = (values: Float64Array) => values.every((value) => value === 0);
  const [rows, columns] = one.rest;
  expect(zeros(outs.slice((s - rows) * h * e))).toBe(true);
  expect(zeros(slices.q.slice((s - rows) * h * d))).toBe(true);
  expect(zeros(slices.k.slice((t - columns) * kv * d))).toBe(true);
  expect(zeros(slices.v.slice((t - columns) * kv * e))).toBe(true);
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
  for (const { kernel } of kernels) {
    const { module } = lower(kernel, targets.sm_90a);
    expect(heldFactors(module)).toEqual([]);
    const said = describeAssembly(printPtx(module), "sm_90a");
    expect(said).toContain("0 bytes spill stores, 0 bytes spill loads");
    expect(said).not.toMatch(/C75\d\d|warning/);
  }
});
