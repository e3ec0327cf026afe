/** Which file imports which, of types and values, and the circles that they form. */
import { posix } from "node:path";

export interface Import {
  readonly from: string;
  readonly specifier: string;
  /** The imported file, for an import of ours. */
  readonly target: string | undefined;
  /** Whether nothing of it is left at run time. */
  readonly typeOnly: boolean;
  /** When it is called, not when the file is loaded. */
  readonly later: boolean;
}

/** Imports as oxfmt writes them, outside of comments. */
const statement = /^(?:import|export) (?:(?<names>[^;"'=]*)\bfrom )?"(?<specifier>[^"\n]+)";$/gm;
const expression = /^(?!\s*(?:\*|\/\/)).*\bimport\("(?<specifier>[^"\n]+)"\)/gm;

export function importsOf(file: string, text: string): readonly Import[] {
  const found = [statement, expression].flatMap((form) =>
    [...text.matchAll(form)].map(({ groups }) => ({ groups, later: form === expression })),
  );
  return found.map(({ groups, later }) => {
    const { names = "", specifier = "" } = groups ?? {};
    const ours = specifier.startsWith(".");
    return {
      from: file,
      specifier,
      later,
      target: ours ? posix.join(posix.dirname(file), specifier) : undefined,
      typeOnly: /^type\b/.test(names),
    };
  });
}

/**
 * Files that all lead to each other, the most first: what nobody can read or move one by one. These are the strongly connected components of
 * more than one file, by Tarjan's algorithm.
 */
export function importCircles(
  imports: ReadonlyMap<string, readonly Import[]>,
): readonly (readonly string[])[] {
  const number = new Map<string, number>();
  const open: string[] = [];
  const circles: string[][] = [];
  const visit = (file: string): number => {
    const own = number.size;
    number.set(file, own);
    let least = own;
    open.push(file);
    for (const { target = "" } of imports.get(file) ?? []) {
      if (!imports.has(target)) continue;
      if (!number.has(target)) least = Math.min(least, visit(target));
      else if (open.includes(target)) least = Math.min(least, number.get(target) ?? least);
    }
    if (least === own) {
      const circle = open.splice(open.indexOf(file));
      if (circle.length > 1) circles.push(circle.sort());
    }
    return least;
  };
  for (const file of imports.keys()) if (!number.has(file)) visit(file);
  return circles.sort((a, b) => b.length - a.length);
}
