/**
 * The list of faults. A fault changes one line of the source; the JSON files beside this one hold them by
 * area, each with the tests that should notice:
 *
 *   { "area": "passes", "tests": ["src/passes/"], "faults": [
 *     { "id": "sub-self-float", "file": "src/passes/…", "find": "<part of a line>", "replace": "…",
 *       "tests": ["src/passes/canonicalize/"] } ] }
 *
 * A fault's own tests run first, being few; the area's tests run where those notice nothing.
 */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

export interface Fault {
  /** Unique among all faults: `passes/sub-self-float`. */
  readonly id: string;
  readonly area: string;
  readonly file: string;
  /** Part of one line, found exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** Tests to run, in turn, until a run fails: files or folders. */
  readonly stages: readonly (readonly string[])[];
}

interface FaultFile {
  readonly area: string;
  readonly tests: readonly string[];
  readonly faults: readonly {
    readonly id: string;
    readonly file: string;
    readonly find: string;
    readonly replace: string;
    readonly tests: readonly string[];
  }[];
}

/** All faults, checked against the source below `root`; a mistake in the list names its fault. */
export function loadFaults(root: string): readonly Fault[] {
  const folder = join(root, "scripts/mutations");
  const faults = readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .sort()
    .flatMap((name) => faultsOf(JSON.parse(readFileSync(join(folder, name), "utf8")) as FaultFile));
  for (const [position, fault] of faults.entries()) {
    if (faults.findIndex(({ id }) => id === fault.id) !== position)
      throw new Error(`two faults are called ${fault.id}`);
    checkFault(root, fault);
  }
  return faults;
}

function faultsOf({ area, tests, faults }: FaultFile): readonly Fault[] {
  return faults.map(({ id, file, find, replace, tests: near }) => ({
    id: `${area}/${id}`,
    area,
    file,
    find,
    replace,
    stages: [near, tests],
  }));
}

function checkFault(root: string, fault: Fault): void {
  for (const path of [fault.file, ...fault.stages.flat()])
    if (!existsSync(join(root, path))) throw new Error(`fault ${fault.id}: there is no ${path}`);
  applyFault(readFileSync(join(root, fault.file), "utf8"), fault);
}

/** The text of the fault's file with the fault in it. */
export function applyFault(source: string, { id, file, find, replace }: Fault): string {
  const occurrences = source.split(find).length - 1;
  if (occurrences !== 1)
    throw new Error(`fault ${id}: \`${find}\` occurs ${occurrences} times in ${file}, not once`);
  if (find.includes("\n") || find === replace)
    throw new Error(`fault ${id} does not change one line`);
  // A function, because in a replacement text `$` means something else.
  return source.replace(find, () => replace);
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
