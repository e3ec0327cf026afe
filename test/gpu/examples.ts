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
import type { Outcome } from "../matrix/case.ts";

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

/** Runs those whose name, such as "example axpy", is chosen. */
export async function runExamples(
  device: Device,
  chosen: (name: string) => boolean,
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const [short, { main }] of Object.entries(examples)) {
    const name = `example ${short}`;
    if (!chosen(name)) continue;
    try {
      await main(device);
      outcomes.push({ name, problem: undefined });
    } catch (error) {
      outcomes.push({ name, problem: error instanceof Error ? error.message : String(error) });
    }
  }
  return outcomes;
}
