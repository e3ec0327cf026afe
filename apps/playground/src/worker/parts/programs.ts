/** Whole programs: kernels of the library, arrays with jit and grad, and StableHLO. */
export * as arrays from "../../../../../src/arrays/index.ts";
export * as graph from "../../../../../src/graph/index.ts";
export * as kernels from "../../../../../src/kernels/index.ts";
export { graphReport } from "../answers/graph.ts";
export { runGraph } from "../run-graph.ts";
