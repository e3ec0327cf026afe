/** A position in the tokens, and the ways a parser moves it: look, accept, expect, or fail. */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { DiagnosticCode } from "../../support/diagnostics.ts";
import { locationAt } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { tokenize } from "./lexer.ts";
import type { Token, TokenKind } from "./lexer.ts";

export class Cursor {
  readonly #tokens: readonly Token[];
  readonly #file: string;
  #position = 0;

  constructor(text: string, file: string) {
    this.#tokens = tokenize(text, file);
    this.#file = file;
  }

  /** The token `ahead` of the next one; past the end, the end. */
  peek(ahead = 0): Token {
    const token = this.#tokens[this.#position + ahead] ?? this.#tokens.at(-1);
    if (token === undefined) throw new Error("the tokens have an end");
    return token;
  }

  /** The token's place in the text. */
  locationOf({ line, column }: Token): Location {
    return locationAt(this.#file, line, column);
  }

  take(): Token {
    const token = this.peek();
    this.#position++;
    return token;
  }

  /** Whether the next token is this word or sign. */
  sees(text: string, ahead = 0): boolean {
    const token = this.peek(ahead);
    return token.text === text && (token.kind === "word" || token.kind === "sign");
  }

  /** Takes the next token where it is this word or sign. */
  accept(text: string): boolean {
    const seen = this.sees(text);
    if (seen) this.#position++;
    return seen;
  }

  expect(text: string): Token {
    if (!this.sees(text)) return this.unexpected(`\`${text}\``);
    return this.take();
  }

  expectKind(kind: TokenKind, expected: string): Token {
    if (this.peek().kind !== kind) return this.unexpected(expected);
    return this.take();
  }

  /** One of the words; `what` names them in the report. */
  expectWord<W extends string>(words: readonly W[], what: string): W {
    const { kind, text } = this.peek();
    const word = kind === "word" ? words.find((candidate) => candidate === text) : undefined;
    if (word === undefined) return this.unexpected(`${what}: ${words.join(", ")}`);
    this.#position++;
    return word;
  }

  expectInteger(expected = "an integer"): number {
    const token = this.peek();
    if (token.kind !== "number" || !/^-?\d+$/.test(token.text)) return this.unexpected(expected);
    return Number(this.take().text);
  }

  expectString(expected = "a quoted string"): string {
    const token = this.expectKind("string", expected);
    try {
      return JSON.parse(token.text) as string;
    } catch {
      throw new TilewrightError({
        code: "TW2502",
        message: `${token.text} holds an escape that JSON does not know`,
        location: this.locationOf(token),
        expected: "a string as JSON writes it",
        found: token.text,
      });
    }
  }

  /** A bare word or a quoted string. */
  expectName(expected: string): string {
    return this.peek().kind === "string"
      ? this.expectString()
      : this.expectKind("word", expected).text;
  }

  /** Items between two signs, separated by commas. */
  list<T>(open: string, close: string, item: () => T): readonly T[] {
    this.expect(open);
    if (this.accept(close)) return Object.freeze([]);
    const items = this.commaSeparated(item);
    this.expect(close);
    return items;
  }

  /** One item or more, separated by commas. */
  commaSeparated<T>(item: () => T): readonly T[] {
    const items = [item()];
    while (this.accept(",")) items.push(item());
    return Object.freeze(items);
  }

  unexpected(expected: string): never {
    const { kind, text } = this.peek();
    const found = kind === "end" ? "the end of the text" : `\`${text}\``;
    return this.fail("TW2503", this.peek(), `${found} does not belong here`, expected, found);
  }

  fail(
    code: DiagnosticCode,
    token: Token,
    message: string,
    expected: string,
    found = token.kind === "end" ? "the end of the text" : token.text,
  ): never {
    throw new TilewrightError({
      code,
      message,
      location: this.locationOf(token),
      expected,
      found,
    });
  }
}
