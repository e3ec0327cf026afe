/** Pairs of blocks: ranks 2i and 2i + 1 of a cluster, which `cta_group::2` uses together. */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { BlockView, CollectiveInstruction, MachineView, WarpView } from "../collective.ts";

export interface BlockPair {
  readonly own: BlockView;
  readonly peer: BlockView;
  /** The even block, then the odd one. */
  readonly both: readonly [BlockView, BlockView];
}

/** The pair of a warp's block; throws the finding where there is no other block, or it has ended. */
export function pairOf(
  { naming }: MachineView,
  { instruction, location }: CollectiveInstruction,
  { block, title }: WarpView,
): BlockPair {
  const peer = block.cluster[block.rank ^ 1];
  const isThere = peer?.warps.some(({ live }) => live !== 0) === true;
  if (peer !== undefined && isThere) {
    const both = block.rank % 2 === 0 ? ([block, peer] as const) : ([peer, block] as const);
    return { own: block, peer, both };
  }
  throw new TilewrightError({
    code: "TW8093",
    message: `${instruction.opcode} of ${title} is for a pair of blocks`,
    location,
    expected: `block ${block.rank ^ 1} of the cluster, running`,
    found:
      peer === undefined
        ? `a cluster of ${block.cluster.length}`
        : `${naming.block(peer.index)} has ended`,
  });
}
