/**
 * Types of IR values.
 *
 * | type      | text                             | stands for                                             |
 * |-----------|----------------------------------|--------------------------------------------------------|
 * | scalar    | `f32`                            | one number, the same in all lanes of a program thread  |
 * | tile      | `tile<f32, [128, 64]>`           | an immutable block of numbers in registers             |
 * | ref       | `ref<gmem, bf16, [m, 512]>`      | a window on memory                                     |
 * | barrier   | `barrier<2, arrivals=1>`         | an array of two mbarriers in shared memory             |
 * | semaphore | `semaphore<[4]>`                 | counters in global memory                              |
 * | inflight  | `inflight<f32, [64, 128]>`       | a wgmma accumulator that may still be written; linear  |
 */
import type { DType } from "../formats/dtype.ts";
import { sameShape, shapeText } from "./size.ts";
import type { Size } from "./size.ts";

export interface ScalarType {
  readonly kind: "scalar";
  readonly dtype: DType;
}

export interface TileType {
  readonly kind: "tile";
  readonly dtype: DType;
  readonly shape: readonly number[];
}

/** `peer` is the shared memory of another block of the cluster. */
export type MemorySpace = "gmem" | "smem" | "peer";

export interface RefType {
  readonly kind: "ref";
  readonly space: MemorySpace;
  readonly dtype: DType;
  readonly shape: readonly Size[];
}

export interface BarrierType {
  readonly kind: "barrier";
  /** How many barriers the array holds. */
  readonly count: number;
  /** Arrivals that complete a phase of each. */
  readonly arrivals: number;
}

export interface SemaphoreType {
  readonly kind: "semaphore";
  readonly shape: readonly Size[];
}

export interface InflightType {
  readonly kind: "inflight";
  readonly dtype: DType;
  readonly shape: readonly number[];
}

export type Type = ScalarType | TileType | RefType | BarrierType | SemaphoreType | InflightType;
export type TypeKind = Type["kind"];

/** Types that elementwise operations compute on. */
export type DataType = ScalarType | TileType;

export function scalarType(dtype: DType): ScalarType {
  return Object.freeze({ kind: "scalar", dtype });
}

export function tileType(dtype: DType, shape: readonly number[]): TileType {
  return Object.freeze({ kind: "tile", dtype, shape: Object.freeze([...shape]) });
}

/** A scalar where the shape is empty, a tile elsewhere. */
export function dataType(dtype: DType, shape: readonly number[]): DataType {
  return shape.length === 0 ? scalarType(dtype) : tileType(dtype, shape);
}

export function refType(space: MemorySpace, dtype: DType, shape: readonly Size[]): RefType {
  return Object.freeze({ kind: "ref", space, dtype, shape: Object.freeze([...shape]) });
}

export function barrierType(count: number, arrivals: number): BarrierType {
  return Object.freeze({ kind: "barrier", count, arrivals });
}

export function semaphoreType(shape: readonly Size[]): SemaphoreType {
  return Object.freeze({ kind: "semaphore", shape: Object.freeze([...shape]) });
}

export function inflightType(dtype: DType, shape: readonly number[]): InflightType {
  return Object.freeze({ kind: "inflight", dtype, shape: Object.freeze([...shape]) });
}

export function isData(type: Type): type is DataType {
  return type.kind === "scalar" || type.kind === "tile";
}

/** The shape of a data type; a scalar's is empty. */
export function dataShape(type: DataType): readonly number[] {
  return type.kind === "tile" ? type.shape : [];
}

type TypeRules<R> = { readonly [K in TypeKind]: (type: Extract<Type, { kind: K }>) => R };

const texts: TypeRules<string> = {
  scalar: ({ dtype }) => dtype.name,
  tile: ({ dtype, shape }) => `tile<${dtype.name}, ${shapeText(shape)}>`,
  ref: ({ space, dtype, shape }) => `ref<${space}, ${dtype.name}, ${shapeText(shape)}>`,
  barrier: ({ count, arrivals }) => `barrier<${count}, arrivals=${arrivals}>`,
  semaphore: ({ shape }) => `semaphore<${shapeText(shape)}>`,
  inflight: ({ dtype, shape }) => `inflight<${dtype.name}, ${shapeText(shape)}>`,
};

export function typeText(type: Type): string {
  return (texts[type.kind] as (type: Type) => string)(type);
}

export function sameType(left: Type, right: Type): boolean {
  if (left === right) return true;
  if (left.kind === "tile" && right.kind === "tile")
    return left.dtype === right.dtype && sameShape(left.shape, right.shape);
  return left.kind === right.kind && typeText(left) === typeText(right);
}
