/**
 * Reductions along one axis of elements viewed as [outer, length, inner].
 *
 * A float sum or product depends on the order of its steps, and this is the one place that fixes it:
 * a **halving tree** over the index. With s the largest power of two below n, element i takes in element
 * i + s for all i < n - s; then n = s, until one is left. For n = 6:
 *
 *   x0     x1     x2  x3   x4  x5      s = 4
 *   x0+x4  x1+x5  x2  x3               s = 2
 *   (x0+x4)+x2    (x1+x5)+x3           s = 1
 *   ((x0+x4)+x2)+((x1+x5)+x3)
 *
 * f32 and f64 round every step to the format. tf32, f16 and bf16 take their steps in f32 and round
 * once, at the end. Integers wrap, and min, max, and, or and xor do not depend on the order; min and
 * max are those of two operands, so NaN wins and -0 is below +0.
 */
import { allocateElements, f32 } from "../dtype.ts";
import type { DType, Elements } from "../dtype.ts";
import type { Axis } from "./axis.ts";
import { binaryElements } from "./elementwise.ts";
import { acceptsReduce } from "./functions.ts";
import type { BinaryFunction, ReduceFunction, ScanFunction } from "./functions.ts";
import { laneBits, narrowElements, widenElements } from "./registers.ts";

/** The function that one step applies. */
const stepFunctions: { readonly [F in ReduceFunction]: BinaryFunction } = {
  sum: "add",
  prod: "mul",
  min: "min",
  max: "max",
  and: "and",
  or: "or",
  xor: "xor",
};

/** The largest power of two below `count`, which is at least 2. */
function largestPowerBelow(count: number): number {
  return 2 ** (31 - Math.clz32(count - 1));
}

/** Reduces `source`, seen around `axis`, into one element for each (outer, inner). */
export function reduceElements(
  fn: ReduceFunction,
  dtype: DType,
  source: Elements,
  axis: Axis,
  target: Elements,
): void {
  if (!acceptsReduce(fn, dtype)) throw new Error(`${fn} is not defined for ${dtype.name}`);
  if (dtype.kind === "float" && dtype.bits <= 32) {
    reduceFloats(fn as ScanFunction, dtype, source, axis, target);
  } else {
    reduceInMemory(fn, dtype, source, axis, target);
  }
}

/** Brings the axis to the front, so that a step of the tree is one call on whole halves. */
function reduceInMemory(
  fn: ReduceFunction,
  dtype: DType,
  source: Elements,
  axis: Axis,
  target: Elements,
): void {
  const width = axis.outer * axis.inner;
  const work = allocateElements(dtype, width * axis.length);
  bringAxisToFront(source, axis, work);
  foldInMemory(stepFunctions[fn], dtype, work, axis.length, width);
  const words = laneBits(target);
  words.set(laneBits(work).subarray(0, words.length));
}

/** [outer, length, inner] to [length, outer, inner]. */
function bringAxisToFront(
  source: Elements,
  { outer, length, inner }: Axis,
  target: Elements,
): void {
  const from = laneBits(source);
  const to = laneBits(target);
  const words = inner * (from.length / source.length);
  let read = 0;
  for (let o = 0; o < outer; o++) {
    for (let k = 0; k < length; k++) {
      const write = (k * outer + o) * words;
      for (let i = 0; i < words; i++) to[write + i] = from[read++] as number;
    }
  }
}

/** Folds `rows` rows of `width` elements until one is left, or at most `enough` elements; returns the rows left. */
function foldInMemory(
  fn: BinaryFunction,
  dtype: DType,
  work: Elements,
  rows: number,
  width: number,
  enough = 0,
): number {
  let left = rows;
  while (left > 1 && left * width > enough) {
    const kept = largestPowerBelow(left);
    const lower = work.subarray(0, (left - kept) * width);
    const upper = work.subarray(kept * width, left * width);
    binaryElements(fn, dtype, lower, upper, lower);
    left = kept;
  }
  return left;
}

/**
 * Where the trees of f32 steps are folded, several next to each other when they are small; a constant
 * for the reason given in `registers.ts`. A tree that does not fit is folded in memory until it does.
 */
const forest = new Float32Array(32768);

/** In each of `trees` trees of `extent` elements, folds `count` elements from `distance` on onto the first. */
type FoldLoop = (trees: number, extent: number, count: number, distance: number) => void;

const foldLoops: { readonly [F in ScanFunction]: FoldLoop } = {
  sum(trees, extent, count, distance) {
    for (let start = 0; start < trees * extent; start += extent) {
      for (let i = start; i < start + count; i++) {
        forest[i] = (forest[i] as number) + (forest[distance + i] as number);
      }
    }
  },
  prod(trees, extent, count, distance) {
    for (let start = 0; start < trees * extent; start += extent) {
      for (let i = start; i < start + count; i++) {
        forest[i] = (forest[i] as number) * (forest[distance + i] as number);
      }
    }
  },
  min(trees, extent, count, distance) {
    for (let start = 0; start < trees * extent; start += extent) {
      for (let i = start; i < start + count; i++) {
        forest[i] = Math.min(forest[i] as number, forest[distance + i] as number);
      }
    }
  },
  max(trees, extent, count, distance) {
    for (let start = 0; start < trees * extent; start += extent) {
      for (let i = start; i < start + count; i++) {
        forest[i] = Math.max(forest[i] as number, forest[distance + i] as number);
      }
    }
  },
};

/** Folds the trees that lie in the forest and moves their roots to `results` from `start` on. */
function foldForest(
  fn: ScanFunction,
  trees: number,
  { length, inner }: Axis,
  results: Float32Array,
  start: number,
): void {
  const extent = length * inner;
  for (let rows = length; rows > 1;) {
    const kept = largestPowerBelow(rows);
    foldLoops[fn](trees, extent, (rows - kept) * inner, kept * inner);
    rows = kept;
  }
  let write = start;
  for (let o = 0; o < trees; o++) {
    for (let i = 0; i < inner; i++) results[write++] = forest[o * extent + i] as number;
  }
}

function reduceFloats(
  fn: ScanFunction,
  dtype: DType,
  source: Elements,
  axis: Axis,
  target: Elements,
): void {
  const { outer, length, inner } = axis;
  const extent = length * inner;
  const results = new Float32Array(outer * inner);
  if (extent <= forest.length) {
    const treesPerForest = Math.floor(forest.length / extent);
    for (let o = 0; o < outer; o += treesPerForest) {
      const trees = Math.min(treesPerForest, outer - o);
      widenElements(dtype, source, o * extent, trees * extent, forest);
      foldForest(fn, trees, axis, results, o * inner);
    }
  } else {
    for (let o = 0; o < outer; o++) {
      reduceTallTree(fn, dtype, source, axis, results, o);
    }
  }
  narrowElements(dtype, results, target);
}

/** Reduces the one tree at `o`, which is larger than the forest. */
function reduceTallTree(
  fn: ScanFunction,
  dtype: DType,
  source: Elements,
  { length, inner }: Axis,
  results: Float32Array,
  o: number,
): void {
  const extent = length * inner;
  const work = new Float32Array(extent);
  widenElements(dtype, source, o * extent, extent, work);
  const rows = foldInMemory(stepFunctions[fn], f32, work, length, inner, forest.length);
  if (rows === 1) {
    results.set(work.subarray(0, inner), o * inner);
  } else {
    forest.set(work.subarray(0, rows * inner));
    foldForest(fn, 1, { outer: 1, length: rows, inner }, results, o * inner);
  }
}
