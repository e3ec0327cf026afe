/**
 * Emission of the ops that compute element by element. Scalars are lone elements, and so is the number of a
 * splat, which is computed once. Other tiles are computed word by word in the layout of the result, to which
 * the operands are converted.
 */
import { isInteger } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { AnyOp, Op, Value } from "../../../ir/node.ts";
import type { valueOps } from "../../../ir/ops/values.ts";
import { splat } from "../../../layout/algebra/register-layout.ts";
import { layoutOf } from "../../../layout/model/placed-types.ts";
import { planRelayout } from "../../../layout/relayout/relayout.ts";
import type { Code } from "../../function-builder.ts";
import type { Register } from "../../module.ts";
import type { EmitContext, EmitRules } from "../context.ts";
import { elementCount, splatWord, unpackWord } from "../elements.ts";
import { slotsOf } from "../values.ts";
import type { TileValue } from "../values.ts";
import { castWords } from "./cast-words.ts";
import { emitCast } from "./casts.ts";
import { emitConstant, emitConstantWord } from "./constants.ts";
import {
  emitBinary,
  emitClassify,
  emitCompare,
  emitFma,
  emitSelect,
  emitUnary,
} from "./functions.ts";
import { wrapInteger } from "./integers.ts";
import type { Division } from "./integers.ts";
import { isHalf } from "./half-precision.ts";
import { halvesCast, placedHalves, scaledHalves } from "./packed-conversions.ts";
import { checkPromise } from "./promises.ts";
import { seldomProducts } from "./multiply-unless-one.ts";
import { castFactors, placedCasts } from "./scaled-casts.ts";
import { addedHalf } from "./to-f32.ts";
import { bitcastWidth } from "../tiles/bit-widths.ts";
import { runRelayout } from "../tiles/relayout.ts";
import { binaryWord, classifyWord, compareWord, fmaWord, selectWord, unaryWord } from "./words.ts";

/** The others are no computations of elements, and have their rules in `emit/rules.ts`. */
type ElementwiseOps = Omit<
  typeof valueOps,
  | ("block_index" | "grid_size" | "cluster_rank" | "thread_index" | "size")
  | ("iota" | "inline_ptx" | "optimization_barrier")
  | ("inline_ptx_memory" | "is_simulated")
>;

/** As many as there are operands. */
type Each<Operands extends readonly unknown[], T> = { readonly [I in keyof Operands]: T };

interface Computation<Operands extends readonly unknown[]> {
  readonly element: (...elements: Each<Operands, Register>) => Register;
  /** The words of the result; the operands are in its layout. */
  readonly words: (...tiles: Each<Operands, TileValue>) => readonly Register[];
}

function pointwise<const Operands extends readonly Value[]>(
  context: EmitContext,
  op: AnyOp,
  operands: Operands,
  { element, words }: Computation<Operands>,
): void {
  const { code } = context;
  const [result] = op.results;
  if (result === undefined) throw new Error(`${op.kind} without a result`);
  const { dtype, shape, isScalar } = numbersOf(result);
  const compute = (registers: readonly Register[]): Register =>
    element(...(registers as Each<Operands, Register>));
  if (isScalar) {
    const register = compute(operands.map((operand) => context.scalar(operand).register));
    context.define(result, { kind: "scalar", dtype, register });
    return;
  }
  const layout = layoutOf(result);
  const tiles = operands.map((operand) => context.tile(operand));
  const made =
    layout.kind === "splat"
      ? [splatWord(code, dtype, compute(tiles.map((tile) => splatElement(code, tile))))]
      : words(...(tiles as Each<Operands, TileValue>));
  context.define(result, { kind: "tile", dtype, shape, layout, words: made });
}

interface Numbers {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly isScalar: boolean;
}

function numbersOf({ type, id }: Value): Numbers {
  if (type.kind === "scalar") return { dtype: type.dtype, shape: [], isScalar: true };
  if (type.kind === "tile") return { dtype: type.dtype, shape: type.shape, isScalar: false };
  throw new Error(`%${id} is no number`);
}

function splatElement(code: Code, { dtype, words: [word] }: TileValue): Register {
  const [element] = word === undefined ? [] : unpackWord(code, dtype, word, 1);
  if (element === undefined) throw new Error("a tile without words");
  return element;
}

/**
 * What `compute` gives for the words of the tiles, which all have equally many. Where all are the same as
 * for a word before, as the words of tiles that were splats are, so is what it gives.
 */
function eachWord<const Tiles extends readonly TileValue[]>(
  tiles: Tiles,
  compute: (words: Each<Tiles, Register>, used: number) => readonly Register[],
): readonly Register[] {
  const [first] = tiles;
  if (first === undefined) return [];
  const slots = slotsOf(first.dtype);
  const count = elementCount(first);
  const known = new Map<string, readonly Register[]>();
  return first.words.flatMap((_, index) => {
    const words = tiles.flatMap((tile) => tile.words.slice(index, index + 1));
    const used = Math.min(slots, count - index * slots);
    const key = `${words.map(({ name }) => name).join()} ${used}`;
    const results = known.get(key) ?? compute(words as Each<Tiles, Register>, used);
    known.set(key, results);
    return results;
  });
}

function selectWords(
  context: EmitContext,
  conditions: TileValue,
  ifTrue: TileValue,
  ifFalse: TileValue,
): readonly Register[] {
  const { dtype } = ifTrue;
  const slots = slotsOf(dtype);
  return ifTrue.words.flatMap((word, index) => {
    const other = ifFalse.words[index];
    if (other === undefined) return [];
    const chosen = conditions.words.slice(index * slots, (index + 1) * slots);
    return [selectWord(context, dtype, chosen, word, other)];
  });
}

/** The words of a tile in another format, and in the order of registers that the result has. */
function castTile(context: EmitContext, op: Op<"cast">, tile: TileValue): readonly Register[] {
  const { dtype: to, ...choices } = op.attributes;
  const layout = op.results[0] === undefined ? tile.layout : layoutOf(op.results[0]);
  const { dtype: from, words, shape } = tile;
  const cast = (): readonly Register[] =>
    castWords(context, { from, to, ...choices }, words, elementCount(tile));
  if (layout.text === tile.layout.text) return cast();
  const plan = planRelayout(tile.layout, layout, shape, to, context.scope.warps);
  if (plan === undefined) throw new Error(`no way from ${tile.layout.text} to ${layout.text}`);
  const [step, ...others] = plan.steps;
  const byHalves =
    step?.kind === "pack" &&
    others.length === 0 &&
    step.words.every(([low, high], word) => {
      const first = 8 * (word >> 2) + (word & 3);
      return low === first && high === first + 4;
    });
  if (!byHalves || !isHalf(to)) return runRelayout(context, op, plan, cast());
  const [result] = op.results;
  const factor = result && castFactors(context.kernel.body).get(result);
  if (result !== undefined && factor !== undefined) {
    context.scaledCasts.add(result);
    if (placedCasts(context.kernel.body).has(result)) {
      context.placedCasts.set(result, { factor, added: addedHalf(from) });
      return placedHalves(context, from, words);
    }
  }
  return halvesCast(context, from, to, words, factor);
}

/** The same bits as a lone element of another format of their width, which may be extended otherwise. */
function bitcastElement(code: Code, from: DType, to: DType, value: Register): Register {
  if (from.bits >= 16 || from.kind === to.kind) return value;
  return wrapInteger(code, to, value);
}

/** What facts know of the operands of a division of integers. */
function divisionOf(
  { operands, attributes: { fn } }: Op<"binary">,
  { windows: { facts } }: EmitContext,
): Division | undefined {
  if (fn !== "div" && fn !== "rem") return undefined;
  const [dividend, divisor] = [facts.ofAny(operands.left), facts.ofAny(operands.right)];
  return dividend && divisor && { dividend, divisor };
}

export const valueRules: EmitRules<ElementwiseOps> = {
  constant(op, context) {
    const { value, dtype, shape } = op.attributes;
    const { code } = context;
    const [result] = op.results;
    if (result?.type.kind === "tile") {
      const words = [emitConstantWord(code, dtype, value)];
      context.define(result, { kind: "tile", dtype, shape, layout: splat, words });
      return;
    }
    const register = emitConstant(code, dtype, value);
    const isKnown = isInteger(dtype) && Number.isSafeInteger(Number(value));
    const constant = isKnown ? Number(value) : undefined;
    context.define(result, { kind: "scalar", dtype, register, constant });
  },

  unary(op, context) {
    const { fn, ...choices } = op.attributes;
    const manner = { ...choices, roundedTo: context.roundedFunctions.get(op) };
    const { source } = op.operands;
    const { dtype } = numbersOf(source);
    pointwise(context, op, [source], {
      element: (value) => emitUnary(context, fn, dtype, value, manner),
      words: (tile) =>
        eachWord([tile], ([word], used) => [unaryWord(context, fn, dtype, word, used, manner)]),
    });
  },

  classify(op, context) {
    const { fn } = op.attributes;
    const { source } = op.operands;
    const { dtype } = numbersOf(source);
    pointwise(context, op, [source], {
      element: (value) => emitClassify(context, fn, dtype, value),
      words: (tile) =>
        eachWord([tile], ([word], used) => classifyWord(context, fn, dtype, word, used)),
    });
  },

  binary(op, context) {
    const { fn, oftenOne = false, ...choices } = op.attributes;
    const { left, right } = op.operands;
    const { dtype } = numbersOf(left);
    const [result] = op.results;
    const placed = context.placedCasts.get(left);
    if (context.scaledCasts.has(left)) {
      context.define(result, context.tile(left));
      if (result !== undefined && placed !== undefined) context.placedCasts.set(result, placed);
      return;
    }
    if (placed !== undefined) {
      const [{ words }, scales] = [context.tile(left), context.tile(right)];
      const made = scaledHalves(context, words, scales.words, placed);
      context.define(result, { ...context.tile(left), words: made });
      return;
    }
    const manner = { ...choices, division: divisionOf(op, context) };
    pointwise(context, op, [left, right], {
      element: (first, second) => emitBinary(context, fn, dtype, first, second, manner),
      words: (...tiles) =>
        oftenOne
          ? seldomProducts(context, ...tiles)
          : eachWord(tiles, ([first, second], used) => [
              binaryWord(context, fn, dtype, first, second, used, manner),
            ]),
    });
  },

  compare(op, context) {
    const { predicate } = op.attributes;
    const { left, right } = op.operands;
    const { dtype } = numbersOf(left);
    pointwise(context, op, [left, right], {
      element: (first, second) => emitCompare(context, predicate, dtype, first, second),
      words: (...tiles) =>
        eachWord(tiles, ([first, second], used) =>
          compareWord(context, predicate, dtype, first, second, used),
        ),
    });
  },

  assume(op, context) {
    pointwise(context, op, [op.operands.source], {
      element: (element) => element,
      words: (tile) => tile.words,
    });
    if (context.checksPromises) checkPromise(op, context);
  },

  fma(op, context) {
    const { a, b, c } = op.operands;
    const { dtype } = numbersOf(a);
    pointwise(context, op, [a, b, c], {
      element: (first, second, third) =>
        emitFma(context, dtype, first, second, third, op.attributes),
      words: (...tiles) =>
        eachWord(tiles, ([first, second, third]) => [
          fmaWord(context, dtype, first, second, third, op.attributes),
        ]),
    });
  },

  select(op, context) {
    const { condition, ifTrue, ifFalse } = op.operands;
    const { dtype } = numbersOf(ifTrue);
    pointwise(context, op, [condition, ifTrue, ifFalse], {
      element: (chosen, first, second) => emitSelect(context, dtype, chosen, first, second),
      words: (conditions, first, second) => selectWords(context, conditions, first, second),
    });
  },

  cast(op, context) {
    const { dtype: to, ...choices } = op.attributes;
    const { source } = op.operands;
    const { dtype: from } = numbersOf(source);
    pointwise(context, op, [source], {
      element: (value) => emitCast(context, from, to, value, choices),
      words: (tile) => castTile(context, op, tile),
    });
  },

  bitcast_width: bitcastWidth,

  bitcast(op, context) {
    const { dtype: to } = op.attributes;
    const { source } = op.operands;
    const { dtype: from } = numbersOf(source);
    pointwise(context, op, [source], {
      element: (value) => bitcastElement(context.code, from, to, value),
      words: (tile) => tile.words,
    });
  },
};
