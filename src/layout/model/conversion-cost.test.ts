import { describe, expect, test } from "vitest";
import { f32, bf16, i8 } from "../../formats/dtype.ts";
import { namedLayouts, stridedLayout, wgmmaLeft } from "../algebra/named-layouts.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { parseLayout } from "../algebra/parse-layout.ts";
import { relayoutCost } from "../relayout/cost.ts";
import { planRelayout, relayoutPlans } from "../relayout/relayout.ts";
import { memoryLayouts, simpleLayouts } from "./register-candidates.ts";
import { conversionsOf } from "./conversion-cost.ts";
import { Functions } from "./layout-functions.ts";

const order = ["none", "registers", "shuffle", "shared"] as const;

function candidates(shape: readonly number[], bits: number): readonly RegisterLayout[] {
  const functions = new Functions();
  const extent = { shape, bits, warps: 4 };
  const all = [
    ...memoryLayouts(extent, shape.length - 1),
    ...memoryLayouts(extent, 0),
    ...simpleLayouts(extent),
    namedLayouts.wgmma,
    namedLayouts.wgmmaTransposed,
    namedLayouts.wgmmaUpcast2,
    wgmmaLeft(8),
    stridedLayout(1),
  ];
  return all.map((layout) => functions.normal(layout, shape));
}

describe("the kind of a conversion is the nearest way there is", () => {
  test.each([
    ["f32 [64, 32]", f32, [64, 32]],
    ["bf16 [64, 32]", bf16, [64, 32]],
    ["i8 [64, 32]", i8, [64, 32]],
    ["f32 [12, 20]", f32, [12, 20]],
  ] as const)("%s", (_, dtype, shape) => {
    const conversions = conversionsOf(shape, dtype.bits);
    const layouts = candidates(shape, dtype.bits);
    for (const source of layouts) {
      for (const target of layouts) {
        const kind = conversions.kind(source, target);
        const ways = relayoutPlans(source, target, shape, dtype).map((plan) => plan.kind);
        const nearest = Math.min(...ways.map((way) => order.indexOf(way)));
        const what = `${source.text} to ${target.text}: ${kind}, ways ${ways.join()}`;
        if (kind === undefined) throw new Error(what);
        expect(nearest, what).toBeLessThanOrEqual(order.indexOf(kind));
        if (ways.includes("registers") && source.kind === target.kind)
          expect(["none", "registers"], what).toContain(kind);
        if (kind === "none") expect(source.text).toBe(target.text);
      }
    }
  });
});

test("estimates rank ways as their plans do, within a factor", () => {
  const shape = [64, 64];
  const conversions = conversionsOf(shape, 32);
  const [wgmma, turned, strided] = [
    namedLayouts.wgmma,
    namedLayouts.wgmmaTransposed,
    stridedLayout(4),
  ];
  const planned = (target: RegisterLayout): number => {
    const plan = planRelayout(wgmma, target, shape, f32);
    return plan === undefined ? NaN : relayoutCost(plan);
  };
  for (const target of [turned, strided]) {
    const estimate = conversions.cost(wgmma, target) ?? NaN;
    expect(estimate / planned(target)).toBeGreaterThan(0.4);
    expect(estimate / planned(target)).toBeLessThan(2.5);
  }
});

describe("prices", () => {
  const conversions = conversionsOf([64, 64], 16);

  test("a splat becomes anything for nothing, and nothing becomes a splat", () => {
    expect(conversions.cost(namedLayouts.splat, namedLayouts.wgmma)).toBe(0);
    expect(conversions.cost(namedLayouts.wgmma, namedLayouts.splat)).toBeUndefined();
    expect(conversions.cost(namedLayouts.wgmma, namedLayouts.wgmma)).toBe(0);
  });

  test("keeping a part of what is held in copies costs a choice for each alternative", () => {
    // Vectors of 128 elements of 16 bits: all 64 words in each lane, of which one is kept in half a word.
    const vectors = conversionsOf([128], 16);
    const [all, half] = ["()", "(R0 R1 R2 R3 R4 R5 L0)"].map(parseLayout);
    if (all === undefined || half === undefined) throw new Error("there are two");
    expect(vectors.cost(all, half)).toBe(64 / 64 + 1 * 32 * 2);
    // One of 128 elements, no longer beside its neighbour: 64 words are taken apart.
    expect(vectors.cost(all, parseLayout("(L0 L1 L2 L3 L4 W0 W1)"))).toBe(64 * 2 + 127 * 2);
  });

  test("shuffles cost 4 a word, shared memory 48 and 11 a word", () => {
    expect(conversions.cost(namedLayouts.wgmma, namedLayouts.wgmmaTransposed)).toBe(4 * 16);
    expect(conversions.cost(namedLayouts.wgmma, stridedLayout(8))).toBe(48 + 11 * 16);
  });
});
