/**
 * `tilewright/bench`: times kernels beside each other, in turns, with the ratio and how sure it is.
 *
 *   round 1   a b      round 2   b a      …      a is 1.04 times as fast as b, 1.03 to 1.05
 */
export { bench } from "./bench.ts";
export type { BenchEntry, SelfTimed, Timed } from "./bench.ts";
export type { BenchOptions, BenchProgress } from "./options.ts";
export { BenchResult } from "./result.ts";
export type { BenchClock, BenchData, BenchFigures } from "./result.ts";
export type { Interval } from "./statistics.ts";
