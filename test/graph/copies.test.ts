/**
 * What programs copy: JAX's models read heads where they lie, write caches and stacks in place, and carry from turn to turn what they change. A launch
 * that only moves elements is listed here with its number; more of them are a regression, fewer a new number.
 */
import { readFileSync } from "node:fs";
import { brotliDecompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { compilePlan } from "../../src/graph/plan/compile.ts";
import { allSteps } from "../../src/graph/plan/plan.ts";
import { parseGraph } from "../../src/graph/text/index.ts";
import { takesAll } from "../support/sample.ts";

/** Launches by the kernels' names: copies of carries, transposes, whole arrays for an update of a slice, and such updates in place. */
const moves = {
  bert: {},
  decode: { dynamic_update_slice_in_place: 32 },
  prefill: { dynamic_update_slice_in_place: 32 },
  lstm: { dynamic_update_slice_in_place: 26 },
  wave: { copy: 2 },
  gpt2_step: { permute: 12 },
  vit_train: { transpose: 1 },
} as const;

const always: readonly string[] = ["bert", "lstm", "wave"];
const taken = Object.entries(moves).filter(([name]) => takesAll || always.includes(name));

test.each(taken)("%s", (name, expected) => {
  const file = new URL(`../fixtures/models/${name}.mlir.br`, import.meta.url);
  const [module] = parseGraph(brotliDecompressSync(readFileSync(file)).toString());
  if (module === undefined) throw new Error("the text has a program");
  const found: { [kernel: string]: number } = {};
  for (const step of allSteps(compilePlan(module, "main").steps)) {
    if (step.kind !== "launch" && step.kind !== "operation") continue;
    const kernel = step.kind === "launch" ? step.kernel.kernel.name : step.operation.name;
    if (/^(copy|transpose|permute|dynamic_update_slice)/.test(kernel))
      found[kernel] = (found[kernel] ?? 0) + 1;
  }
  expect(found).toEqual(expected);
});
