/** Programs that JAX printed for eight devices, on eight ranks. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readText, repositoryRoot } from "../../../test/source-files.ts";
import { readNpz } from "../../files/index.ts";
import { disagreement, evaluate, namedTensors } from "../evaluate/index.ts";
import type { GraphModule, GraphValue } from "../ops/index.ts";
import { parseGraph } from "../text/index.ts";
import { localize } from "./localize.ts";
import { runOnRanks } from "./run-program.ts";

const onCpu = { device: "cpu", matmulPrecision: "f32" } as const;

function program(text: string, file = "program.mlir"): GraphModule {
  const [module] = parseGraph(text, file);
  if (module === undefined) throw new Error("no program");
  return module;
}

describe("programs of shard_map give JAX's results", () => {
  test.each(["collectives", "experts_all_to_all", "ring_matmul"])("%s", async (name) => {
    const file = `test/fixtures/ranks/${name}.mlir`;
    const module = program(readText(file), file);
    const main = module.functions.get("main");
    const path = join(repositoryRoot, file.replace(/\.mlir$/, ".npz"));
    const arrays = await readNpz(new Uint8Array(readFileSync(path)));
    const types = (values: readonly GraphValue[] = []) => values.map(({ type }) => type);
    const inputs = namedTensors(arrays, "in", types(main?.body.parameters));
    const theirs = namedTensors(arrays, "out", types(main?.body.results));
    const reference = evaluate(module, "main", inputs, { widened: true });
    const evaluated = evaluate(module, "main", inputs);
    const results = await runOnRanks(module, "main", inputs, { ranks: 8, ...onCpu });
    expect(theirs.length).toBeGreaterThan(0);
    for (const [i, each] of theirs.entries()) {
      expect(disagreement(evaluated[i] ?? each, each, reference[i] ?? each)).toBeUndefined();
      expect(disagreement(results[i] ?? each, each, reference[i] ?? each, 8)).toBeUndefined();
    }
  });
});

describe("what ranks cannot run", () => {
  const meshed = (body: string, sharding = '[{"d"}]'): string => `module {
  sdy.mesh @mesh = <["d"=2]>
  func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, ${sharding}>}) -> tensor<4xf32> {
    ${body}
  }
}`;

  test("ops on cut arrays, whose shardings would have to be propagated", () => {
    const file = "test/fixtures/ranks/megatron_mlp.mlir";
    expect(() => localize(program(readText(file), file), "main")).toThrow(
      /TW9707: stablehlo\.dot_general works on an array that is cut along x[^]*megatron_mlp\.mlir:4:10/,
    );
  });

  test("shardings that name what is not there, or cut unevenly", () => {
    const kept = "return %x : tensor<4xf32>";
    for (const [sharding, found] of [
      ['[{"e"}]', /TW9708: a sharding does not fit/],
      ['[{"d", "d"}]', /TW9708: a sharding does not fit/],
    ] as const)
      expect(() => localize(program(meshed(kept, sharding)), "main")).toThrow(found);
    const uneven = meshed(kept).replaceAll("4xf32", "5xf32");
    expect(() => localize(program(uneven), "main")).toThrow(
      /TW9708: axis 0 of an array of \[5\] is not cut evenly along d of the mesh[^]*a multiple of 2/,
    );
  });

  test("another number of ranks", async () => {
    const module = program(meshed("return %x : tensor<4xf32>"));
    await expect(runOnRanks(module, "main", [], { ranks: 4, ...onCpu })).rejects.toThrow(
      /TW9706: @main is a program for 2 ranks/,
    );
  });
});

test("what is cut otherwise than a body wants is gathered and cut again", async () => {
  const module = program(`module {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func @main(%a: tensor<4x4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}, %b: tensor<4xi32>) -> (tensor<4x4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}]>}, tensor<4xi32>) {
    %c = stablehlo.add %b, %b : tensor<4xi32>
    %0:2 = sdy.manual_computation(%a, %c) in_shardings=[<@mesh, [{"x", "y"}, {}]>, <@mesh, [{"y"}]>] out_shardings=[<@mesh, [{}, {"x", "y"}]>, <@mesh, [{"y"}]>] manual_axes={"x", "y"} (%p: tensor<1x4xi32>, %q: tensor<2xi32>) {
      %1 = "stablehlo.all_to_all"(%p) <{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 4 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">, #stablehlo.axis_ref<name = "y">]>}> : (tensor<1x4xi32>) -> tensor<4x1xi32>
      sdy.return %1, %q : tensor<4x1xi32>, tensor<2xi32>
    } : (tensor<4x4xi32>, tensor<4xi32>) -> (tensor<4x4xi32>, tensor<4xi32>)
    %d = sdy.sharding_constraint %0#0 <@mesh, [{}, {}]> : tensor<4x4xi32>
    return %d, %0#1 : tensor<4x4xi32>, tensor<4xi32>
  }
}`);
  const a = {
    kind: "tensor",
    element: "i32",
    shape: [4, 4],
    data: Int32Array.from({ length: 16 }, (_, i) => i),
  } as const;
  const b = { ...a, shape: [4], data: Int32Array.of(1, 2, 3, 4) };
  const evaluated = evaluate(module, "main", [a, b]);
  const results = await runOnRanks(module, "main", [a, b], { ranks: 4, ...onCpu });
  expect(evaluated).toEqual([a, { ...b, data: Int32Array.of(2, 4, 6, 8) }]);
  expect(results.map(({ data }) => Array.from(data, Number))).toEqual([
    Array.from(a.data),
    [2, 4, 6, 8],
  ]);
});
