/**
 * FP8 whose blocks have scales of f32, as DeepSeek's models are published: sums over 128 of k are multiplied by the scales of both operands
 * as they are added to others in f32, which they are anyway where sums are promoted.
 *
 *   a [m, k]   in blocks of 1 × 128      aScale [m, ⌈k / 128⌉]
 *   b [k, n]   in blocks of 128 × 128    bScale [⌈n / 128⌉, ⌈k / 128⌉]
 *
 *   out[i, j] = Σ over blocks of k   aScale[i, block] · bScale[j / 128, block] · (Σ over the block  a[i, k] · b[k, j])
 *
 * Scales travel with what they belong to, where TMA can take them: four blocks of k of each row at once, the least that it copies, of which a step needs one. Otherwise a
 * thread reads those of the next block of k from memory while tensor cores multiply one. Those of columns are one number where a block of them holds the
 * whole tile, as it does up to 128 columns, and otherwise a few: a tile of 192 columns begins with a block or in the middle of one.
 */
import { dtypes } from "../../formats/dtype.ts";
import { ceilDivSize } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { concatenate, copyAsync, slice, smem, tensor } from "../../lang/index.ts";
import type { Barrier, Ref, Scalar, TensorSpec, Tile } from "../../lang/index.ts";
import type { Location } from "../../support/location.ts";
import { optionText, requireKnownOptions } from "../../support/options.ts";
import { nameTaken, refused } from "./argument-errors.ts";
import type { ProductDimensions } from "./dimensions.ts";
import { tilesName } from "./user-array-names.ts";

/** Elements of k that share a scale: those of a step of FP8. */
export const scaledDepth = 128;

/** Of each operand, how many of its rows (of a) or columns (of b) share a scale. */
export interface BlockScales {
  readonly a: number;
  readonly b: number;
}

export const blockScaleNames = { a: "aScale", b: "bScale" } as const;

/** Rows or columns that blocks have more than one of: no thread's part of a tile then lies in two blocks. */
const leastSpan = 64;

/** What a specification says of blocks, checked. */
export function blockScalesOf(
  of: string,
  given: unknown,
  inputs: { readonly [name: string]: TensorSpec },
  location: Location,
): BlockScales | undefined {
  if (given === undefined) return undefined;
  requireKnownOptions(`blockScales of ${of}`, given, ["a", "b"], "TW1033", location);
  const { a, b } = given as { readonly a?: unknown; readonly b?: unknown };
  const taken = Object.values(blockScaleNames).find((name) => Object.hasOwn(inputs, name));
  if (taken !== undefined) throw nameTaken(taken, "the scales of blocks", location);
  return {
    a: spanOf(a, 1, `a: [rows, ${scaledDepth}]`, of, location),
    b: spanOf(b, 0, `b: [${scaledDepth}, columns]`, of, location),
  };
}

function spanOf(
  given: unknown,
  alongK: 0 | 1,
  expected: string,
  of: string,
  location: Location,
): number {
  const block: readonly unknown[] = Array.isArray(given) ? given : [];
  const span = block[1 - alongK];
  const isSpan =
    typeof span === "number" &&
    (span === 1 || (Number.isSafeInteger(span) && span % leastSpan === 0));
  if (block.length === 2 && block[alongK] === scaledDepth && isSpan && span > 0) return span;
  throw refused(
    "TW9902",
    `${of} has no such blocks`,
    `${expected} with 1 or a multiple of ${leastSpan}`,
    optionText(given),
    location,
  );
}

/** The arrays of scales, by their names. */
export function blockScaleSpecs(
  scales: BlockScales,
  { m, n, k }: { readonly m: Size; readonly n: Size; readonly k: Size },
  batches: Batches,
): { readonly [name: string]: TensorSpec } {
  return scaleSpecs(scales, { m, n, blocks: ceilDivSize(k, scaledDepth) }, batches);
}

interface Batches {
  readonly a: Size | undefined;
  readonly b: Size | undefined;
}

function scaleSpecs(
  scales: BlockScales,
  { m, n, blocks }: { readonly m: Size; readonly n: Size; readonly blocks: Size },
  batches: Batches,
): { readonly [name: string]: TensorSpec } {
  const specOf = (name: "a" | "b", extent: Size): TensorSpec => {
    const batch = batches[name];
    const rows = scales[name] === 1 ? extent : ceilDivSize(extent, scales[name]);
    return tensor(dtypes.f32, [...(batch === undefined ? [] : [batch]), rows, blocks]);
  };
  return { [blockScaleNames.a]: specOf("a", m), [blockScaleNames.b]: specOf("b", n) };
}

/** The same in the dimensions of a kernel. */
export function blockScaleInputs(
  { blockScales, batched }: ScaledProblem,
  dimensions: ProductDimensions,
  blocks: Size = ceilDivSize(dimensions.k, scaledDepth),
): { readonly [name: string]: TensorSpec } {
  if (blockScales === undefined) return {};
  const batchOf = (name: "a" | "b") => (batched[name] ? dimensions.batch : undefined);
  const own = { m: dimensions.m, n: dimensions.n, blocks };
  return scaleSpecs(blockScales, own, { a: batchOf("a"), b: batchOf("b") });
}

/** What of a product says where its scales are. */
export interface ScaledProblem {
  readonly blockScales: BlockScales | undefined;
  readonly batched: { readonly a: boolean; readonly b: boolean };
}

/** Rows of a, or columns of b, of a product: which matrix they are of, the first of them and how many. */
export interface ScaledPart {
  readonly operand: "a" | "b";
  readonly batch: Scalar<"i32">;
  readonly start: Scalar<"i32">;
  readonly count: number;
}

/** The scales of a tile's rows and columns in a block of k. */
export type StepScales = {
  readonly rows: readonly Tile<"f32">[];
  readonly columns: readonly Tile<"f32">[];
};

/** The scales of a part in a block of k, by its number: one number for all, one for each, or one for each of some equal parts; none where blocks have none. */
export function partScales(
  problem: ScaledProblem,
  argument: object,
  part: ScaledPart,
  block: Scalar<"i32">,
): readonly Tile<"f32">[] {
  const span = problem.blockScales?.[part.operand];
  if (span === undefined) return [];
  const own = scalesOf(problem, argument, part);
  return loadedScales(span, part, (rows, count) => own.at(slice(rows, count), block).load());
}

/** What lies in rows of scales, of all rows of a part or of the equal parts of it. */
function loadedScales(
  span: number,
  { start, count }: Pick<ScaledPart, "start" | "count">,
  load: (row: Scalar<"i32">, count: number) => Tile<"f32">,
): readonly Tile<"f32">[] {
  if (span === 1) return [load(start, count)];
  const shared = sharedColumns(span, count);
  return Array.from({ length: count / shared }, (_, part) =>
    load(start.add(part * shared).div(span), 1),
  );
}

function scalesOf(
  { batched }: ScaledProblem,
  argument: object,
  { operand, batch }: Pick<ScaledPart, "operand" | "batch">,
): Ref<"f32"> {
  const all = scaleRef(argument, blockScaleNames[operand]);
  return batched[operand] ? all.at(batch) : all;
}

function scaleRef(argument: object, name: string): Ref<"f32"> {
  const found = (argument as { readonly [name: string]: Ref<"f32"> | undefined })[name];
  if (found === undefined) throw new Error(`the kernel has no ${name}`);
  return found;
}

/** Blocks of k whose scales are copied at once: rows of 16 bytes, the least that TMA takes. */
export const blocksTogether = 4;

/** Rows of scales in a slot where rows share one: more than a tile needs, for slots to begin at multiples of 128 bytes. */
const sharedRows = 8;

/** Bytes of a slot for the scales of a row or column, at most. */
export const scaleSlotBytes = 4 * blocksTogether;

/** Whether scales travel with what they belong to: rows of them have to begin at multiples of 16 bytes. */
export function scalesTravel(
  { blockScales }: Pick<ScaledProblem, "blockScales">,
  k: number,
): boolean {
  return blockScales !== undefined && Math.ceil(k / scaledDepth) % blocksTogether === 0;
}

/** Slots for the scales of tiles of so many rows of a and columns of b. */
export function scaleSlots(
  { blockScales }: Pick<ScaledProblem, "blockScales">,
  stages: number,
  counts: { readonly a: number; readonly b: number },
): { readonly [name: string]: ReturnType<typeof smem> } {
  return Object.fromEntries(
    (["a", "b"] as const).map((operand) => [
      tilesName(blockScaleNames[operand]),
      smem(dtypes.f32, [stages, slotRows(blockScales, operand, counts[operand]), blocksTogether]),
    ]),
  );
}

function slotRows(scales: BlockScales | undefined, operand: "a" | "b", count: number): number {
  return scales?.[operand] === 1 ? count : sharedRows;
}

/** Starts the copy of the scales of a tile's rows or columns in a block of k, and of those beside it. */
export function copyScales(
  problem: ScaledProblem,
  argument: object,
  part: ScaledPart,
  block: Scalar<"i32">,
  slot: Scalar<"i32">,
  landed: { readonly barrier: Barrier },
): void {
  const { operand, start, count } = part;
  const span = problem.blockScales?.[operand] ?? 1;
  const rows = slice(start.div(span), slotRows(problem.blockScales, operand, count));
  const blocks = slice(block.div(blocksTogether).mul(blocksTogether), blocksTogether);
  copyAsync(
    scalesOf(problem, argument, part).at(rows, blocks),
    scaleRef(argument, tilesName(blockScaleNames[operand])).at(slot),
    landed,
  );
}

/** The scales of a part, of a tile that begins at a place, from the slot that they came to. */
export function slotScales(
  problem: ScaledProblem,
  argument: object,
  part: ScaledPart & { readonly tile: Scalar<"i32"> },
  block: Scalar<"i32">,
  slot: Scalar<"i32">,
): readonly Tile<"f32">[] {
  const { operand, tile } = part;
  const span = problem.blockScales?.[operand] ?? 1;
  const own = scaleRef(argument, tilesName(blockScaleNames[operand])).at(slot);
  const first = tile.div(span);
  const place = block.rem(blocksTogether);
  return loadedScales(span, part, (row, count) =>
    own.at(slice(row.sub(first), count), place).load(),
  );
}

/** A product of a block of k, times scales along its rows and its columns, added to sums. */
export function addScaled(
  sums: Tile<"f32">,
  product: Tile<"f32">,
  { rows, columns }: StepScales,
): Tile<"f32"> {
  const [height = 1, width = 1] = product.shape;
  const [down, across] = [spread(rows, height), spread(columns, width)];
  if (down === undefined || across === undefined) return sums.add(product);
  const scales = down
    .reshape([down.shape[0] ?? 1, 1])
    .mul(across.reshape([1, across.shape[0] ?? 1]));
  return product.fma(scales, sums);
}

/** The scales of so many rows or columns, as one tile. */
function spread(parts: readonly Tile<"f32">[], count: number): Tile<"f32"> | undefined {
  if (parts.length < 2) return parts[0];
  const each = count / parts.length;
  return concatenate(
    parts.map((part) => part.broadcastTo([each])),
    { axis: 0 },
  );
}

/** Columns of tiles of so many that lie in one block, wherever it begins. */
function sharedColumns(span: number, columns: number): number {
  let [shared, rest] = [span, columns];
  while (rest > 0) [shared, rest] = [rest, shared % rest];
  return shared;
}

/** Parts of a tile with a scale each that registers suffice for. */
const mostParts = 3;

/** Whether tiles of so many columns lie in one block, or in parts of a few. */
export function suitsBlocks(
  { blockScales }: Pick<ScaledProblem, "blockScales">,
  columns: number,
  operand: "a" | "b",
): boolean {
  const span = blockScales?.[operand] ?? 1;
  return span === 1 || columns / sharedColumns(span, columns) <= mostParts;
}
