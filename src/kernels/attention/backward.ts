/**
 * `attentionBackward`: the gradients of attention, computed again from q, k, v and the logarithms that the forward pass
 * gave, so that no scores are kept:
 *
 *   launch 1   out, dOut                         ──▶ delta [b, h, s], the sum over e of out · dOut
 *   launch 2   rows of q, over the columns they see  ──▶ dq = scale · Σ ds · k
 *   launch 3   columns of k, over the rows that see them  ──▶ dk = scale · Σ dsᵀ · q,  dv = Σ pᵀ · dOut
 *
 *   p = e^(score − logSumExp)     ds = p · (dOut · vᵀ − delta)
 *
 * Every element of a gradient is summed by one block in one order, so results repeat bit for bit.
 */
import { dtypes } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation, Planned, PlannedArgument } from "../../device/operation.ts";
import { array } from "../../lang/index.ts";
import type { ArraySpec, Empty } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { requireFields } from "../support/given.ts";
import type { FormatOf } from "../support/given.ts";
import { sizesOf } from "./attention.ts";
import { columnGradients, deltaKernel, rowGradients } from "./backward-kernels.ts";
import type { GradientTiles } from "./backward-kernels.ts";
import { paddedHead } from "./dimensions.ts";
import type { AttentionForm } from "./dimensions.ts";
import { attentionFields, problemOf } from "./problem.ts";
import type { AttentionProblem, AttentionSpec } from "./problem.ts";

/** What the forward pass was told, but for what has no gradient here: scores of one's own, and sinks. */
export type AttentionBackwardSpec = Pick<
  AttentionSpec,
  "q" | "k" | "v" | "causal" | "window" | "bias" | "mask" | "softCap" | "scale"
>;

type Inputs<S extends AttentionBackwardSpec> = {
  readonly q: ArraySpec<FormatOf<S["q"]>>;
  readonly k: ArraySpec<FormatOf<S["k"]>>;
  readonly v: ArraySpec<FormatOf<S["v"]>>;
  readonly out: ArraySpec<FormatOf<S["q"]>>;
  readonly dOut: ArraySpec<FormatOf<S["q"]>>;
  readonly logSumExp: ArraySpec<"f32">;
} & (S extends { readonly bias: ArraySpec } ? { readonly bias: S["bias"] } : Empty);

export type AttentionBackward<S extends AttentionBackwardSpec = AttentionBackwardSpec> = Operation<
  Inputs<S>,
  {
    readonly dq: ArraySpec<FormatOf<S["q"]>>;
    readonly dk: ArraySpec<FormatOf<S["k"]>>;
    readonly dv: ArraySpec<FormatOf<S["v"]>>;
  },
  Empty,
  GradientTiles
>;

const { q, k, v, causal, window, bias, mask, softCap, scale } = attentionFields;
const fields = { q, k, v, causal, window, bias, mask, softCap, scale };

/** The gradients of q, k and v, from the gradient of the result and what the forward pass gave. */
export function attentionBackward<const S extends AttentionBackwardSpec>(
  spec: S,
): AttentionBackward<S> {
  const location = captureLocation();
  requireFields("attentionBackward", spec, fields, location);
  const problem = problemOf({ ...spec, logSumExp: true }, location);
  const { out, logSumExp } = problem;
  const gradientOf = (name: "q" | "k" | "v") => array(problem[name].dtype, problem[name].shape);
  return operation({
    name: "attention_backward",
    inputs: {
      ...{ q: problem.q, k: problem.k, v: problem.v, out, dOut: array(out.dtype, out.shape) },
      ...(logSumExp && { logSumExp }),
      ...(problem.bias && { bias: problem.bias }),
    },
    outputs: { dq: gradientOf("q"), dk: gradientOf("k"), dv: gradientOf("v") },
    plan: (dimensions) => planOf(problem, dimensions, location),
  }) as unknown as AttentionBackward<S>;
}

function planOf(
  problem: AttentionProblem,
  dimensions: { readonly [name: string]: number },
  location: Location,
): Planned<GradientTiles> {
  const sizes = sizesOf(problem, dimensions, location);
  const form: AttentionForm = { problem, sizes, location };
  const { b, s, t, h, kv } = sizes;
  const configuration = tilesOf(form);
  const values = { b, s, t, h, kv };
  const given = (...own: readonly string[]): { readonly [name: string]: PlannedArgument } =>
    Object.fromEntries(own.map((name) => [name, { argument: name }]));
  const bias = problem.bias === undefined ? [] : ["bias"];
  const shared = ["q", "k", "v", "dOut", "logSumExp", "delta", ...bias];
  return {
    configuration,
    source: "heuristic",
    scratch: { delta: { dtype: dtypes.f32, shape: [b, h, s] } },
    launches: () => [
      ...(b * s * h === 0
        ? []
        : [
            {
              kernel: deltaKernel(form, configuration),
              arguments: given("out", "dOut", "delta"),
              dimensions: { b, s, h },
            },
            {
              kernel: rowGradients(form, configuration),
              arguments: given(...shared, "dq"),
              dimensions: values,
            },
          ]),
      ...(b * t * kv === 0
        ? []
        : [
            {
              kernel: columnGradients(form, configuration),
              arguments: given(...shared, "dk", "dv"),
              dimensions: values,
            },
          ]),
    ],
  };
}

/** Tiles whose scores, gradients and operands fit the registers of one thread. */
function tilesOf({ problem, sizes }: AttentionForm): GradientTiles {
  const head = paddedHead(Math.max(sizes.d, sizes.e));
  if (head > 128) return { rows: 16, columns: 32 };
  const isWide = head > 32 || problem.q.dtype === dtypes.f32;
  return { rows: isWide ? 32 : 64, columns: isWide ? 32 : 64 };
}
