/**
 * What one instruction moves for an access, decided before code is written. The widest unit that nothing speaks against is
 * taken; the verifier asks of the one that a kernel has whether anything does.
 *
 *   | unit               | an instruction moves                                    | where                                      |
 *   |--------------------|---------------------------------------------------------|--------------------------------------------|
 *   | global 16          | 16 bytes of a lane that lie side by side                | runs are aligned and inside or outside as a whole |
 *   | global 16 if whole | the same where the whole window is inside, else single elements | a run may lie across a bound       |
 *   | shared 16          | 16 bytes of a lane                                      | runs are aligned before and after the swizzle |
 *   | shared matrices    | matrices of 8 × 8 elements of a warp                    | the tile lies in their rows (`ldmatrix.ts`) |
 *   | elements           | one element, whose address is worked out on its own     | everywhere                                 |
 */
import { registersPerLane } from "../algebra/register-layout.ts";
import { globalRuns, runsProblem, straddles, widestGlobal } from "./global-unit.ts";
import { regularTile } from "./affine-access.ts";
import type { TileAccess } from "./affine-access.ts";
import { singleRuns } from "./contiguous-registers.ts";
import type { Runs } from "./contiguous-registers.ts";
import { runsInMemory, sharedPlaces } from "./shared-addresses.ts";
import { matrixProblem, sharedProblem, widestShared } from "./shared-unit.ts";

export type Unit =
  | { readonly kind: "global"; readonly elements: number; readonly ifWhole: boolean }
  | { readonly kind: "shared"; readonly elements: number }
  | { readonly kind: "matrices" }
  | { readonly kind: "elements" };

function unitText(unit: Unit, bits: number): string {
  if (unit.kind === "matrices") return "shared matrices";
  if (unit.kind === "elements") return unit.kind;
  const bytes = (unit.elements * bits) / 8;
  return `${unit.kind} ${bytes}${unit.kind === "global" && unit.ifWhole ? " if whole" : ""}`;
}

const unitPattern = /^(global|shared) (\d+(?:\.\d+)?)( if whole)?$/;

/** Undefined where the text says no unit of such elements. */
function parseUnit(text: string, bits: number): Unit | undefined {
  if (text === "elements") return { kind: "elements" };
  if (text === "shared matrices") return { kind: "matrices" };
  const [, kind, bytes, whole] = unitPattern.exec(text) ?? [];
  const elements = (Number(bytes) * 8) / bits;
  if (!Number.isInteger(elements) || elements < 1) return undefined;
  if (kind === "global") return { kind, elements, ifWhole: whole !== undefined };
  return kind === "shared" && whole === undefined ? { kind, elements } : undefined;
}

const separator = ", ";

/** The units of an op's accesses, one for each. */
export function unitsText(units: readonly Unit[], bits: number): string {
  return units.map((unit) => unitText(unit, bits)).join(separator);
}

/** Undefined where the text says anything else. */
export function parseUnits(text: string, bits: number): readonly Unit[] | undefined {
  const units = text.split(separator).map((each) => parseUnit(each, bits));
  return units.every((unit) => unit !== undefined) ? units : undefined;
}

/** The widest unit that the access can be made by. */
export function widestUnit(access: TileAccess): Unit {
  const found = regularTile(access);
  if (found === undefined) return { kind: "elements" };
  const { window, parts } = found;
  return window.kind === "global"
    ? widestGlobal(window, parts, access)
    : widestShared(window, parts, access);
}

/** Why the access cannot be made by the unit; undefined where it can. */
export function unitProblem(access: TileAccess, unit: Unit): string | undefined {
  if (unit.kind === "elements") return undefined;
  const found = regularTile(access);
  if (found === undefined) return "its elements have no regular places";
  const { window, parts } = found;
  const space = unit.kind === "matrices" ? "shared" : unit.kind;
  if (window.kind !== space) return `the window lies in ${window.kind} memory`;
  if (unit.kind !== "matrices" && unit.elements > access.widest)
    return `at most ${access.widest} elements can be moved at once`;
  if (window.kind === "shared") {
    if (unit.kind === "matrices") return matrixProblem(window, parts, access);
    return unit.kind === "shared" ? sharedProblem(window, parts, access, unit.elements) : undefined;
  }
  if (unit.kind !== "global") return undefined;
  const problem = runsProblem(window, parts, access, unit.elements);
  if (problem !== undefined || unit.ifWhole) return problem;
  return straddles(window, parts, unit.elements) ? "a run may lie across a bound" : undefined;
}

/** The registers that each instruction of a lane moves, in the order of memory; undefined for matrices. */
export function unitRuns(access: TileAccess, unit: Unit): Runs | undefined {
  const { layout, shape } = access;
  if (unit.kind === "elements")
    return singleRuns({ registers: layout === undefined ? 1 : registersPerLane(layout, shape) });
  const { window, parts } = regularTile(access) ?? {};
  if (window === undefined || parts === undefined) return undefined;
  if (window.kind === "global")
    return unit.kind === "global" ? globalRuns(window, parts, unit.elements) : undefined;
  const places = sharedPlaces(window, parts);
  return unit.kind === "shared" && places !== undefined
    ? runsInMemory(window, parts, places, unit.elements)
    : undefined;
}
