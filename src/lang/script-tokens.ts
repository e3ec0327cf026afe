/**
 * The words of a function's own text, as JavaScript has them: names, numbers and operators, without comments and without what is in strings.
 * Where the text cannot be told apart for certain, as at a slash that may begin an expression, there is no list.
 */

/** A word, and where it begins. */
export interface Token {
  readonly text: string;
  readonly kind: "name" | "number" | "string" | "sign";
  readonly start: number;
}

const patterns: readonly (readonly [Token["kind"] | "nothing", RegExp])[] = [
  ["nothing", /\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\//y],
  ["string", /"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*'|`(?:[^`\\$]|\\[\s\S]|\$(?!\{))*`/y],
  ["name", /[\p{ID_Start}$_#][\p{ID_Continue}$\u200c\u200d]*/uy],
  ["number", /(?:0[xXbBoO][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)n?/y],
  [
    "sign",
    />>>=|\.\.\.|===|!==|\*\*=|<<=|>>=|>>>|&&=|\|\|=|\?\?=|=>|==|!=|<=|>=|&&|\|\||\?\?|\?\.|\+\+|--|\+=|-=|\*=|%=|&=|\|=|\^=|<<|>>|\*\*|[{}()[\];,<>+\-*%&|^!~?:=.@]/y,
  ],
];

/** Words behind which an expression begins, so that a slash there begins one, too. */
const keywords = /^(?:return|typeof|case|in|of|do|else|void|delete|throw|new|yield|await)$/;

/** Whether a slash divides: behind a value, and with no other on its line, which would make an expression of both. */
function isDivision(text: string, start: number, before: Token | undefined): boolean {
  if (text[start] !== "/" || before === undefined) return false;
  const isValue =
    before.kind === "number" ||
    (before.kind === "name" ? !keywords.test(before.text) : /^[)\]]$/.test(before.text));
  const [rest = ""] = text.slice(start + 1).split("\n", 1);
  return isValue && !rest.replace(/\/\/.*$/, "").includes("/");
}

/** The words of a text, or undefined where they are not certain. */
export function tokensOf(text: string): readonly Token[] | undefined {
  const tokens: Token[] = [];
  let start = 0;
  while (start < text.length) {
    const found = patterns
      .map(([kind, pattern]) => {
        pattern.lastIndex = start;
        return [kind, pattern.exec(text)?.[0] ?? ""] as const;
      })
      .find(([, word]) => word !== "");
    if (found === undefined) {
      if (!isDivision(text, start, tokens.at(-1))) return undefined;
      tokens.push({ text: "/", kind: "sign", start });
      start += 1;
      continue;
    }
    const [kind, word] = found;
    if (kind !== "nothing") tokens.push({ text: word, kind, start });
    start += word.length;
  }
  return tokens;
}

/** For each bracket, where its other end stands; undefined where they do not pair. */
export function bracketsOf(tokens: readonly Token[]): ReadonlyMap<number, number> | undefined {
  const closing: { readonly [opening: string]: string } = { "(": ")", "[": "]", "{": "}" };
  const open: number[] = [];
  const pairs = new Map<number, number>();
  for (const [index, { text, kind }] of tokens.entries()) {
    if (kind !== "sign") continue;
    if (text in closing) open.push(index);
    else if (text === ")" || text === "]" || text === "}") {
      const first = open.pop();
      if (first === undefined || closing[tokens[first]?.text ?? ""] !== text) return undefined;
      pairs.set(first, index);
      pairs.set(index, first);
    }
  }
  return open.length === 0 ? pairs : undefined;
}
