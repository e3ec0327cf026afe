/**
 * `convolution` and its gradients, over one to three spatial axes, as implicit GEMMs:
 *
 *   forward          x, w      ──▶ out
 *   gradient of x    dOut, w   ──▶ dx
 *   gradient of w    x, dOut   ──▶ dw, split over positions where there would be few blocks
 */
import type { DTypeName } from "../../formats/dtype.ts";
import { libraryOperation } from "../../device/operation.ts";
import type { Operation, Planned, PlannedLaunch } from "../../device/operation.ts";
import { tensor } from "../../lang/index.ts";
import type { TensorSpec, Empty, KernelDefinition } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Target } from "../../targets/target.ts";
import { laidOut } from "../support/sizes.ts";
import type { MatmulConfiguration } from "../matmul/configuration.ts";
import { tmaForm, tmaProblem, tmaWeightsProblem, readForm, tileCount } from "./choose.ts";
import { tmaWeightsKernel, sumPartialsKernel, sumPartialsText } from "./tma-weight-gradient.ts";
import { tmaDimensions, tmaKernel, tmaText } from "./tma-implicit-gemm.ts";
import type { TmaConfiguration } from "./tma-implicit-gemm.ts";
import {
  addWeightsKernel,
  chooseDepthwiseWeights,
  depthwiseWeightsKernel,
} from "./depthwise-weight-gradient.ts";
import type { DepthwiseWeightsConfiguration } from "./depthwise-weight-gradient.ts";
import {
  chooseDepthwise,
  depthwiseDimensions,
  depthwiseKernel,
  depthwiseText,
  isDepthwise,
  repeatedWeights,
  tapCount,
  transposeWeightsKernel,
} from "./depthwise.ts";
import type { DepthwiseConfiguration } from "./depthwise.ts";
import { gatherKernel, gatherViews, placeCount } from "./gather-implicit-gemm.ts";
import type { Direction, GatherConfiguration } from "./gather-implicit-gemm.ts";
import { gatherWeightsKernel, sumSplitsKernel, weightViews } from "./gather-weight-gradient.ts";
import type { GatherWeightsConfiguration } from "./gather-weight-gradient.ts";
import { phasesOf } from "./phases.ts";
import { isProduct, planProduct } from "./pointwise.ts";
import { geometryOf, problemOf, withoutWindows } from "./problem.ts";
import type { ConvolutionProblem, ConvolutionSpec, Geometry } from "./problem.ts";
import { chooseTmaWeights } from "./weight-gradient-tiles.ts";
import type { TmaWeightsConfiguration } from "./weight-gradient-tiles.ts";

/** How positions of the result, or of the gradient of x, are made. */
export type PixelConfiguration =
  | GatherConfiguration
  | TmaConfiguration
  | DepthwiseConfiguration
  | MatmulConfiguration;

/** How the gradient of w is made. */
export type WeightsConfiguration =
  | GatherWeightsConfiguration
  | TmaWeightsConfiguration
  | DepthwiseWeightsConfiguration;

/** The operation that `convolution` makes. */
export type ConvolutionOperation<X extends DTypeName, Out extends DTypeName> = Operation<
  { readonly x: TensorSpec<X>; readonly w: TensorSpec<X> },
  { readonly out: TensorSpec<Out> },
  Empty,
  PixelConfiguration
>;

/** The operation that `convolutionBackwardX` makes. */
export type ConvolutionBackwardX<X extends DTypeName> = Operation<
  { readonly dOut: TensorSpec<X>; readonly w: TensorSpec<X> },
  { readonly dx: TensorSpec<X> },
  Empty,
  PixelConfiguration
>;

/** The operation that `convolutionBackwardW` makes. */
export type ConvolutionBackwardW<X extends DTypeName> = Operation<
  { readonly x: TensorSpec<X>; readonly dOut: TensorSpec<X> },
  { readonly dw: TensorSpec<X> },
  Empty,
  WeightsConfiguration
>;

/** Kernels by what they depend on. */
type Kernels = Map<string, KernelDefinition>;

/** Windows of x times w, summed. */
export function convolution<X extends DTypeName, Out extends DTypeName = X>(
  spec: ConvolutionSpec<X, Out>,
): ConvolutionOperation<X, Out> {
  const problem = problemOf("convolution", spec, captureLocation());
  const kernels: Kernels = new Map();
  const { x, w, out } = problem;
  return libraryOperation(
    {
      name: "convolution",
      inputs: { x, w },
      outputs: { out },
      plan: (dimensions, target) =>
        planPixels(problem, "forward", geometryOf(problem, dimensions), kernels, target),
    },
    spec,
  ) as unknown as ConvolutionOperation<X, Out>;
}

/** What x should change by, from what the result of `convolution` with the same specification should. */
export function convolutionBackwardX<X extends DTypeName>(
  spec: Omit<ConvolutionSpec<X>, "out">,
): ConvolutionBackwardX<X> {
  const given = problemOf("convolutionBackwardX", spec, captureLocation());
  const { w, out } = given;
  // Gradients lie by rows, however x does.
  const x = tensor(given.x.dtype, given.x.shape);
  const problem = { ...given, x };
  const kernels: Kernels = new Map();
  return libraryOperation(
    {
      name: "convolution_backward_x",
      inputs: { dOut: out, w },
      outputs: { dx: x },
      plan: (dimensions, target) =>
        planPixels(problem, "backward", geometryOf(problem, dimensions), kernels, target),
    },
    spec,
  ) as unknown as ConvolutionBackwardX<X>;
}

/** What w should change by, likewise; sums are added in a fixed order. */
export function convolutionBackwardW<X extends DTypeName>(
  spec: Omit<ConvolutionSpec<X>, "out">,
): ConvolutionBackwardW<X> {
  const given = problemOf("convolutionBackwardW", spec, captureLocation());
  const { x, out } = given;
  const w = tensor(given.w.dtype, given.w.shape);
  const problem = { ...given, w };
  const kernels: Kernels = new Map();
  return libraryOperation(
    {
      name: "convolution_backward_w",
      inputs: { x, dOut: out },
      outputs: { dw: w },
      plan: (dimensions, target) =>
        planWeights(problem, geometryOf(problem, dimensions), kernels, target),
    },
    spec,
  ) as unknown as ConvolutionBackwardW<X>;
}

function known(kernels: Kernels, text: string, make: () => KernelDefinition): KernelDefinition {
  const found = kernels.get(text) ?? make();
  kernels.set(text, found);
  return found;
}

/** A launch, with those of the values that its kernel has dimensions for. */
function launched(
  kernel: KernelDefinition,
  given: PlannedLaunch["arguments"],
  values: { readonly [name: string]: number },
): PlannedLaunch {
  const declared = new Set(kernel.kernel.dimensions.map(({ name }) => name));
  const dimensions = Object.entries(values).filter(([name]) => declared.has(name));
  return { kernel, arguments: given, dimensions: Object.fromEntries(dimensions) };
}

/** Arguments under the shapes that the kernel declares. */
function reshaped(
  { inputs, outputs, inouts }: KernelDefinition,
  given: { readonly [parameter: string]: string },
  values: { readonly [name: string]: number },
): PlannedLaunch["arguments"] {
  const specs: { readonly [name: string]: unknown } = { ...inputs, ...outputs, ...inouts };
  return Object.fromEntries(
    Object.entries(given).map(([parameter, argument]) => {
      const spec = specs[parameter] as TensorSpec;
      if (spec.strides !== undefined) return [parameter, flat(argument)];
      return [parameter, { argument, shape: laidOut(spec, values).shape }];
    }),
  );
}

function flat(argument: string): PlannedLaunch["arguments"][string] {
  return { argument, flat: true };
}

/** Channels that a step goes through: whole rows of what few there are, a row of tensor cores' operands else. */
function stepDepth(problem: ConvolutionProblem, channels: number): number {
  const most = problem.x.dtype.bits >= 32 ? 16 : 32;
  return channels <= 16 ? 16 : most;
}

function tileSide(extent: number, most: number): number {
  return extent <= 16 ? 16 : extent <= 32 ? Math.min(32, most) : most;
}

function planPixels(
  problem: ConvolutionProblem,
  direction: Direction,
  geometry: Geometry,
  kernels: Kernels,
  target: Target,
): Planned<PixelConfiguration> {
  if (isDepthwise(problem, geometry))
    return planDepthwise(problem, direction, geometry, kernels, target);
  if (isProduct(problem, geometry)) return planProduct(problem, direction, geometry, target);
  const slow = tmaProblem(problem, geometry, direction, target);
  if (slow === undefined) return planCopied(problem, direction, geometry, kernels, target);
  return {
    ...planGathered(problem, direction, geometry, kernels),
    notes: [`operands are read by number: ${slow}`],
  };
}

function planCopied(
  problem: ConvolutionProblem,
  direction: Direction,
  geometry: Geometry,
  kernels: Kernels,
  target: Target,
): Planned<PixelConfiguration> {
  const isForward = direction === "forward";
  const isApart = !isForward && problem.stride.some((stride) => stride > 1);
  const { phases, geometry: own } = isApart
    ? phasesOf(problem, geometry)
    : { phases: undefined, geometry };
  const form = tmaForm(problem, own, direction, target, phases);
  const [made, places] = isForward ? [own.outputs, own.output] : [own.channels, own.input];
  const tiles = (phases?.each.length ?? 1) * tileCount(own, places, made, form.configuration);
  const values = { ...tmaDimensions(own, form), workers: Math.min(target.processors, tiles) };
  const given = { read: isForward ? "x" : "dOut", weights: "w", result: isForward ? "out" : "dx" };
  return {
    configuration: form.configuration,
    source: "heuristic",
    launches: () => {
      if (tiles === 0) return [];
      const kernel = known(kernels, tmaText(own, form), () => tmaKernel(problem, own, form));
      return [launched(kernel, reshaped(kernel, given, values), values)];
    },
  };
}

function planDepthwise(
  problem: ConvolutionProblem,
  direction: Direction,
  geometry: Geometry,
  kernels: Kernels,
  { processors }: Target,
): Planned<PixelConfiguration> {
  const { dtype } = problem.x;
  const configuration = chooseDepthwise(problem, direction, geometry, dtype, processors);
  const isForward = direction === "forward";
  const taps = tapCount(geometry.taps);
  const shape = isForward ? geometry.out.extents : geometry.x.extents;
  if (shape.includes(0)) return { configuration, source: "heuristic", launches: [] };
  const text = depthwiseText(problem, geometry);
  const values = depthwiseDimensions(geometry);
  const repeated = repeatedWeights(configuration);
  return {
    configuration,
    source: "heuristic",
    scratch: { turned: { dtype: problem.w.dtype, shape: [taps, geometry.groups + repeated] } },
    launches: () => {
      const turn = known(kernels, `turn ${repeated} ${text}`, () =>
        transposeWeightsKernel(problem.w.dtype, taps, geometry.groups, repeated),
      );
      const sum = known(kernels, JSON.stringify(configuration) + text, () =>
        depthwiseKernel(problem, direction, geometry, configuration),
      );
      const [read, made] = isForward ? ["x", "out"] : ["dOut", "dx"];
      return [
        launched(turn, reshaped(turn, { w: "w", turned: "turned" }, values), values),
        launched(sum, reshaped(sum, { read, turned: "turned", made }, values), values),
      ];
    },
  };
}

function planGathered(
  problem: ConvolutionProblem,
  direction: Direction,
  geometry: Geometry,
  kernels: Kernels,
): Planned<PixelConfiguration> {
  const { channels, outputs } = geometry;
  const isForward = direction === "forward";
  const [summed, made] = isForward ? [channels, outputs] : [outputs, channels];
  const isDouble = problem.accumulator.bits === 64;
  const configuration: GatherConfiguration = {
    kernel: "gather",
    rows: 64,
    columns: tileSide(made, isDouble ? 32 : 64),
    depth: stepDepth(problem, summed),
  };
  const places = placeCount(geometry, direction);
  if (places * made === 0) return { configuration, source: "heuristic", launches: [] };
  const views = gatherViews(geometry, direction);
  const { read, weights } = views;
  const text = JSON.stringify([configuration, read.text(), weights.text(), views.made.text()]);
  const values = {
    ...read.dimensions(),
    ...weights.dimensions(),
    ...views.made.dimensions(),
  };
  return {
    configuration,
    source: "heuristic",
    launches: () => [
      launched(
        known(kernels, text, () => gatherKernel(problem, direction, views, configuration)),
        {
          read: flat(isForward ? "x" : "dOut"),
          weights: flat("w"),
          made: flat(isForward ? "out" : "dx"),
        },
        values,
      ),
    ],
  };
}

/** Blocks for each processor that parts of the places make, and steps that a part has at least. */
const blocksPerProcessor = 4;
const leastSteps = 8;

function planWeights(
  problem: ConvolutionProblem,
  geometry: Geometry,
  kernels: Kernels,
  target: Target,
): Planned<WeightsConfiguration> {
  if (isDepthwise(problem, geometry))
    return planDepthwiseWeights(problem, geometry, kernels, target);
  const slow = tmaWeightsProblem(problem, geometry, target);
  if (slow === undefined) return planCopiedWeights(problem, geometry, kernels, target);
  return {
    ...planGatheredWeights(problem, geometry, kernels, target),
    notes: [`operands are read by number: ${slow}`],
  };
}

function planCopiedWeights(
  problem: ConvolutionProblem,
  given: Geometry,
  kernels: Kernels,
  target: Target,
): Planned<WeightsConfiguration> {
  const geometry = withoutWindows(problem, given);
  const { groups, outputs, channels, taps } = geometry;
  const form = readForm(problem, geometry, "forward");
  const { configuration, assignment } = chooseTmaWeights(geometry, target);
  const { period, share, workers, partials } = assignment;
  const wide = taps[0] * taps[1] * taps[2] * channels;
  const shape = [partials, groups * outputs, wide];
  const values = { ...tmaDimensions(geometry, form), workers, partials };
  const text = JSON.stringify([configuration, tmaText(geometry, form)]);
  const scalars = { share: { scalar: share }, period: { scalar: period } };
  const product = (sums: string): PlannedLaunch => {
    const kernel = known(kernels, text, () =>
      tmaWeightsKernel(problem, geometry, form, configuration),
    );
    const arrays = reshaped(kernel, { x: "x", dOut: "dOut", sums }, values);
    return launched(kernel, { ...arrays, ...scalars }, values);
  };
  if (configuration.isWhole)
    return { configuration, source: "heuristic", launches: () => [product("dw")] };
  return {
    configuration,
    source: "heuristic",
    scratch: { sums: { dtype: problem.accumulator, shape } },
    launches: () => {
      const sumText = JSON.stringify([configuration, sumPartialsText(partials)]);
      const sum = known(kernels, sumText, () =>
        sumPartialsKernel(problem.w.dtype, configuration, partials),
      );
      return [
        product("sums"),
        launched(
          sum,
          {
            sums: { argument: "sums" },
            out: { argument: "dw", shape: shape.slice(1) },
            ...scalars,
            perGroup: { scalar: outputs },
          },
          {},
        ),
      ];
    },
  };
}

function planDepthwiseWeights(
  problem: ConvolutionProblem,
  geometry: Geometry,
  kernels: Kernels,
  { processors }: Target,
): Planned<WeightsConfiguration> {
  const configuration = chooseDepthwiseWeights(geometry, problem, processors);
  const { parts } = configuration;
  const text = JSON.stringify(configuration) + depthwiseText(problem, geometry);
  const values = depthwiseDimensions(geometry);
  const shape = [parts, tapCount(geometry.taps), geometry.groups];
  return {
    configuration,
    source: "heuristic",
    scratch: { sums: { dtype: problem.accumulator, shape } },
    launches: () => {
      const sum = known(kernels, text, () =>
        depthwiseWeightsKernel(problem, geometry, configuration),
      );
      const add = known(kernels, `add ${text}`, () => addWeightsKernel(problem, geometry, parts));
      return [
        launched(sum, reshaped(sum, { x: "x", dOut: "dOut", sums: "sums" }, values), values),
        launched(add, reshaped(add, { sums: "sums", dw: "dw" }, values), values),
      ];
    },
  };
}

function planGatheredWeights(
  problem: ConvolutionProblem,
  geometry: Geometry,
  kernels: Kernels,
  { processors }: Target,
): Planned<WeightsConfiguration> {
  const { channels, outputs, groups, taps } = geometry;
  const isDouble = problem.accumulator.bits === 64;
  const rows = 64;
  const columns = tileSide(channels, isDouble ? 32 : 64);
  const depth = problem.x.dtype.bits >= 32 ? 16 : 32;
  const places = placeCount(geometry, "forward");
  const tiles =
    groups *
    taps[0] *
    taps[1] *
    taps[2] *
    Math.ceil(outputs / rows) *
    Math.ceil(channels / columns);
  const steps = Math.ceil(places / depth);
  const wanted = Math.min(
    Math.floor((blocksPerProcessor * processors) / Math.max(1, tiles)),
    Math.floor(steps / leastSteps),
  );
  const parts = Math.max(1, wanted);
  const configuration = { kernel: "gather", rows, columns, depth, parts } as const;
  const elements = groups * outputs * taps[0] * taps[1] * taps[2] * channels;
  if (elements === 0) return { configuration, source: "heuristic", launches: [] };
  const views = weightViews(geometry, parts);
  const text = JSON.stringify([
    configuration,
    views.x.text(),
    views.dOut.text(),
    views.made.text(),
  ]);
  const values = {
    ...views.x.dimensions(),
    ...views.dOut.dimensions(),
    ...views.made.dimensions(),
  };
  const product = (made: string): PlannedLaunch =>
    launched(
      known(kernels, text, () => gatherWeightsKernel(problem, views, configuration)),
      { x: flat("x"), dOut: flat("dOut"), made: flat(made) },
      values,
    );
  if (parts === 1) return { configuration, source: "heuristic", launches: () => [product("dw")] };
  return {
    configuration,
    source: "heuristic",
    scratch: { parts: { dtype: problem.accumulator, shape: [parts, elements] } },
    launches: () => [
      product("parts"),
      launched(
        known(kernels, `sum ${parts}`, () =>
          sumSplitsKernel(problem.w.dtype, problem.accumulator, parts),
        ),
        {
          parts: { argument: "parts" },
          out: { argument: "dw", shape: [elements] },
        },
        {},
      ),
    ],
  };
}
