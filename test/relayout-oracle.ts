/**
 * Checks of a relayout plan that know only what layouts mean: where elements are, which banks they lie
 * in, and how far they must travel.
 */
import type { RegisterLayout } from "../src/layout/algebra/register-layout.ts";
import type { AccessPattern, ExchangeStep, RelayoutPlan } from "../src/layout/relayout/steps.ts";
import { accessByte, activeThreads, executeRelayout } from "./support/relayout-execution.ts";
import { placesOf, spellingOf } from "./layout-oracle.ts";
import type { Places } from "./layout-oracle.ts";

const known = new Map<string, Places>();

export function placesIn(layout: RegisterLayout, shape: readonly number[], warps = 4): Places {
  if (layout.kind === "splat") return Array.from({ length: 32 * warps }, () => [0]);
  const key = `${layout.text} ${shape.join()} ${warps}`;
  if (known.size > 64) known.clear();
  const places = known.get(key) ?? placesOf(spellingOf(layout), shape, warps);
  known.set(key, places);
  return places;
}

/** The first place that holds the wrong element after the plan, in words; undefined if none does. */
export function misplaced(plan: RelayoutPlan): string | undefined {
  const { source, target, shape, warps } = plan;
  const before = placesIn(source, shape, warps);
  const after = executeRelayout(plan, before);
  const wanted = placesIn(target, shape, warps);
  for (const [thread, registers] of wanted.entries()) {
    for (const [register, element] of registers.entries()) {
      const right = source.kind === "splat" ? 0 : element;
      const found = after[thread]?.[register];
      if (element !== undefined && found !== right)
        return `thread ${thread} register ${register}: ${found} in place of ${right}`;
    }
  }
  return undefined;
}

/** How far elements must go at least: not at all, to other registers of the lane, lanes or warps. */
export type Distance = "same" | "lane" | "warp" | "far";

export function distance(
  source: RegisterLayout,
  target: RegisterLayout,
  shape: readonly number[],
  warps = 4,
): Distance {
  const ours = placesIn(source, shape, warps);
  const held = ours.map((registers) => new Set(registers));
  const wanted = placesIn(target, shape, warps);
  let result: Distance = sameRegisters(ours, wanted) ? "same" : "lane";
  for (const [thread, registers] of wanted.entries()) {
    const warp = held.slice(thread & ~31, (thread & ~31) + 32);
    for (const element of registers) {
      if (element === undefined || held[thread]?.has(element) === true) continue;
      if (!warp.some((lane) => lane.has(element))) return "far";
      result = "warp";
    }
  }
  return result;
}

/** Whether each target register can be one source register in all lanes. */
function sameRegisters(ours: Places, wanted: Places): boolean {
  return (wanted[0] ?? []).every((_, register) =>
    (ours[0] ?? []).some((_, origin) =>
      wanted.every((registers, thread) => {
        const element = registers[register];
        return element === undefined || element === ours[thread]?.[origin];
      }),
    ),
  );
}

export interface Recount {
  readonly wavefronts: number;
  readonly instructions: number;
  readonly ideal: number;
}

/** Wavefronts of all accesses of one side, lane by lane. */
export function recount(plan: RelayoutPlan, step: ExchangeStep, side: "stores" | "loads"): Recount {
  const pattern: AccessPattern = step[side];
  const layout = side === "stores" ? plan.source : plan.target;
  const perPhase = Math.min(32, 128 / pattern.vectorBytes);
  const total = { wavefronts: 0, instructions: 0, ideal: 0 };
  for (const chunk of step.chunks) {
    const active = activeThreads(layout, plan, pattern, chunk.guard);
    for (const access of chunk[side]) {
      const phases = new Map<number, Map<number, Set<number>>>();
      const warps = new Set<number>();
      for (const thread of active(access)) {
        warps.add(thread >> 5);
        const phase = Math.floor(thread / perPhase);
        const banks = phases.get(phase) ?? new Map<number, Set<number>>();
        phases.set(phase, banks);
        const first = accessByte(pattern, access, thread);
        for (let byte = first; byte < first + pattern.vectorBytes; byte += 1) {
          const word = byte >> 2;
          banks.set(word % 32, (banks.get(word % 32) ?? new Set<number>()).add(word));
        }
      }
      total.instructions += warps.size;
      total.ideal += phases.size;
      for (const banks of phases.values())
        total.wavefronts += Math.max(...[...banks.values()].map((words) => words.size));
    }
  }
  return total;
}
