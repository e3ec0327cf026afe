/**
 * Every function that programs import has what a function must have, or a reason why not: a page that names it, an example that
 * uses it, calls with what it does not take, a gradient, a case of the device suite, a benchmark. Operations also have a place in the table of
 * docs/kernels.md. A new export fails here
 * with what is missing and where it belongs; `exports.ts` is the table of reasons.
 */
import { describe, expect, test } from "vitest";
import * as language from "tilewright";
import * as arrays from "tilewright/arrays";
import * as kernels from "tilewright/kernels";
import { gradients } from "./arrays/gradients.ts";
import { cases } from "./arrays/numpy/cases.ts";
import { arrayReasons, inArrays, kernelReasons, languageReasons } from "./exports.ts";
import type { Aspect, Reasons } from "./exports.ts";
import { listFiles, readText } from "./source-files.ts";
import { programs } from "./support/snippets.ts";

const generated = /^docs\/(operations|stablehlo-operations|diagnostics)\.md$/;
const pages = listFiles("docs", /\.md$/).filter((page) => !generated.test(page));
const examples = [
  ...programs.map(({ code }) => code),
  ...listFiles("examples", /\.ts$/).map(readText),
];

function textOf(...folders: readonly string[]): string {
  return folders.flatMap((folder) => listFiles(folder, /\.ts$/).map(readText)).join("\n");
}

/** Names that programs import from an entry, and members of what they import: "matmul", "nn.relu". */
function namesUsed(entry: string, texts: readonly string[]): ReadonlySet<string> {
  const used = new Set<string>();
  const statement = new RegExp(`import \\{([^}]*)\\} from "${entry}"`, "g");
  for (const text of texts)
    for (const [, list = ""] of text.matchAll(statement))
      for (const item of list.split(",")) {
        const [name = "", own = name] = item.trim().split(" as ");
        used.add(name);
        for (const [, member = ""] of text.matchAll(new RegExp(`\\b${own}\\.(\\w+)`, "g")))
          used.add(`${name}.${member}`);
      }
  return used;
}

/** Functions by name, those of namespaces too. Classes and errors are no operations. */
function functionsOf(module: object): readonly string[] {
  const isFunction = (name: string, value: unknown): boolean =>
    typeof value === "function" && !/^[A-Z]/.test(name);
  return Object.entries(module).flatMap(([name, value]: [string, unknown]) =>
    isFunction(name, value)
      ? [name]
      : /^(nn|random|activations)$/.test(name)
        ? Object.entries(value as object)
            .filter(([inner, each]) => isFunction(inner, each))
            .map(([inner]) => `${name}.${inner}`)
        : [],
  );
}

/** Whether a text has the name, or the last part of it, as a word of code. */
function hasWord(text: string, name: string): boolean {
  return new RegExp(`\\b${name.replace(/^.*\./, "")}\\b`).test(text);
}

interface Check {
  readonly has: (name: string) => boolean;
  readonly where: string;
}

interface Entry {
  readonly entry: string;
  readonly module: object;
  readonly reasons: Reasons;
  readonly checks: { readonly [A in Aspect]?: Check };
}

function onPages(wanted: (page: string) => boolean, where: string): Check {
  const text = pages.filter(wanted).map(readText).join("\n");
  const quoted = [...text.matchAll(/`([^`\n]+)`/g)].map(([, name = ""]) => name).join("\n");
  return { has: (name) => hasWord(quoted, name), where };
}

function inExamples(entry: string): Check {
  const used = namesUsed(entry, examples);
  return { has: (name) => used.has(name), where: "a program on its page, or in examples" };
}

const badCallText = textOf("test/support/bad-calls");
const badCalls: Check = {
  has: (name) => hasWord(badCallText, name),
  where: "test/support/bad-calls, where each parameter says what it takes",
};
/** The device suite, and what it has from test/support. */
const suite = textOf("test/gpu", "test/matrix", "test/features");
const shared = [...suite.matchAll(/"\.\.\/support\/([\w-]+\.ts)"/g)];
/** Without the option of `permute`, which is called as a function of `random` is. */
const withoutOptions = (text: string): string => text.replaceAll("permutation:", "");
const libraryText = withoutOptions(
  [suite, ...shared.map(([, file]) => readText(`test/support/${file}`))].join("\n"),
);
const deviceText = libraryText + textOf("test/pipelines", "test/programs", "examples");
const benchText = withoutOptions(textOf("bench/gpu"));
/** Gradients themselves; operations that have one; those that are a function of arrays with one. */
function hasGradient(name: string): boolean {
  if (/Backward/.test(name)) return true;
  const inPrograms = inArrays[name];
  return (
    Object.keys(kernels).some((each) => each.startsWith(`${name}Backward`)) ||
    (inPrograms !== undefined && Object.hasOwn(gradients, inPrograms))
  );
}

const kernelTable = readText("docs/kernels.md")
  .split("\n")
  .filter((line) => /^\| (\[kernels-|below)/.test(line))
  .join("\n");
const isKernelPage = (page: string): boolean => /^docs\/(kernels|matmul-steps)/.test(page);

const entries: readonly Entry[] = [
  {
    entry: "tilewright",
    module: language,
    reasons: languageReasons,
    checks: {
      page: onPages(
        (page) => !isKernelPage(page) && !/^docs\/array/.test(page),
        "docs/language.md or the page of its subject",
      ),
      example: inExamples("tilewright"),
      badCalls,
      matrix: {
        has: (name) => hasWord(deviceText, name),
        where: "test/matrix, a row of test/features, or a program of test/gpu",
      },
    },
  },
  {
    entry: "tilewright/kernels",
    module: kernels,
    reasons: kernelReasons,
    checks: {
      page: onPages(isKernelPage, "the page of its family, docs/kernels-….md"),
      table: {
        has: (name) => hasWord(kernelTable, name),
        where: "the table of pages of docs/kernels.md",
      },
      example: inExamples("tilewright/kernels"),
      badCalls,
      gradient: {
        has: hasGradient,
        where:
          "src/kernels as an operation …Backward; as a function of arrays with a gradient, to `inArrays` in test/exports.ts",
      },
      matrix: { has: (name) => hasWord(libraryText, name), where: "test/gpu/library.ts" },
      benchmark: { has: (name) => hasWord(benchText, name), where: "bench/gpu/cases" },
    },
  },
  {
    entry: "tilewright/arrays",
    module: arrays,
    reasons: arrayReasons,
    checks: {
      page: onPages((page) => /^docs\/array/.test(page), "docs/array-functions.md"),
      example: inExamples("tilewright/arrays"),
      badCalls,
      gradient: {
        has: (name) => Object.hasOwn(gradients, name) || Object.hasOwn(cases, name),
        where: "test/arrays/gradients.ts or test/arrays/numpy/cases.ts",
      },
    },
  },
];

describe.each(entries)("$entry", ({ entry, module, reasons, checks }) => {
  const names = functionsOf(module);
  const aspects = Object.entries(checks) as [Aspect, Check][];

  test.each(aspects)("%s of every function", (aspect, { has, where }) => {
    const missing = names.filter((name) => !has(name) && reasons[name]?.[aspect] === undefined);
    expect(missing, `add them to ${where}, or a reason to test/exports.ts`).toEqual([]);
  });

  test("reasons are of functions, and for what they lack", () => {
    const stale = Object.entries(reasons).flatMap(([name, given]) =>
      names.includes(name)
        ? aspects
            .filter(([aspect, { has }]) => given[aspect] !== undefined && has(name))
            .map(([aspect]) => `${name} has its ${aspect}`)
        : [`${entry} has no ${name}`],
    );
    expect(stale).toEqual([]);
  });
});

test("operations that are functions of arrays exist", () => {
  const names = functionsOf(kernels);
  expect(Object.keys(inArrays).filter((name) => !names.includes(name))).toEqual([]);
});
