/**
 * The bits of elements as elements of another width. A lane that holds a wide element holds its parts in the same word, or in the two
 * halves of a word of 64 bits, so that words are only named otherwise; where the layout has other places for them, parts move between words.
 *
 *   i32 in 2 registers       as u8 in 8             the same two words
 *   f64 in 1                 as f32 in 2            mov.b64 {low, high}, word
 */
import type { DType } from "../../../formats/dtype.ts";
import type { Op } from "../../../ir/node.ts";
import { registersByElement } from "../../../layout/access/register-sources.ts";
import { firstThreadElements, padding } from "../../../layout/algebra/element-maps.ts";
import type { Code } from "../../function-builder.ts";
import type { Register } from "../../module.ts";
import { braces } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { slotsOf } from "../values.ts";
import type { TileValue } from "../values.ts";
import { gatherWords, resultTile } from "./rearrange.ts";
import type { WordPart } from "./repack.ts";

export function bitcastWidth(op: Op<"bitcast_width">, context: EmitContext): void {
  const tile = context.tile(op.operands.source);
  const [result] = op.results;
  const type = resultTile(result);
  const words =
    tile.dtype.bits > type.dtype.bits ? split(context, tile, type) : join(context, tile, type);
  context.define(result, { kind: "tile", ...type, words });
}

type Place = Pick<TileValue, "dtype" | "shape" | "layout">;

/** The element at each register of a layout; undefined for padding. */
function elementsOf({ layout, shape }: Place): readonly (number | undefined)[] {
  return Array.from(firstThreadElements(layout, shape), (element) =>
    element === padding ? undefined : element,
  );
}

/** Words of 32 bits. */
function singleWords(code: Code, { dtype, words }: TileValue): readonly Register[] {
  if (dtype.bits < 64) return words;
  return words.flatMap((word) => {
    const [low, high] = [code.register("b32"), code.register("b32")];
    code.emit("mov.b64", [braces([low, high]), word]);
    return [low, high];
  });
}

/** A part of a word by the number of a narrow element among all registers. */
function partAt(words: readonly Register[], dtype: DType, number: number): WordPart {
  const slots = slotsOf(dtype);
  const word = words[Math.floor(number / slots)];
  if (word === undefined) throw new Error(`no word for element ${number}`);
  return { word, part: number % slots };
}

function split(context: EmitContext, tile: TileValue, narrow: Place): readonly Register[] {
  const parts = tile.dtype.bits / narrow.dtype.bits;
  const words = singleWords(context.code, tile);
  const registers = registersByElement(tile.layout, tile.shape);
  const found = elementsOf(narrow).map((element) => {
    if (element === undefined) return undefined;
    const register = registers.get(Math.floor(element / parts));
    if (register === undefined) throw new Error(`element ${element} is not in its lane`);
    return partAt(words, narrow.dtype, register * parts + (element % parts));
  });
  return gatherWords(context, narrow.dtype.bits, slotsOf(narrow.dtype), found);
}

function join(context: EmitContext, tile: TileValue, wide: Place): readonly Register[] {
  const { code } = context;
  const parts = wide.dtype.bits / tile.dtype.bits;
  const registers = registersByElement(tile.layout, tile.shape);
  const found = elementsOf(wide).flatMap((element) =>
    Array.from({ length: parts }, (_, part) => {
      const register = element === undefined ? undefined : registers.get(element * parts + part);
      return register === undefined ? undefined : partAt(tile.words, tile.dtype, register);
    }),
  );
  const words = gatherWords(context, tile.dtype.bits, slotsOf(tile.dtype), found);
  if (wide.dtype.bits < 64) return words;
  return Array.from({ length: words.length / 2 }, (_, index) =>
    code.make("b64", "mov.b64", braces(words.slice(2 * index, 2 * index + 2))),
  );
}
