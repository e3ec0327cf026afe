/**
 * Loads from windows inside of loops, and where the elements of a window lie.
 *
 *   whole vectors    where all four lanes are in bounds and lie side by side
 *   lane by lane     at borders, through strides, of packed formats, and where indices or a mask pick elements
 */
import type { Op, Value } from "../../ir/node.ts";
import { bool } from "../../formats/dtype.ts";
import { gatheredShape } from "../../ir/indexed.ts";
import type { AccessOp } from "../../ir/indexed.ts";
import { i32, load, op as operation, read } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression, Local } from "../loops/ir.ts";
import { both, expressionOf, mulExtents } from "./held.ts";
import type { Bounds, Extent, HeldRef } from "./held.ts";
import { origin, vectorAxis } from "./position.ts";
import type { Position } from "./position.ts";
import {
  constantScalar,
  laneCount,
  lanesOfScalars,
  laneScalar,
  loadLanes,
  loadScalar,
  slotShift,
  splatLanes,
  vectorOf,
} from "./lanes.ts";
import type { Lanes } from "./lanes.ts";
import { shapeOf } from "./lazy.ts";
import type { Lowering } from "./lowering.ts";

/** Whether four neighbours along the axis lie side by side in memory. */
export function isDense({ strides, packed }: HeldRef, axis: number): boolean {
  return strides[axis] === 1 && !packed;
}

/** The elements that one step of a loop accesses: what is the same for all, and what each lane adds. */
export interface LaneAccess {
  /** The address where all lanes are reached from: of whole vectors, the first one's. */
  readonly address: Expression;
  /** An i32 that says whether all four lanes are accessed side by side; undefined where they never are, true always. */
  readonly wide: Expression | true | undefined;
  /** Lanes that are elements of the tile at all. */
  readonly lanes: readonly LanePlace[];
}

export interface LanePlace {
  readonly index: number;
  /** Whether the lane is accessed, computed where it is asked for; undefined is always. */
  readonly isIn: (b: FunctionBuilder) => Expression | undefined;
  /** The address of the element; of packed formats of its byte, whose half `half` names. */
  readonly place: (b: FunctionBuilder) => {
    readonly address: Expression;
    readonly half?: Expression;
  };
}

/** What accesses ask of the elements of a loop, which are computed from what they load. */
export interface AccessedElements {
  readonly lowering: Pick<Lowering, "fault" | "noteFault" | "ref" | "scalar">;
  /** Statements before the innermost loop, and inside of it. */
  readonly prologue: FunctionBuilder;
  readonly body: FunctionBuilder;
  /** Elements along the vector's axis. */
  readonly extent: number;
  /** Whether all windows are known to hold whole rows. */
  readonly isInside: boolean;
  /** What holds, before the innermost loop, where they do. */
  readonly insideConditions: Expression[];
  builderAt(position: Position): FunctionBuilder;
  evaluate(value: Value, position: Position): Lanes;
  address(
    key: string,
    base: () => Expression,
    shift: number,
    strides: readonly (number | Expression)[],
    position: Position,
  ): Expression;
}

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

function inRange(
  b: FunctionBuilder,
  at: Expression,
  lower: Extent,
  upper: Extent,
): Expression | undefined {
  const low = lower === 0 ? undefined : b.keep(operation("i32.ge_s", at, expressionOf(lower)));
  return both(b, low, b.keep(operation("i32.lt_s", at, expressionOf(upper))));
}

/** The key by which addresses of a window are known. */
const refKeys = new WeakMap<HeldRef, string>();
let refCount = 0;

function refKey(ref: HeldRef): string {
  let key = refKeys.get(ref);
  if (key === undefined) {
    refCount += 1;
    key = `ref${refCount}`;
    refKeys.set(ref, key);
  }
  return key;
}

/** The address of the window's first element; of packed formats, the number of its element. */
export function windowBase(b: FunctionBuilder, ref: HeldRef): Expression {
  if (ref.packed) return expressionOf(ref.offset);
  const bytes = mulExtents(b, ref.offset, 2 ** slotShift(ref.dtype));
  return b.keep(i32.add(ref.base, expressionOf(bytes)), "window");
}

export function windowAccess(
  elements: AccessedElements,
  ref: HeldRef,
  position: Position,
  mask: Expression | undefined,
): LaneAccess {
  const { prologue, body, extent } = elements;
  const axis = vectorAxis(position);
  const b = elements.builderAt(position);
  const shift = ref.packed ? 0 : slotShift(ref.dtype);
  let rows: Expression | undefined = mask;
  outerFirst(position).forEach(([{ at, vector, inner }, own]) => {
    const bounds = ref.bounds[own];
    if (bounds === undefined || vector) return;
    const place = inner ? body : prologue;
    rows = both(place, rows, inRange(place, at, bounds.lower, bounds.upper));
  });
  const address = elements.address(
    refKey(ref),
    () => windowBase(prologue, ref),
    shift,
    ref.strides,
    position,
  );
  const along = position[axis];
  const bounds = axis < 0 ? undefined : ref.bounds[axis];
  const stride = axis < 0 ? 0 : (ref.strides[axis] ?? 0);
  const scale =
    typeof stride === "number"
      ? i32.of(stride * 2 ** shift)
      : prologue.keep(i32.mul(stride, i32.of(2 ** shift)), "scale");
  const lanes = Array.from({ length: laneCount }, (_, index): LanePlace => ({
    index,
    isIn: (builder) => {
      if (along === undefined) return rows;
      const at = builder.keep(i32.add(along.at, i32.of(index)));
      const inside =
        bounds === undefined ? undefined : inRange(builder, at, bounds.lower, bounds.upper);
      const there =
        extent % laneCount === 0 || index === 0
          ? undefined
          : builder.keep(operation("i32.lt_s", at, i32.of(extent)));
      return both(builder, rows, both(builder, inside, there));
    },
    place: (builder) => {
      const at = builder.keep(i32.add(address, i32.mul(i32.of(index), scale)));
      return ref.packed ? nibble(builder, ref, at) : { address: at };
    },
  }));
  if (axis < 0 || along === undefined || !isDense(ref, axis))
    return { address, wide: undefined, lanes };
  const uniform = position.every(({ inner, vector }) => vector || !inner);
  if (along.inner && uniform) {
    if (elements.isInside) return { address, wide: true, lanes };
    const whole = wholeRow(prologue, bounds, extent);
    const inside = both(prologue, rows, whole);
    if (inside !== undefined) elements.insideConditions.push(inside);
  }
  let wide = rows;
  if (bounds !== undefined) {
    const last = b.keep(i32.add(along.at, i32.of(laneCount)));
    if (bounds.lower !== 0)
      wide = both(b, wide, b.keep(operation("i32.ge_s", along.at, expressionOf(bounds.lower))));
    wide = both(b, wide, b.keep(operation("i32.le_s", last, expressionOf(bounds.upper))));
  }
  return { address, wide: wide ?? true, lanes };
}

/** Whether a row of so many elements lies within bounds; undefined where there are none. */
function wholeRow(
  b: FunctionBuilder,
  bounds: Bounds | undefined,
  extent: number,
): Expression | undefined {
  if (bounds === undefined) return undefined;
  const { lower, upper } = bounds;
  const begins =
    lower === 0 ? undefined : b.keep(operation("i32.le_s", expressionOf(lower), i32.of(0)));
  return both(b, begins, b.keep(operation("i32.ge_s", expressionOf(upper), i32.of(extent))));
}

/** What is the same in all rounds of the innermost loop is put together before it. */
function outerFirst(position: Position): readonly (readonly [Position[number], number])[] {
  const all = position.map((coordinate, axis) => [coordinate, axis] as const);
  return [...all.filter(([{ inner }]) => !inner), ...all.filter(([{ inner }]) => inner)];
}

/** The byte of an element of 4 bits, and which half of it. */
function nibble(b: FunctionBuilder, ref: HeldRef, element: Expression) {
  return {
    address: b.keep(i32.add(ref.base, operation("i32.shr_u", element, i32.of(1)))),
    half: b.keep(operation("i32.and", element, i32.of(1))),
  };
}

/** What a mask says of the elements at a position. */
function maskAt(elements: AccessedElements, where: Value, position: Position): Lanes {
  return where.type.kind === "tile"
    ? elements.evaluate(where, repeated(where, position))
    : splatLanes(elements.prologue, bool, elements.lowering.scalar(where));
}

/** Elements that indices or a mask pick: each lane has a place of its own. */
function pickedAccess(
  elements: AccessedElements,
  op: AccessOp,
  ref: HeldRef,
  position: Position,
): LaneAccess {
  const { lowering, extent } = elements;
  const { indices, where } = op.operands;
  const { indexAxes, axisOf } = gatheredShape(op);
  const axis = vectorAxis(position);
  const outer = elements.builderAt(position);
  const mask = where === undefined ? undefined : maskAt(elements, where, position);
  const places = indexAxes.map((own) => position[own] ?? origin);
  const picked = indices.map((value) => elements.evaluate(value, repeated(value, places)));
  const along = position[axis];
  const shift = ref.packed ? 0 : slotShift(ref.dtype);
  const base = windowBase(elements.prologue, ref);
  const fault = indices.length === 0 ? 0 : indexFault(elements, op, ref);
  const order = op.attributes.indexed ?? [];
  const lanes = Array.from({ length: laneCount }, (_, lane): LanePlace => {
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
        const at = b.keep(i32.add(base, i32.mul(b.keep(offset), i32.of(2 ** shift))));
        return ref.packed ? nibble(b, ref, at) : { address: at };
      },
    };
  });
  if (indices.length > 0 || axis < 0 || mask === undefined)
    return { address: base, wide: undefined, lanes };
  // A mask alone leaves whole vectors where it is set throughout.
  const whole = windowAccess(elements, ref, position, undefined);
  if (whole.wide === undefined) return { ...whole, lanes };
  const all = outer.keep(operation("i32x4.all_true", vectorOf(mask)));
  return {
    address: whole.address,
    wide: whole.wide === true ? all : (both(outer, whole.wide, all) ?? all),
    lanes,
  };
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
