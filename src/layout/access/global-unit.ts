/**
 * What is moved at once in global memory: neighbours along the contiguous axis, as far as alignment is known. The start of
 * every row must be aligned, lanes must hold whole runs, and index tiles must pick each run as one.
 */
import { constantOf } from "../../ir/range-analysis/fact.ts";
import { divisorNumber } from "../../ir/range-analysis/index.ts";
import { knownDivisor } from "../../ir/size.ts";
import { greatestCommonDivisor } from "../../support/integers.ts";
import { powerOfTwoIn } from "../algebra/vectors.ts";
import type { TileParts } from "./lane-coordinates.ts";
import type { TileAccess } from "./affine-access.ts";
import { runsAlong, singleRuns, widestBits } from "./contiguous-registers.ts";
import type { Runs } from "./contiguous-registers.ts";
import { startDivisor } from "./window.ts";
import type { Bound, GlobalBox } from "./window.ts";
import type { Unit } from "./unit.ts";

/** The axis along which neighbours are neighbours in memory; −1 for none. */
export function contiguousAxis({ axes, array }: GlobalBox): number {
  return axes.findIndex(({ root, size }) => size !== 1 && array[root]?.stride === 1);
}

export function widestGlobal(window: GlobalBox, parts: TileParts, access: TileAccess): Unit {
  const most = contiguousAxis(window) < 0 ? 1 : access.widest;
  for (let elements = most; elements > 1; elements /= 2) {
    if (runsProblem(window, parts, access, elements) !== undefined) continue;
    if (!straddles(window, parts, elements)) return { kind: "global", elements, ifWhole: false };
    const ifWhole = !neverWhole(window);
    return { kind: "global", elements: ifWhole ? elements : 1, ifWhole };
  }
  return { kind: "global", elements: 1, ifWhole: false };
}

/** Arrays begin at multiples of so many bytes. */
const arrayAlignment = 16;

/** Elements that are aligned together from the start of every row on. */
function alignedRun(window: GlobalBox): number {
  const { array, axes, dtype } = window;
  const divisor = axes.reduce(
    (known, { root, size }) => {
      const stride = array[root]?.stride ?? 1;
      return stride === 1 || size === 1
        ? known
        : greatestCommonDivisor(known, knownDivisor(stride));
    },
    greatestCommonDivisor(startDivisor(window), (arrayAlignment * 8) / dtype.bits),
  );
  return Math.min(widestBits / dtype.bits, powerOfTwoIn(divisor));
}

/** The registers that each instruction moves, in the order of memory; undefined where lanes or gaps break them. */
export function globalRuns(
  window: GlobalBox,
  parts: TileParts,
  elements: number,
): Runs | undefined {
  return elements === 1 ? singleRuns(parts) : runsAlong(parts, contiguousAxis(window), elements);
}

/** Why registers cannot be moved so many at once. */
export function runsProblem(
  window: GlobalBox,
  parts: TileParts,
  { gather }: TileAccess,
  elements: number,
): string | undefined {
  if (elements === 1) return undefined;
  const aligned = alignedRun(window);
  if (aligned % elements !== 0) return `${aligned} elements are known to be aligned together`;
  const runs = globalRuns(window, parts, elements);
  if (runs === undefined)
    return `no thread holds ${elements} neighbours in each of its registers' runs`;
  const apart = gather !== undefined && runs.some((run) => !gather.agree(run));
  return apart ? "neighbours have indices or a mask of their own" : undefined;
}

/** Whether a run of elements may lie across a bound of its window. */
export function straddles(window: GlobalBox, parts: TileParts, elements: number): boolean {
  const axis = contiguousAxis(window);
  const { bounds = [] } = window.axes[axis] ?? {};
  const extent = parts.axes[axis]?.extent ?? 1;
  return bounds.some((bound) => {
    const start = divisorNumber(bound.start.fact);
    const room = greatestCommonDivisor(start, knownDivisor(bound.size));
    return (
      (bound.high && room % elements !== 0) || (testsStart(bound, extent) && start % elements !== 0)
    );
  });
}

/** Whether elements before the first must be told apart from those behind the last. */
export function testsStart(bound: Bound, extent: number): boolean {
  return bound.low && (!bound.high || overlapsZero(bound, extent));
}

/** Whether the window may begin before 0 and end behind it. */
export function overlapsZero({ start: { fact } }: Pick<Bound, "start">, extent: number): boolean {
  const { least, greatest, modulus, residue } = fact;
  const last = greatest < 0n ? greatest : -1n;
  // The last value before 0 that the congruence allows.
  const before =
    modulus === 0n ? residue : last - ((((last - residue) % modulus) + modulus) % modulus);
  return before >= least && before < 0n && before > BigInt(-extent);
}

/** Whether a bound that does not hold is known now, so that the window overhangs in every launch. */
export function neverWhole({ axes }: GlobalBox): boolean {
  return axes.some(({ bounds }) =>
    bounds.some(
      ({ start, size, low }) =>
        constantOf(start.fact) !== undefined && (low || typeof size === "number"),
    ),
  );
}
