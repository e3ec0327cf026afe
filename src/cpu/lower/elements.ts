/**
 * Evaluates tiles four elements at a time, inside of the loops of one root: a store, a reduction, a tile that is written to
 * scratch. What does not change along the innermost axis is computed before its loop.
 *
 *   for row                        outer loops
 *     mean(row), &x[row, 0]        the prologue: uniform places
 *     for column by 4              the body
 *       x[row, column] - mean
 */
import { allocateElements } from "../../formats/dtype.ts";
import { writeElement } from "../../formats/values.ts";
import type { DType, HostValue } from "../../formats/dtype.ts";
import type { AnyOp, Op, Value } from "../../ir/node.ts";
import { constantOf, i32, op as operation } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import { accessLanes } from "./access.ts";
import type { AccessedElements } from "./window-access.ts";
import { coordinateKey, origin, vectorAxis } from "./position.ts";
import type { Position } from "./position.ts";
import type { HeldTile } from "./held.ts";
import {
  constantScalar,
  gatherLanes,
  keepLanes,
  laneCount,
  loadLanes,
  slotShift,
  splatLanes,
} from "./lanes.ts";
import type { Lanes } from "./lanes.ts";
import { withoutIdentity } from "./identities.ts";
import { broadcastAxes, elementwise, shapeOf, unitAxes } from "./lazy.ts";
import type { Lowering } from "./lowering.ts";
import { castRule } from "./arithmetic.ts";
import { i32 as int32 } from "../../formats/dtype.ts";

/** A constant's element as memory has it. */
export function elementOf(dtype: DType, value: HostValue): number | bigint {
  const one = allocateElements(dtype, 1);
  writeElement(dtype, one, 0, value);
  return one[0] ?? 0;
}

export class Elements implements AccessedElements {
  readonly lowering: Lowering;
  /** Statements before the innermost loop, and inside of it. */
  readonly prologue: FunctionBuilder;
  readonly body: FunctionBuilder;
  /** Elements along the vector's axis. */
  readonly extent: number;
  /** Whether all windows are known to hold whole rows. */
  readonly isInside: boolean;
  /** What holds, before the innermost loop, where they do. */
  readonly insideConditions: Expression[] = [];
  readonly #known = new Map<string, Lanes>();
  readonly #addresses = new Map<string, Expression>();

  constructor(
    lowering: Lowering,
    prologue: FunctionBuilder,
    body: FunctionBuilder,
    extent: number,
    isInside = false,
  ) {
    this.lowering = lowering;
    this.prologue = prologue;
    this.body = body;
    this.extent = extent;
    this.isInside = isInside;
  }

  /** The builder of what is computed at the position. */
  builderAt(position: Position): FunctionBuilder {
    return position.some(({ inner }) => inner) ? this.body : this.prologue;
  }

  evaluate(value: Value, position: Position): Lanes {
    const held = this.lowering.held(value);
    if (held.kind === "scalar") {
      const key = `%${value.id}`;
      const known = this.#known.get(key);
      if (known !== undefined) return known;
      const lanes = splatLanes(this.prologue, held.dtype, held.value);
      this.#known.set(key, lanes);
      return lanes;
    }
    const key = `%${value.id} ${position.map(coordinateKey).join(" ")}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const lanes =
      held.kind === "tile"
        ? this.tileLanes(held, position)
        : held.kind === "lazy"
          ? this.#compute(held.op, value, position)
          : undefined;
    if (lanes === undefined) throw new Error(`%${value.id} is a ${held.kind}, no tile`);
    this.#known.set(key, lanes);
    return lanes;
  }

  /** The address of the elements at a position, by the strides of its axes. */
  address(
    key: string,
    base: () => Expression,
    shift: number,
    strides: readonly (number | Expression)[],
    position: Position,
  ): Expression {
    const outer = position.map((coordinate) => (coordinate.inner ? origin : coordinate));
    const rowKey = `${key} ${outer.map(coordinateKey).join(" ")}`;
    let row = this.#addresses.get(rowKey);
    if (row === undefined) {
      const b = this.prologue;
      row = b.keep(i32.add(base(), this.#distance(b, shift, strides, outer)), "row");
      this.#addresses.set(rowKey, row);
    }
    const inner = position.map((coordinate) => (coordinate.inner ? coordinate : origin));
    return this.body.keep(i32.add(row, this.#distance(this.body, shift, strides, inner)), "at");
  }

  #distance(
    b: FunctionBuilder,
    shift: number,
    strides: readonly (number | Expression)[],
    position: Position,
  ): Expression {
    let distance: Expression = i32.of(0);
    position.forEach(({ at }, axis) => {
      const stride = strides[axis] ?? 0;
      const scale =
        typeof stride === "number"
          ? i32.of(stride * 2 ** shift)
          : this.prologue.keep(i32.mul(stride, i32.of(2 ** shift)), "scale");
      if (constantOf(at) !== 0) distance = i32.add(distance, i32.mul(at, scale));
    });
    return b.keep(distance, "distance");
  }

  /** Elements of a tile in memory. */
  tileLanes(tile: HeldTile, position: Position): Lanes {
    const { dtype, shape } = tile;
    const strides = rowStrides(shape);
    const b = this.builderAt(position);
    const base = (): Expression => i32.add(tile.base, i32.of(tile.offset));
    const key = `${coordinateKey({ at: tile.base, vector: false })}+${tile.offset}`;
    const address = this.address(key, base, slotShift(dtype), strides, position);
    const axis = vectorAxis(position);
    if (axis < 0) return gatherLanes(b, dtype, [address, address, address, address]);
    const stride = strides[axis] ?? 1;
    if (stride === 1) return loadLanes(b, dtype, address);
    return gatherLanes(
      b,
      dtype,
      this.laneIndices(position).map((index) =>
        b.keep(i32.add(address, i32.mul(index, i32.of(stride * 2 ** slotShift(dtype))))),
      ),
    );
  }

  /** How far each lane lies behind the first, at most the last element along the axis. */
  laneIndices(position: Position): readonly Expression[] {
    const along = position[vectorAxis(position)];
    const whole = this.extent % laneCount === 0;
    return Array.from({ length: laneCount }, (_, index) => {
      if (whole || along === undefined || index === 0) return i32.of(index);
      const b = along.inner ? this.body : this.prologue;
      const rest = b.keep(i32.sub(i32.of(this.extent - 1), along.at));
      return b.keep({
        form: "select",
        type: "i32",
        condition: operation("i32.gt_s", i32.of(index), rest),
        ifTrue: rest,
        ifFalse: i32.of(index),
      });
    });
  }

  #compute(op: AnyOp, value: Value, position: Position): Lanes {
    const b = this.builderAt(position);
    const found = elementwise(op);
    if (found !== undefined) {
      const operands = found.operands.map((operand) => this.evaluate(operand, position));
      const same = op.kind === "binary" && withoutIdentity(op.attributes.fn, operands);
      if (same !== false && same !== undefined) return same;
      return found.rule({ builder: b, relaxed: this.lowering.relaxed }, ...operands);
    }
    if (op.kind === "constant") {
      const { dtype, value: number } = op.attributes;
      return splatLanes(this.prologue, dtype, constantScalar(dtype, elementOf(dtype, number)));
    }
    if (op.kind === "iota") return this.#iota(op, position);
    if (op.kind === "broadcast") {
      const { source } = op.operands;
      const from = shapeOf(source).map(() => origin);
      broadcastAxes(op).forEach((axis, own) => {
        if (axis !== undefined) from[axis] = position[own] ?? origin;
      });
      return this.evaluate(source, from);
    }
    if (op.kind === "transpose") {
      const from = op.attributes.permutation.map(() => origin);
      op.attributes.permutation.forEach((axis, own) => {
        from[axis] = position[own] ?? origin;
      });
      return this.evaluate(op.operands.source, from);
    }
    if (op.kind === "slice") {
      const { starts } = op.attributes;
      return this.evaluate(
        op.operands.source,
        position.map((coordinate, axis) => ({
          ...coordinate,
          at: (coordinate.inner ? this.body : this.prologue).keep(
            i32.add(coordinate.at, i32.of(starts[axis] ?? 0)),
          ),
        })),
      );
    }
    if (op.kind === "reshape") {
      const { source } = op.operands;
      const axes = unitAxes(shapeOf(source), shapeOf(value));
      if (axes === undefined) throw new Error("a reshape is no loop");
      return this.evaluate(
        source,
        axes.map((axis) => (axis === undefined ? origin : (position[axis] ?? origin))),
      );
    }
    if (op.kind === "layout_cast" || op.kind === "convert_layout" || op.kind === "assume")
      return this.evaluate(op.operands.source, position);
    if (op.kind === "optimization_barrier")
      return this.evaluate(op.operands.values[op.results.indexOf(value)] ?? value, position);
    if (op.kind === "load") return accessLanes(this, op, position);
    throw new Error(`${op.kind} is not computed where it is used`);
  }

  #iota({ attributes: { dtype, axis } }: Op<"iota">, position: Position): Lanes {
    const coordinate = position[axis] ?? origin;
    const b = coordinate.inner ? this.body : this.prologue;
    const first = operation("i32x4.splat", coordinate.at);
    const counts = coordinate.vector ? operation("i32x4.add", first, steps()) : first;
    const rule = castRule(int32, dtype);
    if (rule === undefined) throw new Error(`iota of ${dtype.name}`);
    return rule({ builder: b, relaxed: false }, keepLanes(b, int32, counts));
  }
}

function steps(): Expression {
  const bytes = new Uint8Array(Int32Array.of(0, 1, 2, 3).buffer);
  return { form: "constant", type: "v128", value: [...bytes] };
}

export function rowStrides(shape: readonly number[]): readonly number[] {
  const strides: number[] = [];
  let stride = 1;
  for (const extent of shape.toReversed()) {
    strides.unshift(stride);
    stride *= extent;
  }
  return strides;
}
