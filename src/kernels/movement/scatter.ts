/**
 * `scatter`: rows combined into those of an array by index, the gradient of `gather`.
 *
 *   gradient     dOut [b, s, d]              scatter({ out: [v, d], indices: ids, combine: "add" })
 *
 * Where the order of updates affects the result, as for sums of floats and for `"set"`, updates are sorted by index and one block combines
 * each row of the result, in the order of updates. Otherwise, or if any order is allowed, updates are atomic. An index out of range
 * stops the kernel with an error.
 */
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { dtypes, isInteger } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation, Planned } from "../../device/operation.ts";
import { atomicFormats } from "../../ir/infer/memory.ts";
import { tensor, cdiv, dim, iota, kernel, slice } from "../../lang/index.ts";
import type { TensorSpec, Empty, KernelDefinition } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import type { Target } from "../../targets/target.ts";
import { casting, widened } from "../elementwise/four-bit-formats.ts";
import { composed } from "../support/compose.ts";
import { refused, requireFields } from "../support/arguments.ts";
import { alignedDimension, alignment } from "../support/sizes.ts";
import { chooseMoves, contiguous, indexArray, sizesOf } from "./row-moves.ts";
import type { RowMoves } from "./row-moves.ts";
import { segmentState, segmentSteps } from "./segments.ts";
import type { SegmentCombination, SegmentSizes } from "./segments.ts";

/** How `scatter` combines updates with what is there. */
export type ScatterCombination = "add" | "min" | "max" | "set";

/** What `scatter` is made for. */
export interface ScatterSpec<D extends DTypeName, I extends "i32" | "i64"> {
  /** What rows are combined into: [v, …]. */
  readonly out: TensorSpec<D>;
  /** Which row of it each update goes to. */
  readonly indices: TensorSpec<I>;
  /** Of several updates of a row, `"set"` keeps the last. */
  readonly combine: ScatterCombination;
  /** Unless `false`, results repeat bit for bit; sums of floats may then come in any order, by atomic updates. */
  readonly deterministic?: boolean;
}

/** The operation that `scatter` makes. */
export type ScatterOperation<D extends DTypeName, I extends DTypeName> = Operation<
  { readonly indices: TensorSpec<I>; readonly updates: TensorSpec<D> },
  Empty,
  { readonly out: TensorSpec<D> },
  ScatterConfiguration
>;

/** How updates are moved where they are atomic, or that they are sorted. */
export type ScatterConfiguration = RowMoves | { readonly sorts: true };

/** Rows combined into those of an array that is given and updated; `updates` are [...indices, …]. */
export function scatter<D extends DTypeName, I extends "i32" | "i64">(
  spec: ScatterSpec<D, I>,
): ScatterOperation<D, I> {
  const location = captureLocation();
  const fields = {
    out: "array",
    indices: "array",
    combine: "choice",
    deterministic: "flag",
  } as const;
  requireFields("scatter", spec, fields, location);
  const out = contiguous("out", "scatter", spec.out, location);
  const indices = indexArray("scatter", spec.indices, location);
  const { combine, deterministic = true } = spec;
  if (!["add", "min", "max", "set"].includes(combine))
    throw refused(
      "TW9904",
      "scatter cannot combine like this",
      "add, min, max or set",
      optionText(combine),
      location,
    );
  const updates = tensor(out.dtype, [...indices.shape, ...out.shape.slice(1)]);
  const state = segmentState("scatter", out.dtype, segmentedBy(combine), location);
  const scattered: Scattered = { out, indices, combine, deterministic, state, location };
  const kernels = new Map<string, KernelDefinition>();
  return operation({
    name: "scatter",
    inputs: { indices, updates },
    inouts: { out },
    plan: (dimensions, target) => planScatter(scattered, dimensions, target, kernels),
  }) as unknown as ScatterOperation<D, I>;
}

interface Scattered {
  readonly out: TensorSpec;
  readonly indices: TensorSpec<"i32" | "i64">;
  readonly combine: ScatterCombination;
  readonly deterministic: boolean;
  /** In which format updates are combined in order. */
  readonly state: DType;
  readonly location: Location;
}

function planScatter(
  scattered: Scattered,
  dimensions: { readonly [name: string]: number },
  target: Target,
  kernels: Map<string, KernelDefinition>,
): Planned<ScatterConfiguration> {
  const { out, indices, combine, deterministic, state, location } = scattered;
  const { extent, inner, count } = sizesOf(out, indices, 0, dimensions);
  const moves = chooseMoves(out.dtype, inner, count, target.processors);
  const source = "heuristic" as const;
  if (inner * count === 0) return { configuration: moves, source, launches: [] };
  if (extent === 0)
    throw refused(
      "TW9902",
      "scatter has updates of an array without rows",
      "one row or more, or no updates",
      `${count} updates of no rows`,
      location,
    );
  const wide = inner % 2 === 1 ? widened(out.dtype) : undefined;
  if (wide !== undefined) return planWidened(scattered, wide, { extent, inner, count }, target);
  if (combine !== "set" && isAtomic(combine, out.dtype, deterministic))
    return {
      configuration: moves,
      source,
      launches: () => {
        const text = JSON.stringify([moves, alignment(inner)]);
        const known =
          kernels.get(text) ?? scatterKernel(out.dtype, indices.dtype, combine, inner, moves);
        kernels.set(text, known);
        return [
          {
            kernel: known,
            arguments: {
              indices: { argument: "indices", shape: [count] },
              updates: { argument: "updates", shape: [count, inner] },
              out: { argument: "out", shape: [extent, inner] },
            },
          },
        ];
      },
    };
  const rule = {
    ...{ dtype: out.dtype, indexed: indices.dtype, combine: segmentedBy(combine) },
    isSorted: false,
    updates: true,
  };
  const names = { indices: "indices", x: "updates", out: "out" };
  const made = segmentSteps(rule, names, { count, extent, inner }, state, kernels);
  const { launches, scratch } = composed(made.steps, target);
  return {
    configuration: { sorts: true } as const,
    source,
    launches,
    scratch: { ...made.scratch, ...scratch },
  };
}

/** The plan for odd rows of 4 bits, whose ends share bytes with other rows: updates of wider copies. */
function planWidened(
  { out, indices, combine, deterministic }: Scattered,
  wide: DType,
  { extent, inner, count }: SegmentSizes,
  target: Target,
): Planned<ScatterConfiguration> {
  const [rows, updates] = [
    [extent, inner],
    [count, inner],
  ];
  const whole = scatter({
    ...{ out: tensor(wide, rows), indices: tensor(indices.dtype, [count]) },
    ...{ combine, deterministic },
  });
  const { launches, scratch } = composed(
    [
      casting(tensor(out.dtype, rows), wide, "out", "wide_out"),
      casting(tensor(out.dtype, updates), wide, "updates", "wide_updates"),
      {
        operation: whole,
        dimensions: {},
        arrays: { indices: "indices", updates: "wide_updates", out: "wide_out" },
      },
      casting(tensor(wide, rows), out.dtype, "wide_out", "out"),
    ],
    target,
  );
  return {
    configuration: whole.planFor(new Map(), target).configuration,
    source: "heuristic",
    launches,
    scratch: {
      ...scratch,
      wide_out: { dtype: wide, shape: rows },
      wide_updates: { dtype: wide, shape: updates },
    },
  };
}

function segmentedBy(combine: ScatterCombination): SegmentCombination {
  return combine === "add" ? "sum" : combine;
}

/** Whether updates are atomic: a GPU has to know how, and their order must not show. */
function isAtomic(combine: "add" | "min" | "max", dtype: DType, deterministic: boolean): boolean {
  const isOrdered = combine === "add" && !isInteger(dtype);
  return atomicFormats[combine].includes(dtype.name) && !(isOrdered && deterministic);
}

function scatterKernel(
  dtype: DType,
  indexed: DType<"i32" | "i64">,
  combine: "add" | "min" | "max",
  width: number,
  { rows, columns }: RowMoves,
): KernelDefinition {
  const [extent, count] = [dim("extent"), dim("count")];
  const inner = alignedDimension("inner", width);
  return kernel(
    {
      name: "scatter",
      grid: { i: cdiv(count, rows), j: cdiv(inner, columns) },
      inputs: { indices: tensor(indexed, [count]), updates: tensor(dtype, [count, inner]) },
      inouts: { out: tensor(dtype, [extent, inner]) },
    },
    ({ i, j, indices, updates, out }) => {
      const here = slice(i.mul(rows), rows);
      const across = slice(j.mul(columns), columns);
      const own = indices.at(here).load();
      const where = iota(dtypes.i32, [rows, 1], { axis: 0 }).add(i.mul(rows)).lt(count);
      const added = updates.at(here, across).load();
      out.at(own, across).atomic(combine, added, { where });
    },
  );
}
