/**
 * What became of the repository's files, as git tells: earlier texts of a file, and where a file or folder has gone. A
 * checkout without history knows neither, and faults are then searched in the source as it is.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The source, and what git remembers of it. */
export interface Tree {
  readonly files: readonly string[];
  /** The text of a file that is there. */
  read(path: string): string;
  /** Texts that the file had, the newest first. */
  earlier(path: string): Iterable<string>;
  /** Where a file or folder that is gone may be now, the likeliest first. */
  movedTo(path: string): readonly string[];
}

export function repositoryTree(root: string): Tree {
  const git = (...options: readonly string[]): string => {
    try {
      return execFileSync("git", options, {
        cwd: root,
        encoding: "utf8",
        maxBuffer: 2 ** 28,
        stdio: ["ignore", "pipe", "ignore"],
      });
    } catch {
      // No repository, or nothing of that name in the commit.
      return "";
    }
  };
  const linesOf = (text: string) => text.split("\n").filter((line) => line !== "");
  const files = linesOf(git("ls-files", "-co", "--exclude-standard", "src"))
    .filter((path) => path.endsWith(".ts") && existsSync(join(root, path)))
    .sort();

  function* earlier(path: string): Iterable<string> {
    for (const commit of linesOf(git("log", "--format=%H", "-n", "30", "--", path)))
      for (const text of [git("show", `${commit}:./${path}`), git("show", `${commit}^:./${path}`)])
        if (text !== "") yield text;
  }

  /** Renames of the change in which a path went, followed until they end in something that is there. */
  const movedTo = (path: string, depth = 0): readonly string[] => {
    if (existsSync(join(root, path))) return [path];
    if (depth === 8) return [];
    const [commit] = linesOf(
      git("log", "--diff-filter=D", "--no-renames", "-n", "1", "--format=%H", "--", path),
    );
    const changes = [
      git("diff", "-M30%", "--name-status", "HEAD"),
      commit === undefined ? "" : git("show", "-M30%", "--format=", "--name-status", commit),
    ];
    const next = changes.flatMap((change) =>
      linesOf(change).flatMap((line) => {
        const [kind = "", from = "", to = ""] = line.split("\t");
        return kind.startsWith("R") ? newPath(path, from, to) : [];
      }),
    );
    return [...new Set(mostCommonFirst(next))].flatMap((each) => movedTo(each, depth + 1));
  };

  return {
    files,
    read: (path) => readFileSync(join(root, path), "utf8"),
    earlier,
    movedTo,
  };
}

/** What a rename says of a path: of a file itself, or of a folder that kept the names below it. */
function newPath(path: string, from: string, to: string): readonly string[] {
  if (from === path) return [to];
  const folder = path.endsWith("/") ? path : `${path}/`;
  const below = `/${from.slice(folder.length)}`;
  if (!from.startsWith(folder) || !to.endsWith(below)) return [];
  return [to.slice(0, 1 - below.length)];
}

function mostCommonFirst(paths: readonly string[]): readonly string[] {
  const count = (path: string) => paths.filter((each) => each === path).length;
  return [...paths].sort((a, b) => count(b) - count(a));
}
