/**
 * Accesses whose places are sums of what a lane, a register and an index add: those that can move several elements at
 * once. Windows reshaped across gaps or bounds, and layouts whose bits straddle axes, are worked out one by one.
 */
import type { Size } from "../../ir/size.ts";
import { product } from "../algebra/index-bits.ts";
import type { DistributedLayout } from "../algebra/register-layout.ts";
import { scalarParts, tileParts } from "./lane-coordinates.ts";
import type { TileParts } from "./lane-coordinates.ts";
import { heldWindow, indexedStrides } from "./gathers.ts";
import type { GatheredAxes, GatheredTile } from "./gathers.ts";
import { reshapeGlobal, reshapeShared } from "./reshape.ts";
import { factSums } from "./window.ts";
import type { GlobalBox, Index, MemoryWindow, SharedBox } from "./window.ts";

/** An access of a tile or scalar to a window. */
export interface TileAccess {
  readonly window: MemoryWindow;
  /** Undefined for a window without axes, which every lane accesses. */
  readonly layout: DistributedLayout | undefined;
  readonly shape: readonly number[];
  /** The most elements that are accessed at once. */
  readonly widest: number;
  /** Whether instructions of whole warps will do. */
  readonly matrices: boolean;
  readonly gather: GatheredTile | undefined;
}

/** A window and the lanes' parts of it, where coordinates are sums. */
export interface RegularAccess<W> {
  readonly window: W;
  readonly parts: TileParts;
  /** Along the axes that index tiles pick along. */
  readonly strides: readonly Size[];
}

interface RegularTile {
  readonly layout: DistributedLayout | undefined;
  readonly shape: readonly number[];
  readonly gather: GatheredAxes | undefined;
}

/** The access as sums, as one axis where that helps; undefined where elements are worked out one by one. */
export function regularAccess<P extends Index, G extends GlobalBox<P>, S extends SharedBox<P>>(
  window: G | S | { readonly kind: "reshaped" },
  { layout, shape, gather }: RegularTile,
  {
    flatten,
    zero,
  }: {
    /** The window as one axis, where its axes follow on. */
    readonly flatten: (window: G | S, line: readonly number[]) => G | S | undefined;
    readonly zero: P;
  },
): RegularAccess<G | S> | undefined {
  if (window.kind === "reshaped") return undefined;
  const own = window as G | S;
  const strides: readonly Size[] = [];
  if (layout === undefined) return { window: own, strides, parts: scalarParts };
  const parts = tileParts(layout, shape);
  if (gather !== undefined && gather.indexed.length > 0)
    return parts && gatheredAccess<P, G, S>(own, parts, gather, zero);
  if (parts !== undefined) return { window: own, strides, parts };
  const line = [product(shape)];
  const flat = flatten(own, line);
  const flatParts = tileParts(layout, line);
  return flat && flatParts && { window: flat, strides, parts: flatParts };
}

/** Index tiles pick in global memory by what they add to an address, unless windows bound them besides. */
function gatheredAccess<P extends Index, G extends GlobalBox<P>, S extends SharedBox<P>>(
  window: G | S,
  parts: TileParts,
  gather: GatheredAxes,
  zero: P,
): RegularAccess<G | S> | undefined {
  if (window.kind === "shared") return undefined;
  const { indexed } = gather;
  if (indexed.some((axis) => (window.axes[axis]?.bounds.length ?? 0) > 0)) return undefined;
  return {
    window: heldWindow<P, G>(window, gather, zero),
    parts,
    strides: indexedStrides(window, indexed),
  };
}

type Box = GlobalBox | SharedBox;

const flatten = (window: Box, line: readonly number[]): Box | undefined => {
  if (window.kind === "global") {
    const flat = reshapeGlobal(window, line, factSums);
    return flat && { ...window, ...flat };
  }
  const flat = reshapeShared(window, line);
  return flat && { ...window, ...flat };
};

/** The access by facts alone. */
export function regularTile({ window, ...tile }: TileAccess): RegularAccess<Box> | undefined {
  return regularAccess<Index, GlobalBox, SharedBox>(window, tile, {
    flatten,
    zero: factSums.zero,
  });
}
