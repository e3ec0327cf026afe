/**
 * Weights that have their scales already, as checkpoints publish them, in the order that products read (`quantized.ts`): no number changes.
 *
 *   x      [n, k]            rows of weights are columns of the product, k last
 *   scale  [n, ⌈k / group⌉]   of the rows; more of both are padding, and left out
 *      │
 *      ▼  packWeights
 *   b      [n, ⌈k / 128⌉ · 128]
 *   bScale [⌈k / 128⌉, n · 128 / group], in the format that the weights say
 *
 * Weights of a batch, or of groups of rows as experts have them, have a matrix and scales each: [batch, n, k], [batch, n, ⌈k / group⌉].
 *
 * Tiled scales are [⌈n / 128⌉, ⌈blocks / 4⌉, 32, 4, 4], the order of Blackwell's tensor cores: row r and block b are at
 * [r / 128, b / 4, r mod 32, (r / 32) mod 4, b mod 4].
 */
import type { DType, DTypeName } from "../../../formats/dtype.ts";
import { operation } from "../../../device/operation.ts";
import type { Operation } from "../../../device/operation.ts";
import { evaluateSize } from "../../../ir/size.ts";
import { all, cdiv, dim, kernel, slice, tensor } from "../../../lang/index.ts";
import type {
  Empty,
  KernelDefinition,
  Ref,
  Scalar,
  TensorSpec,
  Tile,
} from "../../../lang/index.ts";
import { captureLocation } from "../../../support/location.ts";
import type { Location } from "../../../support/location.ts";
import { optionText } from "../../../support/options.ts";
import { requireFields } from "../../support/arguments.ts";
import { refused } from "../argument-errors.ts";
import { storedOperand } from "../prologue/given-prologues.ts";
import { isQuantized, packed, packedUnit, weightScaleShape, scalesOfUnit } from "./quantized.ts";
import type { QuantizedSpec, WeightFormat } from "./quantized.ts";

/** How scales lie that `packWeights` is given. */
export type PackedScaleLayout = "plain" | "tiled";

/** What `packWeights` is made for. */
export interface PackWeightsSpec<D extends WeightFormat, S extends DTypeName, G extends DTypeName> {
  /** The weights as products take them: `quantized` of [k, n] or [batch, k, n] with groups of 16, 32 or 64. */
  readonly b: QuantizedSpec<D, S, false>;
  /** The format of the scales that there are; that of `b` by default. */
  readonly scale?: DType<G>;
  /** How they lie; in rows by default. */
  readonly scaleLayout?: PackedScaleLayout;
}

type Given<D extends DTypeName, G extends DTypeName> = {
  readonly x: TensorSpec<D>;
  readonly scale: TensorSpec<G>;
};
type Stored<D extends DTypeName, S extends DTypeName> = {
  readonly b: TensorSpec<D>;
  readonly bScale: TensorSpec<S>;
};

/** Columns of a block. */
const columns = 64;
/** Rows and blocks of a tile of scales, and the rows that lie below each other in one. */
const [tileRows, tileBlocks, tileLanes] = [128, 4, 32] as const;

/** Stores weights and their scales as products read them. */
export function packWeights<D extends WeightFormat, S extends DTypeName, G extends DTypeName = S>(
  spec: PackWeightsSpec<D, S, G>,
): Operation<Given<D, G>, Stored<D, S>, Empty> {
  const location = captureLocation();
  const fields = { b: "operand", scale: "format", scaleLayout: "choice" } as const;
  requireFields("packWeights", spec, fields, location);
  const { b: weights, scaleLayout = "plain" } = spec;
  requirePackable(weights, scaleLayout, location);
  const scale: DType = spec.scale ?? weights.scale;
  const {
    batch,
    shape: [k, n],
  } = weights;
  const lead = batch === undefined ? [] : [batch];
  const given = {
    x: tensor(weights.dtype, [...lead, n, k]),
    scale: tensor(scale, [...lead, ...scaleDimensions(scaleLayout)]),
  };
  return operation({
    name: "packWeights",
    inputs: given,
    outputs: {
      b: storedOperand(weights).spec,
      bScale: tensor(weights.scale, weightScaleShape(weights, k, n, batch)),
    },
    plan: (sizes) => {
      const values = new Map(Object.entries(sizes));
      const named = (name: string) => ({ argument: name });
      const arguments_ = {
        ...{ x: named("x"), scale: named("scale") },
        ...{ b: named("b"), bScale: named("bScale") },
      };
      const { scale_rows = 0, scale_blocks = 0 } = sizes;
      const dimensions = {
        ...{ scale_rows, scale_blocks },
        ...(batch !== undefined && { batch: evaluateSize(batch, values) }),
        ...{ k: evaluateSize(k, values), n: evaluateSize(n, values) },
      };
      return {
        configuration: {},
        source: "heuristic",
        launches: () => [
          { kernel: packKernel(weights, scale, scaleLayout), arguments: arguments_, dimensions },
        ],
      };
    },
  }) as unknown as Operation<Given<D, G>, Stored<D, S>, Empty>;
}

/** Scales may be padded, so that their sizes are their own. */
function scaleDimensions(layout: PackedScaleLayout) {
  const [rows, blocks] = [dim("scale_rows"), dim("scale_blocks")];
  return layout === "plain" ? [rows, blocks] : [rows, blocks, tileLanes, 4, tileBlocks];
}

function requirePackable(weights: unknown, layout: unknown, location: Location): void {
  const isGiven = isQuantized(weights) && !weights.zero && weights.span === 1;
  if (!isGiven || scalesOfUnit(weights) === 1)
    throw refused(
      "TW9902",
      "packWeights takes weights whose groups are parts of 128 elements",
      "b: quantized(f4e2m1fn, [k, n], { groupSize: 32, scale: f8e8m0fnu, as: bf16 })",
      isQuantized(weights) ? `groups of ${weights.group ?? "whole columns"}` : optionText(weights),
      location,
    );
  if (layout !== "plain" && layout !== "tiled")
    throw refused(
      "TW9905",
      "scales lie in no such order",
      '"plain" or "tiled"',
      optionText(layout),
      location,
    );
}

function packKernel(
  weights: QuantizedSpec,
  scale: DType,
  layout: PackedScaleLayout,
): KernelDefinition {
  const [k, n] = [dim("k"), dim("n")];
  const batch = weights.batch === undefined ? undefined : dim("batch");
  const own = { ...weights, shape: [k, n], batch } as const;
  const lead = batch === undefined ? [] : [batch];
  const each = scalesOfUnit(weights);
  return kernel(
    {
      name: "pack_weights",
      grid: {
        ...{ i: cdiv(k, packedUnit), j: cdiv(n, columns) },
        ...(batch !== undefined && { layer: batch }),
      },
      inputs: {
        x: tensor(weights.dtype, [...lead, n, k]),
        scale: tensor(scale, [...lead, ...scaleDimensions(layout)]),
      },
      outputs: {
        b: storedOperand(own).spec,
        bScale: tensor(weights.scale, weightScaleShape(own, k, n, batch)),
      },
    },
    (argument) => {
      const { i, j, ...arrays } = packArguments(argument, batch !== undefined);
      const { x, scale: scalesOfAll, b, bScale } = arrays;
      const along = slice(i.mul(packedUnit), packedUnit);
      const across = slice(j.mul(columns), columns);
      const stored = x.at(across, along).load().transpose();
      b.at(across, along).store(packed(stored).transpose());
      const given = layout === "plain" ? plainScales : tiledScales;
      const scales = given(scalesOfAll, i, j, each);
      const numbers = scale === weights.scale ? scales : scales.cast(weights.scale);
      bScale
        .at(i, slice(j.mul(columns * each), columns * each))
        .store(numbers.reshape([columns * each]));
    },
  ) as unknown as KernelDefinition;
}

type Integer = Scalar<"i32">;

interface PackArguments {
  readonly i: Integer;
  readonly j: Integer;
  readonly x: Ref;
  readonly scale: Ref;
  readonly b: Ref;
  readonly bScale: Ref;
}

/** What a block is given, of its own matrix where there are several. */
function packArguments(argument: object, isBatched: boolean): PackArguments {
  const given = argument as PackArguments & { readonly layer: Integer };
  const { i, j } = given;
  const own = (array: Ref): Ref => (isBatched ? array.at(given.layer) : array);
  return {
    ...{ i, j, x: own(given.x), scale: own(given.scale) },
    ...{ b: own(given.b), bScale: own(given.bScale) },
  };
}

/** The scales of 64 columns in 128 elements along k, [columns, groups]. */
export function plainScales(scale: Ref, i: Integer, j: Integer, each: number): Tile {
  return scale.at(slice(j.mul(columns), columns), slice(i.mul(each), each)).load();
}

export function tiledScales(scale: Ref, i: Integer, j: Integer, each: number): Tile {
  const half = columns / tileLanes;
  const perTile = tileRows / columns;
  const tile = j.div(perTile);
  const quarter = j.sub(tile.mul(perTile)).mul(half);
  const count = Math.max(1, each / tileBlocks);
  const inTile = Math.min(each, tileBlocks);
  const first = i.mul(each);
  const block = first.div(tileBlocks);
  const window = scale.at(
    tile,
    slice(block, count),
    all,
    slice(quarter, half),
    slice(first.sub(block.mul(tileBlocks)), inTile),
  );
  // [tiles, 32, 2, 4] to [2, 32, tiles, 4]: rows are those of the half of a tile, one quarter after the other.
  return window.load().transpose([2, 1, 0, 3]).reshape([columns, each]);
}
