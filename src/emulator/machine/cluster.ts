/** A cluster as the schedule sees it: its blocks, and how often something has changed that they may wait for. */
import type { BlockState } from "./warp.ts";

export class ClusterState {
  readonly blocks: BlockState[] = [];
  changes = 0;
  /** The changes that its warps were woken for. */
  seenChanges = 0;
}
