/** Scatters of many rows, which are sorted first, give the evaluator's bits on the simulator. */
import { expect, test } from "vitest";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { evaluate, isTensorDatum, tensor } from "../evaluate/index.ts";
import type { Tensor } from "../evaluate/index.ts";
import { compilePlan } from "../plan/compile.ts";
import { Program } from "../plan/program.ts";
import { planText } from "../plan/text.ts";
import { parseGraph } from "../text/index.ts";

const seed = 5;

function programOf(update: string, indices: string, numbers: string, combine: string): string {
  return `func.func @main(%x: tensor<7x3x5xf32>, %i: ${indices}, %u: ${update}) -> tensor<7x3x5xf32> {
    %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<${numbers}>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      ${combine}
    }) : (tensor<7x3x5xf32>, ${indices}, ${update}) -> tensor<7x3x5xf32>
    return %0 : tensor<7x3x5xf32> }`;
}

const add = "%s = stablehlo.add %a, %b : tensor<f32>\n stablehlo.return %s : tensor<f32>";
const replace = "stablehlo.return %b : tensor<f32>";
const cases: readonly (readonly [string, string, readonly number[], readonly number[]])[] = [
  [
    "sums of rows",
    programOf(
      "tensor<9x8x3x5xf32>",
      "tensor<9x8x1xi32>",
      "update_window_dims = [2, 3], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2",
      add,
    ),
    [9, 8, 1],
    [9, 8, 3, 5],
  ],
  [
    "the last of several, by two axes that are not the first",
    programOf(
      "tensor<7x70xf32>",
      "tensor<2x70xi32>",
      "update_window_dims = [0], inserted_window_dims = [1, 2], scatter_dims_to_operand_dims = [2, 1], index_vector_dim = 0",
      replace,
    ),
    [2, 70],
    [7, 70],
  ],
];

for (const [name, text, indexShape, updateShape] of cases)
  test(name, async () => {
    const random = new Random(seed);
    const floats = (shape: readonly number[]): Tensor => {
      const count = shape.reduce((total, extent) => total * extent, 1);
      return tensor(
        "f32",
        shape,
        Float32Array.from({ length: count }, () => random.uniform()),
      );
    };
    const count = indexShape.reduce((total, extent) => total * extent, 1);
    // Some lie outside on either side, and most rows are met several times.
    const indices = Int32Array.from({ length: count }, () => Math.floor(9 * random.uniform()) - 1);
    const inputs = [floats([7, 3, 5]), tensor("i32", indexShape, indices), floats(updateShape)];
    const [module] = parseGraph(text, "scatter.mlir");
    if (module === undefined) throw new Error("the text has a program");
    const plan = compilePlan(module, "main");
    expect(planText(plan)).toContain("sort_ranks");
    const device = await open("simulator");
    const program = await Program.load(device, plan);
    const [found] = await program.run(inputs);
    const [expected] = evaluate(module, "main", inputs).filter(isTensorDatum);
    expect(found?.data, `seed ${seed}`).toEqual(expected?.data);
    program.dispose();
    device.dispose();
  });

test.each([
  ["sums", add, 70],
  ["the last of several", replace, 70],
  ["sums of chunks", add, 700],
])("batches with indices of their own, in the middle: %s", async (_, combine, updates) => {
  const [module] =
    parseGraph(`func.func @main(%x: tensor<5x3x2xf32>, %i: tensor<${updates}x3x1xi32>, %u: tensor<${updates}x3x2xf32>) -> tensor<5x3x2xf32> {
    %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], input_batching_dims = [1], scatter_indices_batching_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      ${combine}
    }) : (tensor<5x3x2xf32>, tensor<${updates}x3x1xi32>, tensor<${updates}x3x2xf32>) -> tensor<5x3x2xf32>
    return %0 : tensor<5x3x2xf32> }`);
  if (module === undefined) throw new Error("the text has a program");
  const plan = compilePlan(module, "main");
  expect(planText(plan)).toContain("scatter_sorted_rows");
  const whole = (count: number, at: (i: number) => number) =>
    Float32Array.from({ length: count }, (__, i) => at(i));
  const inputs = [
    tensor(
      "f32",
      [5, 3, 2],
      whole(30, (i) => i),
    ),
    // Every third batch has most of its updates in one row; some are in none.
    tensor(
      "i32",
      [updates, 3, 1],
      Int32Array.from({ length: updates * 3 }, (__, i) => (i % 3 === 2 ? 4 : ((i * 7) % 7) - 1)),
    ),
    tensor(
      "f32",
      [updates, 3, 2],
      whole(updates * 6, (i) => ((i * 31) % 17) - 8),
    ),
  ];
  const device = await open("emulator", { onNotes: () => undefined });
  const program = await Program.load(device, plan);
  const [found] = await program.run(inputs);
  const [expected] = evaluate(module, "main", inputs).filter(isTensorDatum);
  expect(found?.data).toEqual(expected?.data);
  program.dispose();
  device.dispose();
});

test.each([
  ["vectors before windows", "90x2x3x4", "[1, 2, 3]", "1"],
  ["windows before vectors", "2x3x90x4", "[0, 1, 3]", "2"],
])("windows of parts of axes, some out of bounds: %s", async (_, update, dims, __) => {
  const [module] =
    parseGraph(`func.func @main(%x: tensor<9x8x4xf32>, %i: tensor<90x2xi32>, %u: tensor<${update}xf32>) -> (tensor<9x8x4xf32>, tensor<9x8x4xf32>) {
    %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = ${dims}, scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      ${add}
    }) : (tensor<9x8x4xf32>, tensor<90x2xi32>, tensor<${update}xf32>) -> tensor<9x8x4xf32>
    %1 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = ${dims}, scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      ${replace}
    }) : (tensor<9x8x4xf32>, tensor<90x2xi32>, tensor<${update}xf32>) -> tensor<9x8x4xf32>
    return %0, %1 : tensor<9x8x4xf32>, tensor<9x8x4xf32> }`);
  if (module === undefined) throw new Error("the text has a program");
  const plan = compilePlan(module, "main");
  expect(planText(plan)).toContain("scatter_sorted_rows");
  const shape = update.split("x").map(Number);
  const inputs = [
    tensor("f32", [9, 8, 4], new Float32Array(288)),
    tensor(
      "i32",
      [90, 2],
      Int32Array.from({ length: 180 }, (___, i) => ((i * 5) % 10) - 1),
    ),
    tensor(
      "f32",
      shape,
      Float32Array.from({ length: 2160 }, (___, i) => (i % 19) - 9),
    ),
  ];
  const device = await open("simulator", { onNotes: () => undefined });
  const program = await Program.load(device, plan);
  const found = await program.run(inputs);
  const expected = evaluate(module, "main", inputs).filter(isTensorDatum);
  expect(found.map(({ data }) => data)).toEqual(expected.map(({ data }) => data));
  program.dispose();
  device.dispose();
});

test("narrow indices of more rows than they can name", async () => {
  const [module] =
    parseGraph(`func.func @main(%x: tensor<300xi32>, %i: tensor<70x1xi8>, %u: tensor<70xi32>) -> tensor<300xi32> {
    %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %s = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %s : tensor<i32>
    }) : (tensor<300xi32>, tensor<70x1xi8>, tensor<70xi32>) -> tensor<300xi32>
    return %0 : tensor<300xi32> }`);
  if (module === undefined) throw new Error("the text has a program");
  const places = Int8Array.from({ length: 70 }, (_, i) => 3 * i - 70);
  const inputs = [
    tensor("i32", [300], new Int32Array(300)),
    tensor("i8", [70, 1], places),
    tensor("i32", [70], new Int32Array(70).fill(1)),
  ];
  const device = await open("simulator");
  const program = await Program.load(device, compilePlan(module, "main"));
  const [found] = await program.run(inputs);
  const expected = new Int32Array(300);
  for (const place of places) if (place >= 0) expected[place] = 1;
  expect(found?.data).toEqual(expected);
  program.dispose();
  device.dispose();
});
