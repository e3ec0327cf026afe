/**
 * `tilewright/arrays`: arrays with NumPy's rules, recorded lazily, with jit, derivatives, loops and random
 * numbers.
 *
 *   import { array, grad, jit, sum } from "tilewright/arrays";
 *   const loss = (w, x) => sum(tanh(matmul(x, w)));
 *   const step = jit((w, x) => sub(w, mul(grad(loss)(w, x), 0.1)));
 *   await step(w, x).values();
 */
export { NDArray } from "./array.ts";
export * from "./checked.ts";
export * from "./checked-transforms.ts";
export * from "./numpy/calculus.ts";
export * from "./numpy/counting.ts";
export * from "./numpy/creation.ts";
export * from "./numpy/elementwise.ts";
export * from "./numpy/joining.ts";
export * from "./numpy/moving.ts";
export * from "./numpy/products.ts";
export * from "./numpy/statistics.ts";
export * from "./numpy/tests-of-numbers.ts";
export type { CheckpointOptions } from "./derivatives.ts";
export type { UseDeviceOptions } from "./device.ts";
export type { Operand } from "./functions.ts";
export type { Compilation, CompilationReason, Compiled, JitOptions } from "./jit.ts";
export * as nn from "./checked-nn.ts";
export * as random from "./checked-random.ts";
export type { Start } from "./indexing.ts";
export type { SortOptions } from "./ordering.ts";
export type { ReduceOptions } from "./reductions.ts";
export type { AssociativeScanOptions, CumulativeOptions } from "./cumulative.ts";
export type { Range } from "./shapes.ts";
export type { VmapOptions } from "./transforms.ts";
export { TilewrightError } from "../support/diagnostics.ts";
