/**
 * Convolution as an implicit GEMM with gathers, for any sizes and strides. Rows of the product are positions of the result, columns are its
 * channels, and k runs over the taps of the window and the channels of each. Rows of x are gathered in place; nothing is unfolded in memory
 * (no im2col):
 *
 *   forward        out[p, o] = Σ tap, c   x[p · stride + tap · dilation − before, c]   ·  w[o, tap, c]
 *   gradient of x  dx[p, c]  = Σ tap, o   dOut[(p + before − tap · dilation) / stride, o] · w[o, tap, c]
 *
 * where positions outside of the array are skipped and, for the gradient, quotients with a remainder.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { cdiv, dot, iota, kernel, loop, slice, zeros } from "../../lang/index.ts";
import type { KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { multiplySizes } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { windowAlong } from "./problem.ts";
import type { ConvolutionProblem, Geometry, Triple, WindowSteps } from "./problem.ts";
import { View, extentSize } from "./view.ts";

export type Direction = "forward" | "backward";

export interface GatherConfiguration {
  /** Which kernel runs it. */
  readonly kernel: "gather";
  /** Rows of a block's part of the result. */
  readonly rows: number;
  /** Columns of a block's part of the result. */
  readonly columns: number;
  /** Elements along the sum that a step takes. */
  readonly depth: number;
}

/** The arrays of a product: what is read by number, weights, and what is made. */
export interface GatherViews {
  readonly read: View;
  readonly weights: View;
  readonly made: View;
}

const spatialNames = ["depth", "height", "width"] as const;
const madeNames = ["made_depth", "made_height", "made_width"] as const;
const tapNames = ["taps_depth", "taps_height", "taps_width"] as const;

type Named = readonly [string, string, string];

/** An array of a batch with its channels apart by groups; `channels` names those of a group. */
function pixelView(
  name: string,
  { strides }: Geometry["x"],
  { batch, groups }: Geometry,
  spatial: Triple,
  names: Named,
  channels: { readonly name: string; readonly extent: number },
): View {
  return new View(name, [
    { name: "batch", extent: batch, stride: strides[0] },
    ...names.map((own, axis) => ({
      name: own,
      extent: spatial[axis] ?? 1,
      stride: strides[axis + 1] ?? 1,
    })),
    { name: "group", extent: groups, stride: strides[4] * channels.extent },
    { ...channels, stride: strides[4] },
  ]);
}

export function weightView(name: string, { w, taps, groups, outputs, channels }: Geometry): View {
  const { strides } = w;
  return new View(name, [
    { name: "group", extent: groups, stride: strides[0] * outputs },
    { name: "outputs", extent: outputs, stride: strides[0] },
    ...tapNames.map((own, axis) => ({
      name: own,
      extent: taps[axis] ?? 1,
      stride: strides[axis + 1] ?? 1,
    })),
    { name: "channels", extent: channels, stride: strides[4] },
  ]);
}

/** x and the result, either of which may be read by number and the other be made or read in order. */
export function pixelViews(
  geometry: Geometry,
  direction: Direction,
  names: { readonly x: string; readonly out: string },
): { readonly x: View; readonly out: View } {
  const [ofX, ofOut] =
    direction === "forward" ? [spatialNames, madeNames] : [madeNames, spatialNames];
  const { x, out, input, output, channels, outputs } = geometry;
  return {
    x: pixelView(names.x, x, geometry, input, ofX, { name: "channels", extent: channels }),
    out: pixelView(names.out, out, geometry, output, ofOut, { name: "outputs", extent: outputs }),
  };
}

export function gatherViews(geometry: Geometry, direction: Direction): GatherViews {
  const isForward = direction === "forward";
  const { x, out } = pixelViews(
    geometry,
    direction,
    isForward ? { x: "read", out: "made" } : { x: "made", out: "read" },
  );
  const weights = weightView("weights", geometry);
  return isForward ? { read: x, weights, made: out } : { read: out, weights, made: x };
}

/** Places of an array, one a row: numbers along the batch and the three spatial axes. */
export interface Places {
  readonly batch: Tile<"i32">;
  readonly spatial: Triple<Tile<"i32">>;
}

/** The places with numbers `first`, `first + 1`, …, counted through the batch and all spatial axes. */
export function placesFrom(first: Scalar<"i32">, count: number, extents: Triple<Size>): Places {
  const number = iota(dtypes.i32, [count], { axis: 0 }).add(first);
  const split = (from: Tile<"i32">, by: Size): readonly [Tile<"i32">, Tile<"i32">] => {
    if (by === 1) return [from, zeros(dtypes.i32, [count])];
    const above = from.div(by);
    return [above, from.sub(above.mul(by))];
  };
  const [overWidth, width] = split(number, extents[2]);
  const [overHeight, height] = split(overWidth, extents[1]);
  const [batch, depth] = split(overHeight, extents[0]);
  return { batch, spatial: [depth, height, width] };
}

/** Where an element of the window of each place lies along an axis, and whether it is there at all. */
export function elementAlong(
  direction: Direction,
  place: Tile<"i32">,
  tap: Scalar<"i32">,
  { stride, dilation, before }: WindowSteps,
  extent: Size,
): { readonly at: Tile<"i32">; readonly isThere: Tile<"bool"> } {
  if (direction === "forward") {
    const at = place.mul(stride).add(tap.mul(dilation)).sub(before);
    return { at, isThere: at.ge(0).and(at.lt(extent)) };
  }
  const reached = place.add(before).sub(tap.mul(dilation));
  const at = stride === 1 ? reached : reached.div(stride);
  const isWithin = reached.ge(0).and(at.lt(extent));
  return { at, isThere: stride === 1 ? isWithin : isWithin.and(at.mul(stride).eq(reached)) };
}

/** Windows of all places at one tap: rows of the array that is read, [places, size]. */
export function readRows(
  read: Ref,
  direction: Direction,
  problem: ConvolutionProblem,
  { batch, spatial }: Places,
  { taps, group }: { readonly taps: Triple<Scalar<"i32">>; readonly group: Scalar<"i32"> },
  extents: Triple<Size>,
  channels: { readonly from: Scalar<"i32">; readonly size: number },
  within: Tile<"bool">,
): Tile {
  const found = spatial.map((place, axis) =>
    elementAlong(
      direction,
      place,
      taps[axis] ?? taps[0],
      windowAlong(problem, axis),
      extents[axis] ?? 1,
    ),
  );
  const where = found.reduce((all, { isThere }) => all.and(isThere), within).expand({ axis: 1 });
  const [depth, height, width] = found.map(({ at }) => at);
  if (depth === undefined || height === undefined || width === undefined)
    throw new Error("there are three spatial axes");
  const groups = batch.mul(0).add(group);
  return read
    .at(batch, depth, height, width, groups, slice(channels.from, channels.size))
    .load({ where });
}

/** Nested loops over the elements of a window. */
export function overTaps(
  [depth, height, width]: Triple<Size>,
  first: Tile<"f32">,
  body: (at: Triple<Scalar<"i32">>, sums: Tile<"f32">) => Tile<"f32">,
): Tile<"f32"> {
  return loop({ to: depth, carry: first }, (z, inDepth) =>
    loop({ to: height, carry: inDepth }, (y, inHeight) =>
      loop({ to: width, carry: inHeight }, (x, inWidth) => body([z, y, x], inWidth)),
    ),
  );
}

/** The size of the first axis. */
export function batchSize({ axes: [batch] }: View): Size {
  return batch === undefined ? 1 : extentSize(batch);
}

/** Extents of three axes, the first of which is axis `first`. */
export function extentsFrom({ axes }: View, first: number): Triple<Size> {
  const [depth, height, width] = axes.slice(first, first + 3).map((axis) => extentSize(axis));
  if (depth === undefined || height === undefined || width === undefined)
    throw new Error("there are three spatial axes");
  return [depth, height, width];
}

export function gatherKernel(
  problem: ConvolutionProblem,
  direction: Direction,
  { read, weights, made }: GatherViews,
  { rows, columns, depth }: GatherConfiguration,
): KernelDefinition {
  const isForward = direction === "forward";
  const madeChannels = made.axes.at(-1);
  const readChannels = read.axes.at(-1);
  const group = made.axes.at(-2);
  if (madeChannels === undefined || readChannels === undefined || group === undefined)
    throw new Error("arrays of a convolution have channels");
  const inMade = extentsFrom(made, 1);
  const inRead = extentsFrom(read, 1);
  const taps = extentsFrom(weights, 2);
  const places = multiplySizes(batchSize(made), ...inMade);
  const output = isForward ? problem.out.dtype : problem.x.dtype;
  const dtype = problem.accumulator as DType<"f32">;
  const precision = problem.precision === undefined ? {} : { precision: problem.precision };
  return kernel(
    {
      name: isForward ? "convolution" : "convolution_backward_x",
      grid: {
        own: extentSize(group),
        i: cdiv(places, rows),
        j: cdiv(extentSize(madeChannels), columns),
      },
      inputs: { read: read.spec(problem.x.dtype), weights: weights.spec(problem.w.dtype) },
      outputs: { made: made.spec(output) },
    },
    ({ own, i, j, ...arrays }) => {
      const from = i.mul(rows);
      const here = placesFrom(from, rows, inMade);
      const within = iota(dtypes.i32, [rows], { axis: 0 })
        .add(from)
        .lt(places as never);
      const across = slice(j.mul(columns), columns);
      const sums = overTaps(taps, zeros(dtype, [rows, columns]), (at, before) =>
        loop({ to: cdiv(extentSize(readChannels), depth), carry: before }, (step, accumulator) => {
          const channels = { from: step.mul(depth), size: depth };
          const where = { taps: at, group: own };
          const left = readRows(
            ...([arrays.read, direction, problem, here, where, inRead, channels] as const),
            within,
          );
          const along = slice(channels.from, depth);
          const right = isForward
            ? arrays.weights
                .at(own, across, ...at, along)
                .load()
                .transpose()
            : arrays.weights.at(own, along, ...at, across).load();
          return dot(left, right, {
            accumulator,
            dtype,
            ...precision,
          });
        }),
      );
      const [depthAt, height, width] = here.spatial;
      const target = arrays.made.at(
        ...[here.batch, depthAt, height, width, here.batch.mul(0).add(own), across],
      );
      target.store(sums.cast(output), { where: within.expand({ axis: 1 }) });
    },
  ) as unknown as KernelDefinition;
}

/** Places of what is made. */
export function placeCount(geometry: Geometry, direction: Direction): number {
  const { batch, input, output } = geometry;
  const [depth, height, width] = direction === "forward" ? output : input;
  return batch * depth * height * width;
}
