/**
 * The package where it is put to work: bundled into one file and run away from what it was made of, on machines with and without a
 * driver and what calls it, and in hosts that allow little while modules are loaded. Everything runs in processes of their own.
 *
 *   folder/installed/node_modules/tilewright   as npm packs it
 *   folder/esm/program.mjs, folder/cjs/…       bundles, with nothing beside them but what a test puts there
 */
import { execFile } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import process from "node:process";
import { build } from "esbuild";
import type { BuildOptions } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import { buildPackage } from "./build-package.ts";
import { repositoryRoot } from "./source-files.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "tilewright-deployment-")));
const installed = join(folder, "installed");
const library = join(installed, "node_modules/tilewright");
const koffi = `@koromix/koffi-${process.platform}-${process.arch}`;
const hasDriver = existsSync("/proc/driver/nvidia/version");

interface Ended {
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program of Node's, whatever its exit status. */
function run(
  file: string,
  settings: {
    readonly cwd?: string;
    readonly libraries?: string;
    readonly node?: readonly string[];
    readonly arguments?: readonly string[];
  } = {},
): Promise<Ended> {
  const { cwd = folder, libraries, node = [], arguments: given = [] } = settings;
  const env = { ...process.env, ...(libraries !== undefined && { LD_LIBRARY_PATH: libraries }) };
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [...node, file, ...given],
      { cwd, env },
      (_error, stdout, stderr) => {
        resolve({ stdout, stderr });
      },
    );
  });
}

/** Says what `open` does with a GPU asked for, and twice without a name: a device's name or a code. */
const program = `
import { open } from "tilewright";
async function outcome(name) {
  try {
    const device = await open(name);
    device.dispose();
    return device.name;
  } catch (error) {
    return error.code + " " + error.found + " | " + error.remedy;
  }
}
async function main() {
  console.log(JSON.stringify([await outcome("gpu"), await outcome(), await outcome()]));
}
void main();
`;

async function outcomes(...how: Parameters<typeof run>): Promise<readonly string[]> {
  const { stdout, stderr } = await run(...how);
  if (stdout === "") throw new Error(stderr);
  return JSON.parse(stdout) as readonly string[];
}

/** Bundles the program into a folder of its own. */
async function bundle(name: string, options: BuildOptions): Promise<string> {
  const outfile = join(folder, name, `program.${options.format === "cjs" ? "cjs" : "mjs"}`);
  const entryPoints = [join(installed, "program.mjs")];
  await build({
    platform: "node",
    logLevel: "error",
    entryPoints,
    bundle: true,
    outfile,
    ...options,
  });
  return outfile;
}

/** Puts a package where programs of a folder find it. */
function placeKoffi(place: string, kind: "real" | "fake"): void {
  const path = join(place, "node_modules", koffi);
  mkdirSync(join(path, ".."), { recursive: true });
  rmSync(path, { recursive: true, force: true });
  if (kind === "real") symlinkSync(join(repositoryRoot, "node_modules", koffi), path, "junction");
  else {
    mkdirSync(path);
    copyFileSync(join(repositoryRoot, "test/support/fake-koffi.cjs"), join(path, "index.js"));
  }
}

/** A folder whose `libcuda.so.1` is a library, and no driver of CUDA's. */
function otherLibrary(): string {
  const libraries = join(folder, "libraries");
  if (existsSync(libraries)) return libraries;
  mkdirSync(libraries);
  const report: unknown = process.report?.getReport();
  const { sharedObjects } = report as { readonly sharedObjects: readonly string[] };
  const some = sharedObjects.find((path) => /\/libm\.so|\/libstdc\+\+\.so/.test(path)) ?? "";
  copyFileSync(some, join(libraries, "libcuda.so.1"));
  return libraries;
}

beforeAll(async () => {
  await buildPackage(library);
  writeFileSync(join(installed, "program.mjs"), program);
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** CommonJS has no import.meta, which the library knows. */
const quiet = { "empty-import-meta": "silent" } as const;

// A library is found in place of the driver's on Linux alone.
describe.skipIf(process.platform !== "linux")("a bundle away from node_modules", () => {
  let [modules, commonjs] = ["", ""];

  beforeAll(async () => {
    modules = await bundle("esm", { format: "esm" });
    commonjs = await bundle("cjs", { format: "cjs", minify: true, logOverride: quiet });
  });

  test("says that a driver is there which it cannot call", async () => {
    const found = await outcomes(modules, { libraries: otherLibrary() });
    for (const each of found) {
      expect(each).toMatch(/^TW4503 Cannot find module/);
      expect(each).toContain("esbuild: --external:tilewright");
      expect(each).toContain('externals: [/^tilewright/], externalsType: "import"');
    }
  });

  test("reaches the driver by what the working directory holds", async () => {
    const cwd = join(folder, "project");
    placeKoffi(cwd, "real");
    for (const file of [modules, commonjs]) {
      // What is there in place of a driver has none of its functions.
      const found = await outcomes(file, { libraries: otherLibrary(), cwd });
      for (const each of found) expect(each).toMatch(/^TW4504 a driver without cuInit/);
    }
  });

  test.skipIf(hasDriver)("uses the simulator without a driver, and says so once", async () => {
    const { stdout, stderr } = await run(modules);
    const [gpu, ...others] = JSON.parse(stdout) as readonly string[];
    expect(gpu).toMatch(/^TW4501 libcuda\.so\.1: /);
    expect(others).toEqual(["simulator", "simulator"]);
    expect(stderr).toBe(
      'tilewright: open() uses the simulator, which looks for mistakes: this machine has no NVIDIA driver (TW4501); open("cpu") is for speed, open("simulator") says nothing\n',
    );
  });

  test("opens a GPU by what lies beside it", async () => {
    for (const file of [modules, commonjs]) {
      const beside = join(folder, "beside");
      placeKoffi(beside, "fake");
      copyFileSync(file, join(beside, basename(file)));
      expect(await outcomes(join(beside, basename(file)))).toEqual(["gpu", "gpu", "gpu"]);
    }
  });

  test("for a browser, by mistake, says that one for Node opens GPUs", async () => {
    const file = await bundle("browser", { format: "esm", platform: "browser" });
    const found = await outcomes(file, { libraries: otherLibrary() });
    for (const each of found)
      expect(each).toMatch(/^TW4503 .*\| bundle for Node: esbuild --platform=node/);
  });
});

describe.skipIf(process.platform !== "linux")("an installation without optional packages", () => {
  const bare = join(folder, "bare");

  test("knows a driver, and looks for what calls it in no other folder", async () => {
    const own = join(bare, "node_modules/tilewright");
    cpSync(join(library, "dist"), join(own, "dist"), { recursive: true });
    copyFileSync(join(library, "package.json"), join(own, "package.json"));
    writeFileSync(join(bare, "program.mjs"), program);
    // What the working directory holds is not this installation's.
    const elsewhere = join(folder, "elsewhere");
    placeKoffi(elsewhere, "fake");
    const found = await outcomes(join(bare, "program.mjs"), {
      libraries: otherLibrary(),
      cwd: elsewhere,
    });
    for (const each of found) {
      expect(each).toMatch(/^TW4503 Cannot find module/);
      expect(each).toContain("npm install --include=optional");
    }
  });
});

/** Throws at what hosts refuse while modules are loaded, where the library does it, and wherever it reads the environment. */
const strictHost = (entries: readonly string[]): string => `
import fs from "node:fs";
import module from "node:module";
import os from "node:os";
import process from "node:process";
const library = ${JSON.stringify(library)};
const refused = [];
function refuse(what) {
  // Of what asks: this function, the trap, and then the caller, which Node's own modules may be, too.
  const caller = new Error().stack.split("\\n")[3] ?? "";
  if (!caller.includes(library)) return;
  refused.push(what + caller);
  throw new Error("refused: " + what);
}
function trap(owner, name) {
  const value = owner[name];
  const trapped = new Proxy(value, {
    apply: (target, self, values) => (refuse(name), Reflect.apply(target, self, values)),
    construct: (target, values) => (refuse(name), Reflect.construct(target, values)),
  });
  Object.defineProperty(owner, name, { value: trapped, configurable: true });
  return () => Object.defineProperty(owner, name, { value, configurable: true });
}
const names = ["AbortController", "MessageChannel", "BroadcastChannel", "WebSocket", "Function", "eval", "fetch", "setTimeout", "setInterval", "setImmediate", "queueMicrotask"];
const restore = [
  ...names.filter((name) => name in globalThis).map((name) => trap(globalThis, name)),
  ...["Module", "Instance", "Memory", "compile", "instantiate"].map((name) => trap(WebAssembly, name)),
  ...["timeout", "any"].filter((name) => name in AbortSignal).map((name) => trap(AbortSignal, name)),
  ...["getRandomValues", "randomUUID"].map((name) => trap(crypto, name)),
  trap(Math, "random"),
  trap(console, "log"), trap(console, "warn"),
];
const variables = process.env;
Object.defineProperty(process, "env", { value: new Proxy(variables, {
  get: (target, name) => (refuse("the environment's " + String(name)), target[name]),
  has: (target, name) => (refuse("the environment's " + String(name)), name in target),
  ownKeys: (target) => (refuse("the environment"), Reflect.ownKeys(target)),
}) });
// Without permissions these throw later, too.
for (const name of ["existsSync", "readFileSync", "statSync", "realpathSync"]) trap(fs, name);
for (const [owner, name] of [[os, "homedir"], [os, "tmpdir"], [process, "cwd"], [process, "dlopen"]]) trap(owner, name);
module.syncBuiltinESMExports();
const renamed = [];
for (const entry of ${JSON.stringify(entries)}) {
  const exports = await import(entry);
  for (const [name, value] of Object.entries(exports))
    if (typeof value === "function" && /^class\\b/.test(String(value)) && value.name !== name)
      renamed.push(value.name + " for " + name);
}
for (const each of restore) each();
const imported = refused.splice(0);
const { open } = await import("tilewright");
const device = await open();
console.log(JSON.stringify({ imported, renamed, device: device.name }));
device.dispose();
`;

describe("a host that allows little", () => {
  test("loads every part of the package, and opens a device without the environment", async () => {
    const entries = Object.entries(manifest.exports).flatMap(([name, target]) =>
      typeof target === "string" ? [] : [name.replace(/^\./, "tilewright")],
    );
    const standIns = Object.values(manifest.imports).map(({ browser }) => join(library, browser));
    expect(entries.length).toBeGreaterThan(8);
    const file = join(installed, "strict.mjs");
    writeFileSync(file, strictHost([...entries, ...standIns]));
    const { stdout, stderr } = await run(file);
    expect(stdout, stderr).not.toBe("");
    expect(JSON.parse(stdout)).toEqual({
      imported: [],
      renamed: [],
      device: hasDriver ? "gpu" : "simulator",
    });
  });
});

/** What a page under \`script-src 'self'\` does to code that is made of text, and to WebAssembly. */
const strictPolicy = `
import { bf16, f32, fromNumbers, kernel, tensor, open, toNumbers } from "tilewright";
import { matmul } from "tilewright/kernels";
const numbers = (count, step) => Array.from({ length: count }, (_, i) => ((i * step) % 17) / 4 - 2);
const a = fromNumbers(bf16, [33, 70], numbers(33 * 70, 5));
const b = fromNumbers(bf16, [70, 41], numbers(70 * 41, 7));
const device = await open("simulator");
const product = async () => [...toNumbers((await device.run(matmul({ a: bf16, b: bf16 }), { a, b })).out)];
const forbid = process.argv.includes("forbid");
if (forbid) WebAssembly.Module = function () { throw new WebAssembly.CompileError("blocked by policy"); };
const found = await product();
const double = kernel(
  { name: "double", inputs: { x: tensor(f32, [8]) }, outputs: { out: tensor(f32, [8]) } },
  ({ x, out }) => out.store(x.load().mul(2)),
);
const emulator = await open("emulator");
let code = "none";
try {
  await emulator.run(double, { x: fromNumbers(f32, [8], numbers(8, 1)) });
} catch (error) {
  code = error.code;
}
console.log(JSON.stringify({ found, code }));
`;

describe("a policy that forbids code made of text", () => {
  test("leaves the simulator its numbers, and the emulator says what it lacks", async () => {
    const file = join(installed, "policy.mjs");
    writeFileSync(file, strictPolicy);
    const allowed = JSON.parse((await run(file)).stdout) as { found: number[]; code: string };
    const forbidden = await run(file, {
      node: ["--disallow-code-generation-from-strings"],
      arguments: ["forbid"],
    });
    expect(allowed.code).toBe("none");
    expect(allowed.found).toHaveLength(33 * 41);
    expect(JSON.parse(forbidden.stdout)).toEqual({ found: allowed.found, code: "TW8024" });
  });
});

test("an error that nobody catches bears its name, packed, and bundled and made small", async () => {
  const file = join(installed, "uncaught.mjs");
  writeFileSync(file, 'import { open } from "tilewright"; open("gpv");');
  const outfile = join(folder, "uncaught/program.cjs");
  const options = { bundle: true, minify: true, platform: "node", format: "cjs" } as const;
  await build({ ...options, entryPoints: [file], outfile, logLevel: "silent" });
  for (const each of [file, outfile]) {
    const { stderr } = await run(each);
    expect(stderr).toMatch(/^\[?TilewrightError: TW4012: there is no device gpv$/m);
    expect(stderr).not.toContain("_TilewrightError");
  }
});
