/** Calls about how threads and blocks order themselves. */
import { host, traced } from "./bad-call.ts";
import type { BadCall } from "./bad-call.ts";
import { options, parameter } from "./junk.ts";

export const synchronisationCalls: readonly BadCall[] = [
  host(
    "semaphore",
    parameter(() => [2], "undefined", "list", "numbers"),
  ),
  host("barrier", options()),
  host(
    "clusterBarrier",
    parameter(() => "i", "undefined", "text", "empty"),
    options(),
  ),
  traced(
    "clusterRank",
    parameter(() => "i"),
  ),
  traced(
    "delay",
    parameter(() => 64, "zero"),
  ),
];
