/**
 * Vector clocks that share structure. A clock says, for every agent, up to which of its steps
 * everything is known to have happened:
 *
 *   clock { 0: 3, 17: 1 }   includes (0, 1), (0, 2), (0, 3) and (17, 1); not (0, 4), not (5, 1)
 *
 * A grid may have many thousand agents and each hands its clock on to others, so clocks are immutable
 * radix trees over the bits of the agent's number, sixteen ways a level:
 *
 *   agent 0x2a7   root.children[0x2].children[0xa].counts[0x7]
 *
 * `with` copies one path. `join` stops wherever both sides hold the same node or one side none, and
 * gives back an input where that already covers the other; handing a clock along a chain of N agents
 * therefore costs O(log N) a link.
 */

const bits = 4;
const ways = 1 << bits;
const mask = ways - 1;

interface Leaf {
  readonly leaf: true;
  readonly counts: readonly number[];
}

interface Branch {
  readonly leaf: false;
  readonly children: readonly (Tree | undefined)[];
}

type Tree = Leaf | Branch;

const emptyCounts: readonly number[] = new Array<number>(ways).fill(0);
const emptyChildren: readonly undefined[] = new Array<undefined>(ways).fill(undefined);

/** `tree` of the given height with one count raised; the tree itself where it is that high already. */
function raise(tree: Tree | undefined, height: number, agent: number, count: number): Tree {
  const slot = (agent >>> (bits * height)) & mask;
  if (height === 0) {
    const old = tree?.leaf === true ? tree : undefined;
    if (old !== undefined && (old.counts[slot] ?? 0) >= count) return old;
    const counts = (old?.counts ?? emptyCounts).slice();
    counts[slot] = count;
    return { leaf: true, counts };
  }
  const old = tree?.leaf === false ? tree : undefined;
  const child = old?.children[slot];
  const raised = raise(child, height - 1, agent, count);
  if (old !== undefined && raised === child) return old;
  const children: (Tree | undefined)[] = (old?.children ?? emptyChildren).slice();
  children[slot] = raised;
  return { leaf: false, children };
}

/**
 * Two trees may be equal without being one. A join must say so: were it to name either, its parent
 * could not tell that both sides cover each other there.
 */
type Joined<T> = T | "equal";

function joinLeaves(left: Leaf, right: Leaf): Joined<Leaf> {
  let leftCovers = true;
  let rightCovers = true;
  for (let slot = 0; slot < ways; slot++) {
    const ours = left.counts[slot] as number;
    const theirs = right.counts[slot] as number;
    if (ours < theirs) leftCovers = false;
    else if (theirs < ours) rightCovers = false;
  }
  if (leftCovers) return rightCovers ? "equal" : left;
  if (rightCovers) return right;
  const counts = left.counts.map((count, slot) => Math.max(count, right.counts[slot] ?? 0));
  return { leaf: true, counts };
}

function joinBranches(left: Branch, right: Branch): Joined<Branch> {
  let leftCovers = true;
  let rightCovers = true;
  const children: (Tree | undefined)[] = emptyChildren.slice();
  for (let slot = 0; slot < ways; slot++) {
    const ours = left.children[slot];
    const theirs = right.children[slot];
    const joined = joinTrees(ours, theirs);
    if (joined === "equal") {
      children[slot] = ours;
      continue;
    }
    if (joined !== ours) leftCovers = false;
    if (joined !== theirs) rightCovers = false;
    children[slot] = joined;
  }
  if (leftCovers) return rightCovers ? "equal" : left;
  if (rightCovers) return right;
  return { leaf: false, children };
}

/** The join of two trees of the same height: one of them where it covers the other. */
function joinTrees(left: Tree | undefined, right: Tree | undefined): Joined<Tree | undefined> {
  if (left === right) return "equal";
  if (right === undefined) return left;
  if (left === undefined) return right;
  if (left.leaf && right.leaf) return joinLeaves(left, right);
  if (!left.leaf && !right.leaf) return joinBranches(left, right);
  throw new Error("joined clock trees have different heights");
}

function lift(tree: Tree | undefined, from: number, to: number): Tree | undefined {
  if (tree === undefined) return undefined;
  let lifted = tree;
  for (let height = from; height < to; height++) {
    const children: (Tree | undefined)[] = emptyChildren.slice();
    children[0] = lifted;
    lifted = { leaf: false, children };
  }
  return lifted;
}

export class Clock {
  static readonly empty = new Clock(undefined, 0);

  readonly #root: Tree | undefined;
  /** Levels above the leaves; agents below 16 ** (height + 1) have a place. */
  readonly #height: number;

  private constructor(root: Tree | undefined, height: number) {
    this.#root = root;
    this.#height = height;
  }

  /** The last known step of an agent; 0 where none is known. */
  get(agent: number): number {
    let shift = bits * this.#height;
    if (agent >>> shift >= ways) return 0;
    let tree = this.#root;
    while (tree !== undefined && !tree.leaf) {
      tree = tree.children[(agent >>> shift) & mask];
      shift -= bits;
    }
    return tree === undefined ? 0 : (tree.counts[agent & mask] ?? 0);
  }

  includes(agent: number, count: number): boolean {
    return this.get(agent) >= count;
  }

  /** This clock with an agent known at least up to `count`. */
  with(agent: number, count: number): Clock {
    if (count === 0) return this;
    let height = this.#height;
    while (agent >>> (bits * height) >= ways) height++;
    const root = raise(lift(this.#root, this.#height, height), height, agent, count);
    return root === this.#root ? this : new Clock(root, height);
  }

  /** What either knows; this clock or `other` itself where that one covers both. */
  join(other: Clock): Clock {
    if (this === other || other.#root === undefined) return this;
    if (this.#root === undefined) return other;
    const height = Math.max(this.#height, other.#height);
    const left = lift(this.#root, this.#height, height);
    const right = lift(other.#root, other.#height, height);
    const joined = joinTrees(left, right);
    if (joined === "equal" || joined === left) return this;
    if (joined === right) return other;
    return new Clock(joined, height);
  }
}
