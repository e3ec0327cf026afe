/**
 * Ops that rearrange tiles or combine their elements. Elements stay in their lanes: the result lies where
 * a function of the operand's layout says, and a value that lies elsewhere is converted before.
 */
import type { AnyOp, Op, Value } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import type { tileOps } from "../../ir/ops/tiles.ts";
import { typeText } from "../../ir/types.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { mmaFragment, mmaScales, wgmmaAccumulator, wgmmaLeft } from "../algebra/named-layouts.ts";
import { fitsShape, replicatedLayout } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import { parseLayout } from "../algebra/parse-layout.ts";
import { combineCost, costs } from "../model/cost.ts";
import type { TileFunction } from "../model/layout-functions.ts";
import { mmaBits, operandProblem, tileOf } from "../model/product-instructions.ts";
import { typeKey } from "./context.ts";
import type { LayoutContext } from "./context.ts";
import type { RegisterVariable } from "./statements.ts";
import { priceElements, uniformTile } from "./values.ts";
import type { Rules } from "./values.ts";
import { isInFlight, productInstructions } from "../../targets/product-instructions.ts";

/** The result is the image of the operand. */
function rearranged(
  op: AnyOp,
  source: Value,
  layoutFunction: TileFunction,
  context: LayoutContext,
): void {
  const operand = context.operand(op, source, { splat: "maybe" });
  const result = context.define(op, op.results[0], { splat: "maybe" });
  if (operand !== undefined && result !== undefined)
    context.image(op, operand, layoutFunction, result);
}

function broadcast(op: Op<"broadcast">, context: LayoutContext): void {
  const { source } = op.operands;
  const { shape, axes } = op.attributes;
  if (source.type.kind !== "tile") {
    uniformTile(op, context);
    return;
  }
  const variable = context.define(op, op.results[0], { splat: "maybe" });
  if (variable === undefined) return;
  const spread = { from: source.type.shape, to: shape, axes };
  const layoutFunction = context.surroundings.functions.repeat(spread);
  context.read(op, source, { kind: "image", function: layoutFunction, variable });
}

/**
 * What a layoutCast speaks of: the tile itself; of one number everywhere, a copy that is spread out. What is
 * left of a reduction is small, so that it is a copy too: bound to the tile itself, the stated layout would have
 * to be that of the large operand. A tile that already lies as another layoutCast says has a second place, and
 * convertLayout always speaks of a copy.
 */
function pinnedVariable(
  op: Op<"layout_cast">,
  stated: RegisterLayout,
  context: LayoutContext,
): RegisterVariable | undefined {
  const { source } = op.operands;
  const [result] = op.results;
  const variable = context.find(source);
  if (variable !== undefined && !speaksOfCopy(op, variable, stated, context)) {
    context.share(result, variable);
    return variable;
  }
  const copy = context.define(op, result, { splat: "maybe" });
  if (copy !== undefined) context.read(op, source, { kind: "variable", variable: copy });
  return copy;
}

function speaksOfCopy(
  op: Op<"layout_cast">,
  variable: RegisterVariable,
  stated: RegisterLayout,
  context: LayoutContext,
): boolean {
  const { source } = op.operands;
  const { hint, convert } = op.attributes;
  if (variable.splat === "always" || convert === true) return true;
  const { windows, converted } = context.surroundings;
  const made = windows.definitions.get(source)?.kind;
  if ((made === "reduce" || made === "arg_reduce") && stated.kind !== "splat") return true;
  if (hint === true || !fitsShape(stated, variable.shape)) return false;
  const layout = context.surroundings.functions.normal(stated, variable.shape);
  const pinned = context.pinnedByUser(variable);
  if (pinned !== undefined && pinned.text !== layout.text) return true;
  return op.results.some((result) => converted?.has(result) === true);
}

/** A hint: the layout is tried, and any other one costs more. */
function preferLayout(
  op: Op<"layout_cast">,
  variable: RegisterVariable,
  preferred: RegisterLayout,
  context: LayoutContext,
): void {
  context.propose(variable, "pin", [preferred]);
  const key = `hint ${preferred.text} of ${variable.shape.join()}`;
  context.price([variable], key, op, `a hint for ${variable.label}`, () => (layout) => {
    return layout.text === preferred.text ? 0 : costs.hint;
  });
}

/** The tile under its stated layout; what was stated must be able to hold it. */
function layoutCast(op: Op<"layout_cast">, context: LayoutContext): void {
  const { source } = op.operands;
  const stated = parseLayout(op.attributes.layout);
  const made = context.find(source);
  const variable = pinnedVariable(op, stated, context);
  if (variable === undefined || made === undefined) return;
  if (!fitsShape(stated, variable.shape)) {
    throw new TilewrightError({
      code: "TW6102",
      message: `${stated.text} spreads more axes than ${typeText(source.type)} has`,
      location: op.location,
      expected: `a layout of at most ${variable.shape.length} axes`,
      found: `${stated.text}, for ${stated.kind === "splat" ? 0 : stated.axes.length} axes`,
      notes: [{ message: `${made.label} is made here`, location: made.location }],
    });
  }
  const layout = context.surroundings.functions.normal(stated, variable.shape);
  if (op.attributes.hint === true) return preferLayout(op, variable, layout, context);
  context.pin(variable, layout, {
    op,
    message: `${opName(op)} says that ${variable.label} lies as ${op.attributes.layout}`,
    pinned: true,
    relax: `remove this ${opName(op)}`,
  });
}

function concatenate(op: Op<"concatenate">, context: LayoutContext): void {
  const variable = context.define(op, op.results[0]);
  if (variable === undefined) return;
  let start = 0;
  for (const part of op.operands.parts) {
    const { shape } = tileOf(part);
    const starts = shape.map((_, axis) => (axis === op.attributes.axis ? start : 0));
    const layoutFunction = context.surroundings.functions.slice(variable.shape, starts, shape);
    context.read(op, part, { kind: "image", function: layoutFunction, variable });
    start += shape[op.attributes.axis] ?? 0;
  }
}

function priceCombining(
  op: AnyOp,
  variable: RegisterVariable,
  axes: readonly number[],
  context: LayoutContext,
): void {
  const key = `combine ${typeKey(variable)} over ${axes.join()}`;
  context.price([variable], key, op, `combining for ${opName(op)}`, () => {
    const { shape, dtype } = variable;
    return (layout: RegisterLayout) => combineCost(layout, shape, axes, dtype.bits);
  });
}

/** Axes that disappear; all of them where the result is a scalar. */
function reduced(
  op: Op<"reduce"> | Op<"arg_reduce">,
  axes: readonly number[],
  context: LayoutContext,
): void {
  const { source } = op.operands;
  const operand = context.operand(op, source);
  if (operand === undefined) return;
  priceCombining(op, operand, axes, context);
  const result = context.define(op, op.results[0]);
  if (result === undefined) return;
  context.image(op, operand, context.surroundings.functions.reduce(operand.shape, axes), result);
}

/** Keys, payloads and results lie alike, and lanes exchange along the axis. */
function alongAxis(
  op: Op<"scan"> | Op<"sort">,
  operands: readonly Value[],
  context: LayoutContext,
): void {
  const variable = context.define(op, op.results[0]);
  if (variable === undefined) return;
  for (const operand of operands) context.read(op, operand, { kind: "variable", variable });
  for (const result of op.results.slice(1)) context.share(result, variable);
  priceCombining(op, variable, [op.attributes.axis], context);
}

function dot(op: Op<"dot">, context: LayoutContext): void {
  const { left, right, accumulator } = op.operands;
  const { instruction, warps: [rows = 1, columns = 1] = [] } = op.attributes;
  const variable = context.define(op, op.results[0]);
  if (variable === undefined) return;
  const fix = (layout: RegisterLayout, what: string): void => {
    fixResult(op, variable, layout, what, context);
  };
  const need = (value: Value, layout: RegisterLayout, what: string): void => {
    fixOperand(op, value, layout, what, context);
  };
  if (isInFlight(instruction)) {
    fix(wgmmaAccumulator(context.warps), "wgmma accumulates");
    requireOperand(op, right, "right", context);
    if (left.type.kind === "ref") requireOperand(op, left, "left", context);
    else {
      const layout = wgmmaLeft(tileOf(left).dtype.bits, context.warps);
      need(left, layout, "wgmma reads its left operand");
    }
  } else if (instruction === "mma.sync") {
    const fragment = (operand: "left" | "right" | "accumulator"): RegisterLayout =>
      mmaFragment(operand, mmaBits(op), { rows, columns });
    fix(fragment("accumulator"), "mma.sync accumulates");
    need(left, fragment("left"), "mma.sync reads its left operand");
    need(right, fragment("right"), "mma.sync reads its right operand");
  } else {
    const k = tileOf(left).shape[1] ?? 1;
    const { functions } = context.surroundings;
    for (const [side, value] of [
      ["left", left],
      ["right", right],
    ] as const)
      context.read(op, value, {
        kind: "image",
        function: functions.factor(side, variable.shape, k),
        variable,
      });
    priceElements(op, variable, context);
  }
  if (accumulator !== undefined) context.read(op, accumulator, { kind: "variable", variable });
}

function scaledDot(op: Op<"scaled_dot">, context: LayoutContext): void {
  const { left, right, leftScales, rightScales, accumulator } = op.operands;
  const { warps: [rows = 1, columns = 1] = [] } = op.attributes;
  const variable = context.define(op, op.results[0]);
  if (variable === undefined) return;
  const grid = { rows, columns };
  const { bits } = tileOf(left).dtype;
  const what = "mma.sync with scales";
  fixResult(op, variable, mmaFragment("accumulator", bits, grid), `${what} accumulates`, context);
  const need = (value: Value, layout: RegisterLayout): void => {
    fixOperand(op, value, layout, `${what} reads`, context);
  };
  need(left, mmaFragment("left", bits, grid));
  need(right, mmaFragment("right", bits, grid));
  need(leftScales, mmaScales("left", grid));
  need(rightScales, mmaScales("right", grid));
  if (accumulator !== undefined) context.read(op, accumulator, { kind: "variable", variable });
}

/** The instruction's own layout of the result. */
export function fixResult(
  op: AnyOp,
  variable: RegisterVariable,
  layout: RegisterLayout,
  what: string,
  context: LayoutContext,
): void {
  const normal = context.surroundings.functions.normal(layout, variable.shape);
  context.pin(variable, normal, { op, message: `${what} in ${layout.text}` });
}

/** The instruction's own layout of an operand. */
export function fixOperand(
  op: AnyOp,
  value: Value,
  layout: RegisterLayout,
  what: string,
  context: LayoutContext,
): void {
  const normal = context.surroundings.functions.normal(layout, tileOf(value).shape);
  context.read(op, value, { kind: "fixed", layout: normal }, what);
}

/** The window must be stored in a form that wgmma reads, or tcgen05, whose instructions have so many `rows`. */
export function requireOperand(
  op: AnyOp,
  ref: Value,
  side: "left" | "right",
  context: LayoutContext,
  rows?: number,
): void {
  const window = context.surroundings.windows.of(ref);
  if (window.space === "gmem") throw new Error("tensor cores read shared memory");
  const name = rows === undefined ? productInstructions.wgmma.name : opName(op);
  const variable = context.allocation(window);
  const reason = {
    op,
    message: `${name} reads its ${side} operand from ${variable.label}`,
    relax: `let ${name} read its ${side} operand from a buffer of its own instead of ${variable.label}`,
  };
  const { warps } = context;
  context.require([variable], `${name} ${side} ${window.text}`, reason, () => {
    return (layout: SharedLayout) => operandProblem(window, layout, side, warps, rows) ?? true;
  });
}

export const tileRules: Rules<typeof tileOps> = {
  broadcast,

  reshape(op, context) {
    const { source } = op.operands;
    if (source.type.kind === "tile" && op.attributes.shape.length > 0)
      rearranged(
        op,
        source,
        context.surroundings.functions.reshape(source.type.shape, op.attributes.shape),
        context,
      );
    else {
      // The one element of a tile becomes a scalar, which all lanes hold.
      context.read(op, source, { kind: "fixed", layout: replicatedLayout });
      uniformTile(op, context);
    }
  },

  transpose(op, context) {
    const { source } = op.operands;
    const { functions } = context.surroundings;
    const layoutFunction = functions.transpose(tileOf(source).shape, op.attributes.permutation);
    rearranged(op, source, layoutFunction, context);
  },

  layout_cast: layoutCast,

  slice(op, context) {
    const { source } = op.operands;
    const { starts, sizes } = op.attributes;
    const { functions } = context.surroundings;
    rearranged(op, source, functions.slice(tileOf(source).shape, starts, sizes), context);
  },

  concatenate,

  reduce: (op, context) => {
    reduced(op, op.attributes.axes, context);
  },
  arg_reduce: (op, context) => {
    reduced(op, [op.attributes.axis], context);
  },
  scan: (op, context) => {
    alongAxis(op, [op.operands.source], context);
  },
  sort: (op, context) => {
    alongAxis(op, [op.operands.keys, ...op.operands.payloads], context);
  },
  dot,
  scaled_dot: scaledDot,
};
