/**
 * Basic blocks of a function and where lanes that part at a branch meet again: at the branch's immediate
 * post-dominator, the first block that every path to the end passes.
 *
 *        0: @p bra 2          lanes part here
 *       /           \
 *   1: …             2: …
 *       \           /
 *        3: …                 post-dominator of 0: lanes wait here for each other
 */
import type { FlatBody, FlatInstruction } from "./flatten.ts";

export interface FlowBlock {
  /** Instructions from `start` below `end`. */
  readonly start: number;
  readonly end: number;
  readonly successors: readonly number[];
  /** The block where lanes that part at the end meet; undefined where only the function's end is. */
  readonly reconvergence: number | undefined;
}

/** The labels that an instruction may go to; undefined where it is no jump. */
export type JumpTargets = (flat: FlatInstruction) => readonly number[] | undefined;

/** Whether control never passes on to the next instruction. */
function endsFlow({ instruction: { opcode, guard } }: FlatInstruction): boolean {
  if (guard !== undefined) return false;
  const [root] = opcode.split(".");
  return root === "bra" || root === "brx" || root === "exit" || root === "ret" || root === "trap";
}

/** Splits the body at labels that are jumped to and behind jumps. */
export function flowOf({ instructions }: FlatBody, targetsOf: JumpTargets): readonly FlowBlock[] {
  const leaders = new Set<number>([0]);
  const jumps = instructions.map(targetsOf);
  jumps.forEach((targets, position) => {
    if (targets === undefined) return;
    leaders.add(position + 1);
    for (const target of targets) leaders.add(target);
  });
  const count = instructions.length;
  const starts = [...leaders].filter((at) => at < count).sort((left, right) => left - right);
  const blockAt = new Map(starts.map((start, block) => [start, block]));
  const spans = starts.map((start, block) => ({ start, end: starts[block + 1] ?? count }));
  const successors = spans.map(({ end }) => {
    const last = instructions[end - 1];
    const next = last === undefined || endsFlow(last) ? [] : [end];
    const all = [...(jumps[end - 1] ?? []), ...next];
    return all.map((at) => blockAt.get(at)).filter((block) => block !== undefined);
  });
  const reconvergences = postDominators(successors);
  return spans.map((span, block) => ({
    ...span,
    successors: successors[block] ?? [],
    reconvergence: reconvergences[block],
  }));
}

/** Immediate post-dominators, by iteration over the blocks in post-order of the reversed graph. */
function postDominators(
  successors: readonly (readonly number[])[],
): readonly (number | undefined)[] {
  const exit = successors.length;
  const predecessors: number[][] = Array.from({ length: exit + 1 }, () => []);
  successors.forEach((next, block) => {
    for (const target of next.length === 0 ? [exit] : next) predecessors[target]?.push(block);
  });
  const order = reversedPostOrder(exit, predecessors);
  const rank = new Map(order.map((block, position) => [block, position]));
  const parent = new Map<number, number>([[exit, exit]]);
  const meet = (left: number, right: number): number => {
    let a = left;
    let b = right;
    while (a !== b) {
      while ((rank.get(a) ?? 0) > (rank.get(b) ?? 0)) a = parent.get(a) ?? exit;
      while ((rank.get(b) ?? 0) > (rank.get(a) ?? 0)) b = parent.get(b) ?? exit;
    }
    return a;
  };
  for (let changed = true; changed;) {
    changed = false;
    for (const block of order) {
      if (block === exit) continue;
      const next = successors[block] ?? [];
      const known = (next.length === 0 ? [exit] : next).filter((each) => parent.has(each));
      const [first, ...others] = known;
      if (first === undefined) continue;
      const found = others.reduce(meet, first);
      if (parent.get(block) !== found) {
        parent.set(block, found);
        changed = true;
      }
    }
  }
  return successors.map((_, block) => {
    const found = parent.get(block);
    return found === exit ? undefined : found;
  });
}

function reversedPostOrder(root: number, edges: readonly (readonly number[])[]): readonly number[] {
  const order: number[] = [];
  const seen = new Set<number>([root]);
  const stack: { readonly block: number; next: number }[] = [{ block: root, next: 0 }];
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const target = edges[top.block]?.[top.next];
    top.next += 1;
    if (target === undefined) {
      order.push(top.block);
      stack.pop();
    } else if (!seen.has(target)) {
      seen.add(target);
      stack.push({ block: target, next: 0 });
    }
  }
  return order.reverse();
}
