/**
 * Module hooks that let Node run the user's TypeScript files, on every Node since 20 in the same way.
 *
 * Types are erased, not compiled: each erased character becomes a space, so that every line and column
 * in a stack trace is the one the user wrote and no source map is needed.
 *
 *   const scale: number = 2;  throw new Error("column 27");
 *   const scale         = 2;  throw new Error("column 27");
 *
 * A file run from the command line must meet the command line's own instance of the library, wherever
 * the file lies and whatever is installed beside it: `tilewright` resolves from here, through this
 * package's own exports; and a file of this package's source, which its own tests and benchmarks import
 * (nobody else has it), is what was built from it. A relative import may also name the file that a compiler would make of a
 * TypeScript file: `./lib.js` is `./lib.ts` where there is no `./lib.js`, and `.mjs` likewise `.mts`.
 *
 * Node runs this module on its own thread, which shares nothing with the program.
 */
import { readFile } from "node:fs/promises";
import type { LoadHook, ResolveHook } from "node:module";
import { fileURLToPath } from "node:url";
import type { Position } from "../support/location.ts";
import { builtFrom } from "./built-source.ts";

export const resolve: ResolveHook = async (specifier, context, nextResolve) => {
  const found = await resolveFile(specifier, context, nextResolve);
  const built = builtFrom(found.url);
  return built === undefined ? found : { ...found, url: built, format: "module" };
};

const resolveFile: ResolveHook = async (specifier, context, nextResolve) => {
  if (/^tilewright(\/|$)/.test(specifier)) return resolveOwn(specifier, context, nextResolve);
  try {
    return await nextResolve(specifier, context);
  } catch (error) {
    const source = /^\.\.?\/.*\.m?js$/.test(specifier) ? specifier.replace(/js$/, "ts") : specifier;
    if (source === specifier) throw error;
    try {
      return await nextResolve(source, context);
    } catch {
      throw error;
    }
  }
};

/** A name of this package. Where it has no such part, the user's file is what asked for it, not this one. */
const resolveOwn: ResolveHook = async (specifier, context, nextResolve) => {
  // Node writes what the next one is given into the context itself.
  const { parentURL } = context;
  try {
    return await nextResolve(specifier, { ...context, parentURL: import.meta.url });
  } catch (error) {
    if (!(error instanceof Error) || parentURL?.startsWith("file:") !== true) throw error;
    const own = fileURLToPath(import.meta.url);
    // Commands print what stands above an error's frames, which is the message that it was made with.
    const told = new Error(error.message.replace(own, fileURLToPath(parentURL)));
    throw Object.assign(told, { code: "code" in error ? error.code : undefined });
  }
};

export const load: LoadHook = async (url, context, nextLoad) => {
  if (!/^file:.*\.m?ts$/.test(url)) return nextLoad(url, context);
  const path = fileURLToPath(url);
  const source = await eraseTypes(await readFile(path, "utf8"), path);
  return { format: "module", source, shortCircuit: true };
};

/** Whoever runs JavaScript does not wait for the eraser, which takes longer to load than to use. */
async function eraseTypes(source: string, path: string): Promise<string> {
  const { transformSync } = await import("@swc/wasm-typescript");
  try {
    return transformSync(source, { mode: "strip-only", module: true, filename: path }).code;
  } catch (report) {
    throw isEraserReport(report) ? new UnerasableError(report, path) : report;
  }
}

/** What the eraser throws: a plain object; its lines count from 1, its columns from 0. */
interface EraserReport {
  readonly code?: string;
  readonly message: string;
  readonly startLine: number;
  readonly startColumn: number;
}

function isEraserReport(report: unknown): report is EraserReport {
  return typeof report === "object" && report !== null && "startLine" in report;
}

/** Crosses to the program's thread as a SyntaxError that keeps its properties and loses its class. */
class UnerasableError extends SyntaxError {
  readonly position: Position;
  /** Whether no TypeScript compiler would take the file either. */
  readonly isMalformed: boolean;

  constructor(report: EraserReport, file: string) {
    super(report.message);
    this.position = { file, line: report.startLine, column: report.startColumn + 1 };
    this.isMalformed = report.code === "InvalidSyntax";
  }
}
