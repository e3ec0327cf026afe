/** A function of a program as warps run it, and what a step of one gives where it gives no next step. */
import type { PtxFunction } from "../../ptx/module.ts";
import type { FrameLayout } from "./registers.ts";

/** What a step gives instead of the next step. */
export const blocked = -1;
/** The warp has put its groups in order itself. */
export const rearranged = -2;

export interface ProgramFunction {
  readonly declaration: PtxFunction;
  readonly number: number;
  readonly layout: FrameLayout;
  /** Bytes of the lane's stack: local variables and parameters. */
  readonly localBytes: number;
  /** Where the formal results and parameters lie on the stack. */
  readonly results: readonly number[];
  readonly parameters: readonly number[];
  firstStep: number;
}
