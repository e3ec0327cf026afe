/**
 * A copy of the repository to build and change in, so that the tree people work in is never touched: the files that git tracks or would
 * track, and a node_modules of links, with room for caches of its own.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";

export function copyRepository(root: string, folder: string, links: "packages" | "all"): void {
  const listed = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "-z"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 2 ** 26,
  });
  for (const path of listed.split("\0")) {
    // A tracked file that is deleted in the working tree is still listed.
    if (path === "" || !existsSync(join(root, path))) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    copyFileSync(join(root, path), join(folder, path));
  }
  const modules = join(folder, "node_modules");
  mkdirSync(modules);
  for (const name of readdirSync(join(root, "node_modules")))
    // Caches are the tree's own; commands are wanted where npm runs scripts.
    if (!name.startsWith(".") || (links === "all" && name === ".bin"))
      symlinkSync(join(root, "node_modules", name), join(modules, name), "junction");
}
