/**
 * The gradient of the weights on wgmma, with operands brought by the copy engine: one product of [outputs, places] and
 * [places, taps · channels]. Every 64 columns of the second are 64 channels at one tap, so a step of 64 places reads them as
 * boxes of x, each shifted by its own tap:
 *
 *   64 channels, 3 × 3     columns 0 … 63: tap (0, 0)   64 … 127: tap (0, 1)   …   512 … 575: tap (2, 2)
 *
 * Tiles are few and places are many, so all steps of all tiles are dealt evenly, and a tile may be the work of several
 * blocks. Each leaves its sums in a slot of its own, and a second launch adds them up in the order of the places:
 *
 *   2 tiles of 6 steps for 3 blocks     block 0: tile 0, 0 … 3     block 1: tile 0, 4 … 5 · tile 1, 0 … 1     block 2: tile 1, 2 … 5
 *
 * Where that would have blocks of different tiles fetch the same places from memory at different times, tiles have blocks of
 * their own instead, which are at the same places together:
 *
 *   2 tiles of 5 steps for 4 blocks     blocks 0 and 2: 0 … 2 of tile 0 and 1     blocks 1 and 3: 3 … 4 of them
 *
 * Boxes never reach past the rows and columns of the result: there dOut would be filled with zeros, but x need not be.
 */
import type { DType } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { multiplySizes } from "../../ir/size.ts";
import { ratesOf } from "../../ir/cost/index.ts";
import type { Size } from "../../ir/size.ts";
import {
  accumulator,
  all,
  array,
  barrier,
  cdiv,
  constant,
  copyAsync,
  dim,
  full,
  iota,
  kernel,
  loop,
  ring,
  scalar,
  setRegisters,
  slice,
  smem,
  warps,
  wgmma,
  when,
} from "../../lang/index.ts";
import type { Barrier, KernelDefinition, Ref, RingPosition, Scalar } from "../../lang/index.ts";
import type { Target } from "../../targets/target.ts";
import { followPrevious } from "../support/early-start.ts";
import { powerOfTwoFrom } from "../support/sizes.ts";
import { boxesAcross, exactBox } from "./boxes.ts";
import type { Box } from "./boxes.ts";
import {
  boxWindow,
  copiedSizes,
  efficiency,
  readSpec,
  stepChannels,
  tileColumns,
} from "./copied.ts";
import type { CopiedSizes, Corner, ReadForm, ReadSetting, TileColumns } from "./copied.ts";
import type { ConvolutionProblem, FiveAxes, Geometry, Triple } from "./problem.ts";

/** Places of a step. */
const stepPlaces = 64;
const threadRows = 64;

export interface CopiedWeightsConfiguration {
  readonly kernel: "copied";
  /** The places of a step. */
  readonly box: Box;
  /** Program threads that multiply, 64 outputs each. */
  readonly multipliers: 1 | 2;
  /** Columns of a tile, over taps and channels. */
  readonly columns: TileColumns;
  readonly stages: number;
}

/** Steps of all tiles, and how they are dealt to blocks. */
export interface Deal {
  readonly workers: number;
  /** Steps of a block. */
  readonly share: number;
  /** Steps that a tile counts for: its own, or more of them where blocks never go from one tile to the next. */
  readonly period: number;
  /** Blocks that may share a tile. */
  readonly slots: number;
}

/** Steps that it takes a block to leave the sums of a tile. */
const leavingSteps = 4;
/** Steps that are worth a block of their own. */
const leastSteps = 4;

/** Seconds of a step, and of memory: where blocks are at the same places together, and where they are not. */
interface DealSeconds {
  readonly step: number;
  readonly together: number;
  readonly apart: number;
}

/**
 * All steps dealt evenly, or every tile's steps among blocks of its own. The former leaves nobody idle, but blocks of different tiles
 * are then at different places at a time: what the cache does not hold is fetched from memory for each tile.
 */
function dealOf(tiles: number, steps: number, processors: number, seconds: DealSeconds): Deal {
  const workers = Math.min(processors, tiles * Math.max(1, Math.floor(steps / leastSteps)));
  const share = Math.ceil((tiles * steps) / workers);
  const even: Deal = {
    ...{ workers, share, period: steps },
    slots: Math.ceil((steps - 1) / share) + 1,
  };
  const own = Math.ceil(steps / Math.max(1, Math.floor(workers / tiles)));
  const blocks = Math.ceil(steps / own);
  const apart: Deal = { workers: tiles * blocks, share: own, period: own * blocks, slots: blocks };
  if (apart.workers > processors) return even;
  const evenly = Math.max((share + 2 * leavingSteps) * seconds.step, seconds.apart);
  const together = Math.max((own + leavingSteps) * seconds.step, seconds.together);
  return together <= evenly ? apart : even;
}

export function chooseCopiedWeights(
  { batch, outputs, groups, channels, taps, output, x, out }: Geometry,
  target: Target,
): { readonly configuration: CopiedWeightsConfiguration; readonly deal: Deal } {
  const box = exactBox(stepPlaces, output);
  const multipliers = outputs % 128 === 0 || (groups === 1 && outputs > 128) ? 2 : 1;
  const wide = taps[0] * taps[1] * taps[2] * channels;
  // A wider tile reads less for what it multiplies, but may overhang.
  const cost = (columns: TileColumns): number =>
    (Math.ceil(wide / columns) * columns) / efficiency[columns];
  const columns = tileColumns.reduce((best, each) => (cost(each) < cost(best) ? each : best));
  const rows = multipliers * threadRows;
  const stepBytes = 2 * stepPlaces * (rows + columns);
  const stages = Math.max(
    2,
    Math.min(8, Math.floor((target.sharedMemoryPerBlock - 2048) / stepBytes)),
  );
  const tiles = groups * Math.ceil(outputs / rows) * Math.ceil(wide / columns);
  const steps = boxesAcross(batch, output, box);
  const { l2, gmemBytes, products } = ratesOf(target);
  const count = ({ extents }: FiveAxes): number => extents.reduce((all, each) => all * each, 1);
  const bytes = 2 * (count(x) + count(out));
  const rate = (products.half * efficiency[columns]) / target.processors;
  return {
    configuration: { kernel: "copied", box, multipliers, columns, stages },
    deal: dealOf(tiles, steps, target.processors, {
      step: (2 * stepPlaces * rows * columns) / rate,
      together: bytes / gmemBytes,
      // The cache holds everything twice, once for each half of the processors.
      apart:
        (bytes + Math.max(0, 1 - l2 / 2 / bytes) * (tiles * steps * stepBytes - bytes)) / gmemBytes,
    }),
  };
}

interface Setting extends ReadSetting {
  readonly configuration: CopiedWeightsConfiguration;
  /** Tiles of a group down and across, and steps of a tile. */
  readonly down: Scalar<"i32">;
  readonly across: Scalar<"i32">;
  readonly steps: Scalar<"i32">;
  /** Steps of a block, and those that a tile counts for. */
  readonly share: Scalar<"i32">;
  readonly period: Scalar<"i32">;
}

/** Which outputs and columns a tile has. */
interface TilePlace {
  readonly group: Scalar<"i32">;
  /** The first output, counted through all groups. */
  readonly output: Scalar<"i32">;
  readonly column: Scalar<"i32">;
}

function tilePlace(
  { configuration, sizes, down, across }: Setting,
  tile: Scalar<"i32">,
): TilePlace {
  const { multipliers, columns } = configuration;
  const row = tile.div(across);
  const group = row.div(down);
  const within = row.sub(group.mul(down)).mul(multipliers * threadRows);
  return {
    group,
    output: group.mul(sizes.made as never).add(within),
    column: tile.sub(row.mul(across)).mul(columns),
  };
}

/** A quotient and what is left. */
function split(number: Scalar<"i32">, by: Size): readonly [Scalar<"i32">, Scalar<"i32">] {
  const above = number.div(by as never);
  return [above, number.sub(above.mul(by as never))];
}

/** Where 64 columns lie: a tap and the first of 64 channels. */
interface Chunk {
  readonly taps: Triple<Scalar<"i32">>;
  readonly channel: Scalar<"i32">;
}

function chunkOf({ sizes: { summed, taps } }: Setting, column: Scalar<"i32">): Chunk {
  const [tap, channel] = split(column, summed);
  const [overWidth, x] = split(tap, taps[2]);
  const [z, y] = split(overWidth, taps[1]);
  return { taps: [z, y, x], channel };
}

/** The box of a step. */
function cornerOf({ configuration, sizes, form }: Setting, step: Scalar<"i32">): Corner {
  const [images, rows, columns] = configuration.box;
  const [depth, height, width] = sizes.places;
  const [overWidth, x] = split(step, cdiv(width, columns));
  const [overHeight, y] = split(overWidth, cdiv(height, rows));
  const [n, z] = form.isDeep ? split(overHeight, depth) : [overHeight, overHeight.mul(0)];
  return { image: n.mul(images), depth: z, top: y.mul(rows), left: x.mul(columns) };
}

interface Work {
  readonly x: Ref;
  readonly dOut: Ref;
  readonly sums: Ref;
  readonly left: Ref;
  readonly right: Ref;
  readonly full: Barrier;
  readonly empty: Barrier;
}

/** The steps of a block, from the first to before the last, counted through all tiles. */
interface Own {
  readonly worker: Scalar<"i32">;
  readonly first: Scalar<"i32">;
  readonly end: Scalar<"i32">;
}

/** A tile of a block, and the steps of it that are the block's. */
interface Segment {
  readonly tile: Scalar<"i32">;
  readonly from: Scalar<"i32">;
  readonly count: Scalar<"i32">;
}

function overSegments(
  { steps, period, configuration }: Setting,
  { first, end }: Own,
  body: (segment: Segment, at: RingPosition) => RingPosition,
): void {
  const bounds = { from: first.div(period), to: end.add(period).sub(1).div(period) };
  loop({ ...bounds, carry: ring(configuration.stages).start() }, (tile, at) => {
    const from = first.sub(tile.mul(period)).maximum(0);
    const count = end.sub(tile.mul(period)).minimum(steps).sub(from);
    return body({ tile, from, count }, at);
  });
}

/** One warp keeps the ring full. */
function copySteps(setting: Setting, own: Own, { x, dOut, left, right, full, empty }: Work): void {
  const { configuration, sizes, form } = setting;
  const { box, multipliers, columns, stages } = configuration;
  const slots = ring(stages);
  overSegments(setting, own, ({ tile, from, count }, before) => {
    const place = tilePlace(setting, tile);
    const chunks = Array.from({ length: columns / stepChannels }, (_, index) =>
      chunkOf(setting, place.column.add(index * stepChannels)),
    );
    return loop({ to: count, carry: before }, (step, at) => {
      empty.at(at.slot).wait({ parity: at.phase.xor(1) });
      const landed = { barrier: full.at(at.slot) };
      const corner = cornerOf(setting, from.add(step));
      const source = dOut.at(
        slice(corner.image, box[0]),
        ...(form.isDeep ? [slice(corner.depth, 1)] : []),
        slice(corner.top, box[1]),
        slice(corner.left, box[2]),
        slice(place.output, multipliers * threadRows),
      );
      copyAsync(source, left.at(at.slot).reshape(source.shape), landed);
      for (const [index, { taps, channel }] of chunks.entries()) {
        const window = boxWindow(setting, x, {
          ...{ box, corner, taps },
          channel: place.group.mul(sizes.summed as never).add(channel),
        });
        const target = right.at(at.slot, all, slice(index * stepChannels, stepChannels));
        copyAsync(window, target.reshape(window.shape), landed);
      }
      return slots.next(at);
    });
  });
}

/** A thread multiplies its 64 outputs, and leaves the sums of each tile in the slot that is this block's. */
function multiplySteps(setting: Setting, own: Own, work: Work, index: number): void {
  const { configuration, period, share } = setting;
  const { columns, stages } = configuration;
  const { left, right, full, empty, sums } = work;
  const slots = ring(stages);
  const mine = slice(index * threadRows, threadRows);
  overSegments(setting, own, ({ tile, count }, before) => {
    const start = accumulator(dtypes.f32, [threadRows, columns]);
    const carry = { sum: start, at: before, last: before.slot };
    const done = loop({ to: count, carry }, (step, { sum, at, last }) => {
      full.at(at.slot).wait({ parity: at.phase });
      const factor = left.at(at.slot, all, mine).transpose();
      const running = wgmma(sum, factor, right.at(at.slot)).waitPending(1);
      // The product of the step before is over, so its tiles may be replaced.
      when(step.gt(0), () => {
        empty.at(last).arrive();
      });
      return { sum: running, at: slots.next(at), last: at.slot };
    });
    const product = done.sum.wait();
    empty.at(done.last).arrive();
    const place = tilePlace(setting, tile);
    const slot = own.worker.sub(tile.mul(period).div(share));
    const down = slice(place.output.add(index * threadRows), threadRows);
    sums.at(slot, down, slice(place.column, columns)).store(product);
    return done.at;
  });
}

export function copiedWeightsKernel(
  problem: ConvolutionProblem,
  geometry: Geometry,
  form: ReadForm,
  configuration: CopiedWeightsConfiguration,
): KernelDefinition {
  const { multipliers, columns, stages } = configuration;
  const sizes = copiedSizes(geometry, form);
  const { batch, group, summed, made, places, taps } = sizes;
  const rows = multipliers * threadRows;
  const dtype = problem.x.dtype as DType<"bf16">;
  const outputs = multiplySizes(group, made);
  const wide = multiplySizes(...taps, summed);
  return kernel(
    {
      name: "convolution_backward_w_copied",
      grid: { worker: dim("workers") },
      threads: multipliers === 2 ? ["copy", "one", "two"] : ["copy", "one"],
      inputs: {
        x: readSpec(problem, sizes, form),
        dOut: array(dtype, [
          batch,
          ...(form.isDeep ? [places[0]] : []),
          ...[places[1], places[2], outputs],
        ]),
        share: scalar(dtypes.i32),
        period: scalar(dtypes.i32),
      },
      // Not every tile has as many blocks as there are slots.
      inouts: { sums: array(dtypes.f32, [dim("slots"), outputs, wide]) },
      scratch: {
        left: smem(dtype, [stages, stepPlaces, rows]),
        right: smem(dtype, [stages, stepPlaces, columns]),
        full: barrier({ count: stages, arrivals: 1 + columns / stepChannels }),
        empty: barrier({ count: stages, arrivals: multipliers }),
      },
    },
    (argument) => {
      const { worker, share, period } = argument;
      followPrevious();
      const work = argument as unknown as Work;
      const zero = constant(dtypes.i32, 0);
      const steps = zero.add(boxesOf(configuration.box, sizes) as never);
      const setting: Setting = {
        ...{ problem, form, sizes, configuration, share, period, steps },
        down: zero.add(cdiv(made, rows) as never),
        across: zero.add(cdiv(wide, columns) as never),
      };
      const total = setting.down
        .mul(setting.across)
        .mul(group as never)
        .mul(period);
      const first = worker.mul(share);
      const own: Own = { worker, first, end: first.add(share).minimum(total) };
      const named = argument as unknown as { readonly [name: string]: (body: () => void) => void };
      named["copy"]?.(() => {
        if (multipliers === 2) setRegisters(40);
        warps((warp) => {
          when(warp.eq(0), () => {
            copySteps(setting, own, work);
          });
        });
      });
      for (const [index, name] of ["one", "two"].slice(0, multipliers).entries())
        named[name]?.(() => {
          if (multipliers === 2) setRegisters(232);
          multiplySteps(setting, own, work, index);
        });
    },
  ) as unknown as KernelDefinition;
}

/** Steps of a tile. */
function boxesOf([images, rows, columns]: Box, { batch, places }: CopiedSizes): Size {
  const [depth, height, width] = places;
  return multiplySizes(cdiv(batch, images), depth, cdiv(height, rows), cdiv(width, columns));
}

/** Columns of a block that adds up, and elements of its lanes in all. */
const [sumColumns, sumElements] = [64, 4096];

/** Slots that a block reads at once, and outputs: all loads of a lane are under way together. */
function sumShape(slots: number): readonly [slots: number, outputs: number] {
  const together = Math.min(sumElements / sumColumns, Math.max(8, powerOfTwoFrom(slots)));
  return [together, sumElements / sumColumns / together];
}

export function sumSlotsText(slots: number): string {
  return `${sumShape(slots)[0]} slots at once`;
}

/** Adds up the sums of each tile's blocks, in one order. */
export function sumSlotsKernel(
  dtype: DType,
  { multipliers, columns }: CopiedWeightsConfiguration,
  slotCount: number,
): KernelDefinition {
  const [outputs, wide, slots] = [dim("outputs"), dim("wide", { multipleOf: 64 }), dim("slots")];
  const rows = multipliers * threadRows;
  const [together, sumRows] = sumShape(slotCount);
  return kernel(
    {
      name: "convolution_sum_slots",
      grid: { j: cdiv(wide, sumColumns), i: cdiv(outputs, sumRows) },
      inputs: {
        sums: array(dtypes.f32, [slots, outputs, wide]),
        period: scalar(dtypes.i32),
        share: scalar(dtypes.i32),
        perGroup: scalar(dtypes.i32),
      },
      outputs: { out: array(dtype, [outputs, wide]) },
    },
    ({ i, j, sums, period, share, perGroup, out }) => {
      followPrevious();
      const [top, left] = [i.mul(sumRows), j.mul(sumColumns)];
      const across = constant(dtypes.i32, 0).add(cdiv(wide, columns));
      const group = top.div(perGroup);
      const down = perGroup.add(rows - 1).div(rows);
      const row = group.mul(down).add(top.sub(group.mul(perGroup)).div(rows));
      const begin = row.mul(across).add(left.div(columns)).mul(period);
      const count = begin.add(period).sub(1).div(share).sub(begin.div(share)).add(1);
      const here = [slice(top, sumRows), slice(left, sumColumns)] as const;
      const numbers = iota(dtypes.i32, [together, 1, 1], 0);
      const start = full(dtypes.f32, [sumRows, sumColumns], 0);
      const sum = loop({ to: count, step: together, carry: start }, (slot, before) => {
        const where = numbers.add(slot).lt(count);
        return before.add(
          sums
            .at(slice(slot, together), ...here)
            .load({ where })
            .sum(0),
        );
      });
      out.at(...here).store(sum.cast(dtype));
    },
  ) as unknown as KernelDefinition;
}
