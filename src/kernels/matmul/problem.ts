/**
 * What a matrix product is asked to do, taken apart: formats, which way operands lie in memory, batches, and what
 * happens to the result. Everything else in this folder works on this description.
 *
 *   a [m, k] row-major: rows of k lie together, "k"        b [k, n] row-major: "n"
 *   a [m, k] strides [1, m]: columns do, "m"               b [k, n] strides [1, k]: "k"
 */
import type { DType } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { acceptsDot } from "../../formats/arithmetic/index.ts";
import { dotAccumulators, operandsText } from "../../ir/infer/matrix.ts";
import { multiplySizes, sameSize, sizeText } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { tensor } from "../../lang/index.ts";
import type { TensorSpec, SplitPrecision } from "../../lang/index.ts";
import type { Location } from "../../support/location.ts";
import type { Target } from "../../targets/target.ts";
import type { Epilogue, FurtherOutput } from "./epilogue/types.ts";
import { equalSizes, refused } from "./argument-errors.ts";
import type { BlockScales } from "./block-scales.ts";
import type { Prologue } from "./prologue/prologue.ts";
import { rowMajorStrides, viewedMatrix } from "./views.ts";
import type { BatchAxes, MatrixView, ViewName, Views } from "./views.ts";
import type { QuantizedSpec } from "./weights/quantized.ts";

/** How f32 is multiplied: exactly as f32, rounded to tf32 first, or as several products of parts. */
export type MatmulPrecision = "ieee" | SplitPrecision;

/** How FP8 is summed: as the tensor core does it, or in f32 after every 128 of k. */
export type Accumulation = "fast" | "promoted";

export interface MatmulProblem {
  /** Who is asked, as users know it: the name in what they are told. */
  readonly of: string;
  readonly a: TensorSpec;
  readonly b: TensorSpec;
  readonly out: TensorSpec;
  /** Sizes of the product, as the specification names them. */
  readonly sizes: {
    readonly m: Size;
    readonly n: Size;
    readonly k: Size;
    readonly batch: Size | undefined;
  };
  /** Which axis of each operand is contiguous. */
  readonly major: { readonly a: "m" | "k"; readonly b: "k" | "n" };
  /** Whether each operand has a batch of its own. */
  readonly batched: { readonly a: boolean; readonly b: boolean };
  /** Operands and results that are parts of larger arrays; undefined where none is. */
  readonly views: Views | undefined;
  readonly accumulator: DType;
  readonly precision: MatmulPrecision | undefined;
  readonly accumulation: Accumulation | undefined;
  readonly inputs: { readonly [name: string]: TensorSpec };
  readonly epilogue: Epilogue | undefined;
  /** What the epilogue gives besides the result. */
  readonly outputs: readonly FurtherOutput[];
  /** What happens to operands before they are multiplied. */
  readonly prologues: { readonly a: Prologue | undefined; readonly b: Prologue | undefined };
  /** How b is stored, where in few bits. */
  readonly weights: QuantizedSpec | undefined;
  /** Whether b holds two of every four elements along k (`sparse-weights.ts`). */
  readonly sparse: boolean;
  /** Which elements of FP8 share a scale of f32, where sums of 128 of k are multiplied by such. */
  readonly blockScales: BlockScales | undefined;
  /** What is read of operands besides them: the further inputs of prologues, scales of blocks, or metadata. */
  readonly prologueInputs: { readonly [name: string]: TensorSpec };
}

/** The format in which an operand is multiplied. */
export function multipliedFormat(
  problem: Pick<MatmulProblem, "a" | "b" | "prologues">,
  name: "a" | "b",
): DType {
  return problem.prologues[name]?.as ?? problem[name].dtype;
}

/** The operand that has a prologue; undefined where none or both have one. */
export function prologueOf({ prologues: { a, b } }: MatmulProblem): Prologue | undefined {
  return a === undefined || b === undefined ? (a ?? b) : undefined;
}

export interface Operand {
  readonly spec: TensorSpec;
  readonly batch: Size | undefined;
  readonly rows: Size;
  readonly columns: Size;
  /** Whether rows are contiguous; columns are where they are not. */
  readonly byRows: boolean;
  /** Where it is part of a larger array, or its batch has two axes: how it lies, and the axes of its batch. */
  readonly view?: MatrixView;
}

/** The axes of an operand of rank 2 or 3, and which of the last two is contiguous. */
export function operandOf(name: string, of: string, spec: TensorSpec, location: Location): Operand {
  const { shape, strides } = spec;
  const [rows, columns] = shape.slice(-2);
  const view = viewedMatrix(spec);
  if (view !== undefined) return { spec, ...view };
  if (rows === undefined || columns === undefined || shape.length > 3)
    throw refused(
      "TW9902",
      `${name} of ${of} has ${shape.length} axes`,
      "2 axes, 3 with a batch, or 4 with numbers for sizes and strides",
      `[${shape.map(sizeText).join(", ")}]`,
      location,
    );
  const batch = shape.length === 3 ? shape[0] : undefined;
  if (strides === undefined) return { spec, batch, rows, columns, byRows: true };
  const [down, along] = strides.slice(-2);
  const whole =
    batch === undefined || (strides[0] !== undefined && isProduct(strides[0], rows, columns));
  const byRows = along === 1 && down !== undefined && equalSizes(down, columns);
  const byColumns = down === 1 && along !== undefined && equalSizes(along, rows);
  if (whole && (byRows || byColumns)) return { spec, batch, rows, columns, byRows };
  throw refused(
    "TW9902",
    `${name} of ${of} lies in memory in a way that no kernel reads`,
    `row-major, strides [1, ${sizeText(rows)}] for column-major, or numbers for sizes and strides with neighbours along rows or columns`,
    `strides [${strides.map(sizeText).join(", ")}]`,
    location,
  );
}

function isProduct(stride: Size, rows: Size, columns: Size): boolean {
  return sameSize(stride, multiplySizes(rows, columns));
}

/** The batch of the product, and which operands have one matrix for each of it; a batch of 1 has one for all. */
export function sharedBatch(
  of: string,
  { batch: ofA }: Operand,
  { batch: ofB }: Operand,
  location: Location,
): Pick<MatmulProblem, "batched"> & { readonly batch: Size | undefined } {
  if (ofA === undefined || ofB === undefined || equalSizes(ofA, ofB))
    return { batch: ofA ?? ofB, batched: { a: ofA !== undefined, b: ofB !== undefined } };
  if (ofA === 1) return { batch: ofB, batched: { a: false, b: true } };
  if (ofB === 1) return { batch: ofA, batched: { a: true, b: false } };
  throw refused(
    "TW9902",
    `the operands of ${of} have two batches`,
    "one batch, one of them without, or one of them with a batch of 1",
    `${sizeText(ofA)} and ${sizeText(ofB)}`,
    location,
  );
}

/** The batch and the views of a product of which an operand is a view; undefined where none is. */
export function viewedBatch(
  of: string,
  a: Operand,
  b: Operand,
  location: Location,
):
  | (Pick<MatmulProblem, "batched"> & {
      readonly batch: Size | undefined;
      readonly axes: BatchAxes;
    })
  | undefined {
  if (a.view === undefined && b.view === undefined) return undefined;
  const both = [a, b];
  const most = (axis: "outer" | "inner"): number =>
    Math.max(...both.map(({ view }) => view?.batch[axis] ?? 1));
  const axes = { outer: most("outer"), inner: most("inner") };
  const count = axes.outer * axes.inner;
  const suits = ({ view, batch }: Operand): boolean =>
    view === undefined
      ? batch === undefined || batch === 1 || batch === count
      : [1, axes.outer].includes(view.batch.outer) && [1, axes.inner].includes(view.batch.inner);
  if (!both.every(suits))
    throw refused(
      "TW9902",
      `the operands of ${of} have two batches`,
      "axes of one batch, or of 1 where one matrix is for all",
      both.map(({ spec }) => `[${spec.shape.map(sizeText).join(", ")}]`).join(" and "),
      location,
    );
  const isBatched = ({ view, batch }: Operand): boolean =>
    view === undefined
      ? batch !== undefined && batch !== 1
      : (view.outer ?? view.inner) !== undefined;
  const hasBatch = both.some(({ batch }) => batch !== undefined);
  return {
    axes,
    batch: hasBatch ? count : undefined,
    batched: { a: isBatched(a), b: isBatched(b) },
  };
}

/** The format that products of the operands are summed in. */
export function accumulatorOf(of: string, a: DType, b: DType, location: Location): DType {
  const candidates = [dtypes.f32, dtypes.i32, dtypes.f64];
  const found = candidates.find((dtype) => acceptsDot(a, b, dtype));
  if (found !== undefined) return found;
  throw refused(
    "TW9901",
    `${of} has no product of ${a.name} and ${b.name}`,
    operandsText(dotAccumulators),
    `${a.name} and ${b.name}`,
    location,
  );
}

/** What the result has by default: the operands' format, bf16 for FP8, sums of integers as they are. */
export function usualOutput(a: DType, accumulator: DType): DType {
  if (accumulator === dtypes.i32) return accumulator;
  return a.bits < 16 ? dtypes.bf16 : a;
}

export function outputSpec(dtype: DType, batch: Size | undefined, m: Size, n: Size): TensorSpec {
  return tensor(dtype, batch === undefined ? [m, n] : [batch, m, n]);
}

/** The result: an array by rows, or the part of a larger one that was given for it. */
export function resultOf(
  of: string,
  given: DType | TensorSpec,
  { m, n, batch }: MatmulProblem["sizes"],
  axes: BatchAxes | undefined,
  location: Location,
): Pick<Operand, "spec" | "view"> {
  if (given.kind !== "array") return { spec: outputSpec(given, batch, m, n) };
  const found = viewedMatrix(given);
  const { shape } = given;
  const whole = outputSpec(given.dtype, batch, m, n);
  const isWhole = found === undefined && liesByRows(given) && sameShape(shape, whole.shape);
  if (isWhole) return { spec: whole };
  const view = found?.view;
  const isOurs =
    found !== undefined &&
    found.byRows &&
    found.rows === m &&
    found.columns === n &&
    found.batch === batch &&
    (axes === undefined ||
      found.batch === undefined ||
      (found.view.batch.outer === axes.outer && found.view.batch.inner === axes.inner));
  if (isOurs && view !== undefined) return { spec: given, view };
  throw refused(
    "TW9902",
    `out of ${of} has another shape`,
    `[${whole.shape.map(sizeText).join(", ")}], or a part of a larger array with as many rows, columns and axes of the batch`,
    `[${shape.map(sizeText).join(", ")}]`,
    location,
  );
}

/** Whether an array lies by rows; along an axis of one element strides say nothing. */
function liesByRows({ shape, strides }: TensorSpec): boolean {
  const usual = rowMajorStrides(shape);
  return (
    strides === undefined ||
    strides.every((stride, axis) => shape[axis] === 1 || sameSize(stride, usual[axis] ?? -1))
  );
}

function sameShape(one: readonly Size[], other: readonly Size[]): boolean {
  return (
    one.length === other.length && one.every((size, axis) => sameSize(size, other[axis] ?? -1))
  );
}

/** The views of a product. */
export function viewsOf(
  { a, b, out }: { readonly [N in ViewName]: Pick<Operand, "view"> },
  axes: BatchAxes | undefined,
): Views | undefined {
  const batch = axes ?? out.view?.batch;
  if (batch === undefined) return undefined;
  const within = (view: MatrixView | undefined): MatrixView | undefined =>
    view && { ...view, batch };
  return { batch, a: within(a.view), b: within(b.view), out: within(out.view) };
}

/** Refuses rings of stages that no block has room for. */
export function requireRoom(
  of: string,
  configuration: { readonly stages: number },
  bytes: number,
  target: Target,
  location: Location,
  least = 2,
): void {
  const { stages } = configuration;
  if (Number.isSafeInteger(stages) && stages >= least && bytes <= target.sharedMemoryPerBlock)
    return;
  throw refused(
    "TW9904",
    `the configuration of ${of} takes ${bytes} bytes of shared memory`,
    `${least} stages or more, and at most ${target.sharedMemoryPerBlock} bytes on ${target.name}`,
    JSON.stringify(configuration),
    location,
  );
}
