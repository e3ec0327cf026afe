/**
 * A position in program text, and the ways a parser moves it. Tokens of MLIR depend on where they stand
 * (`2x3xf32` is a shape within a type and nowhere else), so text is matched where it is read.
 *
 *   %0 = stablehlo.add %x, %y : tensor<2x3xf32>   // comment
 *   ^value             ^word    ^sign
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { DiagnosticCode } from "../../support/diagnostics.ts";
import { didYouMean } from "../../support/options.ts";
import { wholeNumber } from "../ops/structures.ts";
import { locationAt } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";

// Strings are matched in stretches, not character by character: constants of megabytes stand in them.
// A byte order mark, which some editors put first, is space too.
const space = /(?:[ \t\r\n\uFEFF]+|\/\/[^\n]*)*/y;
const wordPattern = /[A-Za-z_][\w$.]*/y;
const valuePattern = /%[\w$.-]+(?:#\d+)?/y;
const symbolPattern = /@(?:[\w$.-]+|"[^"\\]*(?:\\.[^"\\]*)*")/y;
const stringPattern = /"[^"\\]*(?:\\.[^"\\]*)*"/y;
const integerPattern = /-?(?:0x[0-9a-fA-F]+|\d+)/y;
const numberPattern = /[-+]?(?:0x[0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)/y;
/** Levels of lists, types, regions and aliases within each other. Nobody writes as many, and whoever walks a program takes stack for each. */
export const deepest = 256;
const closers: { readonly [open: string]: string } = { "<": ">", "(": ")", "[": "]", "{": "}" };

export class Scanner {
  readonly text: string;
  readonly #file: string;
  /** Lines before the text, where it is a piece of a file. */
  readonly #firstLine: number;
  #position = 0;
  #end = 0;
  #depth = 0;
  /** Where each line starts; found when the first location is asked for. */
  #lineStarts: readonly number[] | undefined;

  constructor(text: string, file: string, firstLine: number) {
    this.text = text;
    this.#file = file;
    this.#firstLine = firstLine;
  }

  /** Reads from another place, and comes back. */
  elsewhere<T>(position: number, read: () => T): T {
    const before = this.#position;
    this.#position = position;
    const result = read();
    this.#position = before;
    return result;
  }

  /** Reads something that may hold others of its kind. */
  nested<T>(read: () => T): T {
    if (this.#depth === deepest) this.tooDeep(`${deepest} levels within each other`, "more");
    this.#depth++;
    const result = read();
    this.#depth--;
    return result;
  }

  tooDeep(expected: string, found: string): never {
    const message = "the text is nested too deeply";
    return this.fail("TW9010", message, { expected: `at most ${expected}`, found });
  }

  /** Where the next token starts. */
  get position(): number {
    this.#skip();
    return this.#position;
  }

  /** Where the last token ended, on the line that it stands on. */
  get end(): number {
    return this.#end;
  }

  locationOf(position: number): Location {
    this.#lineStarts ??= [0, ...Array.from(this.text.matchAll(/\n/g), ({ index }) => index + 1)];
    const starts = this.#lineStarts;
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= position) low = middle;
      else high = middle;
    }
    return locationAt(this.#file, low + 1 + this.#firstLine, position - (starts[low] ?? 0) + 1);
  }

  #skip(): void {
    space.lastIndex = this.#position;
    space.exec(this.text);
    this.#position = space.lastIndex;
  }

  /** Takes what the sticky pattern matches here. */
  match(pattern: RegExp): string | undefined {
    this.#skip();
    pattern.lastIndex = this.#position;
    const found = pattern.exec(this.text)?.[0];
    if (found !== undefined) this.#end = this.#position += found.length;
    return found;
  }

  /** Whether the text goes on with this sign, or with this whole word. */
  sees(sign: string): boolean {
    this.#skip();
    if (!this.text.startsWith(sign, this.#position)) return false;
    const next = this.text.charAt(this.#position + sign.length);
    return !/\w$/.test(sign) || !/[\w$.]/.test(next);
  }

  /** Whether the text goes on with what the sticky pattern matches. */
  seesPattern(pattern: RegExp): boolean {
    this.#skip();
    pattern.lastIndex = this.#position;
    return pattern.test(this.text);
  }

  accept(sign: string): boolean {
    const seen = this.sees(sign);
    if (seen) this.#end = this.#position += sign.length;
    return seen;
  }

  expect(sign: string): void {
    if (!this.accept(sign)) this.unexpected(`\`${sign}\``);
  }

  get atEnd(): boolean {
    this.#skip();
    return this.#position >= this.text.length;
  }

  word(expected = "a word"): string {
    return this.match(wordPattern) ?? this.unexpected(expected);
  }

  seesWord(): boolean {
    return this.seesPattern(wordPattern);
  }

  /** A value's name such as `%0#1`. */
  value(): string {
    return this.match(valuePattern) ?? this.unexpected("a value such as %0");
  }

  seesValue(): boolean {
    return this.seesPattern(valuePattern);
  }

  /** A symbol's name without its @ and quotes. */
  symbol(): string {
    const found = this.match(symbolPattern) ?? this.unexpected("a name such as @f");
    return found.startsWith('@"') ? unescape(found.slice(2, -1)) : found.slice(1);
  }

  string(): string {
    const found = this.match(stringPattern) ?? this.unexpected("a quoted string");
    return unescape(found.slice(1, -1));
  }

  seesString(): boolean {
    return this.seesPattern(stringPattern);
  }

  integer(): number {
    return wholeNumber(this.match(integerPattern) ?? this.unexpected("an integer"));
  }

  /** A number as it is written. */
  number(): string {
    return this.match(numberPattern) ?? this.unexpected("a number");
  }

  seesNumber(): boolean {
    return this.seesPattern(/[-+]?\d/y);
  }

  /** Items separated by commas, between two signs. */
  list<T>(open: string, close: string, item: () => T): readonly T[] {
    this.expect(open);
    if (this.accept(close)) return [];
    const items = this.commaSeparated(item);
    this.expect(close);
    return items;
  }

  commaSeparated<T>(item: () => T): readonly T[] {
    const items = [item()];
    while (this.accept(",")) items.push(item());
    return items;
  }

  /** The text between the bracket that stands here and its partner, spaces as one; both are taken. */
  balanced(open: string): string {
    this.expect(open);
    const start = this.#position;
    const pending = [closers[open]];
    while (pending.length > 0) {
      const character = this.text.charAt(this.#position);
      if (character === "") this.unexpected(`\`${pending.at(-1)}\``);
      if (character === '"') {
        if (this.match(stringPattern) === undefined) this.unexpected("the end of the string");
        continue;
      }
      const arrow = character === "-" && this.text.charAt(this.#position + 1) === ">";
      if (character in closers) pending.push(closers[character]);
      else if (character === pending.at(-1)) pending.pop();
      this.#position += arrow ? 2 : 1;
    }
    this.#end = this.#position;
    return normalizeSpaces(this.text.slice(start, this.#position - 1));
  }

  unexpected(expected: string): never {
    this.#skip();
    const rest = this.text.slice(this.#position);
    const word = /^(?:[\w$.%@#^!-]+|->|"[^"\n]*"?|.)/.exec(rest)?.[0] ?? "";
    const found = word === "" ? "the end of the text" : `\`${word}\``;
    return this.fail("TW9001", `${found} does not belong here`, { expected, found });
  }

  /** A word that stands for an entry of a table. */
  wordOf<T>(table: { readonly [word: string]: T }): T {
    const { position } = this;
    const known = Object.keys(table);
    const word = this.word(`one of ${known.join(", ")}`);
    const entry = Object.hasOwn(table, word) ? table[word] : undefined;
    if (entry !== undefined) return entry;
    return this.fail("TW9001", `\`${word}\` does not belong here${didYouMean(word, known)}`, {
      position,
      expected: known.length === 0 ? "a value such as %0" : `one of ${known.join(", ")}`,
      found: `\`${word}\``,
    });
  }

  fail(
    code: DiagnosticCode,
    message: string,
    { position = this.position, ...details }: FailureDetails,
  ): never {
    throw new TilewrightError({ code, message, location: this.locationOf(position), ...details });
  }
}

interface FailureDetails {
  readonly position?: number;
  readonly expected: string;
  readonly found: string;
  readonly remedy?: string | undefined;
}

/** One space where the text outside strings has several. */
function normalizeSpaces(text: string): string {
  return text
    .split(/("[^"\\]*(?:\\.[^"\\]*)*")/)
    .map((piece, index) =>
      index % 2 === 1 ? piece : piece.replace(/\/\/[^\n]*/g, "").replace(/\s+/g, " "),
    )
    .join("")
    .trim();
}

const namedEscapes: { readonly [letter: string]: string } = {
  n: "\n",
  t: "\t",
  "\\": "\\",
  '"': '"',
};

/** MLIR's strings are bytes: `\0A` is one. Each becomes the character of that number. */
function unescape(text: string): string {
  return text.replace(/\\(?:([0-9a-fA-F]{2})|(.))/gs, (_, byte?: string, letter = "") =>
    byte === undefined
      ? (namedEscapes[letter as string] ?? (letter as string))
      : String.fromCharCode(parseInt(byte, 16)),
  );
}

/** The quoted form of a string. */
export function quoted(text: string): string {
  const escaped = text.replace(/["\\\x00-\x1f\x7f]/g, (character) =>
    character === "\\"
      ? "\\\\"
      : `\\${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
  );
  return `"${escaped}"`;
}

/** A symbol with its @, quoted where its name is no word. */
export function symbolText(name: string): string {
  return name
    .split("::@")
    .map((part) => (/^[A-Za-z_][\w$.-]*$/.test(part) ? `@${part}` : `@${quoted(part)}`))
    .join("::");
}
