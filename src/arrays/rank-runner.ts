/** Ranks as arrays see them: they run whole programs, and hold what these compute. */
import type { Tensor } from "../graph/evaluate/value.ts";
import type { MatmulPrecision } from "../graph/ops/matmul-precision.ts";
import type { GraphRegion } from "../graph/ops/node.ts";

/** An array that ranks hold, in parts or whole. */
export abstract class RankArray {
  abstract read(): Promise<Tensor>;
  abstract dispose(): void;
}

/** Whoever runs programs on ranks. */
export interface RankRunner {
  run(
    graph: GraphRegion,
    inputs: readonly (Tensor | RankArray)[],
    options: { readonly donated: readonly number[]; readonly matmulPrecision: MatmulPrecision },
  ): Promise<readonly RankArray[]>;
}
