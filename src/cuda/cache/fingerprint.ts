/**
 * Which compiler made a file of the cache. A kernel leads to the same code only while the compiler is the
 * same, so this is part of a kernel's key:
 *
 *   installed package    its version
 *   a checkout           the version, and when its modules last changed
 *   part of a bundle     when the bundle last changed
 *   otherwise            nothing is known, and kernels are not found by themselves, only by their PTX
 */
import { readFileSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** What tells one compiler from another, given the address of `../opening.ts`; undefined where nothing does. */
export function compilerFingerprint(moduleUrl: string | undefined): string | undefined {
  try {
    if (moduleUrl === undefined) return undefined;
    const path = fileURLToPath(moduleUrl);
    const modules = dirname(dirname(path));
    if (!/[\\/]cuda[\\/]opening\.[jt]s$/.test(path)) return `bundle ${newest([path])}`;
    const version = packageVersion(dirname(modules));
    if (dirname(modules).includes("node_modules")) return version;
    return `${version} ${newest(moduleFiles(modules))}`;
  } catch {
    return undefined;
  }
}

function packageVersion(folder: string): string {
  const manifest: unknown = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (typeof manifest !== "object" || manifest === null || !("version" in manifest))
    throw new Error(`${folder} is no package`);
  return String(manifest.version);
}

/** Folders whose modules decide what a kernel, or an operation of the library, is compiled to. */
export const compilerFolders = [
  "support",
  "formats",
  "targets",
  "ir",
  "layout",
  "lower",
  "passes",
  "ptx",
  "lang",
  "device",
  "kernels",
];

function moduleFiles(modules: string): readonly string[] {
  return compilerFolders.flatMap((folder) =>
    readdirSync(join(modules, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => /\.[jt]s$/.test(name) && !basename(name).includes(".test."))
      .map((name) => join(modules, folder, name)),
  );
}

/** The number of files and the time of the latest change. */
function newest(files: readonly string[]): string {
  const times = files.map((file) => statSync(file).mtimeMs);
  return `${files.length} files of ${Math.max(...times)}`;
}
