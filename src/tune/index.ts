/**
 * `tilewright/tune`: kernels with choices, and a tuner that measures them.
 *
 *   choices of an operation ──▶ each measured in turns ──▶ a line each of a file ──▶ plans take the fastest
 */
export { TuningTable } from "../device/tuning/table.ts";
export type {
  Choice,
  ChoiceValue,
  Judge,
  Rejection,
  Sizes,
  TuningLine,
} from "../device/tuning/line.ts";
export type { GivenInputs } from "./arrays.ts";
export type { TuneOptions, TuneProgress } from "./options.ts";
export { powerOfTwo } from "./buckets.ts";
export { TuneReport } from "./report.ts";
export type { CaseReport } from "./report.ts";
export type { Verdict } from "./majority-reference.ts";
export { tunable } from "./tunable.ts";
export type { ChoiceLists, ChoiceOf, TunableSpec } from "./tunable.ts";
export { tune } from "./tune.ts";
