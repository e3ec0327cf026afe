/**
 * Programs of JAX with numbers in formats with scales, on devices that need no GPU: products of `jax.nn.scaled_matmul`, `jax.lax.scaled_dot` and
 * `jax.nn.scaled_dot_general`. Both our results and JAX's must be as near the exact sums as sums of tensor cores are.
 *
 *   Σ |a · b|    what the bound is a part of: the same program, of magnitudes
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../../src/device/device.ts";
import { readNpz } from "../../src/files/index.ts";
import { evaluate, namedTensors, numbersOf, tensor } from "../../src/graph/evaluate/index.ts";
import type { Datum, Tensor } from "../../src/graph/evaluate/index.ts";
import { compilePlan } from "../../src/graph/plan/compile.ts";
import { Program } from "../../src/graph/plan/program.ts";
import { parseGraph } from "../../src/graph/text/index.ts";
import { open } from "../../src/runtime/open.ts";
import { readText, repositoryRoot } from "../source-files.ts";

const devices = new Map<string, Device>();
beforeAll(async () => {
  for (const kind of ["simulator", "emulator"] as const)
    devices.set(kind, await open(kind, { onNotes: () => undefined }));
});
afterAll(() => {
  for (const device of devices.values()) device.dispose();
});

/** What f32 sums of `k` products may be off by: tensor cores cut 17 numbers of 16 products off after 25 bits, and the sum after 23. */
function boundOf(k: number): number {
  return Math.ceil(k / 16) * (17 * 2 ** -25 + 2 ** -23) + 2 ** -23;
}

function numbers(datum: Datum | undefined): Float64Array {
  return Float64Array.from(numbersOf(datum as Tensor), Number);
}

function expectNear(
  found: Float64Array,
  exact: Float64Array,
  sizes: Float64Array,
  bound: number,
): void {
  const wrong = Array.from(found.keys()).filter(
    (i) => !(Math.abs((found[i] ?? NaN) - (exact[i] ?? NaN)) <= bound * (sizes[i] ?? NaN)),
  );
  expect(wrong.map((i) => `${i}: ${found[i]}, exactly ${exact[i]}`)).toEqual([]);
}

/** The number of four bits that is nearest: what inputs become in the program that quantises them, where they are not such. */
function inFourBits(number: number): number {
  const unit = 2 ** (Math.floor(Math.log2(Math.abs(number))) - 3);
  return number === 0 ? 0 : Math.round(number / unit) * unit;
}

describe.each([
  ["scaled_mxfp8", 256],
  ["scaled_nvfp4", 128],
  ["scaled_dot_composite", 256],
  ["scaled_dot_general", 256],
] as const)("%s", (name, k) => {
  test("on evaluator, simulator and emulator", async () => {
    const file = `test/fixtures/programs/${name}.mlir`;
    const [module] = parseGraph(readText(file), file);
    const main = module?.functions.get("main");
    if (module === undefined || main === undefined) throw new Error(`${file} has no @main`);
    const bytes = readFileSync(join(repositoryRoot, file.replace(/\.mlir$/, ".npz")));
    const arrays = await readNpz(new Uint8Array(bytes));
    const typesOf = (values: typeof main.body.parameters) => values.map(({ type }) => type);
    const inputs = namedTensors(arrays, "in", typesOf(main.body.parameters));
    const [given] = namedTensors(arrays, "out", typesOf(main.body.results));
    const exactly = (each: (number: number) => number) => {
      const changed = inputs.map((input) =>
        tensor("f32", input.shape, Float32Array.from(numbers(input), each)),
      );
      return numbers(evaluate(module, "main", changed, { widened: true })[0]);
    };
    const exact = exactly(inFourBits);
    const sizes = exactly((number) => Math.abs(inFourBits(number)));
    expectNear(numbers(given), exact, sizes, boundOf(k));
    expectNear(numbers(evaluate(module, "main", inputs)[0]), exact, sizes, boundOf(k));
    const plan = compilePlan(module, "main");
    for (const device of devices.values()) {
      const program = await Program.load(device, plan);
      try {
        expectNear(numbers((await program.run(inputs))[0]), exact, sizes, boundOf(k));
      } finally {
        program.dispose();
      }
    }
  });
});
