/**
 * Operands that pass the cache by: weights which one row or column of tiles reads, each number once, and of which there are more than the
 * cache holds. They leave it first, so that what is read again stays: the few rows that every tile is multiplied with.
 */
import { ratesOf } from "../../ir/cost/index.ts";
import { packedBytes } from "../../formats/dtype.ts";
import type { Target } from "../../targets/target.ts";
import { threadRows } from "./configuration.ts";
import type { PersistentConfiguration, ProductSizes } from "./configuration.ts";
import { prologueOf } from "./problem.ts";
import type { MatmulProblem } from "./problem.ts";

export function passingOperand(
  problem: MatmulProblem,
  { multipliers, columns, cluster, turned }: PersistentConfiguration,
  { m, n, k, batch }: ProductSizes,
  target: Target,
): "a" | "b" | undefined {
  if (problem.sparse || prologueOf(problem) !== undefined) return undefined;
  const rows = multipliers * cluster * threadRows;
  // The operand along rows of tiles is read by each column of them, and the other way around.
  const isReadOnce = { a: n <= (turned ? rows : columns), b: m <= (turned ? columns : rows) };
  const bytesOf = (name: "a" | "b"): number =>
    (problem.batched[name] ? batch : 1) *
    packedBytes(problem[name].dtype, (name === "a" ? m : n) * k);
  return (["b", "a"] as const).find(
    (name) => isReadOnce[name] && bytesOf(name) > ratesOf(target).l2,
  );
}
