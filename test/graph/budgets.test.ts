/**
 * What programs may take, without a GPU: launches, bytes that they move, and launches that are estimated at over three times their roofline. Each of these
 * is a kind of kernel with a reason in the table, `budgets.json`.
 *
 *   "kmeans": { "launches": 30, "megabytes": 6483, "slow": { "sort": 1 } }
 *
 * Programs may take less. What they then take, and new programs, `UPDATE_GOLDEN=1 TILEWRIGHT_CASES=all npx vitest run test/graph/budgets.test.ts`
 * records, of all programs; without the second, those that are planned in a moment are looked at, which are listed as quick.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliDecompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { array, lower } from "tilewright/arrays";
import { compilePlan, parseGraph, planCosts } from "tilewright/graph";
import type { StepCost } from "tilewright/graph";
import * as characters from "../../examples/characters.ts";
import * as gpt2 from "../../examples/gpt2.ts";
import { isSlow } from "../../src/graph/plan/cost-notes.ts";
import { repositoryRoot } from "../source-files.ts";
import { takesAll } from "../support/sample.ts";

interface Budget {
  readonly launches: number;
  readonly megabytes: number;
  readonly slow: { readonly [kind: string]: number };
}

interface Table {
  /** Why kinds of kernels may be slow. */
  readonly reasons: { readonly [kind: string]: string };
  /** Programs that are planned in a moment. */
  readonly quick: readonly string[];
  readonly programs: { readonly [name: string]: Budget };
}

const path = join(repositoryRoot, "test/graph/budgets.json");
const table = JSON.parse(readFileSync(path, "utf8")) as Table;
const isUpdate = process.env["UPDATE_GOLDEN"] === "1";

/** Compressed texts, and those that JAX printed of small programs. */
const folders = ["test/fixtures/models", "test/fixtures/programs"] as const;

/** Programs of the examples, in their small forms. */
const examples: readonly (readonly [string, () => string])[] = [
  [
    "examples/characters.ts",
    () => {
      const { tiny } = characters.configurations;
      type Tokens = Parameters<typeof characters.forward>[1];
      const forward = (own: characters.Parameters, tokens: Tokens) =>
        characters.forward(own, tokens, tiny);
      const tokens = array([Array.from({ length: tiny.context }, (_, i) => i % 27)], "i32");
      return lower(forward, characters.initialParameters(tiny, 27), tokens);
    },
  ],
  [
    "examples/gpt2.ts",
    () => {
      const { tiny } = gpt2.configurations;
      const state = gpt2.initialState(gpt2.initialParameters(tiny));
      return lower(gpt2.stepOf(tiny), state, ...gpt2.sampleBatch(tiny, 1));
    },
  ],
];

const texts = new Map<string, () => string>([
  ...examples,
  ...folders.flatMap((folder) =>
    readdirSync(join(repositoryRoot, folder)).flatMap((file) => {
      const [, name, compressed] = /^(.*)\.mlir(\.br)?$/.exec(file) ?? [];
      if (name === undefined) return [];
      const bytes = (): Buffer => readFileSync(join(repositoryRoot, folder, file));
      const text = (): string =>
        (compressed === undefined ? bytes() : brotliDecompressSync(bytes())).toString("utf8");
      return [[name, text] as const];
    }),
  ),
]);

function costsOf(name: string): readonly StepCost[] {
  const [module] = parseGraph(texts.get(name)?.() ?? "", `${name}.mlir`);
  return planCosts(compilePlan(module ?? expect.fail(`${name} has a program`), "main"));
}

function taken(costs: readonly StepCost[]): Budget {
  const slow = new Map<string, number>();
  for (const cost of costs) if (isSlow(cost)) slow.set(cost.kind, (slow.get(cost.kind) ?? 0) + 1);
  const bytes = costs.reduce((sum, cost) => sum + cost.runs * cost.bytes, 0);
  return {
    launches: costs.reduce((sum, { launches }) => sum + launches, 0),
    megabytes: Math.ceil(bytes / 1e6),
    slow: Object.fromEntries([...slow].sort(([left], [right]) => (left < right ? -1 : 1))),
  };
}

const names = [...texts.keys()].filter((name) => takesAll || table.quick.includes(name));

describe("what programs take", () => {
  const found = new Map<string, Budget>();

  test.each(names)("%s", { timeout: 120_000 }, (name) => {
    const own = taken(costsOf(name));
    found.set(name, own);
    if (isUpdate) return;
    const budget = table.programs[name] ?? expect.fail(`${name} has no budget`);
    expect(own.launches).toBeLessThanOrEqual(budget.launches);
    expect(own.megabytes).toBeLessThanOrEqual(budget.megabytes);
    for (const [kind, count] of Object.entries(own.slow))
      expect(count, `${kind} over three times its roofline`).toBeLessThanOrEqual(
        budget.slow[kind] ?? 0,
      );
  });

  test.runIf(isUpdate)("is recorded", () => {
    const programs = { ...table.programs, ...Object.fromEntries(found) };
    const sorted = Object.entries(programs).sort(([left], [right]) => (left < right ? -1 : 1));
    const rows = sorted.map(([name, budget]) => `    "${name}": ${JSON.stringify(budget)}`);
    const head = JSON.stringify({ reasons: table.reasons, quick: table.quick }, undefined, 2);
    writeFileSync(path, `${head.slice(0, -2)},\n  "programs": {\n${rows.join(",\n")}\n  }\n}\n`);
  });
});

describe("the table", () => {
  test("has every program, and no other", () => {
    expect(Object.keys(table.programs).sort()).toEqual([...texts.keys()].sort());
  });

  test("gives a reason for every kind that may be slow, and for no other", () => {
    const kinds = new Set(Object.values(table.programs).flatMap(({ slow }) => Object.keys(slow)));
    expect(Object.keys(table.reasons).sort()).toEqual([...kinds].sort());
  });
});
