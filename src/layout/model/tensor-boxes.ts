/**
 * The boxes that a tensor copy consists of. One instruction copies a box: at most 256 elements along each of at most five axes, dense in shared
 * memory from a multiple of 128 bytes on (of what the swizzle repeats after, with one). A window is cut accordingly:
 *
 *   f32 [64, 1024] into shared(tile 64 32, swizzle 128)      32 boxes, one for each tile
 *   bf16 [512, 64] into shared(swizzle 128)                  2 boxes of [256, 64]
 *   f32 [1000] into shared()                                 3 boxes of [256] and one of [232]
 *   f32 [64, 512] into shared()                              128 boxes of [1, 256]: behind half a row lies the other half
 *
 * An array of more than five axes is described by a map in which neighbouring axes are one, along which a box has one element.
 * An index outside of the inner one would then be another element, so it is tested:
 *
 *   f32 [2, 3, 4, 5, 6, 8], a window of [2, 2, 4, 5, 6, 8]   map [2 · 3, 4, 5, 6, 8], 4 boxes of [1, 4, 5, 6, 8]
 */
import type { GlobalBox } from "../access/window.ts";
import { greatestCommonDivisor } from "../../support/integers.ts";
import { multiplySizes, sameSize } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { swizzlePattern } from "../algebra/shared-layout.ts";
import { bytesAlong, tiledAxes } from "../algebra/shared-view.ts";
import type { SharedView, TiledAxes } from "../algebra/shared-view.ts";

/** What a tensor map can describe. */
const mostAxes = 5;
const mostElements = 256;

/** An axis of a map, by the axes of the array that it stands for, outermost first. */
export interface MapGroup {
  readonly roots: readonly number[];
  readonly extent: Size;
  /** In elements. */
  readonly stride: Size;
}

/** How a window is cut into boxes. */
export interface BoxPlan {
  /** Elements of a box along each axis of the window; at the end of a run there may be fewer. */
  readonly pieces: readonly number[];
  readonly groups: readonly MapGroup[];
}

/** One box of a window. */
export interface Box {
  /** Bytes from the start of the shared window. */
  readonly offset: number;
  /** Along each axis of the window, the first element and how many there are. */
  readonly starts: readonly number[];
  readonly sizes: readonly number[];
}

/** The boxes of a window on an array, or why it has none. */
export function planBoxes(box: GlobalBox, view: SharedView, contiguous: number): BoxPlan | string {
  const tiled = tiledAxes(view);
  if (tiled === undefined) return "the shared window cuts through tiles";
  for (let singles = 0; ; singles += 1) {
    const pieces = piecesOf(view, tiled, contiguous, singles);
    if (typeof pieces === "string" && singles === 0) return pieces;
    if (typeof pieces === "string") return `${box.array.length} axes are more than ${mostAxes}`;
    const groups = mapGroups(box, pieces);
    if (groups !== undefined) return { pieces, groups };
  }
}

/** Pieces by view, and by what else decides; windows of one kernel are often looked at by one view. */
const known = new WeakMap<SharedView, Map<string, readonly number[] | string>>();

function piecesOf(
  view: SharedView,
  tiled: TiledAxes,
  contiguous: number,
  singles: number,
): readonly number[] | string {
  const ofView = known.get(view) ?? new Map<string, readonly number[] | string>();
  known.set(view, ofView);
  const key = `${contiguous} ${singles}`;
  const found = ofView.get(key) ?? findPieces(view, tiled, contiguous, singles);
  ofView.set(key, found);
  return found;
}

/** Each tile of the shared window consists of dense boxes whose rows run as the array's; boxes have one element along the `singles` outermost axes. */
function findPieces(
  { bits, layout }: SharedView,
  { start, axes }: TiledAxes,
  contiguous: number,
  singles: number,
): readonly number[] | string {
  const bytes = bits / 8;
  const pattern = Math.max(128, swizzlePattern(layout.swizzle));
  const starts = [start, ...axes.filter(({ outer }) => outer > 1).map(({ jump }) => jump)];
  const misplaced = (byte: number): string =>
    `a box starts ${byte % pattern} bytes past a multiple of ${pattern} in shared memory`;
  const off = starts.find((byte) => byte % pattern !== 0);
  if (off !== undefined) return misplaced(off);
  const parts = axes
    .map(({ inner, step }, axis) => ({ inner, step, axis }))
    .filter(({ inner }) => inner > 1)
    .sort((left, right) => left.step - right.step);
  const [row] = parts;
  if (row === undefined) return "the window has one element";
  if (row.axis !== contiguous) return "the copy would transpose";
  const width = row.inner * bytes;
  if (width % 16 !== 0) return `rows of ${width} bytes are no multiple of 16`;
  if (layout.swizzle > 0 && width !== layout.swizzle)
    return `rows of ${width} bytes are not as wide as the swizzle of ${layout.swizzle}`;
  const pieces = axes.map(({ inner }) => inner);
  const whole = parts.length - singles;
  if (whole < 1) return "a box of one element";
  let dense = bytes;
  let isCut = false;
  for (const [position, { inner, step, axis }] of parts.entries()) {
    if (step !== dense)
      return `the shared window leaves gaps: a step of ${step} bytes, not ${dense}`;
    dense *= inner;
    if (!isCut && inner <= mostElements && position < whole) continue;
    const grain = (pattern * 8) / greatestCommonDivisor(step * 8, pattern * 8);
    // Behind a part of an axis comes the rest of it, so that a box has no more than one element along those around it.
    const piece = isCut || position >= whole ? 1 : pieceOf(inner, grain);
    if (piece === undefined || piece % grain !== 0) return misplaced(step * (piece ?? 1));
    pieces[axis] = piece;
    isCut = true;
  }
  return pieces;
}

/** Elements of each part of a long axis: few parts, equal ones where that takes no more of them; undefined where none begins right. */
function pieceOf(inner: number, grain: number): number | undefined {
  const most = Math.floor(mostElements / grain) * grain;
  if (most === 0) return undefined;
  const equal = inner / Math.ceil(inner / most);
  return equal % grain === 0 ? equal : most;
}

/** The axes of the map; undefined where they are too many whatever is put together. */
function mapGroups(
  { array, axes }: GlobalBox,
  pieces: readonly number[],
): readonly MapGroup[] | undefined {
  const runs = (root: number): boolean =>
    axes.some((axis, window) => axis.root === root && (pieces[window] ?? 1) > 1);
  let groups = array.map(({ extent, stride }, root): MapGroup & { readonly single: boolean } => ({
    roots: [root],
    extent,
    stride,
    single: !runs(root),
  }));
  while (groups.length > mostAxes) {
    const singles = groups.filter(({ single }) => single);
    const pair = singles.flatMap((outer) =>
      singles
        .filter((inner) => inner !== outer && follows(outer, inner))
        .map((inner) => [outer, inner] as const),
    )[0];
    if (pair === undefined) return undefined;
    const [outer, inner] = pair;
    const joined = {
      roots: [...outer.roots, ...inner.roots],
      extent: multiplySizes(outer.extent, inner.extent),
      stride: inner.stride,
      single: true,
    };
    groups = groups.flatMap((group) => (group === inner ? [] : [group === outer ? joined : group]));
  }
  return groups;
}

/** Whether an element of the outer axis begins where all of the inner one end. */
function follows(outer: MapGroup, inner: MapGroup): boolean {
  return sameSize(outer.stride, multiplySizes(inner.extent, inner.stride));
}

/** The boxes of a window, in order. */
export function boxesOf({ pieces }: BoxPlan, view: SharedView): readonly Box[] {
  const { axes } = describedAxes(view);
  let boxes: readonly Box[] = [{ offset: 0, starts: [], sizes: [] }];
  for (const [axis, along] of axes.entries()) {
    const piece = pieces[axis] ?? along.inner;
    const runs = Array.from({ length: along.outer }, (_, run) => run * along.inner);
    const parts = Array.from({ length: Math.ceil(along.inner / piece) }, (_, part) => part * piece);
    boxes = boxes.flatMap(({ offset, starts, sizes }) =>
      runs.flatMap((run) =>
        parts.map((part) => ({
          offset: offset + bytesAlong(along, run + part),
          starts: [...starts, run + part],
          sizes: [...sizes, Math.min(piece, along.inner - part)],
        })),
      ),
    );
  }
  return boxes;
}

/** How many they are. */
export function boxCount({ pieces }: BoxPlan, view: SharedView): number {
  return describedAxes(view).axes.reduce(
    (count, { inner, outer }, axis) => count * outer * Math.ceil(inner / (pieces[axis] ?? inner)),
    1,
  );
}

function describedAxes(view: SharedView): TiledAxes {
  const tiled = tiledAxes(view);
  if (tiled === undefined) throw new Error("boxes of a window that cuts through tiles");
  return tiled;
}
