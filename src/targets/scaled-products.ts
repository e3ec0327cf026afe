/**
 * Products whose blocks along k have scales, as Blackwell's tensor cores make them: which factors and scales each kind takes, and how many elements of k
 * an instruction does.
 *
 *   | kind     | factors                     | scales, for blocks of    | k  | scales of an instruction |
 *   |----------|-----------------------------|--------------------------|----|--------------------------|
 *   | mxf8f6f4 | FP8, FP6, FP4, any two      | e8m0, 32                 | 32 | 1                        |
 *   | mxf4     | FP4                         | e8m0, 32                 | 64 | 2                        |
 *   | mxf4nvf4 | FP4                         | e4m3, 16; e8m0, 16       | 64 | 4                        |
 */
import type { DType, DTypeName } from "../formats/dtype.ts";
import type { TermFormat } from "../formats/arithmetic/tensor-core-terms.ts";

export interface ScaledKind {
  /** As opcodes have it behind `kind::`. */
  readonly name: "mxf8f6f4" | "mxf4" | "mxf4nvf4";
  readonly factors: readonly NarrowFactor[];
  readonly scales: "f8e8m0fnu" | "f8e4m3fn";
  /** Elements along k that share a scale. */
  readonly block: 16 | 32;
  /** Elements of k of one instruction. */
  readonly depth: 32 | 64;
}

export type NarrowFactor = Exclude<TermFormat, "f16" | "bf16" | "tf32">;

const four: readonly NarrowFactor[] = ["f4e2m1fn"];
const narrow: readonly NarrowFactor[] = ["f8e4m3fn", "f8e5m2", "f6e2m3fn", "f6e3m2fn", ...four];

export const scaledKinds: readonly ScaledKind[] = Object.freeze([
  { name: "mxf4", factors: four, scales: "f8e8m0fnu", block: 32, depth: 64 },
  { name: "mxf4nvf4", factors: four, scales: "f8e4m3fn", block: 16, depth: 64 },
  { name: "mxf4nvf4", factors: four, scales: "f8e8m0fnu", block: 16, depth: 64 },
  { name: "mxf8f6f4", factors: narrow, scales: "f8e8m0fnu", block: 32, depth: 32 },
]);

/** The formats that scales of blocks have. */
export const scaleFormats: readonly DTypeName[] = ["f8e8m0fnu", "f8e4m3fn"];

/** The elements that share a scale of a format where nothing else is said. */
export function usualBlock(scales: DTypeName): number {
  return scales === "f8e4m3fn" ? 16 : 32;
}

/** The kind that multiplies two formats with scales; undefined where none does. The first of several takes most of k at once. */
export function scaledKind(
  a: DType,
  b: DType,
  scales: DType,
  block: number,
): ScaledKind | undefined {
  return scaledKinds.find(
    (kind) =>
      kind.scales === scales.name &&
      kind.block === block &&
      [a, b].every(({ name }) => kind.factors.some((each) => each === name)),
  );
}

/** Scales of a row in one instruction. */
export function scalesOfStep({ depth, block }: ScaledKind): number {
  return depth / block;
}

/** The name of a narrow factor's format. */
export function narrowName({ name }: DType): NarrowFactor {
  const found = narrow.find((each) => each === name);
  if (found === undefined) throw new Error(`${name} has no scales`);
  return found;
}

/** The format of scales as instructions name it: without a sign. */
export function scaleFormatOf({ scales }: ScaledKind): "ue4m3" | "ue8m0" {
  return scales === "f8e4m3fn" ? "ue4m3" : "ue8m0";
}

/** Why fragments of warps do not make a product of such a shape. */
export function scaledFragmentProblem(
  { depth, scales, block }: ScaledKind,
  [m, n, k]: readonly [m: number, n: number, k: number],
): string | undefined {
  if (block === 16 && scales === "f8e8m0fnu")
    return `it has no scales of ${scales} for each ${block}`;
  return m % 16 === 0 && n % 8 === 0 && k % depth === 0
    ? undefined
    : `[${m}, ${k}] by [${k}, ${n}] does not consist of fragments 16 × 8 × ${depth}`;
}
