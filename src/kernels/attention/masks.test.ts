/**
 * Masks by ranges: every tile that the rules call empty or whole is, by asking the mask of each of its elements; plans count what
 * kernels visit; and results are right, whatever was skipped.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkForward, checkGradients } from "../../../test/support/attention-checks.ts";
import { masks } from "../../../test/support/attention-masks.ts";
import type { MaskName } from "../../../test/support/attention-masks.ts";
import type { AttentionCase } from "../../../test/support/attention-reference.ts";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { hasPtxas } from "../../../test/ptxas.ts";
import type { Device } from "../../device/device.ts";
import { bf16, i32, i64, u32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { open } from "../../runtime/open.ts";
import { attention } from "./attention.ts";
import { attentionBackward } from "./backward.ts";
import type { AttentionConfiguration } from "./configuration.ts";
import type { AttentionSpec } from "./problem.ts";

const operands = { q: bf16, k: bf16, v: bf16 } as const;
const names = Object.keys(masks) as readonly MaskName[];
const small: AttentionConfiguration = {
  ...{ kernel: "warp-specialized", consumers: 1, columns: 32, stages: 2 },
};
const tiny: AttentionConfiguration = { kernel: "plain", rows: 16, columns: 16 };

/** Tiles by what their elements have to say: exact, so at least as many are skipped as ranges can prove. */
function exactCounts(
  name: MaskName,
  [b, s, t, h]: readonly [number, number, number, number],
  { rows, columns }: { readonly rows: number; readonly columns: number },
) {
  const counts = { empty: 0, whole: 0, mixed: 0 };
  const from = (size: number, each: number) =>
    Array.from({ length: Math.ceil(size / each) }, (_, index) => index * each);
  const within = (start: number, each: number, size: number) =>
    Array.from({ length: Math.min(size, start + each) - start }, (_, index) => start + index);
  const kindOf = (batch: number, head: number, top: number, left: number) => {
    let [seen, all] = [0, 0];
    for (let row = top; row < Math.min(s, top + rows); row += 1)
      for (let column = left; column < Math.min(t, left + columns); column += 1, all += 1)
        seen += Number(masks[name].sees({ batch, head, row, column }));
    return seen === all ? "whole" : seen > 0 ? "mixed" : "empty";
  };
  for (const batch of within(0, b, b))
    for (const head of within(0, h, h))
      for (const top of from(s, rows))
        for (const left of from(t, columns)) counts[kindOf(batch, head, top, left)] += 1;
  return counts;
}

describe("plans count tiles", () => {
  const sizes = { b: 2, s: 190, t: 200, h: 2, kv: 1, d: 16, e: 16 };
  const counted = (mask: MaskName) =>
    attention({ ...operands, mask: masks[mask].traced, configuration: tiny })
      .plan(sizes)
      .tiles?.();

  test.each(names)("no more is skipped or taken for whole than there is: %s", (name) => {
    const found = counted(name);
    const exact = exactCounts(name, [2, 190, 200, 2], { rows: 16, columns: 16 });
    if (found === undefined) throw new Error("no counts");
    const { skipped, whole, masked } = found;
    expect(skipped + whole + masked).toBe(exact.empty + exact.whole + exact.mixed);
    expect(skipped).toBeLessThanOrEqual(exact.empty);
    expect(whole).toBeLessThanOrEqual(exact.whole);
  });

  const provable: readonly MaskName[] = ["causal", "prefix", "documents", "lists of documents"];
  test.each([...provable, "by head and batch", "widened"] as const)(
    "ranges find all there is: %s",
    (name) => {
      const exact = exactCounts(name, [2, 190, 200, 2], { rows: 16, columns: 16 });
      expect(counted(name)?.skipped).toBe(exact.empty);
    },
  );

  test("a dilated window is skipped outside, and asked within", () => {
    const { skipped = 0, whole } = counted("dilated") ?? {};
    const outside = exactCounts("dilated", [2, 190, 200, 2], { rows: 16, columns: 16 });
    expect([skipped, whole]).toEqual([outside.empty, 0]);
  });

  test("what may wrap around is asked; the first tile cannot", () => {
    const { skipped, whole } = counted("wrapping") ?? {};
    expect([skipped, whole]).toEqual([0, 4]);
  });

  test.each([
    // 271 and 272 are the same in bf16, and what is computed without a sign or in 64 bits may wrap around.
    ["floats", ({ row, column }) => row.cast(bf16).ge(column.cast(bf16))],
    ["unsigned", ({ row, column }) => row.cast(u32).sub(column.cast(u32)).lt(80)],
    ["wide", ({ row, column }) => row.cast(i64).sub(column.cast(i64)).ge(0)],
  ] as readonly (readonly [string, NonNullable<AttentionSpec["mask"]>])[])(
    "what is computed outside of 32 bits with a sign is asked: %s",
    (_, mask) => {
      const plan = attention({ ...operands, mask, configuration: tiny }).plan({ ...sizes, s: 320 });
      expect(plan.tiles?.()).toEqual({ skipped: 0, whole: 0, masked: 4 * 20 * 13 });
    },
  );

  test("rows that see nothing look at one tile", () => {
    const [rows, columns] = [12, 13];
    const masked = 4 * rows;
    expect(counted("nothing")).toEqual({ skipped: masked * (columns - 1), whole: 0, masked });
  });

  const passes = {
    forward: (spec: AttentionSpec) => attention(spec),
    backward: (spec: AttentionSpec) => attentionBackward(spec),
  };
  test.each(Object.entries(passes))("causal by hand is as causal as told: %s", (_, make) => {
    for (const other of [
      { s: 4096, t: 4096 },
      { s: 300, t: 1000 },
      { s: 1000, t: 300 },
    ]) {
      const own = { ...sizes, ...other, d: 128, e: 128 };
      const byHand = make({ ...operands, mask: masks.causal.traced })
        .plan(own)
        .tiles?.();
      const told = make({ ...operands, causal: true })
        .plan(own)
        .tiles?.();
      expect(byHand).toEqual(told);
      expect(byHand?.skipped).toBeGreaterThan(0);
    }
  });

  test.each([
    // Tiles of 128 rows, eight of a head, where those of 192 would be six.
    ["short tiles of rows", { h: 2, s: 1000, t: 1030, d: 64 }, { whole: 128, masked: 16 }],
    // Of 4096 columns 21 tiles have 192, and the last 64, all of which rows see.
    ["a last tile of columns", { h: 2, s: 128, t: 4096, d: 128 }, { whole: 44, masked: 0 }],
  ])("are of tiles as kernels have them: %s", (_, { h, s, t, d }, { whole, masked }) => {
    const plan = attention(operands).plan({ b: 1, s, t, h, kv: h, d, e: d }, "sm_90a");
    expect(plan.tiles?.()).toEqual({ skipped: 0, whole, masked });
  });

  test("counts take no time with length", () => {
    const long = { ...sizes, s: 1 << 20, t: 1 << 20 };
    const { skipped, whole, masked } =
      attention({ ...operands, mask: masks.causal.traced })
        .plan(long)
        .tiles?.() ?? {};
    expect(masked).toBe(4 * (1 << 13));
    expect(whole).toBe(skipped);
  });
});

/** What the launch that lists tiles writes, as numbers. */
async function listed(device: Device, name: MaskName, offsets: boolean) {
  const sizes = { b: 2, s: 190, t: 200, h: 2, kv: 1, d: 16, e: 16 };
  const told = offsets ? { offsets: { q: i32, k: i32 } } : {};
  const own = offsets ? { ...sizes, b: 1, ends: 4 } : sizes;
  const { b: _, ...packed } = own;
  const plan = attention({
    ...{ ...operands, ...told, mask: masks[name].traced, configuration: tiny },
  }).plan(offsets ? packed : own);
  const [launch] = plan.launches;
  const shape = plan.scratch["visits"]?.shape;
  if (launch === undefined || shape === undefined) throw new Error("no lists");
  const starts = { qOffsets: [0, 90, 90, 170], kOffsets: [0, 60, 100, 190] };
  const arrays = Object.fromEntries(
    Object.entries(starts).map(([each, values]) => [each, fromNumbers(i32, [4], values)]),
  );
  const [batches = 0, heads = 0, blocks = 0, width = 0] = shape;
  const empty = fromNumbers(i32, shape, new Int32Array(batches * heads * blocks * width));
  const given = { ...(offsets && arrays), lists: empty };
  const { lists } = await device.run(launch.kernel, given as never, {
    dimensions: { ...launch.dimensions },
  });
  if (lists === undefined) throw new Error("no lists");
  const numbers = [...toNumbers(lists)];
  return Array.from({ length: numbers.length / width }, (_unused, index) => {
    const [count = 0, ...codes] = numbers.slice(index * width, (index + 1) * width);
    return codes.slice(0, count);
  });
}

describe.each(["simulator", "emulator"] as const)("lists on the %s", (kind) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(kind);
  });
  afterAll(() => {
    device.dispose();
  });

  const tried = kind === "simulator" ? names : (["by head and batch"] as const);
  test.each(tried)("have what the plan counts: %s", async (name) => {
    const lists = await listed(device, name, false);
    const counts = attention({
      ...{ ...operands, mask: masks[name].traced, configuration: tiny },
    })
      .plan({ b: 2, s: 190, t: 200, h: 2, kv: 1, d: 16, e: 16 })
      .tiles?.();
    // Lists that heads and batches share count for each of them.
    const times = (2 * 2 * 12) / lists.length;
    const entries = lists.flat();
    expect(entries.length * times).toBe((counts?.whole ?? NaN) + (counts?.masked ?? NaN));
    for (const codes of lists) expect(codes).toEqual(codes.toSorted((a, b) => a - b));
  });

  test("are of each sequence alone", async () => {
    const lists = await listed(device, "causal", true);
    // Sequences of 90 rows and 60 columns, of none and 40, of 80 and 90, and 20 rows behind the last.
    const causal = (rows: number, columns: number) =>
      Array.from({ length: Math.ceil(rows / 16) }, (_, row) =>
        Array.from({ length: Math.ceil(columns / 16) }, (_unused, column) => column)
          .filter((column) => column <= row)
          .map((column) => 2 * column + (column === row ? 1 : 0)),
      );
    const found = lists.map((codes) => codes.join());
    expect(found.slice(0, 6)).toEqual(causal(90, 60).map((codes) => codes.join()));
    const second = Math.floor(90 / 16) + 2;
    expect(found.slice(second, second + 5)).toEqual(causal(80, 90).map((codes) => codes.join()));
  });
});

const cases: readonly AttentionCase[] = [
  ...names.map((mask): AttentionCase => ({
    ...{ name: mask, mask, configuration: small, kernel: "warp-specialized" },
    sizes: [mask === "by head and batch" ? 2 : 1, 70, 100, 2, 1, 16, 16],
  })),
  { name: "plain", mask: "lists of documents", sizes: [1, 90, 100, 2, 2, 7, 9], kernel: "plain" },
  {
    ...{ name: "with a window", mask: "prefix", sizes: [1, 130, 100, 2, 1, 16, 16] },
    ...{ window: { left: 60, right: 30 }, configuration: { ...small, consumers: 2, workers: 2 } },
  },
];

const backward: readonly AttentionCase[] = [
  ...(["prefix", "by head and batch", "nothing"] as const).map((mask): AttentionCase => ({
    ...{ name: mask, mask, sizes: [2, 70, 200, 2, 1, 16, 16], kernel: "warp-specialized" },
  })),
  ...(["lists of documents", "by head and batch"] as const).map((mask): AttentionCase => ({
    ...{ name: `in order, ${mask}`, mask, sizes: [2, 70, 200, 2, 1, 16, 16] },
    deterministic: true,
  })),
  {
    ...{ name: "in order, with an end", mask: "dilated", sizes: [1, 70, 150, 1, 1, 16, 16] },
    ...{ window: { right: 90 }, deterministic: true },
  },
  ...(["by head and batch", "lists of documents"] as const).map((mask): AttentionCase => ({
    ...{ name: `plain, ${mask}`, mask, sizes: [2, 90, 70, 4, 2, 5, 6] },
    gradients: { kernel: "plain", rows: 16, columns: 16 },
  })),
];

describe.each(["simulator", "emulator"] as const)("results on the %s", (kind) => {
  let device: Device;
  beforeAll(async () => {
    device = await open(kind, { onNotes: () => undefined });
  });
  afterAll(() => {
    device.dispose();
  });
  const isTried = ({ name }: AttentionCase) =>
    kind === "simulator" || ["with a window", "in order, with an end"].includes(name);
  test.each(cases.filter(isTried))("$name", (one) => checkForward(device, one));
  test.each(backward.filter(isTried))("gradients, $name", (one) => checkGradients(device, one));
});

const kernelsOf = {
  forward: (spec: AttentionSpec, sizes: { readonly [name: string]: number }) =>
    attention(spec).kernels(sizes),
  backward: (spec: AttentionSpec, sizes: { readonly [name: string]: number }) =>
    attentionBackward({ ...spec, deterministic: true }).kernels(sizes),
};
test.skipIf(!hasPtxas).each(["forward", "backward"] as const)(
  "no registers are spilled, no products serialised: %s",
  (pass) => {
    const given = { ...operands, mask: masks.prefix.traced };
    const sizes = { b: 4, s: 4096, t: 4096, h: 16, kv: 2, d: 128, e: 128 };
    const kernels = kernelsOf[pass](given, sizes);
    expect(assemblyProblems(kernels)).toEqual([]);
  },
);
