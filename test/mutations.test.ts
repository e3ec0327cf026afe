/** The list of planted faults fits the source, and its results are counted right. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { transform } from "esbuild";
import { describe, expect, test } from "vitest";
import { applyFault, loadFaults, selectFaults } from "../scripts/mutations/faults.ts";
import type { Fault } from "../scripts/mutations/faults.ts";
import {
  enoughCaught,
  markdownReport,
  printedSummary,
  summarize,
} from "../scripts/mutations/report.ts";
import type { Result, Verdict } from "../scripts/mutations/report.ts";
import { repositoryRoot } from "./source-files.ts";

const faults = loadFaults(repositoryRoot);

const fault: Fault = {
  id: "area/name",
  area: "area",
  file: "src/file.ts",
  find: "a < b",
  replace: "a <= $& b",
  stages: [["src/"]],
};

function results(...verdicts: readonly Verdict[]): readonly Result[] {
  return verdicts.map((verdict) => ({ fault, verdict, detail: "a test | its name", seconds: 1 }));
}

describe("the list of faults", () => {
  test("covers every layer from formats to the emulator", () => {
    const count = (area: string) => selectFaults(faults, [area]).length;
    expect(count("formats")).toBeGreaterThanOrEqual(20);
    expect(count("passes")).toBeGreaterThanOrEqual(15);
    expect(count("simulator")).toBeGreaterThanOrEqual(30);
    expect(count("layout-algebra")).toBeGreaterThanOrEqual(20);
    expect(count("layout-solver")).toBeGreaterThanOrEqual(12);
    expect(count("layout-relayout")).toBeGreaterThanOrEqual(8);
    expect(count("layout-rules")).toBeGreaterThanOrEqual(10);
    for (const area of ["ir", "language", "device"]) expect(count(area)).toBeGreaterThan(5);
    for (const part of ["flow", "memory", "tiles", "numbers"])
      expect(count(`emitter-${part}`)).toBeGreaterThanOrEqual(30);
    expect(count("runtime")).toBeGreaterThanOrEqual(60);
    for (const part of ["text", "lanes", "collective", "checks"])
      expect(count(`emulator-${part}`)).toBeGreaterThanOrEqual(20);
    for (const part of ["traits", "facts", "placement", "order", "verifier"])
      expect(count(`lowering-${part}`)).toBeGreaterThanOrEqual(25);
    expect(count("lowering-notes")).toBeGreaterThanOrEqual(8);
    expect(count("lowering-surroundings")).toBeGreaterThanOrEqual(15);
  });

  test("fits the source, and every faulty file is still TypeScript", async () => {
    await Promise.all(
      faults.map(async (each) => {
        const source = readFileSync(join(repositoryRoot, each.file), "utf8");
        const faulty = applyFault(source, each);
        await expect(transform(faulty, { loader: "ts" }), each.id).resolves.toBeDefined();
        const lines = source.split("\n");
        const changed = faulty.split("\n").filter((line, index) => line !== lines[index]);
        expect(changed, each.id).toHaveLength(1);
      }),
    );
  });

  test("is searched by name and by area", () => {
    const [first] = faults;
    const passes = faults.filter(({ area }) => area === "passes");
    expect(first && selectFaults(faults, [first.id])).toEqual([first]);
    expect(selectFaults(faults, ["passes", first?.id ?? ""])).toEqual([first, ...passes]);
    expect(selectFaults(faults)).toBe(faults);
    expect(() => selectFaults(faults, ["nothing"])).toThrow("no fault or area is called nothing");
  });
});

describe("a fault", () => {
  test("replaces its text literally", () => {
    expect(applyFault("if (a < b) c();", fault)).toBe("if (a <= $& b) c();");
  });

  test("must be found exactly once", () => {
    expect(() => applyFault("a > b", fault)).toThrow("fault area/name: `a < b` occurs 0 times");
    expect(() => applyFault("a < b; a < b", fault)).toThrow("occurs 2 times in src/file.ts");
  });

  test("must change something", () => {
    expect(() => applyFault("a < b", { ...fault, replace: "a < b" })).toThrow("does not change");
  });
});

describe("results", () => {
  test("a timeout counts as caught", () => {
    expect(summarize(results("caught", "timeout", "survived"))).toEqual([
      { area: "area", faults: 3, caught: 2 },
      { area: "all", faults: 3, caught: 2 },
    ]);
  });

  test("19 of 20 are enough, 18 are not", () => {
    const some = (survivors: number) =>
      results(
        ...Array.from({ length: 20 }, (_, i) => (i < survivors ? "survived" : "caught") as Verdict),
      );
    expect(enoughCaught(some(1))).toBe(true);
    expect(enoughCaught(some(2))).toBe(false);
    expect(printedSummary(some(2))).toContain("90.0%");
  });

  test("the page counts areas and lists what survived, with bars that do not end a cell", () => {
    const escaped = { ...fault, replace: "a || b" };
    const [survivor] = results("survived").map((result) => ({ ...result, fault: escaped }));
    const page = markdownReport(
      [...results("caught"), ...(survivor ? [survivor] : [])],
      "2026-01-31",
    );
    expect(page).toContain("On 2026-01-31 the tests caught 1 of 2 faults, 50.0%.");
    expect(page).toContain("| area | 2 | 1 | 50.0% |");
    expect(page).toContain("| area/name | file.ts: `a < b` becomes `a \\|\\| b` |");
    expect(page.match(/area\/name/gu)).toHaveLength(1);
    expect(markdownReport(results("caught"), "2026-01-31")).not.toContain("No test noticed");
  });
});
