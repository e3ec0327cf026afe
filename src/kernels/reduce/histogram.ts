/**
 * `histogram` and `bincount`: how many elements fall into each bin. A block counts in shared memory what it meets, and adds its
 * counts to the result at the end; where bins are too many for that, every element is added to the result itself. Counts are whole
 * numbers, so results do not depend on the order.
 *
 *   histogram, low 0, high 4, 4 bins      0.5 1 3.9 4 9      ──▶      1 1 0 2, and 9 is left out
 */
import { dtypes, isInteger } from "../../formats/dtype.ts";
import type { DType, DTypeName, FloatName, IntegerName } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation, PlannedLaunch } from "../../device/operation.ts";
import {
  array,
  cdiv,
  dim,
  full,
  iota,
  kernel,
  loop,
  slice,
  smem,
  zeros,
} from "../../lang/index.ts";
import type { ArraySpec, Empty, KernelDefinition, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { fill } from "../elementwise/cast.ts";
import { composed } from "../support/compose.ts";
import { givenArray, refused, requireFields, requireFloat, requireRows } from "../support/given.ts";
import type { GivenArray } from "../support/given.ts";
import { computeFormat, computed } from "../support/numbers.ts";
import { laidOut, lanes, powerOfTwoFrom } from "../support/sizes.ts";

export interface HistogramSpec<X extends FloatName> {
  /** A format is an array of n elements. */
  readonly x: GivenArray<X>;
  /** How many bins there are, all as wide. */
  readonly bins: number;
  /** Where the first bin begins. */
  readonly low: number;
  /** Where the last bin ends; an element that is equal to it falls into that bin. */
  readonly high: number;
}

export interface BincountSpec<X extends IntegerName> {
  /** A format is an array of n elements. */
  readonly x: GivenArray<X>;
  /** Numbers from 0 to length − 1 are counted. */
  readonly length: number;
}

/** Blocks of the launch, and whether they count in shared memory. */
export interface HistogramConfiguration {
  readonly blocks: number;
  readonly shared: boolean;
}

export type HistogramOperation<X extends DTypeName> = Operation<
  { readonly x: ArraySpec<X> },
  { readonly out: ArraySpec<"i32"> },
  Empty,
  HistogramConfiguration
>;

/** Which bin each element falls into, and whether it falls into any. */
type Binning = (x: Tile) => { readonly bin: Tile<"i32">; readonly isIn: Tile<"bool"> };

/** Elements of x in each of `bins` bins from `low` to `high`; others, and NaN, are left out. */
export function histogram<X extends FloatName>(spec: HistogramSpec<X>): HistogramOperation<X> {
  const location = captureLocation();
  const fields = { x: "array", bins: "number", low: "number", high: "number" } as const;
  requireFields("histogram", spec, fields, location);
  const { bins, low, high } = spec;
  const x = givenArray("x", "histogram", spec.x, [dim("n")], location);
  requireFloat("x", "histogram", x, location);
  requireBins("histogram", bins, location);
  if (!Number.isFinite(low) || !Number.isFinite(high) || !(low < high))
    throw refused(
      "TW9904",
      "histogram has no bins to count in",
      "low below high",
      `${optionText(low)} and ${optionText(high)}`,
      location,
    );
  const compute = computeFormat(x.dtype);
  const binning: Binning = (tile) => {
    const own = computed(tile, compute);
    const isIn = own.ge(low).and(own.le(high));
    const place = own.sub(low).mul(bins / (high - low));
    // What is not in a bin has no place that could be a whole number.
    const bin = isIn
      .select(place, full(compute, [1], 0))
      .floor()
      .cast(dtypes.i32);
    return { bin: bin.maximum(0).minimum(bins - 1), isIn };
  };
  return counting("histogram", x, bins, binning, location) as unknown as HistogramOperation<X>;
}

/** How often each number from 0 to `length` − 1 occurs in x; others are left out. */
export function bincount<X extends IntegerName>(spec: BincountSpec<X>): HistogramOperation<X> {
  const location = captureLocation();
  requireFields("bincount", spec, { x: "array", length: "number" }, location);
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
  const binning: Binning = (tile) => {
    const own = tile.cast(dtypes.i64);
    const isIn = own.ge(0n).and(own.lt(BigInt(length)));
    return {
      bin: own
        .cast(dtypes.i32)
        .maximum(0)
        .minimum(length - 1),
      isIn,
    };
  };
  return counting("bincount", x, length, binning, location) as unknown as HistogramOperation<X>;
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

/** Bins that a block has room for, and elements that it takes at a time. */
const mostShared = 8192;
const span = 8 * lanes;

/** Blocks for each processor. */
const blocksEach = 8;

function counting(
  name: string,
  x: ArraySpec,
  bins: number,
  binning: Binning,
  location: Location,
): Operation {
  requireRows("x", name, x, location);
  const out = array(dtypes.i32, [bins]);
  const cleared = fill({ out, value: 0 });
  const shared = bins <= mostShared;
  let known: KernelDefinition | undefined;
  return operation({
    name,
    inputs: { x },
    outputs: { out },
    plan: (dimensions, target) => {
      const count = laidOut(x, dimensions).shape.reduce((all, extent) => all * extent, 1);
      const blocks = Math.max(1, Math.min(Math.ceil(count / span), blocksEach * target.processors));
      const counted = (): readonly PlannedLaunch[] => {
        if (count === 0) return [];
        known ??= countKernel(name, x.dtype, bins, shared, binning);
        return [
          {
            kernel: known,
            arguments: { x: { argument: "x", shape: [count] }, out: { argument: "out" } },
            dimensions: { blocks },
          },
        ];
      };
      const zeroed = {
        operation: cleared as unknown as Operation,
        dimensions: {},
        arrays: { out: "out" },
      };
      const steps = [zeroed, counted];
      return { configuration: { blocks, shared }, source: "heuristic", ...composed(steps, target) };
    },
  }) as unknown as Operation;
}

function countKernel(
  name: string,
  dtype: DType,
  bins: number,
  shared: boolean,
  binning: Binning,
): KernelDefinition {
  const [count, blocks] = [dim("count"), dim("blocks")];
  const width = shared ? powerOfTwoFrom(bins) : 1;
  return kernel(
    {
      name,
      grid: { block: blocks },
      inputs: { x: array(dtype, [count]) },
      inouts: { out: array(dtypes.i32, [bins]) },
      scratch: { counts: smem(dtypes.i32, [width]) },
    },
    ({ block, x, out, counts }) => {
      if (shared) counts.store(zeros(dtypes.i32, [width]));
      const ones = full(dtypes.i32, [span], 1);
      loop({ from: block, to: cdiv(count, span), step: blocks }, (piece) => {
        const start = piece.mul(span);
        const { bin, isIn } = binning(x.at(slice(start, span)).load());
        const where = isIn.and(iota(dtypes.i32, [span], 0).add(start).lt(count));
        (shared ? counts : out).at(bin).atomicAdd(ones, { where });
      });
      if (shared) out.at(slice(0, width)).atomicAdd(counts.load());
    },
  ) as unknown as KernelDefinition;
}
