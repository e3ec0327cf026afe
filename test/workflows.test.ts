/** The public workflows, as far as text tells: they run scripts that there are, on the versions of Node that the package is for. */
import { describe, expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import { listFiles, readText } from "./source-files.ts";

const files = listFiles(".github/workflows", /\.yml$/);
const own = new Set(Object.keys(manifest.scripts));

/** Versions that a workflow names, as `node-version: 20` or `node: [20, 22]`. */
function nodeVersions(text: string): readonly number[] {
  const named = [...text.matchAll(/^\s*node(?:-version)?: \[?([\d, ]+)\]?$/gm)];
  return named.flatMap(([, list = ""]) => list.split(",").map(Number));
}

test("there are the tests and the site", () => {
  expect(files).toEqual([".github/workflows/pages.yml", ".github/workflows/tests.yml"]);
});

describe.each(files)("%s", (file) => {
  const text = readText(file);
  const lines = text.split("\n").filter((line) => !/^\s*(#|$)/.test(line));

  test("is indented by pairs of spaces, a key or an item in each line", () => {
    const odd = lines.filter(
      (line) => !/^(?: {2})*(?:- )?(?:[\w-]+:(?: .*)?|[\w./ -]+)$/.test(line),
    );
    expect(odd).toEqual([]);
    // An item begins where its list does, and what is below a key is deeper by one step.
    const depths = lines.map((line) => /^[ ]*(?:- )?/.exec(line)?.[0].length ?? 0);
    const jumps = depths.filter((depth, index) => depth > (depths[index - 1] ?? 0) + 4);
    expect(jumps).toEqual([]);
  });

  test("runs scripts that there are", () => {
    const scripts = [...text.matchAll(/\brun: npm (?:run )?([\w:-]+)/g)].map(
      ([, name = ""]) => name,
    );
    expect(scripts.length).toBeGreaterThan(0);
    expect(scripts.filter((name) => name !== "ci" && !own.has(name))).toEqual([]);
    const programs = [...text.matchAll(/\brun: (\.\S+)/g)].map(([, path = ""]) => path);
    for (const path of programs) expect(readText(path)).toMatch(/^#!/);
  });

  test("names versions of Node that the package is for", () => {
    const versions = nodeVersions(text);
    const oldest = Number(/\d+/.exec(manifest.engines.node)?.[0]);
    expect(Math.min(...versions)).toBeGreaterThanOrEqual(oldest);
  });

  test("has the permissions that it needs and no others", () => {
    const block = /^permissions:\n((?: .*\n)+)/m.exec(text)?.[1] ?? "";
    expect(block).toContain("  contents: read\n");
    expect(block).not.toContain("contents: write");
  });
});

test("the tests run on three systems and every version of Node from the oldest", () => {
  const text = readText(".github/workflows/tests.yml");
  expect(text).toContain("os: [ubuntu-latest, macos-latest, windows-latest]");
  expect(text).toContain("node: [20, 22, 24, 26]");
  for (const command of ["npm test", ".ci/run", "npm run package-check"])
    expect(text).toContain(`      - run: ${command}\n`);
  expect(text.match(/timeout-minutes:/g)).toHaveLength(text.match(/runs-on:/g)?.length ?? 0);
});
