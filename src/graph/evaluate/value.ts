/**
 * What graph values are while a program is evaluated. A tensor is its elements, row-major, in the form that
 * `ops/elements.ts` gives each element type; elements are shared between tensors and never written to once
 * a rule has returned them.
 *
 *   tensor<2x2xbf16>   { element: "bf16", shape: [2, 2], data: Uint16Array [3f80, 4000, 4040, 4080] }
 */
import {
  allocateTensorData,
  elementOfDType,
  elements,
  expandElements,
  sizeOf,
  slotsOf,
  tensorType,
  typeText,
} from "../ops/index.ts";
import type { TensorData, ElementType, GraphType, Literal, TensorType } from "../ops/index.ts";
import { fromElements, toElements } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import { requireDType } from "../../formats/argument-checks.ts";
import { TilewrightError } from "../../support/diagnostics.ts";

/** An array as the evaluator holds it. */
export interface Tensor<E extends ElementType = ElementType> {
  /** What kind of value it is. */
  readonly kind: "tensor";
  /** The type of the elements, as StableHLO names it. */
  readonly element: E;
  /** The extents of the axes. */
  readonly shape: readonly number[];
  /** The elements in row-major order. */
  readonly data: TensorData;
}

/** Order alone. */
export interface TokenDatum {
  /** What kind of value it is. */
  readonly kind: "token";
}

export interface TupleDatum {
  /** What kind of value it is. */
  readonly kind: "tuple";
  /** The values in it, in order. */
  readonly members: readonly Datum[];
}

/** What an asynchronous op has started. */
export interface FutureDatum {
  /** What kind of value it is. */
  readonly kind: "future";
  /** The values in it, in order. */
  readonly members: readonly Datum[];
}

/** A value of a program: a tensor, a token or a tuple. */
export type Datum = Tensor | TokenDatum | TupleDatum | FutureDatum;

export const tokenDatum: TokenDatum = Object.freeze({ kind: "token" });

/** A tensor over `elements`, which are kept. */
export function tensor<E extends ElementType>(
  element: E,
  shape: readonly number[],
  data: TensorData,
): Tensor<E> {
  return { kind: "tensor", element, shape, data };
}

/** A tensor of zero bits, for its maker to fill. */
export function emptyTensor({
  element,
  shape,
}: {
  element: ElementType;
  shape: readonly number[];
}): Tensor {
  return tensor(element, shape, allocateTensorData(element, sizeOf(shape)));
}

/** The number of elements. */
export function countOf({ shape }: Tensor): number {
  return sizeOf(shape);
}

/** The same elements in another shape. */
export function reshaped({ element, data }: Tensor, shape: readonly number[]): Tensor {
  return tensor(element, shape, data);
}

export function typeOf({ element, shape }: Tensor): TensorType {
  return tensorType(element, shape);
}

/** The type of a datum as text, for reports. */
export function datumText(datum: Datum): string {
  if (datum.kind === "tensor") return typeText(typeOf(datum));
  if (datum.kind === "token") return "!stablehlo.token";
  return `${datum.kind}<${datum.members.map(datumText).join(", ")}>`;
}

export function tensorOfLiteral(literal: Literal): Tensor {
  const { element, shape } = literal.type;
  return tensor(element, shape, expandElements(literal));
}

/** The tensor of a host array; a complex one has the parts of its numbers along the last axis. */
export function tensorOfArray(array: HostArray, complex = false): Tensor {
  const { shape } = array;
  const dtype = requireDType(array.dtype);
  const element = elementOfDType(dtype);
  if (element === undefined)
    throw new TilewrightError({
      code: "TW9505",
      message: `programs have no elements of ${dtype.name}`,
      expected: "an array of a format that programs have",
      found: dtype.name,
    });
  const data = toElements(array);
  if (!complex) return tensor(element, shape, data);
  if ((element !== "f32" && element !== "f64") || shape.at(-1) !== 2)
    throw new TilewrightError({
      code: "TW9505",
      message: "the array is not one of the parts of complex numbers",
      expected: "f32 or f64, with a last axis of two",
      found: `${dtype.name} of shape [${shape.join(", ")}]`,
    });
  return tensor(element === "f64" ? "complex<f64>" : "complex<f32>", shape.slice(0, -1), data);
}

/** A copy of a tensor as a host array, where kernels have a format for its elements. */
export function arrayOfTensor({ element, shape, data }: Tensor): HostArray | undefined {
  const { dtype } = elements[element];
  return dtype === undefined ? undefined : fromElements(dtype, shape, data.slice());
}

/** Copies of one element. */
export function splat(
  source: Tensor,
  type: { element: ElementType; shape: readonly number[] },
): Tensor {
  const slots = slotsOf(source.element);
  const data = allocateTensorData(source.element, sizeOf(type.shape));
  if (slots === 1) data.fill(source.data[0] as never);
  else for (let i = 0; i < data.length; i++) data[i] = source.data[i % 2] as never;
  return tensor(source.element, type.shape, data);
}

export function isTensorDatum(datum: Datum | undefined): datum is Tensor {
  return datum?.kind === "tensor";
}

export type { GraphType };
