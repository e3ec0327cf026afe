/** The kernels of the examples, by the file that shows them. */
import type { KernelDefinition } from "tilewright";
import { attention } from "../examples/attention.ts";
import { axpy } from "../examples/axpy.ts";
import { clusterNormalize } from "../examples/cluster.ts";
import { columnSum } from "../examples/column-sum.ts";
import { gemm } from "../examples/gemm.ts";
import { handoff } from "../examples/handoff.ts";
import { matmul } from "../examples/matmul.ts";
import { softmax } from "../examples/softmax.ts";
import { transpose } from "../examples/transpose.ts";

export const exampleKernels: { readonly [example: string]: KernelDefinition } = {
  attention,
  axpy,
  cluster: clusterNormalize,
  "column-sum": columnSum,
  gemm,
  handoff,
  matmul,
  softmax,
  transpose,
};
