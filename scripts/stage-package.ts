/**
 * What npm packs, made in a folder of its own, for tests and checks: the repository's `dist` is what others run meanwhile. Only the types come
 * from there, which the compiler writes in little time where it has written them before.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import manifest from "../package.json" with { type: "json" };
import { repositoryRoot } from "../test/source-files.ts";
import { compilerPath } from "../test/type-check.ts";
import { joinedModules, writeModules } from "./join-modules.ts";
import { packedManifest } from "./packed-manifest.ts";
import { packedType, reachedTypes } from "./packed-types.ts";

/** Fills a folder; `npm pack` of it packs what `npm pack` of the repository does. */
export async function stagePackage(folder: string): Promise<void> {
  const building = [compilerPath, "-p", "tsconfig.build.json", "--noCheck"];
  execFileSync(process.execPath, building, { cwd: repositoryRoot });
  const built = join(repositoryRoot, "dist");
  for (const path of reachedTypes(built)) {
    mkdirSync(dirname(join(folder, "dist", path)), { recursive: true });
    const text = readFileSync(join(built, path), "utf8");
    writeFileSync(join(folder, "dist", path), packedType(text));
  }
  writeModules(await joinedModules({ maps: true }), join(folder, "dist"));
  writeFileSync(join(folder, "package.json"), packedManifest());
  // Of these npm picks what the manifest names.
  const others = manifest.files.map((path) => path.replace(/\/.*$/, ""));
  for (const path of new Set(["README.md", "LICENSE", ...others]))
    if (path !== "dist" && !path.startsWith("!"))
      cpSync(join(repositoryRoot, path), join(folder, path), { recursive: true });
}
