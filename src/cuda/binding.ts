/**
 * Finds koffi, which calls the driver: an addon, which no bundler takes along unasked, and a name that bundlers must not follow, since
 * most refuse to bundle an addon at all. It is loaded when a GPU is first opened, from beside this file, and where a bundler has moved
 * that, from beside what it made:
 *
 *   node_modules/tilewright/dist/cuda/binding.js    ──▶ node_modules/@koromix/koffi-linux-x64
 *   /srv/app/server.mjs, a bundle                   ──▶ the same from its own folder, that of the program, the working directory and
 *                                                       the executable's, and as tilewright finds it there
 *
 * A plain installation never looks into the working directory, which may be anyone's.
 */
import { existsSync } from "node:fs";
import * as nodeModules from "node:module";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { environmentValue } from "./environment.ts";
import { firstLine } from "./driver-presence.ts";

/** What webpack puts in place of this name is a function; elsewhere there is none. */
declare const __webpack_require__: unknown;

/** A package that was found, or what kept it from being. */
export type FoundPackage = { readonly loaded: unknown } | { readonly problem: string };

/** Where this file lies, as bundlers leave it: those that write CommonJS leave nothing. */
const ownAddress: string | undefined = import.meta.url;

/** Loads a package that holds an addon. As `require` does, since `import()` reads it twice, once for its names: 21 ms, not 28. */
export async function findPackage(name: string): Promise<FoundPackage> {
  let problem: string | undefined;
  for (const base of isBundled() ? [...ownBase(), ...outerBases()] : ownBase()) {
    for (const from of [base, ...throughLibrary(base)]) {
      try {
        return { loaded: nodeModules.createRequire(from)(name) as unknown };
      } catch (error) {
        // A package that is there and does not load says more than all others that are not.
        if (problem === undefined || !isMissing(error)) problem = firstLine(error);
      }
    }
  }
  return { problem: problem ?? "no place to look for it" };
}

/** What to do about a package that is missing, in the words of whatever made this bundle. */
export function remedyOf(name: string): string {
  const bundler = bundlerName();
  if (bundler === undefined && !isBundled())
    return "install tilewright with its optional dependencies (npm install --include=optional) on the platform that it runs on";
  const beside = `or copy the folder node_modules/${name} to node_modules beside the bundle`;
  if (bundler !== undefined) return `${ways[bundler]}; ${beside}`;
  return ["keep tilewright out of the bundle", ...Object.values(ways), beside].join("\n");
}

type Bundler = keyof typeof ways;

/** The line that has each of them leave the package where it is, or take it along. */
const ways = {
  next: 'Next: outputFileTracingIncludes: { "/**": ["./node_modules/@koromix/**"] }',
  webpack: 'webpack: target: "node20", externals: [/^tilewright/], externalsType: "import"',
  bun: "bun build: --external tilewright",
  esbuild: "esbuild: --external:tilewright",
  rollup: "Rollup, Rolldown: external: [/^tilewright/]",
  vite: 'Vite: ssr: { external: ["tilewright"] }',
} as const;

/** The bundler, where it leaves a trace. */
function bundlerName(): Bundler | undefined {
  if (environmentValue("NEXT_RUNTIME") !== undefined) return "next";
  if (typeof __webpack_require__ === "function") return "webpack";
  return process.versions["bun"] !== undefined && isBundled() ? "bun" : undefined;
}

/** Whether this file is not where it was installed. */
function isBundled(): boolean {
  const path = ownPath();
  return path === undefined || !/[\\/]cuda[\\/]binding\.[jt]s$/.test(path) || !isThere(path);
}

/** Where the host does not tell (Deno without --allow-read), a path is taken as it is. */
function isThere(path: string): boolean {
  try {
    return existsSync(path);
  } catch {
    return true;
  }
}

function ownPath(): string | undefined {
  try {
    return ownAddress === undefined ? undefined : fileURLToPath(ownAddress);
  } catch {
    return undefined; // Executables of Bun, and bundlers that write addresses of their own.
  }
}

function ownBase(): readonly string[] {
  const path = ownPath();
  return path === undefined ? [] : [path];
}

/** Files, there or not, that packages are looked for from. */
function outerBases(): readonly string[] {
  const program = process.argv[1];
  const folders = [program && dirname(program), workingFolder(), dirname(process.execPath)];
  return folders.flatMap((folder) => (folder ? [join(folder, "package.json")] : []));
}

function workingFolder(): string | undefined {
  try {
    return process.cwd();
  } catch {
    return undefined;
  }
}

/** Package managers that keep packages apart show koffi to the library alone. */
function throughLibrary(base: string): readonly string[] {
  try {
    return [nodeModules.createRequire(base).resolve("tilewright/package.json")];
  } catch {
    return [];
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND";
}
