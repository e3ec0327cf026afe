/**
 * The gradient of the weights as an implicit GEMM on wgmma, with operands loaded by TMA: one product of [outputs, places] and
 * [places, taps · channels]. Every 64 columns of the second are 64 channels at one tap, so a step of 64 places reads them as
 * boxes of x, each shifted by its own tap:
 *
 *   64 channels, 3 × 3     columns 0 … 63: tap (0, 0)   64 … 127: tap (0, 1)   …   512 … 575: tap (2, 2)
 *
 * Steps are assigned to blocks, and a tile may be shared by several of them, as in stream-K (`weight-gradient-tiles.ts`). Each block stores its partial sums,
 * and a second launch adds them up in order. A block with a whole tile rounds its sums itself.
 *
 * Boxes never exceed the rows and columns of the result: dOut would be zero there, but x need not be.
 */
import type { DType } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { multiplySizes } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import {
  accumulator,
  all,
  tensor,
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
import { followPrevious } from "../support/programmatic-dependent-launch.ts";
import { powerOfTwoFrom } from "../support/sizes.ts";
import type { Box } from "./tma-boxes.ts";
import { boxWindow, tmaSizes, readSpec, stepChannels } from "./tma-implicit-gemm.ts";
import type { TmaSizes, Corner, ReadForm, ReadSetting } from "./tma-implicit-gemm.ts";
import type { ConvolutionProblem, Geometry, Triple } from "./problem.ts";
import { sharersOf, stepPositions, threadRows } from "./weight-gradient-tiles.ts";
import type { TmaWeightsConfiguration } from "./weight-gradient-tiles.ts";

interface Setting extends ReadSetting {
  readonly configuration: TmaWeightsConfiguration;
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
  /** The first of the columns that it has of a shared run. */
  readonly shared: Scalar<"i32">;
}

function tilePlace(
  { configuration, sizes, down, across }: Setting,
  tile: Scalar<"i32">,
): TilePlace {
  const { consumers, columns, shared } = configuration;
  const row = tile.div(across);
  const group = row.div(down);
  const within = row.sub(group.mul(down)).mul(consumers * threadRows);
  const number = tile.sub(row.mul(across));
  const sharers = sharersOf(configuration);
  const [before, index] = split(number, sharers);
  const first = before.mul(sharers * (columns + shared));
  return {
    group,
    output: group.mul(sizes.made).add(within),
    column: first.add(index.mul(columns)),
    shared: first.add(index.mul(shared).add(sharers * columns)),
  };
}

/** A quotient and what is left. */
function split(number: Scalar<"i32">, by: Size): readonly [Scalar<"i32">, Scalar<"i32">] {
  const above = number.div(by);
  return [above, number.sub(above.mul(by))];
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
  /** Columns of a shared run, where tiles have some. */
  readonly besides: Ref;
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
function copySteps(setting: Setting, own: Own, work: Work): void {
  const { x, dOut, left, right, full, empty } = work;
  const { configuration, sizes, form } = setting;
  const { box, consumers, columns, shared, stages } = configuration;
  const positions = ring(stages);
  overSegments(setting, own, ({ tile, from, count }, before) => {
    const place = tilePlace(setting, tile);
    const chunks = Array.from({ length: columns / stepChannels }, (_, index) =>
      chunkOf(setting, place.column.add(index * stepChannels)),
    );
    const last = chunkOf(setting, place.shared);
    return loop({ to: count, carry: before }, (step, at) => {
      empty.at(at.slot).wait({ parity: at.phase.xor(1) });
      const landed = { barrier: full.at(at.slot) };
      const corner = cornerOf(setting, from.add(step));
      const source = dOut.at(
        slice(corner.image, box[0]),
        ...(form.isDeep ? [slice(corner.depth, 1)] : []),
        slice(corner.top, box[1]),
        slice(corner.left, box[2]),
        slice(place.output, consumers * threadRows),
      );
      copyAsync(source, left.at(at.slot).reshape(source.shape), landed);
      for (const [index, { taps, channel }] of chunks.entries()) {
        const window = boxWindow(setting, x, {
          ...{ box, corner, taps },
          channel: place.group.mul(sizes.summed).add(channel),
        });
        const target = right.at(at.slot, all, slice(index * stepChannels, stepChannels));
        copyAsync(window, target.reshape(window.shape), landed);
      }
      if (shared > 0) {
        const window = boxWindow(setting, x, {
          ...{ box, corner, taps: last.taps, channels: shared },
          channel: place.group.mul(sizes.summed).add(last.channel),
        });
        copyAsync(window, work.besides.at(at.slot).reshape(window.shape), landed);
      }
      return positions.next(at);
    });
  });
}

/** A thread multiplies its 64 outputs, and leaves the sums of each tile in the slot that is this block's. */
function multiplySteps(setting: Setting, own: Own, work: Work, index: number): void {
  const { configuration, period, share } = setting;
  const { columns, shared, isWhole, stages } = configuration;
  const { left, right, full, empty, sums } = work;
  const positions = ring(stages);
  const mine = slice(index * threadRows, threadRows);
  overSegments(setting, own, ({ tile, count }, before) => {
    const start = accumulator(dtypes.f32, [threadRows, columns]);
    const carry = {
      ...{ sum: start, at: before, last: before.slot },
      ...(shared > 0 && { other: accumulator(dtypes.f32, [threadRows, shared]) }),
    };
    const done = loop({ to: count, carry }, (step, { sum, at, last, other }) => {
      full.at(at.slot).wait({ parity: at.phase });
      const factor = left.at(at.slot, all, mine).transpose();
      const issued = wgmma(sum, factor, right.at(at.slot));
      const beside = other && wgmma(other, factor, work.besides.at(at.slot));
      const pending = beside === undefined ? 1 : 2;
      const running = issued.waitPending(pending);
      // The products of the step before are over, so its tiles may be replaced.
      when(step.gt(0), () => {
        empty.at(last).arrive();
      });
      return {
        ...{ sum: running, at: positions.next(at), last: at.slot },
        ...(beside && { other: beside.waitPending(pending) }),
      };
    });
    const product = done.sum.wait();
    const beside = done.other?.wait();
    empty.at(done.last).arrive();
    const place = tilePlace(setting, tile);
    const slot = own.worker.sub(tile.mul(period).div(share));
    const down = slice(place.output.add(index * threadRows), threadRows);
    const store = (sum: typeof product, column: Scalar<"i32">, width: number): void => {
      const across = slice(column, width);
      if (isWhole) sums.at(down, across).store(sum.cast(setting.problem.w.dtype));
      else sums.at(slot, down, across).store(sum);
    };
    store(product, place.column, columns);
    if (beside !== undefined) store(beside, place.shared, shared);
    return done.at;
  });
}

export function tmaWeightsKernel(
  problem: ConvolutionProblem,
  geometry: Geometry,
  form: ReadForm,
  configuration: TmaWeightsConfiguration,
): KernelDefinition {
  const { consumers, columns, shared, isWhole, stages } = configuration;
  const sizes = tmaSizes(geometry, form);
  const { batch, group, summed, made, places, taps } = sizes;
  const rows = consumers * threadRows;
  const dtype = problem.x.dtype as DType<"bf16">;
  const outputs = multiplySizes(group, made);
  const wide = multiplySizes(...taps, summed);
  return kernel(
    {
      name: "convolution_backward_w_copied",
      grid: { worker: dim("workers") },
      threads: consumers === 2 ? ["copy", "one", "two"] : ["copy", "one"],
      inputs: {
        x: readSpec(problem, sizes, form),
        dOut: tensor(dtype, [
          batch,
          ...(form.isDeep ? [places[0]] : []),
          ...[places[1], places[2], outputs],
        ]),
        share: scalar(dtypes.i32),
        period: scalar(dtypes.i32),
      },
      // Not every tile has as many blocks as there are partials.
      ...(isWhole
        ? { outputs: { sums: tensor(problem.w.dtype, [outputs, wide]) } }
        : { inouts: { sums: tensor(dtypes.f32, [dim("partials"), outputs, wide]) } }),
      scratch: {
        left: smem(dtype, [stages, stepPositions, rows]),
        right: smem(dtype, [stages, stepPositions, columns]),
        ...(shared > 0 && { besides: smem(dtype, [stages, stepPositions, shared]) }),
        full: barrier({
          count: stages,
          arrivals: 1 + columns / stepChannels + (shared > 0 ? 1 : 0),
        }),
        empty: barrier({ count: stages, arrivals: consumers }),
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
        across: zero.add(cdiv(wide, columns + shared) as never),
      };
      const total = setting.down
        .mul(setting.across)
        .mul(group as never)
        .mul(period);
      const first = worker.mul(share);
      const own: Own = { worker, first, end: first.add(share).minimum(total) };
      const named = argument as unknown as { readonly [name: string]: (body: () => void) => void };
      named["copy"]?.(() => {
        if (consumers === 2) setRegisters(40);
        warps((warp) => {
          when(warp.eq(0), () => {
            copySteps(setting, own, work);
          });
        });
      });
      for (const [index, name] of ["one", "two"].slice(0, consumers).entries())
        named[name]?.(() => {
          if (consumers === 2) setRegisters(232);
          multiplySteps(setting, own, work, index);
        });
    },
  ) as unknown as KernelDefinition;
}

/** Steps of a tile. */
function boxesOf([images, rows, columns]: Box, { batch, places }: TmaSizes): Size {
  const [depth, height, width] = places;
  return multiplySizes(cdiv(batch, images), depth, cdiv(height, rows), cdiv(width, columns));
}

/** Columns of a block that adds up, and elements of its threads in all. */
const [sumColumns, sumElements] = [64, 4096];

/** Partial sums that a block reads at once, and outputs: all loads of a thread are under way together. */
function sumShape(partials: number): readonly [partials: number, outputs: number] {
  const together = Math.min(sumElements / sumColumns, Math.max(8, powerOfTwoFrom(partials)));
  return [together, sumElements / sumColumns / together];
}

export function sumPartialsText(partials: number): string {
  return `${sumShape(partials)[0]} partials at once`;
}

/** Adds up the sums of each tile's blocks, in one order. */
export function sumPartialsKernel(
  dtype: DType,
  { consumers, columns, shared }: TmaWeightsConfiguration,
  slotCount: number,
): KernelDefinition {
  const [outputs, wide, partials] = [
    dim("outputs"),
    dim("wide", { multipleOf: 64 }),
    dim("partials"),
  ];
  const rows = consumers * threadRows;
  const [together, sumRows] = sumShape(slotCount);
  return kernel(
    {
      name: "convolution_sum_partials",
      grid: { j: cdiv(wide, sumColumns), i: cdiv(outputs, sumRows) },
      inputs: {
        sums: tensor(dtypes.f32, [partials, outputs, wide]),
        period: scalar(dtypes.i32),
        share: scalar(dtypes.i32),
        perGroup: scalar(dtypes.i32),
      },
      outputs: { out: tensor(dtype, [outputs, wide]) },
    },
    ({ i, j, sums, period, share, perGroup, out }) => {
      followPrevious();
      const [top, left] = [i.mul(sumRows), j.mul(sumColumns)];
      // Tiles that share a run have as many blocks as any other, so that it counts as one tile's.
      const across = constant(dtypes.i32, 0).add(cdiv(wide, columns + shared));
      const group = top.div(perGroup);
      const down = perGroup.add(rows - 1).div(rows);
      const row = group.mul(down).add(top.sub(group.mul(perGroup)).div(rows));
      const begin = row
        .mul(across)
        .add(left.div(columns + shared))
        .mul(period);
      const count = begin.add(period).sub(1).div(share).sub(begin.div(share)).add(1);
      const here = [slice(top, sumRows), slice(left, sumColumns)] as const;
      const numbers = iota(dtypes.i32, [together, 1, 1], { axis: 0 });
      const start = full(dtypes.f32, [sumRows, sumColumns], 0);
      const sum = loop({ to: count, step: together, carry: start }, (slot, before) => {
        const where = numbers.add(slot).lt(count);
        return before.add(
          sums
            .at(slice(slot, together), ...here)
            .load({ where })
            .sum({ axis: 0 }),
        );
      });
      out.at(...here).store(sum.cast(dtype));
    },
  );
}
