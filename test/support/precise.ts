/**
 * Functions of real numbers to many more digits than f64 has, as a reference for it. A number is an integer
 * times 2^-1400: every f64 is one, and the least of them keeps three hundred bits behind its own.
 */
const bits = 1400n;
const one = 1n << bits;

const scratch = new Float64Array(1);
const scratchBits = new BigUint64Array(scratch.buffer);

/** A finite f64, exactly. */
export function precise(value: number): bigint {
  scratch[0] = value;
  const code = scratchBits[0] as bigint;
  const biased = Number((code >> 52n) & 0x7ffn);
  const fraction = code & 0xfffffffffffffn;
  const significand = biased === 0 ? fraction : fraction | 0x10000000000000n;
  const magnitude = significand << (bits + BigInt(Math.max(biased, 1) - 1075));
  return code >> 63n === 1n ? -magnitude : magnitude;
}

function multiply(left: bigint, right: bigint): bigint {
  return (left * right) >> bits;
}

function divide(left: bigint, right: bigint): bigint {
  return (left << bits) / right;
}

function bitLength(value: bigint): number {
  return value.toString(16).length * 4;
}

export function squareRoot(value: bigint): bigint {
  const square = value << bits;
  let root = 1n << BigInt(bitLength(square) / 2 + 1);
  for (;;) {
    const next = (root + square / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}

/** Σ term_n, where each term follows from the one before it, until they vanish. */
function series(first: bigint, next: (term: bigint, n: bigint) => bigint): bigint {
  let sum = first;
  let term = first;
  for (let n = 1n; term !== 0n && term !== -1n; n++) {
    term = next(term, n);
    sum += term;
  }
  return sum;
}

/** Σ sign^n·r^(2n + 1) / (2n + 1): artanh r or arctan r. */
function inverseSeries(r: bigint, sign: bigint): bigint {
  const square = multiply(r, r);
  let power = r;
  let sum = r;
  for (let n = 3n; power !== 0n && power !== -1n; n += 2n) {
    power = sign * multiply(power, square);
    sum += power / n;
  }
  return sum;
}

const ln2 = 2n * inverseSeries(one / 3n, 1n);

export function exponential(x: bigint): bigint {
  const n = x / ln2;
  const halvings = 24n;
  const rest = (x - n * ln2) >> halvings;
  let result = series(one, (term, index) => multiply(term, rest) / index);
  for (let turn = 0n; turn < halvings; turn++) result = multiply(result, result);
  return n < 0n ? result >> -n : result << n;
}

/** Of a positive number. */
export function logarithm(x: bigint): bigint {
  const exponent = BigInt(x.toString(2).length) - bits;
  const mantissa = exponent < 0n ? x << -exponent : x >> exponent;
  // From 1/2 below 1; at half of it and above, nearer to 1.
  const near = mantissa < (one * 2n) / 3n ? mantissa * 2n : mantissa;
  const power = near === mantissa ? exponent : exponent - 1n;
  // Shifts to the right would drop bits of numbers above 1: these have a few zeros at their end only.
  return power * ln2 + 2n * inverseSeries(divide(near - one, near + one), 1n);
}

export const log2Of = (x: bigint): bigint => divide(logarithm(x), ln2);
export const exp2Of = (x: bigint): bigint => exponential(multiply(x, ln2));

const piBits = 2800n;
/** π·2^2800, by Machin's formula. */
const longPi = ((): bigint => {
  const unit = 1n << (piBits + 16n);
  const arctangentOfInverse = (k: bigint): bigint => {
    let power = unit / k;
    let sum = power;
    for (let n = 3n; power !== 0n; n += 2n) {
      power = -power / (k * k);
      sum += power / n;
    }
    return sum;
  };
  return (4n * (4n * arctangentOfInverse(5n) - arctangentOfInverse(239n))) >> 16n;
})();
const pi = longPi >> (piBits - bits);

function sineSeries(r: bigint): bigint {
  const square = multiply(r, r);
  return series(r, (term, n) => -multiply(term, square) / (2n * n * (2n * n + 1n)));
}

/** The sine of x + quarters·π/2. */
export function sine(x: bigint, quarters = 0n): bigint {
  const extra = piBits - bits;
  const half = longPi / 2n;
  const long = x << extra;
  const n = (2n * long + (x < 0n ? -half : half)) / (2n * half);
  const rest = (long - n * half) >> extra;
  const turn = (((n + quarters) % 4n) + 4n) % 4n;
  const value =
    turn % 2n === 0n ? sineSeries(rest) : sineSeries(pi / 2n - (rest < 0n ? -rest : rest));
  return turn >= 2n ? -value : value;
}

export const cosine = (x: bigint): bigint => sine(x, 1n);
export const tangent = (x: bigint): bigint => divide(sine(x), cosine(x));

export function hyperbolicTangent(x: bigint): bigint {
  const square = exponential(2n * x);
  return divide(square - one, square + one);
}

/** e^(-x²)·2/√π·Σ 2^n·x^(2n + 1) / (1·3·…·(2n + 1)). */
export function errorIntegral(x: bigint): bigint {
  const square = multiply(x, x);
  const sum = series(x, (term, n) => multiply(2n * term, square) / (2n * n + 1n));
  return divide(multiply(2n * sum, exponential(-square)), squareRoot(pi));
}

const fractionTerms = 400;

/** 1 - erf x: by a continued fraction where the difference would lose digits. */
export function complementaryErrorIntegral(x: bigint): bigint {
  if (x < 4n * one) return one - errorIntegral(x);
  let tail = x;
  for (let term = fractionTerms; term >= 1; term--)
    tail = x + divide((BigInt(term) * one) / 2n, tail);
  return divide(exponential(-multiply(x, x)), multiply(tail, squareRoot(pi)));
}

export function logisticCurve(x: bigint): bigint {
  return divide(one, one + exponential(-x));
}

/** The angle of a point, by halving it until the series is short. */
export function angle(y: bigint, x: bigint): bigint {
  const magnitude = y < 0n ? -y : y;
  const steep = magnitude > (x < 0n ? -x : x);
  const slope = steep ? divide(x, magnitude) : divide(magnitude, x);
  let halved = slope;
  for (let turn = 0; turn < 8; turn++)
    halved = divide(halved, one + squareRoot(one + multiply(halved, halved)));
  const flat = inverseSeries(halved, -1n) << 8n;
  const upper = steep ? pi / 2n - flat : x < 0n ? pi + flat : flat;
  return y < 0n ? -upper : upper;
}

/** The angle of the point (√(1 - x²), x), and what it lacks to a right angle. */
export const arcSine = (x: bigint): bigint => angle(x, squareRoot(one - multiply(x, x)));
export const arcCosine = (x: bigint): bigint => angle(squareRoot(one - multiply(x, x)), x);

export const hyperbolicSine = (x: bigint): bigint => (exponential(x) - exponential(-x)) / 2n;
export const hyperbolicCosine = (x: bigint): bigint => (exponential(x) + exponential(-x)) / 2n;

export function hyperbolicArcSine(x: bigint): bigint {
  const size = x < 0n ? -x : x;
  const value = logarithm(size + squareRoot(multiply(size, size) + one));
  return x < 0n ? -value : value;
}

export const hyperbolicArcCosine = (x: bigint): bigint =>
  logarithm(x + squareRoot(multiply(x, x) - one));
export const hyperbolicArcTangent = (x: bigint): bigint => logarithm(divide(one + x, one - x)) / 2n;

export function cubeRoot(value: bigint): bigint {
  const cube = (value < 0n ? -value : value) << (2n * bits);
  let root = 1n << BigInt(Math.ceil(bitLength(cube) / 3) + 1);
  for (;;) {
    const next = (2n * root + cube / (root * root)) / 3n;
    if (next >= root) return value < 0n ? -root : root;
    root = next;
  }
}

/** By Newton's steps from a value that is good to many digits. */
export function inverseErrorIntegral(y: bigint, near: number): bigint {
  let x = precise(near);
  for (let step = 0; step < 2; step++) {
    const slope = divide(2n * exponential(-multiply(x, x)), squareRoot(pi));
    x -= divide(errorIntegral(x) - y, slope);
  }
  return x;
}

export function powerOf(base: bigint, exponent: bigint): bigint {
  return exponential(multiply(exponent, logarithm(base)));
}

export const exponentialMinusOne = (x: bigint): bigint => exponential(x) - one;
export const logarithmOfOnePlus = (x: bigint): bigint => logarithm(one + x);
export const inverseRoot = (x: bigint): bigint => divide(one, squareRoot(x));

/** How far a finite f64 is from a number other than zero, in units in the last place of f64. */
export function unitsBetween(value: number, exact: bigint): number {
  const magnitude = exact < 0n ? -exact : exact;
  const exponent = magnitude.toString(2).length - 1 - Number(bits);
  const unit = Math.max(exponent - 52, -1074);
  const distance = precise(value) - exact;
  return Number(((distance < 0n ? -distance : distance) << 20n) >> (bits + BigInt(unit))) / 2 ** 20;
}
