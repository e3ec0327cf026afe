/**
 * The launches of a histogram: they compute the edges, count, add weights, or sort by bin first.
 *
 *   counts                     blocks count in shared memory; with many bins, atomically in the result
 *   weights, few bins          blocks add up a share of the elements each ──▶ partial histograms ──▶ their sums, in order
 *   weights, many bins         elements ──▶ sorted by bin ──▶ weights of each bin, added in order
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { PlannedLaunch, ScratchArray } from "../../device/operation.ts";
import { tensor } from "../../lang/index.ts";
import type { KernelDefinition } from "../../lang/index.ts";
import type { Target } from "../../targets/target.ts";
import { cast, fill } from "../elementwise/cast.ts";
import { segmentReduce } from "../movement/segment-reduce.ts";
import type { Step } from "../support/compose.ts";
import { computeFormat } from "../support/numbers.ts";
import {
  binKernel,
  countKernel,
  edgesKernel,
  mostShared,
  mostWeighed,
  span,
  weighKernel,
  weighedSpan,
} from "./histogram-kernels.ts";
import type { HistogramForm } from "./histogram-kernels.ts";
import { reduce } from "./reduce.ts";

/** Blocks of the launch, and where they add: in shared memory, in the result, or by sorting first. */
export interface HistogramConfiguration {
  /** Blocks of the launch. */
  readonly blocks: number;
  /** Where they add: in shared memory, in the result, or by sorting first. */
  readonly adds: "shared" | "result" | "sorted";
}

type Kernels = Map<string, KernelDefinition>;

/** Blocks for each processor. */
const blocksEach = 8;

interface Steps {
  readonly configuration: HistogramConfiguration;
  readonly steps: readonly Step[];
  readonly scratch: { readonly [name: string]: ScratchArray };
}

function known(kernels: Kernels, text: string, make: () => KernelDefinition): KernelDefinition {
  const found = kernels.get(text) ?? make();
  kernels.set(text, found);
  return found;
}

function inputsOf({ edges }: HistogramForm, count: number): PlannedLaunch["arguments"] {
  return {
    x: { argument: "x", shape: [count] },
    ...(edges && { edges: { argument: "edges" } }),
  };
}

/** The least and the greatest element, and the edges between them. */
export function edgesSteps(
  { dtype, bins }: HistogramForm,
  count: number,
  edges: DType,
  kernels: Kernels,
): Pick<Steps, "steps" | "scratch"> {
  const found = (["min", "max"] as const).map((combine): Step => {
    const out = combine === "min" ? "least" : "greatest";
    // Of nothing the least is greater than the greatest.
    const ended =
      count === 0
        ? fill({ out: tensor(dtype, [1]), value: combine === "min" ? 1 : 0 })
        : reduce({ x: tensor(dtype, [count]), combine });
    return {
      operation: ended,
      dimensions: {},
      arrays: { x: "x", out },
    };
  });
  const spread = (): readonly PlannedLaunch[] => [
    {
      kernel: known(kernels, `edges ${bins}`, () => edgesKernel(dtype, edges, bins)),
      arguments: {
        least: { argument: "least", shape: [1] },
        greatest: { argument: "greatest", shape: [1] },
        edges: { argument: "edges" },
      },
    },
  ];
  const one = { dtype, shape: [1] };
  return { steps: [...found, spread], scratch: { least: one, greatest: one } };
}

/** Elements counted in their bins. */
export function countSteps(
  form: HistogramForm,
  count: number,
  cleared: Step,
  kernels: Kernels,
  { processors }: Target,
): Steps {
  const blocks = Math.min(Math.ceil(count / span), blocksEach * processors);
  const counted = (): readonly PlannedLaunch[] => [
    {
      kernel: known(kernels, `count ${form.bins}`, () => countKernel(form)),
      arguments: { ...inputsOf(form, count), out: { argument: "out" } },
      dimensions: { blocks },
    },
  ];
  const adds = form.bins <= mostShared ? "shared" : "result";
  return { configuration: { blocks, adds }, steps: [cleared, counted], scratch: {} };
}

/** Weights of elements added in their bins, in a fixed order. */
export function weighSteps(
  form: HistogramForm,
  weights: DType,
  count: number,
  kernels: Kernels,
  target: Target,
): Steps {
  const compute = computeFormat(weights);
  if (form.bins > mostWeighed(compute)) return sortSteps(form, weights, compute, count, kernels);
  const blocks = Math.min(Math.ceil(count / weighedSpan), blocksEach * target.processors);
  const weighed = (): readonly PlannedLaunch[] => [
    {
      kernel: known(kernels, `weigh ${form.bins}`, () => weighKernel(form, weights, compute)),
      arguments: {
        ...inputsOf(form, count),
        weights: { argument: "weights", shape: [count] },
        parts: { argument: "parts" },
      },
    },
  ];
  const parts = tensor(compute, [blocks, form.bins]);
  const added: Step = {
    operation: reduce({ x: parts, axis: [0] }),
    dimensions: {},
    arrays: { x: "parts", out: "out" },
  };
  return {
    configuration: { blocks, adds: "shared" },
    steps: [weighed, added],
    scratch: { parts: { dtype: compute, shape: [blocks, form.bins] } },
  };
}

/** Sorts elements by bin, then adds the weights of each bin in order. */
function sortSteps(
  form: HistogramForm,
  weights: DType,
  compute: DType<"f32">,
  count: number,
  kernels: Kernels,
): Steps {
  const binned = (): readonly PlannedLaunch[] => [
    {
      kernel: known(kernels, `bins ${form.bins}`, () => binKernel(form)),
      arguments: { ...inputsOf(form, count), out: { argument: "numbers" } },
    },
  ];
  const isWide = weights === compute;
  const widened: Step = {
    operation: cast({ x: tensor(weights, [count]), out: compute }),
    dimensions: {},
    arrays: { x: "weights", out: "wide" },
  };
  const summed: Step = {
    operation: segmentReduce({
      x: tensor(compute, [count]),
      segments: tensor(dtypes.i32, [count]),
      count: form.bins,
    }),
    dimensions: {},
    arrays: { x: isWide ? "weights" : "wide", segments: "numbers", out: "out" },
  };
  return {
    configuration: { blocks: Math.ceil(count / span), adds: "sorted" },
    steps: [binned, ...(isWide ? [] : [widened]), summed],
    scratch: {
      numbers: { dtype: dtypes.i32, shape: [count] },
      ...(!isWide && { wide: { dtype: compute, shape: [count] } }),
    },
  };
}
