/** What memory moves for a product and how fast, at which rate tensor cores multiply, and how long two things take at once: what all parts of the model share. */
import { packedBytes } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { ProductSizes } from "../configuration.ts";
import type { MatmulProblem } from "../problem.ts";
import type { Recipe } from "../f32-emulation.ts";

/** Bytes a second that memory gives. */
export const memoryBytes = 4.3e12;
/** Seconds of a launch besides its tiles. */
export const launchSeconds = 1.22e-6;
/** How well the longer of two things hides the shorter: of fetching and multiplying a step, and of all that memory gives and takes. */
export const hidden = { step: 9.09, all: 2.6 };

/** Seconds of memory that nothing hides, at most: those in which a launch begins and ends, however long it takes. */
export const mostExposed = 9e-6;

/**
 * Two things at once: little more than the longer where the shorter is much shorter, and more where both take about as long, up to so many
 * seconds.
 */
export function overlapped(left: number, right: number, well: number, most = Infinity): number {
  const longer = Math.max(left, right);
  const exposed = (left ** well + right ** well) ** (1 / well) - longer;
  return longer + exposed / (1 + exposed / most);
}

/** Bytes that memory gives and takes, each once. */
export function movedBytes(problem: MatmulProblem, recipe: Recipe, sizes: ProductSizes): number {
  const { m, n, batch } = sizes;
  return readBytes(problem, recipe, sizes) + packedBytes(problem.out.dtype, batch * m * n);
}

/** Bytes of both operands, in all their parts. */
export function readBytes(
  problem: MatmulProblem,
  recipe: Recipe,
  { m, n, k, batch }: ProductSizes,
): number {
  const formatOf = (name: "a" | "b"): DType =>
    problem.prologues[name] === undefined ? recipe[name] : problem[name].dtype;
  const read =
    packedBytes(formatOf("a"), batch * m * k) +
    (problem.sparse ? 0.625 : 1) * packedBytes(formatOf("b"), batch * k * n);
  return recipe.parts * read;
}

export function productRate({ a }: Recipe): "byte" | "half" | "tf32" | "f64" {
  if (a.bits === 64) return "f64";
  if (a.bits === 8) return "byte";
  return a.bits === 16 ? "half" : "tf32";
}
