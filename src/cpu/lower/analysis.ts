/**
 * Which tiles of a region are computed where they are used, and how long the others live.
 *
 *   %1 = load x          inline, in the loop of the store
 *   %2 = exp %1          the same
 *   %3 = reduce %2       a loop of its own: so %2, which two loops read, is computed once, into scratch
 *   store y, %2
 *
 * A tile is inline where all that reads it ends in one loop. A load is, where nothing is written between it and that loop.
 */
import type { AnyOp, Region, Value } from "../../ir/node.ts";
import { operandValues, regionList, walkOps } from "../../ir/traverse.ts";

export interface RegionUses {
  /** Ops whose results are computed where they are used. */
  readonly inline: ReadonlySet<AnyOp>;
  /** The number of the op behind which each value is not read any more. */
  readonly lastUse: ReadonlyMap<Value, number>;
}

export interface UseQuestions {
  /** Whether the op's result can be computed element by element, where it is used. */
  isLazy(op: AnyOp): boolean;
  /** Whether it costs so little that it is computed again for each use, everywhere. */
  isCheap(op: AnyOp): boolean;
  /** Whether the op is a loop that computes this operand's elements as it goes. */
  fuses(op: AnyOp, operand: Value): boolean;
  /** Whether the op may change memory that the load reads, or a loop that is the op itself would. */
  disturbs(op: AnyOp, load: AnyOp, isRoot: boolean): boolean;
}

/** A load, whose value depends on when it is done. */
function readsMemory(op: AnyOp): boolean {
  return op.kind === "load";
}

type Consumers = ReadonlyMap<Value, ReadonlySet<number>>;

/** The ops of the region that read each value, and the values that are read inside of those. */
function readersOf(ops: readonly AnyOp[]): {
  readonly consumers: Consumers;
  readonly nested: ReadonlySet<Value>;
} {
  const consumers = new Map<Value, Set<number>>();
  const nested = new Set<Value>();
  const use = (value: Value, index: number): void => {
    const list = consumers.get(value);
    if (list === undefined) consumers.set(value, new Set([index]));
    else list.add(index);
  };
  ops.forEach((op, index) => {
    for (const value of operandValues(op)) use(value, index);
    for (const region of regionList(op))
      walkOps(region, (inner) => {
        for (const value of operandValues(inner)) {
          use(value, index);
          nested.add(value);
        }
      });
  });
  return { consumers, nested };
}

/** The one loop in which all readers of a value are computed; −1 where there are several, or one that wants a tile. */
function onlyRoot(
  ops: readonly AnyOp[],
  value: Value,
  readers: ReadonlySet<number>,
  roots: readonly number[],
  questions: UseQuestions,
): number {
  const found = new Set<number>();
  for (const reader of readers) {
    const user = ops[reader];
    const goes = user !== undefined && questions.fuses(user, value);
    found.add(goes ? (roots[reader] ?? reader) : -1);
  }
  const [root = -1, ...others] = found;
  return others.length > 0 ? -1 : root;
}

export function regionUses({ ops }: Region, questions: UseQuestions): RegionUses {
  const { consumers, nested } = readersOf(ops);
  const inline = new Set<AnyOp>();
  /** For each op the loop in which it is computed: its own, unless it is inline. */
  const roots = ops.map((_, index) => index);
  for (let index = ops.length - 1; index >= 0; index -= 1) {
    const op = ops[index];
    const result = op?.results[0];
    if (op === undefined || result === undefined || !questions.isLazy(op)) continue;
    if (questions.isCheap(op)) {
      inline.add(op);
      continue;
    }
    if (nested.has(result)) continue;
    const root = onlyRoot(ops, result, consumers.get(result) ?? new Set(), roots, questions);
    if (root < 0) continue;
    if (readsMemory(op)) {
      const between = ops.slice(index + 1, root);
      const target = ops[root];
      if (between.some((other) => questions.disturbs(other, op, false))) continue;
      if (target !== undefined && questions.disturbs(target, op, true)) continue;
    }
    inline.add(op);
    roots[index] = root;
  }

  const lastUse = new Map<Value, number>();
  for (const [value, indices] of consumers) {
    let last = -1;
    for (const index of indices)
      last = Math.max(last, lastRoot(ops, inline, roots, consumers, index));
    lastUse.set(value, last);
  }
  return { inline, lastUse };
}

/** Where an op is computed at last: cheap ones are wherever their readers are. */
function lastRoot(
  ops: readonly AnyOp[],
  inline: ReadonlySet<AnyOp>,
  roots: readonly number[],
  consumers: ReadonlyMap<Value, ReadonlySet<number>>,
  index: number,
): number {
  const op = ops[index];
  if (op === undefined || !inline.has(op)) return index;
  const root = roots[index] ?? index;
  if (root !== index) return root;
  let last = index;
  for (const result of op.results)
    for (const consumer of consumers.get(result) ?? [])
      if (consumer !== index)
        last = Math.max(last, lastRoot(ops, inline, roots, consumers, consumer));
  return last;
}
