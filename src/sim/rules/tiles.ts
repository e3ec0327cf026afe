/** Simulation of ops that rearrange tiles or combine elements of a tile. */
import { rowMajorStrides } from "../../formats/shape.ts";
import {
  argElements,
  dotElements,
  reduceElements,
  scanElements,
  sortElements,
} from "../../formats/arithmetic/index.ts";
import type { Axis, DotShape } from "../../formats/arithmetic/index.ts";
import { allocateElements, packedBytes } from "../../formats/dtype.ts";
import type { DType, Elements } from "../../formats/dtype.ts";
import type { AnyOp, Op, Value } from "../../ir/node.ts";
import type { tileOps } from "../../ir/ops/tiles.ts";
import type { Agent } from "../agent.ts";
import { fillElements, gather } from "../memory.ts";
import type { Assembler, SimulationRules } from "../program.ts";
import { elementsAt, scalarAt, toElements, toScalar, viewAt } from "../values.ts";
import { product } from "../view.ts";
import { axisOf, countOf, dtypeOf, shapeOf } from "./elementwise.ts";
import { touch, zeroOf } from "./memory.ts";
import { rearrangement } from "./rearrange.ts";
import type { Rearrangement } from "./rearrange.ts";
import { scaledDot } from "./scaled-dot.ts";

/** Emits the step of an op whose result is computed from one tile or scalar as elements. */
function emitFromElements(
  code: Assembler,
  op: AnyOp,
  source: Value,
  compute: (source: Elements, target: Elements) => void,
): void {
  const [result] = op.results;
  if (result === undefined) throw new Error(`${op.kind} has no result`);
  const [slot, target] = [code.slot(source), code.slot(result)];
  const pool = code.pool(dtypeOf(result), countOf(result));
  const fromScalar = source.type.kind === "scalar";
  const toScalarResult = result.type.kind === "scalar";
  const dtype = dtypeOf(source);
  code.emit(op, (agent) => {
    const elements = pool.take();
    compute(
      fromScalar ? toElements(dtype, scalarAt(agent, slot)) : elementsAt(agent, slot),
      elements,
    );
    agent.slots[target] = toScalarResult ? toScalar(elements) : elements;
    if (toScalarResult) pool.give(elements);
    return "proceed";
  });
}

/** Emits a step that moves elements without changing them. */
function emitRearrangement(code: Assembler, op: AnyOp, source: Value, moves: Rearrangement): void {
  emitFromElements(code, op, source, rearrangement(dtypeOf(source), moves));
}

function broadcast(op: Op<"broadcast">, code: Assembler): void {
  const { source } = op.operands;
  const { shape, axes } = op.attributes;
  const from = shapeOf(source);
  if (countOf(source) === 1) {
    emitFromElements(code, op, source, (elements, target) => {
      fillElements(target, toScalar(elements));
    });
    return;
  }
  const fromStrides = rowMajorStrides(from);
  const strides = shape.map(() => 0);
  for (const [position, axis] of axes.entries())
    if (from[position] !== 1) strides[axis] = fromStrides[position] ?? 0;
  emitRearrangement(code, op, source, { shape, strides, offset: 0 });
}

/** A reshape renames elements; only between a tile and a scalar does it change what a slot holds. */
function reshape(op: Op<"reshape">, code: Assembler): void {
  const { source } = op.operands;
  const [slot, target] = [code.slot(source), code.result(op)];
  const dtype = dtypeOf(source);
  const wasScalar = source.type.kind === "scalar";
  const becomesScalar = op.attributes.shape.length === 0;
  code.emit(op, (agent) => {
    const elements = wasScalar ? toElements(dtype, scalarAt(agent, slot)) : elementsAt(agent, slot);
    agent.slots[target] = becomesScalar ? toScalar(elements) : elements;
    return "proceed";
  });
}

/** Where a tile lies in registers is no part of its value. */
function layoutCast(op: Op<"layout_cast">, code: Assembler): void {
  const [slot, target] = [code.slot(op.operands.source), code.result(op)];
  code.emit(op, ({ slots }) => {
    slots[target] = slots[slot];
    return "proceed";
  });
}

function concatenate(op: Op<"concatenate">, code: Assembler): void {
  const { parts } = op.operands;
  const { axis } = op.attributes;
  const slots = code.slotsOf(parts);
  const target = code.result(op);
  const [result] = op.results;
  if (result === undefined) throw new Error("concatenate has no result");
  const pool = code.pool(dtypeOf(result), countOf(result));
  const { outer, length, inner } = axisOf(shapeOf(result), [axis]);
  const runs = parts.map((part) => (shapeOf(part)[axis] ?? 0) * inner);
  code.emit(op, (agent) => {
    const elements = pool.take();
    let start = 0;
    for (const [position, slot] of slots.entries()) {
      const run = runs[position] ?? 0;
      const part = elementsAt(agent, slot);
      for (let row = 0; row < outer; row++)
        elements.set(
          part.subarray(row * run, (row + 1) * run) as never,
          row * length * inner + start,
        );
      start += run;
    }
    agent.slots[target] = elements;
    return "proceed";
  });
}

/** Reduced axes that are no neighbours are first brought together, behind the others. */
function reduce(op: Op<"reduce">, code: Assembler): void {
  const { source } = op.operands;
  const { fn, axes } = op.attributes;
  const dtype = dtypeOf(source);
  const shape = shapeOf(source);
  const sorted = [...axes].sort((a, b) => a - b);
  const neighbours = sorted.every((axis, i) => i === 0 || axis === (sorted[i - 1] ?? 0) + 1);
  if (neighbours) {
    const axis = axisOf(shape, sorted);
    emitFromElements(code, op, source, (elements, target) => {
      reduceElements(fn, dtype, elements, axis, target);
    });
    return;
  }
  const order = [...shape.keys()].filter((axis) => !axes.includes(axis)).concat(sorted);
  const strides = rowMajorStrides(shape);
  const gather = rearrangement(dtype, {
    shape: order.map((axis) => shape[axis] ?? 1),
    strides: order.map((axis) => strides[axis] ?? 0),
    offset: 0,
  });
  const length = product(sorted.map((axis) => shape[axis] ?? 1));
  const axis = { outer: countOf(source) / length, length, inner: 1 };
  const pool = code.pool(dtype, countOf(source));
  emitFromElements(code, op, source, (elements, target) => {
    const together = pool.take();
    gather(elements, together);
    reduceElements(fn, dtype, together, axis, target);
    pool.give(together);
  });
}

/** Where along the axis each element is. */
function numberAlong(elements: Int32Array, { length, inner }: Axis): void {
  for (let element = 0; element < elements.length; element++)
    elements[element] = Math.floor(element / inner) % length;
}

function sort(op: Op<"sort">, code: Assembler): void {
  const { keys, payloads } = op.operands;
  const { axis, descending, first: kept } = op.attributes;
  const dtype = dtypeOf(keys);
  const slots = code.slotsOf([keys, ...payloads]);
  const targets = code.slotsOf(op.results);
  const pools = op.results.map((value) => code.pool(dtypeOf(value), countOf(value)));
  const along = axisOf(shapeOf(keys), [axis]);
  code.emit(op, (agent) => {
    const copies = pools.map((pool, position) => {
      const elements = pool.take();
      const slot = slots[position];
      if (slot === undefined) numberAlong(elements as Int32Array, along);
      else elements.set(elementsAt(agent, slot) as never);
      agent.slots[targets[position] ?? 0] = elements;
      return elements;
    });
    const [first, ...others] = copies;
    if (first !== undefined) sortElements(dtype, first, others, along, descending, kept);
    return "proceed";
  });
}

function factorType(value: Value): { readonly dtype: DType; readonly shape: readonly number[] } {
  const { type } = value;
  if (type.kind === "ref") return { dtype: type.dtype, shape: type.shape.map(Number) };
  return { dtype: dtypeOf(value), shape: shapeOf(value) };
}

/** A tile, or what a window of shared memory holds where the product reads it by itself. */
function factorReader(value: Value, code: Assembler): (agent: Agent) => Elements {
  const slot = code.slot(value);
  if (value.type.kind !== "ref") return (agent) => elementsAt(agent, slot);
  const { dtype, shape } = factorType(value);
  const count = product(shape);
  const bytes = packedBytes(dtype, count);
  return (agent) => {
    const view = viewAt(agent, slot);
    touch(agent, view, "read", bytes);
    const elements = allocateElements(dtype, count);
    gather(view, elements, zeroOf(dtype));
    return elements;
  };
}

function dot(op: Op<"dot">, code: Assembler): void {
  const { left, right, accumulator } = op.operands;
  const { dtype, precision, accumulation = "promoted" } = op.attributes;
  const [first, second] = [factorType(left), factorType(right)];
  const [m = 0, k = 0] = first.shape;
  const n = second.shape[1] ?? 0;
  const shape: DotShape = {
    m,
    n,
    k,
    operand: first.dtype,
    operandB: second.dtype,
    accumulator: dtype,
    precision: precision === "native" ? undefined : precision,
    accumulation,
  };
  const [a, b] = [factorReader(left, code), factorReader(right, code)];
  const start = accumulator === undefined ? undefined : code.slot(accumulator);
  const target = code.result(op);
  const pool = code.pool(dtype, m * n);
  code.emit(op, (agent) => {
    const elements = pool.take();
    if (start === undefined) elements.fill(0 as never);
    else elements.set(elementsAt(agent, start) as never);
    dotElements(shape, a(agent), b(agent), elements);
    agent.slots[target] = elements;
    return "proceed";
  });
}

export const tileRules: Pick<SimulationRules, keyof typeof tileOps> = {
  broadcast,
  reshape,
  layout_cast: layoutCast,

  transpose(op, code) {
    const { source } = op.operands;
    const { permutation } = op.attributes;
    const from = shapeOf(source);
    const strides = rowMajorStrides(from);
    emitRearrangement(code, op, source, {
      shape: permutation.map((axis) => from[axis] ?? 1),
      strides: permutation.map((axis) => strides[axis] ?? 0),
      offset: 0,
    });
  },

  slice(op, code) {
    const { source } = op.operands;
    const { starts, sizes } = op.attributes;
    const strides = rowMajorStrides(shapeOf(source));
    const offset = starts.reduce((sum, start, axis) => sum + start * (strides[axis] ?? 0), 0);
    emitRearrangement(code, op, source, { shape: sizes, strides, offset });
  },

  concatenate,
  reduce,

  scan(op, code) {
    const { source } = op.operands;
    const { fn, axis, reverse } = op.attributes;
    const dtype = dtypeOf(source);
    const along = axisOf(shapeOf(source), [axis]);
    emitFromElements(code, op, source, (elements, target) => {
      scanElements(fn, dtype, elements, along, target, reverse);
    });
  },

  arg_reduce(op, code) {
    const { source } = op.operands;
    const { fn, axis } = op.attributes;
    const dtype = dtypeOf(source);
    const along = axisOf(shapeOf(source), [axis]);
    emitFromElements(code, op, source, (elements, target) => {
      argElements(fn, dtype, elements, along, target as Int32Array);
    });
  },

  sort,
  dot,
  scaled_dot: scaledDot,
};
