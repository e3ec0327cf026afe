/**
 * The README's programs through bundlers. For browsers, by Vite and by esbuild, each as a page that Chromium opens (`browse.mjs`), with what it loads
 * weighed; for servers, by esbuild into one file that runs where nothing is installed.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { repositoryRoot } from "../../test/source-files.ts";
import { NotTried, Wrong } from "./check.ts";
import type { Check, Subject } from "./check.ts";
import { run, tail } from "./processes.ts";
import { compared, isRight, readmePrograms } from "./readme.ts";
import type { Program } from "./readme.ts";

interface Page {
  readonly name: string;
  readonly lines: readonly string[];
  readonly errors: readonly string[];
  /** Of scripts, compressed by gzip. */
  readonly bytes: number;
}

/** Programs as pages: their names are folders. */
const pages = readmePrograms().map((program) => ({
  name: program.file.replace(/\.ts$/, ""),
  program,
}));

const html = (script: string): string =>
  `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script type="module" src="${script}"></script>\n`;

/** Installs a browser and what drives it where there is none, as `npm run browser` does. */
function requireBrowser(): void {
  const given = [join(repositoryRoot, "scripts/apps.mjs"), "browser"];
  spawnSync(process.execPath, given, { cwd: repositoryRoot, stdio: "ignore", timeout: 600_000 });
  if (!existsSync(join(repositoryRoot, "apps/node_modules/playwright-core")))
    throw new NotTried("the packages of apps could not be installed");
}

async function browse(folder: string): Promise<readonly Page[]> {
  requireBrowser();
  const program = fileURLToPath(new URL("browse.mjs", import.meta.url));
  const names = pages.map(({ name }) => name);
  const ended = await run(process.execPath, [program, folder, ...names], repositoryRoot, 10);
  if (ended.stdout.startsWith("no browser"))
    throw new NotTried("no Chromium that starts is installed, and CHROMIUM names none");
  if (ended.status !== 0) throw new Wrong(tail(ended));
  return JSON.parse(ended.stdout) as readonly Page[];
}

/** Opens the pages that were built into a folder, and says what each loads. */
async function tryPages(folder: string): Promise<string> {
  const opened = await browse(folder);
  for (const { name, program } of pages) {
    const found = opened.find((page) => page.name === name);
    const output = found?.lines.join("\n") ?? "";
    const isAsExpected = isRight(program, output, "none");
    if (found === undefined || found.errors.length > 0 || !isAsExpected) {
      const errors = found?.errors.join("\n") ?? "";
      const expected = compared(program.printed ?? "anything", "none");
      throw new Wrong(`${program.title}\nprinted: ${output}\nexpected: ${expected}\n${errors}`);
    }
  }
  const sizes = opened.map(({ bytes }) => (bytes / 1000).toFixed(0)).join(", ");
  return `${opened.length} programs in Chromium load ${sizes} kB`;
}

async function byVite({ tool, project, folder }: Subject): Promise<string> {
  const vite = join(await tool("vite"), "bin/vite.js");
  const output = folder("vite");
  for (const { name, program } of pages) {
    const root = writePage(join(project, "pages", name), program);
    const given = [vite, "build", root, "--outDir", join(output, name), "--base", "./"];
    const ended = await run(process.execPath, [...given, "--logLevel", "error"], project);
    if (ended.status !== 0) throw new Wrong(tail(ended));
  }
  return tryPages(output);
}

function writePage(root: string, program: Program): string {
  mkdirSync(root, { recursive: true });
  writeFileSync(join(root, "index.html"), html("./program.ts"));
  writeFileSync(join(root, "program.ts"), program.code);
  return root;
}

async function byEsbuild({ project, folder }: Subject): Promise<string> {
  const output = folder("esbuild");
  for (const { name, program } of pages) {
    const root = writePage(join(project, "pages", name), program);
    await build({
      absWorkingDir: project,
      entryPoints: [join(root, "program.ts")],
      bundle: true,
      minify: true,
      splitting: true,
      format: "esm",
      platform: "browser",
      outdir: join(output, name),
      logLevel: "silent",
    });
    writeFileSync(join(output, name, "index.html"), html("./program.js"));
  }
  return tryPages(output);
}

/** What a server is deployed as: one file, in a folder where nothing is installed. */
async function forServers({ project, folder }: Subject): Promise<string> {
  const elsewhere = folder("server");
  for (const { name, program } of pages) {
    writeFileSync(join(project, program.file), program.code);
    const outfile = join(elsewhere, `${name}.mjs`);
    await build({
      absWorkingDir: project,
      entryPoints: [join(project, program.file)],
      bundle: true,
      minify: true,
      format: "esm",
      platform: "node",
      outfile,
      logLevel: "silent",
    });
    const ended = await run(process.execPath, [outfile], elsewhere);
    if (ended.status !== 0 || !isRight(program, ended.stdout, "none"))
      throw new Wrong(`${program.title}: ${tail(ended)}`);
  }
  return `${pages.length} programs, without node_modules`;
}

export const bundleChecks: readonly Check[] = [
  { name: "vite", about: "the README's programs, built by Vite, in Chromium", run: byVite },
  { name: "esbuild", about: "the same, built by esbuild", run: byEsbuild },
  {
    name: "server",
    about: "the same, bundled by esbuild for Node, away from node_modules",
    run: forServers,
  },
];
