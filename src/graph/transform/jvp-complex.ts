/**
 * Derivatives of complex numbers and Fourier transforms. A cotangent c and a tangent t of complex numbers are paired as
 * Re(c · t), which is JAX's convention: maps that are linear over complex numbers are transposed as matrices are,
 * without conjugation, and for the others
 *
 * | map              | transpose        |
 * |------------------|------------------|
 * | t -> Re(t)       | c -> c + 0i      |
 * | t -> Im(t)       | c -> 0 - ci      |
 * | t -> conj(t)     | c -> conj(c)     |
 * | (a, b) -> a + bi | c -> Re(c), -Im(c) |
 */
import type { GraphBuilder } from "../infer/builder.ts";
import { isComplexElement, partOf } from "../ops/elements.ts";
import { literal } from "../ops/literal.ts";
import type { GraphOp, GraphValue } from "../ops/node.ts";
import { sizeOf, tensorType } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import {
  broadcastInDim,
  compare,
  divide,
  like,
  multiply,
  negate,
  select,
  typeOfValue,
  unary,
  zerosOf,
} from "./arithmetic.ts";
import type { JvpContext, JvpRule, Tangent } from "./context.ts";
import { padOf, required, scaling, single } from "./maps.ts";
import type { LinearMap } from "./linear.ts";
import { through } from "./jvp-by-decomposition.ts";

function complexOf(builder: GraphBuilder, real: GraphValue, imaginary: GraphValue): GraphValue {
  return builder.one("stablehlo.complex", { lhs: real, rhs: imaginary }, {});
}

function realOf(builder: GraphBuilder, operand: GraphValue): GraphValue {
  return builder.one("stablehlo.real", { operand }, {});
}

function imaginaryOf(builder: GraphBuilder, operand: GraphValue): GraphValue {
  return builder.one("stablehlo.imag", { operand }, {});
}

/** The conjugate of complex numbers; real ones as they are. */
export function conjugate(builder: GraphBuilder, operand: GraphValue): GraphValue {
  if (!isComplexElement(typeOfValue(operand).element)) return operand;
  return complexOf(
    builder,
    realOf(builder, operand),
    negate(builder, imaginaryOf(builder, operand)),
  );
}

function partType({ element, shape }: TensorType): TensorType {
  return isComplexElement(element)
    ? tensorType(partOf(element), shape)
    : tensorType(element, shape);
}

function realPart(type: TensorType): LinearMap {
  if (!isComplexElement(type.element))
    return single(
      type,
      (_, tangent) => tangent,
      (_, c) => c,
    );
  return single(partType(type), realOf, (builder, c) => complexOf(builder, c, like(builder, c, 0)));
}

function imaginaryPart(type: TensorType): LinearMap {
  return single(partType(type), imaginaryOf, (builder, c) =>
    complexOf(builder, like(builder, c, 0), negate(builder, c)),
  );
}

type OfOne<K extends "stablehlo.real" | "stablehlo.imag" | "chlo.conj" | "stablehlo.abs"> =
  JvpRule<K>;

export const realRule: OfOne<"stablehlo.real"> = (op, context) => [
  context.map(context.tangent(op.operands.operand), () =>
    realPart(typeOfValue(op.operands.operand)),
  ),
];

/** Real numbers have an imaginary part of zero. */
export const imaginaryRule: OfOne<"stablehlo.imag"> = (op, context) => {
  const type = typeOfValue(op.operands.operand);
  if (!isComplexElement(type.element)) return [undefined];
  return [context.map(context.tangent(op.operands.operand), () => imaginaryPart(type))];
};

export const conjugateRule: OfOne<"chlo.conj"> = (op, context) => {
  const type = typeOfValue(op.operands.operand);
  return [
    context.map(context.tangent(op.operands.operand), () => single(type, conjugate, conjugate)),
  ];
};

/** a + bi of the tangents that are there. */
export const complexRule: JvpRule<"stablehlo.complex"> = (op, context) => {
  const { lhs, rhs } = op.operands;
  const to = typeOfValue(required(op.results[0]));
  const part = typeOfValue(lhs);
  const zero = (builder: GraphBuilder): GraphValue => zerosOf(builder, part);
  return [
    context.sum([
      context.map(context.tangent(lhs), () =>
        single(to, (builder, t) => complexOf(builder, t, zero(builder)), realOf),
      ),
      context.map(context.tangent(rhs), () =>
        single(
          to,
          (builder, t) => complexOf(builder, zero(builder), t),
          (builder, c) => negate(builder, imaginaryOf(builder, c)),
        ),
      ),
    ]),
  ];
};

/** Re(conj(z) · t) / |z|, zero where z is; the sign of a real number times t. */
export const absRule: OfOne<"stablehlo.abs"> = (op, context) => {
  const { builder } = context;
  const z = op.operands.operand;
  const tangent = context.tangent(z);
  const type = typeOfValue(z);
  if (!isComplexElement(type.element))
    return [context.map(tangent, () => scaling(unary(builder, "stablehlo.sign", z)))];
  const turned = context.map(tangent, () => {
    const size = required(op.results[0]);
    const isZero = compare(builder, "EQ", size, like(builder, size, 0));
    const safe = select(builder, isZero, like(builder, size, 1), size);
    const wide = complexOf(builder, safe, like(builder, safe, 0));
    return scaling(divide(builder, conjugate(builder, z), wide));
  });
  return [context.map(turned, () => realPart(type))];
};

/** z / |z| of complex numbers; the sign of a real number does not change. */
export function signRule(op: GraphOp<"stablehlo.sign">, context: JvpContext): readonly Tangent[] {
  const { operand } = op.operands;
  if (!isComplexElement(typeOfValue(operand).element)) return [undefined];
  return through(op, context, (builder) => {
    const size = unary(builder, "stablehlo.abs", operand);
    return [divide(builder, operand, complexOf(builder, size, like(builder, size, 0)))];
  });
}

type Fourier = GraphOp<"stablehlo.fft">;

function fourierOf(
  builder: GraphBuilder,
  operand: GraphValue,
  fft_type: Fourier["attributes"]["fft_type"],
  fft_length: readonly number[],
): GraphValue {
  return builder.one("stablehlo.fft", { operand }, { fft_type, fft_length });
}

/** How often each of the first half of a spectrum occurs in the whole, over the number of all elements. */
function shares(builder: GraphBuilder, type: TensorType, lengths: readonly number[]): GraphValue {
  const last = lengths.at(-1) ?? 1;
  const half = type.shape.at(-1) ?? 1;
  const isComplexDouble = type.element === "complex<f64>";
  const data = new (isComplexDouble ? Float64Array : Float32Array)(2 * half);
  for (let k = 0; k < half; k++)
    data[2 * k] = (k === 0 || 2 * k === last ? 1 : 2) / sizeOf(lengths);
  const row = builder.one(
    "stablehlo.constant",
    {},
    { value: literal(tensorType(type.element, [half]), data) },
  );
  return broadcastInDim(builder, row, type.shape, [type.shape.length - 1]);
}

/** The whole transform of what a half is padded to, of which the real part counts. */
function realFourierBack(
  builder: GraphBuilder,
  cotangent: GraphValue,
  lengths: readonly number[],
): GraphValue {
  const { shape } = typeOfValue(cotangent);
  const none = shape.map(() => 0);
  const missing = (lengths.at(-1) ?? 1) - (shape.at(-1) ?? 1);
  const high = shape.map((_, axis) => (axis === shape.length - 1 ? missing : 0));
  const whole = padOf(builder, cotangent, none, high, none);
  return realOf(builder, fourierOf(builder, whole, "FFT", lengths));
}

export const fourierRule: JvpRule<"stablehlo.fft"> = (op, context) => {
  const { fft_type: kind, fft_length: lengths } = op.attributes;
  const from = typeOfValue(op.operands.operand);
  const to = typeOfValue(required(op.results[0]));
  const apply = (builder: GraphBuilder, t: GraphValue): GraphValue =>
    fourierOf(builder, t, kind, lengths);
  const backs = {
    // The matrix of a whole transform is its own transpose.
    FFT: apply,
    IFFT: apply,
    RFFT: (builder: GraphBuilder, c: GraphValue) => realFourierBack(builder, c, lengths),
    IRFFT: (builder: GraphBuilder, c: GraphValue) =>
      multiply(
        builder,
        conjugate(builder, fourierOf(builder, c, "RFFT", lengths)),
        shares(builder, from, lengths),
      ),
  };
  return [context.map(context.tangent(op.operands.operand), () => single(to, apply, backs[kind]))];
};
