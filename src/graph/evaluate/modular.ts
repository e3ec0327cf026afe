/**
 * An arithmetic in which whatever is algebraically equal is equal to the bit, so that a rewrite can be checked: floats are whole numbers
 * modulo 2^32, kept as i32. Sums, products, minima, maxima and comparisons are those of whole numbers, and moving elements is what it is;
 * any other function is a fixed hash of its operands and attributes. Formats make no difference, and rounding is none.
 *
 *   (a + b) · c  =  a · c + b · c      whatever the order of sums
 *   exp(x)                             the same number for the same x, and no other number but by chance
 *
 * | float        | as a whole number                                                            |
 * |--------------|------------------------------------------------------------------------------|
 * | 3.0, -0.0    | 3, 0                                                                         |
 * | 0.5          | a hash: 2 has no inverse; x / 3 is x times that of 3, x / 2 a hash           |
 * | ∞, -∞        | the greatest and the least one, which minima and maxima begin from           |
 * | 1.5 + 2i     | both parts so                                                                |
 *
 * Elements that are whole numbers in the program stay what they are, and are computed as ever.
 */
import { attributesOf } from "../text/parts.ts";
import { attributeText } from "../text/attributes.ts";
import { elements, isComplexElement, isFloatElement, isTensor, operandsOf } from "../ops/index.ts";
import type { AnyGraphOp, ElementType, GraphOp, GraphOpKind, GraphValue } from "../ops/index.ts";
import { promoted } from "./arithmetic.ts";
import { declaredElement, scalarFunction } from "./elementwise/index.ts";
import type { ScalarKind, ScalarTypes } from "./elementwise/index.ts";
import type { ScalarFunction } from "./elementwise/forms.ts";
import { powerOfInteger } from "./elementwise/integers.ts";
import type { Arithmetic, Frame } from "./frame.ts";
import { numbersOf, reader, writer } from "./scalars.ts";
import type { Complex, Scalar } from "./scalars.ts";
import { countOf, emptyTensor, tensor } from "./value.ts";
import type { Datum, Tensor } from "./value.ts";

/** Numbers beyond are as good as infinite. */
const mostWhole = 2 ** 53;

/** A float as a whole number modulo 2^32. */
function wholeOf(value: number): number {
  if (Number.isInteger(value) && Math.abs(value) < mostWhole) return value | 0;
  if (value !== value || Math.abs(value) < mostWhole) return hashText(`${value}`);
  return value > 0 ? 0x7fffffff : -0x80000000;
}

function mixed(hash: number, word: number): number {
  let h = Math.imul(hash ^ (word | 0), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) | 0;
}

function hashText(text: string): number {
  let hash = 0x9747b28c;
  for (let i = 0; i < text.length; i++) hash = mixed(hash, text.charCodeAt(i));
  return hash;
}

/** The hash with one more operand. */
function withScalar(hash: number, value: Scalar): number {
  if (typeof value === "number") return mixed(hash, value);
  if (typeof value === "bigint")
    return mixed(
      mixed(hash, Number(BigInt.asIntN(32, value))),
      Number(BigInt.asIntN(32, value >> 32n)),
    );
  return mixed(mixed(hash, value.re), value.im);
}

/** A hash as an element: one that has such a kind takes as many bits as it holds. */
function elementOf(hash: number, element: ElementType): Scalar {
  const { kind, bits } = elements[element];
  if (kind === "complex") return { re: hash, im: mixed(hash, 1) };
  if (kind === "bool") return hash & 1;
  if (kind === "signed" || kind === "unsigned")
    return bits === 64 ? (BigInt(hash) << 32n) | BigInt(mixed(hash, 1) >>> 0) : hash;
  return hash;
}

/** What a function does, whichever its operands are. */
function nameOf(op: AnyGraphOp): string {
  const attributes = Array.from(
    attributesOf(op),
    ([name, value]) => `${name}=${attributeText(value)}`,
  );
  return [op.kind, ...attributes.sort()].join(";");
}

function hashFunction(op: AnyGraphOp): ScalarFunction {
  const name = hashText(nameOf(op));
  const [result] = op.results;
  const element = result === undefined ? "f32" : declaredElement(result);
  return (...operands) => elementOf(operands.reduce<number>(withScalar, name), element);
}

/** The inverse of an odd number modulo 2^32. */
function inverseOf(odd: number): number {
  let inverse = odd;
  // Each step doubles how many bits are right, from three on.
  for (let step = 0; step < 4; step++) inverse = Math.imul(inverse, 2 - Math.imul(odd, inverse));
  return inverse;
}

type Real = (...operands: number[]) => number;
type OfPairs = (...operands: Complex[]) => Scalar;

/** Functions of floats that are algebra; all others are hashes, but for those that whole numbers have. */
const reals: { readonly [K in GraphOpKind]?: (op: AnyGraphOp) => Real } = {
  "stablehlo.real":
    () =>
    (x = 0) =>
      x,
  "stablehlo.imag": () => () => 0,
  "chlo.conj":
    () =>
    (x = 0) =>
      x,
  "stablehlo.power":
    () =>
    (x = 0, y = 0) =>
      powerOfInteger(x, y >>> 0),
  "stablehlo.divide": (op) => {
    const hash = hashFunction(op);
    return (x = 0, y = 0) => (y & 1 ? Math.imul(x, inverseOf(y)) : (hash(x, y) as number));
  },
};

/** Functions of floats that are those of whole numbers. */
const wholes: ReadonlySet<GraphOpKind> = new Set<GraphOpKind>([
  "stablehlo.add",
  "stablehlo.subtract",
  "stablehlo.multiply",
  "stablehlo.negate",
  "stablehlo.maximum",
  "stablehlo.minimum",
  "stablehlo.clamp",
  "stablehlo.compare",
  "stablehlo.select",
  "stablehlo.convert",
  "chlo.square",
]);

function pair(re: number, im: number): Complex {
  return { re: re | 0, im: im | 0 };
}

function product(a: Complex, b: Complex): Complex {
  return pair(
    Math.imul(a.re, b.re) - Math.imul(a.im, b.im),
    Math.imul(a.re, b.im) + Math.imul(a.im, b.re),
  );
}

const none: Complex = { re: 0, im: 0 };

/** Functions of complex numbers that are algebra. */
const pairs: { readonly [K in GraphOpKind]?: OfPairs } = {
  "stablehlo.add": (a = none, b = none) => pair(a.re + b.re, a.im + b.im),
  "stablehlo.subtract": (a = none, b = none) => pair(a.re - b.re, a.im - b.im),
  "stablehlo.multiply": (a = none, b = none) => product(a, b),
  "chlo.square": (a = none) => product(a, a),
  "stablehlo.negate": (a = none) => pair(-a.re, -a.im),
  "chlo.conj": (a = none) => pair(a.re, -a.im),
  "stablehlo.real": (a = none) => a.re,
  "stablehlo.imag": (a = none) => a.im,
};

/** Those that only choose, compare or make complex numbers are what they are in every arithmetic. */
const choices: ReadonlySet<GraphOpKind> = new Set<GraphOpKind>([
  "stablehlo.compare",
  "stablehlo.select",
  "stablehlo.convert",
  "stablehlo.maximum",
  "stablehlo.minimum",
  "stablehlo.clamp",
]);

function isOfFloats({ type }: GraphValue): boolean {
  return isTensor(type) && (isFloatElement(type.element) || isComplexElement(type.element));
}

function modularFunction(op: GraphOp<ScalarKind>, types: ScalarTypes): ScalarFunction | undefined {
  const any = op as AnyGraphOp;
  const values = [...operandsOf(any), ...any.results];
  if (!values.some(isOfFloats)) return scalarFunction(op, types);
  if (op.kind === "stablehlo.complex") return (re, im) => pair(re as number, im as number);
  if (operandsOf(any).some((value) => isComplexElement(declaredElement(value)))) {
    const known = pairs[op.kind];
    if (known !== undefined) return known as ScalarFunction;
    return choices.has(op.kind) ? scalarFunction(op, types) : hashFunction(any);
  }
  const real = reals[op.kind];
  if (real !== undefined) return real(any) as ScalarFunction;
  return wholes.has(op.kind) ? scalarFunction(op, types) : hashFunction(any);
}

/** Functions of whole arrays, which are hashes of all of their elements. */
const arrayFunctions: ReadonlySet<GraphOpKind> = new Set<GraphOpKind>([
  "stablehlo.fft",
  "stablehlo.cholesky",
  "stablehlo.triangular_solve",
  "stablehlo.batch_norm_inference",
  "stablehlo.batch_norm_training",
  "stablehlo.batch_norm_grad",
]);

function hashOfTensor(hash: number, value: Tensor): number {
  const read = reader(value);
  let sum = hashText(`${hash} ${value.shape.join()}`);
  for (let i = 0; i < countOf(value); i++) sum = withScalar(sum, read(i));
  return sum;
}

/** A tensor with a hash at each place. */
function hashes(op: AnyGraphOp, frame: Frame, index: number, at: (i: number) => number): Tensor {
  const value = op.results[index];
  if (value === undefined) throw new Error("the op has the result");
  const result = emptyTensor(frame.result(op, index));
  const write = writer(result.element, result.data);
  const element = declaredElement(value);
  for (let i = 0; i < countOf(result); i++) write(i, elementOf(at(i), element));
  return result;
}

/** Bits of floats: a hash of those elements that share bits with a place of the result. */
function bitsOf(op: GraphOp<"stablehlo.bitcast_convert">, frame: Frame): Tensor {
  const operand = frame.tensor(op.operands.operand);
  const [from, to] = [countOf(operand), countOf(emptyTensor(frame.result(op)))];
  const read = reader(operand);
  const name = hashText(op.kind);
  const wider = Math.max(1, Math.round(from / Math.max(1, to)));
  const narrower = Math.max(1, Math.round(to / Math.max(1, from)));
  return hashes(op, frame, 0, (i) => {
    let hash = mixed(name, i % narrower);
    const first = Math.floor(i / narrower) * wider;
    for (let k = 0; k < wider; k++) hash = withScalar(hash, read(first + k));
    return hash;
  });
}

function results(op: AnyGraphOp, frame: Frame): readonly Datum[] | undefined {
  // Whether results are near what is expected says nothing here.
  if (op.kind.startsWith("check.")) return [];
  const hasFloats = [...operandsOf(op), ...op.results].some(isOfFloats);
  if (op.kind === "stablehlo.bitcast_convert" && hasFloats) return [bitsOf(op, frame)];
  if (!arrayFunctions.has(op.kind)) return undefined;
  const hash = frame.tensors(operandsOf(op)).reduce(hashOfTensor, hashText(nameOf(op)));
  return op.results.map((_, index) =>
    hashes(op, frame, index, (i) => mixed(mixed(hash, index), i)),
  );
}

function stored(element: ElementType): ElementType {
  if (isFloatElement(element)) return "i32";
  return isComplexElement(element) ? "complex<f64>" : element;
}

function kept(own: Tensor): Tensor {
  const { element, shape } = own;
  if (isFloatElement(element))
    return tensor("i32", shape, Int32Array.from(numbersOf(own), wholeOf));
  if (!isComplexElement(element)) return own;
  const { data } = promoted(own, "complex<f64>");
  return tensor("complex<f64>", shape, Float64Array.from(data as Float64Array, wholeOf));
}

export const modularArithmetic: Arithmetic = {
  stored,
  kept,
  scalarFunction: modularFunction,
  results,
  isModular: true,
};
