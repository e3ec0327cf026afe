/** Inference for tensor memory: its tiles, what moves them, and products that add up in it. */
import type { DType } from "../../formats/dtype.ts";
import { productInstructions } from "../../targets/product-instructions.ts";
import { scaleFormats } from "../../targets/scaled-products.ts";
import type { ProductInstruction } from "../../targets/product-instructions.ts";
import { warpsPerGroup } from "../../targets/target.ts";
import { tmemShapeNamed, tmemShapes } from "../ops/tensor-memory.ts";
import type { tensorMemoryOps, TmemShape } from "../ops/tensor-memory.ts";
import { sameShape, shapeText } from "../size.ts";
import { refType, tileType, typeText } from "../types.ts";
import type { RefType, Type } from "../types.ts";
import {
  fail,
  isPositiveInteger,
  refOperand,
  requireBool,
  requireSpace,
  requireTileShape,
  scalarOperand,
  staticShape,
  tileOperand,
} from "./checks.ts";
import type { Draft, InferContext, InferRules } from "./inference-input.ts";
import { dotAccumulators, operandsText } from "./matrix.ts";
import { requireMulticast, requirePair } from "./block-pairs.ts";
import { hasHalves } from "./memory.ts";
import { requireBarrierIndex } from "./synchronization.ts";
import { checkScaledProduct, copyScales } from "./tensor-memory-scales.ts";

const instruction: ProductInstruction = productInstructions.tcgen05;

/** The formats that products in tensor memory can add up in; none where they do not take the operands. */
export function tcgen05Accumulators(left: DType, right: DType): ReturnType<typeof dotAccumulators> {
  return instruction.factors.includes(left.name) && left.bits >= 8
    ? dotAccumulators(left, right)
    : [];
}

/** Elements of a format that share a column of 32 bits. */
export function tmemPacking({ bits }: DType, packed: boolean): number {
  return packed ? 32 / bits : 1;
}

function allocScales(draft: Draft<"alloc_tmem" | "tmem_member">): readonly Type[] {
  const { dtype, shape, packed = false, halves = false, pair = false } = draft.attributes;
  const [rows = 0, columns = 0] = shape.slice(-2);
  if (halves && (!pair || rows !== 256))
    fail(draft, "TW2301", "scales in halves are those of b of a pair of blocks", {
      expected: "[256, blocks], { pair: true }",
      found: `${shapeText(shape)}${pair ? "" : " of one block"}`,
    });
  const fits = shape.length >= 2 && shape.every(isPositiveInteger) && !packed;
  if (!fits || rows % 128 !== 0 || columns % 4 !== 0 || !scaleFormats.includes(dtype.name))
    fail(
      draft,
      "TW2301",
      `tensor memory cannot hold scales of ${dtype.name}, ${shapeText(shape)}`,
      {
        expected: `[…, rows, blocks], multiples of 128 and 4, of ${scaleFormats.join(" or ")}`,
        found: `${shapeText(shape)} of ${dtype.name}`,
      },
    );
  return [refType("tmem", dtype, shape)];
}

/** What describes tiles of tensor memory. */
export interface TmemTiles {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly packed?: boolean | undefined;
  readonly scales?: boolean | undefined;
  readonly halves?: boolean | undefined;
  readonly pair?: boolean | undefined;
}

/** Columns of 32 bits that all of the tiles take. */
export function tmemColumnCount({ dtype, shape, packed = false, ...how }: TmemTiles): number {
  const [rows = 0, columns = 0] = shape.slice(-2);
  const tiles = shape.slice(0, -2).reduce((count, each) => count * each, 1);
  if (how.scales === true) return tiles * (how.halves === true ? 1 : rows / 128) * columns;
  // Each half of the lanes has half of the columns of a pair's sums.
  const halves = how.pair === true && rows === 64 && !packed ? 2 : 1;
  return (tiles * columns) / tmemPacking(dtype, packed) / halves;
}

function allocTmem(draft: Draft<"alloc_tmem" | "tmem_member">): readonly Type[] {
  const { dtype, shape, packed = false, scales = false } = draft.attributes;
  if (scales) return allocScales(draft);
  const [rows = 0, columns = 0] = shape.slice(-2);
  const packing = tmemPacking(dtype, packed);
  const fits =
    shape.length >= 2 &&
    shape.every(isPositiveInteger) &&
    instruction.shape.rows.includes(rows) &&
    columns % packing === 0 &&
    dtype.bits <= 32 &&
    (dtype.bits >= 8 || packed);
  if (!fits)
    fail(draft, "TW2301", `tensor memory cannot hold ${dtype.name} of shape ${shapeText(shape)}`, {
      expected: `[…, rows, columns] with ${instruction.shape.rows.join(" or ")} rows${packing > 1 ? ` and a multiple of ${packing} columns` : ""}, of 8 to 32 bits, or packed`,
      found: `${shapeText(shape)} of ${dtype.name}`,
    });
  return [refType("tmem", dtype, shape)];
}

/** The rows that each shape of an access can have. */
const accessRows: { readonly [S in TmemShape]: readonly number[] } = {
  "32x32b": [128],
  "16x64b": [64, 128],
  "16x128b": [64, 128],
  "16x256b": [64, 128],
  "16x32bx2": [64, 128],
};

/** Columns of 32 bits that the registers of one instruction reach at least. */
export const accessColumns: { readonly [S in TmemShape]: number } = {
  "32x32b": 1,
  "16x64b": 2,
  "16x128b": 4,
  "16x256b": 8,
  "16x32bx2": 2,
};

/** The shape of an access that says none: a row to each lane, or what 64 rows have instead. */
export function usualTmemShape(rows: number): TmemShape {
  return rows === 128 ? "32x32b" : "16x256b";
}

/** Columns that are moved together, side by side as often as there are any: the greatest power of two that divides them. */
export function tmemPart(columns: number): number {
  return columns & -columns;
}

/** The shape of the tile that is moved. */
function accessed(
  draft: Draft<"tmem_load" | "tmem_store">,
  ref: RefType,
  { warps }: InferContext,
): readonly number[] {
  requireSpace(draft, "the window", ref, ["tmem"]);
  const shape = staticShape(draft, ref);
  requireTileShape(draft, shape);
  const [rows = 0] = shape;
  const columns = shape.at(-1) ?? 0;
  const { shape: stated } = draft.attributes;
  const by = tmemShapeNamed(stated ?? usualTmemShape(rows));
  if (by === undefined)
    return fail(draft, "TW2306", `${stated ?? ""} is no shape of accesses to tensor memory`, {
      expected: tmemShapes.join(", "),
      found: stated ?? "none",
    });
  // Of 8 and 16 bits a lane has whole words.
  const groups = Math.max(1, warps / warpsPerGroup);
  const least = groups * accessColumns[by] * Math.max(1, 32 / ref.dtype.bits);
  // Several warpgroups divide a power of two; one alone takes others part by part.
  const part = tmemPart(columns);
  const fits = part >= least && (part === columns || groups === 1);
  const isTile = shape.length === 2 || (shape.length === 3 && hasHalves(ref));
  if (!isTile || !accessRows[by].includes(rows) || !fits)
    fail(draft, "TW2306", `${by} does not move ${typeText(ref)}`, {
      expected: `[${accessRows[by].join(" or ")}, columns], ${least} columns or more, ${groups === 1 ? `a multiple of ${least}` : "a power of two"}`,
      found: shapeText(shape),
    });
  if (warps < warpsPerGroup)
    fail(
      draft,
      "TW2307",
      `each warp reaches a quarter of tensor memory, and threads have ${warps} warps`,
      {
        expected: `threads of ${warpsPerGroup} warps or more`,
        found: String(warps),
      },
    );
  return shape;
}

function mma(draft: Draft<"tcgen05_mma">, context: InferContext): readonly Type[] {
  const { operands } = draft;
  if (draft.attributes.pair === true) requirePair(draft, context);
  const sums = refOperand(draft, "the sums", operands.sums);
  const a = refOperand(draft, "the left factor", operands.a);
  const b = refOperand(draft, "the right factor", operands.b);
  requireSpace(draft, "the sums", sums, ["tmem"]);
  requireSpace(draft, "the left factor", a, ["smem", "tmem"]);
  requireSpace(draft, "the right factor", b, ["smem"]);
  const isScaled = operands.aScales !== undefined || operands.bScales !== undefined;
  const accumulators = isScaled ? ["f32"] : tcgen05Accumulators(a.dtype, b.dtype);
  if (!accumulators.includes(sums.dtype.name))
    fail(
      draft,
      "TW2303",
      `tcgen05Mma does not multiply ${a.dtype.name} by ${b.dtype.name} into ${sums.dtype.name}`,
      {
        expected: accumulators.join(" or ") || operandsText(tcgen05Accumulators),
        found: accumulators.length > 0 ? sums.dtype.name : `${a.dtype.name} and ${b.dtype.name}`,
      },
    );
  checkShapes(
    draft,
    [sums, a, b].map((each) => staticShape(draft, each)),
    a,
  );
  if (isScaled) checkScaledProduct(draft, { a, b, sums });
  const { adds } = operands;
  if (adds !== undefined) requireBool(draft, "adds", scalarOperand(draft, "adds", adds).dtype);
  return [];
}

function checkShapes(
  draft: Draft<"tcgen05_mma">,
  [sums = [], a = [], b = []]: readonly (readonly number[])[],
  left: RefType,
): void {
  const { pair = false } = draft.attributes;
  const [m = 0, n = 0] = sums;
  const [k = 0] = b;
  // Of a pair each block has half of the columns of b.
  const own = pair ? n / 2 : n;
  if (!sameShape(a, [m, k]) || !sameShape(b, [k, own]) || sums.length !== 2)
    fail(draft, "TW2304", "shapes of tcgen05Mma do not fit together", {
      expected: `[m, k] by [k, ${pair ? "n / 2" : "n"}] for sums of ${shapeText(sums)}`,
      found: `${shapeText(a)} by ${shapeText(b)}`,
    });
  const grain = columnsOf(left, m, pair);
  const depth = instruction.shape.depthBits / left.dtype.bits;
  const most = pair ? instruction.shape.mostColumns : Infinity;
  if (!instruction.shape.rows.includes(m) || n % grain !== 0 || k % depth !== 0 || n > most)
    fail(
      draft,
      "TW2305",
      `tcgen05Mma has no product ${m} × ${n} × ${k}${pair ? " of a pair" : ""}`,
      {
        expected: `${instruction.shape.rows.join(" or ")} rows, a multiple of ${grain} columns${pair ? ` up to ${most}` : ""}, and of ${depth} elements of k`,
        found: `[${m}, ${k}] by [${k}, ${own}]`,
      },
    );
}

/** What the columns of a product are a multiple of. */
function columnsOf({ dtype, space }: RefType, rows: number, pair: boolean): number {
  const narrow = dtype.kind !== "float" || (pair && space === "tmem");
  const single = rows === 128 || narrow ? 16 : 8;
  return pair ? (narrow ? 32 : 16) : single;
}

export const tensorMemoryRules: InferRules<keyof typeof tensorMemoryOps> = {
  alloc_tmem(draft, context) {
    if (draft.attributes.pair === true) requirePair(draft, context);
    return allocTmem(draft);
  },

  tmem_member(draft, context) {
    const { column, pair } = draft.attributes;
    if (pair === true) requirePair(draft, context);
    const union = refOperand(draft, "the union", draft.operands.union);
    requireSpace(draft, "the union", union, ["tmem"]);
    const [, columns = 0] = staticShape(draft, union);
    const member = allocTmem(draft);
    const end = column + tmemColumnCount(draft.attributes);
    if (!Number.isInteger(column) || column < 0 || end > columns)
      fail(draft, "TW2051", "the member lies outside its union", {
        expected: `columns from 0 to ${columns}`,
        found: `columns from ${column} to ${end}`,
      });
    return member;
  },

  tmem_load(draft, context) {
    const ref = refOperand(draft, "the window", draft.operands.ref);
    return [tileType(ref.dtype, accessed(draft, ref, context))];
  },

  tmem_store(draft, context) {
    const ref = refOperand(draft, "the window", draft.operands.ref);
    const value = tileOperand(draft, "the value", draft.operands.value);
    const shape = accessed(draft, ref, context);
    if (value.dtype !== ref.dtype || !sameShape(value.shape, shape))
      fail(draft, "TW2043", "store of a value of another type than the window", {
        expected: `${ref.dtype.name}, ${shapeText(shape)}`,
        found: typeText(value),
      });
    return [];
  },

  tcgen05_mma: mma,
  tcgen05_copy: copyScales,

  tcgen05_commit(draft, context) {
    requireBarrierIndex(draft, draft.operands.barrier, draft.operands.index);
    requireMulticast(draft, draft.attributes.multicast ?? [], context);
    return [];
  },
};
