/** How blocks see a reduction: as a matrix whose windows they fold, and the tile that one block has. */
import { cdiv } from "../../../lang/index.ts";
import { sizeOf } from "../../ops/types.ts";
import { tileExtent } from "./tiled.ts";

/** The operand as [outer, reduced, inner]; undefined where other axes lie between the reduced ones. */
export function blocked(shape: readonly number[], dimensions: readonly number[]) {
  const axes = dimensions.filter((axis) => shape[axis] !== 1).toSorted((a, b) => a - b);
  const [first = 0] = axes;
  const last = axes.at(-1) ?? 0;
  const between = shape.slice(first, last + 1);
  const isRun = between.every((extent, i) => extent === 1 || axes.includes(first + i));
  if (axes.length === 0 || !isRun) return undefined;
  return {
    outer: sizeOf(shape.slice(0, first)),
    reduced: sizeOf(between),
    inner: sizeOf(shape.slice(last + 1)),
  };
}

/** Fewer elements than these are as well folded a lane each. */
const leastReduced = 32;
const leastInner = 16;
const tileElements = 1024;

/** The tile of a block: how many of the reduced elements it has, and how many results. */
function tileOf({
  outer,
  reduced,
  inner,
}: { readonly [N in "outer" | "reduced" | "inner"]: number }) {
  const depth = tileExtent(reduced, 32, inner === 1 ? tileElements : 32);
  return { depth, width: tileExtent(inner === 1 ? outer : inner, 1, tileElements / depth) };
}

/** How many blocks a reduction has. */
export function blockCount(view: {
  readonly [N in "outer" | "reduced" | "inner"]: number;
}): number {
  const { width } = tileOf(view);
  return view.inner === 1 ? cdiv(view.outer, width) : view.outer * cdiv(view.inner, width);
}

/** A reduction by blocks, and the tile of one. */
export interface ReductionView {
  readonly outer: number;
  readonly reduced: number;
  readonly inner: number;
  /** The axis of the tile that is folded: columns where the reduced axes are the innermost. */
  readonly along: 0 | 1;
  /** How many of the reduced elements a tile has, and how many results. */
  readonly depth: number;
  readonly width: number;
}

/** How blocks reduce these axes; undefined where lanes do it as well, or where they lie apart. */
export function viewOf(
  shape: readonly number[],
  dimensions: readonly number[],
): ReductionView | undefined {
  const view = blocked(shape, dimensions);
  if (view === undefined) return undefined;
  const { outer, reduced, inner } = view;
  const isThin = reduced < leastReduced || (inner > 1 && inner < leastInner);
  if (isThin || outer * inner === 0) return undefined;
  return { ...view, along: inner === 1 ? 1 : 0, ...tileOf(view) };
}
