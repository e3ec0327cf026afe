/**
 * The last step before npm packs: the modules that the compiler has written into `dist` give way to the same ones joined
 * (`join-modules.ts`), of declarations those stay that users' programs reach, and the manifest loses what only this repository
 * reads, until npm has packed (`restore-manifest.mjs`).
 */
import { copyFileSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { repositoryRoot } from "../test/source-files.ts";
import { joinedModules, writeModules } from "./join-modules.ts";
import { packedManifest } from "./packed-manifest.ts";
import { packedType, reachedTypes } from "./packed-types.ts";

const folder = join(repositoryRoot, "dist");
const joined = await joinedModules({ maps: true });
const types = reachedTypes(folder);

// The command that runs this is one of these modules, and loads further ones until it ends.
process.once("exit", (status) => {
  if (status !== 0) return;
  for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const isType = path.endsWith(".d.ts") && !types.has(path.replaceAll("\\", "/"));
    // Without the compiler's own notes the next build writes every module again.
    if (isType || path.endsWith(".js") || path === ".tsbuildinfo") rmSync(join(folder, path));
  }
  for (const path of types) {
    const text = readFileSync(join(folder, path), "utf8");
    writeFileSync(join(folder, path), packedType(text));
  }
  writeModules(joined, folder);
  const manifest = join(repositoryRoot, "package.json");
  copyFileSync(manifest, join(repositoryRoot, "node_modules/.tilewright-manifest.json"));
  writeFileSync(manifest, packedManifest());
});
