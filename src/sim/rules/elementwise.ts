/**
 * How an elementwise op becomes a step. Element loops exist for tiles; a scalar goes through them as a tile
 * of one element, except for the i32 arithmetic that indexing is made of, which is done directly.
 */
import { allocateElements } from "../../formats/dtype.ts";
import type { DType, Elements } from "../../formats/dtype.ts";
import type { Axis, BinaryFunction, ComparePredicate } from "../../formats/arithmetic/index.ts";
import type { AnyOp, Value } from "../../ir/node.ts";
import { isData } from "../../ir/types.ts";
import type { DataType } from "../../ir/types.ts";
import type { Step } from "../agent.ts";
import type { Assembler } from "../program.ts";
import { elementsAt, scalarAt, toScalar } from "../values.ts";
import { product } from "../view.ts";

function dataTypeOf(value: Value): DataType {
  if (!isData(value.type)) throw new Error(`%${value.id} is no tile or scalar`);
  return value.type;
}

export function dtypeOf(value: Value): DType {
  return dataTypeOf(value).dtype;
}

export function shapeOf(value: Value): readonly number[] {
  const type = dataTypeOf(value);
  return type.kind === "tile" ? type.shape : [];
}

export function countOf(value: Value): number {
  return product(shapeOf(value));
}

/** The axes, which must be neighbours, as one axis of elements in three dimensions. */
export function axisOf(shape: readonly number[], axes: readonly number[]): Axis {
  const first = Math.min(...axes);
  const last = Math.max(...axes);
  return {
    outer: product(shape.slice(0, first)),
    length: product(shape.slice(first, last + 1)),
    inner: product(shape.slice(last + 1)),
  };
}

/** Unused operands repeat the first. */
type ElementFunction = (
  target: Elements,
  first: Elements,
  second: Elements,
  third: Elements,
) => void;

/** Emits `compute` from the elements of `sources` to those of the op's only result. */
export function emitElementwise(
  code: Assembler,
  op: AnyOp,
  sources: readonly Value[],
  compute: ElementFunction,
): void {
  const [result] = op.results;
  if (result === undefined) throw new Error(`${op.kind} has no result`);
  const step =
    result.type.kind === "tile"
      ? tileStep(code, result, sources, compute)
      : scalarStep(code, result, sources, compute);
  code.emit(op, step);
}

function tileStep(
  code: Assembler,
  result: Value,
  sources: readonly Value[],
  compute: ElementFunction,
): Step {
  const target = code.slot(result);
  const pool = code.pool(dtypeOf(result), countOf(result));
  const [first = 0, second = first, third = first] = code.slotsOf(sources);
  return (agent) => {
    const elements = pool.take();
    compute(
      elements,
      elementsAt(agent, first),
      elementsAt(agent, second),
      elementsAt(agent, third),
    );
    agent.slots[target] = elements;
    return "proceed";
  };
}

function scalarStep(
  code: Assembler,
  result: Value,
  sources: readonly Value[],
  compute: ElementFunction,
): Step {
  const target = code.slot(result);
  const [first = 0, second = first, third = first] = code.slotsOf(sources);
  const one = (position: number): Elements =>
    allocateElements(dtypeOf(sources[position] ?? result), 1);
  const [a, b, c] = [one(0), one(1), one(2)];
  const arity = sources.length;
  const output = allocateElements(dtypeOf(result), 1);
  return (agent) => {
    a[0] = scalarAt(agent, first);
    if (arity > 1) b[0] = scalarAt(agent, second);
    if (arity > 2) c[0] = scalarAt(agent, third);
    compute(output, a, b, c);
    agent.slots[target] = toScalar(output);
    return "proceed";
  };
}

type IndexFunction = (left: number, right: number) => number;

/** i32 functions that need no care about division, powers or shifts. */
export const indexFunctions: { readonly [F in BinaryFunction]?: IndexFunction } = {
  add: (left, right) => (left + right) | 0,
  sub: (left, right) => (left - right) | 0,
  mul: (left, right) => Math.imul(left, right),
  min: (left, right) => (left < right ? left : right),
  max: (left, right) => (left > right ? left : right),
  and: (left, right) => left & right,
  or: (left, right) => left | right,
  xor: (left, right) => left ^ right,
};

export const indexPredicates: { readonly [P in ComparePredicate]: IndexFunction } = {
  eq: (left, right) => (left === right ? 1 : 0),
  ne: (left, right) => (left !== right ? 1 : 0),
  lt: (left, right) => (left < right ? 1 : 0),
  le: (left, right) => (left <= right ? 1 : 0),
  gt: (left, right) => (left > right ? 1 : 0),
  ge: (left, right) => (left >= right ? 1 : 0),
};

/** A step that applies `compute` to two i32 scalars. */
export function indexStep(
  target: number,
  left: number,
  right: number,
  compute: IndexFunction,
): Step {
  return ({ slots }) => {
    slots[target] = compute(slots[left] as number, slots[right] as number);
    return "proceed";
  };
}
