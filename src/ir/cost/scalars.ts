/**
 * Scalars that follow from constants, dimensions, the grid and, where they are known, block and thread: what bounds of loops
 * and conditions of branches are made of.
 *
 *   tile = block · 4 + 1, block = 7   =>  29          count (a scalar argument)   =>  not known
 */
import { compareNumbers } from "../../formats/arithmetic/functions.ts";
import type { BinaryFunction, UnaryFunction } from "../../formats/arithmetic/functions.ts";
import { isInteger } from "../../formats/dtype.ts";
import type { AnyOp, Kernel, OpOf, Value } from "../node.ts";
import { evaluateSize } from "../size.ts";
import type { DimensionValues } from "../size.ts";

/** The arithmetic that indices are made of; sizes are small enough not to wrap. */
const binaryValues: { readonly [F in BinaryFunction]?: (left: number, right: number) => number } = {
  add: (left, right) => left + right,
  sub: (left, right) => left - right,
  mul: (left, right) => left * right,
  div: (left, right) => Math.trunc(left / right),
  rem: (left, right) => left % right,
  min: Math.min,
  max: Math.max,
  and: (left, right) => left & right,
  or: (left, right) => left | right,
  xor: (left, right) => left ^ right,
  shl: (left, right) => left * 2 ** right,
  shr: (left, right) => Math.floor(left / 2 ** right),
};

/** What sizes are rounded by, and what turns a condition. */
const unaryValues: { readonly [F in UnaryFunction]?: (value: number) => number } = {
  neg: (value) => -value,
  not: (value) => Number(value === 0),
  sqrt: Math.sqrt,
};

/** Who computes them. */
export interface Place {
  /** Along each axis of the grid; undefined where any block is meant. */
  readonly block: readonly number[] | undefined;
  /** The program thread, likewise. */
  readonly thread: number | undefined;
}

export class KnownScalars {
  readonly #values = new Map<Value, number>();
  readonly #kernel: Kernel;
  readonly #dimensions: DimensionValues;
  readonly #place: Place;

  constructor(kernel: Kernel, dimensions: DimensionValues, place: Place) {
    this.#kernel = kernel;
    this.#dimensions = dimensions;
    this.#place = place;
  }

  get(value: Value): number | undefined {
    return this.#values.get(value);
  }

  set(value: Value, known: number): void {
    this.#values.set(value, known);
  }

  forget(values: readonly Value[]): void {
    for (const value of values) this.#values.delete(value);
  }

  /** Takes note of the op's result where it is a scalar that follows from what is known, and forgets it where not. */
  learn(op: AnyOp): void {
    const [result] = op.results;
    if (result === undefined || op.results.length !== 1) return;
    const value = result.type.kind === "scalar" ? this.#valueOf(op) : undefined;
    if (value === undefined || Number.isNaN(value)) this.#values.delete(result);
    else this.#values.set(result, value);
  }

  #valueOf(op: AnyOp): number | undefined {
    if (op.kind === "constant") return Number(op.attributes.value);
    if (op.kind === "size") return evaluateSize(op.attributes.of, this.#dimensions);
    if (op.kind === "grid_size" || op.kind === "block_index")
      return this.#ofGrid(op.kind, op.attributes.axis);
    if (op.kind === "thread_index") return this.#place.thread;
    if (op.kind === "binary" || op.kind === "compare") {
      const left = this.get(op.operands.left);
      const right = this.get(op.operands.right);
      if (left === undefined || right === undefined) return undefined;
      if (op.kind === "compare")
        return Number(compareNumbers[op.attributes.predicate](left, right));
      return isWhole(op.operands.left) ? binaryValues[op.attributes.fn]?.(left, right) : undefined;
    }
    if (op.kind === "select") {
      const condition = this.get(op.operands.condition);
      if (condition === undefined) return undefined;
      return this.get(condition === 0 ? op.operands.ifFalse : op.operands.ifTrue);
    }
    return op.kind === "unary" || op.kind === "cast" ? this.#ofOne(op) : undefined;
  }

  #ofOne(op: OpOf<"unary" | "cast">): number | undefined {
    const source = this.get(op.operands.source);
    if (source === undefined) return undefined;
    if (op.kind === "unary") return unaryValues[op.attributes.fn]?.(source);
    const [result] = op.results;
    return result !== undefined && isWhole(result) ? Math.trunc(source) : source;
  }

  #ofGrid(kind: "grid_size" | "block_index", name: string): number | undefined {
    const position = this.#kernel.grid.findIndex((axis) => axis.name === name);
    const axis = this.#kernel.grid[position];
    if (axis === undefined) return undefined;
    return kind === "grid_size"
      ? evaluateSize(axis.extent, this.#dimensions)
      : this.#place.block?.[position];
  }
}

function isWhole({ type }: Value): boolean {
  return type.kind === "scalar" && (isInteger(type.dtype) || type.dtype.name === "bool");
}
