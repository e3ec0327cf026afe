/**
 * Every rule of every pass that programs go through has a program in which it applies, and is checked on it by exact arithmetic; so are
 * random programs. Those that change numbers on purpose are listed, and do.
 */
import { describe, expect, test } from "vitest";
import { readText, listFiles } from "../../source-files.ts";
import { takesAll } from "../../support/sample.ts";
import { complexKinds } from "../../../src/graph/lower/complex/rules.ts";
import { splitComplexPass } from "../../../src/graph/lower/complex/pass.ts";
import { derivativesPass } from "../../../src/graph/passes/derivatives.ts";
import { standardPasses } from "../../../src/graph/passes/pass-order.ts";
import type { GraphPass } from "../../../src/graph/passes/pass.ts";
import { structureText } from "../../../src/graph/passes/structure.ts";
import { devicePasses } from "../../../src/graph/plan/device-passes.ts";
import type { GraphModule } from "../../../src/graph/ops/node.ts";
import { cpuTarget } from "../../../src/targets/target.ts";
import { parseGraph } from "../../../src/graph/text/index.ts";
import { verifyGraph } from "../../../src/graph/verify/index.ts";
import { inexactRules, isInexact } from "../../../src/graph/verify/inexact-rules.ts";
import { checkPasses, checkRewrite } from "../../../src/graph/verify/rewrites.ts";
import { opCases } from "../every-op.ts";
import { tryRewrites } from "../program-fuzz/campaign.ts";
import { complexPrograms, furtherCases, rewriteCases } from "./cases.ts";

function moduleOf(text: string): GraphModule {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("the text has a program");
  verifyGraph(module);
  return module;
}

const passes = new Map<string, GraphPass>(
  [
    derivativesPass,
    ...standardPasses,
    ...devicePasses("main", "f32", cpuTarget),
    ...devicePasses("main", "f32"),
  ].map((pass) => [pass.name, pass]),
);

/** The functions that ops are expanded by, as lowerings name them. */
function expansions(): readonly string[] {
  const sources = listFiles("src/graph/lower", /\.ts$/).map(readText).join("\n");
  const named = sources.matchAll(/form: "expand",\s*to: (?:meanings\["([\w.]+)"\]|([\w.]+))/g);
  const found = Array.from(named, ([, meaning, name]) => meaning ?? name ?? "");
  // Gradients of convolutions say theirs in a form of their own; two meanings are one function.
  const forms = Array.from(sources.matchAll(/\{ to: (\w+) \}/g), ([, name]) => name ?? "");
  const bodies = new Set(["tilewright.custom_vjp", "tilewright.checkpoint"]);
  return [...new Set([...found, ...forms])]
    .filter((name) => name !== "gradient.to")
    .map((name) => (bodies.has(name) ? "bodyOf" : name));
}

function rulesOf(pass: GraphPass): readonly string[] {
  if (pass.name === "expand") return [...new Set(expansions())];
  return pass.rules ?? [pass.name];
}

interface Applied {
  readonly before: GraphModule;
  readonly after: GraphModule;
  readonly rules: ReadonlySet<string>;
}

/** What a pass makes of a program, and by which of its rules. */
function applied(pass: GraphPass, text: string): Applied {
  const rules = new Set<string>();
  const before = moduleOf(text);
  const after = pass.run(before, (rule) => rules.add(rule));
  const [from, to] = [before, after].map(({ functions }) =>
    Array.from(functions.values(), ({ body }) => structureText(body)).join(),
  );
  if (from !== to) rules.add(pass.name);
  verifyGraph(after);
  return { before, after, rules };
}

const split = splitComplexPass("main");

/** Complex numbers have no order, and some programs compare. */
const compares = new Set(complexPrograms.map(({ kind }) => kind));

/** Programs of complex numbers: those of every op, of other elements. */
const complexCases = [
  ...complexPrograms,
  ...Object.entries(opCases).flatMap(([kind, each]) => {
    if (!("text" in each) || !complexKinds.includes(kind) || compares.has(kind)) return [];
    const text = each.text.includes("complex")
      ? each.text
      : each.text
          .replaceAll("f64", "complex<f64>")
          .replaceAll(/dense<([\d.]+)>/g, "dense<($1, 2.0)>");
    try {
      moduleOf(text);
      return [{ kind, text }];
    } catch {
      return [];
    }
  }),
];

describe.each([...passes.values()].filter(({ name }) => name !== split.name))("$name", (pass) => {
  const cases = rewriteCases[pass.name] ?? {};

  test("has a program for each of its rules", () => {
    expect(Object.keys(cases).toSorted()).toEqual([...rulesOf(pass)].toSorted());
  });

  test.each(Object.entries(cases))("%s", (rule, text) => {
    const { before, after, rules } = applied(pass, text);
    expect([...rules]).toContain(rule);
    const difference = checkRewrite(before, after);
    if (isInexact(pass.name, rule)) expect(difference).toBeDefined();
    else expect(difference).toBeUndefined();
  });
});

describe("split complex", () => {
  test.each(complexCases)("$kind", ({ kind, text }) => {
    const { before, after, rules } = applied(split, text);
    expect([...rules]).toContain(kind);
    const difference = checkRewrite(before, after);
    if (isInexact(split.name, kind)) expect(difference).toBeDefined();
    else expect(difference).toBeUndefined();
  });

  test("has a program for most kinds", () => {
    expect(complexCases.length).toBeGreaterThan(55);
  });
});

test.each(furtherCases)("$pass: $what", ({ pass: name, text }) => {
  const pass = passes.get(name);
  if (pass === undefined) throw new Error(`no pass is called ${name}`);
  expect(checkPasses(moduleOf(text), [pass])).toBeUndefined();
});

test("inexact rules are rules", () => {
  const known = new Set([
    ...[...passes.values()].flatMap((pass) => rulesOf(pass).map((rule) => `${pass.name} ${rule}`)),
    ...complexKinds.map((kind) => `${split.name} ${kind}`),
  ]);
  expect(inexactRules.filter(({ pass, rule }) => !known.has(`${pass} ${rule}`))).toEqual([]);
});

test.each(
  Object.entries(opCases).flatMap(([kind, each]) => ("text" in each ? [{ kind, ...each }] : [])),
)("all passes keep $kind", ({ text }) => {
  expect(checkPasses(moduleOf(text), [...passes.values()])).toBeUndefined();
});

test("random programs of one or two ops; npm run fuzz:programs -- --rewrites has larger ones", async () => {
  const [first, count] = [1, takesAll ? 5000 : 500];
  const seeds = Array.from({ length: count }, (_, i) => first + i);
  const { failures, programs } = await tryRewrites(seeds, 2);
  expect(failures, `seeds from ${first}`).toEqual([]);
  expect(programs).toBeGreaterThan(count / 2);
});
