/** Stores into windows inside of loops, and what atomic updates do to elements one after the other. */
import type { AccessOp } from "../../ir/indexed.ts";
import type { Value } from "../../ir/node.ts";
import { i32, load, op as operation } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import { laneAccess } from "./access.ts";
import type { LaneAccess, LanePlace } from "./window-access.ts";
import { vectorAxis } from "./position.ts";
import type { Elements } from "./elements.ts";
import type { Position } from "./position.ts";
import type { HeldRef } from "./held.ts";
import { laneScalar, storeLanes, storeScalar } from "./lanes.ts";
import type { Lanes } from "./lanes.ts";
import { shapeOf } from "./lazy.ts";
import { axisGroups, joins, joinsInWindow, overElements } from "./loops-of-tiles.ts";
import type { Lowering } from "./lowering.ts";

/** The axes that loops over an access walk as one. */
export function accessGroups(
  lowering: Lowering,
  op: AccessOp,
  shape: readonly number[],
  values: readonly Value[],
): readonly (readonly number[])[] {
  const { ref, indices, where } = op.operands;
  const beside = where === undefined ? values : [...values, where];
  return axisGroups(shape, (outer, inner) => {
    if (indices.length > 0 || !joinsInWindow(lowering.ref(ref), outer, inner)) return false;
    return beside.every((value) => joins(lowering, value, outer, inner));
  });
}

/** Visits each element of an access: `visit` is called once a lane, inside of what tests whether it is accessed. */
export function eachPlace(
  elements: Elements,
  op: AccessOp,
  position: Position,
  visit: (b: FunctionBuilder, place: LanePlace) => void,
): void {
  const b = elements.builderAt(position);
  const { lanes } = laneAccess(elements, op, position);
  const used = vectorAxis(position) < 0 ? lanes.slice(0, 1) : lanes;
  for (const place of used) {
    const isIn = place.isIn(b);
    if (isIn === undefined) visit(b, place);
    else b.if(isIn, () => visit(b, place));
  }
}

/** Stores four elements of the window. */
function storeAt(elements: Elements, op: AccessOp, position: Position, lanes: Lanes): void {
  const ref = elements.lowering.ref(op.operands.ref);
  storeAccess(elements, ref, laneAccess(elements, op, position), position, lanes);
}

/** Stores four elements where an access reaches. */
export function storeAccess(
  elements: Elements,
  ref: HeldRef,
  access: LaneAccess,
  position: Position,
  lanes: Lanes,
): void {
  const b = elements.builderAt(position);
  const used = vectorAxis(position) < 0 ? access.lanes.slice(0, 1) : access.lanes;
  const byLane = (): void => {
    for (const place of used) {
      const isIn = place.isIn(b);
      const store = (): void => storePlace(b, ref, place, laneScalar(lanes, place.index));
      if (isIn === undefined) store();
      else b.if(isIn, store);
    }
  };
  // The last step of a row that is no multiple of four would write behind it.
  const { extent } = elements;
  const whole = extent % 4 === 0;
  if (access.wide === undefined || (!whole && extent < 4)) byLane();
  else if (access.wide === true && whole) storeLanes(b, access.address, lanes);
  else {
    const along = position[vectorAxis(position)];
    const fits =
      whole || along === undefined
        ? undefined
        : operation("i32.le_s", along.at, i32.of(extent - 4));
    const wide = access.wide === true ? undefined : access.wide;
    const condition =
      fits === undefined ? wide : wide === undefined ? fits : operation("i32.and", fits, wide);
    if (condition === undefined) storeLanes(b, access.address, lanes);
    else b.if(condition, () => storeLanes(b, access.address, lanes), byLane);
  }
}

/** Stores one element. */
export function storePlace(
  b: FunctionBuilder,
  { dtype }: HeldRef,
  place: LanePlace,
  value: Expression,
): void {
  const { address, half } = place.place(b);
  if (half === undefined) {
    storeScalar(b, dtype, address, value);
    return;
  }
  const shift = b.keep(operation("i32.shl", half, i32.of(2)));
  const bits = operation("i32.shl", operation("i32.and", value, i32.of(15)), shift);
  const others = operation(
    "i32.and",
    load("i32.load8_u", address),
    operation("i32.xor", operation("i32.shl", i32.of(15), shift), i32.of(255)),
  );
  b.store("i32.store8", address, operation("i32.or", others, bits));
}

/** A loop that stores a tile or a scalar. */
export function storeValue(lowering: Lowering, op: AccessOp, value: Value): void {
  const shape = shapeOf(value);
  const groups = accessGroups(lowering, op, shape, [value]);
  const count = shape.reduce((product, extent) => product * extent, 1);
  lowering.root("store", count, (b) =>
    overElements(lowering, b, shape, groups, (elements, position) =>
      storeAt(elements, op, position, elements.evaluate(value, position)),
    ),
  );
}
