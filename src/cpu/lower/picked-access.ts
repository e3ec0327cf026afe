/**
 * Elements of a window that indices or a mask pick. Where all four lanes are of one row, which is so where the indices are the same along the
 * vector and the axis that the vector runs along is not indexed, they lie side by side, and the row is looked up before the innermost loop:
 *
 *   x.at(rows)      rows: [8], x: [10000, 128]      a row of 128 after the other, in whole vectors
 *   x.at(places)    places: [8, 128]                each lane by itself
 */
import type { Value } from "../../ir/node.ts";
import { bool } from "../../formats/dtype.ts";
import { gatheredShape } from "../../ir/indexed.ts";
import type { AccessOp } from "../../ir/indexed.ts";
import { i32, op as operation } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import { both, expressionOf } from "./held.ts";
import type { Bounds, HeldRef } from "./held.ts";
import { laneCount, laneScalar, slotShift, splatLanes, vectorOf } from "./lanes.ts";
import type { Lanes } from "./lanes.ts";
import { shapeOf } from "./lazy.ts";
import { origin, vectorAxis } from "./position.ts";
import type { Coordinate, Position } from "./position.ts";
import {
  inRange,
  isDense,
  nibble,
  wholeRow,
  wideWithin,
  windowAccess,
  windowBase,
} from "./window-access.ts";
import type { AccessedElements, LaneAccess, LanePlace } from "./window-access.ts";

/** What a mask says of the elements at a position. */
function maskAt(elements: AccessedElements, where: Value, position: Position): Lanes {
  return where.type.kind === "tile"
    ? elements.evaluate(where, repeated(where, position))
    : splatLanes(elements.prologue, bool, elements.lowering.scalar(where));
}

/** What the lanes of an access are found by. */
interface Picks {
  readonly op: AccessOp;
  readonly ref: HeldRef;
  readonly position: Position;
  readonly picked: readonly Lanes[];
  readonly mask: Lanes | undefined;
}

/** Elements that indices or a mask pick. */
export function pickedAccess(
  elements: AccessedElements,
  op: AccessOp,
  ref: HeldRef,
  position: Position,
): LaneAccess {
  const { indices, where } = op.operands;
  const mask = where === undefined ? undefined : maskAt(elements, where, position);
  const places = gatheredShape(op).indexAxes.map((own) => position[own] ?? origin);
  const picked = indices.map((value) => elements.evaluate(value, repeated(value, places)));
  const picks: Picks = { op, ref, position, picked, mask };
  const row = rowAccess(elements, picks);
  if (row !== undefined) return row;
  const base = windowBase(elements.prologue, ref);
  const lanes = pickedLanes(elements, picks, base);
  if (indices.length > 0 || vectorAxis(position) < 0 || mask === undefined)
    return { address: base, wide: undefined, lanes };
  // A mask alone leaves whole vectors where it is set throughout.
  const whole = windowAccess(elements, ref, position, undefined);
  if (whole.wide === undefined) return { ...whole, lanes };
  const outer = elements.builderAt(position);
  const all = outer.keep(operation("i32x4.all_true", vectorOf(mask)));
  return {
    address: whole.address,
    wide: whole.wide === true ? all : (both(outer, whole.wide, all) ?? all),
    lanes,
  };
}

/** Each lane has a place of its own. */
function pickedLanes(
  elements: AccessedElements,
  { op, ref, position, picked, mask }: Picks,
  base: Expression,
): readonly LanePlace[] {
  const { lowering, extent } = elements;
  const { axisOf } = gatheredShape(op);
  const along = position[vectorAxis(position)];
  const fault = op.operands.indices.length === 0 ? 0 : indexFault(elements, op, ref);
  const order = op.attributes.indexed ?? [];
  return Array.from({ length: laneCount }, (_, lane): LanePlace => {
    /** The index along an axis of the window. */
    const indexAt = (b: FunctionBuilder, own: number): Expression => {
      const from = axisOf[own];
      if (from !== undefined) {
        const coordinate = position[from] ?? origin;
        return coordinate.vector ? b.keep(i32.add(coordinate.at, i32.of(lane))) : coordinate.at;
      }
      const tile = picked[order.indexOf(own)];
      if (tile === undefined) throw new Error("an axis without its index");
      const scalar = laneScalar(tile, lane);
      return b.keep(scalar.type === "i64" ? narrowIndex(b, scalar) : scalar, "index");
    };
    return {
      index: lane,
      isIn: (b) => {
        const there =
          along === undefined || extent % laneCount === 0 || lane === 0
            ? undefined
            : b.keep(operation("i32.lt_s", i32.add(along.at, i32.of(lane)), i32.of(extent)));
        const chosen = mask === undefined ? undefined : b.keep(laneScalar(mask, lane));
        let isIn = both(b, there, chosen);
        ref.sizes.forEach((size, own) => {
          const index = indexAt(b, own);
          if (axisOf[own] === undefined) {
            const good = b.keep(operation("i32.lt_u", index, expressionOf(size)));
            const bad = operation("i32.eqz", good);
            lowering.noteFault(
              b,
              isIn === undefined ? bad : operation("i32.and", isIn, bad),
              fault,
            );
            isIn = both(b, isIn, good);
          }
          const bounds = ref.bounds[own];
          if (bounds !== undefined)
            isIn = both(b, isIn, inRange(b, index, bounds.lower, bounds.upper));
        });
        return isIn;
      },
      place: (b) => {
        let offset: Expression = i32.of(0);
        ref.strides.forEach((stride, own) => {
          offset = i32.add(offset, i32.mul(indexAt(b, own), expressionOf(stride)));
        });
        const at = b.keep(
          i32.add(
            base,
            i32.mul(b.keep(offset), i32.of(ref.packed ? 1 : 2 ** slotShift(ref.dtype))),
          ),
        );
        return ref.packed ? nibble(b, ref, at) : { address: at };
      },
    };
  });
}

/** The access to four neighbours of one row; undefined where lanes may be of several. */
function rowAccess(
  elements: AccessedElements,
  { op, ref, position, picked, mask }: Picks,
): LaneAccess | undefined {
  const { lowering, prologue, body, extent } = elements;
  const { indices, where } = op.operands;
  const { indexAxes, axisOf } = gatheredShape(op);
  const axis = vectorAxis(position);
  const along = position[axis];
  const own = axisOf.indexOf(axis);
  const isAlike = (value: Value): boolean =>
    value.type.kind === "scalar" || shapeOf(value)[axis] === 1;
  if (indices.length === 0 || along === undefined || own < 0 || !isDense(ref, own))
    return undefined;
  if (indexAxes.includes(axis) || (where !== undefined && !isAlike(where))) return undefined;
  const others = position.filter((_, other) => other !== axis);
  const isFixed = others.every(({ inner }) => !inner);
  const b = isFixed ? prologue : body;
  const order = op.attributes.indexed ?? [];
  let isIn = mask === undefined ? undefined : b.keep(laneScalar(mask, 0));
  let offset: Expression = i32.of(0);
  ref.sizes.forEach((size, each) => {
    if (each === own) return;
    const from = axisOf[each];
    const tile = picked[order.indexOf(each)];
    let index = from === undefined ? undefined : (position[from] ?? origin).at;
    if (index === undefined) {
      if (tile === undefined) throw new Error("an axis without its index");
      const scalar = laneScalar(tile, 0);
      index = b.keep(scalar.type === "i64" ? narrowIndex(b, scalar) : scalar, "index");
      const good = b.keep(operation("i32.lt_u", index, expressionOf(size)));
      // Known to hold whole rows, they have been looked at before.
      if (!elements.isInside) {
        const bad = operation("i32.eqz", good);
        const isBad = isIn === undefined ? bad : operation("i32.and", isIn, bad);
        lowering.noteFault(b, isBad, indexFault(elements, op, ref));
      }
      isIn = both(b, isIn, good);
    }
    const bounds = ref.bounds[each];
    if (bounds !== undefined) isIn = both(b, isIn, inRange(b, index, bounds.lower, bounds.upper));
    const stride = expressionOf(ref.strides[each] ?? 0);
    offset = i32.add(offset, i32.mul(index, stride));
  });
  const shift = slotShift(ref.dtype);
  const row = b.keep(
    i32.add(windowBase(prologue, ref), i32.mul(b.keep(offset), i32.of(2 ** shift))),
    "row",
  );
  const at = elements.builderAt(position);
  const address = at.keep(i32.add(row, i32.mul(along.at, i32.of(2 ** shift))), "at");
  const bounds = ref.bounds[own];
  const lanes = rowLanes(elements, { along, address, bytes: 2 ** shift, bounds, isIn });
  if (along.inner && isFixed) {
    if (elements.isInside) return { address, wide: true, lanes };
    const inside = both(prologue, isIn, wholeRow(prologue, bounds, extent));
    if (inside !== undefined) elements.insideConditions.push(inside);
  }
  return { address, wide: wideWithin(at, isIn, bounds, along.at) ?? true, lanes };
}

interface Row {
  readonly along: Coordinate;
  readonly address: Expression;
  /** Of an element. */
  readonly bytes: number;
  readonly bounds: Bounds | undefined;
  readonly isIn: Expression | undefined;
}

/** The lanes of a row at its ends. */
function rowLanes(
  { extent }: AccessedElements,
  { along, address, bytes, bounds, isIn }: Row,
): readonly LanePlace[] {
  return Array.from({ length: laneCount }, (_, index): LanePlace => ({
    index,
    isIn: (b) => {
      const place = b.keep(i32.add(along.at, i32.of(index)));
      const inside =
        bounds === undefined ? undefined : inRange(b, place, bounds.lower, bounds.upper);
      const there =
        extent % laneCount === 0 || index === 0
          ? undefined
          : b.keep(operation("i32.lt_s", place, i32.of(extent)));
      return both(b, isIn, both(b, inside, there));
    },
    place: (b) => ({ address: b.keep(i32.add(address, i32.of(index * bytes))) }),
  }));
}

/** An index of 64 bits as one of 32, −1 where it does not fit. */
function narrowIndex(b: FunctionBuilder, index: Expression): Expression {
  const wide = b.keep(index);
  return {
    form: "select",
    type: "i32",
    condition: operation("i64.lt_u", wide, { form: "constant", type: "i64", value: 2n ** 31n }),
    ifTrue: operation("i32.wrap_i64", wide),
    ifFalse: i32.of(-1),
  };
}

/** The position in a tile that is repeated over another: axes of extent 1 stay at 0. */
function repeated(value: Value, position: Position): Position {
  return shapeOf(value).map((extent, axis) => (extent === 1 ? origin : (position[axis] ?? origin)));
}

/** The fault of an index outside of its axis. */
function indexFault({ lowering }: AccessedElements, op: AccessOp, ref: HeldRef): number {
  return lowering.fault("bounds", `an index outside of ${ref.name}`, op.location);
}
