/**
 * The types of functions that not every dtype has: `exp` of integers and `bitwiseAnd` of floats do not compile. An array whose
 * dtype is not known is taken, and looked at when the function is called.
 *
 *   exp(array([1, 2], "i32"))       Argument of type 'NDArray<"i32">' is not assignable …
 */
import type { DTypeName, FloatName, IntegerName } from "../formats/dtype.ts";
import type { NDArray } from "./array.ts";
import type { Operand } from "./functions.ts";
import type { ReduceOptions } from "./reductions.ts";
import type { AxisOption } from "./shapes.ts";

/** What an array of dtype `D` has to be besides, where a function has only the dtypes `Has`. */
export type Only<D extends DTypeName, Has extends DTypeName> = [D] extends [Exclude<DTypeName, Has>]
  ? NDArray<Has>
  : unknown;

type OperandOf<D extends DTypeName, Has extends DTypeName> = Operand<D> & (Only<D, Has> | number);

export type UnaryOf<Has extends DTypeName> = <D extends DTypeName>(
  x: NDArray<D> & Only<D, Has>,
) => NDArray<D>;

export type BinaryOf<Has extends DTypeName> = <D extends DTypeName>(
  x: OperandOf<D, Has>,
  y: OperandOf<D, Has>,
) => NDArray<D>;

/** Along one axis or several. */
export type ReductionOf<Has extends DTypeName> = <D extends DTypeName>(
  x: NDArray<D> & Only<D, Has>,
  options?: ReduceOptions,
) => NDArray<D>;

/** Along one axis. */
export type AlongAxisOf<Has extends DTypeName> = <D extends DTypeName>(
  x: NDArray<D> & Only<D, Has>,
  options?: AxisOption,
) => NDArray<D>;

export type NumberName = FloatName | IntegerName;
export type LogicName = IntegerName | "bool";
