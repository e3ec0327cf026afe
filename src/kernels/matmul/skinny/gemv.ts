/**
 * The product of one row with weights that lie by columns, as the sums that it is made of: lanes of a block read a few columns along k, multiply
 * them with the row, and add up what they have in the end.
 *
 *   block j     columns 2j and 2j + 1     k  0 … 2047   2048 … 4095   …      so many words of 16 bytes a lane of the row and of each column at once
 *
 * Blocks of the persistent kernel have 64 columns at least. There are few of them, and those that are done early leave memory to the others; of these blocks there
 * are thousands, and a processor takes the next one as soon as it has room.
 */
import { tensor, cdiv, kernel, loop, slice, zeros } from "../../../lang/index.ts";
import type { KernelDefinition, Tile } from "../../../lang/index.ts";
import { dtypes } from "../../../formats/dtype.ts";
import type { Location } from "../../../support/location.ts";
import { lanesPerWarp } from "../../../targets/target.ts";
import { followPrevious } from "../../support/programmatic-dependent-launch.ts";
import { widestAccess } from "../../support/sizes.ts";
import type { GemvConfiguration, ProductSizes } from "../configuration.ts";
import { alignedDimensions } from "../dimensions.ts";
import { finished, inputSpecs } from "../epilogue/epilogue.ts";
import type { PieceShape } from "../epilogue/types.ts";
import type { MatmulProblem } from "../problem.ts";

/** Elements along k of which lanes have a word each. */
export function wordDepth(
  { b }: Pick<MatmulProblem, "b">,
  { warps }: Pick<GemvConfiguration, "warps">,
): number {
  return (warps * lanesPerWarp * widestAccess * 8) / b.dtype.bits;
}

/** What a block finishes of the result. */
export function gemvPiece({ columns }: GemvConfiguration): PieceShape {
  return { rows: 1, columns };
}

export function gemvKernel(
  problem: MatmulProblem,
  configuration: GemvConfiguration,
  sizes: ProductSizes,
  /** Whether the cache holds less than the weights: what is read of them is then dropped first. */
  isBeyondCache: boolean,
  location: Location,
): KernelDefinition {
  const { columns, warps, words } = configuration;
  const dimensions = alignedDimensions(sizes);
  const { m, n, k } = dimensions;
  const depth = wordDepth(problem, configuration);
  const once = isBeyondCache ? ({ evict: "first" } as const) : {};
  return kernel(
    {
      name: "matmul_gemv",
      ...{ warps, grid: { j: cdiv(n, columns) } },
      inputs: {
        a: tensor(problem.a.dtype, [m, k]),
        b: tensor(problem.b.dtype, [n, k]),
        ...inputSpecs(problem, dimensions, location),
      },
      outputs: { out: tensor(problem.out.dtype, [m, n]) },
    },
    (argument) => {
      const { j, a, b, out } = argument;
      followPrevious();
      const left = j.mul(columns);
      const across = slice(left, columns);
      const start: Tile<"f32"> = zeros(dtypes.f32, [columns, depth]);
      const products = loop({ to: cdiv(k, depth * words), carry: start }, (step, before) => {
        // All words are asked for before the first one is multiplied.
        const loaded = Array.from({ length: words }, (_, word) => {
          const along = slice(step.mul(words).add(word).mul(depth), depth);
          return { row: a.at(slice(0, 1), along).load(), part: b.at(across, along).load(once) };
        });
        return loaded.reduce(
          (sums, { row, part }) => part.cast(dtypes.f32).fma(row.cast(dtypes.f32), sums),
          before,
        );
      });
      const sums = products.sum({ axis: 1 }).reshape([1, columns]);
      const piece = { batch: undefined, top: j.mul(0), left, ...gemvPiece(configuration) };
      const done = finished(sums, piece, problem, argument as never, location);
      out.at(slice(0, 1), across).store(done as never);
    },
  ) as unknown as KernelDefinition;
}
