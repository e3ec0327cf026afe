/**
 * Sums of products: dot_general and what is a form of it.
 *
 * Both operands are brought into the form [batch, free, contracted]; a result element is the sum over the
 * contracted places of two rows, in order.
 *
 * | result                    | products and sums                                          |
 * |---------------------------|------------------------------------------------------------|
 * | f64, complex numbers      | in f64                                                     |
 * | narrower floats           | in f64, rounded once at the end; short sums (ops/products.ts) |
 * |                           | in f32, each step rounded                                  |
 * | integers up to 32 bits    | modulo 2^32                                                |
 * | i64, ui64                 | in big integers                                            |
 */
import { roundFloat } from "../../formats/floats.ts";
import type { DotAlgorithm, DotNumbers, ElementType, TensorType } from "../ops/index.ts";
import { roundedFormat } from "../ops/dot-algorithms.ts";
import { sizeOf } from "../ops/index.ts";
import { shortSum } from "../ops/products.ts";
import { emptyTensor, tensor } from "./value.ts";
import type { Tensor } from "./value.ts";
import { pause, pieceWork } from "./frame.ts";
import type { Steps } from "./frame.ts";
import { conversion } from "./elementwise/convert.ts";
import { domainOf, elementsOfNumbers, numbersOf, reader, writer } from "./scalars.ts";
import type { Complex, Scalar } from "./scalars.ts";
import { transpose } from "./shapes.ts";

/** Sums of products of two rows, for all pairs of rows. */
type RowProducts = (left: number, right: number, length: number) => Scalar;

/**
 * The sum of products of a result element; `left` and `right` are where its rows begin. `products` says how many a
 * sum has, which may be more than the rows have where some are known to be zero.
 */
export function rowProducts(
  left: Tensor,
  right: Tensor,
  result: ElementType,
  products: number,
  isModular = false,
): RowProducts {
  const domain = domainOf(result);
  if (domain === "complex")
    return isModular ? modularProducts(left, right) : complexProducts(left, right);
  if (domain === "wide") return wideProducts(left, right, result);
  const lefts = numbersOf(left);
  const rights = numbersOf(right);
  if (domain === "bool")
    return (first, second, length) => {
      let any = 0;
      for (let k = 0; k < length; k++)
        any |= (lefts[first + k] as number) & (rights[second + k] as number);
      return any;
    };
  if (domain === "integer")
    return (first, second, length) => {
      let sum = 0;
      for (let k = 0; k < length; k++)
        sum = (sum + Math.imul(lefts[first + k] as number, rights[second + k] as number)) | 0;
      return sum;
    };
  return realProducts(lefts, rights, result !== "f64" && products <= shortSum);
}

function realProducts(lefts: Float64Array, rights: Float64Array, isShort: boolean): RowProducts {
  return (first, second, length) => {
    let sum = 0;
    if (isShort) {
      for (let k = 0; k < length; k++) {
        const product = Math.fround((lefts[first + k] as number) * (rights[second + k] as number));
        sum = Math.fround(sum + product);
      }
      return sum;
    }
    for (let k = 0; k < length; k++)
      sum += (lefts[first + k] as number) * (rights[second + k] as number);
    return sum;
  };
}

function complexProducts(left: Tensor, right: Tensor): RowProducts {
  const read = asComplex(left);
  const readRight = asComplex(right);
  return (first, second, length) => {
    let re = 0;
    let im = 0;
    for (let k = 0; k < length; k++) {
      const a = read(first + k);
      const b = readRight(second + k);
      re += a.re * b.re - a.im * b.im;
      im += a.re * b.im + a.im * b.re;
    }
    return { re, im };
  };
}

/** Of complex whole numbers modulo 2^32. */
function modularProducts(left: Tensor, right: Tensor): RowProducts {
  const read = asComplex(left);
  const readRight = asComplex(right);
  return (first, second, length) => {
    let re = 0;
    let im = 0;
    for (let k = 0; k < length; k++) {
      const a = read(first + k);
      const b = readRight(second + k);
      re = (re + Math.imul(a.re, b.re) - Math.imul(a.im, b.im)) | 0;
      im = (im + Math.imul(a.re, b.im) + Math.imul(a.im, b.re)) | 0;
    }
    return { re, im };
  };
}

function asComplex(operand: Tensor): (index: number) => Complex {
  const read = reader(operand);
  const convert = conversion(operand.element, "complex<f64>");
  return (index) => convert(read(index)) as Complex;
}

function wideProducts(left: Tensor, right: Tensor, result: ElementType): RowProducts {
  const convert = [left, right].map(({ element }) => conversion(element, result));
  const read = [reader(left), reader(right)];
  const value = (side: 0 | 1, index: number) =>
    convert[side]?.(read[side]?.(index) as Scalar) as bigint;
  return (first, second, length) => {
    let sum = 0n;
    for (let k = 0; k < length; k++) sum += value(0, first + k) * value(1, second + k);
    return sum;
  };
}

export function* dotGeneral(
  lhs: Tensor,
  rhs: Tensor,
  numbers: DotNumbers,
  type: TensorType,
  isModular = false,
): Steps<Tensor> {
  const left = yield* arranged(
    lhs,
    numbers.lhs_batching_dimensions,
    numbers.lhs_contracting_dimensions,
  );
  const right = yield* arranged(
    rhs,
    numbers.rhs_batching_dimensions,
    numbers.rhs_contracting_dimensions,
  );
  const result = emptyTensor(type);
  const write = writer(result.element, result.data);
  const { batch, length } = left;
  const sum = rowProducts(left.rows, right.rows, result.element, length, isModular);
  let work = 0;
  for (let b = 0; b < batch; b++)
    for (let m = 0; m < left.free; m++)
      for (let n = 0; n < right.free; n++) {
        const first = (b * left.free + m) * length;
        const second = (b * right.free + n) * length;
        write((b * left.free + m) * right.free + n, sum(first, second, length));
        work += length + 1;
        if (work < pieceWork) continue;
        work = 0;
        yield pause;
      }
  return result;
}

/** An operand as rows: [batch, free, contracted]. */
function* arranged(
  operand: Tensor,
  batching: readonly number[],
  contracting: readonly number[],
): Steps<{
  readonly rows: Tensor;
  readonly batch: number;
  readonly free: number;
  readonly length: number;
}> {
  const { shape } = operand;
  const free = shape
    .map((_, axis) => axis)
    .filter((axis) => ![...batching, ...contracting].includes(axis));
  const extents = (axes: readonly number[]) => sizeOf(axes.map((axis) => shape[axis] as number));
  const order = [...batching, ...free, ...contracting];
  const inOrder = order.every((axis, i) => axis === i);
  return {
    rows: inOrder ? operand : yield* transpose(operand, order),
    batch: extents(batching),
    free: extents(free),
    length: extents(contracting),
  };
}

/** An operand rounded to the format that an algorithm names. */
export function roundedOperand(
  operand: Tensor,
  side: "lhs" | "rhs",
  algorithm: DotAlgorithm | undefined,
): Tensor {
  const format = roundedFormat(algorithm, side, operand.element);
  if (format === undefined) return operand;
  const numbers = numbersOf(operand).slice();
  for (let i = 0; i < numbers.length; i++) numbers[i] = roundFloat(format, numbers[i] as number);
  return tensor(operand.element, operand.shape, elementsOfNumbers(operand.element, numbers));
}

/** dot_general's numbers for two vectors or matrices. */
export function plainDotNumbers(left: Tensor): DotNumbers {
  return {
    lhs_batching_dimensions: [],
    rhs_batching_dimensions: [],
    lhs_contracting_dimensions: [left.shape.length - 1],
    rhs_contracting_dimensions: [0],
  };
}
