/**
 * Which products of matrices PTX has for sm_80 to sm_90a, by the type of A:
 *
 * | A          | B           | C and D   | mma (m16n8)       | mma (m8n8) | mma.sp (m16n8) | wgmma | wgmma.sp |
 * |------------|-------------|-----------|-------------------|------------|----------------|-------|----------|
 * | f16        | the same    | f32, f16  | k8, k16           |            | k16, k32       | k16   | k32      |
 * | bf16       | the same    | f32       | k8, k16           |            | k16, k32       | k16   | k32      |
 * | tf32       | the same    | f32       | k4, k8            |            | k8, k16        | k8    | k16      |
 * | e4m3, e5m2 | either      | f32, f16  | k16, k32          |            | k64, f32 only  | k32   | k64      |
 * | s8, u8     | either      | s32       | k16, k32          | k16        | k32, k64       | k32   | k64      |
 * | s4, u4     | either      | s32       | k32, k64          | k32        | k64, k128      |       |          |
 * | b1         | the same    | s32       | k128, k256        | k128       |                | k256  |          |
 */
import type { TensorCoreUnit } from "../../formats/arithmetic/tensor-core.ts";
import type { OperandType, ProductForm } from "./multiply.ts";

/** Whose product it is, and whether its A is sparse. */
export interface ProductKind {
  readonly unit: TensorCoreUnit;
  readonly sparse: boolean;
}

export interface ProductShape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

interface Family {
  readonly partners: readonly OperandType[];
  readonly accumulators: readonly ProductForm["accumulator"][];
  readonly bits: 1 | 4 | 8 | 16 | 32;
  /** k of the shapes with 16 rows, with 8 rows, and with 16 rows and a sparse A. */
  readonly rows16: readonly number[];
  readonly rows8: readonly number[];
  readonly sparse: readonly number[];
}

const small: Family = {
  partners: ["e4m3", "e5m2"],
  accumulators: ["f32", "f16"],
  bits: 8,
  rows16: [16, 32],
  rows8: [],
  sparse: [64],
};
const bytes: Family = {
  partners: ["s8", "u8"],
  accumulators: ["s32"],
  bits: 8,
  rows16: [16, 32],
  rows8: [16],
  sparse: [32, 64],
};
const nibbles: Family = {
  partners: ["s4", "u4"],
  accumulators: ["s32"],
  bits: 4,
  rows16: [32, 64],
  rows8: [32],
  sparse: [64, 128],
};
const halves = { bits: 16, rows16: [8, 16], rows8: [], sparse: [16, 32] } as const;

const families: { readonly [T in OperandType]: Family } = {
  f16: { ...halves, partners: ["f16"], accumulators: ["f32", "f16"] },
  bf16: { ...halves, partners: ["bf16"], accumulators: ["f32"] },
  tf32: {
    partners: ["tf32"],
    accumulators: ["f32"],
    bits: 32,
    rows16: [4, 8],
    rows8: [],
    sparse: [8, 16],
  },
  e4m3: small,
  e5m2: small,
  s8: bytes,
  u8: bytes,
  s4: nibbles,
  u4: nibbles,
  b1: {
    partners: ["b1"],
    accumulators: ["s32"],
    bits: 1,
    rows16: [128, 256],
    rows8: [128],
    sparse: [],
  },
};

export function operandBits(type: OperandType): number {
  return families[type].bits;
}

function hasShape(
  { unit, sparse }: ProductKind,
  { rows16, rows8, sparse: sparseDepths, bits, accumulators }: Family,
  { m, n, k }: ProductShape,
): boolean {
  if (unit === "warp" && sparse) return n === 8 && m === 16 && sparseDepths.includes(k);
  if (unit === "warp") return n === 8 && (m === 16 ? rows16 : m === 8 ? rows8 : []).includes(k);
  const anyColumns = !accumulators.includes("s32") || n <= 32 || n % 16 === 0;
  const depth = sparse ? 512 : 256;
  const fits = m === 64 && n >= 8 && n <= 256 && n % 8 === 0 && k * bits === depth;
  return fits && anyColumns && bits !== 4 && (!sparse || bits !== 1);
}

/** Whether PTX has the product. */
export function isProduct(kind: ProductKind, form: ProductForm, shape: ProductShape): boolean {
  const family = families[form.a];
  const { accumulator, bits, saturates } = form;
  if (!family.partners.includes(form.b) || !family.accumulators.includes(accumulator)) return false;
  if (kind.unit === "warp" && kind.sparse && family === small && accumulator !== "f32")
    return false;
  if (kind.unit === "warpgroup" && form.a === "b1" && bits !== "and") return false;
  if (saturates && (accumulator !== "s32" || form.a === "b1")) return false;
  return hasShape(kind, family, shape);
}

const largeShapes = ["m16n16k16", "m8n32k16", "m32n8k16"];

const wmmaShapes: { readonly [type: string]: readonly string[] } = {
  f16: largeShapes,
  bf16: largeShapes,
  s8: largeShapes,
  u8: largeShapes,
  tf32: ["m16n16k8"],
  f64: ["m8n8k4"],
  s4: ["m8n8k32"],
  u4: ["m8n8k32"],
  b1: ["m8n8k128"],
};

const wmmaSums: { readonly [type: string]: readonly string[] } = {
  f16: ["f16", "f32"],
  bf16: ["f32"],
  tf32: ["f32"],
  f64: ["f64"],
  s8: ["s32"],
  u8: ["s32"],
  s4: ["s32"],
  u4: ["s32"],
  b1: ["s32"],
};

/** Whether `wmma` has matrices of a type in a shape, as A or B, or as C and D. */
export function isWmmaMatrix(role: string, type: string, { m, n, k }: ProductShape): boolean {
  const shape = `m${m}n${n}k${k}`;
  const operands = Object.keys(wmmaShapes).filter((known) => wmmaShapes[known]?.includes(shape));
  if (role === "a" || role === "b") return operands.includes(type);
  return operands.some((known) => wmmaSums[known]?.includes(type));
}

/** Whether `wmma.mma` has a product with these types of D, A, B and C. */
export function isWmmaProduct(types: readonly string[], { m, n, k }: ProductShape): boolean {
  const [d = "", a = "", b = "", c = ""] = types;
  const sums = wmmaSums[a] ?? [];
  const known = wmmaShapes[a]?.includes(`m${m}n${n}k${k}`) === true;
  return known && a === b && sums.includes(d) && sums.includes(c);
}
