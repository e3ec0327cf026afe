/** Calls that mean other ops: on the evaluator and the simulator against numbers worked out by hand. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../../../device/device.ts";
import { open } from "../../../runtime/open.ts";
import { evaluate, isTensorDatum } from "../../evaluate/index.ts";
import { numbersOf } from "../../evaluate/scalars.ts";
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

function moduleOf(text: string) {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("the text has a program");
  return module;
}

/** The results of a program without parameters, on the evaluator and on the simulator. */
async function resultsOf(text: string): Promise<readonly (readonly (readonly number[])[])[]> {
  const module = moduleOf(text);
  const own = evaluate(module, "main", []).filter(isTensorDatum);
  const program = await Program.load(device, compilePlan(module, "main"));
  try {
    const found = (await program.run([])).filter(isTensorDatum);
    return [own, found].map((results) => results.map((each) => Array.from(numbersOf(each))));
  } finally {
    program.dispose();
  }
}

async function expectResults(text: string, expected: readonly (readonly number[])[]) {
  for (const results of await resultsOf(text))
    for (const [i, numbers] of expected.entries())
      for (const [j, number] of numbers.entries())
        expect(results[i]?.[j], `result ${i}, element ${j}`).toBeCloseTo(number, 5);
}

const settings = (text: string): string =>
  `{backend_config = "", mhlo.backend_config = {${text}}, mhlo.frontend_attributes = {num_batch_dims = "0"}}`;

describe("factors and systems of LAPACK", () => {
  const potrf = (
    uplo: string,
    matrix: string,
  ): string => `func.func @main() -> (tensor<2x2xf32>, tensor<i32>) {
    %a = stablehlo.constant dense<${matrix}> : tensor<2x2xf32>
    %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) ${settings(`uplo = ${uplo.codePointAt(0)} : ui8`)} : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
    return %0#0, %0#1 : tensor<2x2xf32>, tensor<i32>
  }`;

  test("potrf leaves the other triangle as it was", async () => {
    await expectResults(potrf("L", "[[4.0, 99.0], [2.0, 5.0]]"), [[2, 99, 1, 2], [0]]);
    await expectResults(potrf("U", "[[4.0, 2.0], [99.0, 5.0]]"), [[2, 1, 99, 2], [0]]);
  });

  test("potrf says where there is no factor", async () => {
    for (const results of await resultsOf(potrf("L", "[[1.0, 2.0], [2.0, 1.0]]")))
      expect(results[1]).toEqual([1]);
  });

  test.each([
    ["L", "N", "L", "N", [1, 2]],
    ["L", "T", "L", "N", [-0.5, 2.5]],
    ["L", "N", "L", "U", [2, 4]],
    ["R", "N", "L", "N", [-0.5, 2.5]],
  ])(
    "trsm side %s, transposed %s, triangle %s, diagonal %s",
    async (side, mode, uplo, diagonal, x) => {
      const code = (text: string): string => `${text.codePointAt(0)} : ui8`;
      const shape = side === "L" ? "2x1" : "1x2";
      const right = side === "L" ? "[[2.0], [10.0]]" : "[[4.0, 10.0]]";
      const given = mode === "T" ? "[[4.0], [10.0]]" : right;
      const choice = `diag = ${code(diagonal)}, side = ${code(side)}, trans_x = ${code(mode)}, uplo = ${code(uplo)}`;
      await expectResults(
        `func.func @main() -> tensor<${shape}xf32> {
        %a = stablehlo.constant dense<[[2.0, 7.0], [2.0, 4.0]]> : tensor<2x2xf32>
        %b = stablehlo.constant dense<${diagonal === "U" ? "[[2.0], [8.0]]" : given}> : tensor<${shape}xf32>
        %0 = stablehlo.custom_call @lapack_strsm_ffi(%a, %b) ${settings(choice)} : (tensor<2x2xf32>, tensor<${shape}xf32>) -> tensor<${shape}xf32>
        return %0 : tensor<${shape}xf32>
      }`,
        [x],
      );
    },
  );
});

test("ApproxTopK sorts by the function that it names", async () => {
  await expectResults(
    `module {
      func.func @smaller(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
        %0 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %0 : tensor<i1>
      }
      func.func public @main() -> (tensor<2x2xf32>, tensor<2x2xi32>) {
        %x = stablehlo.constant dense<[[5.0, 1.0, 3.0, 2.0], [0.0, 9.0, -1.0, 4.0]]> : tensor<2x4xf32>
        %i = stablehlo.iota dim = 1 : tensor<2x4xi32>
        %c = stablehlo.constant dense<-1> : tensor<i32>
        %z = stablehlo.constant dense<0x7F800000> : tensor<f32>
        %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %z, %c) {called_computations = [@smaller], mhlo.backend_config = {aggregate_to_topk = true, is_fallback = true, reduction_dim = 1 : i64, top_k = 2 : i64}} : (tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
        return %0#0, %0#1 : tensor<2x2xf32>, tensor<2x2xi32>
      }
    }`,
    [
      [1, 2, -1, 0],
      [1, 3, 2, 0],
    ],
  );
});

test("a call whose settings are not known is refused, on the evaluator and on devices", () => {
  const module =
    moduleOf(`func.func @main(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<2xf32>, tensor<2xi32>) {
    %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<2xf32>, tensor<2xi32>)
    return %0#0, %0#1 : tensor<2xf32>, tensor<2xi32>
  }`);
  expect(() => compilePlan(module, "main")).toThrow("TW9601");
});
