/** Calls on arrays of the host: in formats with scales, and of integers. */
import { fromNumbers, i32, mxfp4 } from "tilewright";
import { host } from "./bad-call.ts";
import type { BadCall } from "./bad-call.ts";
import { options, parameter } from "./junk.ts";
import { scaled } from "./surroundings.ts";

export const scaledCalls: readonly BadCall[] = [
  host(
    "toBigInts",
    parameter(() => fromNumbers(i32, [2], [1, 2])),
  ),
  ...["scaledNumbers", "formatScaledArray"].map((name) =>
    host(
      name,
      parameter(() => scaled),
    ),
  ),
  host(
    "scaledHostArray",
    parameter(() => mxfp4),
    parameter(() => scaled.elements),
    parameter(() => scaled.scales),
    options(() => ({ axis: 1 })),
  ),
];
