/**
 * `tilewright/testing`: helpers for kernel tests, in vitest or any other runner, without a GPU.
 *
 *   await checkKernel(axpy, { x, y });      every schedule asked for, with every check
 */
export { checkKernel } from "./check-kernel.ts";
export type { CheckOptions } from "./check-kernel.ts";
export { checkMeaning } from "./check-meaning.ts";
export type { MeaningOptions, MeaningReport } from "./check-meaning.ts";
export { compareWithReference } from "./compare.ts";
export type { Comparison, Reference } from "./compare.ts";
