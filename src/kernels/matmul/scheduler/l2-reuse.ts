/**
 * Keeps operands in L2: every other wave of tiles walks k backwards, and results are evicted first.
 *
 * A round of tiles reads its rows and columns along k, all blocks side by side, and the next round has the same rows. Where these are more than the cache
 * keeps, the first ones asked for again are those that have left it, and none is found. So every other round goes back:
 *
 *   round 0    k  0 ─────────▶ end      in the cache then: what is near the end
 *   round 1    k  0 ◀───────── end      begins with it
 *
 * On an H200, rested, bf16 with b by rows: 4096 × 8192 × 4096 1.009 times as fast, 4096³ 1.006, 5120 × 13824 × 5120 1.004 (651 MB read from memory instead of
 * 784), 8192³ 1.003 (1.05 GB instead of 1.21). Rounds that the cache keeps as a whole, or little of, gain nothing: 16384 × 16384 × 1024 and
 * 8192 × 8192 × 512 0.998, 4096 × 4096 × 16384 0.999.
 *
 * A result that the cache cannot hold goes through it all the same, and takes the place of operands that it can: 8192 × 8192 × 512 was 1.007 and 1.011 times as fast
 * where what is stored is dropped first; of larger operands, 16384 × 16384 × 1024 was 0.999 and 4096³ 1.001.
 */
import { packedBytes } from "../../../formats/dtype.ts";
import { threadRows } from "../configuration.ts";
import { groupOf } from "./tile-scheduler.ts";
import type { PersistentForm } from "../kernel-context.ts";
import { isSummedOnce, tileCount } from "../tile-shapes.ts";

/** Whether every other round of tiles goes along k from its end. */
export function turnsBack(form: PersistentForm): boolean {
  const { problem, recipe, configuration, sizes, parts, dealt, cache } = form;
  const isWhole = configuration.schedule === "tiles" && parts === 1 && dealt === undefined;
  if (!isWhole || !isSummedOnce(problem, recipe)) return false;
  const bytes = roundBytes(form);
  return (
    tileCount(configuration, sizes) > workersOf(form) && bytes >= cache / 2 && bytes <= 2 * cache
  );
}

/** Blocks that run at once, or clusters of them. */
function workersOf({ configuration: { cluster }, processors }: PersistentForm): number {
  return processors / cluster;
}

/** Bytes of the rows and columns of a round of tiles. */
function roundBytes(form: PersistentForm): number {
  const { recipe, configuration, sizes } = form;
  const { consumers, columns, cluster, swapAB } = configuration;
  const [rowFormat, columnFormat] = swapAB ? [recipe.b, recipe.a] : [recipe.a, recipe.b];
  const rows = consumers * threadRows * cluster;
  const group = groupOf(rows, columns, workersOf(form));
  const across = (workersOf(form) / group) * columns;
  return (
    packedBytes(rowFormat, group * rows * sizes.k) + packedBytes(columnFormat, across * sizes.k)
  );
}

/** Whether results are dropped from the cache first. */
export function passesResult({ problem, recipe, sizes, cache }: PersistentForm): boolean {
  const { m, n, k, batch } = sizes;
  const operands = packedBytes(recipe.a, batch * m * k) + packedBytes(recipe.b, batch * k * n);
  const result = packedBytes(problem.out.dtype, batch * m * n);
  return operands <= cache / 2 && result > cache;
}
