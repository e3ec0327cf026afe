/** Regions that combine their first two parameters by one op, such as the `add` of a sum or the comparison of a sort. */
import { elements } from "./elements.ts";
import type { ElementType } from "./elements.ts";
import type { AnyGraphOp, GraphRegion } from "./node.ts";
import { sameType } from "./types.ts";

function isBinary(op: AnyGraphOp): boolean {
  return op.results.length === 1 && Object.keys(op.operands).join() === "lhs,rhs";
}

/** The op that a region applies to its two parameters in their order, where it is that alone. */
export function appliedOp({ parameters, ops, results }: GraphRegion): AnyGraphOp | undefined {
  const [op] = ops;
  const [left, right] = parameters;
  if (op === undefined || ops.length !== 1 || parameters.length !== 2 || !isBinary(op))
    return undefined;
  const operands = Object.values(op.operands);
  const applied = operands[0] === left && operands[1] === right && results[0] === op.results[0];
  const types = [...parameters, ...op.results].map(({ type }) => type);
  const sameTypes = types.every((type) => sameType(type, types[0] ?? type));
  return applied && results.length === 1 && sameTypes ? op : undefined;
}

/** The kind of that op where it has no attributes; a swap of the parameters is looked through. */
export function combinerKind(region: GraphRegion): AnyGraphOp["kind"] | undefined {
  const [left, right] = region.parameters;
  if (left === undefined || right === undefined) return undefined;
  const swapped = { ...region, parameters: [right, left] };
  const op = appliedOp(region) ?? appliedOp(swapped);
  return op !== undefined && Object.keys(op.attributes).length === 0 ? op.kind : undefined;
}

/** How a region compares its first two parameters, in their order, where that is all it does. */
export function appliedComparison({ parameters, ops, results }: GraphRegion) {
  const [op] = ops;
  if (op?.kind !== "stablehlo.compare" || ops.length !== 1 || results[0] !== op.results[0])
    return undefined;
  const { lhs, rhs } = op.operands;
  const isPlain = lhs === parameters[0] && rhs === parameters[1];
  return isPlain ? op.attributes.comparison_direction : undefined;
}

/** The least or greatest number of an element. */
export function limitOf(element: ElementType, isLeast: boolean): number | bigint {
  const { kind, bits } = elements[element];
  if (kind === "bool") return isLeast ? 0 : 1;
  if (kind === "float") return isLeast ? -Infinity : Infinity;
  if (kind === "unsigned") return isLeast ? 0 : (1n << BigInt(bits)) - 1n;
  return isLeast ? -(1n << BigInt(bits - 1)) : (1n << BigInt(bits - 1)) - 1n;
}

/** What changes nothing, by the op that combines. */
export const neutralNumbers = {
  "stablehlo.add": () => 0,
  "stablehlo.multiply": () => 1,
  "stablehlo.maximum": (element: ElementType) => limitOf(element, true),
  "stablehlo.minimum": (element: ElementType) => limitOf(element, false),
} as const;

/** Whether an op combines in any order, with a number that changes nothing. */
export function isCombiner(kind: string | undefined): kind is keyof typeof neutralNumbers {
  return kind !== undefined && Object.hasOwn(neutralNumbers, kind);
}
