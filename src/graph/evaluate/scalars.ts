/**
 * Single elements as JavaScript values, and how elements are read and written as such.
 *
 * | domain  | elements             | scalar                | written                                   |
 * |---------|----------------------|-----------------------|-------------------------------------------|
 * | bool    | i1                   | 0 or 1                | as it is                                  |
 * | integer | up to 32 bits        | number                | wrapped to the width                      |
 * | wide    | i64, ui64, index     | bigint                | wrapped to 64 bits                        |
 * | real    | floats               | number                | rounded once to the element type          |
 * | complex | complex<f32>, <f64>  | { re, im }            | each part rounded                         |
 *
 * An elementwise function computes in f64, big integers or pairs of f64; writing its result rounds or
 * wraps it. For sums, products, quotients and roots of the narrower floats that is the correctly rounded
 * result, since an f64 has more than twice their bits.
 */
import {
  decodeElement,
  elements,
  encodeElement,
  isFloatElement,
  isWideElement,
  elementConstructor,
  slotsOf,
} from "../ops/index.ts";
import type { TensorData, ElementType, FloatElement } from "../ops/index.ts";
import type { Tensor } from "./value.ts";

export interface Complex {
  readonly re: number;
  readonly im: number;
}

export type Scalar = number | bigint | Complex;
export type Domain = "bool" | "integer" | "wide" | "real" | "complex";

export function domainOf(element: ElementType): Domain {
  const { kind } = elements[element];
  if (kind === "bool" || kind === "complex") return kind;
  if (kind === "float") return "real";
  return isWideElement(element) ? "wide" : "integer";
}

type CodedElement = Exclude<FloatElement, "f64" | "f32">;

function isCoded(element: ElementType): element is CodedElement {
  return isFloatElement(element) && element !== "f64" && element !== "f32";
}

const decodedTables = new Map<CodedElement, Float64Array>();

/** The numbers of all codes of a float element. */
function decodedTable(element: CodedElement): Float64Array {
  const known = decodedTables.get(element);
  if (known !== undefined) return known;
  const codes = 2 ** elements[element].bits;
  const table = Float64Array.from({ length: codes }, (_, code) => decodeElement(element, code));
  decodedTables.set(element, table);
  return table;
}

export type Reader = (index: number) => Scalar;
export type Writer = (index: number, value: Scalar) => void;

/** Reads elements of a tensor by their place in row-major order. */
export function reader({ element, data }: Tensor): Reader {
  if (isCoded(element)) {
    const table = decodedTable(element);
    return (index) => table[data[index] as number] as number;
  }
  if (slotsOf(element) === 2)
    return (index) => ({ re: data[2 * index] as number, im: data[2 * index + 1] as number });
  return (index) => data[index] as number | bigint;
}

/** Writes elements, rounded or wrapped to the element type. */
export function writer(element: ElementType, data: TensorData): Writer {
  if (slotsOf(element) === 2) {
    const parts = data as Float64Array;
    return (index, value) => {
      const { re, im } = value as Complex;
      parts[2 * index] = re;
      parts[2 * index + 1] = im;
    };
  }
  const { bits, kind } = elements[element];
  // Typed arrays round and wrap to the width they have; fewer bits, and codes, are ours to make.
  if (isCoded(element) || (bits < 8 && kind !== "bool")) {
    const settle = elementSettler(element);
    const numbers = data as Float64Array;
    return (index, value) => {
      numbers[index] = settle(value as number);
    };
  }
  if (domainOf(element) === "real") {
    const numbers = data as Float64Array;
    return (index, value) => {
      // A NaN that the processor made may carry a sign; the literal does not.
      numbers[index] = value === value ? (value as number) : NaN;
    };
  }
  return (index, value) => {
    data[index] = value as never;
  };
}

/** A number as the element of an element that typed arrays do not round or wrap to. */
function elementSettler(element: ElementType): (value: number) => number {
  if (isCoded(element)) return (value) => encodeElement(element, value);
  return settlers(element) as (value: number) => number;
}

function settlers(element: ElementType): (value: never) => Scalar {
  const { kind, bits } = elements[element];
  if (kind === "bool") return (value: number) => value;
  if (kind === "signed")
    return bits === 64
      ? (value: bigint) => BigInt.asIntN(64, value)
      : (value: number) => (value << (32 - bits)) >> (32 - bits);
  if (kind === "unsigned")
    return bits === 64
      ? (value: bigint) => BigInt.asUintN(64, value)
      : (value: number) => (bits === 32 ? value >>> 0 : value & ((1 << bits) - 1));
  if (element === "complex<f32>")
    return ({ re, im }: Complex) => ({ re: Math.fround(re), im: Math.fround(im) });
  if (element === "f32") return Math.fround;
  if (isCoded(element)) {
    const table = decodedTable(element);
    return (value: number) => table[encodeElement(element, value)] as number;
  }
  return (value: Scalar) => value;
}

/** Rounds or wraps a scalar to an element type, as writing and reading it would. */
export function settler(element: ElementType): (value: Scalar) => Scalar {
  return settlers(element) as (value: Scalar) => Scalar;
}

/** All elements of a real, integer or bool tensor as f64; of i64 too, rounded. */
export function numbersOf(operand: Tensor): Float64Array {
  const { data } = operand;
  if (data instanceof Float64Array && !isCoded(operand.element)) return data;
  const numbers = new Float64Array(data.length);
  readNumbers(operand, 0, numbers);
  return numbers;
}

/** Fills `numbers` with the elements of a tensor from `start` on, as `numbersOf` has them. */
export function readNumbers({ element, data }: Tensor, start: number, numbers: Float64Array): void {
  const count = numbers.length;
  if (isCoded(element)) {
    const table = decodedTable(element);
    const codes = data as Uint16Array;
    for (let i = 0; i < count; i++) numbers[i] = table[codes[start + i] as number] as number;
  } else if (data instanceof BigInt64Array || data instanceof BigUint64Array)
    for (let i = 0; i < count; i++) numbers[i] = Number(data[start + i]);
  else numbers.set(data.subarray(start, start + count));
}

/** Writes numbers as elements from `start` on, rounded or wrapped to the element type; not of 64-bit integers. */
export function writeNumbers(
  { element, data }: Tensor,
  start: number,
  numbers: Float64Array,
): void {
  const count = numbers.length;
  const { bits, kind } = elements[element];
  if (isCoded(element) || (bits < 8 && kind !== "bool")) {
    const settle = elementSettler(element);
    for (let i = 0; i < count; i++) data[start + i] = settle(numbers[i] as number);
    return;
  }
  // A NaN that the processor made may carry a sign; the literal does not.
  if (kind === "float")
    for (let i = 0; i < count; i++) if (numbers[i] !== numbers[i]) numbers[i] = NaN;
  (data as Float64Array).set(numbers, start);
}

/** Elements of numbers that are rounded to the element type. */
export function elementsOfNumbers(element: ElementType, numbers: Float64Array): TensorData {
  if (element === "f64") return numbers;
  const data = new (elementConstructor(element))(numbers.length);
  writeNumbers({ kind: "tensor", element, shape: [numbers.length], data }, 0, numbers);
  return data;
}

/** Whether elements are numbers of JavaScript, which an f64 holds. */
export function isNumberElement(element: ElementType): boolean {
  const domain = domainOf(element);
  return domain !== "wide" && domain !== "complex";
}

/** The only element of a tensor that is an index or a predicate. */
export function scalarNumber({ data }: Tensor): number {
  return Number(data[0]);
}
