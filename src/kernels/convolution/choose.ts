/** Chooses the kernel of a convolution and its tiles: TMA where it can load the arrays, else gathers. */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { Target } from "../../targets/target.ts";
import { boxesAcross, tightestBox } from "./tma-boxes.ts";
import { efficiency, stepChannels, tileColumns, tilePositions } from "./tma-implicit-gemm.ts";
import type { TmaConfiguration, TmaForm, ReadForm } from "./tma-implicit-gemm.ts";
import type { Direction } from "./gather-implicit-gemm.ts";
import { rowMajorStrides } from "../../formats/shape.ts";
import { hasPhases, tapsOf } from "./phases.ts";
import type { Phases } from "./phases.ts";
import type { ConvolutionProblem, FiveAxes, Geometry, Triple } from "./problem.ts";
import { hasSumsInFlight } from "../../targets/product-instructions.ts";

/** The format of what a convolution makes. */
function resultOf({ x, out }: ConvolutionProblem, direction: Direction): DType {
  return (direction === "forward" ? out : x).dtype;
}

/** Whether channels are last and nothing lies between elements. */
export function liesByRows({ extents, strides }: FiveAxes): boolean {
  const usual = rowMajorStrides(extents);
  return strides.every((stride, axis) => extents[axis] === 1 || stride === usual[axis]);
}

/** Why results cannot be stored in rows of 128 bytes; undefined where they can. */
function resultProblem({ name, bits }: DType, groups: number, outputs: number): string | undefined {
  return bits < 8 || (groups > 1 && outputs % leastColumns(bits) !== 0)
    ? `results of ${name} do not fill rows of 128 bytes`
    : undefined;
}

/** Why TMA cannot load the operands, as a note; undefined where it can. */
export function tmaProblem(
  problem: ConvolutionProblem,
  geometry: Geometry,
  direction: Direction,
  target: Target,
): string | undefined {
  const { x, w, out, channels, outputs, groups, stride } = { ...problem, ...geometry };
  if (!hasSumsInFlight(target) || !target.features.includes("tma"))
    return `${target.name} has no wgmma`;
  if (problem.x.dtype !== dtypes.bf16 && problem.x.dtype !== dtypes.f16)
    return `wgmma does not multiply ${problem.x.dtype.name} as it is`;
  const isForward = direction === "forward";
  const arrays = isForward ? [x, w] : [out, w];
  if (!arrays.every(liesByRows)) return "channels are not last";
  if ([channels, outputs].some((count) => count % 8 !== 0))
    return `rows of ${Math.min(channels, outputs)} channels do not begin at multiples of 16 bytes`;
  if (groups > 1 && [channels, outputs].some((count) => count % stepChannels !== 0))
    return `groups of ${channels} channels are not multiples of ${stepChannels}`;
  const unstored = resultProblem(resultOf(problem, direction), groups, outputs);
  if (unstored !== undefined) return unstored;
  return stride.every((each) => each === 1)
    ? undefined
    : apartProblem(problem, geometry, direction);
}

/** The same of windows that lie apart. */
function apartProblem(
  problem: ConvolutionProblem,
  geometry: Geometry,
  direction: Direction,
): string | undefined {
  const { channels, stride, input } = { ...problem, ...geometry };
  if (direction !== "forward") {
    if (!hasPhases(problem, geometry)) return "windows of the gradient of x lie apart";
    return channels % stepChannels === 0
      ? undefined
      : `windows lie apart, and ${channels} channels are no multiple of ${stepChannels}`;
  }
  const isPairs =
    stride[0] === 1 &&
    geometry.taps[0] === 1 &&
    input[0] === 1 &&
    [1, 2].every(
      (axis) => stride[axis] === 1 || (stride[axis] === 2 && (input[axis] ?? 1) % 2 === 0),
    );
  if (!isPairs) return "windows lie apart, and not two by two in even extents";
  return channels % stepChannels === 0
    ? undefined
    : `windows lie apart, and ${channels} channels are no multiple of ${stepChannels}`;
}

/** The same of the gradient of the weights, whose columns are whole runs of channels. */
export function tmaWeightsProblem(
  problem: ConvolutionProblem,
  geometry: Geometry,
  target: Target,
): string | undefined {
  const { channels, outputs, out, groups, batch, output } = geometry;
  const slow = tmaProblem(problem, geometry, "forward", target);
  if (slow !== undefined) return slow;
  if (!liesByRows(out)) return "channels are not last";
  if (channels % stepChannels !== 0)
    return `${channels} channels are no multiple of ${stepChannels}`;
  if (groups > 1 && outputs % stepChannels !== 0)
    return `groups of ${outputs} outputs are no multiple of ${stepChannels}`;
  return batch * output[0] * output[1] * output[2] === 0 ? "there is nothing to sum" : undefined;
}

/** Steps that a tile's beginning and end take. */
const tileSteps = 4;

export function tileCount(
  { batch, groups }: Geometry,
  places: Triple,
  made: number,
  { box, columns }: Pick<TmaConfiguration, "box" | "columns">,
): number {
  return boxesAcross(batch, places, box) * groups * Math.ceil(made / columns);
}

/** Steps of the block that has the most of them, of phases that each have so many tiles: that of the first in each round. */
function dealtSteps(
  tapCounts: readonly number[],
  perTap: number,
  tiles: number,
  processors: number,
): number {
  const rounds = Math.ceil((tiles * tapCounts.length) / processors);
  let steps = 0;
  for (let round = 0; round < rounds; round += 1) {
    const taps = tapCounts[Math.floor((round * processors) / tiles)] ?? 0;
    steps += taps * perTap + tileSteps;
  }
  return steps;
}

/** Columns of the narrowest tile: results are stored in rows of 128 bytes. */
function leastColumns(bits: number): number {
  return Math.max(64, 1024 / bits);
}

/** Columns that threads have registers for, times the bits of a result. */
const mostColumnBits = 256 * 32;

export function chooseTma(
  geometry: Geometry,
  direction: Direction,
  target: Target,
  bits: number,
  phases?: Phases,
): TmaConfiguration {
  const isForward = direction === "forward";
  const { batch, channels, outputs, groups, input, output, taps } = geometry;
  const [made, places, summed] = isForward
    ? [outputs, output, channels]
    : [channels, input, outputs];
  const box = tightestBox(tilePositions, batch, places);
  // What overhangs would be channels of the next group, or of the other column of a pair.
  const isApart = groups > 1 || phases !== undefined;
  const tapCounts = phases?.each.map(tapsOf) ?? [taps[0] * taps[1] * taps[2]];
  const least = leastColumns(bits);
  const possible = tileColumns.filter(
    (columns) =>
      columns >= least &&
      columns * bits <= mostColumnBits &&
      (columns === least || (isApart ? made % columns === 0 : columns < 2 * made)),
  );
  const seconds = (columns: (typeof possible)[number]): number => {
    const tiles = tileCount(geometry, places, made, { box, columns });
    const steps = dealtSteps(tapCounts, Math.ceil(summed / stepChannels), tiles, target.processors);
    return steps * (columns / efficiency[columns]);
  };
  const columns = possible.reduce((best, each) => (seconds(each) < seconds(best) ? each : best));
  // Results that are not of 16 bits may go through shared memory once more, to come to lie in rows.
  const results = 2 * 2 * 64 * 128 + (bits === 16 ? 0 : 512 * bits);
  const each = (tilePositions + columns) * stepChannels * 2;
  const most = Math.floor((target.sharedMemoryPerBlock - results - 2048) / each);
  return { kernel: "tma", box, columns, stages: Math.max(2, Math.min(8, most)) };
}

export function readForm(
  { stride }: ConvolutionProblem,
  { input, output, taps }: Geometry,
  direction: Direction,
  phases?: Phases,
): ReadForm {
  return {
    direction,
    isDeep: input[0] > 1 || output[0] > 1 || taps[0] > 1,
    halved: direction === "forward" ? [stride[1] === 2, stride[2] === 2] : [false, false],
    ...(phases && { phases }),
  };
}

export function tmaForm(
  problem: ConvolutionProblem,
  geometry: Geometry,
  direction: Direction,
  target: Target,
  phases?: Phases,
): TmaForm {
  return {
    ...readForm(problem, geometry, direction, phases),
    configuration: chooseTma(
      geometry,
      direction,
      target,
      resultOf(problem, direction).bits,
      phases,
    ),
  };
}
