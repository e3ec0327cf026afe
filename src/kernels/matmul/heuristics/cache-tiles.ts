/**
 * Tiles of a product for a core's caches: both operands of a step and the sums lie in the second cache together, rows and columns are no
 * more than there are, and where the product is large there are tiles for several threads.
 *
 *   1024³ f32      128 × 256, steps of 256     128 KiB + 256 KiB + 128 KiB
 *   64 × 784 × 256 64 × 64, steps of 256       four tiles
 */
import type { Caches } from "../../../targets/target.ts";
import type { PlainConfiguration, ProductSizes } from "../configuration.ts";
import { suitsBlocks } from "../block-scales.ts";
import type { MatmulProblem } from "../problem.ts";
import { plainDepthsOf } from "./plain-depths.ts";

const rowChoices = [1, 2, 4, 8, 16, 32, 64, 128] as const;
const columnChoices = [4, 8, 16, 32, 64, 128, 256] as const;
const depthChoices = [8, 16, 32, 64, 128, 256] as const;

/** Of the second cache: the rest is for what passes through. */
const usedPart = 0.75;
/** Tiles of a large product, and the products that one of them has at least. */
const [wantedTiles, leastProducts] = [4, 1 << 22];

/** The least choice that holds so many, or the largest. */
function holding<N extends number>(choices: readonly N[], count: number): N {
  const last = choices.at(-1) as N;
  return choices.find((each) => each >= count) ?? last;
}

export function cacheTiles(
  problem: MatmulProblem,
  { m, n, k, batch }: ProductSizes,
  { second }: Caches,
): PlainConfiguration {
  const bytes = problem.accumulator.bits / 8;
  const depths = plainDepthsOf(problem, depthChoices);
  const depth = holding(depths.length > 0 ? depths : depthChoices, k);
  const fits = (rows: number, columns: number): boolean =>
    bytes * (rows * depth + columns * depth + rows * columns) <= usedPart * second &&
    suitsBlocks(problem, rows, "a") &&
    suitsBlocks(problem, columns, "b");
  const most = holding(rowChoices, m);
  const rows = rowChoices.findLast((each) => each <= most && fits(each, 4)) ?? 1;
  const widest = holding(columnChoices, n);
  const fitting = columnChoices.filter((each) => each <= widest && fits(rows, each));
  const tilesOf = (columns: number): number => batch * Math.ceil(m / rows) * Math.ceil(n / columns);
  const columns =
    fitting.findLast(
      (each) => tilesOf(each) >= wantedTiles || (rows * each * k) / 2 < leastProducts,
    ) ??
    fitting[0] ??
    4;
  return { kernel: "plain", rows, columns, depth, splitK: 1 };
}
