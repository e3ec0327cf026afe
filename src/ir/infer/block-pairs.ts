/**
 * Pairs of blocks, which make products together: those of ranks 2i and 2i + 1 in their cluster, neighbours along its last axis. The one with the even
 * rank leads: it has the first rows and columns, and barriers of the pair are its own.
 *
 *   cluster: { i: 2, half: 2 }     ranks (0, 1) and (2, 3), a pair for each i
 */
import type { GridAxis } from "../node.ts";
import { opName } from "../op-names.ts";
import { fail } from "./checks.ts";
import type { AnyDraft } from "./checks.ts";
import type { InferContext } from "./inference-input.ts";

/** The axis along which blocks are in pairs: the last one of the cluster, where it has an even number of blocks. */
function pairAxis(grid: readonly GridAxis[]): GridAxis | undefined {
  const last = grid.findLast(({ cluster }) => cluster > 1);
  return last !== undefined && last.cluster % 2 === 0 ? last : undefined;
}

/** Refuses what is for a pair of blocks where blocks are in none. */
export function requirePair(draft: AnyDraft, { grid }: InferContext): void {
  if (pairAxis(grid) !== undefined) return;
  const axes = grid.filter(({ cluster }) => cluster > 1);
  fail(draft, "TW2309", `${opName(draft)} is for a pair of blocks, and blocks are in none`, {
    expected: "a cluster whose last axis has an even number of blocks: cluster: { half: 2 }",
    found:
      axes.length === 0
        ? "no cluster"
        : `cluster: { ${axes.map(({ name, cluster }) => `${name}: ${cluster}`).join(", ")} }`,
  });
}

/** Refuses a multicast along axes that have no several blocks in a cluster. */
export function requireMulticast(
  draft: AnyDraft,
  axes: readonly string[],
  { grid }: InferContext,
): void {
  for (const axis of axes)
    if (!grid.some(({ name, cluster }) => name === axis && cluster > 1))
      fail(draft, "TW2069", `multicast along ${axis}, which has no cluster`, {
        expected: "a grid axis with a cluster",
        found: axis,
      });
}
