import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { kernel } from "../lang/index.ts";
import { describeModule, loadUserModule, selectKernels } from "./user-module.ts";

const first = kernel({ name: "scale" }, () => undefined);
const second = kernel({ name: "scale" }, () => undefined);
const third = kernel({ name: "shift" }, () => undefined);

const folder = mkdtempSync(join(tmpdir(), "tilewright-module-"));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

function refusal(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

describe("describeModule", () => {
  test("finds main and the kernels, each once", () => {
    const main = () => undefined;
    const module = describeModule("a.ts", { main, first, again: first, number: 3, list: [third] });
    expect(module.main).toBe(main);
    expect(module.kernels).toEqual([{ name: "first", definition: first }]);
  });

  test("a main that is no function is none", () => {
    expect(describeModule("a.ts", { main: 7 }).main).toBeUndefined();
  });
});

describe("selectKernels", () => {
  const module = describeModule("a.ts", { first, second, third });
  const select = (name?: string) => selectKernels(module, name).map((kernel) => kernel.name);

  test("takes all without a name", () => {
    expect(select()).toEqual(["first", "second", "third"]);
  });

  test("takes an export's name, or the kernel's own", () => {
    expect(select("second")).toEqual(["second"]);
    expect(select("scale")).toEqual(["first", "second"]);
  });

  test("an unknown name is TW5005 and lists the exports", () => {
    expect(refusal(() => select("fourth"))).toMatchObject({
      code: "TW5005",
      expected: "first, second, third",
      position: undefined,
    });
  });

  test("a file without kernels is TW5001", () => {
    const other = describeModule("a.ts", { x: 1, y: 2 });
    expect(refusal(() => selectKernels(other, undefined))).toMatchObject({
      code: "TW5001",
      summary: "a.ts exports no kernel",
      found: "x (1), y (2)",
    });
  });
});

describe("loadUserModule", () => {
  test("a path without a file is TW5003", async () => {
    const path = join(folder, "missing.ts");
    await expect(loadUserModule(path)).rejects.toMatchObject({
      code: "TW5003",
      summary: `there is no file ${path}`,
      found: `nothing at ${path}`,
      position: undefined,
    });
    await expect(loadUserModule(folder)).rejects.toMatchObject({
      code: "TW5003",
      summary: `${folder} is a folder`,
      remedy: "name a file in the folder",
    });
  });

  test("a file of another kind is TW5004", async () => {
    const path = join(folder, "kernel.py");
    writeFileSync(path, "");
    await expect(loadUserModule(path)).rejects.toMatchObject({ code: "TW5004" });
  });

  test("the file finds its own arguments in process.argv", async () => {
    const path = join(folder, "arguments.mjs");
    writeFileSync(path, "export const main = () => process.argv.slice(1);");
    const before = process.argv;
    try {
      const { main } = await loadUserModule(path, ["--size", "512"]);
      expect(main?.(undefined as never)).toEqual([path, "--size", "512"]);
    } finally {
      process.argv = before;
    }
  });
});
