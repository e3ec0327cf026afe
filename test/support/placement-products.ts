/** Checks that factors and sums of products lie as their instructions have them. */
import type { Op, Value } from "../../src/ir/node.ts";
import * as named from "../../src/layout/algebra/named-layouts.ts";
import { matrixOf } from "../../src/layout/model/product-instructions.ts";
import type { AnyOp } from "../../src/ir/node.ts";
import type { RegisterLayout } from "../../src/layout/algebra/register-layout.ts";
import type { Placement } from "../../src/layout/plan/place.ts";
import { shapeOf } from "./lane-holdings.ts";
import type { Shape } from "./lane-holdings.ts";

interface Spread {
  readonly layout: RegisterLayout;
  readonly shape: Shape;
}

/** What is asked of the checker of a placement. */
export interface ProductChecker {
  readonly placement: Placement;
  readonly warps: number;
  layout(value: Value): RegisterLayout;
  read(op: AnyOp, value: Value): readonly RegisterLayout[];
  available(
    op: AnyOp,
    made: Spread,
    read: Spread,
    sources: (element: number) => readonly number[],
  ): void;
  sameLanes(op: AnyOp, left: RegisterLayout, right: RegisterLayout, shape: Shape): void;
  lies(op: AnyOp, value: Value, wanted: RegisterLayout): void;
  operandLegal(op: AnyOp, ref: Value, side: "left" | "right"): void;
}

function fail(op: AnyOp, message: string): never {
  throw new Error(`${op.kind}: ${message}`);
}

/** Sums are added to what lies as they do. */
function alike(op: Op<"dot"> | Op<"scaled_dot">, checker: ProductChecker): void {
  const { accumulator } = op.operands;
  const [result] = op.results;
  if (accumulator === undefined || result === undefined) return;
  const [layout, shape] = [checker.layout(result), shapeOf(result)];
  for (const read of checker.read(op, accumulator))
    checker.available(op, { layout, shape }, { layout: read, shape }, (element) => [element]);
}

export function scaledDot(op: Op<"scaled_dot">, checker: ProductChecker): void {
  const { left, right, leftScales, rightScales } = op.operands;
  const [result] = op.results;
  const { warps: [rows = 1, columns = 1] = [] } = op.attributes;
  if (result === undefined) return fail(op, "it has no result");
  const { bits } = matrixOf(left).dtype;
  const grid = { rows, columns };
  alike(op, checker);
  const made = named.mmaFragment("accumulator", bits, grid);
  checker.sameLanes(op, checker.layout(result), made, shapeOf(result));
  checker.lies(op, left, named.mmaFragment("left", bits, grid));
  checker.lies(op, right, named.mmaFragment("right", bits, grid));
  checker.lies(op, leftScales, named.mmaScales("left", grid));
  checker.lies(op, rightScales, named.mmaScales("right", grid));
}

export function dot(op: Op<"dot">, checker: ProductChecker): void {
  const chosen = checker.placement.products.get(op);
  const { left, right } = op.operands;
  const [result] = op.results;
  if (chosen === undefined || result === undefined) return fail(op, "no instruction is chosen");
  const layout = checker.layout(result);
  const shape = shapeOf(result);
  const { bits } = matrixOf(left).dtype;
  alike(op, checker);
  if (chosen.instruction === "wgmma") {
    checker.sameLanes(op, layout, named.wgmmaAccumulator(checker.warps), shape);
    checker.operandLegal(op, right, "right");
    if (chosen.reads.includes("left")) checker.operandLegal(op, left, "left");
    else checker.lies(op, left, named.wgmmaLeft(bits, checker.warps));
  } else if (chosen.instruction === "mma.sync") {
    checker.sameLanes(op, layout, named.mmaFragment("accumulator", bits, chosen.warps), shape);
    checker.lies(op, left, named.mmaFragment("left", bits, chosen.warps));
    checker.lies(op, right, named.mmaFragment("right", bits, chosen.warps));
  } else {
    const n = shape[1] ?? 1;
    const k = shapeOf(left)[1] ?? 1;
    const depth = Array.from({ length: k }, (_, index) => index);
    const made = { layout, shape };
    const needs = (value: Value, place: (element: number, each: number) => number): void => {
      const places = (element: number): readonly number[] => depth.map((at) => place(element, at));
      for (const read of checker.read(op, value))
        checker.available(op, made, { layout: read, shape: shapeOf(value) }, places);
    };
    needs(left, (element, each) => Math.floor(element / n) * k + each);
    needs(right, (element, each) => each * n + (element % n));
  }
}
