/**
 * The product of few rows with weights in few bits, which ought to take as long as reading the weights. Every weight is
 * used for 16 or 32 rows only, so what counts is how many instructions turn it into a number:
 *
 *   copy        fill 0  fill 1  fill 2 …  wait empty 0, fill 0 …       one thread, for all sixteen warps
 *   warp        wait full 0, load, arrive empty 0, convert, multiply, scale …    each on its own, without meeting the others
 *
 * A warp has 16 or 32 columns. Stored numbers become bf16 or f16 exactly, tensor cores sum them over a group along k
 * (`mma.sync`, which wants no warpgroup to meet), and the sums of the group are multiplied by its scale in f32: one
 * multiplication for 128 weights instead of one for each of them.
 *
 * Blocks have a part of k each, so that all processors are busy; what parts come to is added by `sum-parts.ts`.
 */
import {
  array,
  barrier,
  cdiv,
  commitShared,
  constant,
  copyAsync,
  dim,
  dot,
  full,
  kernel,
  launchNextKernel,
  loop,
  setRegisters,
  slice,
  smem,
  threadIndex,
  waitForPreviousKernel,
  warps,
  when,
  zeros,
} from "../../lang/index.ts";
import type { Barrier, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { Dimension } from "../../ir/size.ts";
import type { Location } from "../../support/location.ts";
import type { NarrowConfiguration, ProductSizes } from "./configuration.ts";
import { alignedDimensions } from "./dimensions.ts";
import { finished, inputSpecs } from "./epilogue.ts";
import { outputSpecs } from "./outputs.ts";
import type { MatmulProblem } from "./problem.ts";
import {
  scalesFromMemory,
  scalesFromSlots,
  scaleSlots,
  scaleSources,
  travellingScales,
} from "./narrow-scales.ts";
import type { ScaleSource } from "./narrow-scales.ts";
import { inputWindow, prologueSpecs, storedDepth } from "./prologue.ts";
import { asStored, packedUnit, unpacked } from "./quantized.ts";
import type { QuantizedSpec } from "./quantized.ts";

/** Threads that multiply, and warps of each. */
const [multipliers, warpsOfThread] = [4, 4];
/** Of a lane: the block starts with 96 in each of its 640, and 64 rows need a few more to multiply. */
const registers = { copy: 40, multiply: 104 };
/** Rows of a box of the copy engine. */
const mostCopied = 256;

/** Columns of a block. */
export function narrowColumns({ columns }: Pick<NarrowConfiguration, "columns">): number {
  return multipliers * warpsOfThread * columns;
}

export function narrowKernel(
  problem: MatmulProblem,
  configuration: NarrowConfiguration,
  sizes: ProductSizes,
  location: Location,
): KernelDefinition {
  const { weights } = problem;
  const prologue = problem.prologues.b;
  if (weights === undefined || prologue === undefined) throw new Error("b is not quantised");
  const dimensions = alignedDimensions(sizes);
  const { m, n, k } = dimensions;
  const { rows, columns, stages, split } = configuration;
  const width = narrowColumns(configuration);
  const boxes = width / mostCopied;
  const layers = split === 1 ? [] : [dim("layers")];
  const travelling = travellingScales(prologue, sizes.n);
  return kernel(
    {
      name: "matmul_narrow",
      grid: { layer: layers[0] ?? 1, i: cdiv(m, rows), j: cdiv(n, width) },
      threads: ["copy", "first", "second", "third", "fourth"],
      inputs: {
        a: array(problem.a.dtype, [m, k]),
        b: array(weights.dtype, [n, storedDepth(prologue, k)]),
        ...prologueSpecs(prologue, dimensions),
        ...(split === 1 ? inputSpecs(problem, dimensions, location) : {}),
      },
      outputs: {
        out: array(split === 1 ? problem.out.dtype : problem.accumulator, [...layers, m, n]),
        ...(split === 1 && outputSpecs(problem, dimensions, { rows, columns })),
      },
      scratch: {
        stored: smem(weights.dtype, [stages, width, packedUnit]),
        activations: smem(problem.a.dtype, [stages, rows, packedUnit]),
        ...scaleSlots(travelling, stages, width),
        full: barrier({ count: stages, arrivals: 1 + boxes * (1 + travelling.length) }),
        empty: barrier({ count: stages, arrivals: multipliers * warpsOfThread }),
      },
    },
    (argument) => {
      waitForPreviousKernel();
      launchNextKernel();
      const place = placeOf(argument, configuration, k);
      const scales = scaleSources(prologue, travelling, argument);
      when(
        threadIndex().eq(0),
        () => {
          setRegisters(registers.copy);
          copySteps(argument, place, configuration, scales);
        },
        () => {
          setRegisters(registers.multiply);
          warps((warp) => {
            const number = threadIndex().sub(1).mul(warpsOfThread).add(warp);
            const first = number.mul(columns);
            const left = place.left.add(first);
            const sums = sumsOfShare({
              ...place,
              left,
              first,
              configuration,
              weights,
              scales,
              argument,
            });
            const piece = { batch: undefined, top: place.top, left, rows, columns };
            const done =
              split === 1
                ? finished(sums, piece, problem, argument as never, location, dimensions)
                : sums;
            const target: Ref = split === 1 ? argument.out : argument.out.at(argument.layer);
            target.at(slice(place.top, rows), slice(left, columns)).store(done);
          });
        },
      );
    },
  ) as unknown as KernelDefinition;
}

/** What every kernel of this form is given; scales by their name. */
interface Arguments {
  readonly layer: Scalar<"i32">;
  readonly i: Scalar<"i32">;
  readonly j: Scalar<"i32">;
  readonly a: Ref;
  readonly b: Ref;
  readonly stored: Ref;
  readonly activations: Ref;
  readonly full: Barrier;
  readonly empty: Barrier;
}

/** Where a block's part of the product lies: its first row and column, and its steps along k. */
interface Place {
  readonly top: Scalar<"i32">;
  readonly left: Scalar<"i32">;
  readonly from: Scalar<"i32">;
  readonly steps: Scalar<"i32">;
}

function placeOf(
  { layer, i, j }: Arguments,
  configuration: NarrowConfiguration,
  k: Dimension,
): Place {
  const { rows, split } = configuration;
  const all = constant(dtypes.i32, 0).add(cdiv(k, packedUnit));
  const each = split === 1 ? all : all.add(split - 1).div(split);
  const from = layer.mul(each).minimum(all);
  return {
    ...{ top: i.mul(rows), left: j.mul(narrowColumns(configuration)) },
    ...{ from, steps: each.minimum(all.sub(from)) },
  };
}

/** One warp keeps the ring full. */
function copySteps(
  argument: Arguments,
  { top, left, from, steps }: Place,
  configuration: NarrowConfiguration,
  scales: readonly ScaleSource[],
): void {
  const { rows, stages } = configuration;
  const { a, b, stored, activations, full, empty } = argument;
  const width = narrowColumns(configuration);
  warps((warp) => {
    when(warp.eq(0), () => {
      loop({ to: steps, carry: constant(dtypes.i32, 0) }, (step, slot) => {
        when(step.ge(stages), () => {
          empty.at(slot).wait();
        });
        const start = from.add(step).mul(packedUnit);
        const along = slice(start, packedUnit);
        const landed = { barrier: full.at(slot) };
        copyAsync(a.at(slice(top, rows), along), activations.at(slot), landed);
        for (let box = 0; box < width; box += mostCopied) {
          const window = b.at(slice(left.add(box), mostCopied), along);
          copyAsync(window, stored.at(slot, slice(box, mostCopied)), landed);
          for (const { input, all, tiles } of scales) {
            if (tiles === undefined) continue;
            const source = inputWindow(input, all, start, left.add(box), mostCopied);
            copyAsync(source, tiles.at(slot, slice(box, mostCopied)), landed);
          }
        }
        return following(slot, stages);
      });
    });
  });
}

/** The slot after this one. */
function following(slot: Scalar<"i32">, stages: number): Scalar<"i32"> {
  const next = slot.add(1);
  return next.eq(stages).select(0, next);
}

/** A warp's columns of a block. */
interface Share extends Place {
  /** The first of its columns in the block. */
  readonly first: Scalar<"i32">;
  readonly configuration: NarrowConfiguration;
  readonly weights: QuantizedSpec;
  readonly scales: readonly ScaleSource[];
  readonly argument: Arguments;
}

/** What a warp's columns come to over the block's part of k, scales included. */
function sumsOfShare(share: Share): Tile {
  const { configuration, weights, argument } = share;
  const { stored, activations, full: landed, empty } = argument;
  const { rows, columns, stages } = configuration;
  const start: Tile<"f32"> = zeros(dtypes.f32, [rows, columns]);
  const zero = constant(dtypes.i32, 0);
  const scaled = weights.group !== undefined;
  const ofSteps = share.scales.filter(({ input }) => scaled || input.name !== "bScale");
  const { sums } = loop(
    { to: share.steps, carry: { sums: start, slot: zero } },
    (step, { sums: before, slot }) => {
      const part = { along: share.from.add(step).mul(packedUnit), slot, ...share, count: columns };
      const asked = scalesFromMemory(weights, ofSteps, part);
      landed.at(slot).wait();
      const { bScale, bZero } = { ...asked, ...scalesFromSlots(ofSteps, part) };
      const lines: Tile = stored.at(slot, slice(share.first, columns)).load();
      const numbers = asStored(lines, 1).transpose() as Tile;
      const left: Tile = activations.at(slot).load();
      // The copy engine overwrites what lanes have read here.
      commitShared();
      empty.at(slot).arrive();
      const product = productOf(left, unpacked(numbers).cast(weights.as) as Tile, bZero);
      return {
        sums: bScale === undefined ? before.add(product) : product.fma(bScale, before),
        slot: following(slot, stages),
      };
    },
  );
  if (scaled) return sums;
  const part = { along: zero, slot: zero, ...share, count: columns };
  const { bScale } = scalesFromMemory(weights, share.scales, part);
  return bScale === undefined ? sums : sums.mul(bScale);
}

/**
 * The product of a step. What zero points take away is the same for all weights of a column: the sum of a row of a times
 * the zero point, where the sum is a product with ones.
 */
function productOf(left: Tile, right: Tile, zeroPoints: Tile<"f32"> | undefined): Tile<"f32"> {
  const options = { dtype: dtypes.f32 };
  const product = dot(left, right, options) as Tile<"f32">;
  if (zeroPoints === undefined) return product;
  const sums = dot(left, full(right.dtype, right.shape, 1), options) as Tile<"f32">;
  return sums.fma(zeroPoints.neg(), product);
}
