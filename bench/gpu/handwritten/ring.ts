/** What kernels written by hand share: stages of a ring, and work of a single warp. */
import { warps, when } from "tilewright";
import type { Scalar } from "tilewright";

export type Index = Scalar<"i32">;

/** Rows of each of the two threads that multiply: what a wgmma computes at once. */
export const half = 64;

/** The stage of a counter, which may wrap: its low bits are a stage even then, so that nothing has to be tested. */
export function stageOf(stages: 2 | 4): (count: Index) => Index {
  return (count) => count.and(stages - 1);
}

/** One warp of the thread works, and the others wait for it at the end. */
export function byOneWarp(body: () => void): void {
  warps((warp) => {
    when(warp.eq(0), body);
  });
}
