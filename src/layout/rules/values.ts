/**
 * Ops that make values and compute on them element by element: operands and result lie in one variable.
 * Scalars are the same in all lanes and have no layout; a constant tile is one number, a splat.
 */
import type { AnyOp, Op, OpOf, Value } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import type { valueOps } from "../../ir/ops/values.ts";
import { typeText } from "../../ir/types.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { fitsShape, registersPerLane, splat } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { parseLayout } from "../algebra/parse-layout.ts";
import { costs } from "../model/cost.ts";
import { widensHalves } from "../model/layout-functions.ts";
import { tileOf } from "../model/product-instructions.ts";
import type { LayoutContext, Rule } from "./context.ts";
import type { RegisterVariable } from "./statements.ts";

export type Rules<Table> = { readonly [K in keyof Table & AnyOp["kind"]]: Rule<K> };

/** Computing what is held there, once for each register. */
export function priceElements(op: AnyOp, variable: RegisterVariable, context: LayoutContext): void {
  const { shape } = variable;
  context.price([variable], `elements ${shape.join()}`, op, `elements of ${opName(op)}`, () => {
    return (layout: RegisterLayout) => costs.element * registersPerLane(layout, shape);
  });
}

/** One variable for the results, to which the operands are converted. */
export function pointwise(op: AnyOp, operands: readonly Value[], context: LayoutContext): void {
  const variable = context.define(op, op.results[0], { splat: "maybe" });
  if (variable === undefined) return;
  for (const operand of operands) context.read(op, operand, { kind: "variable", variable });
  priceElements(op, variable, context);
}

const uniform = (): void => undefined;

/** One number everywhere. */
export function uniformTile(op: AnyOp, context: LayoutContext): void {
  const variable = context.define(op, op.results[0], { splat: "always" });
  if (variable !== undefined) context.propose(variable, "memory", [splat]);
}

/**
 * Code for each element lies where its results do, all of them in one variable; code for each lane fixes where every
 * tile lies.
 */
function inlinePtx(op: OpOf<"inline_ptx" | "inline_ptx_memory">, context: LayoutContext): void {
  const { sources } = op.operands;
  const { layouts } = op.attributes;
  if (layouts === undefined) {
    pointwise(op, sources, context);
    const variable = op.results[0] && context.find(op.results[0]);
    if (variable !== undefined)
      for (const other of op.results.slice(1)) context.share(other, variable);
    return;
  }
  const normal = (value: Value, position: number): RegisterLayout =>
    context.surroundings.functions.normal(statedLayout(op, value, position), tileOf(value).shape);
  for (const [position, source] of sources.entries())
    if (source.type.kind === "tile")
      context.read(
        op,
        source,
        { kind: "fixed", layout: normal(source, position) },
        "inlinePtx reads an operand",
      );
  for (const [position, result] of op.results.entries()) {
    const variable = context.define(op, result);
    const layout = normal(result, sources.length + position);
    if (variable !== undefined)
      context.pin(variable, layout, { op, message: `inlinePtx leaves a result in ${layout.text}` });
  }
}

/** The layout that the code says a tile has, which must be able to hold it. */
function statedLayout(
  op: OpOf<"inline_ptx" | "inline_ptx_memory">,
  value: Value,
  position: number,
): RegisterLayout {
  const stated = parseLayout(op.attributes.layouts?.[position] ?? "");
  const { shape } = tileOf(value);
  if (fitsShape(stated, shape)) return stated;
  throw new TilewrightError({
    code: "TW6102",
    message: `${stated.text} spreads more axes than ${typeText(value.type)} has`,
    location: op.location,
    expected: `a layout of at most ${shape.length} axes`,
    found: stated.text,
  });
}

/** Operand and result lie alike, but where words of 4 bits are taken apart, which is cheapest by halves. */
function cast(op: Op<"cast">, context: LayoutContext): void {
  const { source } = op.operands;
  if (!widensHalves(op)) return pointwise(op, [source], context);
  const operand = context.operand(op, source, { splat: "maybe" });
  const result = context.define(op, op.results[0], { splat: "maybe" });
  if (operand === undefined || result === undefined) return;
  context.image(op, operand, context.surroundings.functions.widen(operand.shape), result);
  priceElements(op, result, context);
}

export const valueRules: Rules<typeof valueOps> = {
  constant: uniformTile,
  block_index: uniform,
  grid_size: uniform,
  cluster_rank: uniform,
  thread_index: uniform,
  size: uniform,

  iota(op, context) {
    const variable = context.define(op, op.results[0]);
    if (variable !== undefined) priceElements(op, variable, context);
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
  assume: (op, context) => {
    pointwise(op, [op.operands.source], context);
  },
  fma: (op, context) => {
    pointwise(op, [op.operands.a, op.operands.b, op.operands.c], context);
  },
  select: (op, context) => {
    const { condition, ifTrue, ifFalse } = op.operands;
    pointwise(op, [condition, ifTrue, ifFalse], context);
  },
  cast,
  inline_ptx: inlinePtx,
  inline_ptx_memory: inlinePtx,
  is_simulated: uniform,
  optimization_barrier(op, context) {
    for (const [position, value] of op.operands.values.entries()) {
      const variable = context.define(op, op.results[position], { splat: "maybe" });
      if (variable !== undefined) context.read(op, value, { kind: "variable", variable });
    }
  },
  bitcast_width(op, context) {
    const { source } = op.operands;
    const [from, to] = [tileOf(source), op.attributes.dtype];
    const { functions } = context.surroundings;
    if (from.dtype.bits > to.bits) {
      const parts = functions.split(from.shape, from.dtype.bits / to.bits);
      const operand = context.operand(op, source);
      const result = context.define(op, op.results[0]);
      if (operand !== undefined && result !== undefined) context.image(op, operand, parts, result);
      return;
    }
    const variable = context.define(op, op.results[0]);
    if (variable === undefined) return;
    const parts = functions.split(variable.shape, to.bits / from.dtype.bits);
    context.read(op, source, { kind: "image", function: parts, variable });
  },
  bitcast: (op, context) => {
    pointwise(op, [op.operands.source], context);
  },
};
