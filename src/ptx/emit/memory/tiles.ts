/** Loads and stores of tiles and scalars, as words. */
import { bool } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { AccessOp } from "../../../ir/indexed.ts";
import type { Op, Value } from "../../../ir/node.ts";
import { registersPerLane, replicatedLayout } from "../../../layout/algebra/register-layout.ts";
import type { DistributedLayout } from "../../../layout/algebra/register-layout.ts";
import type { Operand, Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { packWord, splatWord, unpackWord } from "../elements.ts";
import { predicatesToWords, wordsToPredicates } from "../tiles/words.ts";
import type { RefValue, ScalarValue, TileValue } from "../values.ts";
import { planAccess } from "./access.ts";
import type { AccessRequest } from "./access.ts";
import { loadWords } from "./loads.ts";
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
  const window = context.ref(op.operands.ref);
  const fill = fillWord(context, window.dtype, op.operands.fill);
  if (type.kind === "scalar") context.define(result, loadScalar(context, op, fill));
  if (type.kind !== "tile") return;
  const layout = layoutOf(result);
  const { dtype, shape } = type;
  const spread = layout.kind === "splat" ? replicatedLayout : layout;
  const words = loadTile(context, window, { layout: spread, shape, op }, fill);
  const one = (word: Register): Register =>
    layout.kind === "splat" ? repeatFirst(context, dtype, word) : word;
  context.define(result, { kind: "tile", dtype, shape, layout, words: words.map(one) });
}

/** The words of a window, loaded in a layout; predicates for bool. */
export function loadTile(
  context: EmitContext,
  window: RefValue,
  tile: Pick<AccessRequest, "shape" | "op"> & { readonly layout: DistributedLayout },
  fill: Operand,
): readonly Register[] {
  const { code } = context;
  const { layout, shape } = tile;
  const access = planAccess(context, { window, ...tile, once: false });
  const registers = registersPerLane(layout, shape);
  const words = loadWords(code, access, { bits: window.dtype.bits, registers }, fill);
  return window.dtype === bool ? wordsToPredicates(code, words, registers) : words;
}

function loadScalar(context: EmitContext, op: Op<"load">, fill: Operand): ScalarValue {
  const window = context.ref(op.operands.ref);
  const { dtype } = window;
  const access = planAccess(context, { window, layout: undefined, shape: [], once: false, op });
  const words = loadWords(context.code, access, { bits: dtype.bits, registers: 1 }, fill);
  const [register] =
    dtype === bool
      ? wordsToPredicates(context.code, words, 1)
      : words.flatMap((word) => unpackWord(context.code, dtype, word, 1));
  if (register === undefined) throw new Error("a scalar is one element");
  return { kind: "scalar", dtype, register };
}

/** Every slot of a splat's word holds its number. */
function repeatFirst({ code }: EmitContext, dtype: DType, word: Register): Register {
  if (dtype === bool) return word;
  const [element = word] = unpackWord(code, dtype, word, 1);
  return splatWord(code, dtype, element);
}

/** The value that stands where a window overhangs, in every slot of a word. */
function fillWord(context: EmitContext, dtype: DType, fill: Value | undefined): Operand {
  if (fill === undefined) return integer(0);
  const { register } = context.scalar(fill);
  if (dtype !== bool) return splatWord(context.code, dtype, register);
  return context.code.make("b32", "selp.b32", integer(0x01010101), integer(0), register);
}

export function store(op: Op<"store">, context: EmitContext): void {
  const window = context.ref(op.operands.ref);
  const { value } = op.operands;
  if (value.type.kind === "scalar") storeScalar(context, op, context.scalar(value));
  else storeTile(context, window, spreadOperand(context, value), op);
}

/** The operand of a write, whose layout says who writes what. */
export function spreadOperand(context: EmitContext, value: Value): DistributedTile {
  const tile = context.tile(value);
  const { layout } = tile;
  if (layout.kind === "splat") throw new Error("nobody in particular holds what is to be written");
  return { ...tile, layout };
}

/** Stores a tile; one of the lanes that hold an element does it. */
export function storeTile(
  context: EmitContext,
  window: RefValue,
  tile: DistributedTile,
  op?: AccessOp,
): void {
  const { code } = context;
  const { layout, shape, dtype } = tile;
  const registers = registersPerLane(layout, shape);
  const access = planAccess(context, { window, layout, shape, once: true, op });
  const words = dtype === bool ? predicatesToWords(code, tile.words) : tile.words;
  storeWords(code, access, { bits: dtype.bits, registers }, words);
}

function storeScalar(context: EmitContext, op: Op<"store">, scalar: ScalarValue): void {
  const { code } = context;
  const window = context.ref(op.operands.ref);
  const { dtype, register } = scalar;
  const access = planAccess(context, { window, layout: undefined, shape: [], once: true, op });
  const words =
    dtype === bool ? predicatesToWords(code, [register]) : [packWord(code, dtype, [register])];
  storeWords(code, access, { bits: dtype.bits, registers: 1 }, words);
}
