/**
 * Collectives as data: what ranks do together, and which of them. Plans hold these, schedulers read them, and every back end runs them.
 *
 *   { collective: { kind: "all_reduce", reduction: "add" }, groups: [[0, 1], [2, 3]] }
 *
 * Groups hold ranks of the world in the order that sums and slots follow. A rank that is in no group takes no part, and its results are
 * zeros; without any group nobody takes part.
 */
import type { Location } from "../../support/location.ts";

export const reductions = ["add", "multiply", "maximum", "minimum", "and", "or", "xor"] as const;

/** How elements of several ranks become one. */
export type Reduction = (typeof reductions)[number];

export type Collective =
  | { readonly kind: "all_reduce"; readonly reduction: Reduction }
  | { readonly kind: "all_gather"; readonly axis: number }
  | { readonly kind: "reduce_scatter"; readonly axis: number; readonly reduction: Reduction }
  | { readonly kind: "all_to_all"; readonly split: number; readonly concat: number }
  | { readonly kind: "collective_permute"; readonly pairs: readonly (readonly number[])[] }
  /** From the first of each group, or from the place in it that the last operand names for each of the others. */
  | { readonly kind: "collective_broadcast"; readonly hasRoots: boolean }
  /** The first of each group has the result, the others zeros. */
  | { readonly kind: "collective_reduce"; readonly reduction: Reduction };

/** How many processes a program is for: process = replica · partitions + partition. */
export interface ProcessCounts {
  readonly replicas: number;
  readonly partitions: number;
}

/** Ranks of the world, group by group. */
export type Groups = readonly (readonly number[])[];

export interface CollectiveCall {
  readonly collective: Collective;
  readonly groups: Groups;
  /** The user's line. */
  readonly location?: Location | undefined;
}

/** The ranks that a permutation concerns: one group of all that send or receive. */
export function groupsOfPairs(pairs: readonly (readonly number[])[]): Groups {
  const ranks = [...new Set(pairs.flat())].sort((left, right) => left - right);
  return ranks.length === 0 ? [] : [ranks];
}

/** What tells a collective from others, in words: `all_reduce (add)`. */
export function collectiveText(collective: Collective): string {
  return `${collective.kind} (${detail(collective)})`;
}

function detail(collective: Collective): string {
  switch (collective.kind) {
    case "all_reduce":
    case "collective_reduce":
      return collective.reduction;
    case "all_gather":
      return `axis ${collective.axis}`;
    case "reduce_scatter":
      return `${collective.reduction}, axis ${collective.axis}`;
    case "all_to_all":
      return `axis ${collective.split} to ${collective.concat}`;
    case "collective_permute":
      return collective.pairs.map(([from, to]) => `${from} to ${to}`).join(", ");
    case "collective_broadcast":
      return collective.hasRoots ? "by roots" : "from the first";
  }
}
