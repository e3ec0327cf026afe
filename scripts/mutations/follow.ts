/**
 * Faults survive renames: where the source no longer has a fault's text, or its file, the place is found that means the
 * same, and the fault gets the names of today.
 *
 *   the text, once in the file        ─▶ as it is
 *   the same shape, once, or the      ─▶ the names of that place, in what the fault puts there as well
 *   third of five as it was in git
 *   no file, or nothing like it there ─▶ the same in the file that git says it became; then in all of src, where the
 *                                        place must keep most of its names
 *   several                           ─▶ refused
 *
 * `npm run mutate -- --update` writes what was found into the lists.
 */
import { applyFault, splitChange } from "./faults.ts";
import type { Fault } from "./faults.ts";
import type { Tree } from "./history.ts";
import { placesOf, renameIn, tokensOf } from "./tokens.ts";
import type { Place, Token } from "./tokens.ts";

/** A fault as it fits the source of today, or why it does not. */
export interface Followed {
  readonly fault: Fault;
  readonly trouble?: string;
}

export class Follower {
  readonly #tree: Tree;
  readonly #tokens = new Map<string, readonly Token[]>();
  readonly #moves = new Map<string, readonly string[]>();
  /** Renames seen so far, as `from to`. */
  readonly #seen = new Set<string>();

  constructor(tree: Tree) {
    this.#tree = tree;
  }

  /** All of them, twice where the names that others lead to decide between places. */
  followAll(faults: readonly Fault[]): readonly Followed[] {
    const first = faults.map((fault) => this.follow(fault));
    return first.map((each, position) => {
      const fault = faults[position];
      return each.trouble === undefined || fault === undefined ? each : this.follow(fault);
    });
  }

  follow(fault: Fault): Followed {
    const [own, area] = fault.stages;
    const tests = { own: this.#tests(own), area: this.#tests(area) };
    const missing = [...own, ...area].find((path) => this.#moved(path).length === 0);
    if (missing !== undefined) return { fault, trouble: `there is no ${missing}` };
    const stages: Fault["stages"] = [tests.own, tests.area];
    const files = this.#moved(fault.file);
    for (const file of files) {
      const text = this.#tree.read(file);
      if (occursOnce(text, fault.find)) return { fault: { ...fault, file, stages } };
    }
    for (const file of files) {
      const places = this.#placesIn(file, fault);
      const place = this.#onlyOne(places, fault, file);
      if (place !== undefined) return this.#renamed({ ...fault, stages }, file, place);
      if (places.length > 1)
        return { fault, trouble: `${places.length} places of ${file} look like \`${fault.find}\`` };
    }
    return this.#elsewhere({ ...fault, stages });
  }

  #tests(paths: readonly string[]): readonly string[] {
    return paths.map((path) => this.#moved(path)[0] ?? path);
  }

  #moved(path: string): readonly string[] {
    const known = this.#moves.get(path) ?? this.#tree.movedTo(path);
    this.#moves.set(path, known);
    return known;
  }

  #tokensOf(file: string): readonly Token[] {
    const known = this.#tokens.get(file) ?? tokensOf(this.#tree.read(file));
    this.#tokens.set(file, known);
    return known;
  }

  #placesIn(file: string, { find }: Fault): readonly Place[] {
    return placesOf(this.#tokensOf(file), tokensOf(find));
  }

  /** The place that the fault means, of those that have its shape. */
  #onlyOne(places: readonly Place[], fault: Fault, file: string): Place | undefined {
    if (places.length === 0) return undefined;
    const remembered = this.#asBefore(places, fault);
    if (remembered !== undefined) return remembered;
    const words = new Set(this.#tokensOf(file).map(({ text }) => text));
    const known = (place: Place) =>
      [...place.renamed].filter(([from, to]) => this.#seen.has(`${from} ${to}`)).length;
    const cost = (place: Place) => place.renamed.size - known(place);
    const least = Math.min(...places.map(cost));
    const [best, ...others] = places.filter((place) => cost(place) === least);
    if (best === undefined || others.length > 0) return undefined;
    // A name that the file still has was not renamed there, unless others say so.
    const doubtful = [...best.renamed.keys()].filter((from) => words.has(from)).length;
    return cost(best) === 0 || doubtful === 0 ? best : undefined;
  }

  /** Where git has a text of the file with the fault in it, and as many places of this shape: the one of its number. */
  #asBefore(places: readonly Place[], { file, find }: Fault): Place | undefined {
    for (const text of this.#tree.earlier(file)) {
      if (!occursOnce(text, find)) continue;
      const position = text.indexOf(find);
      const tokens = tokensOf(text);
      const before = placesOf(tokens, tokensOf(find));
      if (before.length !== places.length) return undefined;
      const number = before.findIndex(({ first }) => (tokens[first]?.end ?? 0) > position);
      return places[number];
    }
    return undefined;
  }

  /** A file may be divided, and a function move: the one place of the folder, or of all, with the text or most of its names. */
  #elsewhere(fault: Fault): Followed {
    const { find, file } = fault;
    const folder = file.slice(0, file.lastIndexOf("/") + 1);
    const near = this.#tree.files.filter((each) => each.startsWith(folder));
    for (const files of [near, this.#tree.files]) {
      const [only, ...others] = files.filter((each) => this.#tree.read(each).includes(find));
      if (only !== undefined && others.length === 0 && occursOnce(this.#tree.read(only), find))
        return { fault: { ...fault, file: only } };
    }
    const names = new Set(tokensOf(find).flatMap(({ text, name }) => (name ? [text] : [])));
    const likely = this.#tree.files.flatMap((each) =>
      this.#placesIn(each, fault)
        .filter(({ renamed }) => 2 * renamed.size < names.size)
        .map((place) => ({ file: each, place })),
    );
    const [found, ...more] = likely;
    if (found === undefined || more.length > 0)
      return { fault, trouble: `${likely.length} places look like \`${find}\` of ${file}` };
    return this.#renamed(fault, found.file, found.place);
  }

  #renamed(fault: Fault, file: string, { renamed }: Place): Followed {
    for (const [from, to] of renamed) this.#seen.add(`${from} ${to}`);
    const { before, added, after } = splitChange(fault.find, fault.replace);
    const replace = before + this.#knownNames(file, added, renamed) + after;
    const changed = {
      ...fault,
      file,
      find: renameIn(fault.find, renamed),
      replace: renameIn(replace, renamed),
    };
    try {
      applyFault(this.#tree.read(file), changed);
      return { fault: changed };
    } catch (error) {
      return { fault, trouble: error instanceof Error ? error.message : String(error) };
    }
  }

  /** What the fault puts there: of names that the file does not know, those that other faults were led to. */
  #knownNames(file: string, added: string, renamed: ReadonlyMap<string, string>): string {
    const words = new Set(this.#tokensOf(file).map(({ text }) => text));
    const pairs = [...this.#seen].map((pair) => pair.split(" "));
    const others = pairs.filter(([from = ""]) => !renamed.has(from) && !words.has(from));
    return renameIn(added, new Map(others.map(([from = "", to = ""]) => [from, to])));
  }
}

function occursOnce(text: string, part: string): boolean {
  return text.split(part).length === 2;
}
