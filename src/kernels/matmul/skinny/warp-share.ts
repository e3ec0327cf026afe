/**
 * What a warp of the skinny kernel does. It has a few columns, which it multiplies in pieces of 16, and may take turns with others at
 * steps along k:
 *
 *   turns of 4, 64 columns each      warps 0 to 3    steps 0, 4, 8 …
 *                                    warps 4 to 7    steps 1, 5, 9 …
 *                                    …
 *
 * What it holds of a is then good for four pieces. Without turns each warp would read all of a from shared memory for 16 columns, four
 * times as many bytes as of weights, and shared memory would be what it waits for.
 */
import {
  all,
  commitShared,
  constant,
  dot,
  full,
  loop,
  slice,
  when,
  zeros,
} from "../../../lang/index.ts";
import type { Barrier, Ref, Scalar, Tile } from "../../../lang/index.ts";
import { dtypes } from "../../../formats/dtype.ts";
import type { SkinnyConfiguration } from "../configuration.ts";
import { scalesFromMemory, scalesFromSlots } from "./scales.ts";
import type { ScaleSource } from "./scales.ts";
import {
  asStored,
  dequantized,
  packedUnit,
  scalesOfUnit,
  storedFactor,
  unpacked,
} from "../weights/quantized.ts";
import type { QuantizedSpec } from "../weights/quantized.ts";

/** Columns that a warp multiplies at once. */
export const pieceColumns = 16;

/** What every kernel of this form is given; scales by their name. */
export interface Arguments {
  readonly layer: Scalar<"i32">;
  readonly i: Scalar<"i32">;
  readonly j: Scalar<"i32">;
  readonly a: Ref;
  readonly b: Ref;
  readonly out: Ref;
  readonly stored: Ref;
  readonly activations: Ref;
  readonly full: Barrier;
  readonly empty: Barrier;
  readonly parts: Ref;
  readonly added: Barrier;
}

/** Where a block's part of the product lies: its first row and column, and its steps along k. */
export interface Place {
  readonly top: Scalar<"i32">;
  readonly left: Scalar<"i32">;
  readonly from: Scalar<"i32">;
  readonly steps: Scalar<"i32">;
}

/** The slot so many steps after this one, of those that began with `first`; there are whole rounds of them. */
export function following(
  slot: Scalar<"i32">,
  steps: number,
  stages: number,
  first: Scalar<"i32">,
): Scalar<"i32"> {
  const next = slot.add(steps);
  return next.ge(stages).select(first, next);
}

/** Steps of so many that those whose turn is the given one take. */
export function stepsOfSlice(
  steps: Scalar<"i32">,
  sliceK: number,
  turn: Scalar<"i32">,
): Scalar<"i32"> {
  return steps
    .add(sliceK - 1)
    .sub(turn)
    .div(sliceK);
}

/** A warp's columns of a block. */
export interface Share extends Place {
  /** Which columns it has: the number of them, and the first of them in the block. */
  readonly group: Scalar<"i32">;
  readonly first: Scalar<"i32">;
  /** Of every so many steps as there are turns, the one that it takes. */
  readonly turn: Scalar<"i32">;
  readonly configuration: SkinnyConfiguration;
  /** Elements along k of a step. */
  readonly depth: number;
  readonly weights: QuantizedSpec;
  readonly scales: readonly ScaleSource[];
  readonly argument: Arguments;
}

/** What a warp's columns come to over its part of k, scales included, in pieces. */
export function sumsOfShare(share: Share): readonly Tile[] {
  const { configuration, weights, argument, turn } = share;
  const { stored, activations, full: landed, empty } = argument;
  const { rows, columns, stages, sliceK } = configuration;
  const { depth } = share;
  const zero = constant(dtypes.i32, 0);
  const scaled = weights.group !== undefined;
  const factor = storedFactor(weights);
  const ofSteps = share.scales.filter(({ input }) => scaled || input.name !== "bScale");
  const starts = Array.from({ length: columns / pieceColumns }, (_, piece) => piece * pieceColumns);
  const start: readonly Tile<"f32">[] = starts.map(() => zeros(dtypes.f32, [rows, pieceColumns]));
  const partOf = (from: number, along: Scalar<"i32">, slot: Scalar<"i32">, unit: number) => ({
    ...{ along, slot, unit, count: pieceColumns },
    ...{ first: share.first.add(from), left: share.left.add(from) },
  });
  const units = Array.from({ length: depth / packedUnit }, (_, unit) => unit);
  const { sums } = loop(
    { to: stepsOfSlice(share.steps, sliceK, turn), carry: { sums: start, slot: turn } },
    (step, { sums: before, slot }) => {
      const own = step.mul(sliceK).add(turn);
      const parts = units.map((unit) => {
        const along = share.from
          .add(own)
          .mul(depth)
          .add(unit * packedUnit);
        return starts.map((from) => partOf(from, along, slot, unit));
      });
      const asked = parts.map((ofUnit) =>
        ofUnit.map((part) => scalesFromMemory(weights, ofSteps, part)),
      );
      landed.at(slot).wait();
      let after: readonly Tile[] = before;
      for (const [unit, ofUnit] of parts.entries()) {
        const within = slice(unit * packedUnit, packedUnit);
        const left: Tile = activations.at(slot, all, within).load();
        const sumsBefore = after;
        after = ofUnit.map((part, index) => {
          const { bScale, bZero } = { ...asked[unit]?.[index], ...scalesFromSlots(ofSteps, part) };
          const lines: Tile = stored.at(slot, slice(part.first, pieceColumns), within).load();
          const numbers = asStored(lines, 1).transpose();
          if (unit === units.length - 1 && index === ofUnit.length - 1) {
            // TMA overwrites what lanes have read here.
            commitShared();
            empty.at(slot).arrive();
          }
          const sum = sumsBefore[index] as Tile<"f32">;
          if (scalesOfUnit(weights) > 1 && bScale !== undefined)
            return sum.add(multiplied(left, dequantized(numbers, bScale, bZero, weights)));
          const whole = unpacked(numbers).cast(weights.as) as Tile;
          const made = factor === 1 ? whole : (whole.mul(factor) as Tile);
          const product = productOf(left, made, bZero, factor);
          return bScale === undefined ? sum.add(product) : product.fma(bScale, sum);
        });
      }
      return { sums: after as readonly Tile<"f32">[], slot: following(slot, sliceK, stages, turn) };
    },
  );
  const products = factor === 1 ? sums : sums.map((sum) => sum.mul(1 / factor));
  if (scaled) return products;
  return products.map((sum, index) => {
    const part = partOf(starts[index] ?? 0, zero, zero, 0);
    const { bScale } = scalesFromMemory(weights, share.scales, part);
    return bScale === undefined ? sum : sum.mul(bScale);
  });
}

/** Adds what warps with the same columns came to, always in the same order, and gives each piece and its first column to `finish`. */
export function addSlices(
  { group, turn, configuration: { sliceK }, argument }: Share,
  sums: readonly Tile[],
  finish: (sums: Tile, from: number) => void,
): void {
  const finishAt = (piece: Tile, index: number): void => {
    const [, columns = 0] = piece.shape;
    finish(piece, index * columns);
  };
  if (sliceK === 1) {
    sums.forEach(finishAt);
    return;
  }
  const { parts, added } = argument;
  const partOf = (other: Scalar<"i32"> | number, index: number): Ref =>
    parts.at(other, group.mul(sums.length).add(index));
  when(
    turn.eq(0),
    () => {
      added.at(group).wait();
      sums.forEach((each, index) => {
        let total = each;
        for (let other = 0; other < sliceK - 1; other += 1)
          total = total.add(partOf(other, index).load());
        finishAt(total, index);
      });
    },
    () => {
      sums.forEach((each, index) => {
        partOf(turn.sub(1), index).store(each);
      });
      added.at(group).arrive();
    },
  );
}

/**
 * The product of a step. What zero points take away is the same for all weights of a column: the sum of a row of a times
 * the zero point, where the sum is a product with ones.
 */
function productOf(
  left: Tile,
  right: Tile,
  zeroPoints: Tile<"f32"> | undefined,
  factor: number,
): Tile<"f32"> {
  const product = multiplied(left, right);
  if (zeroPoints === undefined) return product;
  const sums = multiplied(left, full(right.dtype, right.shape, factor));
  return sums.fma(zeroPoints.neg(), product);
}

/**
 * Tensor cores multiply 16 rows with 8 columns. Of no more than 8 rows of a these are the columns, and the 16 columns of a piece the
 * rows: one product does then what takes two otherwise.
 */
function multiplied(left: Tile, right: Tile): Tile<"f32"> {
  const [rows = 0] = left.shape;
  const options = { dtype: dtypes.f32 };
  return rows > 8
    ? dot(left, right, options)
    : dot(right.transpose(), left.transpose(), options).transpose();
}
