/**
 * What a pipeline carries from step to step. Accumulators stay in flight between steps: the products of a step may run
 * while the next one begins, and are waited for before the blocks that they read are released.
 *
 *   delay 1    step 0: wgmma 0     step 1: wgmma 1 · wait for wgmma 0 · release slot 0     … end: wait for the last
 */
import { accumulator, Accumulator } from "../accumulator.ts";
import type { DTypeName } from "../../formats/dtype.ts";
import type { Scalar } from "../elementwise.ts";
import type { Tile } from "../tile.ts";
import { Traced } from "../traced.ts";
import type { Tree } from "../tree.ts";

/** A carry once the steps are over: tiles in the place of accumulators. */
export type Settled<C> = Tree extends C
  ? Tree
  : C extends Accumulator<infer D>
    ? Tile<D>
    : C extends Tile | Scalar
      ? C
      : { readonly [N in keyof C]: Settled<C[N]> };

/** Whether a tree has accumulators among its leaves. */
export function hasAccumulator(tree: unknown): boolean {
  if (tree instanceof Traced) return tree instanceof Accumulator;
  return typeof tree === "object" && tree !== null && Object.values(tree).some(hasAccumulator);
}

/** The tree with each accumulator replaced; what is no tree is left for whoever carries it to refuse. */
function mapAccumulators(tree: unknown, change: (leaf: Accumulator) => unknown): unknown {
  if (tree instanceof Accumulator) return change(tree as Accumulator);
  if (tree instanceof Traced || typeof tree !== "object" || tree === null) return tree;
  if (Array.isArray(tree)) return tree.map((item: unknown) => mapAccumulators(item, change));
  return Object.fromEntries(
    Object.entries(tree).map(([name, item]) => [name, mapAccumulators(item, change)]),
  );
}

/** Waits for the products of all but the last `pending` steps; for none where it is undefined. */
export function holdBack(tree: Tree, pending: number | undefined): Tree {
  if (pending === undefined) return tree;
  return mapAccumulators(tree, (leaf) =>
    pending === 0 ? restarted(leaf) : leaf.waitPending(pending),
  ) as Tree;
}

function restarted<D extends DTypeName>(leaf: Accumulator<D>): Accumulator<D> {
  return accumulator(leaf.dtype, leaf.shape, leaf.wait());
}

/** Waits for everything: the tree as `Settled` types it. */
export function settle(tree: Tree): Tree {
  return mapAccumulators(tree, (leaf) => leaf.wait()) as Tree;
}
