/** `segmentReduce`: rows combined by segment id, in a fixed order. */
import { dtypes } from "../../formats/dtype.ts";
import type { DTypeName } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation } from "../../device/operation.ts";
import type { Size } from "../../ir/size.ts";
import { tensor } from "../../lang/index.ts";
import type { TensorSpec, Empty, KernelDefinition } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { composed } from "../support/compose.ts";
import {
  refused,
  requireFields,
  requireRows,
  requireShape,
  requiredArray,
} from "../support/arguments.ts";
import { laidOut } from "../support/sizes.ts";
import { segmentState, segmentSteps } from "./segments.ts";

/** What `segmentReduce` is made for. */
export interface SegmentReduceSpec<D extends DTypeName, I extends "i32" | "i64"> {
  /** Rows: [n, …]. */
  readonly x: TensorSpec<D>;
  /** The segment of each row, [n]; rows of others than 0 to count − 1 are left out. */
  readonly segments: TensorSpec<I>;
  /** How many segments there are. */
  readonly count: Size;
  /** `"sum"` by default. */
  readonly combine?: "sum" | "prod" | "min" | "max";
  /** Whether segments are in order, least first; they are sorted by default. */
  readonly sorted?: boolean;
}

/** The operation that `segmentReduce` makes. */
export type SegmentReduceOperation<D extends DTypeName, I extends DTypeName> = Operation<
  { readonly x: TensorSpec<D>; readonly segments: TensorSpec<I> },
  { readonly out: TensorSpec<D> },
  Empty,
  { readonly sorts: boolean }
>;

/** Rows of each segment combined, [count, …]; a segment without rows has what changes nothing: 0, 1 or an extreme. */
export function segmentReduce<D extends DTypeName, I extends "i32" | "i64">(
  spec: SegmentReduceSpec<D, I>,
): SegmentReduceOperation<D, I> {
  const location = captureLocation();
  const fields = {
    x: "array",
    segments: "array",
    count: "size",
    combine: "choice",
    sorted: "flag",
  } as const;
  requireFields("segmentReduce", spec, fields, location);
  const x = requiredArray("x", "segmentReduce", spec.x, location);
  const segments = requiredArray("segments", "segmentReduce", spec.segments, location);
  const { combine = "sum", sorted = false } = spec;
  requireRows("x", "segmentReduce", x, location);
  requireRows("segments", "segmentReduce", segments, location);
  requireShape("segments", "segmentReduce", segments, x.shape.slice(0, 1), location);
  if (segments.dtype !== dtypes.i32 && segments.dtype !== dtypes.i64)
    throw refused(
      "TW9901",
      "segments have another format",
      "i32 or i64",
      segments.dtype.name,
      location,
    );
  if (!["sum", "prod", "min", "max"].includes(combine))
    throw refused(
      "TW9904",
      "segmentReduce cannot combine like this",
      "sum, prod, min, max",
      optionText(combine),
      location,
    );
  if (typeof spec.count === "number" && !(Number.isSafeInteger(spec.count) && spec.count >= 1))
    throw refused(
      "TW9904",
      "segmentReduce has no segments",
      "a whole number from 1, or a size known at launch",
      optionText(spec.count),
      location,
    );
  const state = segmentState("segmentReduce", x.dtype, combine, location);
  const out = tensor(x.dtype, [spec.count, ...x.shape.slice(1)]);
  const kernels = new Map<string, KernelDefinition>();
  const configuration = { sorts: !sorted };
  return operation({
    name: "segment_reduce",
    inputs: { x, segments },
    outputs: { out },
    plan: (dimensions, target) => {
      const [count = 0] = laidOut(x, dimensions).shape;
      const [extent = 0, ...rest] = laidOut(out, dimensions).shape;
      const inner = rest.reduce((all, each) => all * each, 1);
      const source = "heuristic" as const;
      if (extent * inner === 0) return { configuration, source, launches: [] };
      const rule = {
        ...{ dtype: x.dtype, indexed: segments.dtype, combine },
        isSorted: sorted || count === 0,
        updates: false,
      };
      const names = { indices: "segments", x: "x", out: "out" };
      const made = segmentSteps(rule, names, { count, extent, inner }, state, kernels);
      const { launches, scratch } = composed(made.steps, target);
      return { configuration, source, launches, scratch: { ...made.scratch, ...scratch } };
    },
  }) as unknown as SegmentReduceOperation<D, I>;
}
