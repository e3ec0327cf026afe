/**
 * Elimination: groups leave one by one, and each leaves behind a factor over its neighbours that says
 * what the best of its candidates costs for every choice of theirs. The last one leaves the least cost
 * of all; going back in reverse order, each group takes its first best candidate.
 *
 *   a - b - c - d       a leaves a factor over b      b one over c     c one over d     d a number
 *        \ /            order: a (one neighbour), d, then b or c, the smaller factor first
 *         e
 *
 * The next to leave is always the one with the smallest factor to leave behind. When even that would
 * pass the limit, elimination stops, and what is left is the business of the search.
 */
import type { Factor } from "./factors.ts";
import { bestCandidate, isHopeless, minimiseOut } from "./factors.ts";

export interface Problem {
  readonly groups: readonly number[];
  readonly factors: readonly Factor[];
}

export interface Elimination {
  /** The cost of what has left. */
  readonly cost: number;
  /** A factor without a finite entry: there is no solution. */
  readonly impossible: Factor | undefined;
  /** What is left, in parts that share no factor. */
  readonly rest: readonly Problem[];
  /** Chooses for the groups that left, after those of the rest have been chosen. */
  choose(choice: number[]): void;
}

/** Counts what the search does; the amount that may be spent is the search's to judge. */
export interface Meter {
  work: number;
  largestTable: number;
}

interface Node {
  readonly group: number;
  readonly neighbours: Set<Node>;
  readonly factors: Set<Factor>;
  /** Entries of the factor it would leave behind; beyond the limit they count no further. */
  entries: number;
  gone: boolean;
}

export function eliminate(
  problem: Problem,
  sizes: readonly number[],
  tableLimit: number,
  meter: Meter,
): Elimination {
  const graph = new Graph(problem.groups, sizes, tableLimit);
  const steps: { readonly group: number; readonly factors: readonly Factor[] }[] = [];
  const choose = (choice: number[]): void => {
    for (const { group, factors } of steps.toReversed()) {
      choice[group] = bestCandidate(group, factors, sizes, choice);
    }
  };
  let cost = 0;
  let impossible: Factor | undefined;
  const place = (factor: Factor): void => {
    if (factor.hard && isHopeless(factor.data)) impossible ??= factor;
    if (factor.scope.length === 0) cost += factor.data[0] ?? 0;
    else graph.add(factor);
  };
  problem.factors.forEach(place);
  graph.begin();
  while (impossible === undefined) {
    const node = graph.next();
    if (node === undefined) break;
    const others = [...node.neighbours].map(({ group }) => group);
    const factors = [...node.factors];
    steps.push({ group: node.group, factors });
    meter.work += node.entries * (sizes[node.group] ?? 1) * factors.length;
    meter.largestTable = Math.max(meter.largestTable, node.entries);
    graph.leave(node);
    place(minimiseOut(node.group, others, factors, sizes));
    graph.settle(node);
  }
  return { cost, impossible, rest: impossible === undefined ? graph.parts() : [], choose };
}

class Graph {
  readonly #nodes = new Map<number, Node>();
  readonly #sizes: readonly number[];
  readonly #limit: number;
  readonly #queue = new NodeQueue();

  constructor(groups: readonly number[], sizes: readonly number[], limit: number) {
    this.#sizes = sizes;
    this.#limit = limit;
    for (const group of groups) {
      const [neighbours, factors] = [new Set<Node>(), new Set<Factor>()];
      this.#nodes.set(group, { group, neighbours, factors, entries: 1, gone: false });
    }
  }

  add(factor: Factor): void {
    const nodes = factor.scope.map((group) => this.#node(group));
    for (const node of nodes) {
      node.factors.add(factor);
      for (const other of nodes) if (other !== node) node.neighbours.add(other);
    }
  }

  begin(): void {
    for (const node of this.#nodes.values()) this.#enter(node);
  }

  /** The node with the smallest factor to leave behind, if that is small enough. */
  next(): Node | undefined {
    const node = this.#queue.pop();
    return node === undefined || node.entries > this.#limit ? undefined : node;
  }

  leave(node: Node): void {
    node.gone = true;
    for (const neighbour of node.neighbours) neighbour.neighbours.delete(node);
    for (const factor of node.factors) {
      for (const group of factor.scope) {
        if (group !== node.group) this.#node(group).factors.delete(factor);
      }
    }
  }

  /** Ranks the neighbours of a node anew, once the factor it left behind has been added. */
  settle(node: Node): void {
    for (const neighbour of node.neighbours) this.#enter(neighbour);
  }

  parts(): Problem[] {
    const parts: Problem[] = [];
    const seen = new Set<Node>();
    for (const start of this.#nodes.values()) {
      if (start.gone || seen.has(start)) continue;
      const part = new Set([start]);
      for (const node of part) for (const neighbour of node.neighbours) part.add(neighbour);
      const factors = new Set<Factor>();
      for (const node of part) {
        seen.add(node);
        for (const factor of node.factors) factors.add(factor);
      }
      parts.push({ groups: [...part].map(({ group }) => group), factors: [...factors] });
    }
    return parts;
  }

  #node(group: number): Node {
    const node = this.#nodes.get(group);
    if (node === undefined) throw new Error(`group ${group} is not in the problem`);
    return node;
  }

  #enter(node: Node): void {
    let entries = 1;
    for (const { group } of node.neighbours) {
      entries *= this.#sizes[group] as number;
      if (entries > this.#limit) {
        entries = this.#limit + 1;
        break;
      }
    }
    node.entries = entries;
    this.#queue.push(node);
  }
}

/** A heap of nodes by entries, then group. A node ranked anew is pushed again; old entries are skipped. */
class NodeQueue {
  readonly #heap: { readonly node: Node; readonly entries: number }[] = [];

  push(node: Node): void {
    const heap = this.#heap;
    const item = { node, entries: node.entries };
    let hole = heap.push(item) - 1;
    while (hole > 0) {
      const parent = (hole - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || before(above, item)) break;
      heap[hole] = above;
      hole = parent;
    }
    heap[hole] = item;
  }

  pop(): Node | undefined {
    for (;;) {
      const [top] = this.#heap;
      if (top === undefined) return undefined;
      this.#removeTop();
      if (!top.node.gone && top.entries === top.node.entries) return top.node;
    }
  }

  #removeTop(): void {
    const heap = this.#heap;
    const item = heap.pop();
    if (item === undefined || heap.length === 0) return;
    let hole = 0;
    for (;;) {
      const left = heap[2 * hole + 1];
      const right = heap[2 * hole + 2];
      const useRight = left !== undefined && right !== undefined && before(right, left);
      const child = useRight ? right : left;
      if (child === undefined || before(item, child)) break;
      heap[hole] = child;
      hole = 2 * hole + (useRight ? 2 : 1);
    }
    heap[hole] = item;
  }
}

type Ranked = { readonly node: Node; readonly entries: number };

function before(left: Ranked, right: Ranked): boolean {
  return left.entries === right.entries
    ? left.node.group <= right.node.group
    : left.entries < right.entries;
}
