/** Emission rules of the ops that rearrange tiles or combine their elements; products are elsewhere. */
import type { tileOps } from "../../../ir/ops/tiles.ts";
import type { EmitRule, EmitRules } from "../context.ts";
import { argReduce } from "./arg-reduce.ts";
import { iota as countAlong } from "./iota.ts";
import { broadcast, concatenate, layoutCast, reshape, slice, transpose } from "./rearrange.ts";
import { reduce } from "./reduce.ts";
import { scan } from "./scan.ts";
import { sort } from "./sort.ts";

export const tileRules: Omit<EmitRules<typeof tileOps>, "dot" | "scaled_dot"> = {
  broadcast,
  reshape,
  transpose,
  layout_cast: layoutCast,
  slice,
  concatenate,
  reduce,
  scan,
  arg_reduce: argReduce,
  sort,
};

export const iota: EmitRule<"iota"> = countAlong;
