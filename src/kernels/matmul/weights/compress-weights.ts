/**
 * Weights into the form of sparse ones and back (`sparse-weights.ts`):
 *
 *   compress24   x [k, n]  ──▶  b, bMetadata      of every four along k the two of the greatest magnitude
 *   expand24     b, bMetadata ──▶  x [k, n]       zero where nothing is held
 *
 * Of equal magnitudes the first ones are held, and a NaN is greater than any number. Weights of which two of every four are
 * zero lose nothing: what comes back is what was given, but for the sign of zeros.
 */
import type { DTypeName } from "../../../formats/dtype.ts";
import { dtypes, isFloat } from "../../../formats/dtype.ts";
import { operation } from "../../../device/operation.ts";
import type { Operation, PlannedLaunch } from "../../../device/operation.ts";
import { evaluateSize } from "../../../ir/size.ts";
import {
  tensor,
  cdiv,
  concatenate,
  dim,
  full,
  iota,
  kernel,
  slice,
  zeros,
} from "../../../lang/index.ts";
import type { TensorSpec, Empty, KernelDefinition, Ref, Tile } from "../../../lang/index.ts";
import { captureLocation } from "../../../support/location.ts";
import type { Location } from "../../../support/location.ts";
import { optionText } from "../../../support/options.ts";
import { refused } from "../argument-errors.ts";
import {
  block,
  held,
  isSparse24,
  metadataName,
  metadataSpec,
  packedMetadata,
  sparseOperand,
  unpackedMetadata,
} from "./sparse-weights.ts";
import type { Sparse24Spec, SparseFormat } from "./sparse-weights.ts";

type Stored<D extends DTypeName> = {
  readonly b: TensorSpec<D>;
  readonly bMetadata: TensorSpec<"u16">;
};
type Weights<D extends DTypeName> = { readonly x: TensorSpec<D> };

/** Chunks of four along k in a block. */
const chunks = block / 4;

/** What sparse weights hold of x, and where: what `matmul` takes for b and bMetadata. */
export function compress24<D extends SparseFormat>(
  weights: Sparse24Spec<D>,
): Operation<Weights<D>, Stored<D>, Empty> {
  requireSparse("compress24", weights, captureLocation());
  const { dtype, shape } = weights;
  return operation({
    name: "compress24",
    inputs: { x: tensor(dtype, shape) },
    outputs: storedArrays(weights, ...shape),
    plan: (dimensions) => ({
      configuration: {},
      source: "heuristic",
      launches: () => launches(compressKernel(weights), weights, dimensions),
    }),
  }) as unknown as Operation<Weights<D>, Stored<D>, Empty>;
}

/**
 * The weights that stored ones stand for. Columns are stored in multiples of 64, so k is given with the launch:
 * `{ dimensions: { k } }`.
 */
export function expand24<D extends SparseFormat>(
  weights: Sparse24Spec<D>,
): Operation<Stored<D>, Weights<D>, Empty> {
  requireSparse("expand24", weights, captureLocation());
  const { dtype, shape } = weights;
  return operation({
    name: "expand24",
    inputs: storedArrays(weights, ...shape),
    outputs: { x: tensor(dtype, shape) },
    plan: (dimensions) => ({
      configuration: {},
      source: "heuristic",
      launches: () => launches(expandKernel(weights), weights, dimensions),
    }),
  }) as unknown as Operation<Stored<D>, Weights<D>, Empty>;
}

function requireSparse(of: string, given: unknown, location: Location): void {
  if (isSparse24(given)) return;
  throw refused(
    "TW9902",
    `${of} has no description of the weights`,
    "sparse24(bf16, [k, n])",
    optionText(given),
    location,
  );
}

function storedArrays(
  weights: Sparse24Spec,
  k: Sparse24Spec["shape"][0],
  n: Sparse24Spec["shape"][1],
): { readonly b: TensorSpec; readonly bMetadata: TensorSpec } {
  return {
    b: sparseOperand({ ...weights, shape: [k, n] }).spec,
    [metadataName]: metadataSpec(k, n),
  };
}

function launches(
  definition: KernelDefinition,
  { shape }: Sparse24Spec,
  dimensions: { readonly [name: string]: number },
): readonly PlannedLaunch[] {
  const values = new Map(Object.entries(dimensions));
  const [k = 0, n = 0] = shape.map((size) => evaluateSize(size, values));
  if (k * n === 0) return [];
  const named = (name: string): { readonly argument: string } => ({ argument: name });
  return [
    {
      kernel: definition,
      arguments: { x: named("x"), b: named("b"), [metadataName]: named(metadataName) },
      dimensions: { k, n },
    },
  ];
}

/** One of every four elements, [64, 16], of [64, 64]. */
function everyFourth(tile: Tile, at: number): Tile {
  return tile
    .reshape([block, chunks, 4])
    .slice([0, 0, at], [block, chunks, 1])
    .reshape([block, chunks]);
}

/** What is compared: greater for greater magnitudes, and greatest for NaN. */
function magnitude(tile: Tile): Tile<"i32"> {
  if (!isFloat(tile.dtype)) return tile.cast(dtypes.i32).abs();
  return tile.cast(dtypes.f32).bitcast(dtypes.i32).and(0x7fffffff);
}

/** Which of four are held: those that fewer than two others come before. */
function heldOnes(tiles: readonly Tile[]): readonly Tile<"bool">[] {
  const keys = tiles.map(magnitude);
  return keys.map((own, at) => {
    const before = keys
      .flatMap((key, other) => (other === at ? [] : [other < at ? key.ge(own) : key.gt(own)]))
      .map((each) => each.cast(dtypes.i32));
    return before.reduce((sum, each) => sum.add(each)).lt(2);
  });
}

/** The first and the second of four that are held. */
function firstTwo<T extends Tile>(
  tiles: readonly T[],
  isHeld: readonly Tile<"bool">[],
): readonly [T, T] {
  const [zero, one, two, three] = tiles;
  const [isZero, isOne, isTwo, isThree] = isHeld;
  if (!zero || !one || !two || !three || !isZero || !isOne || !isTwo || !isThree)
    throw new Error("a chunk has four elements");
  return [
    isZero.select(zero, isOne.select(one, two)) as T,
    isThree.select(three, isTwo.select(two, one)) as T,
  ];
}

function compressKernel(weights: Sparse24Spec): KernelDefinition {
  const [k, n] = [dim("k"), dim("n")];
  const { dtype } = weights;
  return kernel(
    {
      name: "compress24",
      grid: { i: cdiv(k, block), j: cdiv(n, block) },
      inputs: { x: tensor(dtype, [k, n]) },
      outputs: storedArrays(weights, k, n),
    },
    ({ i, j, x, b, bMetadata }) => {
      const across = slice(j.mul(block), block);
      const columns = x
        .at(slice(i.mul(block), block), across)
        .load()
        .transpose();
      const elements = [0, 1, 2, 3].map((at) => everyFourth(columns, at));
      const isHeld = heldOnes(elements);
      const pair = firstTwo(elements, isHeld).map((each) => each.reshape([block, chunks, 1]));
      const values = concatenate(pair, { axis: 2 }).reshape([block, held]);
      b.at(across, slice(i.mul(held), held)).store(values);
      const numbers = [0, 1, 2, 3].map((at) => full(dtypes.i32, [block, chunks], at));
      const [first, second] = firstTwo(numbers, isHeld);
      const shifts = iota(dtypes.i32, [block, 4, 4], { axis: 2 }).shl(2);
      const words = first.or(second.shl(2)).reshape([block, 4, 4]).shl(shifts).sum({ axis: 2 });
      const stored = packedMetadata(words.cast(dtypes.u16), dtype.bits);
      bMetadata.at(j, slice(i, 1)).store(stored);
    },
  );
}

function expandKernel(weights: Sparse24Spec): KernelDefinition {
  const [k, n] = [dim("k"), dim("n")];
  const { dtype } = weights;
  const shape = [block, chunks, 4];
  return kernel(
    {
      name: "expand24",
      grid: { i: cdiv(k, block), j: cdiv(n, block) },
      inputs: storedArrays(weights, k, n),
      outputs: { x: tensor(dtype, [k, n]) },
    },
    ({ i, j, b, bMetadata, x }) => {
      const across = slice(j.mul(block), block);
      const stored = (bMetadata as Ref<"u16">).at(j, slice(i, 1)).load();
      const words = unpackedMetadata(stored, dtype.bits).cast(dtypes.i32) as Tile<"i32">;
      const shifts = iota(dtypes.i32, [block, 4, 4], { axis: 2 }).shl(2);
      const codes = words.reshape([block, 4, 1]).broadcastTo([block, 4, 4]).shr(shifts).and(15);
      const indices = codes.reshape([block, chunks, 1]).broadcastTo(shape);
      const values = (b as Ref).at(across, slice(i.mul(held), held)).load() as Tile;
      const one = (at: number): Tile =>
        values
          .reshape([block, chunks, 2])
          .slice([0, 0, at], [block, chunks, 1])
          .broadcastTo(shape) as Tile;
      const place = iota(dtypes.i32, shape, { axis: 2 });
      const isFirst = indices.and(3).eq(place);
      const isSecond = indices.shr(2).eq(place);
      const whole = isFirst.select(one(0), isSecond.select(one(1), zeros(dtype, shape)));
      x.at(slice(i.mul(block), block), across).store(whole.reshape([block, block]).transpose());
    },
  ) as unknown as KernelDefinition;
}
