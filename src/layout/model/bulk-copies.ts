/**
 * Linear bulk copies: runs of bytes that lie side by side in global and in shared memory, each copied by one instruction, without a tensor map.
 *
 *   f32 [4096] into shared()                          1 run of 16 KiB, where TMA would take 16 boxes
 *   f32 [8, 512] of [n, 512] into shared()            1 run: rows follow on in both
 *   f16 [64, 8] of [n, 12] into shared()              none: rows begin at multiples of 24 bytes
 *   f64 [16, 32] of [n, 96], added                    16 runs of 256 bytes; TMA adds no f64 by a tensor map
 *
 * Both sides of a run begin at multiples of 16 bytes and it is a multiple of 16 bytes long. Nothing tells the hardware where the array ends, so that the
 * window must be known to lie inside.
 */
import { knownDivisor } from "../../ir/size.ts";
import { tiledAxes } from "../algebra/shared-view.ts";
import type { SharedView, TiledAxes } from "../algebra/shared-view.ts";
import { bytesAlong } from "../algebra/shared-view.ts";
import type { GlobalWindow } from "./windows.ts";

/** What runs begin at multiples of and are multiples of, in bits. */
const grain = 128;

/** The runs of a window, which are equally long. */
export interface BulkPlan {
  readonly bytes: number;
  readonly runs: readonly BulkRun[];
}

export interface BulkRun {
  /** Bytes from the start of the shared window. */
  readonly offset: number;
  /** Its first element, along each axis of the window. */
  readonly start: readonly number[];
}

/** Why no layout lets a window on global memory be copied so; undefined where one does. */
export function bulkProblem({ box, start, dtype }: GlobalWindow): string | undefined {
  if (box === undefined) return "the array is reshaped across gaps";
  if (box.axes.some(({ bounds }) => bounds.some(({ low, high }) => low || high)))
    return "the window is not known to lie inside the array";
  if ((start * dtype.bits) % grain !== 0)
    return "the window is not known to begin at a multiple of 16 bytes";
  return undefined;
}

/** The runs of a window, or why it has none. */
export function planBulk(global: GlobalWindow, view: SharedView): BulkPlan | string {
  const { axes } = global;
  const { bits, layout, shape } = view;
  const problem = bulkProblem(global);
  if (problem !== undefined) return problem;
  if (layout.swizzle > 0) return "the shared window is swizzled";
  const tiled = tiledAxes(view);
  if (tiled === undefined) return "the shared window cuts through tiles";
  const { elements, along } = longestRun(global, tiled, bits);
  if ((elements * bits) % grain !== 0)
    return `${(elements * bits) / 8} bytes lie side by side on both sides`;
  if ((tiled.start * 8) % grain !== 0) return "the shared window begins within 16 bytes";
  let runs: readonly BulkRun[] = [{ offset: 0, start: [] }];
  for (const [axis, known] of tiled.axes.entries()) {
    const step = along.get(axis) ?? 1;
    const extent = shape[axis] ?? 1;
    const stride = axes[axis]?.stride ?? 1;
    const isCut = extent > step;
    if (isCut && (knownDivisor(stride) * step * bits) % grain !== 0)
      return "a stride of the array is not known to be a multiple of 16 bytes";
    const places = Array.from({ length: extent / step }, (_, index) => index * step);
    const offsets = places.map((place) => bytesAlong(known, place));
    if (offsets.some((offset) => (offset * 8) % grain !== 0))
      return "runs begin within 16 bytes of shared memory";
    runs = runs.flatMap(({ offset, start }) =>
      places.map((place, index) => ({
        offset: offset + (offsets[index] ?? 0),
        start: [...start, place],
      })),
    );
  }
  return { bytes: (elements * bits) / 8, runs };
}

/** How many elements lie side by side on both sides, and how many of them along each axis. */
function longestRun(
  { axes }: GlobalWindow,
  tiled: TiledAxes,
  bits: number,
): { readonly elements: number; readonly along: ReadonlyMap<number, number> } {
  const along = new Map<number, number>();
  let elements = 1;
  for (;;) {
    const axis = tiled.axes.findIndex(
      ({ inner, step }, each) =>
        inner > 1 &&
        !along.has(each) &&
        axes[each]?.stride === elements &&
        step * 8 === elements * bits,
    );
    const { inner, outer } = tiled.axes[axis] ?? { inner: 1, outer: 1 };
    if (axis < 0) return { elements, along };
    along.set(axis, inner);
    elements *= inner;
    if (outer > 1) return { elements, along };
  }
}
