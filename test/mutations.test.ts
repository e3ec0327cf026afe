/** The list of planted faults fits the source, and its results are counted right. */
import { readFileSync } from "node:fs";
import { transform } from "esbuild";
import { describe, expect, test } from "vitest";
import {
  applyFault,
  listPath,
  parseFaults,
  printFaults,
  readFaults,
  selectFaults,
} from "../scripts/mutations/faults.ts";
import type { Fault } from "../scripts/mutations/faults.ts";
import { Follower } from "../scripts/mutations/follow.ts";
import type { Followed } from "../scripts/mutations/follow.ts";
import { repositoryTree } from "../scripts/mutations/history.ts";
import {
  enoughCaught,
  markdownReport,
  printedSummary,
  summarize,
} from "../scripts/mutations/report.ts";
import type { Result, Verdict } from "../scripts/mutations/report.ts";
import { repositoryRoot } from "./source-files.ts";

const tree = repositoryTree(repositoryRoot);
const followed = new Follower(tree).followAll(readFaults(repositoryRoot));
const faults = followed.map((each) => each.fault);

const fault: Fault = {
  id: "area/name",
  area: "area",
  file: "src/file.ts",
  find: "a < b",
  replace: "a <= $& b",
  stages: [["src/file.test.ts"], ["src/"]],
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

  test("fits the source, under the names of today, and every faulty file is still TypeScript", async () => {
    // A fault of code that is gone: plant another, or take it out. `npm run mutate -- --update` follows what was renamed.
    expect(followed.filter(({ trouble }) => trouble !== undefined)).toEqual([]);
    await Promise.all(
      faults.map(async (each) => {
        const source = tree.read(each.file);
        const faulty = applyFault(source, each);
        expect(faulty, each.id).not.toBe(source);
        await expect(transform(faulty, { loader: "ts" }), each.id).resolves.toBeDefined();
      }),
    );
  });

  test("is written as `--update` writes it", () => {
    const listed = readFaults(repositoryRoot);
    for (const area of new Set(listed.map((each) => each.area)))
      expect(printFaults(selectFaults(listed, [area]))).toBe(
        readFileSync(listPath(repositoryRoot, area), "utf8"),
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

  test("is found where lines break otherwise, and changes no more than it says", () => {
    const source = "f(\n  a  <\n    b,\n  c,\n);";
    const wrapped = { ...fault, find: "f(a < b,", replace: "f(a <= b," };
    expect(applyFault(source, wrapped)).toBe("f(\n  a  <=\n    b,\n  c,\n);");
    const added = { ...fault, find: "f(a < b,", replace: "f(c, a < b," };
    expect(applyFault(source, added)).toBe("f(c, \n  a  <\n    b,\n  c,\n);");
  });

  test("must be found exactly once", () => {
    expect(() => applyFault("a > b", fault)).toThrow("fault area/name: `a < b` occurs 0 times");
    expect(() => applyFault("a < b; a < b", fault)).toThrow("occurs 2 times in src/file.ts");
  });

  test("must change something", () => {
    expect(() => applyFault("a < b", { ...fault, replace: "a < b" })).toThrow("does not change");
  });

  test("is a line of a list, which holds it exactly", () => {
    const changes = [
      ["a < b", "a <= b"],
      ["if (a) return;", ""],
      ["    f(a);", "    f(b, a);"],
      ["x[-1] && ", ""],
      ["return [-1, 1.5]", "return [-1, 1.7]"],
      ["shorter", "shortest"],
    ];
    const some = changes.map(([find = "", replace = ""], index) => ({
      ...fault,
      id: `area/fault-${index}`,
      find,
      replace,
    }));
    expect(parseFaults("area", printFaults(some))).toEqual(some);
    expect(printFaults(some).split("\n").slice(0, 3)).toEqual([
      "tests: src/",
      "src/file.ts < src/file.test.ts",
      "  fault-0: a {-<-}{+<=+} b",
    ]);
    expect(printFaults(some)).toContain("fault-4: return [-1, {-1.5-}{+1.7+}]");
    expect(printFaults(some)).toContain("fault-5: {-shorter-}{+shortest+}");
    expect(() => parseFaults("area", "src/file.ts < src/")).toThrow("begins without `tests: …`");
    expect(() => parseFaults("area", "tests: src/\nmirrored: a")).toThrow("neither a file nor");
  });
});

describe("faults follow renames", () => {
  interface Files {
    readonly [path: string]: string;
  }

  function follow(
    { find, replace }: Pick<Fault, "find" | "replace">,
    now: Files,
    { earlier = [], moved = {} }: { earlier?: readonly string[]; moved?: Files } = {},
  ): Followed {
    const has = (path: string) => now[path] !== undefined || !path.startsWith("src/file.ts");
    const movedTo = (path: string) => [(has(path) ? path : moved[path]) ?? []].flat();
    return new Follower({
      files: Object.keys(now),
      read: (path) => now[path] ?? "",
      earlier: () => earlier,
      movedTo,
    }).follow({ ...fault, find, replace });
  }

  const change = { find: "if (ring.slot < depth - 1)", replace: "if (ring.slot <= depth - 1)" };

  test("of identifiers, in what is planted as well", () => {
    const { fault: found, trouble } = follow(
      { find: "slot < depth - 1 && slot", replace: "depth - slot" },
      { "src/file.ts": "const a = stage < depth - 1 && stage;" },
    );
    expect(trouble).toBeUndefined();
    expect(found).toMatchObject({ find: "stage < depth - 1 && stage", replace: "depth - stage" });
  });

  test("of identifiers, where lines break otherwise now", () => {
    const source = "if (\n  ring.stage <\n  depth - 1)\n  f();";
    const { fault: found } = follow(change, { "src/file.ts": source });
    expect(applyFault(source, found)).toBe("if (\n  ring.stage <=\n  depth - 1)\n  f();");
  });

  test("of files, and of both", () => {
    const moved = { "src/file.ts": "src/other/stages.ts" };
    const kept = `${change.find} f();`;
    expect(follow(change, { "src/other/stages.ts": kept }, { moved }).fault).toEqual({
      ...fault,
      ...change,
      file: "src/other/stages.ts",
    });
    const renamed = kept.replace("slot", "stage");
    expect(follow(change, { "src/other/stages.ts": renamed }, { moved }).fault).toMatchObject({
      file: "src/other/stages.ts",
      find: "if (ring.stage < depth - 1)",
      replace: "if (ring.stage <= depth - 1)",
    });
  });

  test("without a history, where one place of all looks like it and keeps most names", () => {
    const elsewhere = { "src/a.ts": "if (ring.stage < depth - 1)", "src/b.ts": "if (a.b < c - 1)" };
    expect(follow(change, elsewhere).fault.file).toBe("src/a.ts");
    expect(follow(change, { "src/b.ts": "if (a.b < c - 1)" }).trouble).toContain("0 places");
  });

  test("to the place of the same number, where several look alike", () => {
    const before = "f(size < 1); f(slot < 1); f(end < 1);";
    const after = "f(size < 1); f(stage < 1); f(end < 1);";
    const short = { find: "slot < 1", replace: "slot <= 1" };
    const found = follow(short, { "src/file.ts": after }, { earlier: ["", before] });
    expect(found.fault.find).toBe("stage < 1");
  });

  test("not by guessing", () => {
    const alike = { "src/file.ts": "f(size < 1); f(stage < 1);" };
    expect(follow({ find: "slot < 1", replace: "slot <= 1" }, alike).trouble).toContain(
      "2 places of src/file.ts look like `slot < 1`",
    );
    // One name cannot have become two, nor two become one.
    const twice = { find: "a < b && b < a", replace: "a < b" };
    expect(follow(twice, { "src/file.ts": "c < d && d < e" }).trouble).toContain("0 places");
    expect(follow(twice, { "src/file.ts": "c < c && c < c" }).trouble).toContain("0 places");
    // The name is still there: this is other code.
    const other = { "src/file.ts": "const slot = 3; f(size < 1);" };
    expect(follow({ find: "slot < 1", replace: "slot <= 1" }, other).trouble).toBeDefined();
  });

  test("names that only the planted text has are those that other faults were led to", () => {
    const files = { "src/file.ts": "f(stage); g(total);" };
    const all = new Follower({
      files: Object.keys(files),
      read: () => files["src/file.ts"],
      earlier: () => [],
      movedTo: (path) => [path],
    }).followAll([
      { ...fault, find: "f(slot);", replace: "f(0);" },
      { ...fault, find: "g(total);", replace: "g(slot);" },
      { ...fault, find: "g(sum);", replace: "g(slot);" },
    ]);
    expect(all.map((each) => each.fault.replace)).toEqual(["f(0);", "g(slot);", "g(stage);"]);
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
