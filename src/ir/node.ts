/**
 * Nodes of the tile IR. All are frozen; passes build new ones. A value is defined once, by an op or as
 * a region's parameter, and is compared by identity.
 *
 *   kernel @axpy …                        Kernel
 *     { (%0: ref…, %1: ref…)              Region, with its parameters (Values)
 *       %2 = block_index {axis = "i"}     Op: kind, operands, attributes, results, regions, location
 *       yield }                           every region ends with yield
 */
import type { Location } from "../support/location.ts";
import type { Target } from "../targets/target.ts";
import type { OpAttributes, OpKind, OpOperands, OpRegions } from "./ops.ts";
import type { Dimension, Size } from "./size.ts";
import type { Type } from "./types.ts";

export interface Value<T extends Type = Type> {
  /** Unique within a kernel; printed as `%id`. */
  readonly id: number;
  readonly type: T;
}

export interface Op<K extends OpKind = OpKind> {
  readonly kind: K;
  readonly operands: OpOperands<K>;
  readonly attributes: OpAttributes<K>;
  readonly regions: OpRegions<K>;
  readonly results: readonly Value[];
  readonly location: Location;
}

/** An op of any kind, as a union that narrows on `kind`. */
export type AnyOp = OpOf<OpKind>;

/** An op of one of some kinds. */
export type OpOf<Kinds extends OpKind> = { readonly [K in Kinds]: Op<K> }[Kinds];

export interface Region {
  readonly parameters: readonly Value[];
  /** Never empty; the last one is a yield. */
  readonly ops: readonly AnyOp[];
}

/* What schemas say of operands and regions, as the values and regions that an op then has. */

type OperandValue<A> = A extends "many" ? readonly Value[] : Value;
type OptionalOperands<T> = { [N in keyof T]: T[N] extends "optional" ? N : never }[keyof T];

export type Operands<T> = {
  readonly [N in Exclude<keyof T, OptionalOperands<T>>]: OperandValue<T[N]>;
} & { readonly [N in OptionalOperands<T>]?: Value | undefined };

export type Regions<T> = {
  readonly [N in keyof T]: T[N] extends "many" ? readonly Region[] : Region;
};

export interface GridAxis {
  readonly name: string;
  readonly extent: Size;
  /** Blocks of a cluster along this axis; 1 where the axis has none. Divides the extent. */
  readonly cluster: number;
}

export type ParameterRole = "input" | "output" | "inout" | "scalar";

/** An argument of a kernel; `value` is the matching parameter of the body. */
export interface KernelParameter {
  readonly name: string;
  readonly role: ParameterRole;
  readonly value: Value;
  /** Strides in elements of an array that is not contiguous in row-major order. */
  readonly strides?: readonly Size[] | undefined;
}

export interface Kernel {
  readonly name: string;
  /** Last axis fastest. */
  readonly grid: readonly GridAxis[];
  /** Names of the program threads of a block; at least one. */
  readonly threads: readonly string[];
  /** Warps of each program thread, which hold its tiles together; 4, a warpgroup, unless said. */
  readonly warps: number;
  /** Blocks that a processor is to hold at once, where the kernel says. */
  readonly resident?: number | undefined;
  readonly dimensions: readonly Dimension[];
  readonly parameters: readonly KernelParameter[];
  readonly body: Region;
  readonly location: Location;
  /** Of a placed kernel: where it runs, and what its blocks take of shared memory. */
  readonly placed?: PlacedFor | undefined;
}

export interface PlacedFor {
  readonly target: Target;
  /** Once it is allocated. */
  readonly sharedBytes?: number | undefined;
}

/** What a caller of a kernel has to know. */
export type KernelInterface = Omit<Kernel, "threads" | "warps" | "resident" | "body" | "placed">;

export interface Module {
  readonly kernels: readonly Kernel[];
}
