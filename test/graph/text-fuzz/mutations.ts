/**
 * Changes of program text, by its tokens and by its structure. A changed text is almost right: most changes go through all of a program, so
 * that it says the same wrong thing everywhere and gets beyond the parser.
 */
import type { Random } from "../../../src/support/random.ts";
import {
  attributeNames,
  elementNames,
  letters,
  nearType,
  numbers,
  opNames,
  randomType,
  strings,
  words,
} from "./pools.ts";

type Change = (text: string, random: Random, others: readonly string[]) => string;

interface Span {
  readonly start: number;
  readonly end: number;
}

function spansOf(text: string, pattern: RegExp): readonly Span[] {
  return Array.from(text.matchAll(pattern), (match) => ({
    start: match.index,
    end: match.index + match[0].length,
  }));
}

const textOf = (text: string, { start, end }: Span): string => text.slice(start, end);

function replaced(text: string, { start, end }: Span, by: string): string {
  return text.slice(0, start) + by + text.slice(end);
}

/** Changes one of the places that a pattern finds, or, where they read alike, all of them. */
function atPattern(
  pattern: RegExp,
  change: (found: string, random: Random, text: string) => string,
): Change {
  return (text, random) => {
    const spans = spansOf(text, pattern);
    if (spans.length === 0) return text;
    const span = random.pick(spans);
    const found = textOf(text, span);
    const by = change(found, random, text);
    return random.below(2) === 0 ? replaced(text, span, by) : text.replaceAll(found, () => by);
  };
}

const token = /"(?:[^"\\]|\\.)*"|[%@#!^]?[\w$.-]+|->|::|[^\s\w]/g;
const type = /tensor<(?:[^<>]|<[^<>]*>)*>|tuple<[^<>]*>|!stablehlo\.token/g;
const value = /%[\w$.-]+(?:#\d+)?/g;
const closing: { readonly [open: string]: string } = { "{": "}", "(": ")", "[": "]", "<": ">" };

/** From an opening bracket to behind its partner. */
function bracketAt(text: string, start: number): Span | undefined {
  const open = text.charAt(start);
  const close = closing[open] ?? "";
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const letter = text.charAt(at);
    if (letter === open) depth++;
    else if (letter === close && text.charAt(at - 1) !== "-") depth--;
    if (depth === 0) return { start, end: at + 1 };
  }
  return undefined;
}

function randomBracket(text: string, random: Random, open: string): Span | undefined {
  const starts = spansOf(text, new RegExp(`\\${open}`, "g"));
  return starts.length === 0 ? undefined : bracketAt(text, random.pick(starts).start);
}

/** The pieces between commas that no bracket encloses. */
function pieces(list: string): readonly string[] {
  const found = [""];
  let depth = 0;
  for (const letter of list) {
    if ("[<({".includes(letter)) depth++;
    if ("]>)}".includes(letter)) depth--;
    if (letter === "," && depth === 0) found.push("");
    else found[found.length - 1] += letter;
  }
  return found;
}

/** Changes the items of a list in brackets. */
function inList(
  open: string,
  change: (items: string[], random: Random, text: string) => void,
): Change {
  return (text, random) => {
    const span = randomBracket(text, random, open);
    if (span === undefined) return text;
    const items = [...pieces(text.slice(span.start + 1, span.end - 1))];
    change(items, random, text);
    return replaced(text, span, `${open}${items.join(",")}${closing[open]}`);
  };
}

function insertAt<T>(items: T[], random: Random, item: T): void {
  items.splice(random.below(items.length + 1), 0, item);
}

function changeItems(items: string[], random: Random, text: string): void {
  const at = random.below(items.length);
  const own = items[at] ?? "";
  const changes: readonly (() => void)[] = [
    () => items.splice(at, 1),
    () => insertAt(items, random, own),
    () => items.reverse(),
    () => insertAt(items, random, random.pick(pieces(text.slice(0, 4000)))),
    () => items.splice(0),
  ];
  random.pick(changes)();
}

const attributeValues: readonly string[] = [
  "1 : i64",
  "-1 : i64",
  "true",
  "unit",
  "[]",
  "{}",
  "[[1, 2], [3]]",
  "@main",
  "dense<[0, 1]> : tensor<2xi64>",
  "dense<0> : tensor<999999999999xi64>",
  "dense<0> : tensor<65536x65536xi64>",
  "dense<[[0], [1]]> : tensor<2x1xi64>",
  "dense<1> : tensor<?xi64>",
  "array<i64: 0, 1>",
  "array<i64>",
  "array<i64: 99999999999, -7>",
  "array<i1: true, false>",
  "#stablehlo<comparison_direction LT>",
  "#stablehlo.channel_handle<handle = 1, type = 0>",
  "#stablehlo.gather<offset_dims = [-1], index_vector_dim = 9>",
  "#stablehlo.scatter<update_window_dims = [0]>",
  "#stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>",
  "#stablehlo.conv<raw input_batch_dimension = 9>",
  "#stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>",
  "#undefined",
  "tensor<2xf32>",
  "1.0 : f32",
  '"text"',
  "affine_map<(d0) -> (d0)>",
  "dense_resource<nothing> : tensor<2xf32>",
];

const changeAttributes: Change = (text, random) => {
  const spans = spansOf(text, /<?\{/g).filter(
    ({ start }) => !/(?:\)|do|cond|module\S*)\s*$/.test(text.slice(Math.max(0, start - 20), start)),
  );
  const span = spans.length === 0 ? undefined : bracketAt(text, random.pick(spans).end - 1);
  if (span === undefined || /[\n^]/.test(textOf(text, span))) {
    const entry = `${random.pick(attributeNames)} = ${random.pick(attributeValues)}`;
    return text.replace(/ : (?=[(t])/g, (found) =>
      random.below(4) === 0 ? ` {${entry}}${found}` : found,
    );
  }
  const items = pieces(text.slice(span.start + 1, span.end - 1)).filter(
    (each) => each.trim() !== "",
  );
  const at = random.below(items.length);
  const [name = "", ...rest] = (items[at] ?? "").split("=");
  const changes: readonly (() => readonly string[])[] = [
    () => items.filter((_, i) => i !== at),
    () => [...items, ...items.slice(at, at + 1)],
    () => [...items, `${random.pick(attributeNames)} = ${random.pick(attributeValues)}`],
    () => items.map((each, i) => (i === at ? `${name}= ${random.pick(attributeValues)}` : each)),
    () =>
      items.map((each, i) =>
        i === at ? `${random.pick(attributeNames)} = ${rest.join("=")}` : each,
      ),
    () => [],
  ];
  return replaced(text, span, `{${random.pick(changes)().join(", ")}}`);
};

const swapOperands: Change = (text, random) => {
  const spans = spansOf(text, value);
  if (spans.length < 2) return text;
  const one = random.pick(spans);
  const other = random.pick(spans);
  return replaced(text, one, textOf(text, other));
};

const changeRegion: Change = (text, random) => {
  const labels = spansOf(text, /\^\w+(\([^)]*\))?:/g);
  const bodies = spansOf(text, /\{\s*\n/g);
  const changes: readonly (() => string)[] = [
    () => (labels.length === 0 ? text : replaced(text, random.pick(labels), "")),
    () =>
      labels.length === 0
        ? text
        : replaced(
            text,
            random.pick(labels),
            `^bb0(%q: ${randomType(random)}, %r: ${randomType(random)}):`,
          ),
    () => {
      const body = bodies.length === 0 ? undefined : bracketAt(text, random.pick(bodies).start);
      return body === undefined
        ? text
        : replaced(text, body, random.pick(["{}", "{ stablehlo.return }", "{ return }"]));
    },
    () => {
      const region = randomBracket(text, random, "{");
      return region === undefined
        ? text
        : replaced(text, region, `${textOf(text, region)}, ${textOf(text, region)}`);
    },
    () =>
      text.replace(/(stablehlo\.return|return) [^\n]*/g, (found, word: string) =>
        random.below(3) === 0 ? word : found,
      ),
    () => text.replace(/(stablehlo\.return|return) /, () => "^bb1:\n return "),
  ];
  return random.pick(changes)();
};

const changeLines: Change = (text, random, others) => {
  const lines = text.split("\n");
  const at = random.below(lines.length);
  const from = random.pick(others).split("\n");
  const changes: readonly (() => void)[] = [
    () => lines.splice(at, 1),
    () => lines.splice(at, 0, lines[at] ?? ""),
    () => lines.splice(random.below(lines.length), 0, ...lines.splice(at, 1)),
    () => lines.splice(at, 0, random.pick(from)),
    () => lines.splice(at, 0, ...from.slice(random.below(from.length)).slice(0, 4)),
  ];
  random.pick(changes)();
  return lines.join("\n");
};

const changeFunctions: Change = (text, random) => {
  const names = spansOf(text, /@[\w$]+/g).map((span) => textOf(text, span));
  const name = names.length === 0 ? "@main" : random.pick(names);
  const chain = random.pick([3, 30, 300]);
  const changes: readonly (() => string)[] = [
    () => text.replace(/(func\.)?call @[\w$]+/g, `call ${name}`),
    () => text.replaceAll(name, random.pick([...names, "@missing", '@"\\00"', "@main"])),
    () =>
      text.replace(
        /\n(\s*)(return|stablehlo\.return)/,
        (found) => `\n call @main() : () -> ()${found}`,
      ),
    () => `${text}\n${text}`,
    () => `module {\n${text}\n}`,
    // Each calls the next twice: 2^chain calls when they are written out.
    () =>
      `${text}\n${Array.from({ length: chain }, (_, i) => `func.func @twice${i}() { ${i + 1 < chain ? `call @twice${i + 1}() : () -> () call @twice${i + 1}() : () -> () ` : ""}return }`).join("\n")}`,
  ];
  return random.pick(changes)();
};

function around(open: string, close: string, inner: string, depth: number): string {
  return open.repeat(depth) + inner + close.repeat(depth);
}

const nest: Change = (text, random) => {
  const depth = random.pick([3, 40, 500, 3000, 60_000]);
  const small = Math.min(depth, 3000);
  const changes: readonly Change[] = [
    atPattern(type, (found) => around("tuple<", ">", found, depth)),
    (each) => each.replace(/\{/, () => `{deep = ${around("[", "]", "", depth)}, `),
    (each) => each.replace(/\{/, () => `{deep = ${around("{a = ", "}", "1", depth)}, `),
    (each) => each.replace(/\n/, () => ` loc(${around("callsite(", ' at "f")', '"x"', depth)})\n`),
    (each) => each.replace(/dense<[^>]*>/, () => `dense<${around("[", "]", "1", depth)}>`),
    (each) =>
      each.replace(
        /\n(\s*)return/,
        (found) =>
          `\n%deep = stablehlo.constant dense<true> : tensor<i1>\n${around('"stablehlo.if"(%deep) ({ ', " stablehlo.return }, { stablehlo.return }) : (tensor<i1>) -> ()", "", small)}${found}`,
      ),
    (each) =>
      `#deep0 = [1, 2]\n${Array.from({ length: Math.min(depth, 60) }, (_, i) => `#deep${i + 1} = [#deep${i}, #deep${i}]`).join("\n")}\n${each.replace(/\{/, () => `{deep = #deep${Math.min(depth, 60)}, `)}`,
    (each) =>
      `#loc9 = loc(#loc9)\n#cycle = [#cycle]\n!cycle = tuple<!cycle>\n${each.replace(type, random.pick(["!cycle", "tensor<f32> loc(#loc9)"])).replace(/\{/, "{c = #cycle, ")}`,
    (each) => {
      const line = /\n\s*(%[\w]+) = (stablehlo\.\w+) (%[\w]+)( : tensor<[^>]*>)\n/.exec(each);
      if (line === null) return each;
      const [, result = "", op = "", operand = "", suffix = ""] = line;
      const chain = Array.from(
        { length: small },
        (_, i) => `%chain${i} = ${op} ${i === 0 ? operand : `%chain${i - 1}`}${suffix}`,
      );
      return each.replace(
        line[0],
        () => `\n${chain.join("\n")}\n${result} = ${op} %chain${small - 1}${suffix}\n`,
      );
    },
  ];
  return random.pick(changes)(text, random, []);
};

const changeConstant: Change = atPattern(/dense<[^>]*>/g, (found, random) =>
  random.pick([
    "dense<>",
    "dense<[]>",
    "dense<[[]]>",
    "dense<[1, 2, 3]>",
    "dense<[[1, 2], [3]]>",
    "dense<1>",
    "dense<-1.5e300>",
    "dense<(1.0, 2.0)>",
    "dense<[(1, 2), (3, 4)]>",
    "dense<true>",
    'dense<"0x">',
    'dense<"0x0">',
    'dense<"0x00000000">',
    'dense<"0xGG">',
    'dense<"0x0000803F00000040">',
    "dense<0xFFFFFFFFFFFFFFFFFF>",
    "dense<0x7F800001>",
    'dense<"text">',
    "dense<[1, , 2]>",
    "dense<1e999999999>",
    found.replace(/\d+/, () => random.pick(numbers)),
    found.replace(">", ", 1>"),
    found.replace("]", ""),
  ]),
);

const byToken: readonly Change[] = [
  atPattern(token, () => ""),
  atPattern(token, (found) => `${found} ${found}`),
  atPattern(token, (_, random, text) => textOf(text, random.pick(spansOf(text, token)))),
  atPattern(/-?\b\d+\b/g, (_, random) => random.pick(numbers)),
  atPattern(/-?\b\d+\b/g, (_, random) => String(random.below(5))),
  atPattern(/"(?:[^"\\]|\\.)*"/g, (_, random) => random.pick(strings)),
  atPattern(/\b[A-Z_]{2,}\b|\b[a-z_]{3,}\b/g, (_, random) => random.pick(words)),
  (text, random) => {
    const at = random.below(text.length);
    return text.slice(0, at) + random.pick(letters) + text.slice(at + random.below(2));
  },
  (text, random) => text.slice(0, random.below(text.length)),
];

const byStructure: readonly Change[] = [
  atPattern(type, (found, random) => nearType(found, random)),
  atPattern(type, (found, random) => nearType(found, random)),
  atPattern(/\b(?:[bi]?u?[fi]\d+|f8E\w+|complex<f\d+>)(?=>)/g, (_, random) =>
    random.pick(elementNames),
  ),
  atPattern(/\b\d+(?=x)/g, (_, random) =>
    random.pick(["0", "1", "2", "3", "5", "?", "1000000", "1000000000000"]),
  ),
  changeAttributes,
  changeAttributes,
  swapOperands,
  swapOperands,
  inList("(", changeItems),
  inList("[", changeItems),
  inList("<", changeItems),
  changeRegion,
  atPattern(/\b(?:stablehlo|chlo|check|sdy)\.[\w-]+/g, (_, random) => random.pick(opNames)),
  atPattern(/\b(?:stablehlo|chlo)\.[\w-]+/g, (found) => found.slice(0, -1)),
  changeLines,
  changeLines,
  changeFunctions,
  changeConstant,
  nest,
];

/** A text of one to three changes; `others` are those that lines are taken from. */
export function changed(text: string, random: Random, others: readonly string[]): string {
  let result = text;
  for (let count = random.pick([1, 1, 1, 2, 2, 3]); count > 0; count--) {
    const change = random.pick(random.below(4) === 0 ? byToken : byStructure);
    result = change(result, random, others);
  }
  return result;
}
