/**
 * `histogram` and `bincount`: how many elements fall into each bin, or the sum of their weights.
 *
 *   histogram, low 0, high 4, 4 bins      0.5 1 3.9 4 9      ──▶      1 1 0 2, and 9 is left out
 *   histogram, 3 bins                     2 3 8 5            ──▶      2 1 1, and the edges 2 4 6 8
 */
import { dtypes, isInteger } from "../../formats/dtype.ts";
import type { DType, DTypeName, FloatName, IntegerName } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation } from "../../device/operation.ts";
import { addSizes } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { TensorSpec, Empty, KernelDefinition } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { fill } from "../elementwise/cast.ts";
import { composed } from "../support/compose.ts";
import type { Step } from "../support/compose.ts";
import {
  givenArray,
  refused,
  requireFields,
  requireFloat,
  requireRows,
  requireShape,
} from "../support/arguments.ts";
import type { GivenArray } from "../support/arguments.ts";
import { computeFormat } from "../support/numbers.ts";
import { laidOut } from "../support/sizes.ts";
import { byEdges, byNumber, byRange } from "./binning.ts";
import type { Binning } from "./binning.ts";
import { countSteps, edgesSteps, weighSteps } from "./histogram-steps.ts";
import type { HistogramConfiguration } from "./histogram-steps.ts";

interface OfElements<X extends DTypeName, W extends FloatName> {
  /** A format is an array of n elements. */
  readonly x: GivenArray<X>;
  /** What each element counts, of x's shape; 1 by default. */
  readonly weights?: GivenArray<W>;
}

/** Formats that are counted in bins. */
type Counting = FloatName | IntegerName;

/** Bins that are all as wide, from the least element to the greatest. */
export interface WholeHistogramSpec<X extends Counting, W extends FloatName> extends OfElements<
  X,
  W
> {
  /** How many bins there are. */
  readonly bins: number;
}

/** Bins that are all as wide. */
export interface RangeHistogramSpec<X extends Counting, W extends FloatName> extends OfElements<
  X,
  W
> {
  /** How many bins there are. */
  readonly bins: number;
  /** Where the first bin begins. */
  readonly low: number;
  /** Where the last bin ends; an element that is equal to it falls into that bin. */
  readonly high: number;
}

/** Bins between edges. */
export interface EdgesHistogramSpec<
  X extends Counting,
  E extends FloatName,
  W extends FloatName,
> extends OfElements<X, W> {
  /** Edges in order, one more than there are bins; a format is an array of bins + 1 elements. */
  readonly edges: GivenArray<E>;
}

/** What `bincount` is made for. */
export interface BincountSpec<
  X extends IntegerName,
  W extends FloatName = never,
> extends OfElements<X, W> {
  /** Numbers from 0 to length − 1 are counted. */
  readonly length: number;
}

/** Sums of weights are f32, of f64 f64. */
type Summed<W extends FloatName> = [W] extends [never] ? "i32" : W extends "f64" ? "f64" : "f32";

/** The operation that `histogram` and `bincount` make. */
export type HistogramOperation<
  X extends DTypeName,
  W extends FloatName = never,
  E extends FloatName = never,
> = Operation<
  { readonly x: TensorSpec<X> } & ([E] extends [never]
    ? Empty
    : { readonly edges: TensorSpec<E> }) &
    ([W] extends [never] ? Empty : { readonly weights: TensorSpec<W> }),
  { readonly out: TensorSpec<Summed<W>> },
  Empty,
  HistogramConfiguration
>;

/** Edges are f64 for x of f64 and of integers, else f32. */
export type WholeHistogramOperation<X extends Counting, W extends FloatName = never> = Operation<
  HistogramOperation<X, W>["inputs"],
  {
    readonly out: TensorSpec<Summed<W>>;
    readonly edges: TensorSpec<X extends "f64" | IntegerName ? "f64" : "f32">;
  },
  Empty,
  HistogramConfiguration
>;

/** Elements of x in each bin; those in none, and NaN, are left out. Without a range they span all elements, and the edges are a result. */
export function histogram<X extends Counting, W extends FloatName = never>(
  spec: RangeHistogramSpec<X, W>,
): HistogramOperation<X, W>;
export function histogram<X extends Counting, E extends FloatName, W extends FloatName = never>(
  spec: EdgesHistogramSpec<X, E, W>,
): HistogramOperation<X, W, E>;
export function histogram<X extends Counting, W extends FloatName = never>(
  spec: WholeHistogramSpec<X, W>,
): WholeHistogramOperation<X, W>;
export function histogram(
  spec:
    | RangeHistogramSpec<Counting, FloatName>
    | EdgesHistogramSpec<Counting, FloatName, FloatName>
    | WholeHistogramSpec<Counting, FloatName>,
): unknown {
  const location = captureLocation();
  const ways = { bins: "number", low: "number", high: "number", edges: "array" } as const;
  requireFields("histogram", spec, { x: "array", weights: "array", ...ways }, location);
  const x = givenArray("x", "histogram", spec.x, [dim("n")], location);
  if (!isInteger(x.dtype) || x.dtype.bits < 8) requireFloat("x", "histogram", x, location);
  // Integers are compared with edges as NumPy compares them.
  const compute = isInteger(x.dtype) ? wide : computeFormat(x.dtype);
  const { bins, low, high, edges } = spec as Partial<
    RangeHistogramSpec<Counting, FloatName> & EdgesHistogramSpec<Counting, FloatName, FloatName>
  >;
  if (edges === undefined) {
    requireBins("histogram", bins, location);
    const problem = { name: "histogram", x, bins: Number(bins) };
    if (low === undefined && high === undefined) {
      const found = tensor(compute, [Number(bins) + 1]);
      const whole = { ...problem, binning: byEdges(compute), edges: found, findsEdges: true };
      return counting(whole, spec.weights, location);
    }
    requireRange(low, high, location);
    const range = [Number(low), Number(high)] as const;
    const binning = byRange(...range, rangeFormat(range, problem.bins, compute, location));
    return counting({ ...problem, binning }, spec.weights, location);
  }
  if (bins !== undefined || low !== undefined || high !== undefined)
    throw refused(
      "TW9904",
      "histogram has edges and a range",
      "edges, or bins with low and high",
      optionText({ bins, low, high }),
      location,
    );
  const given = givenArray("edges", "histogram", edges, [dim("bins").add(1)], location);
  requireFloat("edges", "histogram", given, location);
  requireRows("edges", "histogram", given, location);
  const [size, ...rest] = given.shape;
  if (size === undefined || rest.length > 0 || (typeof size === "number" && size < 2))
    throw refused(
      "TW9902",
      "edges of histogram enclose no bins",
      "one axis of 2 or more elements",
      optionText(given.shape),
      location,
    );
  const binning = byEdges(given.dtype === dtypes.f64 ? wide : compute);
  const problem = { name: "histogram", x, bins: addSizes(size, -1), binning, edges: given };
  return counting(problem, spec.weights, location);
}

/** Tiles of it are typed as f32's, which have the same functions. */
const wide = computeFormat(dtypes.f64);

function requireRange(low: unknown, high: unknown, location: Location): void {
  if (Number.isFinite(low) && Number.isFinite(high) && Number(low) < Number(high)) return;
  throw refused(
    "TW9904",
    "histogram has no bins to count in",
    "low below high",
    `${optionText(low)} and ${optionText(high)}`,
    location,
  );
}

/**
 * The format that separates bins of a range: f64 where bins are about as narrow as the spacing of f32, since a position among
 * them, or an edge, could then be off by more than the one bin that comparing with edges mends.
 */
function rangeFormat(
  [low, high]: readonly [number, number],
  bins: number,
  compute: DType<"f32">,
  location: Location,
): DType<"f32"> {
  const width = (high - low) / bins;
  const narrowest = Math.max(Math.abs(low), Math.abs(high), high - low) / width;
  if (compute !== wide && narrowest <= 2 ** 20) return compute;
  if (narrowest <= 2 ** 49) return wide;
  throw refused(
    "TW9904",
    "histogram has bins that are too narrow",
    "bins at least 2⁻⁴⁹ as wide as their range and as its ends are large",
    `bins ${width} wide from ${low} to ${high}`,
    location,
  );
}

/** How often each number from 0 to `length` − 1 occurs in x, or the sum of its weights; others are left out. */
export function bincount<X extends IntegerName, W extends FloatName = never>(
  spec: BincountSpec<X, W>,
): HistogramOperation<X, W> {
  const location = captureLocation();
  requireFields("bincount", spec, { x: "array", length: "number", weights: "array" }, location);
  const x = givenArray("x", "bincount", spec.x, [dim("n")], location);
  const { length } = spec;
  if (!isInteger(x.dtype) || x.dtype.bits < 8)
    throw refused(
      "TW9901",
      "bincount does not count x",
      "integers of 8 bits or more",
      x.dtype.name,
      location,
    );
  requireBins("bincount", length, location);
  return counting(
    { name: "bincount", x, bins: length, binning: byNumber },
    spec.weights,
    location,
  ) as unknown as HistogramOperation<X, W>;
}

/** Counts are indexed by i32. */
const mostBins = 2 ** 30;

function requireBins(of: string, bins: unknown, location: Location): void {
  const isCount = typeof bins === "number" && Number.isSafeInteger(bins);
  if (isCount && bins >= 1 && bins <= mostBins) return;
  throw refused(
    "TW9904",
    `${of} has no bins to count in`,
    "a whole number from 1",
    optionText(bins),
    location,
  );
}

interface Counted {
  readonly name: string;
  readonly x: TensorSpec;
  readonly bins: Size;
  readonly binning: Binning;
  readonly edges?: TensorSpec;
  /** Whether the edges are a result, found from the elements. */
  readonly findsEdges?: boolean;
}

function counting(counted: Counted, given: GivenArray | undefined, location: Location): Operation {
  const { name, x, edges, findsEdges = false } = counted;
  requireRows("x", name, x, location);
  const weights =
    given === undefined ? undefined : givenArray("weights", name, given, x.shape, location);
  if (weights !== undefined) {
    requireFloat("weights", name, weights, location);
    requireRows("weights", name, weights, location);
    requireShape("weights", name, weights, x.shape, location);
  }
  const summed = weights === undefined ? dtypes.i32 : computeFormat(weights.dtype);
  const out = tensor(summed, [counted.bins]);
  const kernels = new Map<string, KernelDefinition>();
  return operation({
    name,
    inputs: { x, ...(edges && !findsEdges && { edges }), ...(weights && { weights }) },
    outputs: { out, ...(edges && findsEdges && { edges }) },
    plan: (dimensions, target) => {
      const count = laidOut(x, dimensions).shape.reduce((all, extent) => all * extent, 1);
      const [bins = 0] = laidOut(out, dimensions).shape;
      const form = { name, dtype: x.dtype, bins, binning: counted.binning, edges };
      const source = "heuristic" as const;
      const cleared: Step = {
        operation: fill({ out: tensor(summed, [bins]), value: 0 }),
        dimensions: {},
        arrays: { out: "out" },
      };
      const found =
        edges !== undefined && findsEdges
          ? edgesSteps(form, count, edges.dtype, kernels)
          : { steps: [], scratch: {} };
      if (count === 0 || bins === 0) {
        const { launches, scratch } = composed(
          [...found.steps, ...(bins === 0 ? [] : [cleared])],
          target,
        );
        const configuration = { blocks: 0, adds: "result" as const };
        return { configuration, source, launches, scratch: { ...found.scratch, ...scratch } };
      }
      const made =
        weights === undefined
          ? countSteps(form, count, cleared, kernels, target)
          : weighSteps(form, weights.dtype, count, kernels, target);
      const { launches, scratch } = composed([...found.steps, ...made.steps], target);
      const { configuration } = made;
      const all = { ...found.scratch, ...made.scratch, ...scratch };
      return { configuration, source, launches, scratch: all };
    },
  });
}
