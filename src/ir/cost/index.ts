/** What launches cost; see `cost.ts`. */
export type { Cost, Traffic } from "./cost.ts";
export { kernelCost } from "./kernel-cost.ts";
export type { KernelCost } from "./kernel-cost.ts";
export { costRules } from "./rules.ts";
