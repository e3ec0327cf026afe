/**
 * The package as a user meets it: what npm packs of it, installed into a fresh project without the network or any
 * install script, imported, type-checked, bundled for a browser, and run from its command.
 */
import { execFile } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stagePackage } from "../scripts/stage-package.ts";
import { repositoryRoot } from "./source-files.ts";
import { programs } from "./support/snippets.ts";
import { mistakes, moduleOf, right } from "./support/type-mistakes.ts";
import { typeErrors } from "./type-check.ts";

interface Manifest {
  readonly typesVersions: { readonly "*": { readonly [subpath: string]: readonly string[] } };
  readonly exports: {
    readonly [subpath: string]: string | { readonly [condition: string]: string };
  };
  readonly bin: { readonly [command: string]: string };
  readonly imports: { readonly [name: string]: { readonly [condition: string]: string } };
  readonly scripts: { readonly [name: string]: string };
  readonly dependencies: { readonly [name: string]: string };
  readonly optionalDependencies: { readonly [name: string]: string };
}

interface Scripts {
  readonly scripts?: { readonly [name: string]: string };
}

const isWindows = process.platform === "win32";
// Where temporary folders are links, as on macOS, what runs there calls itself by another path.
const folder = realpathSync(mkdtempSync(join(tmpdir(), "tilewright-package-")));
const project = join(folder, "project");
const staged = join(folder, "staged");
const manifest = readJson(join(repositoryRoot, "package.json")) as Manifest;
const modules = join(project, "node_modules");
const installed = join(modules, "tilewright");
let packedFiles: readonly string[] = [];

/** Of the archive that npm makes. Growth beyond this is a decision, not an accident. */
const sizeBudget = 2.5e6;
let archiveSize = 0;

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8"));
}

/** Runs a program without the settings that an enclosing npm leaves in the environment. */
async function run(program: string, parameters: readonly string[], cwd: string): Promise<string> {
  const inherited = Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name));
  const environment = Object.fromEntries(inherited);
  // npm is a script of the shell there; a path of Node's may hold spaces, which a shell would take apart.
  const shell = isWindows && program === "npm";
  const settings = { cwd, env: environment, shell, maxBuffer: 1 << 24 };
  return (await promisify(execFile)(program, parameters, settings)).stdout;
}

/**
 * Installs what npm packs of that: unpacked, with its command linked. Dependencies come from this repository's own
 * installation; nothing is fetched.
 */
async function install(): Promise<void> {
  await stagePackage(staged);
  // To install what it has just packed takes npm as long again, and more.
  const flags = ["--offline", "--ignore-scripts", "--silent", "--pack-destination", folder];
  const archive = (await run("npm", ["pack", ...flags, staged], folder)).trim();
  archiveSize = statSync(join(folder, archive)).size;
  await run("tar", ["-xzf", archive], folder);
  mkdirSync(join(modules, ".bin"), { recursive: true });
  writeFileSync(join(project, "package.json"), '{ "private": true, "type": "module" }');
  renameSync(join(folder, "package"), installed);
  for (const [command, path] of Object.entries(manifest.bin)) {
    chmodSync(join(installed, path), 0o755);
    // npm writes scripts of the shell on Windows instead.
    if (!isWindows) symlinkSync(join("../tilewright", path), join(modules, ".bin", command));
  }
  // Of the packages that are for one platform each, only this platform's is installed.
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })) {
    const from = join(repositoryRoot, "node_modules", name);
    if (existsSync(from)) cpSync(from, join(modules, name), { recursive: true });
  }
  packedFiles = readdirSync(installed, { recursive: true, encoding: "utf8" })
    .filter((path) => statSync(join(installed, path)).isFile())
    .map((path) => path.replaceAll("\\", "/"));
}

/** What a user's program does: declare a kernel, run it, read the result. */
const program = `
import { tensor, f32, fromNumbers, kernel, open, toNumbers } from "tilewright";
const twice = kernel(
  { name: "twice", inputs: { x: tensor(f32, [3]) }, outputs: { out: tensor(f32, [3]) } },
  ({ x, out }) => out.store(x.load().mul(2)),
);
async function double() {
  const device = await open();
  const { out } = await device.run(twice, { x: fromNumbers(f32, [3], [1, 2, 3]) });
  device.dispose();
  console.log(toNumbers(out).join());
}
await double();
`;

const entries = Object.keys(manifest.exports).flatMap((name) =>
  /^\.\/[a-z]+$/.test(name) ? [name.slice(2)] : [],
);

/** What a user's types are, of every part of the package, with a mistake in the last line. */
const consumer = `
import { f32 } from "tilewright";
import { Emulator } from "tilewright/emulator";
${entries.map((entry, index) => `export * as part${index} from "tilewright/${entry}";`).join(" ")}
export const bytes: number = new Emulator().allocate(f32, [4], "x").bytes;
export const right: "f32" = f32.name;
export const wrong: "f64" = f32.name;
`.trim();
const mistakeOfConsumer = `consumer.ts:6: Type '"f32"' is not assignable to type '"f64"'.`;

/** Relative links of a page, without fragments; what stands in code is none. */
function linkedFiles(page: string): readonly string[] {
  const text = page.replace(/`[^`]*`/g, "");
  return [...text.matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g)].map(([, link = ""]) => link);
}

/** Pictures and measurements are half of the repository's documentation, and stay there; so does what is said to contributors. */
function isLeftOut(path: string): boolean {
  return (
    /^(?:docs\/(?:images|benchmarks|adding-[\w-]+|architecture|mutation|reliability|rewrites)\b|bench\/|CONTRIBUTING\.md$)/.test(
      path,
    ) && existsSync(join(repositoryRoot, path))
  );
}

function isPacked(path: string): boolean {
  const folder = path.endsWith("/") ? path : `${path}/`;
  return packedFiles.includes(path) || packedFiles.some((each) => each.startsWith(folder));
}

beforeAll(async () => {
  await install();
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

describe("the packed package", () => {
  test("holds what its manifest points to, and no tests", () => {
    const targets = [
      ...Object.values(manifest.exports).flatMap((target) =>
        typeof target === "string" ? [target] : Object.values(target),
      ),
      ...Object.values(manifest.bin),
      ...Object.values(manifest.imports).flatMap((target) => Object.values(target)),
      "README.md",
      "LICENSE",
      "CHANGELOG.md",
    ].map((path) => path.replace(/^\.\//, ""));
    expect(targets.filter((path) => !packedFiles.includes(path))).toEqual([]);
    expect(packedFiles.filter((path) => path.includes(".test."))).toEqual([]);
  });

  test("is joined into few modules, which import each other wherever they lie", () => {
    const modules = packedFiles.filter((path) => path.endsWith(".js"));
    expect(modules.length).toBeLessThan(200);
    const imported = modules.flatMap((path) => {
      const text = readFileSync(join(installed, path), "utf8");
      const paths = [
        ...text.matchAll(/^(?:import|export)\b[^;]*?"(\.[^"]+)";|\bimport\("(\.[^"]+)"\)/gm),
      ];
      return paths.map(([, fixed, later = ""]) => posix.join(posix.dirname(path), fixed ?? later));
    });
    expect(imported.length).toBeGreaterThan(modules.length);
    expect(imported.filter((path) => !modules.includes(path))).toEqual([]);
    expect(manifest.scripts["prepack"]).toMatch(/ run scripts\/join-package\.ts$/);
    expect(manifest.scripts["postpack"]).toBe("node scripts/restore-manifest.mjs");
  });

  test("has a manifest for its users, and nothing that only this repository reads", () => {
    const packed = readJson(join(installed, "package.json"));
    expect(packed).toMatchObject({ name: "tilewright", sideEffects: false, type: "module" });
    expect(packed).not.toHaveProperty("scripts");
    expect(packed).not.toHaveProperty("devDependencies");
    const forOthers = /\.(?:png|svg|jsonl?)$|^CONTRIBUTING|^bench|^scripts|^test\//;
    expect(packedFiles.filter((path) => forOthers.test(path))).toEqual(["package.json"]);
  });

  test("stacks lead to lines of the source", async () => {
    const lines = [
      'import { f32, fromNumbers } from "tilewright";',
      "const given = new Proxy([], { get: (list, name) => (console.log(new Error().stack), list[name]) });",
      "fromNumbers(f32, [0], given);",
    ];
    writeFileSync(join(project, "stack.js"), lines.join("\n"));
    const stack = await run(process.execPath, ["--enable-source-maps", "stack.js"], project);
    const [, path = "", line = ""] = /fromNumbers \(.*\/(src\/.*\.ts):(\d+):/.exec(stack) ?? [];
    const source = readFileSync(join(repositoryRoot, path), "utf8").split("\n");
    const around = source.slice(0, Number(line)).join("\n");
    expect(around.slice(around.lastIndexOf("\nexport function"))).toMatch(
      /^\nexport function fromNumbers/,
    );
  });

  test("is within its budget", () => {
    expect(archiveSize).toBeGreaterThan(2 ** 18);
    expect(archiveSize).toBeLessThan(sizeBudget);
  });

  test("holds every file that its pages link to, but for pictures and data of benchmarks", () => {
    const pages = packedFiles.filter((path) => path.endsWith(".md"));
    const missing = pages.flatMap((page) =>
      linkedFiles(readFileSync(join(repositoryRoot, page), "utf8"))
        .map((link) => posix.normalize(posix.join(posix.dirname(page), link)))
        .filter((path) => !isPacked(path) && !isLeftOut(path))
        .map((path) => `${page} links to ${path}`),
    );
    expect(pages).toContain("docs/running.md");
    expect(missing).toEqual([]);
  });

  test("types of subpaths are found by resolvers that know no exports", () => {
    const old = Object.entries(manifest.typesVersions["*"]).map(([name, [types]]) => [name, types]);
    const exported = Object.entries(manifest.exports).flatMap(([name, target]) =>
      typeof target === "string" || name === "." ? [] : [[name.slice(2), target["types"]]],
    );
    expect(old).toEqual(exported);
  });

  test("runs a kernel in Node", async () => {
    writeFileSync(join(project, "program.js"), program);
    expect(await run(process.execPath, ["program.js"], project)).toBe("2,4,6\n");
  });

  test("its command prints help, and runs TypeScript", async () => {
    const command = (...given: string[]): Promise<string> =>
      isWindows
        ? run(
            process.execPath,
            [join(installed, manifest.bin["tilewright"] ?? ""), ...given],
            project,
          )
        : run(join(project, "node_modules/.bin/tilewright"), given, project);
    expect(await command("--help")).toContain("Usage: tilewright");
    const typed = program.replace(
      "async function double()",
      "async function double(): Promise<void>",
    );
    writeFileSync(join(project, "typed.ts"), typed);
    expect(await command("run", "typed.ts")).toBe("2,4,6\n");
  });

  test("no part of the installation has an install script", () => {
    const names = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies });
    const parts = ["tilewright", ...names].filter((name) => existsSync(join(modules, name)));
    expect(parts.length).toBeGreaterThanOrEqual(1 + Object.keys(manifest.dependencies).length);
    const scripts = parts.flatMap((name) => {
      const { scripts = {} } = readJson(join(modules, name, "package.json")) as Scripts;
      // Npm builds what lies beside a binding.gyp, too.
      const builds = existsSync(join(modules, name, "binding.gyp")) ? ["binding.gyp"] : [];
      return [...Object.keys(scripts), ...builds].map((script) => `${name}: ${script}`);
    });
    expect(scripts.filter((each) => /: (?:(?:pre|post)?install|binding\.gyp)$/.test(each))).toEqual(
      [],
    );
  });

  test("what calls the driver is there on platforms that NVIDIA has a driver for", () => {
    const name = `@koromix/koffi-${process.platform}-${process.arch}`;
    const expected = Object.hasOwn(manifest.optionalDependencies, name);
    expect(existsSync(join(project, "node_modules", name))).toBe(expected);
  });

  test("says what it looked for where there is no driver", async () => {
    const opening = 'import { open } from "tilewright"; const device = await open("gpu");';
    const lines = [opening, "console.log(device.name); device.dispose();"];
    writeFileSync(join(project, "gpu.js"), lines.join("\n"));
    const answer = await run(process.execPath, ["gpu.js"], project).catch(String);
    expect(answer).toMatch(/^gpu\n$|TW4501: this machine has no NVIDIA driver/);
  });

  test("bundles for a browser from its library files alone", async () => {
    const lines = ['export * from "tilewright";', 'export * from "tilewright/emulator";'];
    writeFileSync(join(project, "page.js"), lines.join("\n"));
    const { metafile } = await build({
      absWorkingDir: project,
      entryPoints: ["page.js"],
      bundle: true,
      write: false,
      metafile: true,
      format: "esm",
      platform: "browser",
      logLevel: "silent",
    });
    const inputs = Object.keys(metafile.inputs).filter((path) => path !== "page.js");
    // Of what opens a GPU or starts threads only the stand-ins for browsers, which need nothing of Node.
    const library =
      /^node_modules\/tilewright\/dist\/(?!cli\/|cuda\/(?!browser\.js$)|workers\/node)/;
    expect(inputs).toContain("node_modules/tilewright/dist/index.js");
    expect(inputs.filter((path) => !library.test(path))).toEqual([]);
  });

  test.each(["iife", "cjs"] as const)("runs a kernel from a bundle, as %s", async (format) => {
    writeFileSync(join(project, "application.js"), program.replace("await double()", "double()"));
    const outfile = join(project, `bundle-${format}.cjs`);
    await build({
      absWorkingDir: project,
      entryPoints: ["application.js"],
      bundle: true,
      outfile,
      format,
      platform: "browser",
      logLevel: "silent",
    });
    expect(await run(process.execPath, [outfile], project)).toBe("2,4,6\n");
  });

  test("runs a kernel and PTX from a bundle of modules for a browser", async () => {
    writeFileSync(join(project, "kernel.js"), program);
    copyFileSync(join(repositoryRoot, "examples/ptx/block-sum.ptx"), join(project, "sum.ptx"));
    const lines = [
      'import "./kernel.js";',
      'import { f32, fromNumbers, toNumbers } from "tilewright";',
      'import { Emulator } from "tilewright/emulator";',
      'import text from "./sum.ptx";',
      "const emulator = new Emulator();",
      'const module = emulator.load(text, "sum.ptx");',
      "const x = emulator.upload(fromNumbers(f32, [256], new Array(256).fill(0.5)));",
      "const sums = emulator.allocate(f32, [1]);",
      "const settings = { entry: 'block_sum', blocks: 1, threads: 256, parameters: [x, sums, 256] };",
      "const { findings } = emulator.launch(module, settings);",
      "console.log(findings.length, toNumbers(emulator.download(sums)).join());",
    ];
    writeFileSync(join(project, "emulate.js"), lines.join("\n"));
    const outfile = join(project, "emulate.mjs");
    await build({
      absWorkingDir: project,
      entryPoints: ["emulate.js"],
      bundle: true,
      outfile,
      format: "esm",
      platform: "browser",
      loader: { ".ptx": "text" },
      logLevel: "silent",
    });
    expect(await run(process.execPath, [outfile], project)).toBe("2,4,6\n0 128\n");
  });

  test("its types resolve as bundlers resolve them", async () => {
    writeFileSync(join(project, "consumer.ts"), consumer);
    const resolution = { module: "esnext", moduleResolution: "bundler" };
    const options = { ...resolution, target: "es2022", strict: true, types: [] };
    const found = await typeErrors(project, { compilerOptions: options, files: ["consumer.ts"] });
    expect(found).toEqual([mistakeOfConsumer]);
  });

  test("programs of the documentation have no type errors, and mistakes are named where they are", async () => {
    const own = join(project, "programs");
    mkdirSync(own);
    for (const { file, code } of programs) writeFileSync(join(own, file), code);
    for (const [index, { code }] of mistakes.entries())
      writeFileSync(join(own, `mistake-${index}.ts`), moduleOf(code));
    writeFileSync(join(own, "right.ts"), moduleOf(right.join("\n")));
    // Types are resolved as Node resolves modules.
    writeFileSync(join(own, "consumer.ts"), consumer);
    const ownModules = join(repositoryRoot, "node_modules");
    const found = await typeErrors(own, {
      extends: join(repositoryRoot, "tsconfig.json"),
      compilerOptions: {
        noUnusedLocals: false,
        noUnusedParameters: false,
        typeRoots: [join(ownModules, "@types")],
        // Everything but the library, which is the one that was installed, is this repository's.
        paths: { vitest: [join(ownModules, "vitest")] },
      },
      include: ["*.ts"],
    });
    const isOfMistake = /^mistake-(\d+)\.ts:/;
    const reports: string[][] = [];
    const others: string[] = [];
    let report = others;
    for (const line of found) {
      // A report goes on in lines that are indented.
      if (!/^\s/.test(line)) {
        const index = isOfMistake.exec(line)?.[1];
        report = index === undefined ? others : (reports[Number(index)] ??= []);
      }
      report.push(line);
    }
    expect(others).toEqual([mistakeOfConsumer]);
    for (const [index, { name, says }] of mistakes.entries()) {
      const text = (reports[index] ?? []).join("\n");
      expect(text, name).toMatch(says);
      expect(text, name).not.toContain("'carry' does not exist");
      expect(text, name).toMatch(/^mistake-\d+\.ts:2:/);
    }
  });
});
