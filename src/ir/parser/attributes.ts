/** Reads attribute values, each by the form that the op table gives it. */
import { attributeSlot } from "../schema.ts";
import type {
  AttributeForm,
  AttributeForms,
  AttributeSchema,
  AttributeValue,
  Literal,
} from "../schema.ts";
import type { Cursor } from "./cursor.ts";
import { parseDType, parseIntegers, parseSize, parseSizes } from "./types.ts";
import type { Dimensions } from "./types.ts";

const formParsers: {
  readonly [F in AttributeForm]: (cursor: Cursor, dimensions: Dimensions) => AttributeForms[F];
} = {
  integer: (cursor) => cursor.expectInteger(),
  integers: parseIntegers,
  text: (cursor) => cursor.expectString(),
  texts: (cursor) => cursor.list("[", "]", () => cursor.expectString()),
  flag: parseFlag,
  literal: parseLiteral,
  dtype: parseDType,
  size: parseSize,
  sizes: parseSizes,
};

export function parseAttribute(
  cursor: Cursor,
  schema: AttributeSchema,
  dimensions: Dimensions,
): AttributeValue {
  const { form, words } = attributeSlot(schema);
  return form === undefined
    ? cursor.expectWord(words, "one of")
    : formParsers[form](cursor, dimensions);
}

function parseFlag(cursor: Cursor): boolean {
  return cursor.expectWord(["true", "false"], "one of") === "true";
}

function parseLiteral(cursor: Cursor): Literal {
  const { kind, text } = cursor.peek();
  if (kind === "word") return parseWordLiteral(cursor);
  if (kind !== "number") return cursor.unexpected("a number, true or false");
  if (text.endsWith("n") && !/^-?\d+n$/.test(text)) return cursor.unexpected("an integer before n");
  cursor.take();
  if (text === "-inf") return -Infinity;
  return text.endsWith("n") ? BigInt(text.slice(0, -1)) : Number(text);
}

const literalWords = { true: true, false: false, nan: NaN, inf: Infinity } as const;

function parseWordLiteral(cursor: Cursor): Literal {
  const words = Object.keys(literalWords) as (keyof typeof literalWords)[];
  return literalWords[cursor.expectWord(words, "a number or one of")];
}
