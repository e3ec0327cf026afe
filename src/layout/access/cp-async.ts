/**
 * Copies by `cp.async`: an instruction takes 4, 8 or 16 bytes from one address to another, so that both sides of the copy
 * must move the same elements at once, and leave out the same.
 */
import { neverWhole } from "./global-unit.ts";
import type { TileAccess } from "./affine-access.ts";
import { unitRuns } from "./unit.ts";
import type { Unit } from "./unit.ts";

const copiedBytes = [4, 8, 16];

/** Units that move as much on one side as on the other, where both move runs. */
export function pairedUnits(units: readonly Unit[]): readonly Unit[] {
  const elements = Math.min(...units.map((unit) => ("elements" in unit ? unit.elements : 1)));
  return units.map((unit) => ("elements" in unit ? { ...unit, elements } : unit));
}

/** Why `cp.async` cannot copy by these units; undefined where it can. */
export function pairProblem(
  [far, near]: readonly TileAccess[],
  [from, to]: readonly Unit[],
): string | undefined {
  if (far === undefined || near === undefined || from === undefined || to === undefined)
    return "a copy has two sides";
  if (from.kind === "global" && from.ifWhole) return "a run may lie across a bound";
  if (far.window.kind === "global" && neverWhole(far.window)) return "a part of it is never inside";
  const [sources, targets] = [unitRuns(far, from), unitRuns(near, to)];
  if (sources === undefined || targets === undefined) return "a side is moved by whole warps";
  const moved = new Set(targets.map((run) => run.join()));
  const bytes = ((sources[0]?.length ?? 1) * far.window.dtype.bits) / 8;
  if (!copiedBytes.includes(bytes))
    return `it moves 4, 8 or 16 bytes, and ${bytes} lie side by side`;
  return sources.length === targets.length && sources.every((run) => moved.has(run.join()))
    ? undefined
    : "its sides move different elements at once";
}
