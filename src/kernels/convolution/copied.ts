/**
 * A convolution as a product on wgmma, with operands brought by the copy engine. Where channels are last, what a step of
 * the product reads of x is a box: some images, rows and columns of the result's places, shifted by an element of the
 * window, and 64 channels. What of it lies outside of x is filled with zeros by the copy engine, so padding costs nothing:
 *
 *   box [2, 8, 8] of the result     step (y, x, c)     x[n … n + 1, top + y − before … + 7, left + x − before … + 7, c … c + 63]
 *
 * Windows that go two by two see x of even extents as [n, height / 2, 2, width / 2, 2 c]: a tap picks one of the two, and
 * neighbours lie together again. The gradient of x is the same product of dOut with shifts the other way around, and
 * with the weights read along the other axis.
 */
import type { DType } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { multiplySizes } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import {
  accumulator,
  array,
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
import type { ArraySpec, KernelDefinition, Ref, Scalar, Slice, Tile } from "../../lang/index.ts";
import { alignedDimension, alignment } from "../support/sizes.ts";
import type { Direction } from "./gathered.ts";
import { windowAlong } from "./problem.ts";
import type { ConvolutionProblem, Geometry, WindowSteps } from "./problem.ts";

/** Channels of a step: rows of 128 bytes, the widest swizzle. */
export const stepChannels = 64;
/** Places of a tile: two threads of 64 rows. */
export const tilePlaces = 128;
const threadRows = 64;

/** Images, rows and columns whose places make a tile, or a thread's part of it. */
export type Box = readonly [images: number, rows: number, columns: number];

export interface CopiedConfiguration {
  readonly kernel: "copied";
  readonly box: Box;
  /** Channels of a tile of the result. */
  readonly columns: 64 | 128 | 192 | 256;
  readonly stages: number;
}

/** What of the sizes a kernel is made for. */
export interface CopiedForm {
  readonly direction: Direction;
  /** Whether there are three spatial axes. */
  readonly isDeep: boolean;
  /** Whether windows go two by two, along height and width. */
  readonly halved: readonly [boolean, boolean];
  readonly configuration: CopiedConfiguration;
}

/** The part of a tile that each of two threads has: half of its first axis that can be halved. */
export function halfBox([images, rows, columns]: Box): Box {
  if (images > 1) return [images / 2, rows, columns];
  return rows > 1 ? [images, rows / 2, columns] : [images, rows, columns / 2];
}

interface Sizes {
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
export function copiedDimensions(
  geometry: Geometry,
  { direction, halved }: CopiedForm,
): { readonly [name: string]: number } {
  const { batch, group, summed, made, read, places, taps } = numbersOf(geometry, direction);
  const entries: [string, number][] = [
    ...(Object.entries({ batch, group, summed, made }) as [string, number][]),
  ];
  for (const [axis, name] of axisNames.entries()) {
    const half = axis > 0 && halved[axis - 1] === true ? 2 : 1;
    entries.push([`read_${name}`, (read[axis] ?? 1) / half]);
    entries.push([`places_${name}`, places[axis] ?? 1], [`taps_${name}`, taps[axis] ?? 1]);
  }
  return Object.fromEntries(entries);
}

function sizesOf(geometry: Geometry, { direction, isDeep, halved }: CopiedForm): Sizes {
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
    taps: spatial("taps", taps),
  };
}

/** What of the geometry a kernel depends on. */
export function copiedText(geometry: Geometry, form: CopiedForm): string {
  const { group, summed, made, read, places, taps } = numbersOf(geometry, form.direction);
  const ones = [group, read[1], places[1], taps[1]].map((extent) => extent === 1);
  return JSON.stringify([form, ones, alignment(summed), alignment(made)]);
}

/** The array that is read, with the two of each pair as an axis of their own, or in front of the channels. */
function readSpec(
  { x: { dtype } }: ConvolutionProblem,
  { batch, group, summed, read: [depth, height, width] }: Sizes,
  { isDeep, halved }: CopiedForm,
): ArraySpec {
  const channels = multiplySizes(group, summed);
  return array(dtype, [
    batch,
    ...(isDeep ? [depth] : []),
    height,
    ...(halved[0] ? [2] : []),
    width,
    halved[1] ? multiplySizes(2, channels) : channels,
  ]);
}

/** How far a tap lies from the place that it belongs to. */
function shiftOf(
  direction: Direction,
  tap: Scalar<"i32">,
  { dilation, before }: WindowSteps,
): Scalar<"i32"> {
  const reach = dilation === 1 ? tap : tap.mul(dilation);
  return direction === "forward" ? reach.sub(before) : reach.mul(-1).add(before);
}

/** Where a tile's box begins. */
interface Corner {
  readonly image: Scalar<"i32">;
  readonly depth: Scalar<"i32">;
  readonly top: Scalar<"i32">;
  readonly left: Scalar<"i32">;
}

function readWindow(
  read: Ref,
  problem: ConvolutionProblem,
  { direction, isDeep, halved, configuration }: CopiedForm,
  corner: Corner,
  [z, y, x]: readonly [Scalar<"i32">, Scalar<"i32">, Scalar<"i32">],
  { from, all }: { readonly from: Scalar<"i32">; readonly all: Size },
): Ref {
  const [images, rows, columns] = configuration.box;
  const shift = (tap: Scalar<"i32">, axis: number) =>
    shiftOf(direction, tap, windowAlong(problem, axis));
  const [down, across] = [shift(y, 1), shift(x, 2)];
  const along = (start: Scalar<"i32">, by: Scalar<"i32">, isHalf: boolean, size: number): Slice =>
    slice(start.add(isHalf ? by.shr(1) : by), size);
  const channel = halved[1]
    ? across
        .and(1)
        .mul(all as never)
        .add(from)
    : from;
  return read.at(
    slice(corner.image, images),
    ...(isDeep ? [slice(corner.depth.add(shift(z, 0)), 1)] : []),
    along(corner.top, down, halved[0], rows),
    ...(halved[0] ? [slice(down.and(1), 1)] : []),
    along(corner.left, across, halved[1], columns),
    slice(channel, stepChannels),
  );
}

export function copiedKernel(
  problem: ConvolutionProblem,
  geometry: Geometry,
  form: CopiedForm,
): KernelDefinition {
  const { direction, isDeep, configuration } = form;
  const { box, columns, stages } = configuration;
  const isForward = direction === "forward";
  const sizes = sizesOf(geometry, form);
  const { batch, group, summed, made, places, taps } = sizes;
  const output = isForward ? problem.out.dtype : problem.x.dtype;
  const [ownImages, ...ownPlane] = halfBox(box);
  const ownShape = [ownImages, ...(isDeep ? [1] : []), ...ownPlane];
  const piece = (8 * 128) / output.bits;
  const outputs = isForward ? made : summed;
  const channels = isForward ? summed : made;
  const tapCount = multiplySizes(...taps);
  const [images, rows, width] = box;
  return kernel(
    {
      name: isForward ? "convolution_copied" : "convolution_backward_x_copied",
      grid: { worker: dim("workers") },
      threads: ["copy", "first", "second"],
      inputs: {
        read: readSpec(problem, sizes, form),
        // Taps in front, so that a step's weights are a matrix.
        weights: array(problem.w.dtype, [tapCount, multiplySizes(group, outputs), channels], {
          strides: [channels, multiplySizes(tapCount, channels), 1],
        }),
      },
      outputs: {
        result: array(output as DType<"bf16">, [
          batch,
          ...(isDeep ? [places[0]] : []),
          ...[places[1], places[2], multiplySizes(group, made)],
        ]),
      },
      scratch: { buffers: smem(output as DType<"bf16">, [2, 2, ...ownShape, piece]) },
    },
    ({ read, weights, result, buffers }) => {
      const zero = constant(dtypes.i32, 0);
      const cornerOf = (at: {
        readonly n: Scalar<"i32">;
        readonly z0: Scalar<"i32">;
        readonly y0: Scalar<"i32">;
        readonly x0: Scalar<"i32">;
      }): Corner => ({
        image: at.n.mul(images),
        depth: isDeep ? at.z0 : zero,
        top: at.y0.mul(rows),
        left: at.x0.mul(width),
      });
      warpSpecialized(
        {
          tiles: tiles({
            g: group,
            n: cdiv(batch, images),
            z0: places[0],
            y0: cdiv(places[1], rows),
            x0: cdiv(places[2], width),
            j: cdiv(made, columns),
          }),
          grid: { z: taps[0], y: taps[1], x: taps[2], step: cdiv(summed, stepChannels) },
          inputs: {
            left: (at) => {
              const from = at.g.mul(summed as never).add(at.step.mul(stepChannels));
              const all = multiplySizes(group, summed);
              return readWindow(
                ...([read, problem, form, cornerOf(at), [at.z, at.y, at.x]] as const),
                { from, all },
              ) as Ref<"bf16">;
            },
            right: ({ g, j, z, y, x, step }) => {
              const tap = z
                .mul(taps[1] as never)
                .add(y)
                .mul(taps[2] as never)
                .add(x);
              const along = slice(step.mul(stepChannels), stepChannels);
              const across = j.mul(columns);
              const from = g.mul(outputs as never);
              return (
                isForward
                  ? weights.at(slice(tap, 1), slice(from.add(across), columns), along)
                  : weights.at(
                      slice(tap, 1),
                      slice(from.add(step.mul(stepChannels)), stepChannels),
                      slice(across, columns),
                    )
              ) as Ref<"bf16">;
            },
          },
          depth: stages,
        },
        (tile) => {
          const product = tile.steps(
            accumulator(dtypes.f32, [threadRows, columns]),
            ({ left, right }, sum) => {
              const rowsOfTile = left
                .reshape([tilePlaces, stepChannels])
                .at(slice(tile.part.mul(threadRows), threadRows));
              const columnsOfTile = isForward
                ? right.reshape([columns, stepChannels]).transpose()
                : right.reshape([stepChannels, columns]);
              return wgmma(sum, rowsOfTile, columnsOfTile);
            },
          );
          const { image, depth, top, left } = partCorner(cornerOf(tile), box, tile.part);
          const channel = tile.g.mul(made as never).add(tile.j.mul(columns));
          storeThrough(
            buffers.at(tile.part),
            product.cast(output).reshape([...ownShape, columns]) as Tile<"bf16">,
            result,
            [image, ...(isDeep ? [depth] : []), top, left, channel],
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
