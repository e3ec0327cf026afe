/**
 * The text of a traced kernel, by which caches find what was compiled from it, says everything that decides about that: a kernel read
 * back from its text is compiled to the same PTX and the same plan. So kernels of one text have one PTX, and kernels whose PTX
 * differs have different texts.
 */
import { describe, expect, test } from "vitest";
import { bf16, f32 } from "../src/formats/dtype.ts";
import type { Operation } from "../src/device/operation.ts";
import { parseModule } from "../src/ir/parser/parser.ts";
import type { Kernel } from "../src/ir/node.ts";
import { printKernel } from "../src/ir/printer.ts";
import { attention, layerNorm, matmul, reduce, softmax } from "../src/kernels/index.ts";
import { lower } from "../src/lower/stages.ts";
import { freezePlan } from "../src/ptx/plan-json.ts";
import { printPtx } from "../src/ptx/printer.ts";
import { targets } from "../src/targets/target.ts";
import { exampleKernels } from "./example-kernels.ts";

const sizes: { readonly [name: string]: number } = { m: 256, n: 256, k: 256, d: 64, e: 64 };

/** The kernels of an operation for some sizes. */
function kernelsOf(given: unknown): readonly Kernel[] {
  const operation = given as Operation;
  const dimensions = operation.kernel.dimensions.map(({ name }) => [name, sizes[name] ?? 64]);
  const { launches } = operation.plan(Object.fromEntries(dimensions), targets.sm_90a);
  return launches.map(({ kernel }) => kernel.kernel);
}

const library = {
  matmul: () => matmul({ a: bf16, b: bf16 }),
  "matmul with an epilogue": () =>
    matmul({ a: bf16, b: bf16, epilogue: ({ sums }) => sums.mul(2).cast(bf16) }),
  "causal attention": () => attention({ q: bf16, k: bf16, v: bf16, causal: true }),
  layerNorm: () => layerNorm({ x: bf16 }),
  softmax: () => softmax({ x: f32 }),
  reduce: () => reduce({ x: f32 }),
};

/** What a kernel is compiled to; source lines are what its text leaves out. */
function compiled(kernel: Kernel): readonly unknown[] {
  const { module, ...plan } = lower(kernel, targets.sm_90a);
  const lines = printPtx(module).split("\n");
  return [
    lines.filter((line) => !/^\s*(?:\.(?:loc|file)\b.*)?$/.test(line)).join("\n"),
    freezePlan({
      ...plan,
      messages: plan.messages.map((site) => ({ ...site, position: undefined })),
    }),
  ];
}

const kernels = [
  ...Object.entries(exampleKernels).map(([name, { kernel }]) => [name, kernel] as const),
  ...Object.entries(library).flatMap(([name, make]) =>
    kernelsOf(make()).map((kernel) => [name, kernel] as const),
  ),
];

describe("the text of a kernel", () => {
  test.each(kernels)("of %s decides what it is compiled to", { timeout: 60_000 }, (_, kernel) => {
    const [parsed] = parseModule(printKernel(kernel)).kernels;
    if (parsed === undefined) throw new Error("a kernel's text is that of one kernel");
    expect(compiled(parsed)).toEqual(compiled(kernel));
  });
});
