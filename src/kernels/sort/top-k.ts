/**
 * `topK`: the greatest or least elements of rows of any length, and where they lie. Rows are cut into pieces, each piece
 * gives its best, and the best of these are found the same way until one piece is left:
 *
 *   rows of 131,072, k = 8      128 pieces of 1,024 ──▶ 1,024 candidates ──▶ 8
 *
 * Of equal elements the first counts: pieces keep their order, and so do the elements of a piece.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type {
  Operation,
  PlannedArgument,
  PlannedLaunch,
  ScratchArray,
} from "../../device/operation.ts";
import {
  array,
  cdiv,
  dim,
  kernel,
  slice,
  takeAlong,
  topK as topKOfTile,
} from "../../lang/index.ts";
import type { ArraySpec, Empty, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { extreme } from "../reduce/combinations.ts";
import {
  givenArray,
  refused,
  requireComparable,
  requireFields,
  requireRows,
} from "../support/given.ts";
import type { GivenArray } from "../support/given.ts";
import { alignedDimension, alignment, laidOut, powerOfTwoFrom } from "../support/sizes.ts";

/** Elements of a piece; more than twice as many as are wanted, so that every stage leaves fewer. */
const pieceElements = 1024;
export const mostWanted = 512;

export interface TopKSpec<X extends DTypeName> {
  /** A format is an array of [m, n]; rows lie along the last axis. */
  readonly x: GivenArray<X>;
  /** How many, from 1 to 512. */
  readonly k: number;
  /** Whether the least are wanted. */
  readonly least?: boolean;
}

/** How many pieces there are at each stage. */
export interface TopKConfiguration {
  readonly piece: number;
  readonly stages: readonly number[];
}

export type TopKOperation<X extends DTypeName> = Operation<
  { readonly x: ArraySpec<X> },
  { readonly values: ArraySpec<X>; readonly indices: ArraySpec<"i32"> },
  Empty,
  TopKConfiguration
>;

/** The best elements of rows, best first, and their positions. */
export function topK<X extends DTypeName>(spec: TopKSpec<X>): TopKOperation<X> {
  const location = captureLocation();
  requireFields("topK", spec, { x: "array", k: "number", least: "flag" }, location);
  const { k, least = false } = spec;
  const x = givenArray("x", "topK", spec.x, [dim("m"), dim("n")], location);
  requireComparable("x", "topK", x, location);
  requireRows("x", "topK", x, location);
  if (!Number.isSafeInteger(k) || k < 1 || k > mostWanted)
    throw refused(
      "TW9904",
      "topK cannot give so many",
      `a whole number from 1 to ${mostWanted}`,
      optionText(k),
      location,
    );
  const results = (dtype: DType) => array(dtype, x.shape.with(-1, k));
  const kernels = new Map<string, KernelDefinition>();
  return operation({
    name: "top_k",
    inputs: { x },
    outputs: { values: results(x.dtype), indices: results(dtypes.i32) },
    plan: (dimensions) => {
      const { shape } = laidOut(x, dimensions);
      const length = shape.at(-1) ?? 0;
      const rows = shape.slice(0, -1).reduce((all, extent) => all * extent, 1);
      if (length < k)
        throw refused(
          "TW9902",
          "rows of topK are shorter than what is wanted",
          `rows of ${k} or more`,
          String(length),
          location,
        );
      const piece = Math.min(
        Math.max(pieceElements, 2 * powerOfTwoFrom(k)),
        powerOfTwoFrom(length),
      );
      const stages = stagesOf(length, piece, k);
      const configuration = { piece, stages };
      if (rows === 0) return { configuration, source: "heuristic", launches: [] };
      return {
        configuration,
        source: "heuristic",
        scratch: scratchOf(x.dtype, rows, stages, k),
        launches: () =>
          launchesOf({ dtype: x.dtype, k, least, piece, rows, length }, stages, kernels),
      };
    },
  }) as unknown as TopKOperation<X>;
}

/** Pieces of every stage; the last has one. */
function stagesOf(length: number, piece: number, k: number): readonly number[] {
  const stages: number[] = [];
  let left = length;
  do {
    const pieces = Math.ceil(left / piece);
    stages.push(pieces);
    left = pieces * k;
  } while (stages.at(-1) !== 1);
  return stages;
}

function scratchOf(
  dtype: DType,
  rows: number,
  stages: readonly number[],
  k: number,
): { readonly [name: string]: ScratchArray } {
  const entries = stages
    .slice(0, -1)
    .flatMap((pieces, stage) => [
      [`values${stage}`, { dtype, shape: [rows, pieces, k] }] as const,
      [`indices${stage}`, { dtype: dtypes.i32, shape: [rows, pieces, k] }] as const,
    ]);
  return Object.fromEntries(entries);
}

interface TopKForm {
  readonly dtype: DType;
  readonly k: number;
  readonly least: boolean;
  readonly piece: number;
  readonly rows: number;
  readonly length: number;
}

function launchesOf(
  form: TopKForm,
  stages: readonly number[],
  kernels: Map<string, KernelDefinition>,
): readonly PlannedLaunch[] {
  const { k, rows, length } = form;
  let width = length;
  return stages.map((pieces, stage) => {
    const isFirst = stage === 0;
    const isLast = stage === stages.length - 1;
    const own = width;
    width = pieces * k;
    const text = JSON.stringify([form.piece, isFirst, alignment(own)]);
    const known = kernels.get(text) ?? stageKernel(form, own, isFirst);
    kernels.set(text, known);
    const from = (name: string): PlannedArgument => ({
      argument: isFirst ? "x" : `${name}${stage - 1}`,
      shape: [rows, own],
    });
    const to = (name: string): PlannedArgument => ({
      argument: isLast ? name : `${name}${stage}`,
      shape: [rows, pieces, k],
    });
    return {
      kernel: known,
      arguments: {
        x: from("values"),
        ...(!isFirst && { places: from("indices") }),
        values: to("values"),
        indices: to("indices"),
      },
    };
  });
}

function stageKernel(
  { dtype, k, least, piece }: TopKForm,
  length: number,
  isFirst: boolean,
): KernelDefinition {
  const rows = dim("rows");
  const width = alignedDimension("width", length);
  return kernel(
    {
      name: isFirst ? "top_k" : "top_k_merge",
      grid: { row: rows, part: cdiv(width, piece) },
      inputs: {
        x: array(dtype, [rows, width]),
        ...(!isFirst && { places: array(dtypes.i32, [rows, width]) }),
      },
      outputs: {
        values: array(dtype, [rows, cdiv(width, piece), k]),
        indices: array(dtypes.i32, [rows, cdiv(width, piece), k]),
      },
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      const [row, part] = [argument["row"] as Scalar<"i32">, argument["part"] as Scalar<"i32">];
      const here = slice(part.mul(piece), piece);
      // What is beyond the end comes after every element that is as bad.
      const fill = extreme(dtype, least ? 1 : -1);
      const tile = (argument["x"] as Ref).at(slice(row, 1), here).load({ fill } as never);
      const [best, positions] = topKOfTile(tile, k, 1, { least });
      const indices: Tile<"i32"> = isFirst
        ? positions.add(part.mul(piece))
        : takeAlong(
            (argument["places"] as Ref<"i32">).at(slice(row, 1), here).load(),
            positions,
            1,
          );
      (argument["values"] as Ref).at(slice(row, 1), part).store(best);
      (argument["indices"] as Ref).at(slice(row, 1), part).store(indices);
    },
  ) as unknown as KernelDefinition;
}
