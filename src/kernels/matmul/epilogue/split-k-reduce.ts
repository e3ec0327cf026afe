/** Adds up what parts of k came to, always in the same order, and finishes the result. */
import {
  tensor,
  cdiv,
  dim,
  kernel,
  launchNextKernel,
  slice,
  waitForPreviousKernel,
} from "../../../lang/index.ts";
import type { KernelDefinition, Tile } from "../../../lang/index.ts";
import type { Location } from "../../../support/location.ts";
import type { ProductSizes } from "../configuration.ts";
import { alignedDimensions } from "../dimensions.ts";
import { finished, inputSpecs } from "./epilogue.ts";
import { outputSpecs } from "./outputs.ts";
import type { MatmulProblem } from "../problem.ts";
import { viewMatrix, viewSpec } from "../views.ts";

/**
 * Rows and columns of a block: few, so that registers hold numbers of many parts that are asked for at once. Where each part was
 * added before the next was asked for, a part took 0.3 µs.
 */
export const summedPiece = { rows: 2, columns: 256 } as const;
const { rows, columns } = summedPiece;
/** Parts that are asked for at once. */
const askedParts = 16;

export function sumPartsKernel(
  problem: MatmulProblem,
  splitK: number,
  sizes: ProductSizes,
  location: Location,
): KernelDefinition {
  const dimensions = alignedDimensions(sizes);
  const { batch, m, n } = dimensions;
  const view = problem.views?.out;
  const layered = problem.sizes.batch !== undefined;
  return kernel(
    {
      name: "matmul_sum",
      grid: { layer: layered ? batch : 1, i: cdiv(m, rows), j: cdiv(n, columns) },
      inputs: {
        parts: tensor(problem.accumulator, [dim("layers"), m, n]),
        ...inputSpecs(problem, dimensions, location),
      },
      outputs: {
        out:
          view === undefined
            ? tensor(problem.out.dtype, [...(layered ? [batch] : []), m, n])
            : viewSpec(problem.out.dtype, "out", view, m, n),
        ...outputSpecs(problem, dimensions, summedPiece),
      },
    },
    (argument) => {
      const { layer, i, j, parts, out } = argument;
      // What comes next waits for this kernel, and so for the product, too, by way of all blocks of this one.
      launchNextKernel();
      waitForPreviousKernel();
      const [top, left] = [i.mul(rows), j.mul(columns)];
      const [down, across] = [slice(top, rows), slice(left, columns)];
      const part = (index: number) => parts.at(layer.mul(splitK).add(index), down, across).load();
      let sums: Tile | undefined;
      for (let from = 0; from < splitK; from += askedParts) {
        const count = Math.min(askedParts, splitK - from);
        for (const each of Array.from({ length: count }, (_, index) => part(from + index)))
          sums = sums === undefined ? each : sums.add(each);
      }
      if (sums === undefined) throw new RangeError("there are no parts");
      const done = finished(
        sums,
        { batch: layer, top, left, rows, columns },
        problem,
        argument as never,
        location,
        dimensions,
      );
      const whole = layered ? out.at(layer) : out;
      const target = view === undefined ? whole : viewMatrix(out, view, layer);
      target.at(down, across).store(done);
    },
  ) as unknown as KernelDefinition;
}
