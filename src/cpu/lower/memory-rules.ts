/** Lowering of ops that allocate memory, make windows on it, and move data at once. */
import type { DType } from "../../formats/dtype.ts";
import type { Op } from "../../ir/node.ts";
import type { AccessOp } from "../../ir/indexed.ts";
import { multiplySizes } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import type { memoryOps } from "../../ir/ops/memory.ts";
import { i32, load, op as operation, read } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import type { OpcodeName } from "../wasm/opcodes.ts";
import { accessLanes } from "./access.ts";
import type { LanePlace } from "./window-access.ts";
import { binaryRule } from "./arithmetic.ts";
import { Elements, rowStrides } from "./elements.ts";
import { vectorAxis } from "./position.ts";
import { addExtents, either, expressionOf, extentOf, mulExtents, subExtents } from "./held.ts";
import type { Bounds, Extent, HeldRef } from "./held.ts";
import { laneKind, laneScalar, loadScalar, slotBytes, splatLanes, storeScalar } from "./lanes.ts";
import { countOf, dtypeOf, shapeOf } from "./lazy.ts";
import { overElements } from "./loops-of-tiles.ts";
import type { Lowering } from "./lowering.ts";
import { requireUsable } from "./memory-faults.ts";
import type { LoweringRules } from "./regions.ts";
import { accessGroups, eachPlace, storeValue } from "./store.ts";
import { tileOf } from "./tiles.ts";

/** Row-major strides of extents that may be known at launch alone. */
export function stridesOf(b: FunctionBuilder, sizes: readonly Extent[]): readonly Extent[] {
  const strides: Extent[] = [];
  let stride: Extent = 1;
  for (const size of sizes.toReversed()) {
    strides.unshift(stride);
    stride = mulExtents(b, stride, size);
  }
  return strides;
}

/** The window on a whole array. */
export function wholeRef(
  b: FunctionBuilder,
  array: Pick<HeldRef, "root" | "name" | "dtype" | "base" | "shared">,
  sizes: readonly Extent[],
  strides?: readonly Extent[],
): HeldRef {
  return {
    kind: "ref",
    ...array,
    offset: 0,
    sizes,
    strides: strides ?? stridesOf(b, sizes),
    bounds: sizes.map(() => undefined),
    packed: array.dtype.bits === 4,
    whole: strides === undefined,
    fault: undefined,
  };
}

function bytesOf(dtype: DType, shape: readonly number[]): number {
  const count = shape.reduce((product, extent) => product * extent, 1);
  return Math.ceil((count * dtype.bits) / 8);
}

function clamped(b: FunctionBuilder, index: Extent, size: Extent): Extent {
  if (typeof index === "number" && index <= 0) return 0;
  if (typeof index === "number" && typeof size === "number") return Math.min(index, size);
  const [at, end] = [expressionOf(index), expressionOf(size)];
  const low = b.keep(choose(operation("i32.lt_s", at, i32.of(0)), i32.of(0), at));
  return extentOf(b.keep(choose(operation("i32.gt_s", low, end), end, low)));
}

function choose(condition: Expression, ifTrue: Expression, ifFalse: Expression): Expression {
  return { form: "select", type: "i32", condition, ifTrue, ifFalse };
}

/** The bounds of a window's axis, of the source's and where it begins; undefined where it is known to lie inside. */
function windowBounds(
  b: FunctionBuilder,
  source: HeldRef,
  axis: number,
  start: Extent,
  size: Extent,
): Bounds | undefined {
  const own = source.bounds[axis];
  const lower = own?.lower ?? 0;
  const upper = own?.upper ?? source.sizes[axis] ?? 0;
  if (own === undefined && start === 0 && size === source.sizes[axis]) return undefined;
  if (
    typeof start === "number" &&
    typeof size === "number" &&
    own === undefined &&
    typeof upper === "number"
  )
    if (start >= 0 && start + size <= upper) return undefined;
  return {
    lower: lower === 0 && isCount(start) ? 0 : clamped(b, subExtents(b, lower, start), size),
    upper: clamped(b, subExtents(b, upper, start), size),
  };
}

function isCount(extent: Extent): boolean {
  return typeof extent === "number" && extent >= 0;
}

function sliceRef(op: Op<"slice_ref">, lowering: Lowering): void {
  const { b } = lowering;
  const source = lowering.ref(op.operands.ref);
  const starts = op.operands.offsets.map((value) => lowering.index(value));
  const sizes = op.attributes.sizes.map((size) => lowering.size(size));
  const { dropped } = op.attributes;
  let { offset, fault } = source;
  const kept: number[] = [];
  const bounds: (Bounds | undefined)[] = [];
  sizes.forEach((size, axis) => {
    const start = starts[axis] ?? 0;
    offset = addExtents(b, offset, mulExtents(b, start, source.strides[axis] ?? 0));
    const isIndex = dropped.includes(axis);
    if (isIndex || source.shared) fault = either(b, fault, outside(b, source, axis, start, size));
    if (isIndex) return;
    kept.push(axis);
    // A window that leaves shared memory is a fault, which nothing is accessed behind.
    bounds.push(source.shared ? undefined : windowBounds(b, source, axis, start, size));
  });
  const [result] = op.results;
  if (result === undefined) throw new Error("slice_ref has no result");
  const wholeAxes =
    source.whole &&
    dropped.length === 0 &&
    starts.every((start) => start === 0) &&
    sizes.every((size, axis) => size === source.sizes[axis]);
  lowering.hold(result, {
    ...source,
    offset,
    sizes: kept.map((axis) => sizes[axis] ?? 1),
    strides: kept.map((axis) => source.strides[axis] ?? 0),
    bounds,
    fault,
    whole: wholeAxes,
  });
}

/** An i32 that says whether a window reaches outside of an axis; undefined where it does not. */
function outside(
  b: FunctionBuilder,
  source: HeldRef,
  axis: number,
  start: Extent,
  size: Extent,
): Expression | undefined {
  const lower = source.bounds[axis]?.lower ?? 0;
  const upper = source.bounds[axis]?.upper ?? source.sizes[axis] ?? 0;
  if ([lower, upper, start, size].every((extent) => typeof extent === "number")) {
    const inside = Number(start) >= Number(lower) && Number(start) + Number(size) <= Number(upper);
    return inside ? undefined : i32.of(1);
  }
  const below = operation("i32.lt_s", expressionOf(start), expressionOf(lower));
  const end = expressionOf(addExtents(b, start, size));
  return b.keep(operation("i32.or", below, operation("i32.gt_s", end, expressionOf(upper))));
}

function transposeRef(op: Op<"transpose_ref">, lowering: Lowering): void {
  const source = lowering.ref(op.operands.ref);
  const { permutation } = op.attributes;
  const pick = <T>(list: readonly T[], otherwise: T): readonly T[] =>
    permutation.map((axis) => list[axis] ?? otherwise);
  const [result] = op.results;
  if (result === undefined) throw new Error("transpose_ref has no result");
  lowering.hold(result, {
    ...source,
    sizes: pick(source.sizes, 1),
    strides: pick(source.strides, 0),
    bounds: permutation.map((axis) => source.bounds[axis]),
    whole: source.whole && permutation.every((axis, own) => axis === own),
  });
}

function reshapeRef(op: Op<"reshape_ref">, lowering: Lowering): void {
  const { b } = lowering;
  const source = lowering.ref(op.operands.ref);
  const sizes = op.attributes.shape.map((size) => lowering.size(size));
  const [result] = op.results;
  if (result === undefined) throw new Error("reshape_ref has no result");
  const strides = source.whole ? stridesOf(b, sizes) : reshapedStrides(source, sizes);
  if (strides === undefined)
    return lowering.refuse(
      op,
      "a window whose elements do not lie at even distances under the new shape",
    );
  lowering.hold(result, { ...source, sizes, strides, bounds: sizes.map(() => undefined) });
}

/** Strides under the new shape, of windows without bounds whose sizes and strides are known or whose new axes have extent 1. */
function reshapedStrides(source: HeldRef, sizes: readonly Extent[]): readonly Extent[] | undefined {
  if (source.bounds.some((bounds) => bounds !== undefined)) return undefined;
  const from = source.sizes.flatMap((size, axis) =>
    size === 1 ? [] : [{ size, stride: source.strides[axis] ?? 0 }],
  );
  const to = sizes.filter((size) => size !== 1);
  if (to.length === from.length && to.every((size, axis) => size === from[axis]?.size)) {
    let next = 0;
    return sizes.map((size) => (size === 1 ? 1 : (from[next++]?.stride ?? 1)));
  }
  const strides: Extent[] = sizes.map(() => 1);
  let next = from.length - 1;
  let axis = sizes.length - 1;
  while (axis >= 0) {
    const inner = from[next];
    if (inner === undefined) return strides;
    let covered = 1;
    let placed = 1;
    while (covered === 1 || covered !== placed) {
      if (covered > placed) {
        const size = sizes[axis];
        if (typeof size !== "number" || typeof inner.stride !== "number") return undefined;
        strides[axis] = inner.stride * placed;
        placed *= size;
        axis -= 1;
        continue;
      }
      const outer = from[next];
      next -= 1;
      if (outer === undefined || typeof outer.size !== "number") return undefined;
      if (typeof inner.stride !== "number" || outer.stride !== inner.stride * covered)
        return undefined;
      covered *= outer.size;
    }
  }
  return strides;
}

/** An array that is chosen by a number. */
function selectRef(op: Op<"select_ref">, lowering: Lowering): void {
  const { b } = lowering;
  const [result] = op.results;
  const arrays = op.operands.refs.map((value) => lowering.ref(value));
  const [first] = arrays;
  if (result === undefined || first === undefined) throw new Error("select_ref of no arrays");
  const index = lowering.scalar(op.operands.index);
  const base = b.variable(first.base, "base");
  arrays
    .slice(1)
    .forEach((array, place) =>
      b.if(operation("i32.eq", index, i32.of(place + 1)), () => b.set(base, array.base)),
    );
  const fault = b.keep(operation("i32.ge_u", index, i32.of(arrays.length)));
  lowering.hold(result, { ...first, root: {}, base: read(base), fault });
}

function scalarAccess(lowering: Lowering, op: AccessOp): void {
  requireUsable(lowering, op, op.operands.ref);
}

function loadScalarOp(op: Op<"load">, lowering: Lowering): void {
  scalarAccess(lowering, op);
  const { b } = lowering;
  const elements = new Elements(lowering, b, b, 1);
  lowering.holdScalar(op.results[0], laneScalar(accessLanes(elements, op, []), 0));
}

/* ---- atomics ---- */

/** Element by element: workers update one at a time by compare and exchange of the word around. */
function update(
  op: Op<"atomic"> | Op<"atomic_compare_exchange">,
  lowering: Lowering,
  change: (
    b: FunctionBuilder,
    old: Expression,
    given: Expression,
    place: LanePlace,
    elements: Elements,
  ) => Expression,
): void {
  requireUsable(lowering, op, op.operands.ref);
  const ref = lowering.ref(op.operands.ref);
  const { dtype } = ref;
  const { value } = op.operands;
  const [result] = op.results;
  if (result === undefined) throw new Error("an update has a result");
  if (!ref.shared) lowering.order = lowering.order === "in order" ? "in order" : "atomic";
  if (ref.packed) lowering.refuse(op, "an atomic update of a packed format");
  const shape = shapeOf(value);
  const given = value.type.kind === "tile" ? tileOf(lowering, value) : undefined;
  const old =
    result.type.kind === "tile"
      ? lowering.allocateTile(result, dtype, shape)
      : lowering.temporaryTile(dtype, shape);
  const groups = accessGroups(lowering, op, shape, []);
  const strides = rowStrides(shape);
  // What is not accessed reads zero.
  const { b: outer } = lowering;
  outer.run(
    operation(
      "memory.fill",
      i32.add(old.base, i32.of(old.offset)),
      i32.of(0),
      i32.of(countOf(value) * slotBytes(dtype)),
    ),
  );
  lowering.root("atomic", countOf(value) * 16, (b) =>
    overElements(lowering, b, shape, groups, (elements, position) =>
      eachPlace(elements, op, position, (builder, place) => {
        const { address } = place.place(builder);
        const axis = vectorAxis(position);
        let flat: Expression = i32.of(0);
        position.forEach(({ at }, own) => {
          flat = i32.add(flat, i32.mul(at, i32.of(strides[own] ?? 0)));
        });
        if (axis >= 0) flat = i32.add(flat, i32.of(place.index * (strides[axis] ?? 1)));
        const slot = builder.keep(i32.mul(flat, i32.of(slotBytes(dtype))), "slot");
        const operand = builder.keep(
          given === undefined
            ? lowering.scalar(value)
            : loadScalar(dtype, i32.add(given.base, slot), given.offset),
        );
        const before = exchange(builder, dtype, address, (current) =>
          change(
            builder,
            current,
            operand,
            { ...place, place: () => ({ address: slot }) },
            elements,
          ),
        );
        storeScalar(builder, dtype, i32.add(old.base, slot), before, old.offset);
      }),
    ),
  );
  if (result.type.kind === "scalar")
    lowering.holdScalar(result, loadScalar(dtype, old.base, old.offset));
}

/** Replaces an element by what is computed of it, again where somebody else was faster; gives the old one. */
function exchange(
  b: FunctionBuilder,
  dtype: DType,
  address: Expression,
  compute: (old: Expression) => Expression,
): Expression {
  const bytes = slotBytes(dtype);
  const kind = laneKind(dtype);
  const wide = bytes === 8;
  const type = wide ? "i64" : "i32";
  const names: { readonly [bytes: number]: readonly [load: OpcodeName, swap: OpcodeName] } = {
    1: ["i32.atomic.load8_u", "i32.atomic.rmw8.cmpxchg_u"],
    2: ["i32.atomic.load16_u", "i32.atomic.rmw16.cmpxchg_u"],
    4: ["i32.atomic.load", "i32.atomic.rmw.cmpxchg"],
    8: ["i64.atomic.load", "i64.atomic.rmw.cmpxchg"],
  };
  const [loads, swaps] = names[bytes] ?? ["i32.atomic.load", "i32.atomic.rmw.cmpxchg"];
  const seen = b.variable(load(loads, address), "seen");
  const old = b.local(kind, "old");
  b.loop((again) => {
    const bits = read(seen);
    const mask = 2 ** dtype.bits - 1;
    const number = (): Expression => {
      if (kind === "f32") return operation("f32.reinterpret_i32", bits);
      if (kind === "f64") return operation("f64.reinterpret_i64", bits);
      if (dtype.kind !== "signed" || bytes >= 4) return bits;
      return operation(bytes === 1 ? "i32.extend8_s" : "i32.extend16_s", bits);
    };
    b.set(old, number());
    const next = b.keep(compute(read(old)));
    const written =
      kind === "f32"
        ? operation("i32.reinterpret_f32", next)
        : kind === "f64"
          ? operation("i64.reinterpret_f64", next)
          : bytes < 4
            ? operation("i32.and", next, i32.of(mask))
            : next;
    const found = b.keep(operation(swaps, address, bits, written), "found");
    const changed = b.keep(operation(`${type}.ne`, found, bits));
    b.set(seen, found);
    b.branch(again, changed);
  });
  return read(old);
}

function atomic(op: Op<"atomic">, lowering: Lowering): void {
  const { fn } = op.attributes;
  const { dtype } = lowering.ref(op.operands.ref);
  const rule = fn === "exchange" ? undefined : binaryRule(fn, dtype);
  if (fn !== "exchange" && rule === undefined)
    lowering.refuse(op, `an atomic ${fn} of ${dtype.name}`);
  update(op, lowering, (b, old, given) => {
    if (rule === undefined) return given;
    const code = { builder: b, relaxed: false };
    return laneScalar(rule(code, splatLanes(b, dtype, old), splatLanes(b, dtype, given)), 0);
  });
}

/** The bits of a scalar, of which floats are compared. */
function bitsOf(value: Expression): Expression {
  if (value.type === "f32") return operation("i32.reinterpret_f32", value);
  return value.type === "f64" ? operation("i64.reinterpret_f64", value) : value;
}

function compareExchange(op: Op<"atomic_compare_exchange">, lowering: Lowering): void {
  const { expected } = op.operands;
  const { dtype } = lowering.ref(op.operands.ref);
  const wanted = expected.type.kind === "tile" ? tileOf(lowering, expected) : undefined;
  update(op, lowering, (b, old, given, place) => {
    const { address } = place.place(b);
    const bits =
      wanted === undefined
        ? lowering.scalar(expected)
        : loadScalar(dtype, i32.add(wanted.base, address), wanted.offset);
    const [mine, other] = [b.keep(bitsOf(bits)), b.keep(bitsOf(old))];
    const same = operation(mine.type === "i64" ? "i64.eq" : "i32.eq", mine, other);
    return { form: "select", type: laneKind(dtype), condition: same, ifTrue: given, ifFalse: old };
  });
}

function atomicLoad(op: Op<"atomic_load">, lowering: Lowering): void {
  requireUsable(lowering, op, op.operands.ref);
  const ref = lowering.ref(op.operands.ref);
  const { fill } = op.operands;
  const [result] = op.results;
  if (result === undefined) throw new Error("a load has a result");
  const { dtype } = ref;
  const shape = shapeOf(fill);
  const start = fill.type.kind === "tile" ? tileOf(lowering, fill) : undefined;
  const tile =
    result.type.kind === "tile"
      ? lowering.allocateTile(result, dtype, shape)
      : lowering.temporaryTile(dtype, shape);
  const { b: outer } = lowering;
  if (start === undefined) storeScalar(outer, dtype, tile.base, lowering.scalar(fill), tile.offset);
  else
    outer.run(
      operation(
        "memory.copy",
        i32.add(tile.base, i32.of(tile.offset)),
        i32.add(start.base, i32.of(start.offset)),
        i32.of(countOf(fill) * slotBytes(dtype)),
      ),
    );
  const strides = rowStrides(shape);
  lowering.root("atomic_load", countOf(fill), (b) =>
    overElements(lowering, b, shape, accessGroups(lowering, op, shape, []), (elements, position) =>
      eachPlace(elements, op, position, (builder, place) => {
        const axis = vectorAxis(position);
        let flat: Expression = i32.of(place.index * (axis < 0 ? 0 : (strides[axis] ?? 1)));
        position.forEach(({ at }, own) => {
          flat = i32.add(flat, i32.mul(at, i32.of(strides[own] ?? 0)));
        });
        const { address } = place.place(builder);
        const slot = i32.add(tile.base, i32.mul(flat, i32.of(slotBytes(dtype))));
        storeScalar(builder, dtype, slot, loadScalar(dtype, address), tile.offset);
      }),
    ),
  );
  if (result.type.kind === "scalar")
    lowering.holdScalar(result, loadScalar(dtype, tile.base, tile.offset));
}

export const memoryRules: Pick<LoweringRules, keyof typeof memoryOps> = {
  alloc(op, lowering) {
    const { space, dtype, shape, name = space } = op.attributes;
    const [result] = op.results;
    if (result === undefined) throw new Error("alloc has no result");
    const sizes = shape.map((size) => lowering.size(size));
    if (space === "gmem") {
      lowering.order = "in order";
      const bytes: Size = multiplySizes(Math.max(1, dtype.bits / 8), ...shape);
      const base = lowering.launchMemory(`${name} ${result.id}`, bytes, false);
      lowering.hold(
        result,
        wholeRef(lowering.b, { root: result, name, dtype, base, shared: false }, sizes),
      );
      return;
    }
    const base = lowering.sharedMemory(op, bytesOf(dtype, shape.map(Number)));
    lowering.hold(
      result,
      wholeRef(lowering.b, { root: result, name, dtype, base, shared: true }, sizes),
    );
  },
  alloc_union(op, lowering) {
    const [result] = op.results;
    if (result === undefined) throw new Error("alloc_union has no result");
    const base = lowering.sharedMemory(op, op.attributes.bytes);
    lowering.hold(result, { kind: "union", root: result, base });
  },
  union_member(op, lowering) {
    const { offset, dtype, shape, name = "the union" } = op.attributes;
    const union = lowering.held(op.operands.union);
    const [result] = op.results;
    if (union.kind !== "union" || result === undefined) throw new Error("no union");
    const { root } = union;
    const base = lowering.b.keep(i32.add(union.base, i32.of(offset)), "member");
    lowering.hold(result, wholeRef(lowering.b, { root, name, dtype, base, shared: true }, shape));
  },
  slice_ref: sliceRef,
  transpose_ref: transposeRef,
  reshape_ref: reshapeRef,
  peer_ref(op, lowering) {
    lowering.refuse(op, "a cluster of blocks");
  },
  select_ref: selectRef,
  address_of(op, lowering) {
    const [result] = op.results;
    const wide = result !== undefined && laneKind(dtypeOf(result)) === "i64";
    lowering.holdScalar(result, wide ? { form: "constant", type: "i64", value: 0n } : i32.of(0));
  },
  load(op, lowering) {
    loadScalarOp(op, lowering);
  },
  store(op, lowering) {
    requireUsable(lowering, op, op.operands.ref);
    storeValue(lowering, op, op.operands.value);
  },
  atomic,
  atomic_compare_exchange: compareExchange,
  atomic_load: atomicLoad,
  atomic_store(op, lowering) {
    requireUsable(lowering, op, op.operands.ref);
    storeValue(lowering, op, op.operands.value);
  },
};
