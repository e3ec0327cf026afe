/**
 * Formats with scales: elements of a narrow float format, of which every block shares a scale.
 *
 *   number = element · scale of its block · global scale
 *
 * | format          | elements | block    | scales    | global |
 * |-----------------|----------|----------|-----------|--------|
 * | mxfp8e4m3       | f8e4m3fn | 32       | f8e8m0fnu |        |
 * | mxfp8e5m2       | f8e5m2   | 32       | f8e8m0fnu |        |
 * | mxfp6e2m3       | f6e2m3fn | 32       | f8e8m0fnu |        |
 * | mxfp6e3m2       | f6e3m2fn | 32       | f8e8m0fnu |        |
 * | mxfp4           | f4e2m1fn | 32       | f8e8m0fnu |        |
 * | nvfp4           | f4e2m1fn | 16       | f8e4m3fn  | f32    |
 * | fp8Block1x128   | f8e4m3fn | 1 × 128  | f32       |        |
 * | fp8Block128x128 | f8e4m3fn | 128 × 128| f32       |        |
 *
 * MX formats are those of the Open Compute Project, nvfp4 is NVIDIA's; FP8 by blocks of f32 scales is how DeepSeek's models are published.
 */
import * as formats from "../dtype.ts";
import type { DType } from "../dtype.ts";

/** The name of a format with scales, such as `"mxfp4"`. */
export type ScaledFormatName =
  | "mxfp8e4m3"
  | "mxfp8e5m2"
  | "mxfp6e2m3"
  | "mxfp6e3m2"
  | "mxfp4"
  | "nvfp4"
  | "fp8Block1x128"
  | "fp8Block128x128";

/** A format of elements. */
export type ScaledElementName = "f8e4m3fn" | "f8e5m2" | "f6e2m3fn" | "f6e3m2fn" | "f4e2m1fn";
/** A format of scales. */
export type ScaleName = "f8e8m0fnu" | "f8e4m3fn" | "f32";

/** A format with scales. Compare by identity: there is one a name. */
export interface ScaledFormat<
  N extends ScaledFormatName = ScaledFormatName,
  E extends ScaledElementName = ScaledElementName,
  S extends ScaleName = ScaleName,
> {
  /** Its name, such as `"mxfp4"`. */
  readonly name: N;
  /** The format of the elements. */
  readonly element: DType<E>;
  /** The format of the scales. */
  readonly scale: DType<S>;
  /** How many elements share a scale: along the axis beside the one that is summed in products, and along that one. */
  readonly block: readonly [across: number, along: number];
  /** Whether an f32 scale of the whole array stands beside those of the blocks. */
  readonly hasGlobalScale: boolean;
  /** The largest element: what the largest number of a block is scaled to. */
  readonly largest: number;
}

function define<N extends ScaledFormatName, E extends ScaledElementName, S extends ScaleName>(
  format: ScaledFormat<N, E, S>,
): ScaledFormat<N, E, S> {
  return Object.freeze({ ...format, block: Object.freeze(format.block) });
}

/** OCP MX: blocks of 32 with powers of two as scales. */
function mx<N extends ScaledFormatName, E extends ScaledElementName>(
  name: N,
  element: DType<E>,
  largest: number,
): ScaledFormat<N, E, "f8e8m0fnu"> {
  const scale = formats.f8e8m0fnu;
  return define({ name, element, scale, block: [1, 32], hasGlobalScale: false, largest });
}

/** FP8 of which so many rows and columns share a scale in f32. */
function fp8Block<N extends ScaledFormatName>(
  name: N,
  across: number,
  along: number,
): ScaledFormat<N, "f8e4m3fn", "f32"> {
  const [element, scale] = [formats.f8e4m3fn, formats.f32];
  const block = [across, along] as const;
  return define({ name, element, scale, block, hasGlobalScale: false, largest: 448 });
}

/** Blocks of 32 in f8e4m3fn, with powers of two as scales (OCP MX). */
export const mxfp8e4m3 = mx("mxfp8e4m3", formats.f8e4m3fn, 448);
/** Blocks of 32 in f8e5m2, with powers of two as scales (OCP MX). */
export const mxfp8e5m2 = mx("mxfp8e5m2", formats.f8e5m2, 57344);
/** Blocks of 32 in f6e2m3fn, with powers of two as scales (OCP MX). */
export const mxfp6e2m3 = mx("mxfp6e2m3", formats.f6e2m3fn, 7.5);
/** Blocks of 32 in f6e3m2fn, with powers of two as scales (OCP MX). */
export const mxfp6e3m2 = mx("mxfp6e3m2", formats.f6e3m2fn, 28);
/** Blocks of 32 in f4e2m1fn, with powers of two as scales (OCP MX). */
export const mxfp4 = mx("mxfp4", formats.f4e2m1fn, 6);
/** Blocks of 16 in f4e2m1fn, with scales in f8e4m3fn and one f32 for the whole array (NVIDIA). */
export const nvfp4 = define({
  name: "nvfp4",
  element: formats.f4e2m1fn,
  scale: formats.f8e4m3fn,
  block: [1, 16],
  hasGlobalScale: true,
  largest: 6,
});
/** 128 elements of f8e4m3fn with an f32 scale, as activations of DeepSeek's models. */
export const fp8Block1x128 = fp8Block("fp8Block1x128", 1, 128);
/** Squares of 128 × 128 elements of f8e4m3fn with an f32 scale, as weights of DeepSeek's models. */
export const fp8Block128x128 = fp8Block("fp8Block128x128", 128, 128);

/** Every format with scales by name. */
export const scaledFormats = Object.freeze({
  mxfp8e4m3,
  mxfp8e5m2,
  mxfp6e2m3,
  mxfp6e3m2,
  mxfp4,
  nvfp4,
  fp8Block1x128,
  fp8Block128x128,
} as const satisfies { readonly [N in ScaledFormatName]: ScaledFormat<N> });

/** The format of the elements of a format with scales. */
export type ElementNameOf<N extends ScaledFormatName> =
  (typeof scaledFormats)[N]["element"]["name"];
/** The format of its scales. */
export type ScaleNameOf<N extends ScaledFormatName> = (typeof scaledFormats)[N]["scale"]["name"];

/** The axis beside the scaled one that blocks extend over too: the last one that is another. */
function besideAxis(rank: number, axis: number): number {
  return axis === rank - 1 ? rank - 2 : rank - 1;
}

/** The extents of a block of an array of `rank` axes, scaled along `axis`. */
export function blockExtents(
  { block: [across, along] }: Pick<ScaledFormat, "block">,
  rank: number,
  axis: number,
): number[] {
  const extents = new Array<number>(rank).fill(1);
  const beside = besideAxis(rank, axis);
  if (beside >= 0) extents[beside] = across;
  extents[axis] = along;
  return extents;
}
