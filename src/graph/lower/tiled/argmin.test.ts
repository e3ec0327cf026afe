/** Reductions by regions that are no single op, over rows and columns of any extent: argmin as JAX prints it, beside the evaluator. */
import { expect, test } from "vitest";
import { open } from "../../../runtime/open.ts";
import { evaluate, tensor } from "../../evaluate/index.ts";
import type { Tensor } from "../../evaluate/index.ts";
import { compilePlan } from "../../plan/compile.ts";
import { Program } from "../../plan/program.ts";
import { planText } from "../../plan/text.ts";
import { parseGraph } from "../../text/index.ts";

function argmin(shape: readonly number[], axis: number): string {
  const [whole, kept] = [shape, shape.filter((_, i) => i !== axis)].map((own) => own.join("x"));
  return `func.func @main(%x: tensor<${whole}xf32>) -> (tensor<${kept}xf32>, tensor<${kept}xi32>) {
    %i = stablehlo.iota dim = ${axis} : tensor<${whole}xi32>
    %inf = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.reduce(%x init: %inf), (%i init: %z) across dimensions = [${axis}] : (tensor<${whole}xf32>, tensor<${whole}xi32>, tensor<f32>, tensor<i32>) -> (tensor<${kept}xf32>, tensor<${kept}xi32>)
     reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32>, %d: tensor<i32>) {
      %1 = stablehlo.compare LT, %a, %c, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %2 = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.or %1, %2 : tensor<i1>
      %4 = stablehlo.compare EQ, %a, %c, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %5 = stablehlo.compare LT, %b, %d, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %6 = stablehlo.and %4, %5 : tensor<i1>
      %7 = stablehlo.or %3, %6 : tensor<i1>
      %8 = stablehlo.select %3, %a, %c : tensor<i1>, tensor<f32>
      %9 = stablehlo.select %7, %b, %d : tensor<i1>, tensor<i32>
      stablehlo.return %8, %9 : tensor<f32>, tensor<i32>
    }
    return %0#0, %0#1 : tensor<${kept}xf32>, tensor<${kept}xi32> }`;
}

test.each([
  ["simulator", [50, 128], 1, "rows"],
  ["emulator", [7, 77], 1, "rows"],
  ["simulator", [100, 40], 0, "columns"],
  ["emulator", [3, 70, 33], 1, "columns"],
  ["simulator", [2, 3000], 1, "rows"],
] as const)("on the %s, %o along axis %d", async (kind, shape, axis, title) => {
  const [module] = parseGraph(argmin(shape, axis));
  if (module === undefined) throw new Error("the text has a program");
  const count = shape.reduce((all: number, extent) => all * extent, 1);
  // Many equal numbers, of which the first counts, and some NaNs, which win.
  const x = tensor(
    "f32",
    shape,
    Float32Array.from({ length: count }, (_, i) =>
      i % 997 === 500 ? NaN : ((i * 7919) % 41) - 20,
    ),
  );
  const plan = compilePlan(module, "main");
  expect(planText(plan)).toContain(`launch reduce_${title}_with(`);
  const device = await open(kind, { onNotes: () => undefined });
  const program = await Program.load(device, plan);
  const found = await program.run([x]);
  const wanted = evaluate(module, "main", [x]) as readonly Tensor[];
  expect(found.map(({ data }) => data)).toEqual(wanted.map(({ data }) => data));
  program.dispose();
  device.dispose();
});
