/**
 * Functions of complex numbers in pairs of f64. Branch cuts are those of C's annex G: along the real axis
 * for logarithm, roots, acos, asin, acosh and atanh, along the imaginary one for asinh and atan, continuous
 * from the side that the sign of zero names.
 */
import type { Complex } from "../scalars.ts";

export function complex(re: number, im: number): Complex {
  return { re, im };
}

export const one = complex(1, 0);

export function add(a: Complex, b: Complex): Complex {
  return complex(a.re + b.re, a.im + b.im);
}

export function subtract(a: Complex, b: Complex): Complex {
  return complex(a.re - b.re, a.im - b.im);
}

export function multiply(a: Complex, b: Complex): Complex {
  return complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}

/** z·z by (re - im)·(re + im), which neither cancels nor overflows where the square does not. */
export function square({ re, im }: Complex): Complex {
  const even = Math.abs(re) === Math.abs(im) && Math.abs(re) !== Infinity;
  return complex(even ? 0 : (re - im) * (re + im), 2 * (re * im));
}

/** z plus a real number: the sign of a zero imaginary part stays, which says the side of a cut. */
function plusReal({ re, im }: Complex, number: number): Complex {
  return complex(re + number, im);
}

/** 1 - z, in the same way. */
function oneMinus({ re, im }: Complex): Complex {
  return complex(1 - re, -im);
}

export function negate({ re, im }: Complex): Complex {
  return complex(-re, -im);
}

export function conjugate({ re, im }: Complex): Complex {
  return complex(re, -im);
}

function scaled({ re, im }: Complex, factor: number): Complex {
  return complex(re * factor, im * factor);
}

/** i·z. */
function turned({ re, im }: Complex): Complex {
  return complex(-im, re);
}

/** -i·z. */
function turnedBack({ re, im }: Complex): Complex {
  return complex(im, -re);
}

/** The quotient, with the divisor brought near one so that its square neither overflows nor vanishes. */
export function divide(a: Complex, b: Complex): Complex {
  const size = Math.max(Math.abs(b.re), Math.abs(b.im));
  if (size === 0) return complex(a.re / Math.abs(b.re), a.im / Math.abs(b.re));
  if (size === Infinity) return divideByInfinity(a, b);
  const power = 2 ** Math.max(-1000, Math.min(1000, -Math.floor(Math.log2(size))));
  const { re, im } = scaled(b, power);
  const top = scaled(a, power);
  const norm = re * re + im * im;
  return complex((top.re * re + top.im * im) / norm, (top.im * re - top.re * im) / norm);
}

function divideByInfinity(a: Complex, b: Complex): Complex {
  if (!Number.isFinite(a.re) || !Number.isFinite(a.im)) return complex(NaN, NaN);
  const direction = (part: number) =>
    Math.abs(part) === Infinity ? Math.sign(part) : zeroLike(part);
  const unit = complex(direction(b.re), direction(b.im));
  return complex(0 * (a.re * unit.re + a.im * unit.im), 0 * (a.im * unit.re - a.re * unit.im));
}

/** 1 / z, whose parts have the signs of the conjugate's, those of zeros too. */
function reciprocal(z: Complex): Complex {
  const size = Math.max(Math.abs(z.re), Math.abs(z.im));
  if (size === 0) return divide(one, z);
  if (size === Infinity) return complex(zeroLike(z.re), zeroLike(-z.im));
  const power = 2 ** Math.max(-1000, Math.min(1000, -Math.floor(Math.log2(size))));
  const { re, im } = scaled(z, power);
  const norm = re * re + im * im;
  return scaled(complex(re / norm, -im / norm), power);
}

/** A zero of the sign of a number; NaN stays. */
function zeroLike(part: number): number {
  return Math.abs(part) === Infinity ? 0 * Math.sign(part) : part * 0;
}

export function magnitude({ re, im }: Complex): number {
  return Math.hypot(re, im);
}

export function sign(z: Complex): Complex {
  const size = magnitude(z);
  if (size !== size) return complex(NaN, NaN);
  return size === 0 ? complex(0, 0) : complex(z.re / size, z.im / size);
}

/** e^re · (cos, sin), where an infinite factor does not meet a zero sine. */
export function exponential({ re, im }: Complex): Complex {
  const size = Math.exp(re);
  if (im === 0) return complex(size, im);
  if (re === -Infinity && !Number.isFinite(im)) return complex(0, 0);
  return complex(size * Math.cos(im), size * Math.sin(im));
}

export function exponentialMinusOne({ re, im }: Complex): Complex {
  const half = Math.sin(im / 2);
  const real = Math.expm1(re) * Math.cos(im) - 2 * half * half;
  return complex(real, im === 0 ? im : Math.exp(re) * Math.sin(im));
}

/** log|z|, which near one is that of one plus a small difference. */
function logMagnitude({ re, im }: Complex): number {
  const large = Math.max(Math.abs(re), Math.abs(im));
  const small = Math.min(Math.abs(re), Math.abs(im));
  if (large > 0.5 && large < 2) return Math.log1p((large - 1) * (large + 1) + small * small) / 2;
  return Math.log(magnitude({ re, im }));
}

export function log(z: Complex): Complex {
  return complex(logMagnitude(z), Math.atan2(z.im, z.re));
}

export function logPlusOne({ re, im }: Complex): Complex {
  const near = Math.abs(re) < 0.5 && Math.abs(im) < 0.5;
  const real = near ? Math.log1p(re * (2 + re) + im * im) / 2 : logMagnitude(complex(1 + re, im));
  return complex(real, Math.atan2(im, 1 + re));
}

export function squareRoot({ re, im }: Complex): Complex {
  if (Math.abs(im) === Infinity) return complex(Infinity, im);
  if (re === 0 && im === 0) return complex(0, im);
  const signed = (value: number) => (im < 0 || Object.is(im, -0) ? -value : value);
  if (re === -Infinity) return complex(im !== im ? NaN : 0, signed(Infinity));
  const huge = Math.max(Math.abs(re), Math.abs(im)) > 1e300;
  const scale = huge ? 0.25 : Math.max(Math.abs(re), Math.abs(im)) < 1e-290 ? 2 ** 108 : 1;
  const size = Math.sqrt((Math.abs(re * scale) + Math.hypot(re * scale, im * scale)) / 2);
  const root = size / Math.sqrt(scale);
  const other = Math.abs(im) / (2 * root);
  return re >= 0 ? complex(root, signed(other)) : complex(other, signed(root));
}

export function reciprocalRoot(z: Complex): Complex {
  return reciprocal(squareRoot(z));
}

export function cubeRoot(z: Complex): Complex {
  const angle = Math.atan2(z.im, z.re) / 3;
  const size = Math.cbrt(magnitude(z));
  return complex(size * Math.cos(angle), size * Math.sin(angle));
}

export function power(base: Complex, exponent: Complex): Complex {
  if (exponent.re === 0 && exponent.im === 0) return one;
  if (base.re === 0 && base.im === 0) {
    return exponent.re > 0 ? complex(0, 0) : complex(NaN, NaN);
  }
  const angle = Math.atan2(base.im, base.re);
  const size = Math.pow(magnitude(base), exponent.re) * Math.exp(-exponent.im * angle);
  const turn = exponent.im * logMagnitude(base) + exponent.re * angle;
  return complex(size * Math.cos(turn), turn === 0 ? 0 : size * Math.sin(turn));
}

/** A product in which a zero stays one beside what has overflowed. */
function besideZero(zero: number, large: number): number {
  return zero === 0 ? zero * Math.sign(large) : zero * large;
}

export function sine({ re, im }: Complex): Complex {
  return complex(besideZero(Math.sin(re), Math.cosh(im)), Math.cos(re) * Math.sinh(im));
}

export function cosine({ re, im }: Complex): Complex {
  return complex(Math.cos(re) * Math.cosh(im), besideZero(-Math.sin(re), Math.sinh(im)));
}

export function hyperbolicSine(z: Complex): Complex {
  return turnedBack(sine(turned(z)));
}

export function hyperbolicCosine(z: Complex): Complex {
  return cosine(turned(z));
}

export function hyperbolicTangent({ re, im }: Complex): Complex {
  if (Math.abs(re) > 20) {
    const imaginary = 4 * Math.sin(im) * Math.cos(im) * Math.exp(-2 * Math.abs(re));
    return complex(Math.sign(re), Number.isFinite(im) ? imaginary : 0);
  }
  const tangent = Math.tan(im);
  const secant = 1 + tangent * tangent;
  const sinh = Math.sinh(re);
  const rho = Math.sqrt(1 + sinh * sinh);
  if (!Number.isFinite(tangent)) return complex(rho / sinh, 1 / tangent);
  const denominator = 1 + secant * sinh * sinh;
  return complex((secant * rho * sinh) / denominator, tangent / denominator);
}

export function tangent(z: Complex): Complex {
  return turnedBack(hyperbolicTangent(turned(z)));
}

export function logistic(z: Complex): Complex {
  return reciprocal(plusReal(exponential(negate(z)), 1));
}

export function arcCosine(z: Complex): Complex {
  const minus = squareRoot(oneMinus(z));
  const plus = squareRoot(plusReal(z, 1));
  const imaginary = Math.asinh(plus.re * minus.im - plus.im * minus.re);
  return complex(2 * Math.atan2(minus.re, plus.re), imaginary);
}

export function arcSine(z: Complex): Complex {
  const minus = squareRoot(oneMinus(z));
  const plus = squareRoot(plusReal(z, 1));
  const real = Math.atan2(z.re, minus.re * plus.re - minus.im * plus.im);
  return complex(real, Math.asinh(minus.re * plus.im - minus.im * plus.re));
}

export function hyperbolicArcSine(z: Complex): Complex {
  return turnedBack(arcSine(turned(z)));
}

export function hyperbolicArcCosine(z: Complex): Complex {
  const minus = squareRoot(plusReal(z, -1));
  const plus = squareRoot(plusReal(z, 1));
  const real = Math.asinh(minus.re * plus.re + minus.im * plus.im);
  return complex(real, 2 * Math.atan2(minus.im, plus.re));
}

export function hyperbolicArcTangent({ re, im }: Complex): Complex {
  // On the right alone: near -1 the argument of the logarithm would be what is left of a difference.
  const right = Math.abs(re);
  const away = 1 - right;
  const real = Math.log1p((4 * right) / (away * away + im * im)) / 4;
  const signed = re < 0 || Object.is(re, -0) ? -real : real;
  return complex(signed, Math.atan2(2 * im, (1 - re) * (1 + re) - im * im) / 2);
}

export function arcTangent(z: Complex): Complex {
  return turnedBack(hyperbolicArcTangent(turned(z)));
}
