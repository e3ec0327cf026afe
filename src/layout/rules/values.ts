/**
 * Ops that make values and compute on them element by element: operands and result lie in one slot.
 * Scalars are the same in all lanes and have no layout; a constant tile is one number, a splat.
 */
import type { AnyOp, Value } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import type { valueOps } from "../../ir/ops/values.ts";
import { registersPerLane, splat } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { costs } from "../model/cost.ts";
import type { LayoutContext, Rule } from "./context.ts";
import type { RegisterSlot } from "./statements.ts";

export type Rules<Table> = { readonly [K in keyof Table & AnyOp["kind"]]: Rule<K> };

/** Computing what is held there, once for each register. */
export function priceElements(op: AnyOp, slot: RegisterSlot, context: LayoutContext): void {
  const { shape } = slot;
  context.price([slot], `elements ${shape.join()}`, op, `elements of ${opName(op)}`, () => {
    return (layout: RegisterLayout) => costs.element * registersPerLane(layout, shape);
  });
}

/** One slot for the results, to which the operands are converted. */
export function pointwise(op: AnyOp, operands: readonly Value[], context: LayoutContext): void {
  const slot = context.define(op, op.results[0], { splat: "maybe" });
  if (slot === undefined) return;
  for (const operand of operands) context.read(op, operand, { kind: "slot", slot });
  priceElements(op, slot, context);
}

const uniform = (): void => undefined;

/** One number everywhere. */
export function uniformTile(op: AnyOp, context: LayoutContext): void {
  const slot = context.define(op, op.results[0], { splat: "always" });
  if (slot !== undefined) context.propose(slot, "memory", [splat]);
}

export const valueRules: Rules<typeof valueOps> = {
  constant: uniformTile,
  block_index: uniform,
  grid_size: uniform,
  cluster_rank: uniform,
  thread_index: uniform,
  size: uniform,

  iota(op, context) {
    const slot = context.define(op, op.results[0]);
    if (slot !== undefined) priceElements(op, slot, context);
  },

  unary: (op, context) => {
    pointwise(op, [op.operands.source], context);
  },
  classify: (op, context) => {
    pointwise(op, [op.operands.source], context);
  },
  binary: (op, context) => {
    pointwise(op, [op.operands.left, op.operands.right], context);
  },
  compare: (op, context) => {
    pointwise(op, [op.operands.left, op.operands.right], context);
  },
  fma: (op, context) => {
    pointwise(op, [op.operands.a, op.operands.b, op.operands.c], context);
  },
  select: (op, context) => {
    const { condition, ifTrue, ifFalse } = op.operands;
    pointwise(op, [condition, ifTrue, ifFalse], context);
  },
  cast: (op, context) => {
    pointwise(op, [op.operands.source], context);
  },
  bitcast: (op, context) => {
    pointwise(op, [op.operands.source], context);
  },
};
