/**
 * Builds the package into a folder in a fraction of a second, for tests that run it in processes of their own: the
 * library and the command line, from the source as it is now.
 *
 *   folder/package.json, folder/node_modules (a link)
 *   folder/dist/cli/main.js, folder/dist/index.js, …     what somebody names: the package's exports, its command
 *   folder/dist/emulator/threads/node.js, …              modules that look at where they lie
 *   folder/dist/chunk-….js                               everything else, joined
 *
 * Most of what a short command takes is finding and reading a thousand files, so that few of them are a third of the
 * time. What the compiler builds, a file for each module, `package.test.ts` packs and runs.
 */
import { copyFileSync, symlinkSync } from "node:fs";
import { join, relative } from "node:path";
import { build } from "esbuild";
import type { Plugin } from "esbuild";
import manifest from "../package.json" with { type: "json" };
import { listFiles, readText, repositoryRoot } from "./source-files.ts";

/** Where modules tell their place by, or by what stacks call them. */
const looksAtPlace = /\bimport\.meta\b|new Error\(\)\.stack/;

/** The source of a module that the package's manifest names. */
function sourceOf(built: string): string {
  return built.replace(/^(?:\.\/)?dist\//, "src/").replace(/\.js$/, ".ts");
}

/** Modules that nobody imports but by a path that is made when they are needed: those of other threads and processes. */
const startedByPath = /(?:-worker|-helper|-hooks)\.ts$/;

/** Leaves imports of these modules in place, each by the path of the built file. */
function keepApart(apart: ReadonlySet<string>, folder: string): Plugin {
  return {
    name: "keep-apart",
    setup(bundler) {
      bundler.onResolve({ filter: /^\./ }, ({ path, kind, resolveDir }) => {
        const source = relative(repositoryRoot, join(resolveDir, path)).replaceAll("\\", "/");
        if (kind === "entry-point" || !apart.has(source)) return undefined;
        const built = source.replace(/^src\//, "dist/").replace(/\.ts$/, ".js");
        return { path: join(folder, built), external: true };
      });
    },
  };
}

/** Builds into the folder; further modules that a test imports by their path stay files of their own, too. */
export async function buildPackage(
  folder: string,
  imported: readonly string[] = [],
): Promise<void> {
  const sources = listFiles("src", /\.ts$/).filter((path) => !path.endsWith(".test.ts"));
  const apart = sources.filter((path) => looksAtPlace.test(readText(path)));
  const exported = Object.values(manifest.exports).flatMap((target) =>
    typeof target === "string" ? [] : [sourceOf(target.default)],
  );
  const named = [...exported, ...Object.values(manifest.bin).map(sourceOf)];
  const started = sources.filter((path) => startedByPath.test(path));
  await build({
    absWorkingDir: repositoryRoot,
    entryPoints: [...new Set([...named, ...imported, ...started, ...apart])],
    outbase: "src",
    outdir: join(folder, "dist"),
    bundle: true,
    splitting: true,
    packages: "external",
    plugins: [keepApart(new Set(apart), folder)],
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "error",
  });
  copyFileSync(join(repositoryRoot, "package.json"), join(folder, "package.json"));
  symlinkSync(join(repositoryRoot, "node_modules"), join(folder, "node_modules"), "junction");
}
