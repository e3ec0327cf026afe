/**
 * Programs of before names changed: the examples of the first version, as they were, are programs of today after
 * `npm run rename`. Their types hold, their kernels are traced, and those that are quick give what they gave.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { open } from "tilewright";
import type { Device } from "tilewright";
import type { Comparison } from "tilewright/testing";
import { renameText } from "../scripts/rename/rename-text.ts";
import { readRenames } from "../scripts/rename/table.ts";
import { repositoryRoot } from "./source-files.ts";
import { typeErrors } from "./type-check.ts";

const earlier = join(repositoryRoot, "test/fixtures/earlier-examples");
const folder = join(repositoryRoot, "test/.renamed");
const ending = /\.txt$/u;
const files = readdirSync(earlier, { recursive: true, encoding: "utf8" }).filter((file) =>
  ending.test(file),
);
const examples = files
  .filter((file) => !file.startsWith("support"))
  .map((file) => file.replace(/\.ts\.txt$/u, ""));

const notes = new Map<string, readonly string[]>();

beforeAll(() => {
  rmSync(folder, { recursive: true, force: true });
  const rows = readRenames();
  for (const file of files) {
    const path = join(folder, file.replace(ending, ""));
    const renamed = renameText(path, readFileSync(join(earlier, file), "utf8"), rows);
    notes.set(file, renamed.notes);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, renamed.text);
  }
});

test("nothing is left for a reader to decide", () => {
  expect([...notes.values()].flat()).toEqual([]);
});

test("their types hold", async () => {
  const config = { extends: "../../tsconfig.json", include: ["**/*.ts"] };
  expect(await typeErrors(folder, config)).toEqual([]);
});

interface Program {
  main(this: void, device: Device): Promise<Comparison>;
}

const load = (name: string): Promise<Program> =>
  import(pathToFileURL(join(folder, `${name}.ts`)).href);

test.each(examples)("%s is traced", async (name) => {
  expect(await load(name)).toHaveProperty("main");
});

test.each(["axpy", "softmax", "column-sum", "transpose"])("%s runs", async (name) => {
  const { main } = await load(name);
  const device = await open("simulator");
  const { elements, worst } = await main(device);
  device.dispose();
  expect(elements).toBeGreaterThan(0);
  expect(worst).toBeLessThanOrEqual(1);
});
