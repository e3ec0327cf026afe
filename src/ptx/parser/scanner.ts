/**
 * Reads PTX text from left to right: spaces and comments, names, strings and signs. There are no token
 * objects; a caller looks at the next character, which says what can follow in PTX, and takes that.
 *
 *   @%p1 ld.global.v4.b32 {%r1, _}, [%rd1+16];
 *   |||| ^ opcode()      ^ peek() is "{"  ^ take("[")
 *   ||^ name()
 *   ^ accept("@")
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { DiagnosticCode } from "../../support/diagnostics.ts";
import { locationAt } from "../../support/location.ts";

/** What a character can be: start of a name, inside of one, or a digit. */
const startsName = 1;
const insideName = 2;
const isDigit = 4;

const classes = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  if (/[A-Za-z_$]/.test(character)) return startsName | insideName;
  if (/[0-9]/.test(character)) return insideName | isDigit;
  return character === "%" ? startsName : 0;
});

function classOf(code: number): number {
  return code < 128 ? (classes[code] as number) : 0;
}

const [slash, star, dot, colon] = [47, 42, 46, 58];

const lonePattern = /-?\d\w*(?=\s*[,;\]})])/y;

export class Scanner {
  readonly text: string;
  readonly #file: string;
  /** The next character not yet taken. */
  #offset = 0;
  /** A place whose line is known, to count on from. */
  #countedOffset = 0;
  #countedLine = 1;

  constructor(text: string, file: string) {
    this.text = text;
    this.#file = file;
  }

  /** Where the next character that counts stands. */
  get offset(): number {
    this.#skip();
    return this.#offset;
  }

  /** The end of what was taken last. */
  get taken(): number {
    return this.#offset;
  }

  /** The next character that counts, "" at the end. */
  peek(): string {
    this.#skip();
    return this.text.charAt(this.#offset);
  }

  get atEnd(): boolean {
    this.#skip();
    return this.#offset >= this.text.length;
  }

  atName(): boolean {
    this.#skip();
    return (classOf(this.text.charCodeAt(this.#offset)) & startsName) !== 0;
  }

  atDigit(): boolean {
    this.#skip();
    return (classOf(this.text.charCodeAt(this.#offset)) & isDigit) !== 0;
  }

  /** Takes the sign if it is next. */
  accept(sign: string): boolean {
    this.#skip();
    if (!this.text.startsWith(sign, this.#offset)) return false;
    this.#offset += sign.length;
    return true;
  }

  take(sign: string): void {
    if (!this.accept(sign)) this.unexpected(`"${sign}"`);
  }

  /** Takes a word such as `.align` or `function_name` if it is next, as a whole. */
  acceptWord(word: string): boolean {
    this.#skip();
    if (!this.text.startsWith(word, this.#offset)) return false;
    const after = this.#offset + word.length;
    if ((classOf(this.text.charCodeAt(after)) & insideName) !== 0) return false;
    this.#offset = after;
    return true;
  }

  /** A name without dots: a register, variable, label or function. */
  name(expected = "a name"): string {
    if (!this.atName()) this.unexpected(expected);
    return this.#slice(this.#endOfName(this.#offset + 1));
  }

  /** What may follow a dot. */
  part(expected: string): string {
    const end = this.#endOfName(this.#offset);
    if (end === this.#offset) this.unexpected(expected);
    return this.#slice(end);
  }

  /** `.global`, without its dot. */
  directive(): string {
    this.take(".");
    return this.part("a directive");
  }

  /** Takes a dot that directly follows what was taken last. */
  acceptJoinedDot(): boolean {
    if (this.text.charCodeAt(this.#offset) !== dot) return false;
    this.#offset++;
    return true;
  }

  /** An opcode with its modifiers: `ld.global.L2::128B.b32`; also a plain name. */
  opcode(): string {
    if (!this.atName()) this.unexpected("an instruction, a directive or a label");
    let end = this.#offset + 1;
    for (;;) {
      const code = this.text.charCodeAt(end);
      if ((classOf(code) & insideName) !== 0 || code === dot) end++;
      else if (code === colon && this.text.charCodeAt(end + 1) === colon) end += 2;
      else break;
    }
    let opcode = this.#slice(end);
    while (this.peek() === ".") opcode += this.#slice(this.#endOfModifier(this.#offset + 1));
    return opcode;
  }

  /** A number that is all of an operand, as most are; else nothing is taken. */
  loneNumeral(): string | undefined {
    this.#skip();
    lonePattern.lastIndex = this.#offset;
    const numeral = lonePattern.exec(this.text)?.[0];
    if (numeral !== undefined) this.#offset += numeral.length;
    return numeral;
  }

  /** Characters of a number: digits, letters, and a dot or signed exponent of a decimal one. */
  numeral(): string {
    this.#skip();
    const pattern = /0[xX]\w*|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]\d+)?\w*/y;
    pattern.lastIndex = this.#offset;
    const [numeral] = pattern.exec(this.text) ?? this.unexpected("a number");
    this.#offset += numeral.length;
    return numeral;
  }

  /** A quoted string, with \\" and \\\\ as quote and backslash. */
  string(): string {
    this.#skip();
    const start = this.#offset;
    const pattern = /"((?:[^"\\\n]|\\[^\n])*)"/y;
    pattern.lastIndex = start;
    const match = pattern.exec(this.text);
    if (match === null) {
      if (this.peek() !== '"') this.unexpected("a string");
      this.fail("TW7101", "a string is not closed on its line", start, "a quotation mark");
    }
    this.#offset += match[0].length;
    return (match[1] ?? "").replace(/\\(["\\])/g, "$1");
  }

  /** Everything up to the sign, which is taken but not given back. */
  upTo(sign: string, what: string): string {
    const end = this.text.indexOf(sign, this.#offset);
    if (end < 0) this.fail("TW7101", `${what} is not closed`, this.#offset, sign);
    const content = this.#slice(end);
    this.#offset += sign.length;
    return content;
  }

  /** The line of a place; fastest where places come in order. */
  lineAt(offset: number): number {
    if (offset < this.#countedOffset) [this.#countedOffset, this.#countedLine] = [0, 1];
    for (;;) {
      const next = this.text.indexOf("\n", this.#countedOffset);
      if (next < 0 || next >= offset) return this.#countedLine;
      this.#countedOffset = next + 1;
      this.#countedLine++;
    }
  }

  /** What stands next, to be named in a report. */
  found(offset = this.#offset): string {
    if (offset >= this.text.length) return "the end of the text";
    const pattern = /[.@]?[\w$%]+(?:(?:\.|::)[\w$]+)*|./uy;
    pattern.lastIndex = offset;
    return pattern.exec(this.text)?.[0].slice(0, 40) ?? "";
  }

  unexpected(expected: string): never {
    this.fail("TW7102", `${expected} is missing`, this.#offset, expected);
  }

  fail(
    code: DiagnosticCode,
    message: string,
    offset: number,
    expected: string,
    {
      found = this.found(offset),
      remedy,
    }: { readonly found?: string; readonly remedy?: string } = {},
  ): never {
    const column = offset - this.text.lastIndexOf("\n", offset - 1);
    const line = this.lineAt(offset);
    throw new TilewrightError({
      code,
      message,
      location: locationAt(this.#file, line, offset === 0 ? 1 : column),
      ...{ expected, found, remedy },
    });
  }

  #slice(end: number): string {
    const part = this.text.slice(this.#offset, end);
    this.#offset = end;
    return part;
  }

  #endOfName(start: number): number {
    let end = start;
    while ((classOf(this.text.charCodeAt(end)) & insideName) !== 0) end++;
    return end;
  }

  #endOfModifier(start: number): number {
    let end = this.#endOfName(start);
    while (this.text.startsWith("::", end)) end = this.#endOfName(end + 2);
    return end;
  }

  /** Spaces and comments. */
  #skip(): void {
    for (;;) {
      const code = this.text.charCodeAt(this.#offset);
      if (code <= 32) this.#offset++;
      else if (code === slash && this.#skipComment()) continue;
      else return;
    }
  }

  #skipComment(): boolean {
    const next = this.text.charCodeAt(this.#offset + 1);
    if (next === slash) {
      const end = this.text.indexOf("\n", this.#offset);
      this.#offset = end < 0 ? this.text.length : end;
      return true;
    }
    if (next !== star) return false;
    const end = this.text.indexOf("*/", this.#offset + 2);
    if (end < 0) this.fail("TW7101", "a comment is not closed", this.#offset, "*/");
    this.#offset = end + 2;
    return true;
  }
}
