/**
 * The list of faults. A fault changes one place of the source. The `.txt` files beside this one hold them, a file an
 * area: first the area's tests, then the faults, a line each, below the file that they change and the tests that should
 * notice. A line is the changed place, much as `git diff --word-diff` writes it:
 *
 *   tests: src/passes/ test/passes-differential.test.ts
 *   src/passes/canonicalize/choice.ts < src/passes/canonicalize/
 *     mirrored-less: lt: "{-gt-}{+ge+}",
 *
 * A fault's own tests run first, being few; the area's tests run where those notice nothing.
 */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { placesOf, tokensOf } from "./tokens.ts";

export interface Fault {
  /** Unique among all faults: `passes/sub-self-float`. */
  readonly id: string;
  readonly area: string;
  readonly file: string;
  /** Part of a line, found exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** Tests to run, in turn, until a run fails: the fault's own, then the area's. Files or folders. */
  readonly stages: readonly [readonly string[], readonly string[]];
}

const extension = ".txt";

function listFolder(root: string): string {
  return join(root, "scripts/mutations");
}

export function listPath(root: string, area: string): string {
  return join(listFolder(root), `${area}${extension}`);
}

/** All faults as the lists hold them; they may be older than the source, see `follow.ts`. */
export function readFaults(root: string): readonly Fault[] {
  const faults = readdirSync(listFolder(root))
    .filter((name) => name.endsWith(extension))
    .sort()
    .flatMap((name) => {
      const area = name.slice(0, -extension.length);
      return parseFaults(area, readFileSync(listPath(root, area), "utf8"));
    });
  const known = new Set<string>();
  for (const { id } of faults) {
    if (known.has(id)) throw new Error(`two faults are called ${id}`);
    known.add(id);
  }
  return faults;
}

const testsLine = /^tests: (?<tests>.+)$/;
const fileLine = /^(?<file>\S+) < (?<tests>.+)$/;
const faultLine = /^ {2}(?<name>[\w-]+): (?<change>.+)$/;
const change =
  /^(?<before>.*?)(?=\{[-+])(?:\{-(?<old>.*?)-\})?(?:\{\+(?<added>.*)\+\})?(?<after>.*)$/;

/** The faults of a list's text. */
export function parseFaults(area: string, text: string): readonly Fault[] {
  const [first = "", ...lines] = text.trimEnd().split("\n");
  const areaTests = testsLine.exec(first)?.groups?.tests?.split(" ");
  if (areaTests === undefined) throw new Error(`${area}${extension} begins without \`tests: …\``);
  let file = "";
  let own: readonly string[] = [];
  return lines.flatMap((line) => {
    const header = fileLine.exec(line)?.groups;
    if (header !== undefined) {
      file = header.file ?? "";
      own = (header.tests ?? "").split(" ");
      return [];
    }
    const { name = "", change: written = "" } = faultLine.exec(line)?.groups ?? {};
    const parts = change.exec(written)?.groups;
    if (parts === undefined || file === "")
      throw new Error(`${area}${extension} has a line that is neither a file nor a fault: ${line}`);
    const { before = "", old = "", added = "", after = "" } = parts;
    const find = before + old + after;
    const replace = before + added + after;
    return [{ id: `${area}/${name}`, area, file, find, replace, stages: [own, areaTests] }];
  });
}

/** The text of a list that holds these faults, all of one area. */
export function printFaults(faults: readonly Fault[]): string {
  const lines: string[] = [];
  let last = "";
  for (const fault of faults) {
    const { id, area, file, stages } = fault;
    if (lines.length === 0) lines.push(`tests: ${stages[1].join(" ")}`);
    const header = `${file} < ${stages[0].join(" ")}`;
    if (header !== last) lines.push(header);
    last = header;
    lines.push(`  ${id.slice(area.length + 1)}: ${printChange(fault)}`);
  }
  return `${lines.join("\n")}\n`;
}

function printChange({ find, replace }: Fault): string {
  const { before, old, added, after } = splitChange(find, replace);
  const change = (old && `{-${old}-}`) + (added && `{+${added}+}`);
  return before + change + after;
}

/** What a fault changes, and what stays on either side, cut between words and operators. */
export function splitChange(find: string, replace: string) {
  const shortest = Math.min(find.length, replace.length);
  let start = 0;
  while (start < shortest && find[start] === replace[start]) start++;
  while (start > 0 && (cutsWord(find, start) || cutsWord(replace, start))) start--;
  let end = 0;
  const cut = () => cutsWord(find, find.length - end) || cutsWord(replace, replace.length - end);
  while (end < shortest - start && find.at(-end - 1) === replace.at(-end - 1)) end++;
  while (end > 0 && cut()) end--;
  return {
    before: find.slice(0, start),
    old: find.slice(start, find.length - end),
    added: replace.slice(start, replace.length - end),
    after: find.slice(find.length - end),
  };
}

function cutsWord(text: string, position: number): boolean {
  return /^(?:[\w$]{2}|\.\d|\d\.|[-+*<>=!&|?]{2})$/.test(
    text.slice(Math.max(position - 1, 0), position + 1),
  );
}

/** The text of the fault's file with the fault in it. Lines may break otherwise than in the list. */
export function applyFault(source: string, { id, file, find, replace }: Fault): string {
  if (find === replace) throw new Error(`fault ${id} does not change anything`);
  const occurrences = source.split(find).length - 1;
  // A function, because in a replacement text `$` means something else.
  if (occurrences === 1) return source.replace(find, () => replace);
  const tokens = tokensOf(source);
  const places = placesOf(tokens, tokensOf(find)).filter(({ renamed }) => renamed.size === 0);
  const [place] = places;
  if (place === undefined || places.length > 1)
    throw new Error(`fault ${id}: \`${find}\` occurs ${places.length} times in ${file}, not once`);
  const { before, old, added } = splitChange(find, replace);
  const first = place.first + tokensOf(before).length;
  const last = first + tokensOf(old).length - 1;
  const start = tokens[first]?.start ?? source.length;
  const end = tokens[last]?.end ?? 0;
  if (last >= first) return source.slice(0, start) + added + source.slice(end);
  // Something added stands where the list has it: behind what is before it, or before what is behind.
  const position = /\S$/.test(before) ? end : start;
  return source.slice(0, position) + added + source.slice(position);
}

/** The faults of areas, or those of the names; all of them for no name. */
export function selectFaults(
  faults: readonly Fault[],
  names: readonly string[] = [],
): readonly Fault[] {
  const areas = new Set(faults.map(({ area }) => area));
  for (const name of names)
    if (!areas.has(name) && !faults.some(({ id }) => id === name))
      throw new Error(`no fault or area is called ${name}; the areas are ${[...areas].join(", ")}`);
  if (names.length === 0) return faults;
  return faults.filter(({ id, area }) => names.includes(id) || names.includes(area));
}
