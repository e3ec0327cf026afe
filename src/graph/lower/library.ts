/**
 * Products that the library's `matmul` makes: large ones of f16, bf16 and f32 whose operands lie in memory as matrices, or as
 * batches of them. Others are made by tiles (`tiled/matmul.ts`).
 *
 *   lhs [b, h, q, d]  batch b, h   free q   contracted d     a [b·h, q, d]
 *   rhs [b, h, k, d]  batch b, h   free k   contracted d     b [b·h, d, k], by columns
 */
import { permute } from "../../kernels/movement/strided-copies.ts";
import { matmul } from "../../kernels/matmul/matmul.ts";
import type { Operation } from "../../device/operation.ts";
import { multiplySizes } from "../../ir/size.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { GraphOp, GraphValue } from "../ops/node.ts";
import { sizeOf } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import type { MatmulPrecision } from "../../kernels/matmul/problem.ts";
import { dotAxes, roundsOperands, splitPrecisionOf } from "./dot-axes.ts";
import type { DotAxes } from "./dot-axes.ts";
import { storageOf, tensorTypeOf } from "./storage.ts";

/** An operation in place of a kernel: the values that its arguments are, each under a shape. */
export interface LibraryCall {
  readonly operation: Operation;
  readonly inputs: readonly {
    readonly name: string;
    readonly value: GraphValue;
    readonly shape: readonly number[];
    readonly view?: PartView;
  }[];
  /** The arguments that the op's results are, in their order. */
  readonly outputs: readonly {
    readonly name: string;
    readonly shape: readonly number[];
    readonly view?: PartView;
  }[];
  /** Whether the plan says what the operation's own plan notes: which of several ways it takes. */
  readonly isNoted?: boolean;
}

/** Where an argument that is a part of a value lies in it, in elements: its shape is then the run from its first element to its last. */
export interface PartView {
  readonly offset: number;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
}

/** How tensor cores make a product. */
export interface ProductFormats {
  readonly precision: MatmulPrecision | undefined;
}

/** Below so many products a launch of the library's takes no less time than one of ours. */
export const leastProducts = 1 << 20;

interface Matrix {
  /** Whether the free axes come before the contracted ones. */
  readonly isFreeFirst: boolean;
  readonly batch: number;
  readonly free: number;
  readonly contracted: number;
}

function isRun(axes: readonly number[], start: number): boolean {
  return axes.every((axis, i) => axis === start + i);
}

/** The operand as a batch of matrices; undefined where its axes lie otherwise. */
function matrixOf({ shape }: TensorType, { batch, free, contracted }: DotAxes): Matrix | undefined {
  const extent = (axes: readonly number[]): number => sizeOf(axes.map((axis) => shape[axis] ?? 1));
  const sizes = {
    batch: extent(batch),
    free: extent(free),
    contracted: extent(contracted),
  };
  if (!isRun(batch, 0)) return undefined;
  const next = batch.length;
  if (isRun(free, next) && isRun(contracted, next + free.length))
    return { ...sizes, isFreeFirst: true };
  if (isRun(contracted, next) && isRun(free, next + contracted.length))
    return { ...sizes, isFreeFirst: false };
  return undefined;
}

const operations = new Map<string, Operation>();

/** One operation for all products of the same formats and order in memory, whatever their sizes: their kernels are shared. */
function operationOf(
  left: Matrix,
  right: Matrix,
  element: TensorType,
  out: TensorType,
  precision: MatmulPrecision | undefined,
): Operation {
  const isBatch = left.batch > 1;
  const orders = [left.isFreeFirst, right.isFreeFirst, isBatch];
  const key = [...orders, element.element, out.element, precision].join();
  const known = operations.get(key);
  if (known !== undefined) return known;
  const dtype = storageOf(element.element);
  const result = storageOf(out.element);
  if (dtype === undefined || result === undefined) throw new Error("devices have these formats");
  const [batch, m, n, k] = [dim("batch"), dim("m"), dim("n"), dim("k")];
  const spec = (rows: typeof m, columns: typeof m, isByRows: boolean) => {
    const shape = isBatch ? [batch, rows, columns] : [rows, columns];
    const strides = isBatch ? [multiplySizes(rows, columns), 1, rows] : [1, rows];
    return isByRows ? tensor(dtype, shape) : tensor(dtype, shape, { strides });
  };
  const made = matmul({
    a: spec(m, k, left.isFreeFirst),
    b: spec(k, n, !right.isFreeFirst),
    out: result,
    ...(precision !== undefined && { precision }),
  }) as unknown as Operation;
  operations.set(key, made);
  return made;
}

/** The formats of tensor cores that sum in f32 and round once, as graphs mean it. */
export const halves: readonly string[] = ["bf16", "f16"];

/** How the library makes a product of these formats; undefined where it does not. */
export function productFormats(op: GraphOp<"stablehlo.dot_general">): ProductFormats | undefined {
  const { lhs, rhs } = op.operands;
  const [result] = op.results;
  const precision = splitPrecisionOf(op);
  if (result === undefined || (precision === undefined && roundsOperands(op))) return undefined;
  const [left, right, out] = [tensorTypeOf(lhs), tensorTypeOf(rhs), tensorTypeOf(result)];
  const isOurs =
    left.element === right.element &&
    (out.element === left.element || out.element === "f32") &&
    (precision !== undefined || halves.includes(left.element));
  return isOurs ? { precision } : undefined;
}

export function libraryProduct(op: GraphOp<"stablehlo.dot_general">): LibraryCall | undefined {
  const { lhs, rhs } = op.operands;
  const [result] = op.results;
  const formats = productFormats(op);
  if (result === undefined || formats === undefined) return undefined;
  const { precision } = formats;
  const [left, right, out] = [tensorTypeOf(lhs), tensorTypeOf(rhs), tensorTypeOf(result)];
  const numbers = op.attributes.dot_dimension_numbers;
  const a = matrixOf(left, dotAxes(numbers, "lhs", left.shape.length));
  const b = matrixOf(right, dotAxes(numbers, "rhs", right.shape.length));
  if (a === undefined || b === undefined) return undefined;
  if (a.batch * a.free * a.contracted * b.free < leastProducts) return undefined;
  const shaped = (rows: number, columns: number): readonly number[] =>
    a.batch === 1 ? [rows, columns] : [a.batch, rows, columns];
  return {
    operation: operationOf(a, b, left, out, precision),
    inputs: [
      { name: "a", value: lhs, shape: shaped(a.free, a.contracted) },
      { name: "b", value: rhs, shape: shaped(b.contracted, b.free) },
    ],
    outputs: [{ name: "out", shape: shaped(a.free, b.free) }],
  };
}

/** Below so many elements a transpose is a map like others. */
const leastMoved = 1 << 14;

const transposes = new Map<string, Operation>();

/** One operation for all transposes that move axes alike. */
function transposeOf({ element, shape }: TensorType, permutation: readonly number[]): Operation {
  const key = [element, ...permutation].join();
  const known = transposes.get(key);
  if (known !== undefined) return known;
  const dtype = storageOf(element);
  if (dtype === undefined) throw new Error("devices have this format");
  const made: Operation = permute({
    x: tensor(
      dtype,
      shape.map((_, axis) => dim(`d${axis}`)),
    ),
    permutation,
  });
  transposes.set(key, made);
  return made;
}

/** Large transposes that make rows columns are copies of squares. */
export function libraryTranspose(op: GraphOp<"stablehlo.transpose">): LibraryCall | undefined {
  const { operand } = op.operands;
  const [result] = op.results;
  if (result === undefined) return undefined;
  const [type, out] = [tensorTypeOf(operand), tensorTypeOf(result)];
  const { permutation } = op.attributes;
  // Where the innermost axis stays, elements of a run are neighbours of a lane's, as in any map.
  const innermost = permutation.findLast((axis) => type.shape[axis] !== 1);
  const isTurned = innermost !== type.shape.findLastIndex((extent) => extent !== 1);
  if (!isTurned || sizeOf(type.shape) < leastMoved) return undefined;
  return {
    operation: transposeOf(type, permutation),
    inputs: [{ name: "x", value: operand, shape: type.shape }],
    outputs: [{ name: "out", shape: out.shape }],
  };
}

/** A call of a kernel that the user wrote: operands and results are its arrays, in the order of their declaration. */
export function kernelLibraryCall(
  op: GraphOp<"stablehlo.custom_call">,
  operation: Operation,
): LibraryCall {
  const shapeOf = (value: GraphValue): readonly number[] => tensorTypeOf(value).shape;
  const names = Object.keys(operation.inputs);
  return {
    operation,
    inputs: op.operands.inputs.map((value, i) => ({
      name: names[i] ?? "",
      value,
      shape: shapeOf(value),
    })),
    outputs: Object.keys(operation.outputs).map((name, i) => ({
      name,
      shape: shapeOf(op.results[i] as GraphValue),
    })),
  };
}
