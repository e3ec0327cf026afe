/**
 * Cuts IR text into tokens.
 *
 * | kind   | examples                              |
 * |--------|---------------------------------------|
 * | word   | `kernel` `binary` `f32` `nan` `true`  |
 * | value  | `%0` `%sum`                           |
 * | number | `7` `-1.5e-7` `-inf` `12n`            |
 * | string | `"x"` with JSON's escapes             |
 * | sign   | `( ) { } [ ] < > , : = * @ +`, and `-` before a space |
 * | end    | after the last                        |
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { locationAt } from "../../support/location.ts";

export type TokenKind = "word" | "value" | "number" | "string" | "sign" | "end";

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  readonly line: number;
  readonly column: number;
}

/** One group a kind, in the order of `kinds`. */
const pattern =
  /(\s+)|([A-Za-z_$][\w$]*)|(%\w+)|([(){}[\]<>,:=*@+]|-(?=\s))|(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?n?|-inf\b)|("(?:[^"\\\n]|\\.)*")/y;
const kinds = ["space", "word", "value", "sign", "number", "string"] as const;

export function tokenize(text: string, file: string): readonly Token[] {
  const tokens: Token[] = [];
  let offset = 0;
  let line = 1;
  let lineStart = 0;
  while (offset < text.length) {
    pattern.lastIndex = offset;
    const match = pattern.exec(text);
    const column = offset - lineStart + 1;
    if (match === null) return reject(text.charAt(offset), file, line, column);
    const found = match[0];
    const kind = kinds[match.indexOf(found, 1) - 1];
    if (kind === "space") {
      const breaks = found.split("\n").length - 1;
      line += breaks;
      if (breaks > 0) lineStart = offset + found.lastIndexOf("\n") + 1;
    } else if (kind !== undefined) tokens.push({ kind, text: found, line, column });
    offset += found.length;
  }
  tokens.push({ kind: "end", text: "", line, column: offset - lineStart + 1 });
  return tokens;
}

function reject(character: string, file: string, line: number, column: number): never {
  const location = locationAt(file, line, column);
  if (character === '"')
    throw new TilewrightError({
      code: "TW2502",
      message: "the string that starts here is not closed on its line",
      location,
      expected: "a closing quotation mark on the same line",
      found: "the end of the line",
    });
  throw new TilewrightError({
    code: "TW2501",
    message: `${JSON.stringify(character)} starts nothing in IR text`,
    location,
    expected: "a name, a number, a string, or a sign of IR text",
    found: JSON.stringify(character),
  });
}
