/**
 * Types of IR values.
 *
 * | type      | text                             | stands for                                             |
 * |-----------|----------------------------------|--------------------------------------------------------|
 * | scalar    | `f32`                            | one number, the same in all lanes of a program thread  |
 * | tile      | `tile<f32, [128, 64]>`           | an immutable block of numbers in registers             |
 * |           | `tile<f32, [128, 64], "(L0 …)">` | the same in a placed kernel: who holds which of them   |
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
  /** In placed kernels the text of its register layout, in the one spelling for the shape. */
  readonly layout?: string;
}

/** `peer` is the shared memory of another block of the cluster, `tmem` the tensor memory of this one. */
export const memorySpaces = ["gmem", "smem", "peer", "tmem"] as const;
export type MemorySpace = (typeof memorySpaces)[number];

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
  /** As of a tile. */
  readonly layout?: string;
}

/** The type of a value that a program thread holds in registers, spread over its lanes. */
export type SpreadType = TileType | InflightType;

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

export function isSpread(type: Type): type is SpreadType {
  return type.kind === "tile" || type.kind === "inflight";
}

/** The same type in a placed kernel, with its values in a register layout. */
export function withLayout<T extends SpreadType>(type: T, layout: string): T {
  return Object.freeze<T>({ ...type, layout });
}

export function isData(type: Type): type is DataType {
  return type.kind === "scalar" || type.kind === "tile";
}

/** The shape of a data type; a scalar's is empty. */
export function dataShape(type: DataType): readonly number[] {
  return type.kind === "tile" ? type.shape : [];
}

/** How a layout is written inside a type. */
export type LayoutSpelling = (layout: string) => string;

type TypeTexts = {
  readonly [K in TypeKind]: (type: Extract<Type, { kind: K }>, spelling: LayoutSpelling) => string;
};

const texts: TypeTexts = {
  scalar: ({ dtype }) => dtype.name,
  tile: (type, spelling) => `tile<${spreadText(type, spelling)}>`,
  ref: ({ space, dtype, shape }) => `ref<${space}, ${dtype.name}, ${shapeText(shape)}>`,
  barrier: ({ count, arrivals }) => `barrier<${count}, arrivals=${arrivals}>`,
  semaphore: ({ shape }) => `semaphore<${shapeText(shape)}>`,
  inflight: (type, spelling) => `inflight<${spreadText(type, spelling)}>`,
};

function spreadText({ dtype, shape, layout }: SpreadType, spelling: LayoutSpelling): string {
  const suffix = layout === undefined ? "" : `, ${spelling(layout)}`;
  return `${dtype.name}, ${shapeText(shape)}${suffix}`;
}

export function typeText(type: Type): string {
  return spelledType(type, JSON.stringify);
}

/** The type as a text that writes layouts in its own way. */
export function spelledType(type: Type, spelling: LayoutSpelling): string {
  return (texts[type.kind] as (type: Type, spelling: LayoutSpelling) => string)(type, spelling);
}

/** Whether the types are the same but for layouts, about which placed kernels have rules of their own. */
export function sameType(left: Type, right: Type): boolean {
  if (left === right) return true;
  if (isSpread(left) && isSpread(right) && left.kind === right.kind)
    return left.dtype === right.dtype && sameShape(left.shape, right.shape);
  return left.kind === right.kind && typeText(left) === typeText(right);
}
