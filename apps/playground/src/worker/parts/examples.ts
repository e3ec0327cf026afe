/** The examples as modules, for programs that import them. */
export * as axpy from "../../../../../examples/axpy.ts";
export * as cluster from "../../../../../examples/cluster.ts";
export * as columnSum from "../../../../../examples/column-sum.ts";
export * as handoff from "../../../../../examples/handoff.ts";
export * as matmul from "../../../../../examples/matmul.ts";
export * as product from "../../../../../examples/support/product.ts";
export * as softmax from "../../../../../examples/softmax.ts";
export * as transpose from "../../../../../examples/transpose.ts";
