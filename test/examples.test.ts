/**
 * Every example is right, and clean under the fixed schedule and seeded ones; its IR survives
 * printing and parsing, every pass leaves it valid, and the passes do not change a bit of what it
 * computes.
 */
import { describe, expect, test } from "vitest";
import { bf16, f32, open } from "tilewright";
import type { Device, HostArray, KernelDefinition, RunArguments } from "tilewright";
import { checkKernel } from "tilewright/testing";
import type { Comparison } from "tilewright/testing";
import * as axpy from "../examples/axpy.ts";
import * as cluster from "../examples/cluster.ts";
import * as columnSum from "../examples/column-sum.ts";
import * as handoff from "../examples/handoff.ts";
import * as matmul from "../examples/matmul.ts";
import * as softmax from "../examples/softmax.ts";
import { normal } from "../examples/support/data.ts";
import * as transpose from "../examples/transpose.ts";
import { parseModule } from "../src/ir/parser/parser.ts";
import { printModule } from "../src/ir/printer.ts";
import { verifyKernel } from "../src/ir/verify/index.ts";
import { runPasses } from "../src/passes/pass-order.ts";
import { turns } from "../src/testing/check-kernel.ts";
import { runKernel } from "./simulation.ts";
import { takesAll } from "./support/sample.ts";

interface Example {
  readonly name: string;
  readonly definition: KernelDefinition;
  main(this: void, device: Device): Promise<Comparison>;
  /** Smaller than what `main` takes, but with several blocks, steps and a tail. */
  readonly inputs: { readonly [name: string]: HostArray | number };
  readonly dimensions: { readonly [name: string]: number };
}

const examples: readonly Example[] = [
  {
    name: "axpy",
    definition: axpy.axpy,
    main: axpy.main,
    inputs: { x: normal(f32, [3003], 1), y: normal(f32, [3003], 2), alpha: 2.5 },
    dimensions: { n: 3003 },
  },
  {
    name: "softmax",
    definition: softmax.softmax,
    main: softmax.main,
    inputs: { x: normal(f32, [10, 300], 3) },
    dimensions: { rows: 10 },
  },
  {
    name: "column sum",
    definition: columnSum.columnSum,
    main: columnSum.main,
    inputs: { x: normal(f32, [1000, 96], 4) },
    dimensions: {},
  },
  {
    name: "transpose",
    definition: transpose.transpose,
    main: transpose.main,
    inputs: { x: normal(bf16, [70, 130], 5) },
    dimensions: { m: 70, n: 130 },
  },
  {
    name: "matmul",
    definition: matmul.matmul,
    main: matmul.main,
    inputs: { a: normal(bf16, [136, 200], 6), b: normal(bf16, [200, 24], 7) },
    dimensions: { m: 136, n: 24, k: 200 },
  },
  {
    name: "handoff",
    definition: handoff.handoff,
    main: handoff.main,
    inputs: { x: normal(f32, [5000], 8) },
    dimensions: { n: 5000 },
  },
  {
    name: "cluster",
    definition: cluster.clusterNormalize,
    main: cluster.main,
    inputs: { x: normal(f32, [5, 1000], 9), scale: normal(f32, [5, 4], 10) },
    dimensions: { rows: 5 },
  },
];

describe.each(examples)("the example $name", ({ definition, main, inputs, dimensions }) => {
  const { kernel } = definition;

  test.each(turns({ schedules: 1 }))(
    "is right under the $schedule schedule, seed $seed",
    async (turn) => {
      const device = await open("simulator", turn);
      try {
        const { elements, worst } = await main(device);
        expect(elements).toBeGreaterThan(0);
        expect(worst).toBeLessThanOrEqual(1);
      } finally {
        device.dispose();
      }
    },
  );

  test("is clean and gives the same bits under random and adversarial schedules", async () => {
    // The inputs of a kernel that is only known to be one have no names in its type.
    const checked = inputs as RunArguments<KernelDefinition>;
    await checkKernel(definition, checked, { schedules: takesAll ? 40 : 6, seed: 100 });
  });

  test("parses back from its text", () => {
    const module = { kernels: [kernel] };
    const text = printModule(module);
    const parsed = parseModule(text);
    expect(printModule(parsed)).toBe(text);
    parsed.kernels.forEach(verifyKernel);
  });

  test("stays valid through every pass and computes the same", async () => {
    const optimised = runPasses(kernel, { verify: true });
    const before = await runKernel({ kernel }, inputs, { dimensions });
    const after = await runKernel({ kernel: optimised }, inputs, { dimensions });
    expect([...before.findings, ...after.findings]).toEqual([]);
    expect(after.results).toEqual(before.results);
    expect(after.statistics.steps).toBeLessThanOrEqual(before.statistics.steps);
  });
});
