/**
 * The kernels of pooling. Arrays are seen as [outer, depth, height, width, inner], where channels that stand last are `inner` and channels
 * that stand first belong to `outer`. A block has some places of the result, one after the other, and some of the inner
 * elements, and goes through the window tap by tap. Gradients are gathered, too: an element of x looks at the windows that it
 * is in, so that nothing is added by two blocks and results repeat bit for bit.
 *
 *   taps 3, stride 2, before 1        x      0   1   2   3   4   5
 *   window 0                          t1  t2                            element 1 is tap 2 of window 0: u = 1 + 1 − 2 = 0 · 2
 *   window 1                              t0  t1  t2                    and tap 0 of window 1:           u = 1 + 1 − 0 = 1 · 2
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { Size } from "../../ir/size.ts";
import { array, cdiv, dim, full, iota, kernel, loop, slice } from "../../lang/index.ts";
import type { KernelDefinition, LaunchSize, Ref, Scalar, Tile } from "../../lang/index.ts";
import type { Steps, Triple } from "../convolution/problem.ts";
import { extreme } from "../reduce/combinations.ts";
import { alignedDimension } from "../support/sizes.ts";
import { computeFormat } from "../support/numbers.ts";

const { i32 } = dtypes;

export interface PoolForm extends Steps {
  readonly kind: "max" | "average";
  readonly dtype: DType;
  readonly taps: Triple;
  /** Whether averages count zeros around x. */
  readonly includePadding: boolean;
  /** Whether the tap that was the greatest is told. */
  readonly tellsTap: boolean;
  /** Elements of a block: places, and inner ones. */
  readonly places: number;
  readonly columns: number;
}

/** Extents of an array's five axes; an axis of one element is known to the kernel. */
export interface FiveExtents {
  readonly outer: number;
  readonly spatial: Triple;
  readonly inner: number;
}

const axisNames = ["depth", "height", "width"] as const;

class Grid {
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
      const whole = left.div(extent as never);
      const own = left.sub(whole.mul(extent as never));
      left = whole;
      return own;
    });
    return [left, ...found.toReversed()];
  }

  /** The row of coordinates. */
  row(outer: Tile<"i32">, at: readonly Tile<"i32">[]): Tile<"i32"> {
    return at.reduce(
      (row, own, axis) => row.mul((this.spatial[axis] ?? 1) as never).add(own),
      outer,
    );
  }

  isIn(at: readonly Tile<"i32">[]): Tile<"bool"> {
    return at
      .map((own, axis) => own.ge(0).and(own.lt((this.spatial[axis] ?? 1) as never)))
      .reduce((all, own) => all.and(own));
  }
}

type Tap = readonly (number | Scalar<"i32">)[];

/** Windows of so many taps are written out one after the other. */
const mostUnrolled = 32;

function overTaps<C extends { readonly [name: string]: Tile }>(
  [depth, height, width]: Triple,
  start: C,
  body: (tap: Tap, number: number | Scalar<"i32">, carry: C) => C,
): C {
  const count = depth * height * width;
  if (count <= mostUnrolled) {
    let carry = start;
    for (let tap = 0; tap < count; tap += 1) {
      const rest = Math.floor(tap / width);
      carry = body([Math.floor(rest / height), rest % height, tap % width], tap, carry);
    }
    return carry;
  }
  return loop({ to: count, carry: start }, (tap, carry) => {
    const rest = tap.div(width);
    return body([rest.div(height), rest.rem(height), tap.rem(width)], tap, carry as C);
  }) as C;
}

/** Where a tap of windows lies in x. */
function source(form: Steps, windows: readonly Tile<"i32">[], tap: Tap): readonly Tile<"i32">[] {
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

/** By how much the sum of windows is divided. */
function countOf(
  form: PoolForm,
  windows: readonly Tile<"i32">[],
  x: Grid,
  compute: DType<"f32">,
): Tile<"f32"> {
  const [depth, height, width] = form.taps;
  if (form.includePadding) return full(compute, [1, 1], depth * height * width);
  const along = windows.map((own, axis) => {
    const [taps, dilation] = [form.taps[axis] ?? 1, form.dilation[axis] ?? 1];
    const first = own.mul(form.stride[axis] ?? 1).sub(form.before[axis] ?? 0);
    // Taps before x, and taps up to its end.
    const outside = first
      .neg()
      .maximum(0)
      .add(dilation - 1)
      .div(dilation)
      .minimum(taps);
    const room = full(i32, [1], 0).add((x.spatial[axis] ?? 1) as never);
    const inside = room
      .sub(first)
      .maximum(0)
      .add(dilation - 1)
      .div(dilation)
      .minimum(taps);
    return inside.sub(outside).maximum(0);
  });
  const count = along.reduce((all, own) => all.mul(own)).maximum(1);
  return count.cast(compute).expand(1);
}

interface Place {
  readonly tile: Scalar<"i32">;
  readonly part: Scalar<"i32">;
}

function windowOf({ places, columns }: PoolForm, { tile, part }: Place) {
  return [slice(tile.mul(places), places), slice(part.mul(columns), columns)] as const;
}

/** Arrays: x, out, and where it is told tap, the number of the first greatest tap of each window. */
export function poolKernel(
  form: PoolForm,
  input: FiveExtents,
  output: FiveExtents,
): KernelDefinition {
  const [from, to] = [new Grid("input", input), new Grid("output", output)];
  const { dtype, places, columns } = form;
  return kernel(
    {
      name: `pool_${form.kind}`,
      grid: { tile: cdiv(to.places, places), part: cdiv(to.inner, columns) },
      inputs: { x: array(dtype, from.shape) },
      outputs: {
        out: array(dtype, to.shape),
        ...(form.tellsTap && { tap: array(i32, to.shape) }),
      },
    },
    ({ tile, part, x, out, ...given }) => {
      const numbers = iota(i32, [places], 0).add((tile as Scalar<"i32">).mul(places));
      const [outer, ...windows] = to.coordinates(numbers);
      const rows = from.rows(x as Ref);
      const [, inner] = windowOf(form, { tile, part } as Place);
      const compute = form.kind === "max" ? (dtype as DType<"f32">) : computeFormat(dtype);
      const nothing = form.kind === "max" ? extreme(dtype, -1) : 0;
      const isPlace = numbers.lt(to.places as never);
      const load = (at: readonly Tile<"i32">[], isIn: Tile<"bool">): Tile<"f32"> => {
        const where = isIn.and(isPlace).expand(1);
        const found = rows.at(from.row(outer, at), inner).load({ where, fill: nothing as number });
        return found.cast(compute);
      };
      const start = {
        best: full(compute, [places, columns], nothing as number),
        ...(form.tellsTap && { tap: full(i32, [places, columns], -1) }),
      } as { readonly best: Tile<"f32">; readonly tap: Tile<"i32"> };
      const end = overTaps(form.taps, start, (tap, number, { best, tap: found }) => {
        const at = source(form, windows, tap);
        const isIn = from.isIn(at);
        const own = load(at, isIn);
        if (form.kind === "average") return { best: best.add(own) } as typeof start;
        if (!form.tellsTap) return { best: best.maximum(own) } as typeof start;
        let isBetter = own.gt(best);
        if (dtype.kind === "float") isBetter = isBetter.or(own.isNan().and(best.isNan().not()));
        // What is as low as nothing is still an element, and the first one counts.
        const isNew = isIn.expand(1).and(isBetter.or(found.lt(0)));
        const numbered = full(i32, [places, columns], 0).add(number);
        return { best: isNew.select(own, best), tap: isNew.select(numbered, found) };
      });
      const result =
        form.kind === "average" ? end.best.div(countOf(form, windows, from, compute)) : end.best;
      const here = windowOf(form, { tile, part } as Place);
      to.rows(out as Ref)
        .at(...here)
        .store(result.cast(dtype));
      const told = (given as { readonly tap?: Ref }).tap;
      if (told !== undefined)
        to.rows(told)
          .at(...here)
          .store(end.tap);
    },
  ) as unknown as KernelDefinition;
}

/** Arrays: dOut, of maxima tap, and dx. */
export function poolBackwardKernel(
  form: PoolForm,
  input: FiveExtents,
  output: FiveExtents,
): KernelDefinition {
  const [to, from] = [new Grid("input", input), new Grid("output", output)];
  const { dtype, places, columns } = form;
  const isMax = form.kind === "max";
  return kernel(
    {
      name: `pool_${form.kind}_backward`,
      grid: { tile: cdiv(to.places, places), part: cdiv(to.inner, columns) },
      inputs: {
        dOut: array(dtype, from.shape),
        ...(isMax && { tap: array(i32, from.shape) }),
      },
      outputs: { dx: array(dtype, to.shape) },
    },
    ({ tile, part, dOut, dx, ...given }) => {
      const numbers = iota(i32, [places], 0).add((tile as Scalar<"i32">).mul(places));
      const [outer, ...elements] = to.coordinates(numbers);
      const isPlace = numbers.lt(to.places as never);
      const [, inner] = windowOf(form, { tile, part } as Place);
      const compute = computeFormat(dtype);
      const rows = from.rows(dOut as Ref);
      const told = (given as { readonly tap?: Ref<"i32"> }).tap;
      const start = { sum: full(compute, [places, columns], 0) };
      const { sum } = overTaps(form.taps, start, (tap, number, carry) => {
        const { windows, isIn } = windowsOf(form, elements, tap, from);
        const where = isIn.and(isPlace).expand(1);
        const row = from.row(outer, windows);
        const share = rows.at(row, inner).load({ where }).cast(compute);
        if (told === undefined)
          return { sum: carry.sum.add(share.div(countOf(form, windows, to, compute))) };
        const chosen = from
          .rows(told)
          .at(row, inner)
          .load({ where, fill: -1 } as never);
        const isOwn = (chosen as Tile<"i32">).eq(full(i32, [1, 1], 0).add(number));
        return { sum: carry.sum.add(isOwn.select(share, full(compute, [1, 1], 0))) };
      });
      to.rows(dx as Ref)
        .at(...windowOf(form, { tile, part } as Place))
        .store(sum.cast(dtype));
    },
  ) as unknown as KernelDefinition;
}

/** The windows of which elements are a tap, and whether there are such. */
function windowsOf(
  form: Steps,
  elements: readonly Tile<"i32">[],
  tap: Tap,
  windows: Grid,
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
