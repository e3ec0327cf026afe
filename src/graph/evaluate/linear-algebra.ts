/** Cholesky factors, triangular systems and Fourier transforms, in pairs of f64. */
import type { ElementType, TensorType } from "../ops/index.ts";
import { isComplexElement, sizeOf } from "../ops/index.ts";
import { emptyTensor } from "./value.ts";
import type { Tensor } from "./value.ts";
import { pause, pieceWork } from "./frame.ts";
import type { Steps } from "./frame.ts";
import * as complex from "./elementwise/complex.ts";
import { conversion } from "./elementwise/convert.ts";
import { reader, writer } from "./scalars.ts";
import type { Complex } from "./scalars.ts";

function complexReader(operand: Tensor): (index: number) => Complex {
  const read = reader(operand);
  const convert = conversion(operand.element, "complex<f64>");
  return (index) => convert(read(index)) as Complex;
}

interface Arithmetic {
  readonly subtract: (left: Complex, right: Complex) => Complex;
  readonly multiply: (left: Complex, right: Complex) => Complex;
  readonly divide: (left: Complex, right: Complex) => Complex;
}

const real: Arithmetic = {
  subtract: (left, right) => complex.complex(left.re - right.re, 0),
  multiply: (left, right) => complex.complex(left.re * right.re, 0),
  divide: (left, right) => complex.complex(left.re / right.re, 0),
};

/** Pairs of real numbers are kept real: an infinite one times an imaginary part of 0 would be NaN. */
function arithmeticOf({ element }: Tensor): Arithmetic {
  return isComplexElement(element) ? complex : real;
}

/** Writes complex numbers, or their real parts. */
function complexWriter(
  element: ElementType,
  target: Tensor,
): (index: number, value: Complex) => void {
  const write = writer(element, target.data);
  if (isComplexElement(element)) return write;
  return (index, value) => {
    write(index, value.re);
  };
}

/** The factor of every matrix; NaN throughout its triangle where a matrix is not positive definite. */
export function* cholesky(a: Tensor, lower: boolean): Steps<Tensor> {
  const n = a.shape.at(-1) ?? 0;
  const result = emptyTensor(a);
  const read = complexReader(a);
  const write = complexWriter(a.element, result);
  let work = 0;
  for (let matrix = 0; matrix < sizeOf(a.shape.slice(0, -2)); matrix++) {
    const at = (i: number, j: number) => matrix * n * n + i * n + j;
    const entry = (i: number, j: number) =>
      lower ? read(at(i, j)) : complex.conjugate(read(at(j, i)));
    const factor = yield* choleskyFactor(n, entry, arithmeticOf(a));
    for (let i = 0; i < n; i++)
      for (let j = 0; j <= i; j++) {
        const value = (factor[i] as Complex[])[j] as Complex;
        if (lower) write(at(i, j), value);
        else write(at(j, i), complex.conjugate(value));
      }
    work += 4 + 2 * n * n * n;
    if (work < pieceWork) continue;
    work = 0;
    yield pause;
  }
  return result;
}

function* choleskyFactor(
  n: number,
  entry: (i: number, j: number) => Complex,
  { subtract, multiply }: Arithmetic,
): Steps<Complex[][]> {
  const rows = Array.from({ length: n }, () => new Array<Complex>(n).fill(complex.complex(0, 0)));
  let work = 0;
  for (let j = 0; j < n; j++)
    for (let i = j; i < n; i++) {
      work += 4 * (1 + j);
      if (work >= pieceWork) {
        work = 0;
        yield pause;
      }
      let sum = entry(i, j);
      for (let k = 0; k < j; k++) {
        const left = (rows[i] as Complex[])[k] as Complex;
        const right = complex.conjugate((rows[j] as Complex[])[k] as Complex);
        sum = subtract(sum, multiply(left, right));
      }
      const diagonal = (rows[j] as Complex[])[j] as Complex;
      (rows[i] as Complex[])[j] =
        i === j
          ? complex.complex(sum.re > 0 ? Math.sqrt(sum.re) : NaN, 0)
          : complex.complex(sum.re / diagonal.re, sum.im / diagonal.re);
    }
  return rows;
}

export interface TriangularSettings {
  readonly leftSide: boolean;
  readonly lower: boolean;
  readonly unitDiagonal: boolean;
  readonly transpose: "TRANSPOSE_INVALID" | "NO_TRANSPOSE" | "TRANSPOSE" | "ADJOINT";
}

/** Solves op(a)·x = b, or x·op(a) = b, for every matrix. */
export function* triangularSolve(
  a: Tensor,
  b: Tensor,
  settings: TriangularSettings,
): Steps<Tensor> {
  const { leftSide, lower, unitDiagonal, transpose } = settings;
  const n = a.shape.at(-1) ?? 0;
  const [rows = 0, columns = 0] = b.shape.slice(-2);
  const result = emptyTensor(b);
  const read = complexReader(a);
  const readRight = complexReader(b);
  const write = complexWriter(b.element, result);
  const others = leftSide ? columns : rows;
  const isTransposed = transpose === "TRANSPOSE" || transpose === "ADJOINT";
  // x·A = b is solved as the transposed system, so that unknowns always lie along a column.
  const swapped = isTransposed === leftSide;
  const isLower = lower !== swapped;
  let work = 0;
  for (let matrix = 0; matrix < sizeOf(a.shape.slice(0, -2)); matrix++)
    for (let other = 0; other < others; other++) {
      const at = (i: number) =>
        matrix * rows * columns + (leftSide ? i * columns + other : other * columns + i);
      const entry = (i: number, j: number) => {
        if (i === j && unitDiagonal) return complex.one;
        const value = read(matrix * n * n + (swapped ? j * n + i : i * n + j));
        return transpose === "ADJOINT" ? complex.conjugate(value) : value;
      };
      const found = yield* substitute(n, isLower, entry, (i) => readRight(at(i)), arithmeticOf(a));
      for (const [i, value] of found.entries()) write(at(i), value);
      work += 4 + 2 * n * n;
      if (work < pieceWork) continue;
      work = 0;
      yield pause;
    }
  return result;
}

function* substitute(
  n: number,
  isLower: boolean,
  entry: (i: number, j: number) => Complex,
  right: (i: number) => Complex,
  { subtract, multiply, divide }: Arithmetic,
): Steps<readonly Complex[]> {
  const solution = new Array<Complex>(n).fill(complex.complex(0, 0));
  let work = 0;
  for (let step = 0; step < n; step++) {
    work += 4 * (1 + step);
    if (work >= pieceWork) {
      work = 0;
      yield pause;
    }
    const i = isLower ? step : n - 1 - step;
    let sum = right(i);
    for (let known = 0; known < step; known++) {
      const j = isLower ? known : n - 1 - known;
      sum = subtract(sum, multiply(entry(i, j), solution[j] as Complex));
    }
    solution[i] = divide(sum, entry(i, i));
  }
  return solution;
}

export type FourierKind = "FFT" | "IFFT" | "RFFT" | "IRFFT";

/** The transform of the last axes, one axis after another. */
export function* fourier(
  operand: Tensor,
  kind: FourierKind,
  lengths: readonly number[],
  type: TensorType,
): Steps<Tensor> {
  const rank = operand.shape.length;
  const first = rank - lengths.length;
  const sign = kind === "FFT" || kind === "RFFT" ? -1 : 1;
  let shape = operand.shape;
  const read = complexReader(operand);
  let values = Array.from({ length: sizeOf(shape) }, (_, i) => read(i));
  const axes = lengths.map((_, i) => first + i);
  // The last axis is the one that real transforms halve: first for RFFT, last for IRFFT.
  for (const axis of kind === "IRFFT" ? axes : axes.toReversed()) {
    const length = lengths[axis - first] as number;
    const isHalved = axis === rank - 1 && (kind === "RFFT" || kind === "IRFFT");
    const line =
      isHalved && kind === "IRFFT" ? (row: readonly Complex[]) => mirrored(row, length) : undefined;
    const kept = isHalved && kind === "RFFT" ? Math.floor(length / 2) + 1 : length;
    [values, shape] = yield* alongAxis(values, shape, axis, kept, (row) =>
      transform(line?.(row) ?? row, sign, kept),
    );
  }
  const scale = sign === 1 ? 1 / sizeOf(lengths) : 1;
  const result = emptyTensor(type);
  const write = complexWriter(type.element, result);
  values.forEach(({ re, im }, i) => {
    write(i, { re: re * scale, im: im * scale });
  });
  return result;
}

/** The whole spectrum of a real signal from its first half; imaginary parts that must be zero count as zero. */
function mirrored(half: readonly Complex[], length: number): readonly Complex[] {
  return Array.from({ length }, (_, k) => {
    const value =
      k < half.length ? (half[k] as Complex) : complex.conjugate(half[length - k] as Complex);
    return k === 0 || 2 * k === length ? complex.complex(value.re, 0) : value;
  });
}

function* transform(row: readonly Complex[], sign: number, count: number): Steps<Complex[]> {
  const n = row.length;
  const roots = Array.from({ length: n }, (_, k) => {
    const angle = (2 * Math.PI * k) / n;
    return complex.complex(Math.cos(angle), sign * Math.sin(angle));
  });
  const results: Complex[] = [];
  let work = 0;
  for (let k = 0; k < count; k++) {
    let re = 0;
    let im = 0;
    for (let j = 0; j < n; j++) {
      const value = row[j] as Complex;
      const root = roots[(j * k) % n] as Complex;
      re += value.re * root.re - value.im * root.im;
      im += value.re * root.im + value.im * root.re;
    }
    results.push(complex.complex(re, im));
    work += n;
    if (work < pieceWork) continue;
    work = 0;
    yield pause;
  }
  return results;
}

function* alongAxis(
  values: readonly Complex[],
  shape: readonly number[],
  axis: number,
  extent: number,
  map: (row: readonly Complex[]) => Steps<readonly Complex[]>,
): Steps<[Complex[], readonly number[]]> {
  const own = shape[axis] as number;
  const inner = sizeOf(shape.slice(axis + 1));
  const outer = sizeOf(shape.slice(0, axis));
  const result = new Array<Complex>(outer * extent * inner);
  let work = 0;
  for (let o = 0; o < outer; o++)
    for (let i = 0; i < inner; i++) {
      work += own * (4 + Math.min(extent, pieceWork / own));
      if (work >= pieceWork) {
        work = 0;
        yield pause;
      }
      const row = Array.from(
        { length: own },
        (_, k) => values[(o * own + k) * inner + i] as Complex,
      );
      for (const [k, value] of (yield* map(row)).entries())
        result[(o * extent + k) * inner + i] = value;
    }
  return [result, shape.map((each, at) => (at === axis ? extent : each))];
}
