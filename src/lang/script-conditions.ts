/**
 * Conditions that JavaScript decides though they are traced. To JavaScript every object is true, and it asks none; but the text of a kernel's
 * body can be read:
 *
 *   ({ i, x, out }) => {
 *     if (i.lt(3)) { … }             i is a scalar of the kernel, so i.lt(3) is traced
 *     const sum = x.load().sum();    and so is sum, which is assigned once
 *     out.store(sum ? a : b);
 *   }
 *
 * Only what is certain is reported: names of the kernel's own scalars and arrays, and constants made of them by methods of tiles, where the text binds
 * the name once. What a text may not be certain of, such as names from elsewhere and values in lists, is left alone.
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { Elementwise, isDataObject, Scalar } from "./elementwise.ts";
import { Ref } from "./ref.ts";
import { bracketsOf, tokensOf } from "./script-tokens.ts";
import type { Token } from "./script-tokens.ts";
import { Tile } from "./tile.ts";

/** Where JavaScript asks, and what to write there. */
type Asking = "if" | "while" | "for" | "?" | "&&" | "||" | "!" | "===" | "!==";

const remedies: { readonly [A in Asking]: string } = {
  if: "write when(condition, () => { … })",
  while: "write whileLoop(carry, condition, body)",
  for: "write loop({ to }, (i) => { … }), or whileLoop",
  "?": "write condition.select(a, b), or when(condition, () => a, () => b)",
  "&&": "write a.and(b)",
  "||": "write a.or(b)",
  "!": "write condition.not(), or value.eq(0)",
  "===": "write a.eq(b)",
  "!==": "write a.ne(b)",
};

/** The body of a kernel. */
type Body = (argument: { readonly [name: string]: unknown }) => unknown;

/** A condition on a traced value, by its words. */
interface Finding {
  readonly asking: Asking;
  readonly text: string;
  /** Where it begins in the function's text. */
  readonly start: number;
}

/** What is known of a name: a scalar or a tile, or a window, which gives one by load. */
type Known = "data" | "ref";

const methodsOf = (prototype: object): readonly string[] =>
  Object.getOwnPropertyNames(prototype).filter((name) => name !== "constructor");
const givesData = new Set(
  [Elementwise, Scalar, Tile].flatMap(({ prototype }) => methodsOf(prototype)),
);
for (const name of ["sortWith", "toJSON"]) givesData.delete(name);
const loads = new Set(["load", "loadScalar"]);
const windows = new Set(["at", "transpose", "reshape", "peer"]);

/** Words behind which an expression begins. */
const beginnings = new Set([
  ...["(", ",", "=", "return", "=>", ";", "{", "}", "[", ":", "?", "&&", "||", "??", "!", "..."],
]);
/** Words that go on with the expression before them. */
const continuations = new Set([".", "?.", "[", "(", "++", "--"]);
/** What stands before brackets that are no parameters of a method. */
const statements = new Set(["if", "while", "for", "switch", "with", "catch"]);

class Script {
  readonly #tokens: readonly Token[];
  readonly #pairs: ReadonlyMap<number, number>;
  readonly #text: string;
  readonly #known = new Map<string, Known>();

  constructor(text: string, tokens: readonly Token[], pairs: ReadonlyMap<number, number>) {
    this.#text = text;
    this.#tokens = tokens;
    this.#pairs = pairs;
  }

  /** The names of the first parameter's pattern, by the properties they are; nothing of another form. */
  parameters(): ReadonlyMap<string, Token> {
    const names = new Map<string, Token>();
    const open = this.#tokens.findIndex(({ text }) => text === "(");
    const close = this.#pairs.get(open + 1);
    const isFirst = open >= 0 && open <= 2 && this.#word(open + 1) === "{";
    if (!isFirst || close === undefined) return names;
    for (let at = open + 2; at < close; at += 1) {
      const [property, sign, name] = [this.#tokens[at], this.#word(at + 1), this.#tokens[at + 2]];
      if (property?.kind !== "name") return names;
      if (sign === "," || at + 1 === close) names.set(property.text, property);
      else if (sign === ":" && name?.kind === "name") names.set(property.text, name);
      else return names;
      at += sign === ":" ? 3 : 1;
      if (at < close && this.#word(at) !== ",") return names;
    }
    return names;
  }

  /** Takes the names for known that the text binds once, and constants made of them. */
  learn(given: ReadonlyMap<string, Known>): void {
    const bound = this.#bindings();
    for (const [name, known] of given) if (bound.get(name) === 1) this.#known.set(name, known);
    for (const [at, { text }] of this.#tokens.entries()) {
      const name = this.#tokens[at + 1];
      if (text !== "const" || name?.kind !== "name" || this.#word(at + 2) !== "=") continue;
      const chain = this.#chain(at + 3);
      const ends = chain !== undefined && [";", "}"].includes(this.#word(chain.end));
      if (ends && bound.get(name.text) === 1) this.#known.set(name.text, chain.known);
    }
  }

  findings(): readonly Finding[] {
    return this.#tokens.flatMap(({ text }, at) => {
      if (text === "if" || text === "while" || text === "for") return this.#statement(text, at);
      return this.#expression(at);
    });
  }

  #word(at: number): string {
    return this.#tokens[at]?.text ?? "";
  }

  /** A traced expression that begins here: a name, and methods of tiles on it; where it ends. */
  #chain(at: number): { readonly end: number; readonly known: Known } | undefined {
    const token = this.#tokens[at];
    let known = token?.kind === "name" ? this.#known.get(token.text) : undefined;
    if (known === undefined) return undefined;
    let end = at + 1;
    while (this.#word(end) === "." && this.#word(end + 2) === "(") {
      const [method, close] = [this.#word(end + 1), this.#pairs.get(end + 2)];
      const isData = known === "data" ? givesData.has(method) : loads.has(method);
      if (close === undefined || !(isData || (known === "ref" && windows.has(method))))
        return undefined;
      if (isData) known = "data";
      end = close + 1;
    }
    return continuations.has(this.#word(end)) ? undefined : { end, known };
  }

  /** Whether the words from one place up to another are one traced scalar or tile. */
  #isTraced(from: number, to: number): boolean {
    const chain = this.#chain(from);
    return chain?.known === "data" && chain.end === to;
  }

  #statement(asking: "if" | "while" | "for", at: number): readonly Finding[] {
    const close = this.#pairs.get(at + 1);
    if (close === undefined || this.#word(at + 1) !== "(" || this.#word(at - 1) === ".") return [];
    let [from, to] = [at + 2, close];
    if (asking === "for") {
      const ends: number[] = [];
      for (let place = from; place < close; place += 1) {
        if (this.#word(place) === ";") ends.push(place);
        place = Math.max(place, this.#pairs.get(place) ?? place);
      }
      const [first, second] = ends;
      if (first === undefined || second === undefined) return [];
      [from, to] = [first + 1, second];
    }
    return this.#isTraced(from, to) ? [this.#finding(asking, at, close + 1)] : [];
  }

  #expression(at: number): readonly Finding[] {
    const chain = this.#chain(at);
    if (chain?.known !== "data" || !beginnings.has(this.#word(at - 1))) return [];
    const { end } = chain;
    const next = this.#word(end);
    if (this.#word(at - 1) === "!") return [this.#finding("!", at - 1, end)];
    if (next === "?" || next === "&&" || next === "||") return [this.#finding(next, at, end + 1)];
    const isNumber = this.#tokens[end + 1]?.kind === "number";
    if ((next === "===" || next === "!==") && isNumber) return [this.#finding(next, at, end + 2)];
    return [];
  }

  #finding(asking: Asking, from: number, to: number): Finding {
    const start = this.#tokens[from]?.start ?? 0;
    const last = this.#tokens[to - 1];
    const end = last === undefined ? start : last.start + last.text.length;
    return { asking, start, text: this.#text.slice(start, end).replaceAll(/\s+/g, " ") };
  }

  /** How often each name is bound or assigned, by whatever may do that. */
  #bindings(): ReadonlyMap<string, number> {
    const bound = new Map<string, number>();
    const bind = (from: number, to: number): void => {
      for (let at = from; at < to; at += 1) {
        const token = this.#tokens[at];
        if (token?.kind === "name") bound.set(token.text, (bound.get(token.text) ?? 0) + 1);
      }
    };
    for (const [at, { text, kind }] of this.#tokens.entries()) {
      const close = this.#pairs.get(at);
      const [before, next] = [this.#word(at - 1), this.#word(at + 1)];
      if (text === "(" && close !== undefined) {
        const isMethod = this.#word(close + 1) === "{" && !statements.has(before);
        if (isMethod || this.#word(close + 1) === "=>" || before === "catch") bind(at, close);
      } else if ((text === "{" || text === "[") && close !== undefined) {
        const isPattern = this.#word(close + 1) === "=" || /^(of|in)$/.test(this.#word(close + 1));
        if (isPattern) bind(at, close);
      } else if (kind === "name") {
        const isAssigned = /^(=>|=|[^=!<>]=|[*<>&|?]{2,3}=|\+\+|--|of|in)$/.test(next);
        const isDeclared = /^(const|let|var|function|class|\+\+|--)$/.test(before);
        if (isAssigned || isDeclared) bind(at, at + 1);
      }
    }
    return bound;
  }
}

/** What the text of a body asks of traced values; nothing where the text cannot be read. */
function findingsOf(
  text: string,
  argument: { readonly [name: string]: unknown },
): { readonly findings: readonly Finding[]; readonly first: Token | undefined } {
  const nothing = { findings: [], first: undefined };
  // Most bodies ask nothing at all.
  if (!/\b(?:if|while|for)\b|[?!]|&&|\|\||===/.test(text)) return nothing;
  const tokens = tokensOf(text);
  const pairs = tokens && bracketsOf(tokens);
  if (tokens === undefined || pairs === undefined) return nothing;
  const script = new Script(text, tokens, pairs);
  const parameters = script.parameters();
  const given = new Map<string, Known>();
  for (const [property, { text: name }] of parameters) {
    const value = Object.hasOwn(argument, property) ? argument[property] : undefined;
    if (isDataObject(value)) given.set(name, "data");
    else if (value instanceof Ref) given.set(name, "ref");
  }
  script.learn(given);
  const [first] = parameters.keys();
  return {
    findings: script.findings(),
    first: tokens.find(({ text: word }) => word === first),
  };
}

/** Where the body reads its first parameter: it is called with one that refuses to be read, so nothing else of it runs. */
function beginningOf(body: Body): Location | undefined {
  const places: Location[] = [];
  const refusing = new Proxy(
    {},
    {
      get: (): never => {
        places.push(captureLocation());
        throw new Error("only asks where the body is");
      },
    },
  );
  try {
    body(refusing);
  } catch {
    return places[0];
  }
  return undefined;
}

const lineOf = (text: string, at: number): number => text.slice(0, at).split("\n").length - 1;

/** What is refused before the body runs, which would not end, and behind it, where unused conditions are reported first. */
export class ScriptConditions {
  readonly #findings: readonly Finding[];
  readonly #first: Token | undefined;
  readonly #text: string;
  readonly #body: Body;
  readonly #location: Location;

  constructor(body: Body, argument: { readonly [name: string]: unknown }, location: Location) {
    this.#text = typeof body === "function" ? Function.prototype.toString.call(body) : "";
    this.#body = body;
    this.#location = location;
    const { findings, first } = findingsOf(this.#text, argument);
    this.#findings = findings;
    this.#first = first;
  }

  /** Refuses loops that JavaScript would never leave. */
  refuseEndless(): void {
    for (const finding of this.#findings)
      if (finding.asking === "while" || finding.asking === "for") this.#refuse(finding);
  }

  refuseAll(): void {
    for (const finding of this.#findings) this.#refuse(finding);
  }

  #refuse({ asking, text, start }: Finding): never {
    throw new TilewrightError({
      code: "TW1045",
      message: `JavaScript decides ${text} while the kernel is traced`,
      location: this.#placeOf(start),
      expected: "a function or method of the language, which the kernel decides by",
      found: `${asking} on a traced value, which to JavaScript is an object like any other`,
      remedy: remedies[asking],
    });
  }

  /** Line and column in the file, from where the body reads its first parameter; where that is not known, the kernel's. */
  #placeOf(start: number): Location {
    const position = this.#first && beginningOf(this.#body)?.position;
    if (position === undefined || this.#first === undefined) return this.#location;
    const line = position.line + lineOf(this.#text, start) - lineOf(this.#text, this.#first.start);
    const column = start - this.#text.lastIndexOf("\n", start);
    return { position: { file: position.file, line, column } };
  }
}
