/** What must hold of every relayout plan, for tests that try many. */
import { expect } from "vitest";
import type { DType } from "../src/formats/dtype.ts";
import type { RegisterLayout } from "../src/layout/algebra/register-layout.ts";
import { relayoutCost } from "../src/layout/relayout/cost.ts";
import { planRelayout, relayoutPlans } from "../src/layout/relayout/relayout.ts";
import { scratchBytes } from "../src/layout/relayout/steps.ts";
import type { RelayoutKind, RelayoutPlan } from "../src/layout/relayout/steps.ts";
import { distance, misplaced, recount } from "./relayout-oracle.ts";
import type { Distance } from "./relayout-oracle.ts";

export function planOf(
  source: RegisterLayout,
  target: RegisterLayout,
  shape: readonly number[],
  dtype: DType,
  warps = 4,
): RelayoutPlan {
  const found = planRelayout(source, target, shape, dtype, warps);
  if (found === undefined) throw new Error(`no plan from ${source.text} to ${target.text}`);
  return found;
}

/** Tries all ways to convert and returns the kind of the one chosen. */
export function checkPlans(
  source: RegisterLayout,
  target: RegisterLayout,
  shape: readonly number[],
  dtype: DType,
  about: string,
  warps = 4,
): RelayoutKind {
  const plans = relayoutPlans(source, target, shape, dtype, warps);
  for (const plan of plans) {
    expect(misplaced(plan), `${about}, ${plan.kind}`).toBeUndefined();
    checkScratch(plan, about);
  }
  const costs = plans.map(relayoutCost);
  const chosen = planOf(source, target, shape, dtype, warps);
  expect(relayoutCost(chosen), about).toBe(Math.min(...costs));
  expect(chosen.kind === "none", about).toBe(relayoutCost(chosen) === 0);
  checkDistance(plans, distance(source, target, shape, warps), dtype, about);
  return chosen.kind;
}

function checkScratch(plan: RelayoutPlan, about: string): void {
  const exchanges = plan.steps.filter((step) => step.kind === "exchange");
  expect(scratchBytes(plan) > 0, about).toBe(plan.kind === "shared");
  for (const step of exchanges) {
    for (const side of ["stores", "loads"] as const) {
      const { wavefronts, ideal, instructions } = step[side];
      const claimed = { wavefronts, ideal, instructions };
      expect(claimed, `${about}, ${side}`).toEqual(recount(plan, step, side));
    }
  }
}

/** The kinds offered fit how far elements must go. */
function checkDistance(
  plans: readonly RelayoutPlan[],
  far: Distance,
  { bits }: DType,
  about: string,
): void {
  const kinds = plans.map(({ kind }) => kind);
  const [nearest] = kinds;
  // Narrow elements may have to change their places in words.
  if (far === "same" && bits >= 32) expect(nearest, about).toBe("none");
  if (far === "same") expect(["none", "registers"], about).toContain(nearest);
  if (far === "lane") expect(nearest, about).toBe("registers");
  if (far === "warp") expect(["shuffle", "shared"], about).toContain(nearest);
  if (far === "far") expect(kinds, about).toEqual(["shared"]);
}
