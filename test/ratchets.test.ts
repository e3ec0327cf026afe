/**
 * Counts of the source that may only fall. `ratchets.json` holds what they are; `UPDATE_GOLDEN=1` writes what they have
 * fallen to, and never anything larger.
 *
 *   "as never": 150       151 in src ─▶ fails, and names the files with most
 *                         148 in src ─▶ passes, and tells to record it
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { listFiles, readText, repositoryRoot } from "./source-files.ts";
import { castKinds, castsOf } from "./support/casts.ts";
import { importCircles, importsOf } from "./support/imports.ts";

const path = "test/ratchets.json";
const command = "UPDATE_GOLDEN=1 npx vitest run test/ratchets.test.ts";
const recorded = JSON.parse(readText(path)) as { readonly [name: string]: number };

interface Ratchet {
  readonly name: string;
  /** How a change that made it larger is mended. */
  readonly remedy: string;
  readonly count: number;
  /** Where most of it is. */
  readonly places: readonly string[];
}

const sources = listFiles("src", /(?<!\.test)\.ts$/).map((file) => {
  const text = readText(file);
  return { file, text, casts: castsOf(text), lines: text.split("\n").length - 1 };
});
type Source = (typeof sources)[number];

function largest(size: (source: Source) => number): readonly string[] {
  const sorted = sources.toSorted((a, b) => size(b) - size(a)).slice(0, 5);
  return sorted.map((source) => `${source.file}: ${size(source)}`);
}

const circles = importCircles(
  new Map(sources.map(({ file, text }) => [file, importsOf(file, text)])),
);

const ratchets: readonly Ratchet[] = [
  ...castKinds.map((kind) => {
    const countOf = ({ casts }: Source): number => casts.filter((cast) => cast === kind).length;
    return {
      name: kind,
      remedy: "Give the value its type where it is made, or narrow it by a check or a type guard.",
      count: sources.reduce((sum, source) => sum + countOf(source), 0),
      places: largest(countOf),
    };
  }),
  {
    name: "files in circles of imports",
    remedy: "Move a type to where it is used, or put an interface in a file that imports neither.",
    count: circles.flat().length,
    places: circles.slice(0, 5).map((circle) => circle.join(", ")),
  },
  {
    name: "files of the largest circle",
    remedy: "Move a type to where it is used, or put an interface in a file that imports neither.",
    count: circles[0]?.length ?? 0,
    places: circles.slice(0, 1).map((circle) => circle.join(", ")),
  },
  {
    name: "lines of the longest file",
    remedy: "Move a part of it that can be named to a file of its own.",
    count: Math.max(...sources.map(({ lines }) => lines)),
    places: largest(({ lines }) => lines),
  },
];

/** What is wrong with a count, and what to do. */
function complaint({ name, count, remedy, places }: Ratchet, most: number): string | undefined {
  if (count <= most) return undefined;
  return [`${name}: ${count}, at most ${most}. ${remedy}`, ...places].join("\n  ");
}

describe("what may only fall", () => {
  test.each(ratchets)("$name", (ratchet) => {
    expect(complaint(ratchet, recorded[ratchet.name] ?? Infinity)).toBeUndefined();
  });

  test("is recorded as it has fallen", () => {
    const counts = ratchets.map(({ name, count }) => {
      return [name, Math.min(count, recorded[name] ?? count)] as const;
    });
    const text = `${JSON.stringify(Object.fromEntries(counts), null, 2)}\n`;
    if (process.env["UPDATE_GOLDEN"] === "1") {
      writeFileSync(join(repositoryRoot, path), text);
      return;
    }
    // A smaller count does not fail: of two changes that lower it, the second would break on what the first records.
    if (text !== readText(path)) console.log(`Less than ${path} has: ${command}`);
    expect(Object.keys(recorded)).toEqual(ratchets.map(({ name }) => name));
  });
});

describe("ratchets", () => {
  test("count casts by kind, but not what looks like one", () => {
    const text = [
      'import { a as b } from "./a.ts";',
      "const kinds = [1, 2] as const;",
      "const one = kinds as unknown as Some;",
      "f(one as never, two as Other);",
      "// three as never",
      'const text = "four as never";',
    ].join("\n");
    expect([...castsOf(text)].sort()).toEqual(["as never", "as unknown as", "other casts"]);
  });

  test("name the remedy and the places", () => {
    const ratchet = { name: "casts", remedy: "Narrow it.", count: 3, places: ["src/a.ts: 3"] };
    expect(complaint(ratchet, 3)).toBeUndefined();
    expect(complaint(ratchet, 2)).toBe("casts: 3, at most 2. Narrow it.\n  src/a.ts: 3");
  });
});
