/**
 * Loads from windows inside of loops.
 *
 *   whole vectors    where all four lanes are in bounds and lie side by side
 *   lane by lane     at borders, through strides, of packed formats, and where indices or a mask pick elements
 */
import type { Op } from "../../ir/node.ts";
import type { AccessOp } from "../../ir/indexed.ts";
import { i32, load, op as operation, read } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression, Local } from "../loops/ir.ts";
import type { HeldRef } from "./held.ts";
import { pickedAccess } from "./picked-access.ts";
import { vectorAxis } from "./position.ts";
import type { Position } from "./position.ts";
import {
  constantScalar,
  lanesOfScalars,
  laneScalar,
  loadLanes,
  loadScalar,
  splatLanes,
} from "./lanes.ts";
import type { Lanes } from "./lanes.ts";
import { windowAccess } from "./window-access.ts";
import type { AccessedElements, LaneAccess, LanePlace } from "./window-access.ts";

/** Where the access of an op reaches, at a position of its tile. */
export function laneAccess(
  elements: AccessedElements,
  op: AccessOp,
  position: Position,
): LaneAccess {
  const ref = elements.lowering.ref(op.operands.ref);
  const { indices, where } = op.operands;
  if (indices.length > 0 || where?.type.kind === "tile")
    return pickedAccess(elements, op, ref, position);
  const mask = where === undefined ? undefined : elements.lowering.scalar(where);
  return windowAccess(elements, ref, position, mask);
}

/** The elements that a load reads, with what stands where there is none. */
export function accessLanes(elements: AccessedElements, op: Op<"load">, position: Position): Lanes {
  const ref = elements.lowering.ref(op.operands.ref);
  const { fill } = op.operands;
  const access = laneAccess(elements, op, position);
  return loadAccess(elements, ref, access, position, () =>
    fill === undefined
      ? zeroLanes(elements, ref)
      : elements.evaluate(fill, fill.type.kind === "tile" ? position : []),
  );
}

function zeroLanes({ prologue }: AccessedElements, { dtype }: HeldRef): Lanes {
  return splatLanes(prologue, dtype, constantScalar(dtype, zeroOf(dtype.name)));
}

/** The elements of a whole window, with a number where there is none. */
export function windowLanes(
  elements: AccessedElements,
  ref: HeldRef,
  position: Position,
  fill?: number | bigint,
): Lanes {
  const access = windowAccess(elements, ref, position, undefined);
  return loadAccess(elements, ref, access, position, () =>
    fill === undefined
      ? zeroLanes(elements, ref)
      : splatLanes(elements.prologue, ref.dtype, constantScalar(ref.dtype, fill)),
  );
}

function loadAccess(
  elements: AccessedElements,
  ref: HeldRef,
  access: LaneAccess,
  position: Position,
  fill: () => Lanes,
): Lanes {
  const { dtype } = ref;
  const b = elements.builderAt(position);
  if (access.wide === true) return loadLanes(b, dtype, access.address);
  const filled = fill();
  const [first] = access.lanes;
  if (vectorAxis(position) < 0 && first !== undefined)
    return splatLanes(b, dtype, loadPlace(b, ref, first, filled));
  const results = filled.parts.map(() => b.local("v128", "loaded"));
  const set = (lanes: Lanes): void =>
    results.forEach((local, half) => {
      const part = lanes.parts[half];
      if (part !== undefined) b.set(local, part);
    });
  const byLane = (): void => {
    const scalars = access.lanes.map((place) => loadPlace(b, ref, place, filled));
    set(lanesOfScalars(b, dtype, scalars));
  };
  if (access.wide === undefined) byLane();
  else b.if(access.wide, () => set(loadLanes(b, dtype, access.address)), byLane);
  return { dtype, parts: results.map(read) };
}

export function zeroOf(name: string): number | bigint {
  return name === "i64" || name === "u64" ? 0n : 0;
}

/** The element of one lane, or its fill. */
function loadPlace(b: FunctionBuilder, ref: HeldRef, place: LanePlace, filled: Lanes): Expression {
  const { dtype } = ref;
  const value = (builder: FunctionBuilder): Expression => {
    const { address, half } = place.place(builder);
    return half === undefined ? loadScalar(dtype, address) : loadNibble(ref, address, half);
  };
  const isIn = place.isIn(b);
  if (isIn === undefined) return b.keep(value(b));
  const result: Local = b.variable(laneScalar(filled, place.index), "element");
  b.if(isIn, () => b.set(result, value(b)));
  return read(result);
}

function loadNibble({ dtype }: HeldRef, address: Expression, half: Expression): Expression {
  const byte = load("i32.load8_u", address);
  const shifted = operation("i32.shr_u", byte, operation("i32.shl", half, i32.of(2)));
  const bits = operation("i32.and", shifted, i32.of(15));
  if (dtype.kind !== "signed") return bits;
  return operation("i32.shr_s", operation("i32.shl", bits, i32.of(28)), i32.of(28));
}
