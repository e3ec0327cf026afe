/**
 * The cost of a gather or scatter in global memory: the window of an access by index tiles as the cost model sees it. The price of that window is `globalCost` of
 * `access-cost.ts`: axes that are indexed stay at one index, and the axes of the index tiles may lead anywhere, so that elements
 * along them share no sector.
 *
 *   x: [n, 64] in f32, x.at(rows) with 16 rows      axes 16 (far apart) and 64 by 1, rows aligned to 64 elements
 *
 * Gathers and scatters in shared memory are priced by `accessBanks` of `rules/memory.ts`.
 */
import { gatheredShape } from "../../ir/indexed.ts";
import type { AccessOp } from "../../ir/indexed.ts";
import { knownDivisor } from "../../ir/size.ts";
import { greatestCommonDivisor } from "../../support/integers.ts";
import { farApart } from "./access-cost.ts";
import type { GlobalAxis, GlobalWindow } from "./windows.ts";

export function gatheredWindow(window: GlobalWindow, op: AccessOp): GlobalWindow {
  if (op.operands.indices.length === 0) return window;
  const { shape, axisOf } = gatheredShape(op);
  const indexed = window.axes.filter((_, axis) => axisOf[axis] === undefined);
  const axes = shape.map((extent, axis): GlobalAxis => {
    const own = window.axes[axisOf.indexOf(axis)];
    return own ?? { extent, stride: farApart };
  });
  const start = indexed.reduce(
    (divisor, { stride }) =>
      greatestCommonDivisor(divisor, stride === undefined ? 1 : knownDivisor(stride)),
    window.start,
  );
  return { ...window, axes, dropped: [...window.dropped, ...indexed], start };
}
