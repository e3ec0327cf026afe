/** Programs of JAX on the simulator and on the CPU: those that take little time. `docs/stablehlo.md` has the command for all. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Device } from "../../src/device/device.ts";
import { f32, fromNumbers } from "tilewright";
import { disagreement, evaluate, tensor, tensorOfArray } from "../../src/graph/evaluate/index.ts";
import type { Tensor } from "../../src/graph/evaluate/index.ts";
import type { GraphModule } from "../../src/graph/ops/index.ts";
import { compilePlan } from "../../src/graph/plan/compile.ts";
import { Program } from "../../src/graph/plan/program.ts";
import { planText } from "../../src/graph/plan/text.ts";
import { parseGraph } from "../../src/graph/text/index.ts";
import { open } from "../../src/runtime/open.ts";
import { SimulatorBackend } from "../../src/runtime/simulator-backend.ts";
import { Random } from "../../src/support/random.ts";
import { programDisagreement } from "./device-programs.ts";

const quick = [
  "adam",
  "cond_branches",
  "conv_dilated",
  "dynamic_slices",
  "elementwise",
  "embedding",
  "empty_scalar",
  "integer_bits",
  "kmeans_while",
  "max_pool",
  "newton_while",
  "reductions",
  "viterbi",
  "vmapped_matmul",
];

let device: Device;
beforeAll(async () => {
  device = await open("simulator");
});
afterAll(() => {
  device.dispose();
});

describe.each(["simulator", "cpu"] as const)("programs of JAX on the %s", (on) => {
  let own: Device;
  beforeAll(async () => {
    own = await open(on);
  });
  afterAll(() => {
    own.dispose();
  });
  test.each(quick)("%s", async (name) => {
    const file = `test/fixtures/programs/${name}.mlir`;
    expect(await programDisagreement(own, file)).toBeUndefined();
  });
});

function moduleOf(text: string): GraphModule {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("no program");
  return module;
}

function planOf(text: string): string {
  return planText(compilePlan(moduleOf(text), "main"));
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
      "plan main, target sm_90a, matmul precision f32",
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

/** The device's results of a program against the evaluator's. */
async function expectAgreement(text: string, inputs: readonly Tensor[]): Promise<void> {
  const module = moduleOf(text);
  const program = await Program.load(device, compilePlan(module, "main"));
  try {
    const found = await program.run(inputs);
    const reference = evaluate(module, "main", inputs, { widened: true });
    const ours = evaluate(module, "main", inputs);
    expect(found.length).toBe(ours.length);
    for (const [i, each] of found.entries())
      expect(disagreement(each, ours[i] as Tensor, reference[i] as Tensor)).toBeUndefined();
  } finally {
    program.dispose();
  }
}

function randomTensor(shape: readonly number[], seed: number): Tensor {
  const random = new Random(seed);
  const count = shape.reduce((product, extent) => product * extent, 1);
  const numbers = Float32Array.from({ length: count }, () => 2 * random.uniform() - 1);
  return tensorOfArray(fromNumbers(f32, shape, numbers));
}

describe("devices agree with the evaluator", () => {
  test.each([true, false])("Cholesky factors, lower %s", async (lower) => {
    await expectAgreement(
      `func.func @main(%x: tensor<2x5x5xf32>) -> tensor<2x5x5xf32> {
        %t = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
        %p = stablehlo.dot_general %x, %t, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x5x5xf32>, tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
        %i = stablehlo.iota dim = 1 : tensor<2x5x5xi32>
        %j = stablehlo.iota dim = 2 : tensor<2x5x5xi32>
        %d = stablehlo.compare EQ, %i, %j : (tensor<2x5x5xi32>, tensor<2x5x5xi32>) -> tensor<2x5x5xi1>
        %one = stablehlo.constant dense<5.0> : tensor<2x5x5xf32>
        %zero = stablehlo.constant dense<0.0> : tensor<2x5x5xf32>
        %e = stablehlo.select %d, %one, %zero : tensor<2x5x5xi1>, tensor<2x5x5xf32>
        %a = stablehlo.add %p, %e : tensor<2x5x5xf32>
        %0 = stablehlo.cholesky %a, lower = ${lower} : tensor<2x5x5xf32>
        return %0 : tensor<2x5x5xf32>
      }`,
      [randomTensor([2, 5, 5], 3)],
    );
  });

  test("factors and systems without elements", async () => {
    await expectAgreement(
      `func.func @main(%x: tensor<3x0x0xf32>, %b: tensor<2x0xf32>, %a: tensor<2x2xf32>) -> (tensor<3x0x0xf32>, tensor<2x0xf32>) {
        %0 = stablehlo.cholesky %x, lower = true : tensor<3x0x0xf32>
        %1 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x2xf32>, tensor<2x0xf32>) -> tensor<2x0xf32>
        return %0, %1 : tensor<3x0x0xf32>, tensor<2x0xf32>
      }`,
      [randomTensor([3, 0, 0], 3), randomTensor([2, 0], 4), randomTensor([2, 2], 5)],
    );
  });

  test("windows that never meet an element along an axis, and scatters of no updates", async () => {
    await expectAgreement(
      `func.func @main(%x: tensor<4x1x5xf32>, %i: tensor<1x0x3xi32>, %u: tensor<0x1x1x3xf32>, %y: tensor<1x5xf32>) -> (tensor<3x1x3xf32>, tensor<1x5xf32>) {
        %one = stablehlo.constant dense<1.0> : tensor<f32>
        %0 = "stablehlo.reduce_window"(%x, %one) <{window_dimensions = array<i64: 3, 1, 1>, window_strides = array<i64: 2, 3, 3>, base_dilations = array<i64: 3, 3, 1>, window_dilations = array<i64: 2, 2, 2>, padding = dense<[[1, -2], [-1, 3], [-2, 4]]> : tensor<3x2xi64>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %c : tensor<f32>
        }) : (tensor<4x1x5xf32>, tensor<f32>) -> tensor<3x1x3xf32>
        %1 = "stablehlo.scatter"(%y, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.subtract %a, %b : tensor<f32>
          stablehlo.return %c : tensor<f32>
        }) : (tensor<1x5xf32>, tensor<1x0x3xi32>, tensor<0x1x1x3xf32>) -> tensor<1x5xf32>
        return %0, %1 : tensor<3x1x3xf32>, tensor<1x5xf32>
      }`,
      [
        randomTensor([4, 1, 5], 5),
        tensor("i32", [1, 0, 3], new Int32Array(0)),
        randomTensor([0, 1, 1, 3], 6),
        randomTensor([1, 5], 7),
      ],
    );
  });

  test("sorting, gathers, windows and padding of odd shapes", async () => {
    await expectAgreement(
      `func.func @main(%x: tensor<3x7xf32>) -> (tensor<3x7xf32>, tensor<4x6xf32>, tensor<3x4xf32>) {
        %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        }) : (tensor<3x7xf32>) -> tensor<3x7xf32>
        %zero = stablehlo.constant dense<0.5> : tensor<f32>
        %1 = stablehlo.pad %x, %zero, low = [2, -3], high = [-3, 1], interior = [1, 0] : (tensor<3x7xf32>, tensor<f32>) -> tensor<4x5xf32>
        %2 = stablehlo.pad %1, %zero, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<4x5xf32>, tensor<f32>) -> tensor<4x6xf32>
        %3 = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.multiply %a, %b : tensor<f32>
          stablehlo.return %c : tensor<f32>
        }) : (tensor<3x7xf32>, tensor<f32>) -> tensor<3x4xf32>
        return %0, %2, %3 : tensor<3x7xf32>, tensor<4x6xf32>, tensor<3x4xf32>
      }`,
      [randomTensor([3, 7], 4)],
    );
  });
});

test("running allocates nothing", async () => {
  const module = moduleOf(`func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %1 = stablehlo.tanh %0 : tensor<64x64xf32>
    %2 = stablehlo.dot_general %1, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    return %2 : tensor<64x64xf32>
  }`);
  let allocations = 0;
  const backend = new SimulatorBackend();
  const allocate = backend.allocate.bind(backend);
  backend.allocate = (dtype, shape) => {
    allocations++;
    return allocate(dtype, shape);
  };
  const counted = new Device(backend);
  try {
    const program = await Program.load(counted, compilePlan(module, "main"));
    const [input, output] = [counted.allocate(f32, [64, 64]), counted.allocate(f32, [64, 64])];
    await counted.fill(input, 0.5);
    const bound = program.bind([input], [output]);
    const before = allocations;
    expect(before).toBe(3); // the arena and the two arrays
    await bound.run();
    await bound.run();
    await counted.synchronize();
    expect(allocations).toBe(before);
    bound.dispose();
    program.dispose();
    input.dispose();
    output.dispose();
  } finally {
    counted.dispose();
  }
});

describe("what devices do not run", () => {
  test.each([
    [
      "TW9602",
      "func.func @main(%x: tensor<4xf8E3M4>) -> tensor<4xf8E3M4> { return %x : tensor<4xf8E3M4> }",
    ],
    [
      "TW9602: devices have no values of type tensor<4xf8E4M3B11FNUZ>\n  at program.mlir:2:14",
      `func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xf8E4M3B11FNUZ>
        %1 = stablehlo.convert %0 : (tensor<4xf8E4M3B11FNUZ>) -> tensor<4xf32>
        return %1 : tensor<4xf32>
      }`,
    ],
    [
      "TW9601: mhlo.erf cannot run on a device",
      `func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = "mhlo.erf"(%x) : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }`,
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
