/** Combinations in a wider type than their operands have, on the evaluator and on devices, beside plain code. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../../../device/device.ts";
import { open } from "../../../runtime/open.ts";
import { evaluate } from "../../evaluate/index.ts";
import { compilePlan } from "../../plan/compile.ts";
import { Program } from "../../plan/program.ts";
import { parseGraph } from "../../text/index.ts";

let device: Device;
beforeAll(async () => {
  device = await open("simulator", { onNotes: () => undefined });
});
afterAll(() => {
  device.dispose();
});

/** A sum of two by a region of f32 or i32. */
const sum = (type: string): string => `({
  ^bb0(%a: tensor<${type}>, %b: tensor<${type}>):
    %s = stablehlo.add %a, %b : tensor<${type}>
    stablehlo.return %s : tensor<${type}>
  })`;

// 1 + 2^-7 is the next number of bf16 above 1: sums of them are no numbers of bf16.
const next = 1 + 2 ** -7;
const x = [next, 3, -next, 0.5, 200, next, 7, 1];
const bf16 = `dense<[${x.map((each) => each.toString()).join(", ")}]> : tensor<8xbf16>`;

const programs: readonly (readonly [string, string, string, readonly number[]])[] = [
  [
    "reduce",
    `%x = stablehlo.constant ${bf16}
     %i = stablehlo.constant dense<0.25> : tensor<bf16>
     %r = "stablehlo.reduce"(%x, %i) ${sum("f32")} {dimensions = array<i64: 0>} : (tensor<8xbf16>, tensor<bf16>) -> tensor<f32>`,
    "tensor<f32>",
    [x.reduce((total, each) => total + each, 0.25)],
  ],
  [
    "reduce of i8 in i32",
    `%x = stablehlo.constant dense<100> : tensor<3x5xi8>
     %i = stablehlo.constant dense<-7> : tensor<i8>
     %r = "stablehlo.reduce"(%x, %i) ${sum("i32")} {dimensions = array<i64: 1>} : (tensor<3x5xi8>, tensor<i8>) -> tensor<3xi32>`,
    "tensor<3xi32>",
    [493, 493, 493],
  ],
  [
    "reduce_window",
    `%x = stablehlo.constant ${bf16}
     %i = stablehlo.constant dense<0.0> : tensor<bf16>
     %r = "stablehlo.reduce_window"(%x, %i) ${sum("f32")} {window_dimensions = array<i64: 2>} : (tensor<8xbf16>, tensor<bf16>) -> tensor<7xf32>`,
    "tensor<7xf32>",
    x.slice(1).map((each, i) => each + (x[i] ?? 0)),
  ],
  [
    "scatter",
    `%x = stablehlo.constant ${bf16}
     %p = stablehlo.constant dense<[[4], [4], [0]]> : tensor<3x1xi32>
     %u = stablehlo.constant dense<[${next}, 0.5, ${next}]> : tensor<3xbf16>
     %r = "stablehlo.scatter"(%x, %p, %u) ${sum("f32")} {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<8xbf16>, tensor<3x1xi32>, tensor<3xbf16>) -> tensor<8xf32>`,
    "tensor<8xf32>",
    x.map((each, i) => each + (i === 4 ? next + 0.5 : i === 0 ? next : 0)),
  ],
  [
    "select_and_scatter",
    `%x = stablehlo.constant ${bf16}
     %s = stablehlo.constant dense<[${next}, 2.0, 200.0, 3.0, 4.0, 5.0, 6.0]> : tensor<7xbf16>
     %i = stablehlo.constant dense<0.0> : tensor<bf16>
     %r = "stablehlo.select_and_scatter"(%x, %s, %i) ({
      ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
        %c = stablehlo.compare GE, %a, %b : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
     }, ${sum("f32").slice(1, -1)}) {window_dimensions = array<i64: 2>} : (tensor<8xbf16>, tensor<7xbf16>, tensor<bf16>) -> tensor<8xf32>`,
    "tensor<8xf32>",
    [0, next + 2, 0, 200, 3 + 4, 0, 5 + 6, 0],
  ],
];

describe.each(programs)("%s", (_, body, type, wanted) => {
  const [module] = parseGraph(`func.func @main() -> ${type} {\n${body}\nreturn %r : ${type}\n}`);
  if (module === undefined) throw new Error("the text has a program");

  test("by the evaluator", () => {
    const [result] = evaluate(module, "main", []);
    expect([...(result?.kind === "tensor" ? result.data : [])]).toEqual(wanted);
  });

  test("on a device", async () => {
    const program = await Program.load(device, compilePlan(module, "main"));
    try {
      const [result] = await program.run([]);
      expect([...(result?.data ?? [])]).toEqual(wanted);
    } finally {
      program.dispose();
    }
  });
});
