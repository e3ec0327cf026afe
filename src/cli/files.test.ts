import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { makeFolder, readFile, requireFile } from "./files.ts";

const folder = mkdtempSync(join(tmpdir(), "tilewright-files-"));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

describe("folders", () => {
  test("are made with those that they lie in, and may be there", () => {
    const path = join(folder, "a", "b", "c");
    for (const _ of [1, 2]) makeFolder(path);
    expect(statSync(path).isDirectory()).toBe(true);
  });

  test("are refused below a file, and where the system makes none", () => {
    const file = join(folder, "file");
    writeFileSync(file, "");
    expect(() => makeFolder(file)).toThrow("TW5008");
    expect(() => makeFolder(join(file, "under"))).toThrow("TW5008");
    if (process.platform === "linux") expect(() => makeFolder("/proc/none/here")).toThrow("TW5008");
  });
});

test("what is there and cannot be read is told apart from what is not there", () => {
  const loop = join(folder, "loop.ts");
  symlinkSync(loop, loop);
  for (const read of [requireFile, readFile]) {
    expect(() => read(loop, "a file")).toThrow(/TW5016: .*loop\.ts cannot be read/);
    expect(() => read(join(folder, "none"), "a file")).toThrow("TW5003: there is no file");
    expect(() => read(folder, "a file")).toThrow("is a folder");
  }
  if (process.platform === "linux") {
    expect(() => requireFile("/dev/null", "a module")).toThrow(/TW5016[^]*no plain file/);
    expect(readFile("/dev/null", "a file")).toHaveLength(0);
  }
});
