/**
 * Imports a file the user names on the command line, TypeScript or JavaScript.
 *
 *   importFile("axpy.ts") ─▶ hooks, once a process ─▶ import("file:///…/axpy.ts") ─▶ its exports
 *                                                          │
 *            TW5002 at axpy.ts:3:1  ◀── syntax that cannot be erased
 *
 * An error thrown by the file itself passes through untouched.
 *
 * Once there are hooks, Node asks their thread about every module, which takes longer than loading one. The library has
 * hundreds, so that what of it the file imports, or one that it imports, is loaded before.
 */
import { readFile } from "node:fs/promises";
import * as nodeModules from "node:module";
import { resolve } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { TilewrightError } from "../support/diagnostics.ts";
import { locationAt, unknownLocation } from "../support/location.ts";
import type { Position } from "../support/location.ts";
import { hostOf } from "./host.ts";
import { minimumNodeVersion } from "./minimum-node-version.ts";
import { builtFrom } from "./built-source.ts";

/** Where this very file runs as TypeScript, the host erases types already. */
let registered = import.meta.url.endsWith(".ts");

function registerHooks(): void {
  if (registered) return;
  const register = requireHooks(nodeModules, process.version);
  registered = true;
  // Newer Nodes warn of `register`, for which the older ones have nothing else: no matter of whoever runs a kernel.
  const { noDeprecation = false } = process;
  process.noDeprecation = true;
  register(new URL("./typescript-hooks.js", import.meta.url));
  process.noDeprecation = noDeprecation;
}

/** What has Node ask hooks; looked up, since a program that imports a name which its Node lacks does not even start. */
export function requireHooks(
  { register }: { readonly register?: typeof nodeModules.register },
  version: string,
): typeof nodeModules.register {
  if (register !== undefined) return register;
  throw new TilewrightError({
    code: "TW5018",
    message: `Node ${version} cannot run files from the command line`,
    location: unknownLocation,
    expected: `Node ${minimumNodeVersion} or later`,
    found: version,
  });
}

/** The exports of the module at `path`, a path relative to the working directory. */
export async function importFile(path: string): Promise<Readonly<Record<string, unknown>>> {
  if (!registered) await loadAhead(await importedModules(resolve(path)));
  registerHooks();
  try {
    return (await import(pathToFileURL(resolve(path)).href)) as Record<string, unknown>;
  } catch (error) {
    if (isUnerasable(error)) throw unerasableReport(error);
    throw isWithinPackages(error) ? withinPackagesReport(path) : error;
  }
}

/** What runtimes say that erase types themselves, and do so outside of packages alone: they never ask hooks. */
function isWithinPackages(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const text = "code" in error ? `${String(error.code)} ${error.message}` : error.message;
  return text.includes("ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING");
}

function withinPackagesReport(path: string): TilewrightError {
  const { name, version } = hostOf(process);
  return new TilewrightError({
    code: "TW5019",
    message: `${name} ${version} runs no TypeScript that lies in node_modules`,
    location: unknownLocation,
    expected: "a file outside of node_modules, or Node.js",
    found: path,
  });
}

/** What a line that begins a statement imports when the file is, types apart. */
const importedName =
  /^\s*(?:import\s*|(?:import|export)\b(?!\s+type\b)[^"';=]*\bfrom\s*)["']([^"'\n]+)["']/gm;

/** Modules of the library that a file imports, or one that it imports by its path. */
export async function importedModules(path: string): Promise<ReadonlySet<string>> {
  const modules = new Set<string>();
  const files = new Set([pathToFileURL(path).href]);
  for (const url of files) {
    const text = await readFile(new URL(url), "utf8").catch(() => "");
    for (const [, name = ""] of text.matchAll(importedName)) {
      if (/^tilewright(?:\/|$)/.test(name)) modules.add(name);
      if (!/^\.\.?\//.test(name)) continue;
      const file = new URL(name, url).href;
      const built = builtFrom(file);
      if (built === undefined) files.add(file);
      else modules.add(built);
    }
  }
  return modules;
}

/** Loads them; one that is not there is reported to the file that imports it. */
async function loadAhead(modules: ReadonlySet<string>): Promise<void> {
  await Promise.allSettled([...modules].map((name) => import(name)));
}

interface Unerasable extends SyntaxError {
  readonly position: Position;
  readonly isMalformed: boolean;
}

function isUnerasable(error: unknown): error is Unerasable {
  return error instanceof SyntaxError && "position" in error;
}

function unerasableReport({ message, position, isMalformed }: Unerasable): TilewrightError {
  return new TilewrightError({
    code: "TW5002",
    message,
    location: locationAt(position.file, position.line, position.column),
    expected: isMalformed ? "TypeScript" : "types that can be erased in place",
    found: message,
    remedy: isMalformed ? "correct the syntax at this place" : undefined,
  });
}
