/**
 * Random scatters beside the evaluator: batches, windows of any extents, duplicates, indices out of bounds, NaN, and regions that combine, keep the
 * last or are the user's own. Run all of them with `SCATTERS=200 npx vitest run src/graph/lower/random-scatters.test.ts`.
 */
import process from "node:process";
import { expect, test } from "vitest";
import type { Device } from "../../device/device.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { evaluate, isTensorDatum, tensor } from "../evaluate/index.ts";
import type { Tensor } from "../evaluate/index.ts";
import { sizeOf } from "../ops/types.ts";
import { compilePlan } from "../plan/compile.ts";
import { Program } from "../plan/program.ts";
import { parseGraph } from "../text/index.ts";

const count = Number(process.env["SCATTERS"] ?? 6);
const seed = Number(process.env["SCATTER_SEED"] ?? 9000);

const regions: readonly string[] = [
  "%s = stablehlo.add %a, %b : E\n stablehlo.return %s : E",
  "%s = stablehlo.maximum %a, %b : E\n stablehlo.return %s : E",
  "%s = stablehlo.minimum %b, %a : E\n stablehlo.return %s : E",
  "stablehlo.return %b : E",
  "%s = stablehlo.subtract %b, %a : E\n stablehlo.return %s : E",
];

interface RandomScatter {
  readonly text: string;
  readonly inputs: readonly Tensor[];
}

/** A scatter whose axes are each a batch, indexed with a window of any extent, or wholly in the window. */
function randomScatter(random: Random): RandomScatter {
  const rank = 1 + random.below(3);
  const axes = Array.from({ length: rank }, (_, axis) => {
    const role = random.pick(["batch", "picked", "picked", "whole"]);
    const extent = role === "batch" ? 1 + random.below(3) : 1 + random.below(9);
    const size = role === "picked" ? 1 + random.below(extent) : extent;
    return { axis, role, extent, size, isInserted: role === "picked" && size === 1 };
  });
  const batch = axes.filter(({ role }) => role === "batch");
  const picked = axes.filter(({ role }) => role === "picked");
  const windowed = axes.filter(({ role, isInserted }) => role !== "batch" && !isInserted);
  const vectors = random.pick([1, 7, 70, 90]);
  const outer = [...batch.map(({ extent }) => extent), vectors];
  const isFirst = random.below(2) === 0;
  const windows = windowed.map(({ size }) => size);
  const update = isFirst ? [...windows, ...outer] : [...outer, ...windows];
  const dims = windows.map((_, i) => (isFirst ? i : outer.length + i));
  const element = random.pick(["f32", "i32"]);
  const type = (shape: readonly number[], of: string): string =>
    `tensor<${[...shape, of].join("x")}>`;
  const shape = axes.map(({ extent }) => extent);
  const indices = [...outer, picked.length];
  const list = (of: readonly { readonly axis: number }[]): string =>
    `[${of.map(({ axis }) => axis).join(", ")}]`;
  const numbers = [
    `update_window_dims = [${dims.join(", ")}]`,
    `inserted_window_dims = ${list(axes.filter(({ isInserted }) => isInserted))}`,
    `input_batching_dims = ${list(batch)}`,
    `scatter_indices_batching_dims = [${batch.map((_, i) => i).join(", ")}]`,
    `scatter_dims_to_operand_dims = ${list(picked)}`,
    `index_vector_dim = ${outer.length}`,
  ];
  const types = [type(shape, element), type(indices, "i32"), type(update, element)];
  const region = random.pick(regions).replaceAll("E", `tensor<${element}>`);
  const text = `func.func @main(%x: ${types[0]}, %i: ${types[1]}, %u: ${types[2]}) -> ${types[0]} {
    %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<${numbers.join(", ")}>}> ({
    ^bb0(%a: tensor<${element}>, %b: tensor<${element}>):
      ${region}
    }) : (${types.join(", ")}) -> ${types[0]}
    return %0 : ${types[0]} }`;
  const values = (of: readonly number[]): Tensor => {
    const some = Array.from({ length: sizeOf(of) }, () => random.below(13) - 6);
    if (element === "i32") return tensor("i32", of, Int32Array.from(some));
    const isNone = (): boolean => random.below(40) === 0;
    return tensor(
      "f32",
      of,
      Float32Array.from(some, (each) => (isNone() ? NaN : each)),
    );
  };
  const places = Array.from({ length: sizeOf(indices) }, () => random.below(11) - 1);
  const table = tensor("i32", indices, Int32Array.from(places));
  return { text, inputs: [values(shape), table, values(update)] };
}

async function run(device: Device, { text, inputs }: RandomScatter, note: string): Promise<void> {
  const [module] = parseGraph(text, "scatter.mlir");
  if (module === undefined) throw new Error("the text has a program");
  const program = await Program.load(device, compilePlan(module, "main"));
  const [first] = await program.run(inputs);
  const [wanted] = evaluate(module, "main", inputs).filter(isTensorDatum);
  expect(first?.data, note).toEqual(wanted?.data);
  program.dispose();
}

test("random scatters give the evaluator's bits", async () => {
  const device = await open("simulator", { onNotes: () => undefined });
  for (let each = 0; each < count; each += 1) {
    const made = randomScatter(new Random(seed + each));
    await run(device, made, `SCATTER_SEED=${seed + each} SCATTERS=1\n${made.text}`);
  }
  device.dispose();
}, 600_000);
