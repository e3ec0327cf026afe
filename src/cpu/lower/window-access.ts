/**
 * Where the elements of a window lie, four at a time: side by side where the window's last axis is dense and in bounds, else a lane at a place of
 * its own.
 */
import { i32, op as operation } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import { both, expressionOf, mulExtents } from "./held.ts";
import type { Bounds, Extent, HeldRef } from "./held.ts";
import { laneCount, slotShift } from "./lanes.ts";
import type { Lanes } from "./lanes.ts";
import type { Lowering } from "./lowering.ts";
import type { Value } from "../../ir/node.ts";
import { vectorAxis } from "./position.ts";
import type { Position } from "./position.ts";

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

/** Whether an index lies in bounds. */
export function inRange(
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
  return { address, wide: wideWithin(b, rows, bounds, along.at) ?? true, lanes };
}

/** Whether four elements from `at` on are all accessed; undefined is always. */
export function wideWithin(
  b: FunctionBuilder,
  rows: Expression | undefined,
  bounds: Bounds | undefined,
  at: Expression,
): Expression | undefined {
  if (bounds === undefined) return rows;
  const { lower, upper } = bounds;
  const begins =
    lower === 0 ? rows : both(b, rows, b.keep(operation("i32.ge_s", at, expressionOf(lower))));
  const last = b.keep(i32.add(at, i32.of(laneCount)));
  return both(b, begins, b.keep(operation("i32.le_s", last, expressionOf(upper))));
}

/** Whether a row of so many elements lies within bounds; undefined where there are none. */
export function wholeRow(
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
export function nibble(b: FunctionBuilder, ref: HeldRef, element: Expression) {
  return {
    address: b.keep(i32.add(ref.base, operation("i32.shr_u", element, i32.of(1)))),
    half: b.keep(operation("i32.and", element, i32.of(1))),
  };
}
