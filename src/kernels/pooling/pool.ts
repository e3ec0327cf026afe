/**
 * `pool` and its gradient: max and average pooling over one to three spatial axes.
 *
 *   pool({ x: tensor(bf16, [n, 56, 56, 64]), kind: "max", window: 3, stride: 2, padding: 1 })       [n, 28, 28, 64]
 *
 * The gradient of max pooling needs the argmax of each window, which `tap: true` returns.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation, Planned, PlannedArgument } from "../../device/operation.ts";
import { tensor } from "../../lang/index.ts";
import type { TensorSpec, Empty, KernelDefinition } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import type { Target } from "../../targets/target.ts";
import { resultExtent, stepsOf, windowAlong } from "../convolution/problem.ts";
import type { PerAxis, Steps, Triple } from "../convolution/problem.ts";
import { copy } from "../elementwise/cast.ts";
import { composed } from "../support/compose.ts";
import type { Step } from "../support/compose.ts";
import {
  refused,
  requireComparable,
  requireFields,
  requireFloat,
  requiredArray,
} from "../support/arguments.ts";
import type { Fields } from "../support/arguments.ts";
import {
  alignment,
  laidOut,
  threadsPerBlock,
  powerOfTwoFrom,
  widestAccess,
} from "../support/sizes.ts";
import type { FiveExtents } from "../convolution/windows.ts";
import { poolBackwardKernel, poolKernel } from "./pool-kernels.ts";
import type { PoolForm } from "./pool-kernels.ts";

/** Windows of an array: their extents, strides and padding, and what is made of each. */
export interface PoolSpec<X extends DTypeName> {
  /** [n, …, c]: a batch, one to three spatial axes, channels. What does not lie by rows is copied so first. */
  readonly x: TensorSpec<X>;
  /** What is made of a window. */
  readonly kind: "max" | "average";
  /** Elements of a window: a number, or one for each spatial axis. */
  readonly window: PerAxis<number>;
  /** Where channels stand; `"last"` by default, or `"first"` for [n, c, …]. */
  readonly channels?: "last" | "first";
  /** Steps from one window to the next; as long as the window by default. */
  readonly strides?: PerAxis<number>;
  /** Steps from one element of a window to the next; 1 by default. */
  readonly dilation?: PerAxis<number>;
  /** Places around x that no maximum takes; 0 by default. */
  readonly padding?: PerAxis<number | readonly [before: number, after: number]>;
  /** Whether averages count places around x, as zeros; they do not by default. */
  readonly includePadding?: boolean;
}

/** What `pool` is made for. */
export interface PoolForwardSpec<X extends DTypeName, T extends boolean> extends PoolSpec<X> {
  /** Whether `tap` says which element of its window each maximum is. */
  readonly tap?: T;
}

/** Places and channels of a block. */
export interface PoolConfiguration {
  /** Places of the result of a block. */
  readonly places: number;
  /** Channels of a block. */
  readonly columns: number;
}

/** The operation that `pool` makes. */
export type PoolOperation<X extends DTypeName, T extends boolean> = Operation<
  { readonly x: TensorSpec<X> },
  { readonly out: TensorSpec<X> } & (T extends true ? { readonly tap: TensorSpec<"i32"> } : Empty),
  Empty,
  PoolConfiguration
>;

/** The operation that `poolBackward` makes for maxima. */
export type PoolBackwardOperation<X extends DTypeName> = Operation<
  { readonly dOut: TensorSpec<X>; readonly tap: TensorSpec<"i32"> },
  { readonly dx: TensorSpec<X> },
  Empty,
  PoolConfiguration
>;

/** The operation that `poolBackward` makes for averages. */
export type AveragePoolBackwardOperation<X extends DTypeName> = Operation<
  { readonly dOut: TensorSpec<X> },
  { readonly dx: TensorSpec<X> },
  Empty,
  PoolConfiguration
>;

const fields: Fields = {
  x: "array",
  kind: "choice",
  window: "each",
  channels: "choice",
  strides: "each",
  dilation: "each",
  padding: "each",
  includePadding: "flag",
};

/** The greatest or the average of each window. */
export function pool<X extends DTypeName, T extends boolean = false>(
  spec: PoolForwardSpec<X, T>,
): PoolOperation<X, T> {
  const location = captureLocation();
  requireFields("pool", spec, { ...fields, tap: "flag" }, location);
  const tellsTap = spec.tap ?? false;
  const problem = problemOf("pool", spec, tellsTap, location);
  const { x, out } = problem;
  return operation({
    name: "pool",
    inputs: { x },
    outputs: { out, ...(tellsTap && { tap: tensor(dtypes.i32, out.shape) }) },
    plan: (dimensions, target) =>
      planPool(problem, dimensions, target, {
        made: "out",
        read: ["x"],
        also: tellsTap ? ["tap"] : [],
        kernel: poolKernel,
      }),
  }) as unknown as PoolOperation<X, T>;
}

/** The gradient of x, from the same specification; of maxima from their taps. */
export function poolBackward<X extends DTypeName>(
  spec: PoolSpec<X> & { readonly kind: "max" },
): PoolBackwardOperation<X>;
export function poolBackward<X extends DTypeName>(
  spec: PoolSpec<X> & { readonly kind: "average" },
): AveragePoolBackwardOperation<X>;
export function poolBackward(spec: PoolSpec<DTypeName>): unknown {
  const location = captureLocation();
  requireFields("poolBackward", spec, fields, location);
  const problem = problemOf("poolBackward", spec, false, location);
  const { x, out } = problem;
  requireFloat("x", "poolBackward", x, location);
  const isMax = problem.kind === "max";
  return operation({
    name: "pool_backward",
    inputs: { dOut: out, ...(isMax && { tap: tensor(dtypes.i32, out.shape) }) },
    outputs: { dx: tensor(x.dtype, x.shape) },
    plan: (dimensions, target) =>
      planPool(problem, dimensions, target, {
        made: "dx",
        read: isMax ? ["dOut", "tap"] : ["dOut"],
        also: [],
        kernel: poolBackwardKernel,
      }),
  });
}

interface Pooling extends Steps {
  readonly x: TensorSpec;
  readonly out: TensorSpec;
  readonly kind: "max" | "average";
  readonly isLast: boolean;
  readonly taps: Triple;
  readonly includePadding: boolean;
  readonly tellsTap: boolean;
  readonly kernels: Map<string, KernelDefinition>;
}

function problemOf(
  of: string,
  spec: PoolSpec<DTypeName>,
  tellsTap: boolean,
  location: Location,
): Pooling {
  const x = requiredArray("x", of, spec.x, location);
  const { kind, channels = "last", includePadding = false } = spec;
  const choose = (name: string, given: unknown, known: readonly string[]): void => {
    if (known.includes(given as string)) return;
    throw refused(
      "TW9904",
      `${of} knows no such ${name}`,
      known.join(" or "),
      optionText(given),
      location,
    );
  };
  choose("kind", kind, ["max", "average"]);
  choose("channels", channels, ["last", "first"]);
  if (tellsTap && kind !== "max")
    throw refused("TW9904", "an average has no tap", 'kind: "max"', optionText(kind), location);
  const rank = x.shape.length - 2;
  if (rank < 1 || rank > 3)
    throw refused(
      "TW9902",
      `x of ${of} has ${x.shape.length} axes`,
      "3 to 5 axes, of which 1 to 3 are spatial",
      String(x.shape.length),
      location,
    );
  if (kind === "max") requireComparable("x", of, x, location);
  else requireFloat("x", of, x, location);
  const taps = tapsOf(of, spec.window, rank, location);
  const stride = spec.strides ?? spec.window;
  const steps = stepsOf(of, { ...spec, strides: stride }, rank, location);
  const isLast = channels === "last";
  const first = isLast ? 1 : 2;
  const shape = x.shape.map((size, axis) => {
    if (axis < first || axis >= first + rank) return size;
    const along = axis - first + 3 - rank;
    return resultExtent(of, size, taps[along] ?? 1, windowAlong(steps, along), location);
  });
  return {
    ...steps,
    ...{ x, kind, isLast, taps, includePadding, tellsTap },
    out: tensor(x.dtype, shape),
    kernels: new Map(),
  };
}

/** The elements of a window along three axes, of which the first may be 1. */
function tapsOf(of: string, window: unknown, rank: number, location: Location): Triple {
  const list: readonly unknown[] = Array.isArray(window) ? window : Array(rank).fill(window);
  const isExtent = (one: unknown): one is number => Number.isSafeInteger(one) && Number(one) >= 1;
  if (list.length !== rank || !list.every(isExtent))
    throw refused(
      "TW9904",
      `the window of ${of} does not fit ${rank} spatial axes`,
      `a whole number from 1, or a list of ${rank}`,
      optionText(window),
      location,
    );
  const [depth = 1, height = 1, width = 1] = [...Array<number>(3 - rank).fill(1), ...list];
  return [depth, height, width];
}

/** Which arrays a kernel reads and makes, by the names of the operation. */
interface PoolArrays {
  readonly made: "out" | "dx";
  readonly read: readonly string[];
  readonly also: readonly string[];
  readonly kernel: (form: PoolForm, input: FiveExtents, output: FiveExtents) => KernelDefinition;
}

function planPool(
  problem: Pooling,
  dimensions: { readonly [name: string]: number },
  target: Target,
  { made, read, also, kernel }: PoolArrays,
): Planned<PoolConfiguration> {
  const { x, out, isLast, kernels } = problem;
  const [input, output] = [x, out].map((spec) => fiveExtents(spec, isLast, dimensions)) as [
    FiveExtents,
    FiveExtents,
  ];
  const result = made === "out" ? output : input;
  const configuration = choosePool(x.dtype, result);
  const source = "heuristic" as const;
  if (countOf(result) === 0) return { configuration, source, launches: [] };
  const form: PoolForm = { ...problem, dtype: x.dtype, ...configuration };
  const isCopied = x.strides !== undefined && read.includes("x");
  const shaped = (name: string): PlannedArgument => ({
    argument: name === "x" && isCopied ? byRows : name,
    shape: shapeOf(name === "x" || name === "dx" ? input : output),
  });
  const launch = () => {
    const ones = [input, output].map(({ spatial }) => spatial.map((extent) => extent === 1));
    const text = JSON.stringify([configuration, ones, input.inner === 1, alignment(input.inner)]);
    const known = kernels.get(text) ?? kernel(form, input, output);
    kernels.set(text, known);
    const names = [...read, made, ...also];
    return {
      kernel: known,
      arguments: Object.fromEntries(names.map((name) => [name, shaped(name)])),
    };
  };
  const launches = () => [launch()];
  if (!isCopied) return { configuration, source, launches };
  const { shape, strides } = laidOut(x, dimensions);
  const copied: Step = {
    operation: copy({ x: tensor(x.dtype, shape, { strides }) }) as unknown as Operation,
    dimensions: {},
    arrays: { x: "x", out: byRows },
  };
  const steps = composed([copied, launches], target);
  return {
    ...{ configuration, source, launches: steps.launches },
    scratch: { ...steps.scratch, [byRows]: { dtype: x.dtype, shape } },
  };
}

/** What x is called where it lies by rows. */
const byRows = "x_by_rows";

function fiveExtents(
  spec: TensorSpec,
  isLast: boolean,
  dimensions: { readonly [name: string]: number },
): FiveExtents {
  const { shape } = laidOut(spec, dimensions);
  const [batch = 1, second = 1] = shape;
  const spatial = isLast ? shape.slice(1, -1) : shape.slice(2);
  const [depth = 1, height = 1, width = 1] = [
    ...Array<number>(3 - spatial.length).fill(1),
    ...spatial,
  ];
  return {
    outer: isLast ? batch : batch * second,
    spatial: [depth, height, width],
    inner: isLast ? (shape.at(-1) ?? 1) : 1,
  };
}

function shapeOf({ outer, spatial, inner }: FiveExtents): readonly number[] {
  return [outer, ...spatial, inner];
}

function countOf(extents: FiveExtents): number {
  return shapeOf(extents).reduce((all, extent) => all * extent, 1);
}

/** A thread has as many channels as it accesses at once, and two such pieces. */
function choosePool({ bits }: DType, extents: FiveExtents): PoolConfiguration {
  const wide = (8 * widestAccess) / bits;
  const columns = Math.min(powerOfTwoFrom(extents.inner), 8 * wide);
  const span = threadsPerBlock * Math.min(wide, Math.max(2, columns)) * 2;
  return { columns, places: Math.max(1, span / columns) };
}
