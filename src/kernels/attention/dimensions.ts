/** The arrays of the kernels of attention, in dimensions of their own; head sizes are known when a kernel is made. */
import { dtypes } from "../../formats/dtype.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { TensorSpec, Ref } from "../../lang/index.ts";
import type { Dimension } from "../../ir/size.ts";
import type { Location } from "../../support/location.ts";
import { alignedDimension, powerOfTwoFrom } from "../support/sizes.ts";
import type { AttentionProblem } from "./problem.ts";
import type { AttentionSizes, SegmentRefs } from "./scores.ts";

/** What a kernel is made for. */
export interface AttentionForm {
  readonly problem: AttentionProblem;
  readonly sizes: AttentionSizes;
  readonly location: Location;
}

/** The size of tiles that hold a head; what lies beyond it reads as zero. */
export function paddedHead(size: number): number {
  return powerOfTwoFrom(Math.max(16, size));
}

export function attentionArrays({ problem, sizes }: AttentionForm): {
  readonly inputs: { readonly [name: string]: TensorSpec };
  readonly outputs: { readonly [name: string]: TensorSpec };
  readonly dimensions: { readonly [N in "b" | "s" | "t" | "h" | "kv"]: Dimension } & {
    /** Of kernels with offsets. */
    readonly ends: Dimension | undefined;
  };
} {
  const dimensions = {
    ...{ b: dim("b"), h: dim("h"), kv: dim("kv") },
    ...{ s: alignedDimension("s", sizes.s), t: alignedDimension("t", sizes.t) },
    ends: sizes.ends > 0 ? dim("ends") : undefined,
  };
  const { b, s, t, h, kv } = dimensions;
  const { d, e } = sizes;
  const { q, k, v, out, logSumExp, bias, sinks, key, qScale, kScale, vScale } = problem;
  const biasSizes = [b, h, s, t].map((size, axis) => (bias?.shape[axis] === 1 ? 1 : size));
  return {
    inputs: {
      q: tensor(q.dtype, [b, s, h, d]),
      k: tensor(k.dtype, [b, t, kv, d]),
      v: tensor(v.dtype, [b, t, kv, e]),
      ...(bias !== undefined && { bias: tensor(bias.dtype, biasSizes) }),
      ...(sinks !== undefined && { sinks: tensor(sinks.dtype, [h]) }),
      ...(qScale && { qScale: tensor(qScale.dtype, [h]) }),
      ...(kScale && { kScale: tensor(kScale.dtype, [kv]) }),
      ...(vScale && { vScale: tensor(vScale.dtype, [kv]) }),
      ...(key !== undefined && { key }),
      ...offsetArrays(dimensions),
      ...segmentArrays(problem, dimensions),
    },
    outputs: {
      out: tensor(out.dtype, [b, s, h, e]),
      ...(logSumExp !== undefined && { logSumExp: tensor(logSumExp.dtype, [b, h, s]) }),
    },
    dimensions,
  };
}

/** The segments of queries and keys, of kernels that have some. */
export function segmentArrays(
  { querySegmentIds }: AttentionProblem,
  { b, s, t }: { readonly [N in "b" | "s" | "t"]: Dimension },
): { readonly [name: string]: TensorSpec } {
  if (querySegmentIds === undefined) return {};
  return {
    querySegmentIds: tensor(dtypes.i32, [b, s]),
    keyValueSegmentIds: tensor(dtypes.i32, [b, t]),
  };
}

/** The offsets of q and k, of kernels that have some. */
export function offsetArrays({ ends }: { readonly ends: Dimension | undefined }): {
  readonly [name: string]: TensorSpec;
} {
  if (ends === undefined) return {};
  return { ...rowOffsets({ ends }), kOffsets: tensor(dtypes.i32, [ends]) };
}

/** Those of q alone, for kernels that look at no columns. */
export function rowOffsets({ ends }: { readonly ends: Dimension | undefined }): {
  readonly [name: string]: TensorSpec;
} {
  return ends === undefined ? {} : { qOffsets: tensor(dtypes.i32, [ends]) };
}

/** The arrays that a kernel may have been made without. */
export function optionalRefs(
  { problem }: AttentionForm,
  argument: unknown,
): {
  readonly bias: Ref | undefined;
  readonly sinks: Ref<"f32"> | undefined;
  readonly key: Ref<"u32"> | undefined;
  readonly logSumExp: Ref<"f32"> | undefined;
  readonly segments: SegmentRefs | undefined;
  readonly scales: { readonly [N in "q" | "k" | "v"]: Ref<"f32"> } | undefined;
} {
  const named = argument as SegmentRefs & { readonly [name: string]: Ref };
  const refOf = (name: "bias" | "sinks" | "key" | "logSumExp") =>
    problem[name] === undefined ? undefined : named[name];
  return {
    bias: refOf("bias"),
    sinks: refOf("sinks") as Ref<"f32"> | undefined,
    key: refOf("key") as Ref<"u32"> | undefined,
    logSumExp: refOf("logSumExp") as Ref<"f32"> | undefined,
    segments: problem.querySegmentIds && named,
    scales: problem.qScale && scaleRefs(argument),
  };
}

function scaleRefs(argument: unknown): { readonly [N in "q" | "k" | "v"]: Ref<"f32"> } {
  const { qScale, kScale, vScale } = argument as {
    readonly [N in "qScale" | "kScale" | "vScale"]: Ref<"f32">;
  };
  return { q: qScale, k: kScale, v: vScale };
}
