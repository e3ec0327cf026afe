/** The examples' own checks against float64, on any device. */
import * as attention from "../../examples/attention.ts";
import * as axpy from "../../examples/axpy.ts";
import * as cluster from "../../examples/cluster.ts";
import * as columnSum from "../../examples/column-sum.ts";
import * as gemm from "../../examples/gemm.ts";
import * as handoff from "../../examples/handoff.ts";
import * as matmul from "../../examples/matmul.ts";
import * as softmax from "../../examples/softmax.ts";
import * as transpose from "../../examples/transpose.ts";
import type { Device } from "../../src/device/device.ts";
import type { Check } from "./check.ts";

interface Example {
  readonly main: (device: Device) => Promise<unknown>;
}

const examples: { readonly [name: string]: Example } = {
  axpy,
  softmax,
  "column-sum": columnSum,
  transpose,
  matmul,
  handoff,
  cluster,
  gemm,
  attention,
};

export const exampleChecks: readonly Check[] = Object.entries(examples).map(([name, { main }]) => ({
  name: `example ${name}`,
  run: async (device) => {
    await main(device);
  },
}));
