import { describe, expect, test } from "vitest";
import { misplaced } from "../../../test/relayout-oracle.ts";
import { checkPlans, planOf } from "../../../test/relayout-checks.ts";
import { isTaken } from "../../../test/support/sample.ts";
import { bf16, f16, f32, f64, i4, i8 } from "../../formats/dtype.ts";
import {
  coalescedLayout,
  mmaFragment,
  namedLayouts,
  stridedLayout,
} from "../algebra/named-layouts.ts";
import { replicatedLayout } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { parseLayout } from "../algebra/parse-layout.ts";
import { relayoutCost, relayoutCounts, relayoutWeights, wordPermutes } from "./cost.ts";
import { executeRelayout } from "../../../test/support/relayout-execution.ts";
import { planRelayout, relayoutPlans } from "./relayout.ts";
import { scratchLimit } from "./scratch.ts";
import { butterfly, scratchBytes, sourceLane } from "./steps.ts";

const { wgmma, wgmmaRow, wgmmaTransposed, wgmmaLeft8, wgmmaUpcast2, wgmmaUpcast4, splat } =
  namedLayouts;
const { tcgen05, tcgen05Row, tmemNative, wgmmaLeftTf32, wgmmaColumn } = namedLayouts;

const layouts: readonly RegisterLayout[] = [
  wgmma,
  wgmmaTransposed,
  wgmmaLeft8,
  wgmmaLeftTf32,
  wgmmaUpcast2,
  wgmmaUpcast4,
  tcgen05,
  tmemNative,
  stridedLayout(4),
  mmaFragment("right", 16),
  mmaFragment("accumulator", 16, { rows: 2, columns: 2 }),
];

describe("every pair of named layouts", () => {
  const formats = [i4, i8, bf16, f32, f64];
  test.each([
    [[64, 16], layouts],
    [[64, 24], layouts],
    [
      [16, 12],
      [...layouts, wgmmaColumn, replicatedLayout],
    ],
  ])("on [%s]", (shape, tried) => {
    let count = 0;
    for (const source of tried) {
      for (const target of [...tried, coalescedLayout(shape, 4)]) {
        const dtype = formats[count % formats.length] ?? f32;
        const about = `${source.text} to ${target.text} on [${shape.join()}] ${dtype.name}`;
        checkPlans(source, target, shape, dtype, about);
        count += 1;
      }
    }
  });

  test.each(formats)("shared memory without conflicts on [128, 128]: $name", (dtype) => {
    for (const [from, source] of layouts.entries()) {
      for (const [to, target] of layouts.entries()) {
        if (!isTaken(layouts.length * (layouts.length * formats.indexOf(dtype) + from) + to, 3))
          continue;
        const plans = relayoutPlans(source, target, [128, 128], dtype);
        for (const step of plans.flatMap(({ steps }) => steps)) {
          if (step.kind !== "exchange") continue;
          const about = `${source.text} to ${target.text}`;
          expect(step.stores.wavefronts, about).toBe(step.stores.ideal);
          expect(step.loads.wavefronts, about).toBe(step.loads.ideal);
        }
      }
    }
  });
});

describe("kinds", () => {
  const swappedPairs = parseLayout("(L2 L3 L4 R0 W0 W1 | R1 L0 L1)");
  test.each([
    ["an accumulator becomes a left operand", wgmma, wgmma, [64, 128], bf16, "none"],
    ["registers of whole words renamed", wgmma, swappedPairs, [64, 64], f32, "none"],
    ["parts of words", wgmma, swappedPairs, [64, 64], bf16, "registers"],
    ["a copy dropped", wgmmaRow, parseLayout("(L2 L3 L4 L0 W0 W1)"), [64], f32, "registers"],
    ["a copy dropped by warps", wgmmaColumn, parseLayout("(R0 L0 L1 W0)"), [64], f32, "registers"],
    ["blocks turned", wgmma, wgmmaTransposed, [64, 64], bf16, "shuffle"],
    [
      "blocks of 128 rows turned",
      tcgen05,
      namedLayouts.tcgen05Transposed,
      [128, 64],
      f16,
      "shuffle",
    ],
    ["a row of sums gathered", parseLayout("(L0 L1)"), replicatedLayout, [4], f32, "shuffle"],
    ["weights of 8 bits as an operand", wgmmaUpcast2, wgmma, [64, 64], i8, "shuffle"],
    ["weights of 4 bits as an operand", wgmmaUpcast4, wgmma, [64, 64], i8, "shuffle"],
    ["rows to other warps", wgmmaRow, tcgen05Row, [128], f32, "shared"],
    ["the whole accumulator to memory order", wgmma, stridedLayout(4), [64, 64], f32, "shared"],
  ] as const)("%s", (_, source, target, shape, dtype, kind) => {
    expect(planOf(source, target, shape, dtype).kind).toBe(kind);
  });

  test("warps that hold padding alone are given what they lack", () => {
    const cases = [
      ["(R1 R0 W1)", "flat(R0 R2 R1 L0 L1 L3 L4)", [8, 3]],
      ["(R2 R0 R1 W0)", "flat(L0 L1)", [2, 5]],
    ] as const;
    for (const [source, target, shape] of cases) {
      const about = `${source} to ${target}`;
      const kind = checkPlans(parseLayout(source), parseLayout(target), shape, f32, about);
      expect(kind, about).toBe("shared");
    }
  });

  test("a splat goes everywhere; nothing goes to a splat but a single element", () => {
    for (const target of [...layouts, splat]) {
      const spread = planOf(splat, target, [64, 16], bf16);
      expect(spread.kind).toBe("none");
      expect(relayoutCost(spread)).toBe(0);
      expect(misplaced(spread)).toBeUndefined();
    }
    expect(planRelayout(wgmma, splat, [64, 16], bf16)).toBeUndefined();
    const single = planOf(parseLayout("(L0 W0)"), splat, [1], f32);
    expect(single.kind).toBe("shared");
    expect(misplaced(single)).toBeUndefined();
  });

  test("a plan is made once for formats of the same width", () => {
    const first = planOf(wgmma, wgmmaTransposed, [64, 64], bf16);
    expect(planOf(wgmma, wgmmaTransposed, [64, 64], f16)).toBe(first);
    expect(planOf(wgmma, wgmmaTransposed, [64, 64], f32)).not.toBe(first);
  });
});

describe("shuffles", () => {
  test("two lanes trade a register for a lane bit", () => {
    const plan = planOf(parseLayout("(R0 | L0)"), parseLayout("(L0 |)"), [2, 2], f32);
    const keep = { word: 0, lanes: undefined };
    const [select, shuffle, back] = plan.steps;
    expect(plan.steps.length).toBe(3);
    expect(select).toEqual({ kind: "select", bit: 0, zeros: [0, 1], ones: [1, 0] });
    expect(back).toEqual(select);
    if (shuffle?.kind !== "shuffle") throw new Error("no shuffle");
    expect(shuffle.words[0]).toEqual(keep);
    expect(butterfly(shuffle.words[1]?.lanes ?? [])).toBe(1);
    expect(relayoutCost(plan)).toBe(4 * relayoutWeights.select + relayoutWeights.shuffle);
    const lanes = Array.from({ length: 128 }, (_, thread) => [`${thread}a`, `${thread}b`]);
    const after = executeRelayout(plan, lanes);
    expect(after[6]).toEqual(["6a", "7a"]);
    expect(after[7]).toEqual(["6b", "7b"]);
  });

  test("lanes that change places read by index, once a word", () => {
    const rotated = parseLayout("(L1 L2 L0 | R0)");
    const plan = planOf(parseLayout("(L0 L1 L2 | R0)"), rotated, [8, 4], f32);
    expect(relayoutCounts(plan.steps, 32)).toMatchObject({ selects: 0, shuffles: 4 });
    const [step] = plan.steps;
    const lanes = step?.kind === "shuffle" ? step.words[0]?.lanes : undefined;
    expect(butterfly(lanes ?? [])).toBeUndefined();
    // The target's lane 1 holds row 4, which the source's lane 4 does.
    expect(sourceLane(lanes ?? [], 1)).toBe(4);
  });

  test("k pairs of bits need 2^k - 1 rounds for 2^k words", () => {
    const source = parseLayout("(L0 L1 L2 | R0 R1 R2)");
    const target = parseLayout("(R0 R1 R2 | L0 L1 L2)");
    const [near] = relayoutPlans(source, target, [8, 8], f32);
    expect(near?.kind).toBe("shuffle");
    expect(relayoutCounts(near?.steps ?? [], 32)).toMatchObject({ shuffles: 7, selects: 48 });
    expect(relayoutCounts(near?.steps ?? [], 64)).toMatchObject({ shuffles: 14, selects: 96 });
  });

  test("narrow elements travel in whole words", () => {
    const count = (bits: 8 | 16 | 32): number => {
      const dtype = { 8: i8, 16: bf16, 32: f32 }[bits];
      const [near] = relayoutPlans(wgmma, wgmmaTransposed, [64, 64], dtype);
      return relayoutCounts(near?.steps ?? [], bits).shuffles;
    };
    expect([count(32), count(16), count(8)]).toEqual([16, 8, 4]);
  });
});

describe("shared memory", () => {
  test("large tiles go in chunks", () => {
    const plan = planOf(wgmma, tcgen05, [128, 128], f32);
    const [, step] = plan.steps;
    if (step?.kind !== "exchange") throw new Error("no exchange");
    expect(step.chunks.length).toBe(4);
    expect(scratchBytes(plan)).toBe(scratchLimit);
    expect(step.scope).toBe("thread");
    expect(misplaced(plan)).toBeUndefined();
  });

  test("rows that are no whole number of vectors: guarded, in chunks of elements", () => {
    const plan = planOf(stridedLayout(4), wgmma, [128, 48], f32);
    const [, step] = plan.steps;
    if (step?.kind !== "exchange") throw new Error("no exchange");
    expect(step.chunks.map(({ guard }) => guard)).toEqual([
      { first: 0, last: 4096 },
      { first: 4096, last: 6144 },
    ]);
    checkPlans(stridedLayout(4), wgmma, [128, 48], f32, "guarded");
  });

  test("warps that load what they stored wait for themselves only", () => {
    const plans = relayoutPlans(wgmma, wgmmaTransposed, [64, 64], f32);
    const [, step] = plans.at(-1)?.steps ?? [];
    expect(step?.kind === "exchange" ? step.scope : undefined).toBe("warp");
  });

  test.each([
    ["one warp stores for all", "(L0 L1 L2 L3 L4)", "(L1 L0 L2 L3 L4)", [32]],
    ["warps change places", "(L0 L1 L2 L3 L4 W0 W1)", "(L0 L1 L2 L3 L4 W1 W0)", [128]],
  ] as const)("warps that load what others stored wait for all: %s", (_, source, target, shape) => {
    const plans = relayoutPlans(parseLayout(source), parseLayout(target), shape, f32);
    const exchanges = (plans.at(-1)?.steps ?? []).filter((step) => step.kind === "exchange");
    expect(exchanges.map(({ scope }) => scope)).toEqual(["thread"]);
    // An element is stored once, whoever has copies, and loaded by every lane that wants it.
    const instructions = exchanges.map(({ stores, loads }) => [
      stores.instructions,
      loads.instructions,
    ]);
    expect(instructions).toEqual([[Math.max(1, shape[0] / 32), 4]]);
  });

  test("the cost is what the table says", () => {
    const plan = planOf(wgmma, stridedLayout(4), [64, 64], f32);
    const { accesses, wavefronts, barriers } = relayoutCounts(plan.steps, 32);
    // 16 KiB in vectors of 16 bytes: 128 wavefronts and 32 accesses a side, one chunk.
    expect({ accesses, wavefronts, barriers }).toEqual({
      accesses: 64,
      wavefronts: 256,
      barriers: { warp: 0, thread: 2 },
    });
    expect(relayoutCost(plan)).toBe(64 * 0.5 + 256 + 2 * 24);
  });

  test("a permute joins two words; parts of bytes are moved one by one", () => {
    const count = (slots: readonly number[], bits: number) =>
      wordPermutes(slots, 0, slots.length, bits);
    expect([count([0, 1], 16), count([1, 0], 16), count([0, 2], 16)]).toEqual([0, 1, 1]);
    expect([count([0, 1, 4, 5], 8), count([0, 4, 8, 12], 8)]).toEqual([1, 3]);
    expect(count([8, 1, 2], 4)).toBe(3);
  });

  test("the executor refuses vectors outside the scratch memory and two values in one place", () => {
    const plan = planOf(wgmma, stridedLayout(4), [64, 64], f32);
    const lanes = Array.from({ length: 128 }, (_, thread) =>
      Array.from({ length: 32 }, (_, register) => thread * 32 + register),
    );
    const [before, step, after] = plan.steps;
    if (step?.kind !== "exchange" || before === undefined || after === undefined)
      throw new Error("no exchange");
    const small = { ...step, bytes: step.bytes / 2 };
    expect(() => executeRelayout({ ...plan, steps: [before, small, after] }, lanes)).toThrow(
      "of a scratch memory of 8192 bytes",
    );
    const alias = { ...step, stores: { ...step.stores, threadParts: [0, 0, 0, 0, 0, 0, 0] } };
    expect(() => executeRelayout({ ...plan, steps: [before, alias, after] }, lanes)).toThrow(
      "two values stored",
    );
  });
});
