/**
 * What launches cost; see `cost.ts`.
 *
 *   gemm, m = n = k = 4096      137 Gflop, 96 MiB      ──▶ roofline: 0.14 ms on an H200, bound by arithmetic
 */
export { addCosts, gmemBytes, productFormats } from "./cost.ts";
export type { Cost, ProductFormat, Traffic } from "./cost.ts";
export { kernelCost } from "./kernel-cost.ts";
export type { KernelCost } from "./kernel-cost.ts";
export { costRules } from "./rules.ts";
export type { CostContext } from "./rules.ts";
export { ratesOf, reached, roofline } from "./roofline.ts";
export type { LaunchCost, Rates, Roofline } from "./roofline.ts";
export type { ElementCost, InstructionCosts } from "./expenses.ts";
export { launchEstimate } from "./estimate.ts";
export type { Bound, LaunchEstimate } from "./estimate.ts";
export { launchWork } from "./work.ts";
export type { ArrayTraffic, LaunchWork } from "./work.ts";
