/**
 * Builds the package into a folder in a fraction of a second, for tests that run it in a process of
 * its own: the library and the command line as they are installed, from the source as it is now.
 *
 *   folder/package.json, folder/node_modules (a link), folder/dist/… one module for each source file
 */
import { copyFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import type { Plugin } from "esbuild";
import { listFiles, repositoryRoot } from "./source-files.ts";

/** Leaves every import in place and, as the compiler does, names the built file in it. */
const keepImports: Plugin = {
  name: "keep-imports",
  setup(bundler) {
    bundler.onResolve({ filter: /^\./ }, ({ path, kind }) =>
      kind === "entry-point" ? undefined : { path: path.replace(/\.ts$/, ".js"), external: true },
    );
  },
};

export async function buildPackage(folder: string): Promise<void> {
  const sources = listFiles("src", /\.ts$/).filter((path) => !path.endsWith(".test.ts"));
  await build({
    absWorkingDir: repositoryRoot,
    entryPoints: [...sources],
    outbase: "src",
    outdir: join(folder, "dist"),
    bundle: true,
    packages: "external",
    plugins: [keepImports],
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "error",
  });
  copyFileSync(join(repositoryRoot, "package.json"), join(folder, "package.json"));
  symlinkSync(join(repositoryRoot, "node_modules"), join(folder, "node_modules"), "junction");
}
