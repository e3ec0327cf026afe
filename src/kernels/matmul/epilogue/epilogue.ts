/**
 * What happens to a piece of the product before it is stored. The function sees the sums of the piece, and the part of
 * every further input that belongs to it, shaped to be broadcast:
 *
 *   piece of 64 rows and 128 columns      sums         f32[64, 128]
 *                                         bias [n]    f32[1, 128]
 *                                         scale [m]   f32[64, 1]
 *                                         residual    bf16[64, 128]
 *                                         factor [1]  f32[1, 1]
 */
import { shapeText } from "../../../ir/size.ts";
import type { Size } from "../../../ir/size.ts";
import { tensor, slice } from "../../../lang/index.ts";
import { Tile } from "../../../lang/tile.ts";
import type { TensorSpec, Ref } from "../../../lang/index.ts";
import type { Location } from "../../../support/location.ts";
import { isRecord } from "../../../support/options.ts";
import { byElement } from "../../support/by-element.ts";
import type { ProductDimensions } from "../dimensions.ts";
import { parameterName } from "../user-array-names.ts";
import { requirePiece, storeOutputs } from "./outputs.ts";
import { equalSizes, refused } from "../argument-errors.ts";
import type { MatmulProblem } from "../problem.ts";
import type { Piece } from "./types.ts";

type Shape = "rows" | "columns" | "both" | "batch and both" | "one";

/** Which sizes of the product an input of the epilogue has. */
export function inputShape(
  name: string,
  { shape }: TensorSpec,
  { of, sizes: { m, n, batch } }: Pick<MatmulProblem, "of" | "sizes">,
  location: Location,
): Shape {
  const forms: readonly (readonly [Shape, readonly (Size | undefined)[]])[] = [
    ["batch and both", [batch, m, n]],
    ["both", [m, n]],
    ["columns", [n]],
    ["rows", [m]],
    ["one", [1]],
  ];
  const found = forms.find(
    ([, sizes]) =>
      sizes.length === shape.length &&
      sizes.every((size, axis) => size !== undefined && equalSizes(size, shape[axis] ?? 0)),
  );
  if (found !== undefined) return found[0];
  throw refused(
    "TW9902",
    `the input ${name} of ${of} has neither rows nor columns of the result`,
    forms
      .filter(([, sizes]) => !sizes.includes(undefined))
      .map(([, sizes]) => shapeText(sizes as readonly Size[]))
      .join(" or "),
    shapeText(shape),
    location,
  );
}

/** The further inputs in the kernel's own dimensions. */
export function inputSpecs(
  problem: MatmulProblem,
  { batch, m, n }: ProductDimensions,
  location: Location,
): { readonly [name: string]: TensorSpec } {
  const shapes: { readonly [S in Shape]: readonly Size[] } = {
    rows: [m],
    columns: [n],
    both: [m, n],
    "batch and both": [batch, m, n],
    one: [1],
  };
  return Object.fromEntries(
    Object.entries(problem.inputs).map(([name, spec]) => [
      parameterName(name),
      tensor(spec.dtype, shapes[inputShape(name, spec, problem, location)]),
    ]),
  );
}

/** Inputs of a piece that have a number for each of its rows or columns. */
export interface VectorInputs {
  readonly [name: string]: Tile;
}

export function vectorInputs(
  problem: MatmulProblem,
  inputs: { readonly [name: string]: Ref },
  piece: Piece,
  location: Location,
): VectorInputs {
  const found: { [name: string]: Tile } = {};
  for (const [name, spec] of Object.entries(problem.inputs)) {
    const shape = inputShape(name, spec, problem, location);
    const ref = inputs[parameterName(name)];
    if (ref !== undefined && (shape === "rows" || shape === "columns"))
      found[name] = inputPiece(ref, shape, piece);
  }
  return found;
}

/**
 * The piece of the result: the sums as the epilogue changes them, in the format of the result. Further outputs of the
 * epilogue are stored on the way.
 */
export function finished(
  sums: Tile,
  piece: Piece,
  problem: MatmulProblem,
  inputs: { readonly [name: string]: Ref },
  location: Location,
  dimensions?: ProductDimensions,
  vectors: VectorInputs = {},
): Tile {
  const { of, epilogue, out, outputs } = problem;
  if (epilogue === undefined) return sums.cast(out.dtype);
  const tiles: { [name: string]: Tile } = { sums };
  for (const [name, spec] of Object.entries(problem.inputs)) {
    const ref = inputs[parameterName(name)];
    const loaded = Object.hasOwn(vectors, name) ? vectors[name] : undefined;
    if (ref !== undefined)
      tiles[name] = loaded ?? inputPiece(ref, inputShape(name, spec, problem, location), piece);
  }
  const given = byElement(`the epilogue of ${of}`, epilogue, tiles, location);
  if (outputs.length === 0 || dimensions === undefined)
    return requirePiece("out", of, given, sums, out.dtype, location);
  const named = requireNamed(given, problem, location);
  const places = { refs: inputs, dimensions };
  storeOutputs(named, sums, piece, problem, places, location);
  return requirePiece("out", of, named["out"], sums, out.dtype, location);
}

/** A record of the result and of all further outputs. */
function requireNamed(
  given: unknown,
  { of, outputs }: MatmulProblem,
  location: Location,
): { readonly [name: string]: unknown } {
  const names = ["out", ...outputs.map(({ name }) => name)];
  const found = isRecord(given) && !(given instanceof Tile) ? Object.keys(given) : undefined;
  if (found?.length === names.length && names.every((name) => found.includes(name)))
    return given as { readonly [name: string]: unknown };
  throw refused(
    "TW9905",
    `the epilogue of ${of} does not give its outputs`,
    `a record of ${names.join(", ")}`,
    found === undefined ? typeof given : `a record of ${found.join(", ")}`,
    location,
  );
}

function inputPiece(ref: Ref, shape: Shape, { batch, top, left, rows, columns }: Piece): Tile {
  const down = slice(top, rows);
  const along = slice(left, columns);
  if (shape === "rows") return ref.at(down).load().reshape([rows, 1]);
  if (shape === "columns") return ref.at(along).load().reshape([1, columns]);
  if (shape === "one") return ref.load().reshape([1, 1]);
  if (shape === "both") return ref.at(down, along).load();
  return ref.at(batch ?? 0, down, along).load();
}
