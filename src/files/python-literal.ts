/**
 * The part of Python's literals that the header of an npy file is written in. NumPy reads headers with
 * `ast.literal_eval`, so what that refuses is refused, and what it reads is read alike:
 *
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 *
 *   (2,)   a tuple of one        (2)   the number 2        ()   a tuple of none
 *   {'a': 1, 'a': 2}   the last one counts                 010  no number
 *   2L     a number of Python 2, in files of versions 1 and 2
 *
 * Strings with escapes, floats, sets and sums of numbers are literals, too, but no part of any header; they are refused.
 */

export type PythonValue =
  | { readonly kind: "string"; readonly value: string }
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "bool"; readonly value: boolean }
  | { readonly kind: "none" }
  | { readonly kind: "tuple" | "list"; readonly items: readonly PythonValue[] }
  | { readonly kind: "dict"; readonly entries: ReadonlyMap<string, PythonValue> };

/** What is wrong with a text, for a report. */
export class PythonSyntaxError extends Error {}

const blank = /(?:[ \t\f\r\n]|\\\n(?!$)|#[^\n]*)*/y;
const word = /[A-Za-z_]\w*/y;
const text = /[uUrR]?(?:'([^'\\\n]*)'|"([^"\\\n]*)")/y;
const integer =
  /(?:0[xX](?:_?[\da-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|0(?:_?0)*|[1-9](?:_?\d)*)(?![\w.])/y;
const python2Integer = /(?:0|[1-9]\d*)(?=[ \t]*L(?!\w))/y;

const constants: { readonly [name: string]: PythonValue } = {
  True: { kind: "bool", value: true },
  False: { kind: "bool", value: false },
  None: { kind: "none" },
};

/** Reads the one literal that `source` is; integers may end in L where `python2` says so. */
export function parsePythonLiteral(source: string, python2: boolean): PythonValue {
  return new LiteralParser(source, python2).whole();
}

/** Deeper literals than this end in a report, not in an overflow of the stack. */
const deepest = 50;

class LiteralParser {
  #at = 0;
  #depth = 0;
  readonly #source: string;
  readonly #python2: boolean;

  constructor(source: string, python2: boolean) {
    this.#source = source;
    this.#python2 = python2;
  }

  whole(): PythonValue {
    if (this.#source.includes("\0")) throw new PythonSyntaxError("it has null characters");
    const value = this.#value();
    this.#match(blank);
    if (this.#at < this.#source.length) throw this.#unexpected();
    return value;
  }

  #value(): PythonValue {
    this.#match(blank);
    if (this.#source.startsWith("'''", this.#at) || this.#source.startsWith('"""', this.#at))
      throw this.#unexpected();
    const string = this.#match(text);
    if (string !== undefined) return { kind: "string", value: string[1] ?? string[2] ?? "" };
    const next = this.#source[this.#at];
    if (next === "(" || next === "[" || next === "{") return this.#nested(next);
    if (next === "-" || next === "+") return this.#signed(next);
    const name = /[A-Za-z_]/.test(next ?? "") ? this.#match(word)?.[0] : undefined;
    const constant =
      name !== undefined && Object.hasOwn(constants, name) ? constants[name] : undefined;
    if (constant !== undefined) return constant;
    return { kind: "number", value: this.#integer() };
  }

  #signed(sign: "-" | "+"): PythonValue {
    this.#at++;
    this.#match(blank);
    const value = this.#integer();
    return { kind: "number", value: sign === "-" ? -value : value };
  }

  #integer(): number {
    if (this.#python2) {
      const long = this.#match(python2Integer);
      if (long !== undefined) {
        this.#at = this.#source.indexOf("L", this.#at) + 1;
        return Number(long[0]);
      }
    }
    const digits = this.#match(integer);
    if (digits === undefined) throw this.#unexpected();
    return Number(digits[0].replaceAll("_", "").replace(/^0+$/, "0"));
  }

  #nested(open: "(" | "[" | "{"): PythonValue {
    if (++this.#depth > deepest) throw new PythonSyntaxError("it is nested too deeply");
    this.#at++;
    const value =
      open === "{" ? this.#dict() : open === "[" ? this.#items("]", "list") : this.#tuple();
    this.#depth--;
    return value;
  }

  #dict(): PythonValue {
    const entries = new Map<string, PythonValue>();
    while (!this.#takes("}")) {
      const key = this.#value();
      if (key.kind !== "string") throw new PythonSyntaxError("a key is no string");
      if (!this.#takes(":")) throw this.#unexpected();
      entries.set(key.value, this.#value());
      if (this.#takes(",")) continue;
      if (!this.#takes("}")) throw this.#unexpected();
      break;
    }
    return { kind: "dict", entries };
  }

  #items(close: ")" | "]", kind: "tuple" | "list"): PythonValue {
    const items: PythonValue[] = [];
    while (!this.#takes(close)) {
      items.push(this.#value());
      if (this.#takes(",")) continue;
      if (!this.#takes(close)) throw this.#unexpected();
      break;
    }
    return { kind, items };
  }

  /** Parentheses around one value without a comma are that value. */
  #tuple(): PythonValue {
    const begin = this.#at;
    const tuple = this.#items(")", "tuple");
    if (tuple.kind !== "tuple" || tuple.items.length !== 1) return tuple;
    const [only = tuple] = tuple.items;
    return /,(?:[ \t\f\r\n]|#[^\n]*)*\)$/.test(this.#source.slice(begin, this.#at)) ? tuple : only;
  }

  #takes(sign: string): boolean {
    this.#match(blank);
    if (this.#source[this.#at] !== sign) return false;
    this.#at++;
    return true;
  }

  #match(form: RegExp): RegExpExecArray | undefined {
    form.lastIndex = this.#at;
    const found = form.exec(this.#source);
    if (found === null) return undefined;
    this.#at = form.lastIndex;
    return found;
  }

  #unexpected(): PythonSyntaxError {
    const rest = this.#source.slice(this.#at, this.#at + 20);
    return new PythonSyntaxError(rest === "" ? "it ends too early" : `no literal: ${rest.trim()}`);
  }
}
