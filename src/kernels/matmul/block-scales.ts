/**
 * FP8 whose blocks have scales of f32, as DeepSeek's models are published: sums over 128 of k are multiplied by the scales of both operands
 * as they are added to others in f32, which they are anyway where sums are promoted.
 *
 *   a [m, k]   in blocks of 1 × 128      aScale [m, ⌈k / 128⌉]
 *   b [k, n]   in blocks of 128 × 128    bScale [⌈n / 128⌉, ⌈k / 128⌉]
 *
 *   out[i, j] = Σ over blocks of k   aScale[i, block] · bScale[j / 128, block] · (Σ over the block  a[i, k] · b[k, j])
 *
 * A thread reads the scales of its rows and columns from memory before it waits for what they belong to. Those of columns are one number
 * where a block of them holds the whole tile, as it does up to 128 columns.
 */
import { dtypes } from "../../formats/dtype.ts";
import { ceilDivSize } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { slice, tensor } from "../../lang/index.ts";
import type { Ref, Scalar, TensorSpec, Tile } from "../../lang/index.ts";
import type { Location } from "../../support/location.ts";
import { optionText, requireKnownOptions } from "../../support/options.ts";
import { nameTaken, refused } from "./argument-errors.ts";
import type { ProductDimensions } from "./dimensions.ts";

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
  batches: { readonly a: Size | undefined; readonly b: Size | undefined },
): { readonly [name: string]: TensorSpec } {
  const specOf = (name: "a" | "b", extent: Size): TensorSpec => {
    const batch = batches[name];
    const rows = scales[name] === 1 ? extent : ceilDivSize(extent, scales[name]);
    return tensor(dtypes.f32, [
      ...(batch === undefined ? [] : [batch]),
      rows,
      ceilDivSize(k, scaledDepth),
    ]);
  };
  return { [blockScaleNames.a]: specOf("a", m), [blockScaleNames.b]: specOf("b", n) };
}

/** The same in the dimensions of a kernel. */
export function blockScaleInputs(
  { blockScales, batched }: ScaledProblem,
  dimensions: ProductDimensions,
): { readonly [name: string]: TensorSpec } {
  if (blockScales === undefined) return {};
  const batchOf = (name: "a" | "b") => (batched[name] ? dimensions.batch : undefined);
  return blockScaleSpecs(blockScales, dimensions, { a: batchOf("a"), b: batchOf("b") });
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

/** The scales of a part in the block of k that a place lies in: one number for all, or one for each. */
export function partScales(
  { blockScales, batched }: ScaledProblem,
  argument: object,
  { operand, batch, start, count }: ScaledPart,
  along: Scalar<"i32">,
): Tile<"f32"> | undefined {
  if (blockScales === undefined) return undefined;
  const named = argument as { readonly [name: string]: Ref<"f32"> | undefined };
  const all = named[blockScaleNames[operand]];
  if (all === undefined) throw new Error(`the kernel has no scales of ${operand}`);
  const own = batched[operand] ? all.at(batch) : all;
  const span = blockScales[operand];
  const window = span === 1 ? slice(start, count) : slice(start.div(span), 1);
  return own.at(window, along.div(scaledDepth)).load();
}

/** A product of a block of k, times scales along its rows and its columns, added to sums. */
export function addScaled(
  sums: Tile<"f32">,
  product: Tile<"f32">,
  rows: Tile<"f32"> | undefined,
  columns: Tile<"f32"> | undefined,
): Tile<"f32"> {
  if (rows === undefined || columns === undefined) return sums.add(product);
  const down = rows.reshape([rows.shape[0] ?? 1, 1]);
  const across = columns.reshape([1, columns.shape[0] ?? 1]);
  return product.fma(down.mul(across), sums);
}

/** Whether no tile of so many columns lies in two blocks. */
export function suitsBlocks(
  { blockScales }: Pick<ScaledProblem, "blockScales">,
  columns: number,
  operand: "a" | "b",
): boolean {
  const span = blockScales?.[operand] ?? 1;
  return span === 1 || span % columns === 0;
}
