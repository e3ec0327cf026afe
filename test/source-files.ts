/**
 * The repository's own text files, as the tests that read them need them: relative paths with forward
 * slashes, in a fixed order, without what is generated or installed.
 */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const repositoryRoot = fileURLToPath(new URL("..", import.meta.url));

const skippedFolders = new Set(["node_modules", "dist", "coverage", ".git", ".snippets"]);

/** Every file below `folder` (relative to the root) whose name matches. */
export function listFiles(folder: string, name: RegExp): readonly string[] {
  const found: string[] = [];
  const visit = (path: string) => {
    for (const entry of readdirSync(join(repositoryRoot, path), { withFileTypes: true })) {
      const child = path === "" ? entry.name : `${path}/${entry.name}`;
      if (entry.isDirectory()) {
        if (!skippedFolders.has(entry.name)) visit(child);
      } else if (name.test(entry.name)) {
        found.push(child);
      }
    }
  };
  visit(folder);
  return found.sort();
}

export function readText(path: string): string {
  return readFileSync(join(repositoryRoot, path), "utf8");
}
