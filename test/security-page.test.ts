/** SECURITY.md: the commands, tests, codes and links that it names are there. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import { codes } from "../src/support/diagnostic-codes/index.ts";
import { readText, repositoryRoot } from "./source-files.ts";

const page = readText("SECURITY.md");
const all = (pattern: RegExp): readonly string[] =>
  [...page.matchAll(pattern)].map(([, found = ""]) => found);

/** The fragment that a heading has. */
function fragmentOf(heading: string): string {
  const words = heading.toLowerCase().replace(/[^\w\s-]/g, "");
  return words.trim().replaceAll(" ", "-");
}

test("its commands are scripts of package.json", () => {
  const named = all(/`npm run ([\w:]+)/g);
  expect(named.length).toBeGreaterThan(2);
  expect(named.filter((name) => !Object.hasOwn(manifest.scripts, name))).toEqual([]);
});

test("its tests are there", () => {
  const named = all(/((?:src|test)\/[\w/-]+\.test\.ts)/g);
  expect(named.length).toBeGreaterThan(3);
  expect(named.filter((path) => !existsSync(join(repositoryRoot, path)))).toEqual([]);
});

test("its links lead to pages and headings", () => {
  const links = all(/\]\(([^)]+)\)/g);
  expect(links.length).toBeGreaterThan(4);
  for (const link of links) {
    const [path = "", fragment] = link.split("#");
    expect(existsSync(join(repositoryRoot, path)), link).toBe(true);
    if (fragment === undefined) continue;
    const headings = [...readText(path).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => heading);
    expect(headings.map(fragmentOf), link).toContain(fragment);
  }
});

test("its codes are registered", () => {
  const named = all(/(TW\d{4})/g);
  expect(named.length).toBeGreaterThan(6);
  expect(named.filter((code) => !Object.hasOwn(codes, code))).toEqual([]);
});
