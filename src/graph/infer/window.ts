/**
 * Windows of convolutions, reduce_window and select_and_scatter: what absent attributes mean, and how
 * many windows fit an axis.
 *
 *   extent 5, base dilation 2 -> 9; padding 1 and 1 -> 11; window 3 dilated by 2 -> 5; stride 2 -> 4 windows
 */
import { extentOf, requireCount, requireFit } from "./inference-input.ts";
import type { Draft } from "./inference-input.ts";

export interface WindowAttributes {
  readonly sizes: readonly number[];
  readonly strides: readonly number[] | undefined;
  readonly padding: readonly (readonly number[])[] | undefined;
  readonly baseDilations: readonly number[] | undefined;
  readonly windowDilations: readonly number[] | undefined;
}

/** A window with every attribute there. */
export interface Window {
  readonly sizes: readonly number[];
  readonly strides: readonly number[];
  /** Low and high a spatial axis. */
  readonly padding: readonly (readonly number[])[];
  readonly baseDilations: readonly number[];
  readonly windowDilations: readonly number[];
}

function ones(rank: number): readonly number[] {
  return Array.from({ length: rank }, () => 1);
}

export function completeWindow(rank: number, given: WindowAttributes): Window {
  return {
    sizes: given.sizes,
    strides: given.strides ?? ones(rank),
    padding: given.padding ?? Array.from({ length: rank }, () => [0, 0]),
    baseDilations: given.baseDilations ?? ones(rank),
    windowDilations: given.windowDilations ?? ones(rank),
  };
}

/** The window of a draft; fails where a list is not as long as the rank, or a step is not positive. */
export function requireWindow(draft: Draft, rank: number, given: WindowAttributes): Window {
  const window = completeWindow(rank, given);
  for (const [name, list] of Object.entries(window) as [string, readonly unknown[]][])
    requireCount(draft, name, list, rank);
  for (const name of ["sizes", "strides", "baseDilations", "windowDilations"] as const)
    requireFit(
      draft,
      window[name].every((each) => each >= (name === "sizes" ? 0 : 1)),
      `${name} of the window are not positive`,
      "1 or more",
      window[name].join(", "),
    );
  return window;
}

function dilated(extent: number, dilation: number): number {
  return extent === 0 ? 0 : (extent - 1) * dilation + 1;
}

/** The number of windows along an axis. */
export function windowExtent(window: Window, axis: number, extent: number): number {
  const [low = 0, high = 0] = window.padding[axis] ?? [];
  const base = dilated(extent, extentOf(window.baseDilations, axis)) + low + high;
  const size = dilated(extentOf(window.sizes, axis), extentOf(window.windowDilations, axis));
  if (base <= 0 || size > base) return 0;
  return Math.floor((base - size) / extentOf(window.strides, axis)) + 1;
}
