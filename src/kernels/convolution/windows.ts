/**
 * Windows over arrays viewed as [outer, depth, height, width, inner], where channels are `inner` if last and part of `outer` if first.
 * Pooling and depthwise convolutions loop over windows tap by tap. Gradients gather, too: an element of x reads the windows that contain
 * it, so no atomics are needed.
 *
 *   taps 3, stride 2, before 1        x      0   1   2   3   4   5
 *   window 0                          t1  t2                            element 1 is tap 2 of window 0: u = 1 + 1 − 2 = 0 · 2
 *   window 1                              t0  t1  t2                    and tap 0 of window 1:           u = 1 + 1 − 0 = 1 · 2
 */
import { dtypes } from "../../formats/dtype.ts";
import type { Size } from "../../ir/size.ts";
import { dim, full, loop } from "../../lang/index.ts";
import type { LaunchSize, Ref, Scalar, Tile } from "../../lang/index.ts";
import { alignedDimension } from "../support/sizes.ts";
import type { Steps, Triple } from "./problem.ts";

const { i32 } = dtypes;

/** Extents of an array's five axes; an axis of one element is known to the kernel. */
export interface FiveExtents {
  readonly outer: number;
  readonly spatial: Triple;
  readonly inner: number;
}

const axisNames = ["depth", "height", "width"] as const;

export class WindowGrid {
  readonly outer = dim("outer");
  readonly inner: Size;
  readonly spatial: readonly Size[];

  constructor(prefix: string, { spatial, inner }: FiveExtents) {
    this.inner = inner === 1 ? 1 : alignedDimension("inner", inner);
    this.spatial = spatial.map((extent, axis) =>
      extent === 1 ? 1 : dim(`${prefix}_${axisNames[axis] ?? ""}`),
    );
  }

  get shape(): readonly Size[] {
    return [this.outer, ...this.spatial, this.inner];
  }

  get places(): LaunchSize {
    return this.spatial.reduce<LaunchSize>((all, extent) => all.mul(extent), this.outer);
  }

  /** The array as rows of inner elements. */
  rows(ref: Ref): Ref {
    return ref.reshape([this.places, this.inner]);
  }

  /** The number of the outer element and the spatial coordinates of places. */
  coordinates(places: Tile<"i32">): readonly [outer: Tile<"i32">, ...at: readonly Tile<"i32">[]] {
    let left = places;
    const found = this.spatial.toReversed().map((extent) => {
      if (extent === 1) return full(i32, [1], 0);
      const whole = left.div(extent);
      const own = left.sub(whole.mul(extent));
      left = whole;
      return own;
    });
    return [left, ...found.toReversed()];
  }

  /** The row of coordinates. */
  row(outer: Tile<"i32">, at: readonly Tile<"i32">[]): Tile<"i32"> {
    return at.reduce((row, own, axis) => row.mul(this.spatial[axis] ?? 1).add(own), outer);
  }

  isIn(at: readonly Tile<"i32">[]): Tile<"bool"> {
    return at
      .map((own, axis) => own.ge(0).and(own.lt(this.spatial[axis] ?? 1)))
      .reduce((all, own) => all.and(own));
  }
}

export type Tap = readonly (number | Scalar<"i32">)[];

/** Windows of so many taps are written out one after the other. */
const mostUnrolled = 32;

/** A tap by its number. */
export function tapAt([, height, width]: Triple, number: number | Scalar<"i32">): Tap {
  if (typeof number !== "number") {
    const rest = number.div(width);
    return [rest.div(height), rest.rem(height), number.rem(width)];
  }
  const rest = Math.floor(number / width);
  return [Math.floor(rest / height), rest % height, number % width];
}

export function overTaps<C extends { readonly [name: string]: Tile }>(
  taps: Triple,
  start: C,
  body: (tap: Tap, number: number | Scalar<"i32">, carry: C) => C,
): C {
  const [depth, height, width] = taps;
  const count = depth * height * width;
  if (count <= mostUnrolled) {
    let carry = start;
    for (let tap = 0; tap < count; tap += 1) carry = body(tapAt(taps, tap), tap, carry);
    return carry;
  }
  return loop({ to: count, carry: start }, (tap, carry) => body(tapAt(taps, tap), tap, carry));
}

/** Where a tap of windows lies in x. */
export function source(
  form: Steps,
  windows: readonly Tile<"i32">[],
  tap: Tap,
): readonly Tile<"i32">[] {
  return windows.map((own, axis) => {
    const shift = tap[axis] ?? 0;
    const dilation = form.dilation[axis] ?? 1;
    const by = typeof shift === "number" ? shift * dilation : shift.mul(dilation);
    return own
      .mul(form.stride[axis] ?? 1)
      .add(by)
      .sub(form.before[axis] ?? 0);
  });
}

/** The windows of which elements are a tap, and whether there are such. */
export function windowsOf(
  form: Steps,
  elements: readonly Tile<"i32">[],
  tap: Tap,
  windows: WindowGrid,
): { readonly windows: readonly Tile<"i32">[]; readonly isIn: Tile<"bool"> } {
  const found = elements.map((own, axis) => {
    const shift = tap[axis] ?? 0;
    const dilation = form.dilation[axis] ?? 1;
    const by = typeof shift === "number" ? shift * dilation : shift.mul(dilation);
    const along = own.add(form.before[axis] ?? 0).sub(by);
    const stride = form.stride[axis] ?? 1;
    const window = along.maximum(0).div(stride);
    const isWhole = window.mul(stride).eq(along);
    return { window, isWhole };
  });
  const at = found.map(({ window }) => window);
  const isIn = found.map(({ isWhole }) => isWhole).reduce((all, own) => all.and(own));
  return { windows: at, isIn: isIn.and(windows.isIn(at)) };
}
