/**
 * The specification of a convolution, checked and normalized. Arrays of one to three spatial axes are viewed with three, of which the first
 * may be 1, so that the rest of this folder handles one form:
 *
 *   x    [n, depth, height, width, c]                      w   [o, kernel depth, kernel height, kernel width, c / groups]
 *   out  [n, depth', height', width', o]
 *
 * With `channels: "first"` the axes stand in another order, [n, c, …] and [o, c / groups, …]; to kernels that is a
 * matter of strides.
 */
import { acceptsDot } from "../../formats/arithmetic/index.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { addSizes, floorDivSize, multiplySizes, sameSize, sizeText } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { tensor } from "../../lang/index.ts";
import type { TensorSpec } from "../../lang/index.ts";
import { splitPrecisions } from "../../lang/split-precision.ts";
import type { SplitPrecision } from "../../lang/index.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { refused, requireFields, requiredArray } from "../support/arguments.ts";
import type { Fields } from "../support/arguments.ts";
import { laidOut } from "../support/sizes.ts";

/** A number for all spatial axes, or one for each. */
export type PerAxis<T> = T | readonly T[];

/** What `convolution` is made for: its arrays, strides, padding, dilation and groups. */
export interface ConvolutionSpec<X extends DTypeName, Out extends DTypeName = X> {
  /** [n, …, c]: a batch, one to three spatial axes, channels. */
  readonly x: TensorSpec<X>;
  /** [o, …, c / groups], in the order of x's axes. Extents of the kernel are numbers. */
  readonly w: TensorSpec<X>;
  /** Where channels stand in x, w and the result; `"last"` by default. */
  readonly channels?: "last" | "first";
  /** Steps from one window to the next; 1 by default. */
  readonly strides?: PerAxis<number>;
  /** Steps from one element of a window to the next; 1 by default. */
  readonly dilation?: PerAxis<number>;
  /** Zeros around x, or as many before and after it; 0 by default. */
  readonly padding?: PerAxis<number | readonly [before: number, after: number]>;
  /** Parts of the channels that are convolved apart; 1 by default. */
  readonly groups?: number;
  /** The format of the result; x's own by default. */
  readonly out?: DType<Out>;
  /** How f32 is multiplied; for f32 alone, and always said. */
  readonly precision?: "ieee" | SplitPrecision;
}

const fields: Fields = {
  x: "array",
  w: "array",
  channels: "choice",
  strides: "each",
  dilation: "each",
  padding: "each",
  groups: "number",
  out: "format",
  precision: "choice",
};

export type Triple<T = number> = readonly [depth: T, height: T, width: T];

/** How windows go over x along three axes; of arrays with fewer the first are 1. */
export interface Steps {
  readonly stride: Triple;
  readonly dilation: Triple;
  /** Zeros before and after x. */
  readonly before: Triple;
  readonly after: Triple;
}

export interface ConvolutionProblem extends Steps {
  readonly x: TensorSpec;
  readonly w: TensorSpec;
  readonly out: TensorSpec;
  readonly isLast: boolean;
  readonly groups: number;
  readonly accumulator: DType;
  readonly precision: "ieee" | SplitPrecision | undefined;
  readonly location: Location;
}

export function problemOf(
  of: string,
  spec: ConvolutionSpec<DTypeName, DTypeName>,
  location: Location,
): ConvolutionProblem {
  requireFields(of, spec, fields, location);
  const x = requiredArray("x", of, spec.x, location);
  const w = requiredArray("w", of, spec.w, location);
  const rank = x.shape.length - 2;
  const { channels = "last", groups = 1 } = spec;
  if (channels !== "last" && channels !== "first")
    throw refused("TW9904", `${of} knows no such order`, "last or first", channels, location);
  requireRank(of, "x", x, 0, location);
  if (w.shape.length !== x.shape.length) requireRank(of, "w", w, rank, location);
  const isLast = channels === "last";
  const steps = stepsOf(of, spec, rank, location);
  if (!Number.isSafeInteger(groups) || groups < 1)
    throw refused(
      "TW9904",
      `${of} has ${groups} groups`,
      "1 or more",
      optionText(groups),
      location,
    );
  const [channelsOfX, channelsOfW] = [axesOf(x.shape, isLast), axesOf(w.shape, isLast)];
  if (!sameSize(channelsOfX.channels, multiplySizes(groups, channelsOfW.channels)))
    throw refused(
      "TW9902",
      `the channels of x and w of ${of} do not agree`,
      `w with ${sizeText(channelsOfX.channels)} / ${groups} channels`,
      sizeText(channelsOfW.channels),
      location,
    );
  const taps = staticExtents(of, channelsOfW.spatial, location);
  requireDivisible(of, channelsOfW.batch, groups, location);
  const extents = channelsOfX.spatial.map((size, axis) =>
    resultExtent(of, size, taps[axis] ?? 1, windowAlong(steps, axis + 3 - rank), location),
  );
  const shape = isLast
    ? [channelsOfX.batch, ...extents, channelsOfW.batch]
    : [channelsOfX.batch, channelsOfW.batch, ...extents];
  return {
    ...steps,
    ...{ x, w, isLast, groups, location },
    out: tensor(spec.out ?? x.dtype, shape),
    ...arithmeticOf(of, spec, x.dtype, w.dtype, location),
  };
}

function requireRank(
  of: string,
  name: string,
  { shape }: TensorSpec,
  spatial: number,
  location: Location,
): void {
  if (spatial === 0 && shape.length >= 3 && shape.length <= 5) return;
  throw refused(
    "TW9902",
    `${name} of ${of} has ${shape.length} axes`,
    spatial === 0 ? "3 to 5 axes, of which 1 to 3 are spatial" : `${spatial + 2} axes, as x has`,
    `[${shape.map(sizeText).join(", ")}]`,
    location,
  );
}

function requireDivisible(of: string, size: Size, by: number, location: Location): void {
  if (typeof size !== "number" || size % by === 0) return;
  throw refused(
    "TW9902",
    `w of ${of} makes channels that groups do not share evenly`,
    `a multiple of ${by}`,
    sizeText(size),
    location,
  );
}

function staticExtents(
  of: string,
  spatial: readonly Size[],
  location: Location,
): readonly number[] {
  return spatial.map((size) => {
    if (typeof size === "number" && size > 0) return size;
    throw refused(
      "TW9902",
      `the kernel of ${of} has an extent that is not a number`,
      "numbers, such as w: tensor(bf16, [o, 3, 3, c])",
      sizeText(size),
      location,
    );
  });
}

/** What is multiplied is named where it changes the numbers. */
function arithmeticOf(
  of: string,
  { precision }: ConvolutionSpec<DTypeName, DTypeName>,
  x: DType,
  w: DType,
  location: Location,
): Pick<ConvolutionProblem, "accumulator" | "precision"> {
  const accumulator = [dtypes.f32, dtypes.f64].find((dtype) => acceptsDot(x, w, dtype));
  if (accumulator === undefined || x !== w || x.bits < 16)
    throw refused(
      "TW9901",
      `${of} has no product of ${x.name} and ${w.name}`,
      "both of bf16, f16, f32 or f64",
      `${x.name} and ${w.name}`,
      location,
    );
  const wanted = ["ieee", ...splitPrecisions];
  const isSaid = x === dtypes.f32 ? wanted.includes(precision ?? "") : precision === undefined;
  if (!isSaid)
    throw refused(
      "TW9904",
      `${of} of ${x.name} ${x === dtypes.f32 ? "needs" : "takes no"} precision`,
      x === dtypes.f32 ? wanted.join(", ") : "no precision",
      optionText(precision),
      location,
    );
  return { accumulator, precision };
}

/** Axes by what they are. */
function axesOf<T>(
  sizes: readonly T[],
  isLast: boolean,
): { readonly batch: T; readonly channels: T; readonly spatial: readonly T[] } {
  const [batch, second] = sizes;
  const last = sizes.at(-1);
  if (batch === undefined || second === undefined || last === undefined)
    throw new Error("a convolution has at least three axes");
  return isLast
    ? { batch, channels: last, spatial: sizes.slice(1, -1) }
    : { batch, channels: second, spatial: sizes.slice(2) };
}

/** Window steps along an axis. */
export interface WindowSteps {
  readonly stride: number;
  readonly dilation: number;
  readonly before: number;
  readonly after: number;
}

export function windowAlong({ stride, dilation, before, after }: Steps, axis: number): WindowSteps {
  const at = (each: Triple): number => each[axis] ?? 1;
  return { stride: at(stride), dilation: at(dilation), before: at(before), after: at(after) };
}

/** Windows along an axis: ⌊(extent + padding − dilation · (taps − 1) − 1) / stride⌋ + 1. */
export function resultExtent(
  of: string,
  extent: Size,
  taps: number,
  { stride, dilation, before, after }: WindowSteps,
  location: Location,
): Size {
  const room = addSizes(extent, before + after - dilation * (taps - 1) - 1);
  if (typeof room === "number" && room < 0)
    throw refused(
      "TW9902",
      `the kernel of ${of} is longer than x`,
      `at most ${addedText(extent, before + after)} elements`,
      `${dilation * (taps - 1) + 1}`,
      location,
    );
  return addSizes(floorDivSize(room, stride), 1);
}

function addedText(size: Size, more: number): string {
  return sizeText(addSizes(size, more));
}

export function stepsOf(
  of: string,
  given: Pick<ConvolutionSpec<DTypeName>, "strides" | "dilation" | "padding">,
  rank: number,
  location: Location,
): Steps {
  const { strides: stride = 1, dilation = 1, padding = 0 } = given;
  const each = <T>(name: string, value: PerAxis<T>, isRight: (one: unknown) => boolean) => {
    // A pair of numbers is padding before and after only inside a list of axes.
    const list = Array.isArray(value) ? (value as readonly T[]) : Array<T>(rank).fill(value as T);
    if (list.length === rank && list.every(isRight)) return list;
    throw refused(
      "TW9904",
      `${name} of ${of} does not fit ${rank} spatial axes`,
      `a number, or a list of ${rank}`,
      optionText(value),
      location,
    );
  };
  const isFrom = (least: number) => (one: unknown) =>
    Number.isSafeInteger(one) && Number(one) >= least;
  const isPadding = (one: unknown): boolean =>
    isFrom(0)(one) || (Array.isArray(one) && one.length === 2 && one.every(isFrom(0)));
  const filled = (list: readonly number[], missing: number): Triple => {
    const [depth = missing, height = missing, width = missing] = [
      ...Array<number>(3 - rank).fill(missing),
      ...list,
    ];
    return [depth, height, width];
  };
  const sides = each("padding", padding, isPadding).map((one) =>
    typeof one === "number" ? ([one, one] as const) : one,
  );
  return {
    stride: filled(each("strides", stride, isFrom(1)), 1),
    dilation: filled(each("dilation", dilation, isFrom(1)), 1),
    before: filled(
      sides.map(([before]) => before),
      0,
    ),
    after: filled(
      sides.map(([, after]) => after),
      0,
    ),
  };
}

/** An array of five axes, whatever it was: extents and strides in the order [n or o, depth, height, width, channels]. */
export interface FiveAxes {
  readonly extents: readonly [number, number, number, number, number];
  readonly strides: readonly [number, number, number, number, number];
}

export function fiveAxes(
  spec: TensorSpec,
  isLast: boolean,
  dimensions: { readonly [name: string]: number },
): FiveAxes {
  const { shape, strides } = laidOut(spec, dimensions);
  const filled = (numbers: readonly number[], missing: number): FiveAxes["extents"] => {
    const { batch, channels, spatial } = axesOf(numbers, isLast);
    const [depth = missing, height = missing, width = missing] = [
      ...Array<number>(3 - spatial.length).fill(missing),
      ...spatial,
    ];
    return [batch, depth, height, width, channels];
  };
  return { extents: filled(shape, 1), strides: filled(strides, 0) };
}

/** The sizes of one convolution, and how its arrays lie. */
export interface Geometry {
  readonly batch: number;
  /** Channels of x and of the result in each group. */
  readonly channels: number;
  readonly outputs: number;
  readonly groups: number;
  readonly input: Triple;
  readonly output: Triple;
  readonly taps: Triple;
  readonly x: FiveAxes;
  readonly w: FiveAxes;
  readonly out: FiveAxes;
}

export function geometryOf(
  problem: ConvolutionProblem,
  dimensions: { readonly [name: string]: number },
): Geometry {
  const { isLast, groups } = problem;
  const [x, w, out] = [problem.x, problem.w, problem.out].map((spec) =>
    fiveAxes(spec, isLast, dimensions),
  );
  if (x === undefined || w === undefined || out === undefined) throw new Error("three arrays");
  const spatial = ({ extents }: FiveAxes): Triple => [extents[1], extents[2], extents[3]];
  requireDivisible("convolution", w.extents[0], groups, problem.location);
  return {
    batch: x.extents[0],
    channels: w.extents[4],
    outputs: w.extents[0] / groups,
    groups,
    input: spatial(x),
    output: spatial(out),
    taps: spatial(w),
    ...{ x, w, out },
  };
}

/** Whether windows are single places side by side. */
export function hasSinglePlaces(problem: ConvolutionProblem, { taps }: Geometry): boolean {
  return [0, 1, 2].every((axis) => {
    const { stride, before, after } = windowAlong(problem, axis);
    return taps[axis] === 1 && stride === 1 && before === 0 && after === 0;
  });
}

/**
 * The same sizes where windows are single places side by side, with every place an image of its own: places then lie one after the
 * other, and boxes of them are runs. Arrays must lie by rows, with channels last.
 */
export function withoutWindows(problem: ConvolutionProblem, geometry: Geometry): Geometry {
  if (!hasSinglePlaces(problem, geometry)) return geometry;
  const { batch, input, x, out } = geometry;
  const places = batch * input[0] * input[1] * input[2];
  const single = ({ extents: [, , , , channels] }: FiveAxes): FiveAxes => ({
    extents: [places, 1, 1, 1, channels],
    strides: [channels, 0, 0, 0, 1],
  });
  const one: Triple = [1, 1, 1];
  return { ...geometry, batch: places, input: one, output: one, x: single(x), out: single(out) };
}
