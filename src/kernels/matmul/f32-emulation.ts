/**
 * How a product is made of products of tensor cores. Most are one of them; one of f32 is several, of parts of each operand
 * (`splitTile`), the smallest first:
 *
 *   bf16x3   a = a0 + a1        a1·b0 + a0·b1 + a0·b0                                                16 bits of each
 *   bf16x6   a = a0 + a1 + a2   a2·b0 + a1·b1 + a0·b2 + …                                            as good as f32
 *   bf16x9   likewise           all nine: every product of f32 numbers exactly
 *
 * Tensor cores cut sums off instead of rounding them, and FP8 ones early. Where a product is *promoted*, what they sum is
 * short, and is added to sums in f32, rounded to nearest.
 */
import type { DType } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { splitTerms } from "../../lang/index.ts";
import type { SplitPrecision } from "../../lang/index.ts";
import { multipliedFormat } from "./problem.ts";
import type { MatmulProblem } from "./problem.ts";
import type { ProductInstruction, ProductMemory } from "../../targets/product-instructions.ts";

/** Which part of a is multiplied with which of b. */
export type Term = readonly [a: number, b: number];

export interface Recipe {
  /** Who issues its instructions: a warpgroup, or a warp, which alone multiplies f64. */
  readonly issuer: ProductInstruction["issuer"];
  /** In which tensor cores read the operands. */
  readonly a: DType;
  readonly b: DType;
  /** How operands are split; undefined where they are taken as they are. */
  readonly split: SplitPrecision | undefined;
  /** Parts that each operand is the sum of. */
  readonly parts: number;
  /** The products, in this order. */
  readonly terms: readonly Term[];
  readonly promoted: boolean;
  /** Whether elements must lie together along k. */
  readonly alongK: boolean;
}

/** Those that were found: a choice among configurations asks for a problem's again and again. */
const known = new WeakMap<MatmulProblem, Recipe>();

/** Undefined where tensor cores have no such product. */
export function recipeOf(problem: MatmulProblem): Recipe | undefined {
  const recipe = known.get(problem) ?? foundRecipe(problem);
  if (recipe !== undefined) known.set(problem, recipe);
  return recipe;
}

/** The same for an instruction that adds up elsewhere: tcgen05 takes elements of 8 bits along either axis. */
export function recipeIn(problem: MatmulProblem, sums: ProductMemory): Recipe | undefined {
  const recipe = recipeOf(problem);
  return recipe !== undefined && sums === "tensor" && recipe.a.bits === 8
    ? { ...recipe, alongK: false }
    : recipe;
}

function foundRecipe(problem: MatmulProblem): Recipe | undefined {
  const { accumulator, precision, accumulation } = problem;
  if (precision === "ieee") return undefined;
  const [a, b] = [multipliedFormat(problem, "a"), multipliedFormat(problem, "b")];
  // Integers of 4 bits are multiplied by single warps alone.
  if (a.bits < 8) return undefined;
  if (precision === undefined)
    return {
      issuer: accumulator === dtypes.f64 ? "warp" : "warpgroup",
      ...{ a, b, split: undefined, parts: 1, terms: [[0, 0]] },
      promoted: accumulation === "promoted",
      alongK: a.bits === 8,
    };
  const { dtype, parts, terms } = splitTerms(precision);
  return {
    issuer: "warpgroup",
    ...{ a: dtype, b: dtype, split: precision, parts, terms },
    promoted: terms.length > 1,
    alongK: dtype.bits === 32,
  };
}

/**
 * Which parts of operands lie in each of a step's slots: one of each, the smallest of a beside the greatest of b, so that the smallest products, which
 * come first, need one slot each, and no part is fetched twice:
 *
 *   bf16x3   a1 b0 │ a0 b1            a1·b0 │ a0·b1 │ a0·b0, of both
 *   bf16x6   a2 b0 │ a1 b1 │ a0 b2    a2·b0 │ a1·b1 │ a0·b2 │ a1·b0, …
 */
export function slotParts({
  parts,
}: Recipe): readonly { readonly a: number; readonly b: number }[] {
  return Array.from({ length: parts }, (_, b) => ({ a: parts - 1 - b, b }));
}
