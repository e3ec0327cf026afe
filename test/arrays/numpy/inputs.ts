/** What the calls of `cases.ts` are made with, and what a case is. */
import type { NDArray } from "tilewright/arrays";

type F64 = NDArray<"f64">;
type I32 = NDArray<"i32">;

/** What calls are made with; `record.py` makes the same. */
export interface Inputs {
  /** Between 0.1 and 3, [3, 4]. */
  readonly m: F64;
  /** Of both signs, [3, 4]. */
  readonly s: F64;
  /** Five numbers of both signs. */
  readonly v: F64;
  /** Five numbers that ascend. */
  readonly w: F64;
  /** A square matrix, [3, 3]. */
  readonly q: F64;
  /** Three axes, [2, 3, 4]. */
  readonly t: F64;
  /** With NaN, [3, 4]. */
  readonly n: F64;
  /** Integers of both signs, [3, 4], none of them 0. */
  readonly i: I32;
  /** Integers from 0 to 5, some of them alike, [8]. */
  readonly k: I32;
}

export type Call = (inputs: Inputs) => NDArray | readonly NDArray[];
/** The call, NumPy's expression, and why the gradient is not compared, where it is not. */
export type Case = readonly [call: Call, numpy: string, noGradient?: string];
