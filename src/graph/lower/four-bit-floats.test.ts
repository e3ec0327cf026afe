/**
 * f4E2M1FN in programs, two numbers a byte on devices: results with odd extents, and parts that begin in the middle of a byte. The evaluator, which
 * has a code a byte, says what is right; codes are compared.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dealtTo } from "../../../test/support/sample.ts";
import type { Device } from "../../device/device.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { evaluate, tensor } from "../evaluate/index.ts";
import type { Tensor } from "../evaluate/index.ts";
import { compilePlan } from "../plan/compile.ts";
import { Program } from "../plan/program.ts";
import { parseGraph } from "../text/index.ts";

const devices = new Map<string, Device>();
beforeAll(async () => {
  for (const kind of ["simulator", "emulator"] as const)
    devices.set(kind, await open(kind, { onNotes: () => undefined }));
});
afterAll(() => {
  for (const device of devices.values()) device.dispose();
});

interface Case {
  readonly name: string;
  readonly shape: readonly number[];
  readonly result: string;
  readonly body: string;
}

const f4 = (...shape: readonly number[]): string => `tensor<${[...shape, "f4E2M1FN"].join("x")}>`;
const x = "%x";

const cases: readonly Case[] = [
  {
    name: "rounded",
    shape: [7, 19],
    result: f4(7, 19),
    body: `%w = stablehlo.convert ${x} : (${f4(7, 19)}) -> tensor<7x19xf32>
      %s = stablehlo.sine %w : tensor<7x19xf32>
      %r = stablehlo.convert %s : (tensor<7x19xf32>) -> ${f4(7, 19)}`,
  },
  {
    name: "transposed",
    shape: [33, 17],
    result: f4(17, 33),
    body: `%r = stablehlo.transpose ${x}, dims = [1, 0] : (${f4(33, 17)}) -> ${f4(17, 33)}`,
  },
  {
    name: "transposed, many",
    shape: [131, 129],
    result: f4(129, 131),
    body: `%r = stablehlo.transpose ${x}, dims = [1, 0] : (${f4(131, 129)}) -> ${f4(129, 131)}`,
  },
  {
    name: "cut out of the middle",
    shape: [5, 9],
    result: f4(3, 5),
    body: `%r = stablehlo.slice ${x} [1:4, 3:8] : (${f4(5, 9)}) -> ${f4(3, 5)}`,
  },
  {
    name: "joined and turned round",
    shape: [3, 5],
    result: f4(3, 10),
    body: `%b = stablehlo.reverse ${x}, dims = [1] : ${f4(3, 5)}
      %r = stablehlo.concatenate ${x}, %b, dim = 1 : (${f4(3, 5)}, ${f4(3, 5)}) -> ${f4(3, 10)}`,
  },
  {
    name: "padded",
    shape: [3, 5],
    result: f4(5, 8),
    body: `%c = stablehlo.constant dense<1.5> : ${f4()}
      %r = stablehlo.pad ${x}, %c, low = [1, 3], high = [1, 0], interior = [0, 0] : (${f4(3, 5)}, ${f4()}) -> ${f4(5, 8)}`,
  },
  {
    name: "written over",
    shape: [5, 7],
    result: f4(5, 7),
    body: `%o = stablehlo.constant dense<1> : tensor<i32>
      %c = stablehlo.constant dense<3.0> : ${f4(3, 3)}
      %r = stablehlo.dynamic_update_slice ${x}, %c, %o, %o : (${f4(5, 7)}, ${f4(3, 3)}, tensor<i32>, tensor<i32>) -> ${f4(5, 7)}`,
  },
  {
    name: "picked",
    shape: [6, 5],
    result: f4(3, 5),
    body: `%i = stablehlo.constant dense<[[5], [0], [3]]> : tensor<3x1xi32>
      %r = "stablehlo.gather"(${x}, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 5>}> : (${f4(6, 5)}, tensor<3x1xi32>) -> ${f4(3, 5)}`,
  },
  {
    name: "scattered",
    shape: [6, 5],
    result: f4(6, 5),
    body: `%i = stablehlo.constant dense<[[5], [0], [3]]> : tensor<3x1xi32>
      %u = stablehlo.constant dense<-1.5> : ${f4(3, 5)}
      %r = "stablehlo.scatter"(${x}, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = true}> ({
      ^bb0(%a: ${f4()}, %b: ${f4()}):
        stablehlo.return %b : ${f4()}
      }) : (${f4(6, 5)}, tensor<3x1xi32>, ${f4(3, 5)}) -> ${f4(6, 5)}`,
  },
  {
    name: "the largest of rows",
    shape: [5, 131],
    result: f4(5),
    body: `%z = stablehlo.constant dense<-6.0> : ${f4()}
      %r = stablehlo.reduce(${x} init: %z) applies stablehlo.maximum across dimensions = [1] : (${f4(5, 131)}, ${f4()}) -> ${f4(5)}`,
  },
  {
    name: "carried through a loop",
    shape: [3, 3],
    result: f4(3, 3),
    body: `%z = stablehlo.constant dense<0> : tensor<i32>
      %n = stablehlo.constant dense<3> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %q:2 = stablehlo.while(%i = %z, %a = ${x}) : tensor<i32>, ${f4(3, 3)}
      cond {
        %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %j = stablehlo.add %i, %one : tensor<i32>
        %t = stablehlo.transpose %a, dims = [1, 0] : (${f4(3, 3)}) -> ${f4(3, 3)}
        %b = stablehlo.negate %t : ${f4(3, 3)}
        stablehlo.return %j, %b : tensor<i32>, ${f4(3, 3)}
      }
      %r = stablehlo.negate %q#1 : ${f4(3, 3)}`,
  },
  {
    name: "four as a number of 16 bits",
    shape: [3, 4],
    result: "tensor<3xui16>",
    body: `%r = stablehlo.bitcast_convert ${x} : (${f4(3, 4)}) -> tensor<3xui16>`,
  },
  {
    name: "of bytes",
    shape: [3, 6],
    result: f4(3, 3, 2),
    body: `%h = stablehlo.reshape ${x} : (${f4(3, 6)}) -> ${f4(3, 3, 2)}
      %b = stablehlo.bitcast_convert %h : (${f4(3, 3, 2)}) -> tensor<3x3xui8>
      %r = stablehlo.bitcast_convert %b : (tensor<3x3xui8>) -> ${f4(3, 3, 2)}`,
  },
];

describe.each(["simulator", "emulator"] as const)("two a byte on the %s", (kind) => {
  test.each(dealtTo(kind, cases))("$name", async ({ shape, result, body }) => {
    const random = new Random(23);
    const count = shape.reduce((all, extent) => all * extent, 1);
    const codes = Uint8Array.from({ length: count }, () => random.below(16));
    const given: Tensor = tensor("f4E2M1FN", shape, codes);
    const [module] = parseGraph(
      `func.func @main(${x}: ${f4(...shape)}) -> ${result} {\n${body}\nreturn %r : ${result} }`,
    );
    if (module === undefined) throw new Error("the text has a program");
    const program = await Program.load(devices.get(kind) as Device, compilePlan(module, "main"));
    try {
      const [[wanted], [found]] = [evaluate(module, "main", [given]), await program.run([given])];
      expect((found as Tensor).data).toEqual((wanted as Tensor).data);
    } finally {
      program.dispose();
    }
  });
});
