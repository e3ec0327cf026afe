/** Reductions: sums, products, extremes and logic along axes, which disappear. */
import type { ReduceFunction } from "../../../formats/arithmetic/functions.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { Op } from "../../../ir/node.ts";
import { registersPerLane } from "../../../layout/algebra/register-layout.ts";
import type { EmitContext } from "../context.ts";
import { halfBinary, isHalf } from "../elementwise/half-precision.ts";
import { wordToF32 } from "../elementwise/to-f32.ts";
import type { TileValue } from "../values.ts";
import { combineAlong } from "./combining.ts";
import type { Combination, Pairs } from "./combining.ts";
import { resultTile } from "./rearrange.ts";
import {
  combineStep,
  elementFromWorking,
  neutralElement,
  tileFromWorking,
  workingElements,
  workingType,
} from "./accumulation-dtype.ts";

export function reduce(op: Op<"reduce">, context: EmitContext): void {
  const { fn, axes } = op.attributes;
  const tile = context.tile(op.operands.source);
  const { dtype } = tile;
  const [target] = op.results;
  const result = target?.type.kind === "tile" ? resultTile(target) : undefined;
  const carriers = () => workingElements(context, tile).map((element) => [element]);
  const combination = combinationOf(context, fn, workingType(dtype));
  const slots = combineAlong(
    context,
    op,
    { tile, axes, carriers, pairs: pairsOf(context, fn, tile), result },
    combination,
  );
  const elements = slots.map((slot) => slot?.[0]);
  if (result !== undefined) {
    context.define(target, tileFromWorking(context, result, elements));
    return;
  }
  const [only] = elements;
  if (only === undefined) throw new Error("a reduction of nothing");
  const register = elementFromWorking(context, dtype, only);
  context.define(target, { kind: "scalar", dtype, register });
}

/** Words of f16 and bf16, whose extremes are found two at a time: they are the same in every order, and need no rounding. */
function pairsOf(context: EmitContext, fn: ReduceFunction, tile: TileValue): Pairs | undefined {
  const { dtype, words, layout, shape } = tile;
  if (!isHalf(dtype) || (fn !== "min" && fn !== "max")) return undefined;
  const count = registersPerLane(layout, shape);
  if (count < 4 || count % 2 !== 0) return undefined;
  return {
    words,
    combine: (left, right) => {
      const combined = halfBinary(context, fn, dtype, "word", left, right);
      if (combined === undefined) throw new Error(`${dtype.name} has no ${fn}`);
      return combined;
    },
    split: (word) => wordToF32(context, dtype, word, 2).map((element) => [element]),
  };
}

function combinationOf(context: EmitContext, fn: ReduceFunction, dtype: DType): Combination {
  return {
    combine: ([left], [right]) => {
      if (left === undefined || right === undefined) throw new Error("a carrier of nothing");
      return [combineStep(context, fn, dtype, left, right)];
    },
    neutral: [neutralElement(fn, dtype)],
    redux: dtype.kind === "float" || dtype.bits === 64 ? undefined : reduxOf(fn, dtype),
    idempotent: fn !== "sum" && fn !== "prod" && fn !== "xor",
  };
}

function reduxOf(fn: ReduceFunction, { kind }: DType): string | undefined {
  const type = kind === "signed" ? "s32" : "u32";
  const instructions: { readonly [F in ReduceFunction]: string | undefined } = {
    sum: `redux.sync.add.${type}`,
    prod: undefined,
    min: `redux.sync.min.${type}`,
    max: `redux.sync.max.${type}`,
    and: "redux.sync.and.b32",
    or: "redux.sync.or.b32",
    xor: "redux.sync.xor.b32",
  };
  return instructions[fn];
}
