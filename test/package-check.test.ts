/** What `npm run package-check` takes for right; it itself needs the network, and is run by the workflow `tests.yml`. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { isAsked } from "../scripts/package-check/check.ts";
import { quickTests } from "../scripts/package-check/quick.ts";
import { isRight, readmePrograms } from "../scripts/package-check/readme.ts";
import { readText, repositoryRoot } from "./source-files.ts";

describe("programs of the README", () => {
  const programs = readmePrograms();

  test("have the text that follows them for their output, up to the next program", () => {
    expect(programs.length).toBeGreaterThan(4);
    expect(programs[0]?.printed).toBe("Float64Array(5) [ 12, 24, 36, 48, 60 ]");
    const texts = readText("README.md").match(/^```text$/gm) ?? [];
    expect(programs.filter(({ printed }) => printed !== undefined)).toHaveLength(texts.length);
  });

  test("lie in the file that their output names", () => {
    const named = programs.filter(({ printed }) => /\.ts:\d/.test(printed ?? ""));
    expect(named.map(({ file }) => file)).toEqual(["race.ts"]);
    expect(new Set(programs.map(({ file }) => file)).size).toBe(programs.length);
    for (const { code } of programs) expect(code).toMatch(/^import /);
  });
});

describe("an output", () => {
  const program = { title: "", file: "a.ts", code: "", printed: "TW1: x\n  at a.ts:1:2\n[ 1, 2 ]" };

  test("is right to the letter, but for ends of lines", () => {
    expect(isRight(program, "TW1: x\r\n  at a.ts:1:2\r\n[ 1, 2 ]\n")).toBe(true);
    expect(isRight(program, "TW1: x\n  at a.ts:1:3\n[ 1, 2 ]\n")).toBe(false);
  });

  test("of a bundle is right without places, with lists as browsers print them", () => {
    expect(isRight(program, "TW1: x\n  at http://h:1/x.js:7:8\n1 2", "none")).toBe(true);
    expect(isRight(program, "TW1: x\n1 2", "none")).toBe(true);
    expect(isRight(program, "TW1: x\n  at http://h:1/x.js:7:8\n1 3", "none")).toBe(false);
  });

  test("of Bun is right in another column, not in another line", () => {
    expect(isRight(program, "TW1: x\n  at a.ts:1:9\n[ 1, 2 ]", "lines")).toBe(true);
    expect(isRight(program, "TW1: x\n  at a.ts:2:2\n[ 1, 2 ]", "lines")).toBe(false);
  });

  test("of which the README says nothing is anything", () => {
    expect(isRight({ ...program, printed: undefined }, "1 ms")).toBe(true);
    expect(isRight({ ...program, printed: undefined }, "\n")).toBe(false);
  });
});

test("checks are asked for by name, or by what comes before a version", () => {
  const asked = (name: string, ...only: string[]): boolean => isAsked({ name }, only);
  expect([asked("node@20"), asked("node@20", "node"), asked("node@20", "node@20")]).toEqual([
    true,
    true,
    true,
  ]);
  expect([asked("node@20", "node@22"), asked("node", "node@20")]).toEqual([false, false]);
});

test("the quick tests are there", () => {
  for (const path of quickTests) expect(existsSync(join(repositoryRoot, path)), path).toBe(true);
});
