/** Random bits by Philox on devices: the library's where there are many, lane by lane elsewhere; both against the generator's definition. */
import { expect, test } from "vitest";
import { philox } from "../../../test/support/philox.ts";
import { open } from "../../runtime/open.ts";
import { tensor } from "../evaluate/index.ts";
import { compilePlan } from "../plan/compile.ts";
import type { Plan } from "../plan/plan.ts";
import { Program } from "../plan/program.ts";
import { planText } from "../plan/text.ts";
import { parseGraph } from "../text/index.ts";

function planOf(words: number, bits: string, algorithm = "PHILOX"): Plan {
  const state = `tensor<${words}xui64>`;
  const [module] = parseGraph(
    `func.func @main(%s: ${state}) -> (${state}, tensor<${bits}>) {
      %n, %b = stablehlo.rng_bit_generator %s, algorithm = ${algorithm} : (${state}) -> (${state}, tensor<${bits}>)
      return %n, %b : ${state}, tensor<${bits}> }`,
    "random.mlir",
  );
  if (module === undefined) throw new Error("the text has a program");
  return compilePlan(module, "main");
}

test.each([
  ["many of 32 bits", 3, "131x127xui32", "PHILOX", true],
  ["many floats, as on any device", 2, "16384xf32", "DEFAULT", true],
  ["few", 3, "100xui32", "PHILOX", false],
  ["many of 64 bits", 3, "131x127xui64", "PHILOX", false],
  ["Threefry's", 2, "131x127xui32", "THREE_FRY", false],
] as const)("the library draws %s: %s", (_, words, bits, algorithm, isLibrary) => {
  const text = planText(planOf(words, bits, algorithm));
  expect(text.includes("operation random_state_bits")).toBe(isLibrary);
});

/** A key and the counter's words, the lowest first. */
const states = [
  [5n, 7n, 9n],
  // The lowest word of 32 bits ends among the elements; then that of 64 does.
  [2n ** 63n + 1n, 2n ** 32n * 17n - 900n, 1n],
  [123456789n, 2n ** 64n - 1000n, 2n ** 64n - 1n],
  [77n, 2n ** 64n - 1000n],
] as const;

test.each(states)("bits and the state after %s, %s, %s", async (...state) => {
  const count = 16_390;
  const words = state.filter((word) => word !== undefined);
  const [key = 0n, low = 0n, high = key] = words;
  const counter = low | (high << 64n);
  const expected = Array.from({ length: count }, (_, element) => {
    const own = BigInt.asUintN(128, counter + BigInt(Math.floor(element / 4)));
    const parts = [0n, 32n, 64n, 96n].map((shift) => BigInt.asUintN(32, own >> shift));
    return philox([BigInt.asUintN(32, key), key >> 32n], parts)[element % 4];
  });
  const next = BigInt.asUintN(128, counter + BigInt(Math.ceil(count / 4)));
  const after = [key, BigInt.asUintN(64, next), next >> 64n].slice(0, words.length);
  const device = await open("emulator");
  const program = await Program.load(device, planOf(words.length, `2x${count / 2}xui32`));
  const [moved, bits] = await program.run([
    tensor("ui64", [words.length], BigUint64Array.from(words)),
  ]);
  expect([...((moved?.data ?? []) as BigUint64Array)]).toEqual(after);
  expect([...((bits?.data ?? []) as Uint32Array)]).toEqual(expected);
  program.dispose();
  device.dispose();
});
