/** Two copies of the library in one program: what one made is refused by the other, by name. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import * as own from "tilewright";
import { Emulator } from "tilewright/emulator";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildPackage } from "./build-package.ts";

type Library = typeof own;

const folder = mkdtempSync(join(tmpdir(), "tilewright-copies-"));
const opened: { dispose(): void }[] = [];
let other: Library = own;
let OtherEmulator = Emulator;

/** The library as it is installed somewhere else. */
beforeAll(async () => {
  await buildPackage(folder);
  const built = (path: string) => pathToFileURL(join(folder, "dist", path)).href;
  other = (await import(/* @vite-ignore */ built("index.js"))) as Library;
  const emulators = (await import(/* @vite-ignore */ built("emulator/api/index.js"))) as {
    readonly Emulator: typeof Emulator;
  };
  OtherEmulator = emulators.Emulator;
});

afterAll(() => {
  for (const each of opened) each.dispose();
  rmSync(folder, { recursive: true });
});

async function openDevice(library: Library): Promise<own.Device> {
  const device = await library.open("simulator");
  opened.push(device);
  return device;
}

function twice({ tensor, f32, kernel }: Library) {
  return kernel(
    { name: "twice", inputs: { x: tensor(f32, [3]) }, outputs: { out: tensor(f32, [3]) } },
    ({ x, out }) => {
      out.store(x.load().mul(2));
    },
  );
}

const three = ({ f32, fromNumbers }: Library) => fromNumbers(f32, [3], [1, 2, 3]);

/** The report of what is thrown at once or later. */
async function reportOf(act: () => unknown): Promise<own.TilewrightError> {
  try {
    await act();
  } catch (error) {
    if (error instanceof own.TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

test("each copy works by itself", async () => {
  for (const library of [own, other]) {
    const device = await openDevice(library);
    const { out } = await device.run(twice(library), { x: three(library) });
    expect([...library.toNumbers(out)]).toEqual([2, 4, 6]);
  }
  expect(other.f32).not.toBe(own.f32);
});

test.each<[string, (device: own.Device) => unknown]>([
  ["a kernel", (device) => device.run(twice(other), { x: three(own) })],
  ["an array of the host", (device) => device.run(twice(own), { x: three(other) })],
  ["an array of the host to upload", (device) => device.upload(three(other))],
  [
    "an array on another copy's device",
    async (device) => {
      const x = await (await openDevice(other)).upload(three(other));
      opened.unshift(x);
      return device.run(twice(own), { x });
    },
  ],
  [
    "a bound launch",
    async (device) => {
      const foreign = await openDevice(other);
      const x = await foreign.upload(three(other));
      const out = foreign.allocate(other.f32, [3]);
      const bound = foreign.bind(twice(other), { x, out });
      opened.unshift(bound, x, out);
      device.record([bound]);
    },
  ],
  ["a format", () => own.fromNumbers(other.f32, [1], [1])],
  ["a format in a specification", () => own.tensor(other.f32, [1])],
  [
    "a traced tile",
    () => {
      const { tensor, f32, kernel } = own;
      kernel({ name: "outer", outputs: { out: tensor(f32, [2]) } }, () => {
        other.kernel({ name: "inner", inputs: { x: other.tensor(other.f32, [2]) } }, ({ x }) => {
          own.dot(x.load(), x.load());
        });
      });
    },
  ],
  ["an array of an emulator", () => new Emulator().download(allocated(new OtherEmulator()))],
])("%s of another copy is refused (TW0008)", async (_, act) => {
  const device = await openDevice(own);
  const report = await reportOf(() => act(device));
  expect(report.message).toContain("TW0008");
  expect(report.summary).toContain("was made by another copy of tilewright");
  expect(report.position?.file).toContain("copies.test.ts");
});

function allocated(emulator: Emulator) {
  return emulator.allocate(other.f32, [1]);
}

test("reports of another copy are reports", async () => {
  const report = await reportOf(() => other.fromNumbers(other.f32, [2], [1]));
  expect(report.code).toMatch(/^TW\d{4}$/);
  expect(new Error("plain")).not.toBeInstanceOf(own.TilewrightError);
});

test("the command line leads the source of its own package to what was built from it", () => {
  mkdirSync(join(folder, "src"));
  writeFileSync(join(folder, "src/index.ts"), "export const f32 = 'of the source';");
  const lines = [
    'import { f32 } from "tilewright";',
    'import { f32 as imported } from "./src/index.ts";',
    "console.log(f32 === imported);",
  ];
  writeFileSync(join(folder, "program.ts"), lines.join("\n"));
  const command = [join(folder, "dist/cli/main.js"), "run", join(folder, "program.ts")];
  expect(execFileSync(process.execPath, command, { encoding: "utf8" })).toBe("true\n");
});
