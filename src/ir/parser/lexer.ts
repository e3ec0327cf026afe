/**
 * Cuts IR text into tokens.
 *
 * | kind   | examples                              |
 * |--------|---------------------------------------|
 * | word   | `kernel` `binary` `f32` `nan` `true`  |
 * | value  | `%0` `%sum`                           |
 * | number | `7` `-1.5e-7` `-inf` `12n`            |
 * | string | `"x"` with JSON's escapes             |
 * | sign   | `( ) { } [ ] < > , : = * @`           |
 * | end    | after the last                        |
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { locationAt } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";

export type TokenKind = "word" | "value" | "number" | "string" | "sign" | "end";

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  readonly location: Location;
}

const patterns: readonly (readonly [TokenKind | "space", RegExp])[] = [
  ["space", /\s+/y],
  ["value", /%\w+/y],
  ["word", /[A-Za-z_$][\w$]*/y],
  ["number", /-?\d+(?:\.\d+)?(?:e[+-]?\d+)?n?|-inf\b/y],
  ["string", /"(?:[^"\\\n]|\\.)*"/y],
  ["sign", /[(){}[\]<>,:=*@]/y],
];

export function tokenize(text: string, file: string): readonly Token[] {
  const tokens: Token[] = [];
  let offset = 0;
  let line = 1;
  let lineStart = 0;
  while (offset < text.length) {
    const location = locationAt(file, line, offset - lineStart + 1);
    const [kind, found] = match(text, offset, location);
    if (kind === "space") {
      const breaks = found.split("\n").length - 1;
      line += breaks;
      if (breaks > 0) lineStart = offset + found.lastIndexOf("\n") + 1;
    } else tokens.push({ kind, text: found, location });
    offset += found.length;
  }
  const location = locationAt(file, line, offset - lineStart + 1);
  return [...tokens, { kind: "end", text: "", location }];
}

function match(
  text: string,
  offset: number,
  location: Location,
): readonly [TokenKind | "space", string] {
  for (const [kind, pattern] of patterns) {
    pattern.lastIndex = offset;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) return [kind, found];
  }
  const character = text.charAt(offset);
  if (character === '"')
    throw new TilewrightError({
      code: "TW2502",
      message: "the string that starts here is not closed on its line",
      location,
    });
  throw new TilewrightError({
    code: "TW2501",
    message: `${JSON.stringify(character)} starts nothing in IR text`,
    location,
    found: JSON.stringify(character),
  });
}
