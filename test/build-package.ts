/**
 * Builds the package into a folder in a fraction of a second, for tests that run it in processes of their own: the
 * library and the command line, from the source as it is now, joined as npm packs them.
 *
 *   folder/package.json, folder/node_modules (a link)
 *   folder/dist/…
 */
import { copyFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { joinedModules, writeModules } from "../scripts/join-modules.ts";
import { repositoryRoot } from "./source-files.ts";

/** Builds into the folder; further modules that a test imports by their path stay files of their own, too. */
export async function buildPackage(
  folder: string,
  imported: readonly string[] = [],
): Promise<void> {
  writeModules(await joinedModules({ further: imported }), join(folder, "dist"));
  copyFileSync(join(repositoryRoot, "package.json"), join(folder, "package.json"));
  symlinkSync(join(repositoryRoot, "node_modules"), join(folder, "node_modules"), "junction");
}
