/** Loads and stores of tiles and scalars, as words. */
import { bool } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { Op, Value } from "../../../ir/node.ts";
import type { DistributedLayout } from "../../../layout/algebra/register-layout.ts";
import type { Operand, Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { packWord, splatWord, unpackWord } from "../elements.ts";
import { predicatesToWords, wordsToPredicates } from "../tiles/repack.ts";
import type { ScalarValue, TileValue } from "../values.ts";
import { onlyAccess } from "./access.ts";
import { cachePolicy } from "./cache-policy.ts";
import { loadWords } from "./loads.ts";
import type { Fill } from "./loads.ts";
import { storeWords } from "./stores.ts";
import { layoutOf } from "../../../layout/model/placed-types.ts";

/** A tile whose layout says who holds what. */
export interface DistributedTile extends TileValue {
  readonly layout: DistributedLayout;
}

export function load(op: Op<"load">, context: EmitContext): void {
  const [result] = op.results;
  if (result === undefined) throw new Error("load has no result");
  const { type } = result;
  const { dtype } = context.ref(op.operands.ref);
  const fill = fillOf(context, dtype, op.operands.fill);
  const access = onlyAccess(context, op);
  const policy = cachePolicy(context, op);
  const words = loadWords(context.code, { ...access, policy }, access.format, fill);
  if (type.kind === "scalar") context.define(result, loadedScalar(context, dtype, words));
  if (type.kind !== "tile") return;
  const layout = layoutOf(result);
  const { shape } = type;
  const { registers } = access.format;
  const own = dtype === bool ? wordsToPredicates(context.code, words, registers) : words;
  const one = (word: Register): Register =>
    layout.kind === "splat" ? repeatFirst(context, dtype, word) : word;
  context.define(result, { kind: "tile", dtype, shape, layout, words: own.map(one) });
}

function loadedScalar(
  { code }: EmitContext,
  dtype: DType,
  words: readonly Register[],
): ScalarValue {
  const [register] =
    dtype === bool
      ? wordsToPredicates(code, words, 1)
      : words.flatMap((word) => unpackWord(code, dtype, word, 1));
  if (register === undefined) throw new Error("a scalar is one element");
  return { kind: "scalar", dtype, register };
}

/** Every slot of a splat's word holds its number. */
function repeatFirst({ code }: EmitContext, dtype: DType, word: Register): Register {
  if (dtype === bool) return word;
  const [element = word] = unpackWord(code, dtype, word, 1);
  return splatWord(code, dtype, element);
}

/** What stands where a window overhangs: a value for all elements, or the words of a tile that lies as what is loaded. */
function fillOf(context: EmitContext, dtype: DType, fill: Value | undefined): Fill {
  if (fill?.type.kind !== "tile") return { word: fillWord(context, dtype, fill) };
  const { words } = context.tile(fill);
  return { words: dtype === bool ? predicatesToWords(context.code, words) : words };
}

/** The value in every slot of a word. */
function fillWord(context: EmitContext, dtype: DType, fill: Value | undefined): Operand {
  if (fill === undefined) return integer(0);
  const { register } = context.scalar(fill);
  if (dtype !== bool) return splatWord(context.code, dtype, register);
  return context.code.make("b32", "selp.b32", integer(0x01010101), integer(0), register);
}

/** Stores a tile or scalar; one of the lanes that hold an element does it. */
export function store(op: Op<"store">, context: EmitContext): void {
  const { code } = context;
  const { value } = op.operands;
  const access = onlyAccess(context, op);
  const words =
    value.type.kind === "scalar"
      ? scalarWords(context, context.scalar(value))
      : tileWords(context, spreadOperand(context, value));
  storeWords(code, access, access.format, words);
}

function tileWords({ code }: EmitContext, { dtype, words }: DistributedTile): readonly Register[] {
  return dtype === bool ? predicatesToWords(code, words) : words;
}

function scalarWords({ code }: EmitContext, { dtype, register }: ScalarValue): readonly Register[] {
  return dtype === bool ? predicatesToWords(code, [register]) : [packWord(code, dtype, [register])];
}

/** The operand of a write, whose layout says who writes what. */
export function spreadOperand(context: EmitContext, value: Value): DistributedTile {
  const tile = context.tile(value);
  const { layout } = tile;
  if (layout.kind === "splat") throw new Error("nobody in particular holds what is to be written");
  return { ...tile, layout };
}
