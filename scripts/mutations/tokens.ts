/**
 * Places of a source that mean what a fragment means: the same words and signs in the same order, wherever lines break,
 * with names free to be others, if each is another one throughout.
 *
 *   fragment  ring.slot < depth - 1        place  ring.stage < depth - 1        renamed  slot → stage
 */

export interface Token {
  readonly text: string;
  /** A word, but no keyword: it may be another one. */
  readonly name: boolean;
  readonly start: number;
  readonly end: number;
}

export interface Place {
  /** The first of its tokens in the source. */
  readonly first: number;
  /** What the fragment's names are called here, of those that are called otherwise. */
  readonly renamed: ReadonlyMap<string, string>;
}

const keywords = new Set(
  (
    "as async await break case catch class const continue default delete do else export extends false finally for from " +
    "function if import in instanceof interface let new null of readonly return static super switch this throw true try " +
    "type typeof undefined void while yield"
  ).split(" "),
);

export function tokensOf(text: string): readonly Token[] {
  return [...text.matchAll(/[A-Za-z_$][\w$]*|\d[\w.]*|\S/g)].map((match) => {
    const [token] = match;
    const name = /^[A-Za-z_$]/.test(token) && !keywords.has(token);
    return { text: token, name, start: match.index, end: match.index + token.length };
  });
}

/** Everywhere that the source has the fragment's shape. */
export function placesOf(source: readonly Token[], fragment: readonly Token[]): readonly Place[] {
  if (fragment.length === 0) return [];
  return source.flatMap((_, first) => {
    const renamed = renamedAt(source, first, fragment);
    return renamed === undefined ? [] : [{ first, renamed }];
  });
}

/** One name for one name, both ways; undefined where the shape differs. */
function renamedAt(
  source: readonly Token[],
  first: number,
  fragment: readonly Token[],
): ReadonlyMap<string, string> | undefined {
  const differs = fragment.some(({ text, name }, position) => {
    const found = source[first + position];
    return found === undefined || found.name !== name || (!name && found.text !== text);
  });
  if (differs) return undefined;
  const there = new Map<string, string>();
  const back = new Map<string, string>();
  for (const [position, { text, name }] of fragment.entries()) {
    const found = source[first + position]?.text;
    if (!name || found === undefined) continue;
    if ((there.get(text) ?? found) !== found || (back.get(found) ?? text) !== text)
      return undefined;
    there.set(text, found);
    back.set(found, text);
  }
  return new Map([...there].filter(([from, to]) => from !== to));
}

/** A text with its names replaced. */
export function renameIn(text: string, renamed: ReadonlyMap<string, string>): string {
  return text.replaceAll(/[A-Za-z_$][\w$]*/g, (name) => renamed.get(name) ?? name);
}
