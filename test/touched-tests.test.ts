import { expect, test } from "vitest";
import { touchedTests, withinSeconds } from "../scripts/touched-tests.ts";

const tests = new Map([
  ["src/ir/print.test.ts", ""],
  ["src/ir/parse.test.ts", ""],
  ["src/ir/passes/fold.test.ts", ""],
  ["test/architecture.test.ts", ""],
  ["test/cases.test.ts", 'import { isTaken } from "./support/sample.ts";'],
  ["test/fuzz/fuzz.test.ts", ""],
  ["test/snippets.test.ts", ""],
]);
const repository = ["test/architecture.test.ts"];

test.each([
  ["src/ir/print.ts", ["src/ir/print.test.ts"], ["src/ir/parse.test.ts"]],
  ["src/ir/print.test.ts", ["src/ir/print.test.ts"], ["src/ir/parse.test.ts"]],
  ["src/ir/new.ts", [], ["src/ir/print.test.ts", "src/ir/parse.test.ts"]],
  ["src/ir/rules/new.ts", [], ["src/ir/print.test.ts", "src/ir/parse.test.ts"]],
  ["test/fuzz/seeds.ts", [], ["test/fuzz/fuzz.test.ts"]],
  ["test/support/sample.ts", ["test/cases.test.ts"], []],
  ["docs/language.md", ["test/snippets.test.ts"], []],
  ["package.json", [], []],
])("a change of %s asks for the tests near it", (file, nearest, folders) => {
  expect(touchedTests([file], tests)).toEqual({ nearest, repository, folders });
});

test("a test is asked for once", () => {
  const changed = ["src/ir/print.ts", "src/ir/parse.ts", "test/architecture.test.ts"];
  expect(touchedTests(changed, tests)).toEqual({
    nearest: ["src/ir/print.test.ts", "src/ir/parse.test.ts", "test/architecture.test.ts"],
    repository: [],
    folders: [],
  });
});

test("of more than fits, the shortest", () => {
  const seconds: { readonly [test: string]: number } = { a: 20, b: 3, c: 8, d: 1 };
  const secondsOf = (name: string): number => seconds[name] ?? 0;
  expect(withinSeconds(["a", "b", "c", "d"], secondsOf, 12)).toEqual({
    taken: ["d", "b", "c"],
    left: ["a"],
  });
});
