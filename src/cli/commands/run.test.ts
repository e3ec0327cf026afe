/** `tilewright run`: which file `--profile` writes, and when there is nothing to write; and what a script takes. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Output } from "../output.ts";
import type { DeviceName } from "../../runtime/open-options.ts";
import { runCommand } from "./run.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tilewright-run-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const program = (body: string): string => `
import { tensor, f32, kernel, profile } from "tilewright";
export const twice = kernel(
  { name: "twice", grid: { i: 2 }, inputs: { x: tensor(f32, [2, 64]) }, outputs: { out: tensor(f32, [2, 64]) } },
  ({ i, x, out }) => ${body},
);
`;
const scoped = program('profile("double", () => out.at(i).store(x.at(i).load().mul(2)))');
const launching = `${scoped}
export async function main(device) {
  const [x, out] = [await device.zeros(f32, [2, 64]), device.allocate(f32, [2, 64])];
  device.launch(twice, { x, out });
  x.dispose();
  out.dispose();
}
`;

async function run(source: string, name: string): Promise<string> {
  const [file, profile] = [join(folder, `${name}.mjs`), join(folder, name)];
  writeFileSync(file, source);
  const nowhere = { write: () => true };
  const output = new Output({ stdout: nowhere, stderr: nowhere, json: false, environment: {} });
  const settings = { file, programArguments: [], device: "emulator", kernel: undefined } as const;
  const others = { dimensions: {}, seed: 0, dump: undefined, limits: {} };
  expect(await runCommand({ ...settings, ...others, profile }, output)).toBe(0);
  return readFileSync(profile, "utf8");
}

test("a drawing where the name ends in .svg", async () => {
  const text = await run(scoped, "profile.svg");
  expect(text).toMatch(/^<svg [^]*twice on the emulator[^]*<title>double: \d+ instructions/);
});

test("trace events where it ends in .json, also of what main launches", async () => {
  const { traceEvents } = JSON.parse(await run(launching, "profile.json")) as {
    readonly traceEvents: readonly { readonly name: string; readonly ph: string }[];
  };
  const spans = traceEvents.filter(({ ph }) => ph === "X");
  expect(spans.map(({ name }) => name)).toEqual(["double", "double"]);
});

test("TW5015 where no kernel has a scope", async () => {
  const plain = program("out.at(i).store(x.at(i).load().mul(2))");
  await expect(run(plain, "none.svg")).rejects.toMatchObject({ code: "TW5015" });
});

test("TW5015 for a script, whatever its own devices ran", async () => {
  await expect(run("", "script.svg")).rejects.toMatchObject({ code: "TW5015" });
});

test.each(["simulator", "emulator", "cpu"] as const)("kernels run on the %s", async (device) => {
  const file = join(folder, "kernel.mjs");
  writeFileSync(file, program("out.at(i).store(x.at(i).load().mul(2))"));
  const documents: string[] = [];
  const stdout = { write: (text: string) => documents.push(text) > 0 };
  const output = new Output({ stdout, stderr: stdout, json: true, environment: {} });
  const others = { dimensions: {}, seed: 0, dump: undefined, profile: undefined, limits: {} };
  const settings = { file, programArguments: [], device, kernel: undefined };
  expect(await runCommand({ ...settings, ...others }, output)).toBe(0);
  expect(JSON.parse(documents.at(-1) ?? "")).toMatchObject({ device, kernels: [{}] });
});

test("a script opens no device", async () => {
  const file = join(folder, "script.mjs");
  writeFileSync(file, "");
  const documents: string[] = [];
  const stdout = { write: (text: string) => documents.push(text) > 0 };
  const output = new Output({ stdout, stderr: stdout, json: true, environment: {} });
  const others = { dimensions: {}, seed: 0, dump: undefined, profile: undefined, limits: {} };
  // There is none of this name, so that opening it would throw.
  const device = "none" as DeviceName;
  const settings = { file, programArguments: [], device, kernel: undefined };
  expect(await runCommand({ ...settings, ...others }, output)).toBe(0);
  expect(documents.map((text): unknown => JSON.parse(text))).toEqual([
    { file, device, kernels: [] },
  ]);
});
