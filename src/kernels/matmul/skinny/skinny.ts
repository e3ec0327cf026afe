/**
 * The product of few rows with weights in few bits, which ought to take as long as reading the weights. Every weight is
 * used for up to 64 rows only, so what counts is how many instructions turn it into a number:
 *
 *   copy        fill 0  fill 1  fill 2 …  wait empty 0, fill 0 …       one thread, a warp for each turn, for all sixteen warps
 *   warp        wait full 0, load, arrive empty 0, convert, multiply, scale …    each on its own, without meeting the others
 *
 * A warp has 16 to 64 columns. Stored numbers become bf16 or f16 exactly, tensor cores sum them over a group along k
 * (`mma.sync`, which wants no warpgroup to meet), and the sums of the group are multiplied by its scale in f32: one
 * multiplication for 128 weights instead of one for each of them. Warps of blocks of 64 columns, and of more than 16 rows, multiply by fours (`warpgroup.ts`).
 *
 * Blocks have a part of k each, so that all processors are busy; what parts come to is added by `split-k-reduce.ts`. Where blocks of 64 columns are as many as there are
 * processors, they have all of k instead.
 */
import {
  tensor,
  barrier,
  cdiv,
  constant,
  copyAsync,
  dim,
  kernel,
  launchNextKernel,
  loop,
  prefetch,
  setRegisters,
  slice,
  smem,
  threadIndex,
  waitForPreviousKernel,
  warps,
  when,
} from "../../../lang/index.ts";
import type { KernelDefinition, Ref, Scalar, Tile } from "../../../lang/index.ts";
import { dtypes } from "../../../formats/dtype.ts";
import type { Dimension } from "../../../ir/size.ts";
import type { Location } from "../../../support/location.ts";
import { threadRows } from "../configuration.ts";
import type { SkinnyConfiguration, ProductSizes } from "../configuration.ts";
import { alignedDimensions } from "../dimensions.ts";
import { finished, inputSpecs } from "../epilogue/epilogue.ts";
import { outputSpecs } from "../epilogue/outputs.ts";
import type { PieceShape } from "../epilogue/types.ts";
import type { MatmulProblem } from "../problem.ts";
import { copyScales, scaleCopies, scaleSlots, scaleSources, travellingScales } from "./scales.ts";
import type { ScaleSource } from "./scales.ts";
import { addSlices, following, stepsOfSlice, pieceColumns, sumsOfShare } from "./warp-share.ts";
import type { Arguments, Place, Share } from "./warp-share.ts";
import { sumsTogether } from "./warpgroup.ts";
import { prologueSpecs, storedDepth } from "../prologue/prologue.ts";
import { packedUnit } from "../weights/quantized.ts";
import type { QuantizedSpec } from "../weights/quantized.ts";

/** Threads that multiply, and warps of each. */
const [consumers, warpsOfThread] = [4, 4];
/**
 * Registers of a lane: the block starts with 96 in each of its 640. 64 rows want more to multiply: 62.2 µs instead of 63.5 with 104, of 8192 × 28672 in i4.
 * Others copy lines of scales and zero points, which 32 do not suffice for.
 */
const registers = { copy: 56, multiply: 104 };
const registersOfMost = { copy: 32, multiply: 112 };
/** Rows of a block at most. */
export const mostRows = 64;
/**
 * Steps of 256 columns whose weights a block asks for before it may touch memory. With one row, 8192 × 28672 of i4 took 31.0 µs, 31.4 where nobody asked, and
 * 31.7 where eight steps were asked for, which cost those of 8 bits 0.6 µs with one row and 1.0 µs with 16.
 */
const askedSteps = 1;
/** Rows that a warp multiplies by itself where weights have 4 bits. */
const mostAlone = 16;
/** Rows of a box of TMA. */
const mostCopied = 256;

/** Columns of a block. */
export function skinnyColumns({
  columns,
  sliceK,
}: Pick<SkinnyConfiguration, "columns" | "sliceK">): number {
  return ((consumers * warpsOfThread) / sliceK) * columns;
}

/** Elements along k of a step: those that blocks of 64 columns copy are lines of the cache. */
export function stepDepth(
  { dtype }: Pick<QuantizedSpec, "dtype">,
  configuration: Pick<SkinnyConfiguration, "columns" | "sliceK">,
): number {
  return skinnyColumns(configuration) === threadRows ? (packedUnit * 8) / dtype.bits : packedUnit;
}

/** Columns of each box of weights. */
function boxColumns(configuration: SkinnyConfiguration): number {
  return Math.min(mostCopied, skinnyColumns(configuration));
}

/**
 * Of a step of 256 each column's weights of 4 bits are a line of the cache, to be copied as one. Lanes read half of it at once, for which two
 * boxes of half lines would be chosen: 8192 × 28672 then took 34.2 µs with one row instead of 33.2.
 */
function storedLayout(depth: number): { readonly layout?: string } {
  return depth === packedUnit ? {} : { layout: "shared(swizzle 128)" };
}

/** In which pieces a result is finished that is not split along k. */
export function skinnyPiece(
  { weights }: Pick<MatmulProblem, "weights">,
  configuration: SkinnyConfiguration,
): PieceShape {
  const together = weights !== undefined && areTogether(weights, configuration);
  const columns = together ? threadRows : pieceColumns;
  return { rows: configuration.rows, columns };
}

/**
 * Whether four warps multiply together (`warpgroup.ts`): those of blocks of 64 columns, and with more than 16 rows those of 4 bits. In blocks of 256 columns, 32 rows of 8192 ×
 * 28672 then took 46.1 µs in i4 instead of 53.3, but in FP8 67.0 instead of 64.5.
 */
export function areTogether(
  { dtype }: Pick<QuantizedSpec, "dtype">,
  configuration: Pick<SkinnyConfiguration, "rows" | "columns" | "sliceK">,
): boolean {
  const sharesColumns = skinnyColumns(configuration) === threadRows;
  return sharesColumns || (dtype.bits === 4 && configuration.rows > mostAlone);
}

export function skinnyKernel(
  problem: MatmulProblem,
  configuration: SkinnyConfiguration,
  sizes: ProductSizes,
  location: Location,
): KernelDefinition {
  const { weights } = problem;
  const prologue = problem.prologues.b;
  if (weights === undefined || prologue === undefined) throw new Error("b is not quantised");
  const dimensions = alignedDimensions(sizes);
  const { m, n, k } = dimensions;
  const { rows, stages, sliceK, splitK } = configuration;
  const piece = skinnyPiece(problem, configuration);
  const takers = takersOf(weights, configuration);
  const depth = stepDepth(weights, configuration);
  const units = depth / packedUnit;
  const width = skinnyColumns(configuration);
  const boxes = width / boxColumns(configuration);
  const layers = splitK === 1 ? [] : [dim("layers")];
  const travelling = travellingScales(prologue, sizes.n);
  // Of each box, with its scales.
  const copies = travelling.reduce((sum, input) => sum + scaleCopies(input, units), 1);
  return kernel(
    {
      name: "matmul_skinny",
      grid: { layer: layers[0] ?? 1, i: cdiv(m, rows), j: cdiv(n, width) },
      threads: ["copy", "first", "second", "third", "fourth"],
      inputs: {
        a: tensor(problem.a.dtype, [m, k]),
        b: tensor(weights.dtype, [n, storedDepth(prologue, k)]),
        ...prologueSpecs(prologue, dimensions),
        ...(splitK === 1 ? inputSpecs(problem, dimensions, location) : {}),
      },
      outputs: {
        out: tensor(splitK === 1 ? problem.out.dtype : problem.accumulator, [...layers, m, n]),
        ...(splitK === 1 && outputSpecs(problem, dimensions, piece)),
      },
      scratch: {
        stored: smem(weights.dtype, [stages, width, depth], storedLayout(depth)),
        activations: smem(problem.a.dtype, [stages, rows, depth]),
        ...scaleSlots(travelling, stages, units, width),
        full: barrier({ count: stages, arrivals: 1 + boxes * copies }),
        empty: barrier({ count: stages, arrivals: takers }),
        ...(sliceK > 1 && {
          parts: smem(dtypes.f32, [sliceK - 1, width / piece.columns, rows, piece.columns]),
          added: barrier({ count: takers, arrivals: sliceK - 1 }),
        }),
      },
    },
    (given) => {
      const argument = given as unknown as Arguments;
      const place = placeOf(argument, configuration, k, depth);
      launchNextKernel();
      askAhead(argument, place, configuration, sizes, depth);
      waitForPreviousKernel();
      const scales = scaleSources(prologue, travelling, argument);
      const own = rows === mostRows ? registersOfMost : registers;
      when(
        threadIndex().eq(0),
        () => {
          setRegisters(own.copy);
          copySteps(argument, place, configuration, sizes, scales, depth);
        },
        () => {
          setRegisters(own.multiply);
          multiplySteps(argument, place, configuration, weights, scales, depth, (sums, at) => {
            const placed = { batch: undefined, top: place.top, ...at, ...piece };
            const done =
              splitK === 1
                ? finished(sums, placed, problem, argument as never, location, dimensions)
                : sums;
            const target: Ref = splitK === 1 ? argument.out : argument.out.at(argument.layer);
            target.at(slice(placed.top, rows), slice(placed.left, piece.columns)).store(done);
          });
        },
      );
    },
  ) as unknown as KernelDefinition;
}

/**
 * Asks for the weights of the first steps while the kernel before still runs, whose last blocks leave memory idle. That brings them into the
 * cache and changes nothing, so it need not wait: whatever that kernel may still write of them is written to the cache, too.
 */
function askAhead(
  { b }: Pick<Arguments, "b">,
  { left, from }: Place,
  configuration: SkinnyConfiguration,
  { k }: ProductSizes,
  depth: number,
): void {
  const { splitK } = configuration;
  const steps = Math.ceil(Math.ceil(k / depth) / splitK);
  const width = skinnyColumns(configuration);
  const asked = Math.min(steps, (askedSteps * mostCopied * packedUnit) / (width * depth));
  const along = slice(from.mul(depth), asked * depth);
  const columns = width / consumers;
  when(threadIndex().gt(0), () => {
    const own = threadIndex().sub(1).maximum(0).mul(columns);
    prefetch(b.at(slice(left.add(own), columns), along));
  });
}

/** Those who have a turn at the same time, with columns of their own: warps, or four of them. */
function takersOf(weights: QuantizedSpec, configuration: SkinnyConfiguration): number {
  const warpsOfSlice = (consumers * warpsOfThread) / configuration.sliceK;
  return areTogether(weights, configuration) ? warpsOfSlice / warpsOfThread : warpsOfSlice;
}

/** Each warp, or four of them together, multiplies its columns; what they come to is given to `finish` piece by piece. */
function multiplySteps(
  argument: Arguments,
  place: Place,
  configuration: SkinnyConfiguration,
  weights: QuantizedSpec,
  scales: readonly ScaleSource[],
  depth: number,
  finish: (sums: Tile, at: { readonly left: Scalar<"i32"> }) => void,
): void {
  const groups = takersOf(weights, configuration);
  const multiply = (number: Scalar<"i32">, sumsOf: (share: Share) => readonly Tile[]): void => {
    const [group, turn] = [number.rem(groups), number.div(groups)];
    const first = group.mul(skinnyColumns(configuration) / groups);
    const left = place.left.add(first);
    const share = {
      ...place,
      ...{ left, first, group, turn, configuration, depth, weights, scales, argument },
    };
    addSlices(share, sumsOf(share), (sums, from) => {
      finish(sums, { left: left.add(from) });
    });
  };
  const thread = threadIndex().sub(1).maximum(0);
  if (areTogether(weights, configuration)) multiply(thread, (share) => [sumsTogether(share)]);
  else
    warps((warp) => {
      multiply(thread.mul(warpsOfThread).add(warp), sumsOfShare);
    });
}

function placeOf(
  { layer, i, j }: Arguments,
  configuration: SkinnyConfiguration,
  k: Dimension,
  depth: number,
): Place {
  const { rows, splitK } = configuration;
  const all = constant(dtypes.i32, 0).add(cdiv(k, depth));
  const each = splitK === 1 ? all : all.add(splitK - 1).div(splitK);
  const from = layer.mul(each).minimum(all);
  return {
    ...{ top: i.mul(rows), left: j.mul(skinnyColumns(configuration)) },
    ...{ from, steps: each.minimum(all.sub(from)) },
  };
}

/**
 * As many warps as there are turns keep the ring full, and take turns, too: one took 79.2 µs for 16 rows of 8192 × 28672 in i8 by steps of 64 columns, of
 * which there are four times as many as of 256, where four took 58.9.
 */
function copySteps(
  argument: Arguments,
  { top, left, from, steps }: Place,
  configuration: SkinnyConfiguration,
  { m }: ProductSizes,
  scales: readonly ScaleSource[],
  depth: number,
): void {
  const { rows, stages, sliceK } = configuration;
  const { a, b, stored, activations, full, empty } = argument;
  const width = skinnyColumns(configuration);
  const boxed = boxColumns(configuration);
  // Lines of weights that nobody reads again leave the cache first: 8192 × 28672 of i4 took 30.7 µs instead of 31.3 with 8 rows, FP8 55.7 instead of 56.7 with
  // one. Blocks of 256 columns take lines of 4 bits by halves, and took 46.8 instead of 46.1 with 32 rows.
  const once = m <= rows && width === threadRows ? ({ evict: "first" } as const) : {};
  warps((warp) => {
    when(warp.lt(sliceK), () => {
      const zero = constant(dtypes.i32, 0);
      loop({ to: stepsOfSlice(steps, sliceK, warp), carry: warp }, (round, slot) => {
        const step = round.mul(sliceK).add(warp);
        when(step.ge(stages), () => {
          empty.at(slot).wait();
        });
        const start = from.add(step).mul(depth);
        const along = slice(start, depth);
        const landed = { barrier: full.at(slot) };
        copyAsync(a.at(slice(top, rows), along), activations.at(slot), landed);
        for (let box = 0; box < width; box += boxed) {
          const window = b.at(slice(left.add(box), boxed), along);
          copyAsync(window, stored.at(slot, slice(box, boxed)), { ...landed, ...once });
          const part = { first: zero.add(box), left: left.add(box), count: boxed };
          copyScales(scales, depth / packedUnit, { ...part, along: start, slot }, landed);
        }
        return following(slot, sliceK, stages, warp);
      });
    });
  });
}
