/**
 * The kernels of pooling. A block computes consecutive positions of the result and some of the inner elements, and loops over the window
 * tap by tap (`convolution/windows.ts`). Results repeat bit for bit.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { tensor, cdiv, full, iota, kernel, slice } from "../../lang/index.ts";
import type { KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import type { Steps, Triple } from "../convolution/problem.ts";
import { WindowGrid, overTaps, source, windowsOf } from "../convolution/windows.ts";
import type { FiveExtents } from "../convolution/windows.ts";
import { extreme } from "../reduce/combiners.ts";
import { computeFormat } from "../support/numbers.ts";

const { i32 } = dtypes;

export interface PoolForm extends Steps {
  readonly kind: "max" | "average";
  readonly dtype: DType;
  readonly taps: Triple;
  /** Whether averages count zeros around x. */
  readonly includePadding: boolean;
  /** Whether the argmax tap is a result. */
  readonly tellsTap: boolean;
  /** Elements of a block: places, and inner ones. */
  readonly places: number;
  readonly columns: number;
}

/** By how much the sum of windows is divided. */
function countOf(
  form: PoolForm,
  windows: readonly Tile<"i32">[],
  x: WindowGrid,
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
    const room = full(i32, [1], 0).add(x.spatial[axis] ?? 1);
    const inside = room
      .sub(first)
      .maximum(0)
      .add(dilation - 1)
      .div(dilation)
      .minimum(taps);
    return inside.sub(outside).maximum(0);
  });
  const count = along.reduce((all, own) => all.mul(own)).maximum(1);
  return count.cast(compute).expand({ axis: 1 });
}

interface Place {
  readonly tile: Scalar<"i32">;
  readonly part: Scalar<"i32">;
}

function windowOf({ places, columns }: PoolForm, { tile, part }: Place) {
  return [slice(tile.mul(places), places), slice(part.mul(columns), columns)] as const;
}

/** Arrays: x, out, and optionally tap, the number of the first greatest tap of each window. */
export function poolKernel(
  form: PoolForm,
  input: FiveExtents,
  output: FiveExtents,
): KernelDefinition {
  const [from, to] = [new WindowGrid("input", input), new WindowGrid("output", output)];
  const { dtype, places, columns } = form;
  return kernel(
    {
      name: `pool_${form.kind}`,
      grid: { tile: cdiv(to.places, places), part: cdiv(to.inner, columns) },
      inputs: { x: tensor(dtype, from.shape) },
      outputs: {
        out: tensor(dtype, to.shape),
        ...(form.tellsTap && { tap: tensor(i32, to.shape) }),
      },
    },
    ({ tile, part, x, out, ...given }) => {
      const numbers = iota(i32, [places], { axis: 0 }).add(tile.mul(places));
      const [outer, ...windows] = to.coordinates(numbers);
      const rows = from.rows(x);
      const [, inner] = windowOf(form, { tile, part } as Place);
      const compute = form.kind === "max" ? (dtype as DType<"f32">) : computeFormat(dtype);
      const nothing = form.kind === "max" ? extreme(dtype, -1) : 0;
      const isPlace = numbers.lt(to.places as never);
      const load = (at: readonly Tile<"i32">[], isIn: Tile<"bool">): Tile<"f32"> => {
        const where = isIn.and(isPlace).expand({ axis: 1 });
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
        const isNew = isIn.expand({ axis: 1 }).and(isBetter.or(found.lt(0)));
        const numbered = full(i32, [places, columns], 0).add(number);
        return { best: isNew.select(own, best), tap: isNew.select(numbered, found) };
      });
      const result =
        form.kind === "average" ? end.best.div(countOf(form, windows, from, compute)) : end.best;
      const here = windowOf(form, { tile, part } as Place);
      to.rows(out)
        .at(...here)
        .store(result.cast(dtype));
      const taps = (given as { readonly tap?: Ref }).tap;
      if (taps !== undefined)
        to.rows(taps)
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
  const [to, from] = [new WindowGrid("input", input), new WindowGrid("output", output)];
  const { dtype, places, columns } = form;
  const isMax = form.kind === "max";
  return kernel(
    {
      name: `pool_${form.kind}_backward`,
      grid: { tile: cdiv(to.places, places), part: cdiv(to.inner, columns) },
      inputs: {
        dOut: tensor(dtype, from.shape),
        ...(isMax && { tap: tensor(i32, from.shape) }),
      },
      outputs: { dx: tensor(dtype, to.shape) },
    },
    ({ tile, part, dOut, dx, ...given }) => {
      const numbers = iota(i32, [places], { axis: 0 }).add(tile.mul(places));
      const [outer, ...elements] = to.coordinates(numbers);
      const isPlace = numbers.lt(to.places);
      const [, inner] = windowOf(form, { tile, part });
      const compute = computeFormat(dtype);
      const rows = from.rows(dOut);
      const taps = given.tap;
      const start = { sum: full(compute, [places, columns], 0) };
      const { sum } = overTaps(form.taps, start, (tap, number, carry) => {
        const { windows, isIn } = windowsOf(form, elements, tap, from);
        const where = isIn.and(isPlace).expand({ axis: 1 });
        const row = from.row(outer, windows);
        const share = rows.at(row, inner).load({ where }).cast(compute);
        if (taps === undefined)
          return { sum: carry.sum.add(share.div(countOf(form, windows, to, compute))) };
        const chosen = from.rows(taps).at(row, inner).load({ where, fill: -1 });
        const isOwn = chosen.eq(full(i32, [1, 1], 0).add(number));
        return { sum: carry.sum.add(isOwn.select(share, full(compute, [1, 1], 0))) };
      });
      to.rows(dx)
        .at(...windowOf(form, { tile, part }))
        .store(sum.cast(dtype));
    },
  );
}
