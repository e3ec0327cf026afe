/**
 * Convolution as an implicit GEMM on wgmma, with operands loaded by TMA. Where channels are last, a step of the product reads a box of x:
 * some images, rows and columns at the positions of the result, shifted by a tap of the window, and 64 channels. TMA fills what lies
 * outside of x with zeros, so padding costs nothing:
 *
 *   box [2, 8, 8] of the result     step (y, x, c)     x[n … n + 1, top + y − before … + 7, left + x − before … + 7, c … c + 63]
 *
 * With stride 2, x of even extents is viewed as [n, height / 2, 2, width / 2, 2 c]: a tap selects one of the two, and neighbours are
 * contiguous again. The gradient of x is the same product of dOut with opposite shifts, and with the weights read along the other axis. With
 * stride 2, each of the four positions in a pair of rows and columns has taps of its own (`phases.ts`), and tiles of its own.
 */
import type { DType } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { multiplySizes } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import {
  accumulator,
  tensor,
  cdiv,
  constant,
  dim,
  kernel,
  slice,
  smem,
  storeThrough,
  tiles,
  warpSpecialized,
  wgmma,
} from "../../lang/index.ts";
import type {
  Accumulator,
  TensorSpec,
  Index,
  KernelDefinition,
  Ref,
  Scalar,
  Slice,
} from "../../lang/index.ts";
import { followPrevious } from "../support/programmatic-dependent-launch.ts";
import { alignedDimension, alignment } from "../support/sizes.ts";
import { halfBox } from "./tma-boxes.ts";
import type { Box } from "./tma-boxes.ts";
import type { Direction } from "./gather-implicit-gemm.ts";
import { mostPaired } from "./phases.ts";
import type { PhaseAxis, Phases } from "./phases.ts";
import { windowAlong } from "./problem.ts";
import type { ConvolutionProblem, Geometry, Triple, WindowSteps } from "./problem.ts";

/** Channels of a step: rows of 128 bytes, the widest swizzle. */
export const stepChannels = 64;
/** Places of a tile: two threads of 64 rows. */
export const tilePositions = 128;
const threadRows = 64;
/** Bytes of a row of a piece of the result. */
const rowBytes = 128;

/** Columns that tiles may have, and the part of the tensor cores' rate that they reach. */
export const tileColumns = [256, 192, 128, 64] as const;
export type TileColumns = (typeof tileColumns)[number];
export const efficiency: { readonly [C in TileColumns]: number } = {
  64: 0.55,
  128: 0.72,
  192: 0.79,
  256: 0.82,
};

export interface TmaConfiguration {
  /** Which kernel runs it. */
  readonly kernel: "tma";
  /** The pixels that a copy fetches. */
  readonly box: Box;
  /** Channels of a tile of the result. */
  readonly columns: TileColumns;
  /** Steps that there is room for. */
  readonly stages: number;
}

/** How windows lie in the array that is read. */
export interface ReadForm {
  readonly direction: Direction;
  /** Whether there are three spatial axes. */
  readonly isDeep: boolean;
  /** Whether windows go two by two, along height and width. */
  readonly halved: readonly [boolean, boolean];
  /** The places of pairs, and the taps that they meet; of gradients of windows that go two by two. */
  readonly phases?: Phases;
}

/** What of the sizes a kernel is made for. */
export interface TmaForm extends ReadForm {
  readonly configuration: TmaConfiguration;
}

/** The sizes of a kernel; from the side of the array that is read, channels are summed or made. */
export interface TmaSizes {
  readonly batch: Size;
  readonly group: Size;
  /** Channels of a group: those summed over, and those made. */
  readonly summed: Size;
  readonly made: Size;
  readonly read: readonly [Size, Size, Size];
  readonly places: readonly [Size, Size, Size];
  readonly taps: readonly [Size, Size, Size];
}

const axisNames = ["depth", "height", "width"] as const;

function numbersOf(geometry: Geometry, direction: Direction) {
  const { batch, groups, channels, outputs, input, output, taps } = geometry;
  const isForward = direction === "forward";
  return {
    ...{ batch, group: groups, taps },
    ...(isForward
      ? { summed: channels, made: outputs, read: input, places: output }
      : { summed: outputs, made: channels, read: output, places: input }),
  };
}

/** Values for the dimensions of the kernel. */
export function tmaDimensions(
  geometry: Geometry,
  { direction, halved }: ReadForm,
): { readonly [name: string]: number } {
  const { batch, group, summed, made, read, places, taps } = numbersOf(geometry, direction);
  const entries: [string, number][] = [...Object.entries({ batch, group, summed, made })];
  for (const [axis, name] of axisNames.entries()) {
    const half = axis > 0 && halved[axis - 1] === true ? 2 : 1;
    entries.push([`read_${name}`, (read[axis] ?? 1) / half]);
    entries.push([`places_${name}`, places[axis] ?? 1], [`taps_${name}`, taps[axis] ?? 1]);
  }
  return Object.fromEntries(entries);
}

export function tmaSizes(
  geometry: Geometry,
  { direction, isDeep, halved, phases }: ReadForm,
): TmaSizes {
  const numbers = numbersOf(geometry, direction);
  const spatial = (of: string, own: readonly number[]): readonly [Size, Size, Size] => [
    isDeep ? dim(`${of}_depth`) : 1,
    own[1] === 1 ? 1 : dim(`${of}_height`),
    dim(`${of}_width`),
  ];
  const half = (size: number, isHalf: boolean | undefined) => (isHalf === true ? size / 2 : size);
  const { read, places, taps } = numbers;
  return {
    batch: dim("batch"),
    group: numbers.group === 1 ? 1 : dim("group"),
    summed: alignedDimension("summed", numbers.summed),
    made: alignedDimension("made", numbers.made),
    read: spatial("read", [read[0], half(read[1], halved[0]), half(read[2], halved[1])]),
    places: spatial("places", places),
    // Phases are made for them.
    taps: phases === undefined ? spatial("taps", taps) : taps,
  };
}

/** What of the geometry a kernel depends on. */
export function tmaText(geometry: Geometry, form: ReadForm): string {
  const { group, summed, made, read, places, taps } = numbersOf(geometry, form.direction);
  const ones = [group, read[1], places[1], taps[1]].map((extent) => extent === 1);
  return JSON.stringify([form, ones, alignment(summed), alignment(made)]);
}

/** The array that is read, with the two of each pair as an axis of their own, or in front of the channels. */
export function readSpec(
  { x: { dtype } }: ConvolutionProblem,
  { batch, group, summed, read: [depth, height, width] }: TmaSizes,
  { isDeep, halved }: ReadForm,
): TensorSpec {
  const channels = multiplySizes(group, summed);
  return tensor(dtype, [
    batch,
    ...(isDeep ? [depth] : []),
    height,
    ...(halved[0] ? [2] : []),
    width,
    halved[1] ? multiplySizes(2, channels) : channels,
  ]);
}

/** How far a tap lies from the place that it belongs to; where there are phases, from where a place meets its first. */
function shiftOf(
  { direction }: ReadForm,
  tap: Scalar<"i32">,
  { dilation, before }: WindowSteps,
  first: Scalar<"i32"> | undefined,
): Scalar<"i32"> {
  const reach = dilation === 1 ? tap : tap.mul(dilation);
  return direction === "forward" ? reach.sub(before) : reach.mul(-1).add(first ?? before);
}

/** A number of each phase along an axis, by the number of the phase. */
function ofPhase(
  { each }: Phases,
  phase: Scalar<"i32">,
  axis: number,
  name: keyof PhaseAxis,
): Scalar<"i32"> {
  const [first = 0, ...others] = each.map((axes) => axes[axis]?.[name] ?? 0);
  const start = constant(dtypes.i32, first);
  if (others.every((value) => value === first)) return start;
  return others.reduce((value, own, index) => phase.eq(index + 1).select(own, value), start);
}

/** Where a tile's box begins. */
export interface Corner {
  readonly image: Scalar<"i32">;
  readonly depth: Scalar<"i32">;
  readonly top: Scalar<"i32">;
  readonly left: Scalar<"i32">;
}

/** What is read of a box at a tap: channels of its places, shifted. */
export interface Reading {
  readonly box: Box;
  readonly corner: Corner;
  readonly taps: Triple<Scalar<"i32">>;
  /** The first channel, counted through all groups. */
  readonly channel: Scalar<"i32">;
  /** How many of them: as many as a step has, by default. */
  readonly channels?: number;
  /** Which phase the places are of, where there are some. */
  readonly phase?: Scalar<"i32"> | undefined;
}

export function boxWindow(
  { problem, form, sizes }: ReadSetting,
  read: Ref,
  { box: [images, rows, columns], corner, taps, channel, channels, phase }: Reading,
): Ref {
  const { isDeep, halved, phases } = form;
  const firstOf = (axis: number) => phases && phase && ofPhase(phases, phase, axis, "shift");
  const [inDepth, down, across] = taps.map((tap, axis) =>
    shiftOf(form, tap, windowAlong(problem, axis), firstOf(axis)),
  ) as [Scalar<"i32">, Scalar<"i32">, Scalar<"i32">];
  const along = (start: Scalar<"i32">, by: Scalar<"i32">, isHalf: boolean, size: number): Slice =>
    slice(start.add(isHalf ? by.shr(1) : by), size);
  const all = multiplySizes(sizes.group, sizes.summed);
  const first = halved[1]
    ? across
        .and(1)
        .mul(all as never)
        .add(channel)
    : channel;
  return read.at(
    slice(corner.image, images),
    ...(isDeep ? [slice(corner.depth.add(inDepth), 1)] : []),
    along(corner.top, down, halved[0], rows),
    ...(halved[0] ? [slice(down.and(1), 1)] : []),
    along(corner.left, across, halved[1], columns),
    slice(first, channels ?? stepChannels),
  );
}

/** What windows on the array that is read depend on. */
export interface ReadSetting {
  readonly problem: ConvolutionProblem;
  readonly form: ReadForm;
  readonly sizes: TmaSizes;
}

/** What the declaration of a kernel and its body are made of. */
interface Setting extends ReadSetting {
  readonly form: TmaForm;
}

/** Outputs and channels of a group, as w has them. */
function weightSizes({ form, sizes: { summed, made } }: Setting) {
  return form.direction === "forward"
    ? { outputs: made, channels: summed }
    : { outputs: summed, channels: made };
}

/** w with taps in front, so that the weights of a step are a matrix. */
function weightSpec(setting: Setting): TensorSpec {
  const { taps, group } = setting.sizes;
  const { outputs, channels } = weightSizes(setting);
  const count = multiplySizes(...taps);
  return tensor(setting.problem.w.dtype, [count, multiplySizes(group, outputs), channels], {
    strides: [channels, multiplySizes(count, channels), 1],
  });
}

type Indices<N extends string> = { readonly [K in N]: Scalar<"i32"> };
/** Which tile: the phase, where there are some, the group, its box and its channels. */
type TileIndices = Indices<"g" | "n" | "z0" | "y0" | "x0" | "j"> & {
  readonly phase?: Scalar<"i32">;
};
/** Which step of it: a tap, and channels that are summed. */
type StepIndices = Indices<"z" | "y" | "x" | "step">;

function cornerOf({ box: [images, rows, columns] }: TmaConfiguration, at: TileIndices): Corner {
  return {
    image: at.n.mul(images),
    depth: at.z0,
    top: at.y0.mul(rows),
    left: at.x0.mul(columns),
  };
}

/** What a step reads of w: [1, columns, 64], or for the gradient [1, 64, columns]. */
function weightWindow(setting: Setting, weights: Ref, at: TileIndices & StepIndices): Ref {
  const { form, sizes } = setting;
  const { columns } = form.configuration;
  const { phases } = form;
  const [, height, width] = sizes.taps;
  const whole = (tap: Scalar<"i32">, axis: number): Scalar<"i32"> =>
    phases === undefined || at.phase === undefined
      ? tap
      : tap.mul(phases.apart[axis] ?? 1).add(ofPhase(phases, at.phase, axis, "first"));
  const tap = whole(at.z, 0).mul(height).add(whole(at.y, 1)).mul(width).add(whole(at.x, 2));
  const first = at.g.mul(weightSizes(setting).outputs);
  const [along, across] = [at.step.mul(stepChannels), at.j.mul(columns)];
  return form.direction === "forward"
    ? weights.at(slice(tap, 1), slice(first.add(across), columns), slice(along, stepChannels))
    : weights.at(slice(tap, 1), slice(first.add(along), stepChannels), slice(across, columns));
}

/** What a thread multiplies in a step. */
function multiplied(
  { direction, configuration: { columns } }: TmaForm,
  sum: Accumulator<"f32">,
  { left, right }: { readonly left: Ref; readonly right: Ref },
  part: Scalar<"i32">,
): Accumulator<"f32"> {
  const rows = slice(part.mul(threadRows), threadRows);
  return wgmma(
    sum,
    left.reshape([tilePositions, stepChannels]).at(rows),
    direction === "forward"
      ? right.reshape([columns, stepChannels]).transpose()
      : right.reshape([stepChannels, columns]),
  );
}

/** The result, what a thread stores of it at a time, and where; with phases pairs are axes of their own, as for what is read. */
function resultForm(
  { form, sizes: { batch, group, made, places } }: Setting,
  dtype: DType<"bf16">,
) {
  const { isDeep, phases, configuration } = form;
  const [images, rows, columns] = halfBox(configuration.box);
  const channels = multiplySizes(group, made);
  const [isPairedDown, isPairedAcross] = [phases?.apart[1] === 2, phases?.apart[2] === 2];
  return {
    whole: tensor(dtype, [
      ...[batch, ...(isDeep ? [places[0]] : []), places[1], ...(isPairedDown ? [2] : [])],
      ...[places[2], isPairedAcross ? multiplySizes(2, channels) : channels],
    ]),
    ownShape: [images, ...(isDeep ? [1] : []), rows, ...(isPairedDown ? [1] : []), columns],
    placeOf: (
      corner: Corner,
      own: Scalar<"i32">,
      phase: Scalar<"i32"> | undefined,
    ): readonly Index[] => {
      const placeAlong = (axis: number): Scalar<"i32"> =>
        phases === undefined || phase === undefined
          ? own.mul(0)
          : ofPhase(phases, phase, axis, "place");
      return [
        ...[corner.image, ...(isDeep ? [corner.depth] : []), corner.top],
        ...(isPairedDown ? [placeAlong(1)] : []),
        corner.left,
        // Channels of the second column of a pair lie behind those of the first. The bounds change nothing: they tell the compiler that
        // pieces begin in the array, before which TMA writes nothing.
        isPairedAcross
          ? own
              .add(placeAlong(2).mul(channels))
              .maximum(0)
              .minimum(2 * mostPaired)
          : own,
      ];
    },
  };
}

/** Steps of a tile: taps, of a phase those that it meets, and channels. */
function stepGrid({ form: { phases }, sizes: { taps, summed } }: Setting, { phase }: TileIndices) {
  const along = (axis: 0 | 1 | 2): Index =>
    phases === undefined || phase === undefined
      ? taps[axis]
      : ofPhase(phases, phase, axis, "count");
  return { z: along(0), y: along(1), x: along(2), step: cdiv(summed, stepChannels) };
}

export function tmaKernel(
  problem: ConvolutionProblem,
  geometry: Geometry,
  form: TmaForm,
): KernelDefinition {
  const { direction, configuration, phases } = form;
  const { box, columns, stages } = configuration;
  const setting: Setting = { problem, form, sizes: tmaSizes(geometry, form) };
  const { batch, group, summed, made, places } = setting.sizes;
  const isForward = direction === "forward";
  const output = (isForward ? problem.out : problem.x).dtype as DType<"bf16">;
  const { whole, ownShape, placeOf } = resultForm(setting, output);
  return kernel(
    {
      name: isForward ? "convolution_copied" : "convolution_backward_x_copied",
      grid: { worker: dim("workers") },
      threads: ["copy", "first", "second"],
      inputs: { read: readSpec(problem, setting.sizes, form), weights: weightSpec(setting) },
      outputs: { result: whole },
      scratch: { buffers: smem(output, [2, 2, ...ownShape, (8 * rowBytes) / output.bits]) },
    },
    ({ read, weights, result, buffers }) => {
      followPrevious();
      warpSpecialized(
        {
          tiles: tiles(
            {
              ...(phases && { phase: phases.each.length }),
              g: group,
              n: cdiv(batch, box[0]),
              z0: places[0],
              y0: cdiv(places[1], box[1]),
              x0: cdiv(places[2], box[2]),
              j: cdiv(made, columns),
            },
            { alternate: phases !== undefined },
          ),
          grid: (at: TileIndices) => stepGrid(setting, at),
          inputs: {
            left: (at) =>
              boxWindow(setting, read, {
                ...{ box, corner: cornerOf(configuration, at), taps: [at.z, at.y, at.x] },
                channel: at.g.mul(summed as never).add(at.step.mul(stepChannels)),
                phase: at.phase,
              }),
            right: (at) => weightWindow(setting, weights, at),
          },
          depth: stages,
        },
        (tile) => {
          const start = accumulator(dtypes.f32, [threadRows, columns]);
          const product = tile.steps(start, (blocks, sum) =>
            multiplied(form, sum, blocks, tile.part),
          );
          const corner = partCorner(cornerOf(configuration, tile), box, tile.part);
          storeThrough(
            buffers.at(tile.part),
            product.cast(output).reshape([...ownShape, columns]),
            result,
            placeOf(corner, tile.g.mul(made as never).add(tile.j.mul(columns)), tile.phase),
          );
        },
      );
    },
  ) as unknown as KernelDefinition;
}

/** Where the part of a thread begins. */
function partCorner(corner: Corner, box: Box, part: Scalar<"i32">): Corner {
  const [images, rows, columns] = halfBox(box);
  if (images < box[0]) return { ...corner, image: corner.image.add(part.mul(images)) };
  return rows < box[1]
    ? { ...corner, top: corner.top.add(part.mul(rows)) }
    : { ...corner, left: corner.left.add(part.mul(columns)) };
}
