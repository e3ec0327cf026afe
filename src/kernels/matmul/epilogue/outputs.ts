/**
 * Further outputs of the epilogue: what it gives besides the result, stored as it is, or combined along rows or columns.
 *
 *   outputs                                               the epilogue gives            what is stored
 *   before: tensor(bf16, [m, n])                           bf16[rows, columns]           the piece
 *   largest: { array: tensor(f32, [m]), combine: "max" }   f32[rows, columns]            the greatest of each row
 *   total: { array: tensor(f32, [n]), combine: "sum" }     f32[rows, columns]            the sum of each column
 *
 * A piece that overhangs the result counts only with what is inside. Pieces leave what they come to in scratch memory, a
 * row of it for each piece of the way, and a launch at the end combines these in the order in which they lie, so that
 * results repeat bit for bit.
 */
import { dtypes } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import { ceilDivSize, shapeText } from "../../../ir/size.ts";
import type { Size } from "../../../ir/size.ts";
import {
  tensor,
  cdiv,
  constant,
  dim,
  full,
  iota,
  kernel,
  loop,
  slice,
} from "../../../lang/index.ts";
import type { TensorSpec, KernelDefinition, Ref } from "../../../lang/index.ts";
import { Tile } from "../../../lang/tile.ts";
import type { Location } from "../../../support/location.ts";
import { isRecord, optionText, requireKnownOptions } from "../../../support/options.ts";
import { requireRows } from "../../support/arguments.ts";
import type { ProductDimensions } from "../dimensions.ts";
import { parameterName } from "../user-array-names.ts";
import { equalSizes, refused } from "../argument-errors.ts";
import type { MatmulProblem } from "../problem.ts";
import type { Combine, FurtherOutput, Piece, PieceShape } from "./types.ts";

/** An array of [m, n] that is stored piece by piece, or one of [m] or [n] that rows or columns are combined into. */
export type EpilogueOutput = TensorSpec | { readonly array: TensorSpec; readonly combine: Combine };

/** Further outputs that an epilogue writes, by name. */
export interface EpilogueOutputs {
  readonly [name: string]: EpilogueOutput;
}

const combines: readonly Combine[] = ["sum", "max", "min"];

/** Outputs as the specification gives them, checked. */
export function furtherOutputs(
  given: unknown,
  of: Pick<MatmulProblem, "of" | "sizes">,
  location: Location,
): readonly FurtherOutput[] {
  if (given === undefined) return [];
  return Object.entries(given as object).map(([name, output]: [string, unknown]) =>
    furtherOutput(name, output, of, location),
  );
}

function furtherOutput(
  name: string,
  given: unknown,
  { of, sizes: { m, n, batch } }: Pick<MatmulProblem, "of" | "sizes">,
  location: Location,
): FurtherOutput {
  const wrong = (expected: string, found: string): Error =>
    refused("TW9902", `the output ${name} of ${of} has another form`, expected, found, location);
  const isCombined = isRecord(given) && !isArray(given);
  const spec: unknown = isCombined ? given["array"] : given;
  const how: unknown = isCombined ? given["combine"] : undefined;
  if (isCombined)
    requireKnownOptions(`the output ${name}`, given, ["array", "combine"], "TW1033", location);
  if (name === "out") throw wrong("another name: out is the result", name);
  if (!isArray(spec) || (isCombined && !combines.includes(how as Combine)))
    throw wrong(
      'tensor(dtype, [m, n]), or { array: tensor(dtype, [m]), combine: "sum", "max" or "min" }',
      isCombined ? optionText(how) : optionText(given),
    );
  requireRows(name, of, spec, location);
  const has = (wanted: readonly (Size | undefined)[]): boolean =>
    wanted.length === spec.shape.length &&
    wanted.every((size, axis) => size !== undefined && equalSizes(size, spec.shape[axis] ?? 0));
  if (!isCombined) {
    if (has(batch === undefined ? [m, n] : [batch, m, n]))
      return { name, spec, combined: undefined };
    throw wrong(batch === undefined ? "[m, n]" : "[batch, m, n]", shapeText(spec.shape));
  }
  const formats: readonly DType[] = [dtypes.f32, dtypes.f64, dtypes.i32];
  if (!formats.includes(spec.dtype)) throw wrong("f32, f64 or i32", spec.dtype.name);
  if (batch !== undefined) throw wrong("[m, n]: rows of batches are not combined", "a batch");
  if (!has([n]) && !has([m])) throw wrong("[m] or [n]", shapeText(spec.shape));
  return { name, spec, combined: { along: has([n]) ? "columns" : "rows", how: how as Combine } };
}

function isArray(given: unknown): given is TensorSpec {
  return isRecord(given) && given["kind"] === "array";
}

/** The outputs in the kernel's own dimensions: what pieces store, and what they come to. */
export function outputSpecs(
  { outputs, sizes }: MatmulProblem,
  { batch, m, n }: ProductDimensions,
  piece: PieceShape,
): { readonly [name: string]: TensorSpec } {
  const whole = sizes.batch === undefined ? [m, n] : [batch, m, n];
  const shapeOf = ({ combined }: FurtherOutput): readonly Size[] => {
    if (combined === undefined) return whole;
    return combined.along === "rows"
      ? [ceilDivSize(n, piece.columns), m]
      : [ceilDivSize(m, piece.rows), n];
  };
  return Object.fromEntries(
    outputs.map((output) => [
      parameterName(output.name),
      tensor(output.spec.dtype, shapeOf(output)),
    ]),
  );
}

/** Stores what the epilogue gave for the outputs. */
export function storeOutputs(
  given: { readonly [name: string]: unknown },
  sums: Tile,
  { batch, top, left, rows, columns }: Piece,
  { of, outputs, sizes }: MatmulProblem,
  { refs, dimensions: { m, n } }: OutputPlaces,
  location: Location,
): void {
  const [down, across] = [slice(top, rows), slice(left, columns)];
  for (const { name, spec, combined } of outputs) {
    const ref = refs[parameterName(name)];
    if (ref === undefined) throw new Error(`the kernel has no output ${name}`);
    const tile = requirePiece(name, of, given[name], sums, spec.dtype, location);
    if (combined === undefined) {
      const matrix = sizes.batch === undefined ? ref : ref.at(batch ?? 0);
      matrix.at(down, across).store(tile);
      continue;
    }
    const zero = constant(dtypes.i32, 0);
    const isAlongRows = combined.along === "rows";
    const [axis, start, end] = isAlongRows ? ([1, left, n] as const) : ([0, top, m] as const);
    const shape = isAlongRows ? [1, columns] : [rows, 1];
    const inside = iota(dtypes.i32, shape, { axis }).lt(zero.add(end).sub(start));
    const counted = inside.select(tile, identity(combined.how, spec.dtype, [rows, columns]));
    const folded = counted[combined.how]({ axis });
    // A piece may lie outside altogether, where a slice is clipped.
    const [index, window] = isAlongRows
      ? ([left.div(columns), down] as const)
      : ([top.div(rows), across] as const);
    ref.at(slice(index, 1), window).store(folded.reshape([1, isAlongRows ? rows : columns]));
  }
}

/** Where outputs go, by name, and the sizes of the result. */
export interface OutputPlaces {
  readonly refs: { readonly [name: string]: Ref };
  readonly dimensions: Pick<ProductDimensions, "m" | "n">;
}

/** What changes nothing that it is combined with. */
function identity(how: Combine, dtype: DType, shape: readonly number[]): Tile {
  const greatest = dtype === dtypes.i32 ? 2 ** 31 - 1 : Infinity;
  const least = dtype === dtypes.i32 ? -(2 ** 31) : -Infinity;
  return full(dtype, shape, { sum: 0, max: least, min: greatest }[how]);
}

/** The tile that the epilogue gave for an output: as large as the sums, and in the output's format. */
export function requirePiece(
  name: string,
  of: string,
  given: unknown,
  { shape }: Tile,
  dtype: DType,
  location: Location,
): Tile {
  const isTile = given instanceof Tile;
  if (isTile && given.dtype.name === dtype.name && given.shape.join() === shape.join())
    return given as Tile;
  throw refused(
    "TW9905",
    `the epilogue of ${of} gives ${isTile ? "another" : "no"} tile for ${name}`,
    `a tile of ${dtype.name}[${shape.join(", ")}]`,
    isTile ? `${given.dtype.name}[${given.shape.join(", ")}]` : typeof given,
    location,
  );
}

const span = 128;

/** Combines what pieces came to, one after the other. */
export function combineKernel({ spec, combined }: FurtherOutput): KernelDefinition {
  const [pieces, extent] = [dim("pieces"), dim("extent")];
  const { dtype } = spec;
  const how = combined?.how ?? "sum";
  return kernel(
    {
      name: "matmul_combine",
      grid: { i: cdiv(extent, span) },
      inputs: { parts: tensor(dtype, [pieces, extent]) },
      outputs: { out: tensor(dtype, [extent]) },
    },
    ({ i, parts, out }) => {
      const window = slice(i.mul(span), span);
      const start = identity(how, dtype, [span]);
      const count = constant(dtypes.i32, 0).add(pieces);
      const whole = loop({ to: count, carry: start }, (piece, before) => {
        const part = parts.at(piece, window).load();
        const functions = {
          sum: () => before.add(part),
          max: () => before.maximum(part),
          min: () => before.minimum(part),
        };
        return functions[how]();
      });
      out.at(window).store(whole);
    },
  ) as unknown as KernelDefinition;
}
