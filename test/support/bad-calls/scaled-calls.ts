/** Calls on arrays of the host: in formats with scales, and of integers. */
import { fromNumbers, i32, mxfp4, scaledHostArray } from "tilewright";
import { host } from "./bad-call.ts";
import type { BadCall } from "./bad-call.ts";
import { options, parameter } from "./junk.ts";

const scaled = scaledHostArray(
  mxfp4,
  fromNumbers(mxfp4.element, [1, 4], [1, 2, 3, 4]),
  fromNumbers(mxfp4.scale, [1, 1], [1]),
);

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
