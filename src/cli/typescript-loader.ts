/**
 * Imports a file the user names on the command line, TypeScript or JavaScript.
 *
 *   importFile("axpy.ts") ─▶ hooks, once a process ─▶ import("file:///…/axpy.ts") ─▶ its exports
 *                                                          │
 *            TW5002 at axpy.ts:3:1  ◀── syntax that cannot be erased
 *
 * An error thrown by the file itself passes through untouched.
 */
import { register } from "node:module";
import { resolve } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { TilewrightError } from "../support/diagnostics.ts";
import { locationAt } from "../support/location.ts";
import type { Position } from "../support/location.ts";

/** Where this very file runs as TypeScript, the host erases types already. */
let registered = import.meta.url.endsWith(".ts");

function registerHooks(): void {
  if (registered) return;
  registered = true;
  // Newer Nodes warn of `register`, for which the older ones have nothing else: no matter of whoever runs a kernel.
  const { noDeprecation = false } = process;
  process.noDeprecation = true;
  register(new URL("./typescript-hooks.js", import.meta.url));
  process.noDeprecation = noDeprecation;
}

/** The exports of the module at `path`, a path relative to the working directory. */
export async function importFile(path: string): Promise<Readonly<Record<string, unknown>>> {
  registerHooks();
  try {
    return (await import(pathToFileURL(resolve(path)).href)) as Record<string, unknown>;
  } catch (error) {
    throw isUnerasable(error) ? unerasableReport(error) : error;
  }
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
    remedy: isMalformed ? "correct the syntax at this place" : undefined,
  });
}
