/**
 * Ops that give elements other places in their tile: broadcast, reshape, transpose, slice, concatenate.
 * By the layout rules every element stays in its lane, so that each register of the result is one of the
 * source, under another name; narrow elements may have to change their places in words.
 *
 *   transpose of (L0 L1 | R0) on [4, 2] is (R0 | L0 L1) on [2, 4]
 *
 *   | register | of the first lane holds | which in the source is | in register |
 *   |----------|-------------------------|------------------------|-------------|
 *   | 0        | 0, 0                    | 0, 0                   | 0           |
 *   | 1        | 1, 0                    | 0, 1                   | 1           |
 *
 * What holds in the first lane holds in all: lanes and registers contribute to a coordinate on their own.
 */
import { rowMajorStrides } from "../../../formats/shape.ts";
import type { AnyOp, Op, Value } from "../../../ir/node.ts";
import {
  registersByElement,
  repeating,
  stepping,
} from "../../../layout/access/register-sources.ts";
import type { Origin } from "../../../layout/access/register-sources.ts";
import { firstThreadElements, padding } from "../../../layout/algebra/element-maps.ts";
import type { Register } from "../../module.ts";
import type { EmitContext } from "../context.ts";
import { splatWord, unpackWord } from "../elements.ts";
import { slotsOf } from "../values.ts";
import type { TileValue } from "../values.ts";
import { gatherWord } from "./repack.ts";
import type { WordPart } from "./repack.ts";
import { layoutOf } from "../../../layout/model/placed-types.ts";

/** A tile to take elements from. */
interface Source {
  readonly tile: TileValue;
  readonly origin: Origin;
}

/** The result's type and place. */
export function resultTile(
  value: Value | undefined,
): Pick<TileValue, "dtype" | "shape" | "layout"> {
  if (value?.type.kind !== "tile") throw new Error("an op that gives no tile");
  return { dtype: value.type.dtype, shape: value.type.shape, layout: layoutOf(value) };
}

function defineFrom(context: EmitContext, op: AnyOp, sources: readonly Source[]): void {
  const [result] = op.results;
  const type = resultTile(result);
  const { layout, shape, dtype } = type;
  const [first] = sources;
  if (layout.kind === "splat" && first !== undefined) {
    if (first.tile.layout.kind !== "splat") throw new Error("many numbers become one");
    context.define(result, { ...first.tile, ...type });
    return;
  }
  const origins = sources.map(({ tile, origin }) => ({
    tile,
    origin,
    registers: registersByElement(tile.layout, tile.shape),
  }));
  const slots = slotsOf(dtype);
  const parts = Array.from(firstThreadElements(layout, shape), (element): WordPart | undefined => {
    if (element === padding) return undefined;
    for (const { tile, origin, registers } of origins) {
      const from = origin(element);
      if (from === undefined) continue;
      const register = tile.layout.kind === "splat" ? 0 : registers.get(from);
      const word = register === undefined ? undefined : tile.words[Math.floor(register / slots)];
      if (register === undefined || word === undefined)
        throw new Error(`${op.kind}: element ${element} is not in its lane`);
      return { word, part: register % slots };
    }
    throw new Error(`${op.kind}: nothing gives element ${element}`);
  });
  context.define(result, {
    kind: "tile",
    ...type,
    words: gatherWords(context, dtype.bits, slots, parts),
  });
}

/** Words of parts of other words; what is padding in all of a word may be anything. */
export function gatherWords(
  { code }: EmitContext,
  bits: number,
  slots: number,
  parts: readonly (WordPart | undefined)[],
): readonly Register[] {
  const some = parts.find((part) => part !== undefined)?.word;
  const words: Register[] = [];
  for (let start = 0; start < parts.length; start += slots) {
    const own = parts.slice(start, start + slots);
    const word = slots === 1 ? own[0]?.word : gatherWord(code, bits, own);
    const filled = word ?? some;
    if (filled === undefined) throw new Error("a tile of padding alone");
    words.push(filled);
  }
  return words;
}

export function broadcast(op: Op<"broadcast">, context: EmitContext): void {
  const { source } = op.operands;
  const { shape, axes } = op.attributes;
  if (source.type.kind !== "tile") {
    defineSplat(context, op, source);
    return;
  }
  const tile = context.tile(source);
  defineFrom(context, op, [{ tile, origin: repeating(tile.shape, shape, axes) }]);
}

/** A scalar as a tile. */
function defineSplat(context: EmitContext, op: AnyOp, source: Value): void {
  const [result] = op.results;
  const type = resultTile(result);
  const { dtype, register } = context.scalar(source);
  if (type.layout.kind !== "splat") throw new Error("a scalar in many places");
  const words = [splatWord(context.code, dtype, register)];
  context.define(result, { kind: "tile", ...type, words });
}

export function reshape(op: Op<"reshape">, context: EmitContext): void {
  const { source } = op.operands;
  const [result] = op.results;
  if (source.type.kind !== "tile" && result?.type.kind !== "tile") {
    context.define(result, context.scalar(source));
  } else if (source.type.kind !== "tile") {
    defineSplat(context, op, source);
  } else if (result?.type.kind !== "tile") {
    const { dtype, words } = context.tile(source);
    const [element] = words[0] === undefined ? [] : unpackWord(context.code, dtype, words[0], 1);
    if (element === undefined) throw new Error("a tile without words");
    context.define(result, { kind: "scalar", dtype, register: element });
  } else {
    const tile = context.tile(source);
    defineFrom(context, op, [{ tile, origin: (element) => element }]);
  }
}

export function transpose(op: Op<"transpose">, context: EmitContext): void {
  const tile = context.tile(op.operands.source);
  const { permutation } = op.attributes;
  const own = rowMajorStrides(tile.shape);
  const shape = permutation.map((axis) => tile.shape[axis] ?? 1);
  const strides = permutation.map((axis) => own[axis] ?? 0);
  defineFrom(context, op, [{ tile, origin: stepping(shape, strides, 0) }]);
}

export function slice(op: Op<"slice">, context: EmitContext): void {
  const tile = context.tile(op.operands.source);
  const { starts, sizes } = op.attributes;
  const strides = rowMajorStrides(tile.shape);
  const offset = starts.reduce((sum, start, axis) => sum + start * (strides[axis] ?? 0), 0);
  defineFrom(context, op, [{ tile, origin: stepping(sizes, strides, offset) }]);
}

/** The same tile, where it was said to lie. */
export function layoutCast(op: Op<"layout_cast">, context: EmitContext): void {
  context.define(op.results[0], context.tile(op.operands.source));
}

export function concatenate(op: Op<"concatenate">, context: EmitContext): void {
  const { axis } = op.attributes;
  const { shape } = resultTile(op.results[0]);
  let start = 0;
  const sources = op.operands.parts.map((part): Source => {
    const tile = context.tile(part);
    const first = start;
    start += tile.shape[axis] ?? 0;
    return { tile, origin: partOf(shape, tile.shape, axis, first) };
  });
  defineFrom(context, op, sources);
}

/** The window of a joined tile that a part fills. */
function partOf(
  shape: readonly number[],
  part: readonly number[],
  axis: number,
  first: number,
): Origin {
  const inner = shape.slice(axis + 1).reduce((count, extent) => count * extent, 1);
  const length = shape[axis] ?? 1;
  const own = part[axis] ?? 0;
  return (element) => {
    const along = (Math.floor(element / inner) % length) - first;
    if (along < 0 || along >= own) return undefined;
    const outer = Math.floor(element / (inner * length));
    return (outer * own + along) * inner + (element % inner);
  };
}
