/** Scatters of many updates into few rows, by chunks: whole numbers, whose sums are exact in any order, beside the evaluator. */
import { expect, test } from "vitest";
import { open } from "../../../runtime/open.ts";
import { evaluate, tensor } from "../../evaluate/index.ts";
import type { Tensor } from "../../evaluate/index.ts";
import { compilePlan } from "../../plan/compile.ts";
import { Program } from "../../plan/program.ts";
import { planText } from "../../plan/text.ts";
import { parseGraph } from "../../text/index.ts";

interface Case {
  readonly name: string;
  readonly rows: number;
  readonly updates: number;
  readonly width: number;
  readonly element: "f32" | "bf16" | "i32";
  readonly combine: string;
  /** The row of an update; some are out of bounds. */
  readonly row: (update: number) => number;
  readonly levels: number;
  readonly isSorted?: boolean;
}

const spread =
  (rows: number) =>
  (update: number): number =>
    ((update * 31) % (rows + 3)) - 1;
const mostlyTwo =
  (rows: number) =>
  (update: number): number =>
    update % 5 === 0 ? spread(rows)(update) : 2;

const cases: readonly Case[] = [
  {
    name: "seven rows",
    rows: 7,
    updates: 900,
    width: 3,
    element: "f32",
    combine: "add",
    row: spread(7),
    levels: 1,
  },
  {
    name: "chunks of chunks",
    rows: 5,
    updates: 17_000,
    width: 1,
    element: "i32",
    combine: "add",
    row: (update) => (update < 100 ? -1 : update < 120 ? 0 : update < 16_900 ? 2 : 5),
    levels: 2,
    isSorted: true,
  },
  {
    name: "one row has most",
    rows: 300,
    updates: 2000,
    width: 2,
    element: "f32",
    combine: "add",
    row: mostlyTwo(300),
    levels: 1,
  },
  {
    name: "sums of bf16, in f32",
    rows: 4,
    updates: 900,
    width: 2,
    element: "bf16",
    combine: "add",
    row: spread(4),
    levels: 1,
  },
  {
    name: "greatest",
    rows: 10,
    updates: 700,
    width: 2,
    element: "i32",
    combine: "maximum",
    row: mostlyTwo(10),
    levels: 1,
  },
  {
    name: "one row of all",
    rows: 1,
    updates: 700,
    width: 2,
    element: "i32",
    combine: "add",
    row: () => 0,
    levels: 1,
  },
  {
    name: "products",
    rows: 50,
    updates: 1500,
    width: 1,
    element: "f32",
    combine: "multiply",
    row: mostlyTwo(50),
    levels: 1,
  },
  {
    name: "few of many rows",
    rows: 70_000,
    updates: 90,
    width: 1,
    element: "i32",
    combine: "add",
    row: (update) => (update % 3 === 0 ? 69_999 : ((update * 7919) % 70_003) - 1),
    levels: 0,
  },
  {
    name: "few updates",
    rows: 9,
    updates: 100,
    width: 2,
    element: "f32",
    combine: "add",
    row: spread(9),
    levels: 0,
  },
];

function textOf({ rows, updates, width, element, combine, isSorted = false }: Case): string {
  const [whole, update] = [
    `tensor<${rows}x${width}x${element}>`,
    `tensor<${updates}x${width}x${element}>`,
  ];
  return `func.func @main(%x: ${whole}, %i: tensor<${updates}x1xi32>, %u: ${update}) -> ${whole} {
    %v = stablehlo.negate %u : ${update}
    %0 = "stablehlo.scatter"(%x, %i, %v) <{indices_are_sorted = ${isSorted}, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<${element}>, %b: tensor<${element}>):
      %s = stablehlo.${combine} %a, %b : tensor<${element}>
      stablehlo.return %s : tensor<${element}>
    }) : (${whole}, tensor<${updates}x1xi32>, ${update}) -> ${whole}
    return %0 : ${whole} }`;
}

function numbers({ element, combine }: Case, shape: readonly number[]): Tensor {
  const count = shape.reduce((all, extent) => all * extent, 1);
  const at = (i: number): number =>
    combine === "multiply" ? (i % 2 === 0 ? 1 : -1) : ((i * 7919) % 13) - 6;
  const values = Array.from({ length: count }, (_, i) => at(i));
  if (element === "i32") return tensor("i32", shape, Int32Array.from(values));
  if (element === "f32") return tensor("f32", shape, Float32Array.from(values));
  // Small whole numbers are bf16: the upper half of their f32.
  const words = new Uint32Array(Float32Array.from(values).buffer);
  return tensor(
    "bf16",
    shape,
    Uint16Array.from(words, (word) => word >>> 16),
  );
}

test.each(cases)("$name", async (each) => {
  const [module] = parseGraph(textOf(each));
  if (module === undefined) throw new Error("the text has a program");
  const inputs = [
    numbers(each, [each.rows, each.width]),
    tensor(
      "i32",
      [each.updates, 1],
      Int32Array.from({ length: each.updates }, (_, i) => each.row(i)),
    ),
    numbers(each, [each.updates, each.width]),
  ];
  const plan = compilePlan(module, "main");
  expect([...planText(plan).matchAll(/launch scatter_sorted_chunks\(/g)]).toHaveLength(each.levels);
  const device = await open("simulator", { onNotes: () => undefined });
  const program = await Program.load(device, plan);
  const [found] = await program.run(inputs);
  const [wanted] = evaluate(module, "main", inputs) as readonly Tensor[];
  expect(Array.from(found?.data ?? [], Number)).toEqual(Array.from(wanted?.data ?? [], Number));
  program.dispose();
  device.dispose();
});

test("batches of a scatter walk their own updates alone", async () => {
  const [module] =
    parseGraph(`func.func @main(%x: tensor<5x40xf32>, %i: tensor<5x3x1xi32>, %u: tensor<5x3xf32>) -> tensor<5x40xf32> {
    %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<5x40xf32>, tensor<5x3x1xi32>, tensor<5x3xf32>) -> tensor<5x40xf32>
    return %0 : tensor<5x40xf32> }`);
  if (module === undefined) throw new Error("the text has a program");
  const inputs = [
    tensor("f32", [5, 40], new Float32Array(200).fill(1)),
    tensor(
      "i32",
      [5, 3, 1],
      Int32Array.from({ length: 15 }, (_, i) => (i * 17) % 43),
    ),
    tensor(
      "f32",
      [5, 3],
      Float32Array.from({ length: 15 }, (_, i) => i + 1),
    ),
  ];
  const device = await open("emulator", { onNotes: () => undefined });
  const program = await Program.load(device, compilePlan(module, "main"));
  const [found] = await program.run(inputs);
  const [wanted] = evaluate(module, "main", inputs) as readonly Tensor[];
  expect(found?.data).toEqual(wanted?.data);
  program.dispose();
  device.dispose();
});
