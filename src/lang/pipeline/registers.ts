/**
 * How a copying thread and computing threads share the registers of a processor. At the start every lane has the same
 * number; what the copying thread gives up the others may take, in steps of 8:
 *
 *   | threads            | at the start | copying | computing |
 *   |--------------------|--------------|---------|-----------|
 *   | 1 copies, 1 other  | 255          | as it is, nothing to gain |
 *   | 1 copies, 2 others | 168          | 40      | 232       |
 *   | 1 copies, 3 others | 128          | 32      | 160       |
 *   | 1 copies, 4 others | 96           | 24      | 112       |
 */
import { lanesPerWarp, warpsPerGroup } from "../../targets/target.ts";

/** How the registers of a block are shared out between the program threads that copy and those that compute. */
export interface RegisterShares {
  /** Registers of a thread of the copying warps. */
  readonly copy: number;
  /** Registers of a thread of the computing warps. */
  readonly compute: number;
}

const registersPerProcessor = 65536;
const [fewest, most] = [24, 240];

/**
 * The shares of one copying and `computing` other threads of so many warps; undefined where they have all they can use, and
 * where threads are less than a warpgroup, whose warps must all have the same.
 */
export function registersFor(
  computing: number,
  warps: number = warpsPerGroup,
): RegisterShares | undefined {
  if (warps < warpsPerGroup) return undefined;
  const atStart = floor8(registersPerProcessor / (lanesPerWarp * warps * (computing + 1)));
  if (atStart >= most) return undefined;
  const pool = atStart * (computing + 1);
  const copy = Math.max(fewest, 56 - 8 * computing);
  return { copy, compute: Math.min(most, floor8((pool - copy) / computing)) };
}

function floor8(count: number): number {
  return Math.floor(count / 8) * 8;
}
