/**
 * The loops of a root over the elements of a tile: axes that all of its operands can walk as one are joined, the innermost
 * axis goes by four.
 *
 *   [128, 64] of a tile           one loop to 8192 by 4
 *   [128, 64] with [128, 1]       a loop over 128 rows, inside of it one to 64 by 4
 */
import type { Op, Value } from "../../ir/node.ts";
import { ruleOf } from "../../ir/ops.ts";
import type { SomeOpRules } from "../../ir/ops.ts";
import { i32, op as operation, read } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression, Statement } from "../loops/ir.ts";
import { Elements } from "./elements.ts";
import { origin } from "./position.ts";
import type { Coordinate, Position } from "./position.ts";
import type { HeldRef } from "./held.ts";
import { laneCount } from "./lanes.ts";
import { broadcastAxes, elementwise, shapeOf, unitAxes } from "./lazy.ts";
import type { Lowering } from "./lowering.ts";

/** Whether two neighbouring axes of a window are one in memory, and neither has bounds. */
export function joinsInWindow(
  { strides, bounds, sizes }: HeldRef,
  outer: number,
  inner: number,
): boolean {
  const [far, near, size] = [strides[outer], strides[inner], sizes[inner]];
  return (
    typeof far === "number" &&
    typeof near === "number" &&
    typeof size === "number" &&
    far === near * size &&
    bounds[outer] === undefined &&
    bounds[inner] === undefined
  );
}

/** Whether axes `outer` and `inner`, between which all have extent 1, can be walked as one. */
export function joins(lowering: Lowering, value: Value, outer: number, inner: number): boolean {
  const held = lowering.held(value);
  if (held.kind === "scalar" || held.kind === "tile") return true;
  if (held.kind !== "lazy") return false;
  const { op } = held;
  const all = (values: readonly Value[]): boolean =>
    values.every((operand) => joins(lowering, operand, outer, inner));
  const found = elementwise(op);
  if (found !== undefined) return all(found.operands);
  return ruleOf(joinRules, op)?.(op, lowering, outer, inner) ?? false;
}

type Joins = SomeOpRules<[lowering: Lowering, outer: number, inner: number], boolean>;

const joinsSource = (
  { operands }: Op<"layout_cast"> | Op<"convert_layout"> | Op<"assume">,
  lowering: Lowering,
  outer: number,
  inner: number,
): boolean => joins(lowering, operands.source, outer, inner);

const joinRules: Joins = {
  constant: () => true,
  broadcast(op, lowering, outer, inner) {
    const axes = broadcastAxes(op);
    const [far, near] = [axes[outer], axes[inner]];
    if (far === undefined && near === undefined) return true;
    if (far === undefined || near === undefined || far > near) return false;
    return joins(lowering, op.operands.source, far, near);
  },
  reshape(op, lowering, outer, inner) {
    const { source } = op.operands;
    const axes = unitAxes(shapeOf(source), op.attributes.shape);
    if (axes === undefined) return false;
    const [far, near] = [axes.indexOf(outer), axes.indexOf(inner)];
    return far >= 0 && near >= 0 && joins(lowering, source, far, near);
  },
  slice(op, lowering, outer, inner) {
    const { source } = op.operands;
    const { starts, sizes } = op.attributes;
    const from = shapeOf(source);
    const whole = starts[inner] === 0 && sizes[inner] === from[inner];
    const between = from.slice(outer + 1, inner).every((extent) => extent === 1);
    return whole && between && joins(lowering, source, outer, inner);
  },
  layout_cast: joinsSource,
  convert_layout: joinsSource,
  assume: joinsSource,
  optimization_barrier: (op, lowering, outer, inner) =>
    op.operands.values.every((value) => joins(lowering, value, outer, inner)),
  load(op, lowering, outer, inner) {
    const { ref, indices, where, fill } = op.operands;
    if (indices.length > 0) return false;
    const beside = [where, fill].every(
      (value) => value === undefined || joins(lowering, value, outer, inner),
    );
    return beside && joinsInWindow(lowering.ref(ref), outer, inner);
  },
};

/** Axes of a shape that are walked as one; those of extent 1 are in none. */
export function axisGroups(
  shape: readonly number[],
  canJoin: (outer: number, inner: number) => boolean,
): readonly (readonly number[])[] {
  const groups: number[][] = [];
  for (const [axis, extent] of shape.entries()) {
    if (extent === 1) continue;
    const last = groups.at(-1);
    const before = last?.at(-1);
    if (last !== undefined && before !== undefined && canJoin(before, axis)) last.push(axis);
    else groups.push([axis]);
  }
  return groups;
}

export function groupExtent(shape: readonly number[], group: readonly number[]): number {
  return group.reduce((product, axis) => product * (shape[axis] ?? 1), 1);
}

/** The position that has a coordinate for each group, on the group's last axis. */
export function positionOf(
  shape: readonly number[],
  groups: readonly (readonly number[])[],
  coordinates: readonly Coordinate[],
): Position {
  const position: Coordinate[] = shape.map(() => origin);
  groups.forEach((group, index) => {
    const axis = group.at(-1);
    const coordinate = coordinates[index];
    if (axis !== undefined && coordinate !== undefined) position[axis] = coordinate;
  });
  return position;
}

/** A counted loop with a known number of rounds; of one round, none. */
export function rounds(
  b: FunctionBuilder,
  extent: number,
  step: number,
  body: (at: Expression) => void,
): void {
  if (extent <= step) body(i32.of(0));
  else b.countedLoop(i32.of(0), i32.of(extent), step, body);
}

/**
 * The innermost loop, with what is computed before it. Where a row may reach outside of a window there are two: one for rows
 * that lie inside, whose vectors are whole, and one that looks at each vector.
 */
export function innermost(
  lowering: Lowering,
  b: FunctionBuilder,
  extent: number,
  step: number,
  write: (elements: Elements, at: Expression, isLoop: boolean) => void,
): void {
  const prologue = b.fork();
  if (extent <= step) {
    write(new Elements(lowering, prologue, prologue, extent), i32.of(0), false);
    b.append(prologue.statements);
    return;
  }
  const index = b.local("i32", "j");
  const loop = (statements: readonly Statement[]): void => {
    b.set(index, i32.of(0));
    b.loop((again) => {
      b.append(statements);
      b.set(index, i32.add(read(index), i32.of(step)));
      b.branch(again, operation("i32.lt_u", read(index), i32.of(extent)));
    });
  };
  const careful = new Elements(lowering, prologue, b.fork(), extent);
  write(careful, read(index), true);
  b.append(prologue.statements);
  const [first, ...others] = careful.insideConditions;
  if (first === undefined) {
    loop(careful.body.statements);
    return;
  }
  const whole = new Elements(lowering, b.fork(), b.fork(), extent, true);
  write(whole, read(index), true);
  const inside = others.reduce((all, one) => operation("i32.and", all, one), first);
  b.if(
    inside,
    () => {
      b.append(whole.prologue.statements);
      loop(whole.body.statements);
    },
    () => loop(careful.body.statements),
  );
}

/**
 * The loops over all elements of a shape. `body` is called for each form of the innermost one, with what evaluates
 * tiles at the position of its round.
 */
export function overElements(
  lowering: Lowering,
  b: FunctionBuilder,
  shape: readonly number[],
  groups: readonly (readonly number[])[],
  body: (elements: Elements, position: Position) => void,
): void {
  const inner = groups.at(-1);
  const outer = groups.slice(0, -1);
  const extent = inner === undefined ? 1 : groupExtent(shape, inner);
  const coordinates: Coordinate[] = [];
  const nest = (depth: number): void => {
    const group = outer[depth];
    if (group !== undefined) {
      rounds(b, groupExtent(shape, group), 1, (at) => {
        coordinates.push({ at, vector: false, inner: false });
        nest(depth + 1);
        coordinates.pop();
      });
      return;
    }
    innermost(lowering, b, extent, laneCount, (elements, at, isLoop) => {
      const vector: Coordinate = { at, vector: true, inner: isLoop };
      const all = inner === undefined ? coordinates : [...coordinates, vector];
      body(elements, positionOf(shape, groups, all));
    });
  };
  nest(0);
}
