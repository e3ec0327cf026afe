/**
 * Pairs of blocks on the simulator: which blocks make a product together, whose memory it reads, and whose barrier their copies arrive on.
 *
 *   rank 0, leads: rows 0 … of a, columns 0 … of b        rank 1: the other rows and columns
 */
import type { Elements } from "../../formats/dtype.ts";
import { allocateElements } from "../../formats/dtype.ts";
import type { GridAxis, Op } from "../../ir/node.ts";
import type { Agent, AgentMachine } from "../agent.ts";
import type { Block } from "../block.ts";
import { readView } from "../memory.ts";
import type { View } from "../view.ts";
import { peerView, zeroOf } from "./memory.ts";
import { peerBlock } from "./synchronization.ts";

/** The rank of the block that leads the pair of a rank. */
export function leaderOf(rank: number): number {
  return rank & ~1;
}

/** The blocks that work together: both of the agent's pair, the leader first, or its own alone. */
export function blocksOf(agent: Agent, pair: boolean | undefined): readonly Block[] {
  const { block } = agent;
  if (pair !== true) return [block];
  const leader = leaderOf(block.rank);
  return [peerBlock(agent, leader), peerBlock(agent, leader + 1)];
}

/** The window at the same place in each of the blocks. */
export function viewsOf(agent: Agent, blocks: readonly Block[], view: View): readonly View[] {
  return blocks.map((block) => (block === agent.block ? view : peerView(view, block)));
}

/** The axis of a grid along which blocks are in pairs. */
export function pairAxisOf(grid: readonly GridAxis[]): number {
  return grid.findLastIndex(({ cluster }) => cluster > 1);
}

/** The axes of a grid with these names. */
export function axesNamed(grid: readonly GridAxis[], names: readonly string[]): readonly number[] {
  return names.map((name) => grid.findIndex((axis) => axis.name === name));
}

/** Ranks of the blocks that a multicast along the axes reaches; the own one without any. */
export function ranksAlong(
  { block, machine: { grid } }: Agent,
  axes: readonly number[],
): readonly number[] {
  return axes.length === 0 ? [block.rank] : grid.ranksAlong(block.rank, axes);
}

/** The columns of the views side by side: those of b of which each block has a part. */
export function joinedColumns(views: readonly View[]): Elements {
  const parts = views.map((view) => readView(view, zeroOf(view.dtype)));
  const [first] = parts;
  const [view] = views;
  if (first === undefined || view === undefined) throw new Error("a product has a right factor");
  if (parts.length === 1) return first;
  const width = first.length / (view.sizes[0] ?? 1);
  const joined = allocateElements(view.dtype, parts.length * first.length);
  for (const [index, part] of parts.entries())
    for (let at = 0; at < part.length; at += 1) {
      const row = Math.floor(at / width);
      joined[(row * parts.length + index) * width + at - row * width] = part[at] ?? 0;
    }
  return joined;
}

/** Reports scales of columns that are not the same in both blocks, each of which multiplies its own rows by them. */
export function checkCopies(
  machine: AgentMachine,
  op: Op<"tcgen05_mma">,
  views: readonly View[],
  used: ReadonlySet<number>,
): void {
  const [first, second] = views.map((view) => readView(view, 0));
  if (!machine.checks || first === undefined || second === undefined) return;
  const blocks = views[0]?.sizes[1] ?? 1;
  const at = first.findIndex(
    (scale: number | bigint, index: number) =>
      scale !== second[index] && used.has(Math.floor(index / blocks)),
  );
  if (at < 0) return;
  const row = Math.floor(at / blocks);
  const report = {
    code: "TW3027",
    message: "the blocks of a pair have different scales of b",
    location: op.location,
    expected: "the scales of all columns in the tensor memory of both blocks",
    found: `row ${row}, block ${at % blocks}: code ${first[at]} and ${second[at]}`,
  } as const;
  machine.findings.add(report, op);
}
