/**
 * Sparse weights: b has two of every four numbers along k, which tensor cores multiply twice as fast as all four. It is stored
 * as what it holds, and metadata that say where that belongs.
 *
 *   b          values of [n, 32 · cdiv(k, 64)]: columns of the weights one after the other, of every four elements along k
 *              the two that are held; what overhangs k is zero
 *   bMetadata  u16 of [cdiv(n, 64), cdiv(k, 64), 256]: for each 64 columns and 64 of k what the lanes of a warpgroup hold,
 *              lane by lane, so that a warp reads 128 bytes side by side
 *
 * Four bits stand for four elements: the index of the first one that is held in the low two, that of the second above it;
 * sixteen elements of a column make a word of 16 bits. Words are stored with 0x4444 exchanged: zero stands for the first
 * two elements of each four, so that what lies outside of the arrays, and is read as zero, is a matrix of zeros.
 * With g from 0 to 7, w and t from 0 to 3, p, h and c 0 or 1, the word
 *
 *   of 16 bits   at ((w · 8 + g) · 4 + t) · 2 + h              is that of column 16w + 8h + g, elements 16t and up
 *   of 8 bits    at (((w · 8 + g) · 2 + p) · 2 + h) · 2 + c    is that of column 16w + 8h + g, elements 16 (2p + c) and up
 *
 * Sparse matrices stand on the left of a product: A and B are swapped.
 */
import type { DType, DTypeName } from "../../../formats/dtype.ts";
import { dtypes } from "../../../formats/dtype.ts";
import { ceilDivSize, multiplySizes } from "../../../ir/size.ts";
import type { Size } from "../../../ir/size.ts";
import { tensor, slice } from "../../../lang/index.ts";
import type { TensorSpec, Ref, Scalar, Tile } from "../../../lang/index.ts";
import { TilewrightError } from "../../../support/diagnostics.ts";
import { atLocation, captureLocation } from "../../../support/location.ts";
import type { Location } from "../../../support/location.ts";
import { optionText } from "../../../support/options.ts";
import type { Target } from "../../../targets/target.ts";
import { nameTaken, refused } from "../argument-errors.ts";
import type { Operand } from "../problem.ts";

/** Columns, and elements along k, of a block of metadata. */
export const block = 64;
/** Elements of a block that are held, of each column. */
export const held = block / 2;
/** Words of a block. */
const words = 256;
/** Bytes of metadata for each column and block. */
export const metadataBytes = (words * 2) / block;
/** What the words are exchanged with. */
const firstTwo = 0x4444;

export const sparseFormats = ["bf16", "f16", "f8e4m3fn", "f8e5m2", "i8", "u8"] as const;
/** The formats that 2:4-sparse weights can have. */
export type SparseFormat = (typeof sparseFormats)[number];

/** Weights of which two of every four along k are there. */
export interface Sparse24Spec<D extends DTypeName = DTypeName> {
  /** Tells sparse weights from arrays. */
  readonly kind: "sparse24";
  /** The format of the elements. */
  readonly dtype: DType<D>;
  /** The shape with the zeros. */
  readonly shape: readonly [k: Size, n: Size];
}

/** Weights of [k, n] that hold two of every four elements along k. */
export function sparse24<D extends SparseFormat>(
  dtype: DType<D>,
  shape: readonly [k: Size, n: Size],
): Sparse24Spec<D> {
  const location = captureLocation();
  if (!sparseFormats.some((name) => dtypes[name] === dtype))
    throw refused(
      "TW9902",
      "sparse weights have no such format",
      sparseFormats.join(", "),
      Object.values<unknown>(dtypes).includes(dtype) ? dtype.name : optionText(dtype),
      location,
    );
  if (!Array.isArray(shape) || shape.length !== 2)
    throw refused("TW9902", "weights have another shape", "[k, n]", optionText(shape), location);
  // An array of this shape is refused where its sizes are none.
  atLocation(location, () => tensor(dtype, shape));
  return { kind: "sparse24", dtype, shape };
}

export function isSparse24(given: unknown): given is Sparse24Spec {
  return (
    typeof given === "object" && given !== null && "kind" in given && given.kind === "sparse24"
  );
}

/** Elements along k that are stored of a column. */
export function storedHalf(k: Size): Size {
  return multiplySizes(ceilDivSize(k, block), held);
}

export function metadataSpec(k: Size, n: Size): TensorSpec<"u16"> {
  return tensor(dtypes.u16, [ceilDivSize(n, block), ceilDivSize(k, block), words]);
}

/** The weights as they lie in memory, and what else is read of them. */
export function sparseOperand({ dtype, shape: [k, n] }: Sparse24Spec): Operand {
  return {
    spec: tensor(dtype, [n, storedHalf(k)]),
    ...{ batch: undefined, rows: k, columns: n, byRows: false },
  };
}

export const metadataName = "bMetadata";

/** Sparse weights are read as they are stored: nothing else may be asked of them. */
export function requireAlone(
  prologue: unknown,
  inputs: { readonly [name: string]: TensorSpec },
  location: Location,
): void {
  if (prologue !== undefined)
    throw refused(
      "TW9905",
      "products of sparse weights take no prologue",
      "no prologue, or an array for b",
      "both",
      location,
    );
  if (Object.hasOwn(inputs, metadataName))
    throw nameTaken(metadataName, "the metadata of weights", location);
}

/** There is one instruction for it. */
export function missingProduct({ name }: Target, location: Location): TilewrightError {
  return new TilewrightError({
    code: "TW6105",
    message: `matmul of sparse weights needs wgmma, which ${name} does not have`,
    location,
    expected: "sm_90a, or weights that are not sparse",
    found: name,
    remedy: "expand the weights with expand24, and multiply those",
  });
}

/** The shape of the metadata of a tile in shared memory. */
export function metadataTile(rows: number, depth: number): readonly number[] {
  return [rows / block, depth / block, words];
}

/** The metadata of a tile, from a column and a block along k on. */
export function metadataWindow(
  metadata: Ref,
  top: Scalar<"i32">,
  rows: number,
  from: Scalar<"i32">,
  depth: number,
): Ref {
  return metadata.at(slice(top.div(block), rows / block), slice(from, depth / block));
}

/** [blocks along k, 256] as stored of 64 columns: their metadata as tensor cores take them, [64, 4 · blocks]. */
export function unpackedMetadata(stored: Tile<"u16">, bits: number): Tile<"u16"> {
  const [blocks = 1] = stored.shape;
  const natural =
    bits === 8
      ? stored.reshape([blocks, 4, 8, 2, 2, 2]).transpose([1, 4, 2, 0, 3, 5])
      : stored.reshape([blocks, 4, 8, 4, 2]).transpose([1, 4, 2, 0, 3]);
  return natural.reshape([block, 4 * blocks]).xor(firstTwo);
}

/** The reverse. */
export function packedMetadata(metadata: Tile<"u16">, bits: number): Tile<"u16"> {
  const blocks = (metadata.shape[1] ?? 4) / 4;
  const stored =
    bits === 8
      ? metadata.reshape([4, 2, 8, blocks, 2, 2]).transpose([3, 0, 2, 4, 1, 5])
      : metadata.reshape([4, 2, 8, blocks, 4]).transpose([3, 0, 2, 4, 1]);
  return stored.reshape([blocks, words]).xor(firstTwo);
}
