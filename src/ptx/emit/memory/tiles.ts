/** Loads and stores of tiles and scalars, as words. */
import { bool } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { AnyOp, Op, Value } from "../../../ir/node.ts";
import { lanesPerWarp } from "../../../layout/algebra/bits.ts";
import { blockedLayout, coalescedLayout } from "../../../layout/algebra/named.ts";
import { registersPerLane, replicatedLayout } from "../../../layout/algebra/register-layout.ts";
import type { DistributedLayout } from "../../../layout/algebra/register-layout.ts";
import type { Operand, Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { packWord, splatWord, unpackWord } from "../elements.ts";
import { convertTile, operandTile } from "../tiles/operands.ts";
import { predicatesToWords, wordsToPredicates } from "../tiles/words.ts";
import type { RefValue, ScalarValue, TileValue } from "../values.ts";
import { planAccess } from "./access.ts";
import { loadWords } from "./loads.ts";
import { storeWords } from "./stores.ts";
import { widestBits } from "./units.ts";

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
  if (type.kind === "scalar") context.define(result, loadScalar(context, window, fill));
  const layout = context.placement.layouts.get(result);
  // A load that a tensor core makes by itself has no layout.
  if (type.kind !== "tile" || layout === undefined) return;
  const { dtype, shape } = type;
  const spread = layout.kind === "splat" ? replicatedLayout : layout;
  const words = loadTile(context, window, { layout: spread, shape }, fill);
  const one = (word: Register): Register =>
    layout.kind === "splat" ? repeatFirst(context, dtype, word) : word;
  context.define(result, { kind: "tile", dtype, shape, layout, words: words.map(one) });
}

/** The words of a window, loaded in a layout; predicates for bool. */
export function loadTile(
  context: EmitContext,
  window: RefValue,
  { layout, shape }: { readonly layout: DistributedLayout; readonly shape: readonly number[] },
  fill: Operand,
): readonly Register[] {
  const { code } = context;
  const access = planAccess(context, { window, layout, shape, once: false });
  const registers = registersPerLane(layout, shape);
  const words = loadWords(code, access, { bits: window.dtype.bits, registers }, fill);
  return window.dtype === bool ? wordsToPredicates(code, words, registers) : words;
}

function loadScalar(context: EmitContext, window: RefValue, fill: Operand): ScalarValue {
  const { dtype } = window;
  const access = planAccess(context, { window, layout: undefined, shape: [], once: false });
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
  if (value.type.kind === "scalar") storeScalar(context, window, context.scalar(value));
  else storeTile(context, window, spreadOperand(context, op, value));
}

/** The operand of a write in a layout that says who writes what. */
export function spreadOperand(context: EmitContext, op: AnyOp, value: Value): DistributedTile {
  const tile = operandTile(context, op, value);
  const { layout } = tile;
  if (layout.kind !== "splat") return { ...tile, layout };
  const spread = coalesced(context, tile);
  return { ...convertTile(context, tile, spread, op), layout: spread };
}

function coalesced({ scope }: EmitContext, { shape, dtype }: TileValue): DistributedLayout {
  const extent = shape.at(-1) ?? 1;
  let vector = widestBits / dtype.bits;
  while (extent % vector !== 0) vector /= 2;
  if (!scope.oneWarp) return coalescedLayout(shape, vector);
  const lanes = shape.map(() => 1);
  let free = lanesPerWarp;
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    const units = (shape[axis] ?? 1) / (axis === shape.length - 1 ? vector : 1);
    const count = Math.min(free, 2 ** Math.ceil(Math.log2(units)));
    lanes[axis] = count;
    free /= count;
  }
  return blockedLayout({ vector, lanes, warps: [] });
}

/** Stores a tile; one of the lanes that hold an element does it. */
export function storeTile(context: EmitContext, window: RefValue, tile: DistributedTile): void {
  const { code } = context;
  const { layout, shape, dtype } = tile;
  const registers = registersPerLane(layout, shape);
  const access = planAccess(context, { window, layout, shape, once: true });
  const words = dtype === bool ? predicatesToWords(code, tile.words) : tile.words;
  storeWords(code, access, { bits: dtype.bits, registers }, words);
}

function storeScalar(context: EmitContext, window: RefValue, scalar: ScalarValue): void {
  const { code } = context;
  const { dtype, register } = scalar;
  const access = planAccess(context, { window, layout: undefined, shape: [], once: true });
  const words =
    dtype === bool ? predicatesToWords(code, [register]) : [packWord(code, dtype, [register])];
  storeWords(code, access, { bits: dtype.bits, registers: 1 }, words);
}
