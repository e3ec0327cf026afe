/**
 * The element types of graphs: all of StableHLO's, under the names its text has. They are more than the
 * number formats of kernels, so an element names the format that it is stored in where there is one.
 *
 * | elements                               | elements, one slot an element                    |
 * |----------------------------------------|-----------------------------------------------|
 * | i1, ui2, ui4, ui8, floats below 16 bits| Uint8Array; floats as bit patterns            |
 * | i2, i4, i8                             | Int8Array                                     |
 * | f16, bf16                              | Uint16Array, bit patterns                     |
 * | f32, f64 and the other integers        | the typed array of that name; index is i64    |
 * | complex<f32>, complex<f64>             | Float32Array, Float64Array: two slots, (re, im) |
 */
import { dtypes, withinMemory } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";

export type ElementKind = "bool" | "signed" | "unsigned" | "float" | "complex";

export type FloatElement =
  | "f64"
  | "f32"
  | "f16"
  | "bf16"
  | "f8E3M4"
  | "f8E4M3"
  | "f8E4M3FN"
  | "f8E4M3FNUZ"
  | "f8E4M3B11FNUZ"
  | "f8E5M2"
  | "f8E5M2FNUZ"
  | "f8E8M0FNU"
  | "f6E2M3FN"
  | "f6E3M2FN"
  | "f4E2M1FN";
export type SignedElement = "i2" | "i4" | "i8" | "i16" | "i32" | "i64" | "index";
export type UnsignedElement = "ui2" | "ui4" | "ui8" | "ui16" | "ui32" | "ui64";
export type ComplexElement = "complex<f32>" | "complex<f64>";
export type ElementType = "i1" | FloatElement | SignedElement | UnsignedElement | ComplexElement;

export interface ElementDescription {
  readonly kind: ElementKind;
  /** Bits of an element's value; of both parts for complex numbers. */
  readonly bits: number;
  /** The format of kernels that holds the same numbers. */
  readonly dtype: DType | undefined;
}

function element(kind: ElementKind, bits: number, dtype?: DType): ElementDescription {
  return Object.freeze({ kind, bits, dtype });
}

export const elements: { readonly [E in ElementType]: ElementDescription } = Object.freeze({
  i1: element("bool", 1, dtypes.bool),
  i2: element("signed", 2),
  i4: element("signed", 4, dtypes.i4),
  i8: element("signed", 8, dtypes.i8),
  i16: element("signed", 16, dtypes.i16),
  i32: element("signed", 32, dtypes.i32),
  i64: element("signed", 64, dtypes.i64),
  index: element("signed", 64, dtypes.i64),
  ui2: element("unsigned", 2),
  ui4: element("unsigned", 4, dtypes.u4),
  ui8: element("unsigned", 8, dtypes.u8),
  ui16: element("unsigned", 16, dtypes.u16),
  ui32: element("unsigned", 32, dtypes.u32),
  ui64: element("unsigned", 64, dtypes.u64),
  f64: element("float", 64, dtypes.f64),
  f32: element("float", 32, dtypes.f32),
  f16: element("float", 16, dtypes.f16),
  bf16: element("float", 16, dtypes.bf16),
  f8E3M4: element("float", 8),
  f8E4M3: element("float", 8),
  f8E4M3FN: element("float", 8, dtypes.f8e4m3fn),
  f8E4M3FNUZ: element("float", 8),
  f8E4M3B11FNUZ: element("float", 8),
  f8E5M2: element("float", 8, dtypes.f8e5m2),
  f8E5M2FNUZ: element("float", 8),
  f8E8M0FNU: element("float", 8, dtypes.f8e8m0fnu),
  f6E2M3FN: element("float", 6, dtypes.f6e2m3fn),
  f6E3M2FN: element("float", 6, dtypes.f6e3m2fn),
  f4E2M1FN: element("float", 4, dtypes.f4e2m1fn),
  "complex<f32>": element("complex", 64),
  "complex<f64>": element("complex", 128),
});

export const elementTypes = Object.freeze(Object.keys(elements)) as readonly ElementType[];

export function isElementType(name: string): name is ElementType {
  return Object.hasOwn(elements, name);
}

export function elementKind(name: ElementType): ElementKind {
  return elements[name].kind;
}

export function isComplexElement(name: ElementType): name is ComplexElement {
  return elements[name].kind === "complex";
}

/** Whether an element is a float whose sums are made in f32 and rounded once. */
export function isNarrowFloat(name: ElementType): boolean {
  return elements[name].kind === "float" && elements[name].bits <= 16;
}

export function isFloatElement(name: ElementType): name is FloatElement {
  return elements[name].kind === "float";
}

/** Whole numbers; i1 is not one of them. */
export function isIntegerElement(name: ElementType): name is SignedElement | UnsignedElement {
  return elements[name].kind === "signed" || elements[name].kind === "unsigned";
}

/** The elements whose elements are BigInt. */
export function isWideElement(name: ElementType): name is "i64" | "ui64" | "index" {
  return isIntegerElement(name) && elements[name].bits === 64;
}

/** The real numbers that a complex one is made of. */
export function partOf(name: ComplexElement): "f32" | "f64" {
  return name === "complex<f32>" ? "f32" : "f64";
}

/** The element type of the graph whose numbers a format of kernels holds. */
export function elementOfDType(dtype: DType): ElementType | undefined {
  return elementTypes.find((name) => name !== "index" && elements[name].dtype === dtype);
}

/** The arrays that elements can be. */
export type TensorData =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array;

interface LaneConstructor {
  new (length: number): TensorData;
  new (buffer: ArrayBufferLike, offset: number, length: number): TensorData;
  readonly BYTES_PER_ELEMENT: number;
}

const signedLanes: { readonly [bits: number]: LaneConstructor } = {
  2: Int8Array,
  4: Int8Array,
  8: Int8Array,
  16: Int16Array,
  32: Int32Array,
  64: BigInt64Array,
};
const unsignedLanes: { readonly [bits: number]: LaneConstructor } = {
  1: Uint8Array,
  2: Uint8Array,
  4: Uint8Array,
  6: Uint8Array,
  8: Uint8Array,
  16: Uint16Array,
  32: Uint32Array,
  64: BigUint64Array,
};
const laneKinds: { readonly [K in ElementKind]: { readonly [bits: number]: LaneConstructor } } = {
  bool: unsignedLanes,
  signed: signedLanes,
  unsigned: unsignedLanes,
  float: { ...unsignedLanes, 32: Float32Array, 64: Float64Array },
  complex: { 64: Float32Array, 128: Float64Array },
};

/** The class of an element's elements. */
export function elementConstructor(name: ElementType): LaneConstructor {
  const { kind, bits } = elements[name];
  const found = laneKinds[kind][bits];
  if (found === undefined) throw new Error(`${name} has no data`);
  return found;
}

/** Bytes of a slot of an element's elements. */
export function elementBytes(name: ElementType): number {
  return elementConstructor(name).BYTES_PER_ELEMENT;
}

/** Slots that an element takes in its elements. */
export function slotsOf(name: ElementType): 1 | 2 {
  return isComplexElement(name) ? 2 : 1;
}

/** Lanes of zero bits for `count` elements. */
export function allocateTensorData(name: ElementType, count: number): TensorData {
  const data = elementConstructor(name);
  return withinMemory(name, count, () => new data(count * slotsOf(name)));
}
