/**
 * Words and lone elements. A word of a tile holds one element or several side by side; arithmetic that
 * PTX has no packed form for takes a word apart, computes on lone elements, and packs the results:
 *
 *   i8 word  d c b a  --prmt-->  a, b, c, d   each a b32, extended by its sign
 *   f16 word b a      --mov--->  a, b         each a b16
 *
 * Lone narrow integers are always extended, so that 32-bit instructions read them as they are; what
 * packing takes of an element is its low bits alone.
 */
import type { DType } from "../../formats/dtype.ts";
import { registersPerLane } from "../../layout/algebra/register-layout.ts";
import type { Code } from "../function-builder.ts";
import type { Register } from "../module.ts";
import { braces, integer } from "../operands.ts";
import type { TileValue } from "./values.ts";
import { slotsOf, wordClass } from "./values.ts";

/** The elements of a word, the first `used` of them where the others are padding. */
export function unpackWord(
  code: Code,
  dtype: DType,
  word: Register,
  used: number = slotsOf(dtype),
): Register[] {
  if (slotsOf(dtype) === 1) return [word];
  if (dtype.bits === 16) return unpackHalves(code, word).slice(0, used);
  const places = Array.from({ length: used }, (_, place) => place);
  if (dtype.bits === 8) return places.map((place) => byteOf(code, dtype, word, place));
  const extract = dtype.kind === "signed" ? "bfe.s32" : "bfe.u32";
  return places.map((place) => code.make("b32", extract, word, integer(4 * place), integer(4)));
}

/** The low and the high 16 bits. */
export function unpackHalves(code: Code, word: Register): readonly [Register, Register] {
  const low = code.register("b16");
  const high = code.register("b16");
  code.emit("mov.b32", [braces([low, high]), word]);
  return [low, high];
}

/** Selectors of `prmt` are bytes of two words, 4 and up the second's; with 8 added, copies of a sign. */
function byteOf(code: Code, dtype: DType, word: Register, place: number): Register {
  const extension = dtype.kind === "signed" ? 8 + place : 4;
  return code.make("b32", "prmt.b32", word, integer(0), integer(0x1110 * extension + place));
}

/** The word of these elements, one a slot; missing ones are padding. */
export function packWord(
  code: Code,
  dtype: DType,
  elements: readonly (Register | undefined)[],
): Register {
  const filler = elements.find((element) => element !== undefined);
  if (filler === undefined) return paddingWord(code, dtype);
  const used = elements.findLastIndex((element) => element !== undefined) + 1;
  const filled = elements.slice(0, used).map((element) => element ?? filler);
  const [first = filler, second = filler] = filled;
  if (slotsOf(dtype) === 1) return first;
  if (dtype.bits === 16) return packHalves(code, first, second);
  return dtype.bits === 8 ? packBytes(code, first, filled) : packNibbles(code, first, filled);
}

function paddingWord(code: Code, dtype: DType): Register {
  const type = wordClass(dtype);
  return code.make(type, `mov.${type}`, integer(0));
}

export function packHalves(code: Code, low: Register, high: Register): Register {
  return code.make("b32", "mov.b32", braces([low, high]));
}

function packBytes(code: Code, first: Register, [, ...others]: readonly Register[]): Register {
  const [second, third, fourth] = others;
  const join = (low: Register, high: Register | undefined, selector: number): Register =>
    high === undefined ? low : code.make("b32", "prmt.b32", low, high, integer(selector));
  const low = join(first, second, 0x5140);
  return third === undefined ? low : join(low, join(third, fourth, 0x5140), 0x5410);
}

function packNibbles(code: Code, first: Register, [, ...others]: readonly Register[]): Register {
  return others.reduce(
    (word, element, index) =>
      code.make("b32", "bfi.b32", element, word, integer(4 * index + 4), integer(4)),
    first,
  );
}

/** The word that holds the element in every slot. */
export function splatWord(code: Code, dtype: DType, element: Register): Register {
  return packWord(
    code,
    dtype,
    Array.from({ length: slotsOf(dtype) }, () => element),
  );
}

/** How many elements the words of a tile hold, other than trailing padding. */
export function elementCount({ layout, shape }: Pick<TileValue, "layout" | "shape">): number {
  return registersPerLane(layout, shape);
}

/** The elements of a tile, one for each register of its layout; one for a splat. */
export function tileElements({ code }: { readonly code: Code }, tile: TileValue): Register[] {
  const { dtype, words } = tile;
  const slots = slotsOf(dtype);
  const count = elementCount(tile);
  return words.flatMap((word, index) =>
    unpackWord(code, dtype, word, Math.min(slots, count - index * slots)),
  );
}

/** A tile of these elements, one for each register of its layout; undefined ones are padding. */
export function tileFromElements(
  { code }: { readonly code: Code },
  { dtype, shape, layout }: Pick<TileValue, "dtype" | "shape" | "layout">,
  elements: readonly (Register | undefined)[],
): TileValue {
  return { kind: "tile", dtype, shape, layout, words: packElements(code, dtype, layout, elements) };
}

function packElements(
  code: Code,
  dtype: DType,
  layout: TileValue["layout"],
  elements: readonly (Register | undefined)[],
): readonly Register[] {
  const [first] = elements;
  if (layout.kind === "splat" && first !== undefined) return [splatWord(code, dtype, first)];
  const slots = slotsOf(dtype);
  const words: Register[] = [];
  for (let start = 0; start < elements.length; start += slots)
    words.push(packWord(code, dtype, elements.slice(start, start + slots)));
  return words;
}
