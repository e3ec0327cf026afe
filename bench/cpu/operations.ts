/**
 * Twenty operations of numpy-ts's own benchmark, on f32 of 10,000 and 1,000,000 elements, each in our arrays, in numpy-ts and in NumPy.
 * Operations on matrices are of as many elements: 100 × 100 and 1,000 × 1,000.
 */
import {
  add,
  argmax,
  argsort,
  cumsum,
  div,
  exp,
  greater,
  log,
  matmul,
  max,
  maximum,
  mean,
  mul,
  sin,
  sort,
  sqrt,
  sum,
  take,
  where,
} from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";
import type { Argument } from "./turns.ts";

export interface NumPyArray {
  reshape(shape: number[]): NumPyArray;
  dispose(): void;
}

type Unary = (x: NumPyArray) => unknown;
type Binary = (x: NumPyArray, y: NumPyArray) => unknown;

/** As much of numpy-ts as is measured: linters do not find its own types. */
export interface NumPyModule {
  array(data: Float32Array | Int32Array): NumPyArray;
  readonly add: Binary;
  readonly multiply: Binary;
  readonly divide: Binary;
  readonly maximum: Binary;
  greater(x: NumPyArray, y: number): NumPyArray;
  where(condition: NumPyArray, x: NumPyArray, y: NumPyArray): unknown;
  readonly sqrt: Unary;
  readonly exp: Unary;
  readonly log: Unary;
  readonly sin: Unary;
  sum(x: NumPyArray, axis?: number): unknown;
  readonly mean: Unary;
  readonly max: Unary;
  readonly argmax: Unary;
  readonly cumsum: Unary;
  readonly sort: Unary;
  readonly argsort: Unary;
  readonly take: Binary;
  readonly matmul: Binary;
}

type F32 = NDArray<"f32">;

export interface CpuOperation {
  readonly name: string;
  /** Of so many elements. */
  readonly arguments: (count: number) => readonly Argument[];
  readonly ours: (x: F32, y: NDArray) => NDArray;
  readonly theirs: (np: NumPyModule, x: NumPyArray, y: NumPyArray) => unknown;
  /** Python, of x0 and x1. */
  readonly numpy: string;
}

export const counts = [10_000, 1_000_000] as const;

const one = (count: number): readonly Argument[] => [{ shape: [count] }];
const positive = (count: number): readonly Argument[] => [{ shape: [count], least: 0.5 }];
const two = (count: number): readonly Argument[] => [
  { shape: [count] },
  { shape: [count], least: 0.5 },
];
const matrix = (count: number): Argument => ({ shape: [Math.sqrt(count), Math.sqrt(count)] });

export const operations: readonly CpuOperation[] = [
  {
    name: "add",
    arguments: two,
    ours: (x, y) => add(x, y as F32),
    theirs: (np, x, y) => np.add(x, y),
    numpy: "x0 + x1",
  },
  {
    name: "multiply",
    arguments: two,
    ours: (x, y) => mul(x, y as F32),
    theirs: (np, x, y) => np.multiply(x, y),
    numpy: "x0 * x1",
  },
  {
    name: "divide",
    arguments: two,
    ours: (x, y) => div(x, y as F32),
    theirs: (np, x, y) => np.divide(x, y),
    numpy: "x0 / x1",
  },
  {
    name: "maximum",
    arguments: two,
    ours: (x, y) => maximum(x, y as F32),
    theirs: (np, x, y) => np.maximum(x, y),
    numpy: "np.maximum(x0, x1)",
  },
  {
    name: "where",
    arguments: two,
    ours: (x, y) => where(greater(x, 0), x, y as F32),
    theirs: (np, x, y) => {
      const isGreater = np.greater(x, 0);
      const chosen = np.where(isGreater, x, y);
      isGreater.dispose();
      return chosen;
    },
    numpy: "np.where(x0 > 0, x0, x1)",
  },
  {
    name: "sqrt",
    arguments: positive,
    ours: (x) => sqrt(x),
    theirs: (np, x) => np.sqrt(x),
    numpy: "np.sqrt(x0)",
  },
  {
    name: "exp",
    arguments: one,
    ours: (x) => exp(x),
    theirs: (np, x) => np.exp(x),
    numpy: "np.exp(x0)",
  },
  {
    name: "log",
    arguments: positive,
    ours: (x) => log(x),
    theirs: (np, x) => np.log(x),
    numpy: "np.log(x0)",
  },
  {
    name: "sin",
    arguments: one,
    ours: (x) => sin(x),
    theirs: (np, x) => np.sin(x),
    numpy: "np.sin(x0)",
  },
  {
    name: "sum",
    arguments: one,
    ours: (x) => sum(x),
    theirs: (np, x) => np.sum(x),
    numpy: "x0.sum()",
  },
  {
    name: "sum of rows",
    arguments: (count) => [matrix(count)],
    ours: (x) => sum(x, { axis: 1 }),
    theirs: (np, x) => np.sum(x, 1),
    numpy: "x0.sum(1)",
  },
  {
    name: "sum of columns",
    arguments: (count) => [matrix(count)],
    ours: (x) => sum(x, { axis: 0 }),
    theirs: (np, x) => np.sum(x, 0),
    numpy: "x0.sum(0)",
  },
  {
    name: "mean",
    arguments: one,
    ours: (x) => mean(x),
    theirs: (np, x) => np.mean(x),
    numpy: "x0.mean()",
  },
  {
    name: "max",
    arguments: one,
    ours: (x) => max(x),
    theirs: (np, x) => np.max(x),
    numpy: "x0.max()",
  },
  {
    name: "argmax",
    arguments: one,
    ours: (x) => argmax(x),
    theirs: (np, x) => np.argmax(x),
    numpy: "x0.argmax()",
  },
  {
    name: "cumulative sum",
    arguments: one,
    ours: (x) => cumsum(x),
    theirs: (np, x) => np.cumsum(x),
    numpy: "x0.cumsum()",
  },
  {
    name: "sort",
    arguments: one,
    ours: (x) => sort(x),
    theirs: (np, x) => np.sort(x),
    numpy: "np.sort(x0)",
  },
  {
    name: "argsort",
    arguments: one,
    ours: (x) => argsort(x),
    theirs: (np, x) => np.argsort(x),
    numpy: "np.argsort(x0)",
  },
  {
    name: "take",
    arguments: (count) => [{ shape: [count] }, { shape: [count], below: count }],
    ours: (x, places) => take(x, places as NDArray<"i32">),
    theirs: (np, x, places) => np.take(x, places),
    numpy: "x0[x1]",
  },
  {
    name: "product of matrices",
    arguments: (count) => [matrix(count), matrix(count)],
    ours: (x, y) => matmul(x, y as F32),
    theirs: (np, x, y) => np.matmul(x, y),
    numpy: "x0 @ x1",
  },
];
