import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { KernelCache } from "../../cuda/cache/kernel-cache.ts";
import { FileStore } from "../../cuda/cache/store.ts";
import { targets } from "../../targets/target.ts";
import type { CacheAction } from "../options.ts";
import { Output } from "../output.ts";
import { cacheCommand } from "./cache.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tilewright-cache-command-"));
  const cache = new KernelCache(new FileStore(folder, 2 ** 20), undefined);
  const build = { target: targets.sm_90a, driverVersion: 12080, capability: "9.0" };
  cache.writeCode(build, "axpy", { ptx: "p".repeat(2048), log: undefined });
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

async function printed(action: CacheAction, json = false): Promise<string> {
  let text = "";
  const stream = { write: (more: string) => (text += more) };
  const output = new Output({ stdout: stream, stderr: stream, json, environment: {} });
  await cacheCommand(action, output, { folder, limitBytes: 2 ** 20 });
  return text;
}

test("what is kept is listed with its size", async () => {
  const [heading, row, sum] = (await printed("list")).split("\n");
  expect(heading).toMatch(/^kernel +target +code +last used$/);
  expect(row).toMatch(/^axpy +sm_90a +2 KiB +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
  expect(sum).toMatch(/^1 kernel, 2\.\d KiB of 1 MiB in /);
  expect(JSON.parse(await printed("list", true))).toMatchObject({
    folder,
    limitBytes: 2 ** 20,
    kernels: [{ name: "axpy", target: "sm_90a", codeBytes: 2048 }],
  });
});

test("looking is no use: files keep their age", async () => {
  const store = new FileStore(folder, 2 ** 20);
  const before = store.list().map(({ used }) => used.getTime());
  await new Promise((resolve) => setTimeout(resolve, 20));
  await printed("list");
  expect(store.list().map(({ used }) => used.getTime())).toEqual(before);
});

test("clearing removes everything", async () => {
  expect(await printed("clear")).toBe(`removed 1 file from ${folder}\n`);
  expect(await printed("list")).toBe(`0 kernels, 0 bytes of 1 MiB in ${folder}\n`);
});
