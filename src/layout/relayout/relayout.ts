/**
 * Conversion of a tile from one register layout to another: the cheapest of the ways there are.
 *
 *   | from → to                                         | tile, format      | kind      |
 *   |---------------------------------------------------|-------------------|-----------|
 *   | wgmma → wgmma                                     | any               | none      |
 *   | wgmma → (L2 L3 L4 R0 W0 W1 | R1 L0 L1)             | [64, 64] f32      | none      |
 *   | the same                                          | [64, 64] bf16     | registers |
 *   | splat → any                                       | any               | none      |
 *   | wgmma → wgmmaTransposed                           | [64, 64] bf16     | shuffle   |
 *   | wgmma → flat(R0 R1 L0 L1 L2 L3 L4 W0 W1)           | [64, 64] f32      | shared    |
 *   | any → splat                                       | [64, 64]          | impossible |
 *
 * In f32 an exchange of registers is a matter of names; in bf16 two neighbours share a word, and other
 * neighbours there cost instructions.
 */
import type { DType } from "../../formats/dtype.ts";
import { warpsPerGroup } from "../../targets/target.ts";
import { Memo } from "../../support/memo.ts";
import { product } from "../algebra/index-bits.ts";
import { elementTable, padding } from "../algebra/element-maps.ts";
import { registersPerLane, replicatedLayout } from "../algebra/register-layout.ts";
import type { DistributedLayout, RegisterLayout } from "../algebra/register-layout.ts";
import { relayoutCost, stepsCost } from "./cost.ts";
import { correspond } from "./common-digits.ts";
import { planPlainScratch } from "./plain-scratch.ts";
import { planThroughScratch } from "./scratch.ts";
import { simplify } from "./simplify.ts";
import type { LaneStep } from "./simplify.ts";
import { nothing, slotsPerWord } from "./steps.ts";
import type { PackStep, RelayoutKind, RelayoutPlan, RelayoutStep } from "./steps.ts";
import { planWithinWarp } from "./warp-shuffles.ts";

const remembered = new Memo<RelayoutPlan | undefined>(4096);

/** The cheapest plan for a program thread of so many warps; undefined where there is none, as a splat cannot hold different numbers. */
export function planRelayout(
  source: RegisterLayout,
  target: RegisterLayout,
  shape: readonly number[],
  dtype: DType,
  warps = warpsPerGroup,
): RelayoutPlan | undefined {
  const key = `${source.text} ${target.text} ${shape.join()} ${dtype.bits} ${warps}`;
  return remembered.get(key, () => cheapest(relayoutPlans(source, target, shape, dtype, warps)));
}

function cheapest(plans: readonly RelayoutPlan[]): RelayoutPlan | undefined {
  let best: RelayoutPlan | undefined;
  for (const plan of plans)
    if (best === undefined || relayoutCost(plan) < relayoutCost(best)) best = plan;
  return best;
}

/** One plan for each way that the conversion can go, those nearer to the registers first. */
export function relayoutPlans(
  source: RegisterLayout,
  target: RegisterLayout,
  shape: readonly number[],
  { bits }: DType,
  warps = warpsPerGroup,
): readonly RelayoutPlan[] {
  const make = (kind: RelayoutKind, steps: readonly RelayoutStep[]): RelayoutPlan => {
    return { kind, source, target, shape, bits, warps, steps };
  };
  if (source.kind === "splat") return [make("none", [spread(target, shape, bits)])];
  if (target.kind === "splat" && product(shape) > 1) return [];
  const to = target.kind === "splat" ? replicatedLayout : target;
  const near = stepsWithinWarp(source, to, shape, bits);
  const nearPlans = near === undefined ? [] : [make(kindOf(near, bits), near)];
  if (nearPlans.some(({ kind }) => kind === "none")) return nearPlans;
  const correspondence = correspond(source, to, shape);
  const far =
    correspondence === undefined
      ? planPlainScratch(source, to, shape, bits, warps)
      : planThroughScratch({ correspondence, target: to, shape, bits, warps });
  return [...nearPlans, make("shared", far)];
}

function stepsWithinWarp(
  source: DistributedLayout,
  target: DistributedLayout,
  shape: readonly number[],
  bits: number,
): readonly LaneStep[] | undefined {
  const correspondence = correspond(source, target, shape);
  if (correspondence !== undefined) return planWithinWarp(correspondence, target, shape, bits);
  const renaming = packByTable(source, target, shape, bits);
  if (renaming !== undefined) return [renaming];
  // Where lanes hold the whole tile, its registers can be put in order first.
  const ordered = packByTable(source, replicatedLayout, shape, bits);
  const whole = correspond(replicatedLayout, target, shape);
  const steps = whole && planWithinWarp(whole, target, shape, bits);
  if (ordered === undefined || steps === undefined) return undefined;
  return simplify([ordered, ...steps], slotsPerWord(bits));
}

function kindOf(steps: readonly RelayoutStep[], bits: number): RelayoutKind {
  if (steps.some(({ kind }) => kind === "shuffle")) return "shuffle";
  return stepsCost(steps, bits) > 0 ? "registers" : "none";
}

/** The one number in every register. A splat keeps it in every slot of its word. */
function spread(target: RegisterLayout, shape: readonly number[], bits: number): PackStep {
  const slots = slotsPerWord(bits);
  const words = Math.ceil(registersPerLane(target, shape) / slots);
  return { kind: "pack", words: Array.from({ length: words }, () => Array<number>(slots).fill(0)) };
}

/** The registers to take where every lane has all it needs, in the same registers as other lanes. */
function packByTable(
  source: DistributedLayout,
  target: DistributedLayout,
  shape: readonly number[],
  bits: number,
): PackStep | undefined {
  const held = registersPerLane(source, shape);
  const wanted = registersPerLane(target, shape);
  const warps = Math.max(source.warps, target.warps);
  const ours = elementTable(source, shape, warps);
  const theirs = elementTable(target, shape, warps);
  const slots = slotsPerWord(bits);
  const words = Array.from({ length: Math.ceil(wanted / slots) }, () =>
    Array<number>(slots).fill(nothing),
  );
  for (let register = 0; register < wanted; register += 1) {
    const word = words[Math.floor(register / slots)];
    const element = theirs[register];
    if (element === padding || word === undefined) continue;
    const origin = ours.subarray(0, held).indexOf(element ?? padding);
    if (origin < 0) return undefined;
    for (let place = register, from = origin; place < theirs.length; place += wanted, from += held)
      if (theirs[place] !== padding && theirs[place] !== ours[from]) return undefined;
    word[register % slots] = origin;
  }
  return { kind: "pack", words };
}
