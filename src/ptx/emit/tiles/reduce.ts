/** Reductions: sums, products, extremes and logic along axes, which disappear. */
import type { ReduceFunction } from "../../../formats/arithmetic/functions.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { Op } from "../../../ir/node.ts";
import type { EmitContext } from "../context.ts";
import { combineAlong } from "./combining.ts";
import type { Combination } from "./combining.ts";
import { resultTile } from "./rearrange.ts";
import {
  combineStep,
  elementFromWorking,
  neutralElement,
  tileFromWorking,
  workingElements,
  workingType,
} from "./working.ts";

export function reduce(op: Op<"reduce">, context: EmitContext): void {
  const { fn, axes } = op.attributes;
  const tile = context.tile(op.operands.source);
  const { dtype } = tile;
  const [target] = op.results;
  const result = target?.type.kind === "tile" ? resultTile(target) : undefined;
  const carriers = workingElements(context, tile).map((element) => [element]);
  const combination = combinationOf(context, fn, workingType(dtype));
  const slots = combineAlong(context, op, { tile, axes, carriers, result }, combination);
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
