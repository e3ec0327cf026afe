/** Programs of JAX on the simulator: those that take little time. `docs/stablehlo.md` has the command for all. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../../src/device/device.ts";
import { compilePlan } from "../../src/graph/plan/compile.ts";
import { planText } from "../../src/graph/plan/text.ts";
import { parseGraph } from "../../src/graph/text/index.ts";
import { open } from "../../src/runtime/open.ts";
import { programDisagreement } from "./device-programs.ts";

const quick = [
  "adam",
  "cond_branches",
  "dynamic_slices",
  "elementwise",
  "embedding",
  "integer_bits",
  "max_pool",
  "newton_while",
  "reductions",
  "vmapped_matmul",
];

let device: Device;
beforeAll(async () => {
  device = await open("simulator");
});
afterAll(() => {
  device.dispose();
});

describe("programs of JAX on the simulator", () => {
  test.each(quick)("%s", async (name) => {
    const file = `test/fixtures/programs/${name}.mlir`;
    expect(await programDisagreement(device, file)).toBeUndefined();
  });
});

function planOf(text: string): string {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("no program");
  return planText(compilePlan(module, "main"));
}

describe("plans", () => {
  test("elementwise neighbours share a kernel, equal kernels are one", () => {
    const text =
      planOf(`func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      %0 = stablehlo.exponential %x : tensor<8xf32>
      %1 = stablehlo.negate %0 : tensor<8xf32>
      %2 = stablehlo.exponential %y : tensor<8xf32>
      %3 = stablehlo.negate %2 : tensor<8xf32>
      return %1, %3 : tensor<8xf32>, tensor<8xf32>
    }`);
    expect(text.split("\n")).toEqual([
      "plan main",
      "arena 0 bytes",
      "launch negate(arg0) -> result0",
      "launch negate(arg1) -> result1",
      "launches 2, kernels 1, one graph yes",
    ]);
  });

  test("buffers whose lives do not meet share bytes", () => {
    const reduce = (from: string, to: string) => `
      ${to} = stablehlo.reduce(${from} init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>`;
    const spread = (from: string, to: string) => `
      ${to} = stablehlo.broadcast_in_dim ${from}, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>`;
    const text = planOf(`func.func @main(%x: tensor<64x64xf32>) -> tensor<64xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      ${reduce("%x", "%a")}${spread("%a", "%b")}${reduce("%b", "%c")}${spread("%c", "%d")}${reduce("%d", "%e")}
      return %e : tensor<64xf32>
    }`);
    expect(text).toContain("arena 512 bytes");
  });
});

describe("what devices do not run", () => {
  test.each([
    [
      "TW9602",
      "func.func @main(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> { return %x : tensor<4xcomplex<f32>> }",
    ],
    [
      "TW9601",
      `func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = stablehlo.custom_call @elsewhere(%x) : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }`,
    ],
  ])("%s", (code, text) => {
    expect(() => planOf(text)).toThrow(code);
  });
});
