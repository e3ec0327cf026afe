/** Result types of collectives, transfers and checks. */
import type { distributionOps } from "../ops/distribution.ts";
import type { ElementType } from "../ops/elements.ts";
import type { testingOps } from "../ops/testing.ts";
import { futureType, sameType, tensorType, tokenType, typeText } from "../ops/types.ts";
import type { GraphType } from "../ops/types.ts";
import {
  extentOf,
  reject,
  requireAxes,
  requireFit,
  requireParameters,
  requireSame,
  scalarResults,
  shapeText,
  tensorOf,
} from "./inference-input.ts";
import type { Draft, InferRules } from "./inference-input.ts";

function declared(draft: Draft): readonly GraphType[] {
  return draft.declared;
}

/**
 * Processes of a group; rows are filled with -1. The text does not say how many they are where groups are all
 * processes, which need not be listed, and where each listed replica stands for all of its partitions.
 */
function groupSize({
  attributes,
}: Draft<"stablehlo.all_gather" | "stablehlo.reduce_scatter">): number | undefined {
  const { replica_groups: groups, channel_handle: channel } = attributes;
  if ((channel?.handle ?? 0) > 0 && !attributes.use_global_device_ids) return undefined;
  const size = Math.max(0, ...groups.map((group) => group.filter((id) => id >= 0).length));
  return size === 0 ? undefined : size;
}

/** The declared type, where an axis may have any multiple of an extent. */
function withMultiple(
  draft: Draft,
  index: number,
  { element, shape }: { readonly element: ElementType; readonly shape: readonly number[] },
  axis: number,
): GraphType {
  const declaredType = draft.declared[index];
  if (declaredType?.kind !== "tensor") return tensorType(element, shape);
  const extent = extentOf(shape, axis);
  const found = declaredType.shape[axis] ?? extent;
  const fits = extent === 0 ? found === 0 : found % extent === 0;
  return tensorType(element, fits ? shape.with(axis, found) : shape);
}

function allGather(draft: Draft<"stablehlo.all_gather">): readonly GraphType[] {
  const { all_gather_dim: axis } = draft.attributes;
  const count = groupSize(draft);
  return draft.operands.operands.map((value, i) => {
    const { element, shape } = tensorOf(draft, value);
    requireAxes(draft, "all_gather_dim", [axis], shape.length);
    if (count === undefined) return withMultiple(draft, i, { element, shape }, axis);
    return tensorType(element, shape.with(axis, extentOf(shape, axis) * count));
  });
}

function allReduce(draft: Draft<"stablehlo.all_reduce">): readonly GraphType[] {
  const [result] = scalarResults(draft, draft.regions.computation, 1);
  if (result === undefined) return draft.declared;
  requireParameters(draft, draft.regions.computation, [result, result]);
  return draft.operands.operands.map((value) =>
    tensorType(result.element, tensorOf(draft, value).shape),
  );
}

function allToAll(draft: Draft<"stablehlo.all_to_all">): readonly GraphType[] {
  const { split_dimension: split, concat_dimension: concat, split_count: count } = draft.attributes;
  return draft.operands.operands.map((value) => {
    const { element, shape } = tensorOf(draft, value);
    requireAxes(draft, "split_dimension", [split], shape.length);
    requireAxes(draft, "concat_dimension", [concat], shape.length);
    const extent = extentOf(shape, split);
    requireFit(
      draft,
      count >= 1 && extent % count === 0,
      `axis ${split} of ${shapeText(shape)} is not cut evenly`,
      `a multiple of ${count}`,
      `${extent}`,
    );
    const cut = shape.with(split, extent / count);
    return tensorType(element, cut.with(concat, extentOf(cut, concat) * count));
  });
}

function reduceScatter(draft: Draft<"stablehlo.reduce_scatter">): readonly GraphType[] {
  const { shape } = tensorOf(draft, draft.operands.operand);
  const { scatter_dimension: axis } = draft.attributes;
  requireAxes(draft, "scatter_dimension", [axis], shape.length);
  const [result] = scalarResults(draft, draft.regions.computation, 1);
  const count = groupSize(draft);
  if (count === undefined || result === undefined) return draft.declared;
  return [tensorType(result.element, shape.with(axis, Math.floor(extentOf(shape, axis) / count)))];
}

function collectiveReduce(draft: Draft<"stablehlo.collective_reduce">): readonly GraphType[] {
  const [result] = scalarResults(draft, draft.regions.computation, 1);
  if (result === undefined) return draft.declared;
  requireParameters(draft, draft.regions.computation, [result, result]);
  return [tensorType(result.element, tensorOf(draft, draft.operands.operand).shape)];
}

function operandType(
  draft: Draft<
    "stablehlo.collective_permute" | "stablehlo.cross-replica-sum" | "interpreter.probe"
  >,
): readonly GraphType[] {
  return [draft.operands.operand.type];
}

/** The last operand names the places that the others come from, where the op says so. */
function collectiveBroadcast(draft: Draft<"stablehlo.collective_broadcast">): readonly GraphType[] {
  const { operands } = draft.operands;
  if (!draft.attributes.has_dynamic_root) return operands.map(({ type }) => type);
  const roots = operands.at(-1);
  if (roots === undefined) return draft.declared;
  const { element, shape } = tensorOf(draft, roots);
  const count = operands.length - 1;
  requireFit(
    draft,
    element === "i32" && shape.length === 1 && shape[0] === count,
    "the roots do not fit the operands",
    typeText(tensorType("i32", [count])),
    typeText(roots.type),
  );
  return operands.slice(0, -1).map(({ type }) => type);
}

function id(): readonly GraphType[] {
  return [tensorType("ui32", [])];
}

function token(): readonly GraphType[] {
  return [tokenType];
}

function nothing(): readonly GraphType[] {
  return [];
}

export const distributionRules: InferRules<keyof typeof distributionOps> = {
  "stablehlo.replica_id": id,
  "stablehlo.partition_id": id,
  "stablehlo.all_gather": allGather,
  "stablehlo.all_reduce": allReduce,
  "stablehlo.all_to_all": allToAll,
  "stablehlo.reduce_scatter": reduceScatter,
  "stablehlo.collective_broadcast": collectiveBroadcast,
  "stablehlo.collective_permute": operandType,
  "stablehlo.collective_reduce": collectiveReduce,
  "stablehlo.cross-replica-sum": operandType,
  "stablehlo.send": token,
  "stablehlo.recv": declared,
  "stablehlo.infeed": declared,
  "stablehlo.outfeed": token,
  "stablehlo.async_start": (draft) => [
    futureType(draft.regions.body.results.map(({ type }) => type)),
  ],
  "stablehlo.async_done": (draft) => {
    const { type } = draft.operands.future;
    if (type.kind === "future") return type.members;
    return reject(draft, "TW9102", "the operand is no future", "a future", typeText(type));
  },
  "stablehlo.after_all": token,
  "stablehlo.create_token": token,
};

function sameOperands(
  draft: Draft<"check.expect_eq" | "check.expect_almost_eq">,
): readonly GraphType[] {
  requireSame(draft, [draft.operands.lhs, draft.operands.rhs]);
  return [];
}

function sameAsConstant(
  draft: Draft<"check.expect_eq_const" | "check.expect_almost_eq_const">,
): readonly GraphType[] {
  const { type } = draft.attributes.value;
  const found = draft.operands.lhs.type;
  if (!sameType(type, found))
    reject(draft, "TW9101", "operand and constant differ", typeText(type), typeText(found));
  return [];
}

export const testingRules: InferRules<keyof typeof testingOps> = {
  "check.expect_eq": sameOperands,
  "check.expect_eq_const": sameAsConstant,
  "check.expect_almost_eq": sameOperands,
  "check.expect_almost_eq_const": sameAsConstant,
  "check.expect_close": (draft) => {
    requireSame(draft, [draft.operands.actual, draft.operands.expected]);
    return [];
  },
  "check.expect_serialized_eq": nothing,
  "interpreter.run_parallel": declared,
  "interpreter.print": nothing,
  "interpreter.probe": operandType,
};
