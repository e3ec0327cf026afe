/** What the lowering holds for a value of the kernel, by its type and by how far it is computed. */
import type { DType } from "../../formats/dtype.ts";
import type { AnyOp } from "../../ir/node.ts";
import { constantOf, i32, op } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import type { Storage } from "./scratch.ts";

/** A number that is known, or an i32 that may be read again and again. */
export type Extent = number | Expression;

export interface HeldScalar {
  readonly kind: "scalar";
  readonly dtype: DType;
  /** A constant or a local. */
  readonly value: Expression;
}

/** A tile in memory, row by row, an element a slot. */
export interface HeldTile {
  readonly kind: "tile";
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly base: Expression;
  readonly offset: number;
  readonly storage: Storage | undefined;
}

/** A tile that is computed where it is used. */
export interface HeldLazy {
  readonly kind: "lazy";
  readonly op: AnyOp;
}

/** A window on memory, as the simulator's views are. */
export interface HeldRef {
  readonly kind: "ref";
  /** What it was cut from: windows of different roots share no memory unless they are one array. */
  readonly root: object;
  readonly name: string;
  readonly dtype: DType;
  /** The address of the memory, and the element of index zero. */
  readonly base: Expression;
  readonly offset: Extent;
  readonly sizes: readonly Extent[];
  readonly strides: readonly Extent[];
  /** Indices in bounds of each axis; undefined where all are. */
  readonly bounds: readonly (Bounds | undefined)[];
  /** Whether two elements of 4 bits share a byte. */
  readonly packed: boolean;
  /** Whether it is a whole array in row-major order. */
  readonly whole: boolean;
  /** An i32 that is not 0 where the window must not be accessed. */
  readonly fault: Expression | undefined;
  /** Whether it lies in shared memory. */
  readonly shared: boolean;
}

export interface Bounds {
  readonly lower: Extent;
  readonly upper: Extent;
}

export interface HeldBarriers {
  readonly kind: "barriers";
  readonly base: Expression;
  readonly offset: number;
  readonly count: number;
  readonly arrivals: number;
  /** Where each thread counts the phases that it has waited for. */
  readonly seen: number;
}

export interface HeldSemaphores {
  readonly kind: "semaphores";
  readonly base: Expression;
  readonly shape: readonly Extent[];
}

/** The bytes of a union. */
export interface HeldUnion {
  readonly kind: "union";
  readonly root: object;
  readonly base: Expression;
}

export type Held =
  | HeldScalar
  | HeldTile
  | HeldLazy
  | HeldRef
  | HeldBarriers
  | HeldSemaphores
  | HeldUnion;

export function expressionOf(extent: Extent): Expression {
  return typeof extent === "number" ? i32.of(extent) : extent;
}

/** A constant i32 as a number. */
export function extentOf(expression: Expression): Extent {
  return constantOf(expression) ?? expression;
}

export function addExtents(b: FunctionBuilder, left: Extent, right: Extent): Extent {
  if (typeof left === "number" && typeof right === "number") return (left + right) | 0;
  return extentOf(b.keep(i32.add(expressionOf(left), expressionOf(right)), "sum"));
}

export function subExtents(b: FunctionBuilder, left: Extent, right: Extent): Extent {
  if (typeof left === "number" && typeof right === "number") return (left - right) | 0;
  return extentOf(b.keep(i32.sub(expressionOf(left), expressionOf(right)), "difference"));
}

export function mulExtents(b: FunctionBuilder, left: Extent, right: Extent): Extent {
  if (left === 0 || right === 0) return 0;
  if (typeof left === "number" && typeof right === "number") return Math.imul(left, right);
  return extentOf(b.keep(i32.mul(expressionOf(left), expressionOf(right)), "product"));
}

/** An i32 that is not 0 where both are not; undefined is always. */
export function both(
  b: FunctionBuilder,
  left: Expression | undefined,
  right: Expression | undefined,
): Expression | undefined {
  if (left === undefined) return right;
  if (right === undefined) return left;
  return b.keep(op("i32.and", left, right));
}

export function either(
  b: FunctionBuilder,
  left: Expression | undefined,
  right: Expression | undefined,
): Expression | undefined {
  if (left === undefined) return right;
  if (right === undefined) return left;
  return b.keep(op("i32.or", left, right));
}
