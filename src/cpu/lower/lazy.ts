/**
 * Which tiles can be computed element by element where they are used, and how axes of a loop over them may be joined.
 *
 *   broadcast [128, 1] to [128, 64]    the source once a row
 *   transpose, slice                   the source at another place
 *   x + y                              both at the same place
 */
import type { AnyOp, Value } from "../../ir/node.ts";
import type { Op } from "../../ir/node.ts";
import { ruleOf } from "../../ir/ops.ts";
import type { SomeOpRules } from "../../ir/ops.ts";
import { dataShape, isData } from "../../ir/types.ts";
import { operandValues } from "../../ir/traverse.ts";
import { bool } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { isMannered } from "../../formats/arithmetic/rounded.ts";
import {
  binaryRule,
  bitcastRule,
  castRule,
  classifyRule,
  compareRule,
  unaryRule,
} from "./arithmetic.ts";
import type { LaneRule } from "./arithmetic.ts";
import { selectLanes, vectorOf } from "./lanes.ts";

export function dtypeOf({ type, id }: Value): DType {
  if (!isData(type)) throw new Error(`%${id} is no tile or scalar`);
  return type.dtype;
}

export function shapeOf({ type }: Value): readonly number[] {
  return isData(type) ? dataShape(type) : type.kind === "inflight" ? type.shape : [];
}

export function countOf(value: Value): number {
  return shapeOf(value).reduce((product, extent) => product * extent, 1);
}

/** Of an elementwise op on lanes, its rule and the operands that it takes. */
export interface Elementwise {
  readonly operands: readonly Value[];
  readonly rule: LaneRule;
}

type ElementwiseRules = SomeOpRules<[], LaneRule | undefined>;

const elementwiseRules: ElementwiseRules = {
  unary: ({ attributes: { fn, ...manner }, operands }) =>
    isMannered(manner) ? undefined : unaryRule(fn, dtypeOf(operands.source)),
  binary: ({ attributes: { fn, ...manner }, operands }) =>
    isMannered(manner) ? undefined : binaryRule(fn, dtypeOf(operands.left)),
  compare: ({ attributes, operands }) =>
    compareRule(attributes.predicate, dtypeOf(operands.left), bool),
  classify: ({ attributes, operands }) =>
    classifyRule(attributes.fn, dtypeOf(operands.source), bool),
  select:
    () =>
    ({ builder: b }, ...operands) => {
      const [condition, ifTrue, ifFalse] = operands;
      if (condition === undefined || ifTrue === undefined || ifFalse === undefined)
        throw new Error("select takes three");
      return selectLanes(b, vectorOf(condition), ifTrue, ifFalse);
    },
  cast: ({ attributes: { dtype, overflow, rounding }, operands }) =>
    castRule(dtypeOf(operands.source), dtype, { overflow, rounding }),
  bitcast: ({ attributes }) => bitcastRule(attributes.dtype),
};

/** How an op computes four elements from four of each operand; undefined where it does not. */
export function elementwise(op: AnyOp): Elementwise | undefined {
  const rule = ruleOf(elementwiseRules, op)?.(op);
  return rule === undefined ? undefined : { operands: operandValues(op), rule };
}

/** For each axis of a broadcast's result the axis of the source, or undefined where elements repeat. */
export function broadcastAxes(op: Op<"broadcast">): readonly (number | undefined)[] {
  const from = shapeOf(op.operands.source);
  return op.attributes.shape.map((_, axis) => {
    const position = op.attributes.axes.indexOf(axis);
    return position < 0 || from[position] === 1 ? undefined : position;
  });
}

/** Whether what is repeated is repeated along the last axes alone, so that a loop computes it once a row. */
export function repeatsRows(op: Op<"broadcast">): boolean {
  const axes = broadcastAxes(op);
  let repeated = false;
  for (const [axis, source] of axes.entries()) {
    if (op.attributes.shape[axis] === 1) continue;
    if (source === undefined) repeated = true;
    else if (repeated) return false;
  }
  return true;
}

/** For each axis of the source, of a reshape that adds or drops axes of extent 1, the result's axis; undefined for those of extent 1. */
export function unitAxes(
  from: readonly number[],
  to: readonly number[],
): readonly (number | undefined)[] | undefined {
  const kept = [...to.keys()].filter((axis) => to[axis] !== 1);
  const own = [...from.keys()].filter((axis) => from[axis] !== 1);
  if (kept.length !== own.length || kept.some((axis, i) => to[axis] !== from[own[i] ?? -1]))
    return undefined;
  return from.map((_, axis) => {
    const place = own.indexOf(axis);
    return place < 0 ? undefined : kept[place];
  });
}
