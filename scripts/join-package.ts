/**
 * The last step of what npm packs: the modules that the compiler has written into `dist` give way to the same ones joined
 * (`join-modules.ts`). Their types stay a file for each.
 */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { repositoryRoot } from "../test/source-files.ts";
import { joinedModules, writeModules } from "./join-modules.ts";

const folder = join(repositoryRoot, "dist");
const joined = await joinedModules();

// The command that runs this is one of these modules, and loads further ones until it ends.
process.once("exit", (status) => {
  if (status !== 0) return;
  for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" }))
    // Without the compiler's own notes the next build writes every module again.
    if (path.endsWith(".js") || path === ".tsbuildinfo") rmSync(join(folder, path));
  writeModules(joined, folder);
});
