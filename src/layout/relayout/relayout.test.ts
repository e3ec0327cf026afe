import { describe, expect, test } from "vitest";
import { layoutOf, randomShape, randomSpelling, volume } from "../../../test/layout-oracle.ts";
import { distance, misplaced, recount } from "../../../test/relayout-oracle.ts";
import { bf16, f32, f64, i4, i8 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { Random } from "../../support/random.ts";
import { coalescedLayout, mmaFragment, namedLayouts, stridedLayout } from "../algebra/named.ts";
import { fitsShape, replicatedLayout } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { parseLayout } from "../algebra/text.ts";
import { relayoutCost, relayoutCounts } from "./cost.ts";
import { executeRelayout } from "./execute.ts";
import { planRelayout, relayoutPlans } from "./relayout.ts";
import { scratchLimit } from "./scratch.ts";
import { butterfly, scratchBytes } from "./steps.ts";
import type { RelayoutKind, RelayoutPlan } from "./steps.ts";

const { wgmma, wgmmaRow, wgmmaTransposed, wgmmaLeft8, wgmmaUpcast2, wgmmaUpcast4, splat } =
  namedLayouts;

function plan(
  source: RegisterLayout,
  target: RegisterLayout,
  shape: readonly number[],
  dtype: DType,
): RelayoutPlan {
  const found = planRelayout(source, target, shape, dtype);
  if (found === undefined) throw new Error("no plan");
  return found;
}

/** Everything that must hold of every plan. */
function checkPlans(
  source: RegisterLayout,
  target: RegisterLayout,
  shape: readonly number[],
  dtype: DType,
  about: string,
): RelayoutKind {
  const plans = relayoutPlans(source, target, shape, dtype);
  for (const each of plans) {
    expect(misplaced(each), `${about}, ${each.kind}`).toBeUndefined();
    for (const step of each.steps) {
      if (step.kind !== "exchange") continue;
      for (const side of ["stores", "loads"] as const) {
        const { wavefronts, ideal, instructions } = step[side];
        const claimed = { wavefronts, ideal, instructions };
        expect(claimed, `${about}, ${side}`).toEqual(recount(each, step, side));
      }
    }
  }
  const costs = plans.map(relayoutCost);
  const chosen = plan(source, target, shape, dtype);
  expect(relayoutCost(chosen), about).toBe(Math.min(...costs));
  expect(chosen.kind === "none", about).toBe(relayoutCost(chosen) === 0);
  checkDistance(plans, distance(source, target, shape), dtype, about);
  return chosen.kind;
}

/** The kinds offered fit how far elements must go. */
function checkDistance(
  plans: readonly RelayoutPlan[],
  far: ReturnType<typeof distance>,
  { bits }: DType,
  about: string,
): void {
  const kinds = plans.map(({ kind }) => kind);
  if (far === "same")
    expect(kinds[0], about).toBe(bits < 32 && kinds[0] !== "none" ? "registers" : "none");
  if (far === "lane") expect(kinds[0], about).toBe("registers");
  if (far === "warp") expect(["shuffle", "shared"], about).toContain(kinds[0]);
  if (far === "far") expect(kinds, about).toEqual(["shared"]);
}

describe("named layouts", () => {
  const layouts: readonly RegisterLayout[] = [
    wgmma,
    wgmmaTransposed,
    wgmmaLeft8,
    namedLayouts.wgmmaLeftTf32,
    wgmmaUpcast2,
    wgmmaUpcast4,
    namedLayouts.tcgen05,
    namedLayouts.tmemNative,
    namedLayouts.wgmmaColumn,
    replicatedLayout,
    stridedLayout(4),
    mmaFragment("right", 16),
    mmaFragment("accumulator", 16, { rows: 2, columns: 2 }),
  ];
  const formats = [i4, i8, bf16, f32, f64];
  const shapes = [
    [64, 16],
    [64, 24],
    [16, 40],
  ];
  test.each(shapes)("every pair on [%i, %i]", (...shape) => {
    let count = 0;
    for (const source of layouts) {
      for (const target of [...layouts, coalescedLayout(shape, 4)]) {
        const dtype = formats[count % formats.length] ?? f32;
        const about = `${source.text} to ${target.text} on [${shape.join()}] ${dtype.name}`;
        checkPlans(source, target, shape, dtype, about);
        count += 1;
      }
    }
  });

  test("a splat goes everywhere; nothing goes to a splat but a single element", () => {
    for (const target of [...layouts, splat]) {
      const spread = plan(splat, target, [64, 16], bf16);
      expect(spread.kind).toBe("none");
      expect(relayoutCost(spread)).toBe(0);
      expect(misplaced(spread)).toBeUndefined();
    }
    expect(planRelayout(wgmma, splat, [64, 16], bf16)).toBeUndefined();
    const single = plan(parseLayout("(L0 W0)"), splat, [1], f32);
    expect(single.kind).toBe("shared");
    expect(misplaced(single)).toBeUndefined();
  });
});

describe("random layouts", () => {
  const formats = [i4, i8, bf16, f32, f64];
  test.each([0, 1, 2, 3])("part %i of 600 pairs", (part) => {
    const kinds = new Map<RelayoutKind, number>();
    for (let seed = part * 600; seed < (part + 1) * 600; seed += 1) {
      const random = new Random(seed);
      const rank = 1 + random.below(3);
      // Small tiles for most, as a lane may hold all of it.
      let shape = randomShape(random, rank);
      while (volume(shape) > (seed % 16 === 0 ? 256 : 48)) shape = randomShape(random, rank);
      const source = layoutOf(randomSpelling(random, rank));
      const target = layoutOf(randomSpelling(random, rank));
      expect(fitsShape(source, shape) && fitsShape(target, shape)).toBe(true);
      const dtype = random.pick(formats);
      const about = `seed ${seed}: ${source.text} to ${target.text} on [${shape.join()}] ${dtype.name}`;
      const kind = checkPlans(source, target, shape, dtype, about);
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
    expect([...kinds.keys()].sort()).toEqual(["none", "registers", "shared", "shuffle"]);
  });
});
