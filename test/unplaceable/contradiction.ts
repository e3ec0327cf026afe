/**
 * The form of the tables in this folder. Each entry is a kernel that cannot be placed, written as a user
 * writes it, and with `fixed` the same kernel after the remedy that its report gives. The two lines that
 * the report must name end in a comment with the entry's name:
 *
 *   const first = tile.layoutCast(rows); // <- two pins, one
 *   const second = fixed ? tile : tile.layoutCast(strided); // <- two pins, other
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { KernelDefinition } from "tilewright";

export interface Contradiction {
  readonly name: string;
  readonly make: (fixed: boolean) => KernelDefinition;
  /** Part of the remedy. */
  readonly remedy: string;
}

export interface ContradictionTable {
  readonly contradictions: readonly Contradiction[];
  /** The two lines of an entry, in the order of the file. */
  linesOf(name: string): readonly number[];
}

export function contradictions(url: string, entries: readonly Contradiction[]): ContradictionTable {
  const lines = readFileSync(fileURLToPath(url), "utf8").split("\n");
  const marked = (mark: string): readonly number[] =>
    lines.flatMap((line, index) => (line.endsWith(`// <- ${mark}`) ? [index + 1] : []));
  return {
    contradictions: entries,
    linesOf: (name) => [...marked(`${name}, one`), ...marked(`${name}, other`)],
  };
}
