/**
 * A program's text as a module that has run. Types are erased, line by line, so that every position the library
 * reports is a line of the text; imports are led to modules made from what the worker already holds.
 *
 *   import { kernel } from "tilewright";     import { kernel } from "blob:null/41d0…";
 *   const n: number = 4;                     const n = 4;
 */
import { parse } from "es-module-lexer/minimal/js";
import { transform } from "sucrase";
import { moduleFor } from "./modules.ts";
import type { Importable, ModuleExports } from "./modules.ts";
import { ImportError } from "./source-lines.ts";
import type { SourceLines } from "./source-lines.ts";

/** Where modules made from text find what they export. */
interface Handover {
  tilewrightModules?: { [specifier: string]: ModuleExports };
}

/** Runs the text; resolves to what it exports. */
export async function loadProgram(
  source: string,
  modules: { readonly [specifier: string]: Importable },
  lines: SourceLines,
): Promise<ModuleExports> {
  const { code } = transform(source, { transforms: ["typescript"], disableESTransforms: true });
  const url = moduleUrl(await withImports(code, modules));
  lines.isProgram(url);
  return (await import(url)) as ModuleExports;
}

function moduleUrl(code: string): string {
  return URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
}

/** The code with the names of modules replaced by addresses. */
async function withImports(
  code: string,
  modules: { readonly [specifier: string]: Importable },
): Promise<string> {
  const [imports] = parse(code);
  let text = "";
  let end = 0;
  for (const { n: name, s: start, e: stop, ss: statement, d: dynamic } of imports) {
    // Of an import whose name is computed, the browser says what it thinks of it.
    if (name === undefined) continue;
    const found = modules[name];
    if (found === undefined) {
      const line = code.slice(0, start).split("\n").length;
      const known = Object.keys(modules).join(", ");
      throw new ImportError(`there is no module ${name} here; there are ${known}`, line);
    }
    const exports = await moduleFor(found, importedNames(code.slice(statement, start)));
    const address = moduleOf(name, exports);
    text += code.slice(end, start) + (dynamic < 0 ? address : JSON.stringify(address));
    end = stop;
  }
  return text + code.slice(end);
}

/** The names between the braces of an import; undefined where it takes the module as a whole. */
function importedNames(statement: string): readonly string[] | undefined {
  const list = /^import\s*\{([^}]*)\}\s*from\s*["']$/.exec(statement)?.[1];
  return list?.split(",").flatMap((each) => each.trim().split(/\s/)[0] || []);
}

/** The address of a module that exports these. */
function moduleOf(name: string, exports: ModuleExports): string {
  const host = globalThis as Handover;
  (host.tilewrightModules ??= {})[name] = exports;
  const names = Object.keys(exports).join(", ");
  return moduleUrl(`export const { ${names} } = tilewrightModules[${JSON.stringify(name)}];`);
}
