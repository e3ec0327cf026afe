/**
 * Reads sizes, number formats and types.
 *
 *   size := term {("+" | "-") term}      term := factor {"*" factor}
 *   factor := integer | dimension | ("ceildiv" | "floordiv") "(" size "," integer ")"
 *   type := format | "tile" "<" format "," shape ["," layout] ">" | …     (see `../types.ts`)
 *   layout := "splat" | name | string
 */
import { dtypeNames, dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { addSizes, ceilDivSize, floorDivSize, multiplySizes } from "../size.ts";
import type { Dimension, Size } from "../size.ts";
import {
  barrierType,
  inflightType,
  memorySpaces,
  refType,
  scalarType,
  semaphoreType,
  tileType,
  withLayout,
} from "../types.ts";
import type { SpreadType, Type, TypeKind } from "../types.ts";
import type { Cursor } from "./cursor.ts";

export type Dimensions = ReadonlyMap<string, Dimension>;

/** What types and sizes may name. */
export interface Names {
  readonly dimensions: Dimensions;
  /** Register layouts by their names in the header. */
  readonly layouts: ReadonlyMap<string, string>;
}

export function parseDType(cursor: Cursor): DType {
  return dtypes[cursor.expectWord(dtypeNames, "a number format")];
}

export function parseSize(cursor: Cursor, dimensions: Dimensions): Size {
  const terms = [parseTerm(cursor, dimensions)];
  for (;;) {
    if (cursor.accept("+")) terms.push(parseTerm(cursor, dimensions));
    else if (cursor.accept("-")) terms.push(multiplySizes(-1, parseTerm(cursor, dimensions)));
    else return addSizes(...terms);
  }
}

function parseTerm(cursor: Cursor, dimensions: Dimensions): Size {
  const factors = [parseFactor(cursor, dimensions)];
  while (cursor.accept("*")) factors.push(parseFactor(cursor, dimensions));
  return multiplySizes(...factors);
}

function parseFactor(cursor: Cursor, dimensions: Dimensions): Size {
  const token = cursor.peek();
  if (token.kind !== "word") return cursor.expectInteger("a size");
  cursor.take();
  const divide = { ceildiv: ceilDivSize, floordiv: floorDivSize }[token.text];
  if (divide !== undefined && cursor.accept("(")) {
    const of = parseSize(cursor, dimensions);
    cursor.expect(",");
    const by = parsePositive(cursor);
    cursor.expect(")");
    return divide(of, by);
  }
  return (
    dimensions.get(token.text) ??
    cursor.fail(
      ...(["TW2507", token, `the kernel has no dimension ${token.text}`] as const),
      [...dimensions.keys()].join(", ") || "a number: the kernel has no dimensions",
    )
  );
}

function parsePositive(cursor: Cursor): number {
  if (cursor.peek().text === "0" || cursor.peek().text.startsWith("-"))
    return cursor.unexpected("a positive integer");
  return cursor.expectInteger("a positive integer");
}

export function parseSizes(cursor: Cursor, dimensions: Dimensions): readonly Size[] {
  return cursor.list("[", "]", () => parseSize(cursor, dimensions));
}

export function parseIntegers(cursor: Cursor): readonly number[] {
  return cursor.list("[", "]", () => cursor.expectInteger());
}

/** What stands between the angle brackets of each type; a scalar has none. */
const typeParsers: {
  readonly [K in Exclude<TypeKind, "scalar">]: (cursor: Cursor, names: Names) => Type;
} = {
  tile: (cursor, names) => laidOut(cursor, names, tileType(...parseFormatAndShape(cursor))),
  inflight: (cursor, names) => laidOut(cursor, names, inflightType(...parseFormatAndShape(cursor))),
  ref: (cursor, { dimensions }) => {
    const space = cursor.expectWord(memorySpaces, "a memory space");
    cursor.expect(",");
    const dtype = parseDType(cursor);
    cursor.expect(",");
    return refType(space, dtype, parseSizes(cursor, dimensions));
  },
  barrier: (cursor) => {
    const count = cursor.expectInteger();
    cursor.expect(",");
    cursor.expect("arrivals");
    cursor.expect("=");
    return barrierType(count, cursor.expectInteger());
  },
  semaphore: (cursor, { dimensions }) => semaphoreType(parseSizes(cursor, dimensions)),
};

/** The type with the layout that follows, where one does: a name of the header, or the text itself. */
function laidOut<T extends SpreadType>(cursor: Cursor, { layouts }: Names, type: T): T {
  if (!cursor.accept(",")) return type;
  if (cursor.peek().kind === "string") return withLayout(type, cursor.expectString("a layout"));
  const token = cursor.expectKind("word", "the name of a layout");
  const layout = token.text === "splat" ? token.text : layouts.get(token.text);
  if (layout !== undefined) return withLayout(type, layout);
  return cursor.fail(
    ...(["TW2510", token, `the kernel has no layout ${token.text}`] as const),
    ["splat", ...layouts.keys()].join(", "),
  );
}

function parseFormatAndShape(cursor: Cursor): [DType, readonly number[]] {
  const dtype = parseDType(cursor);
  cursor.expect(",");
  return [dtype, parseIntegers(cursor)];
}

const typeWords = Object.keys(typeParsers) as (keyof typeof typeParsers)[];
const firstWords = [...typeWords, ...dtypeNames];

export function parseType(cursor: Cursor, names: Names): Type {
  const word = cursor.expectWord(firstWords, "a type");
  const kind = typeWords.find((candidate) => candidate === word);
  if (kind === undefined) return scalarType(dtypes[word as keyof typeof dtypes]);
  cursor.expect("<");
  const type = typeParsers[kind](cursor, names);
  cursor.expect(">");
  return type;
}
