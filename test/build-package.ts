/**
 * Builds the package into a folder in a fraction of a second, for tests that run it in a process of
 * its own: the library and the command line as they are installed, from the source as it is now.
 *
 *   folder/package.json, folder/node_modules (a link), folder/dist/{index,testing/index,cli/main,…}.js
 *
 * Modules that several entries use go to shared chunks, so that all of them see one instance; the
 * chunks lie one folder deep, as the modules they hold do in the source.
 */
import { copyFileSync, existsSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

export const repositoryRoot = fileURLToPath(new URL("..", import.meta.url));

const entries = [
  "src/index.ts",
  "src/testing/index.ts",
  "src/cli/main.ts",
  "src/cli/typescript-loader.ts",
  "src/cli/typescript-hooks.ts",
];

export async function buildPackage(folder: string): Promise<void> {
  await build({
    entryPoints: entries.map((entry) => join(repositoryRoot, entry)).filter(existsSync),
    outbase: join(repositoryRoot, "src"),
    outdir: join(folder, "dist"),
    bundle: true,
    splitting: true,
    chunkNames: "shared/[hash]",
    format: "esm",
    platform: "node",
    target: "node20",
    packages: "external",
    logLevel: "error",
  });
  copyFileSync(join(repositoryRoot, "package.json"), join(folder, "package.json"));
  symlinkSync(join(repositoryRoot, "node_modules"), join(folder, "node_modules"), "junction");
}
