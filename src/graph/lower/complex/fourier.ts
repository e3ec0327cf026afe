/**
 * Fourier transforms as products with matrices of roots of unity, in f64. A length is cut into factors of at most 64:
 *
 *   1024 = 64 · 16    x[16a + b]  ─ 64 points over a ─▶  · e^(2πi·bc/1024)  ─ 16 points over b ─▶  X[c + 64d]
 *
 * Lengths without such a factor are one matrix where they are small; else Bluestein's: with jk = (j² + k² - (k - j)²) / 2 a transform is a
 * convolution, which transforms of a power of two compute. Roots of unity come from whole numbers reduced by the length, so that
 * none is further from its value than cosine and sine are.
 */
import type { GraphBuilder } from "../../infer/builder.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { sizeOf, tensorType } from "../../ops/types.ts";
import {
  broadcastInDim,
  convert,
  iota,
  like,
  negate,
  reshape,
  scaled,
  transpose,
  typeOfValue,
  zerosOf,
} from "../../transform/arithmetic.ts";
import { multiply } from "../../ops/complex-functions.ts";
import type { Parts } from "./parts.ts";
import { Real } from "./real.ts";

/** -1 for the transform, 1 for its inverse. */
type Sign = 1 | -1;

const largestFactor = 64;
const largestMatrix = 128;

function shapeOf(value: GraphValue): readonly number[] {
  return typeOfValue(value).shape;
}

function mapParts({ re, im }: Parts, map: (part: GraphValue) => GraphValue): Parts {
  return { re: map(re), im: map(im) };
}

/** Whole numbers along an axis of a shape. */
function places(builder: GraphBuilder, shape: readonly number[], axis: number): Real {
  return new Real(builder, iota(builder, tensorType("i64", shape), axis));
}

function remainder(builder: GraphBuilder, value: Real, by: number): Real {
  const rhs = like(builder, value.value, by);
  return new Real(builder, builder.one("stablehlo.remainder", { lhs: value.value, rhs }, {}));
}

/** e^(sign·2πi·k/n) of whole numbers k below n. */
function roots(builder: GraphBuilder, k: Real, n: number, sign: Sign): { re: Real; im: Real } {
  const angle = new Real(builder, convert(builder, k.value, "f64")).mul((2 * Math.PI) / n);
  return { re: angle.cos(), im: sign > 0 ? angle.sin() : angle.sin().neg() };
}

function productOf(builder: GraphBuilder, a: Parts, b: { re: Real; im: Real }): Parts {
  const open = { re: new Real(builder, a.re), im: new Real(builder, a.im) };
  const { re, im } = multiply(open, b);
  return { re: re.value, im: im.value };
}

/** The table repeated over the axes in front of its own. */
function spread(builder: GraphBuilder, table: Real, shape: readonly number[]): Real {
  const own = shapeOf(table.value);
  const axes = own.map((_, axis) => shape.length - own.length + axis);
  return new Real(builder, broadcastInDim(builder, table.value, shape, axes));
}

/** Both parts, one after the other along the last axis, times a matrix of 2n rows and columns. */
function byMatrix(builder: GraphBuilder, value: Parts, n: number, sign: Sign): Parts {
  const shape = shapeOf(value.re);
  const last = shape.length - 1;
  const rows = builder.one(
    "stablehlo.concatenate",
    { inputs: [value.re, value.im] },
    { dimension: last },
  );
  const square = [n, n];
  const j = places(builder, square, 0);
  const { re, im } = roots(
    builder,
    remainder(builder, j.mul(places(builder, square, 1)), n),
    n,
    sign,
  );
  const beside = (left: Real, right: Real): GraphValue =>
    builder.one("stablehlo.concatenate", { inputs: [left.value, right.value] }, { dimension: 1 });
  const matrix = builder.one(
    "stablehlo.concatenate",
    { inputs: [beside(re, im), beside(im.neg(), re)] },
    { dimension: 0 },
  );
  const both = builder.one(
    "stablehlo.dot_general",
    { lhs: rows, rhs: matrix },
    {
      dot_dimension_numbers: {
        lhs_batching_dimensions: [],
        rhs_batching_dimensions: [],
        lhs_contracting_dimensions: [last],
        rhs_contracting_dimensions: [0],
      },
    },
    { types: [tensorType("f64", [...shape.slice(0, -1), 2 * n])] },
  );
  return { re: cut(builder, both, 0, n), im: cut(builder, both, n, 2 * n) };
}

/** A range of the last axis. */
function cut(builder: GraphBuilder, operand: GraphValue, from: number, to: number): GraphValue {
  const shape = shapeOf(operand);
  const last = shape.length - 1;
  return builder.one(
    "stablehlo.slice",
    { operand },
    {
      start_indices: shape.map((_, axis) => (axis === last ? from : 0)),
      limit_indices: shape.map((extent, axis) => (axis === last ? to : extent)),
      strides: shape.map(() => 1),
    },
  );
}

function swapLast(builder: GraphBuilder, value: Parts): Parts {
  const axes = shapeOf(value.re).map((_, axis) => axis);
  const swapped = [...axes.slice(0, -2), ...axes.slice(-2).reverse()];
  return mapParts(value, (part) => transpose(builder, part, swapped));
}

/** The largest factor of n that a matrix is made for; 1 where it has none. */
function factorOf(n: number): number {
  for (let factor = Math.min(largestFactor, n - 1); factor > 1; factor--)
    if (n % factor === 0) return factor;
  return 1;
}

/** The transform along the last axis, without a factor. */
function alongLast(builder: GraphBuilder, value: Parts, sign: Sign): Parts {
  const n = shapeOf(value.re).at(-1) ?? 1;
  if (n === 1) return value;
  if (n <= largestFactor) return byMatrix(builder, value, n, sign);
  const factor = factorOf(n);
  if (factor > 1) return byFactors(builder, value, n, factor, sign);
  return n <= largestMatrix
    ? byMatrix(builder, value, n, sign)
    : byConvolution(builder, value, n, sign);
}

function byFactors(
  builder: GraphBuilder,
  value: Parts,
  n: number,
  first: number,
  sign: Sign,
): Parts {
  const front = shapeOf(value.re).slice(0, -1);
  const second = n / first;
  const cutUp = mapParts(value, (part) => reshape(builder, part, [...front, first, second]));
  const outer = alongLast(builder, swapLast(builder, cutUp), sign);
  const table = [second, first];
  const powers = places(builder, table, 0).mul(places(builder, table, 1));
  const { re, im } = roots(builder, powers, n, sign);
  const shape = [...front, second, first];
  const twisted = productOf(builder, outer, {
    re: spread(builder, re, shape),
    im: spread(builder, im, shape),
  });
  const inner = alongLast(builder, swapLast(builder, twisted), sign);
  return mapParts(swapLast(builder, inner), (part) => reshape(builder, part, [...front, n]));
}

function byConvolution(builder: GraphBuilder, value: Parts, n: number, sign: Sign): Parts {
  const shape = shapeOf(value.re);
  const length = 2 ** Math.ceil(Math.log2(2 * n - 1));
  const k = places(builder, [n], 0);
  const chirp = roots(builder, remainder(builder, k.mul(k), 2 * n), 2 * n, sign);
  const chirped = productOf(builder, value, {
    re: spread(builder, chirp.re, shape),
    im: spread(builder, chirp.im, shape),
  });
  const padded = mapParts(chirped, (part) => extended(builder, part, length));
  // The filter at k and at length - k; between them are zeros.
  const filter = mapParts({ re: chirp.re.value, im: chirp.im.neg().value }, (part) => {
    const mirrored = builder.one(
      "stablehlo.reverse",
      { operand: cut(builder, part, 1, n) },
      { dimensions: [0] },
    );
    const middle = zerosOf(builder, tensorType("f64", [length - 2 * n + 1]));
    return builder.one(
      "stablehlo.concatenate",
      { inputs: [part, middle, mirrored] },
      { dimension: 0 },
    );
  });
  const response = alongLast(builder, filter, -1);
  const wide = [...shape.slice(0, -1), length];
  const product = productOf(builder, alongLast(builder, padded, -1), {
    re: spread(builder, new Real(builder, response.re), wide),
    im: spread(builder, new Real(builder, response.im), wide),
  });
  const back = mapParts(alongLast(builder, product, 1), (part) =>
    scaled(builder, cut(builder, part, 0, n), 1 / length),
  );
  return productOf(builder, back, {
    re: spread(builder, chirp.re, shape),
    im: spread(builder, chirp.im, shape),
  });
}

/** Zeros behind the last axis, up to a length. */
function extended(builder: GraphBuilder, operand: GraphValue, length: number): GraphValue {
  const shape = shapeOf(operand);
  const none = shape.map(() => 0);
  return builder.one(
    "stablehlo.pad",
    { operand, padding_value: zerosOf(builder, tensorType("f64", [])) },
    {
      edge_padding_low: none,
      edge_padding_high: none.with(-1, length - (shape.at(-1) ?? 0)),
      interior_padding: none,
    },
  );
}

/** The transform along an axis; the inverse is divided by its length. */
function alongAxis(builder: GraphBuilder, value: Parts, axis: number, sign: Sign): Parts {
  const axes = shapeOf(value.re).map((_, each) => each);
  const moved = [...axes.filter((each) => each !== axis), axis];
  const back = axes.map((each) => moved.indexOf(each));
  const given = mapParts(value, (part) => transpose(builder, part, moved));
  const done = alongLast(builder, given, sign);
  const n = shapeOf(done.re).at(-1) ?? 1;
  return mapParts(done, (part) =>
    transpose(builder, sign > 0 ? scaled(builder, part, 1 / n) : part, back),
  );
}

/** All n numbers of a spectrum of which the first n/2 + 1 are given: the others are conjugates of these. */
function completed(builder: GraphBuilder, value: Parts, n: number): Parts {
  const axis = shapeOf(value.re).length - 1;
  const given = shapeOf(value.re).at(-1) ?? 0;
  const mirror = (part: GraphValue): GraphValue =>
    builder.one(
      "stablehlo.reverse",
      { operand: cut(builder, part, 1, n - given + 1) },
      { dimensions: [axis] },
    );
  const append = (part: GraphValue, tail: GraphValue): GraphValue =>
    builder.one("stablehlo.concatenate", { inputs: [part, tail] }, { dimension: axis });
  return {
    re: append(value.re, mirror(value.re)),
    im: append(value.im, negate(builder, mirror(value.im))),
  };
}

/** A transform of the last axes, of a value whose imaginary part is missing where it is real. */
export function fourier(
  op: GraphOp<"stablehlo.fft">,
  builder: GraphBuilder,
  { re, im }: { readonly re: GraphValue; readonly im: GraphValue | undefined },
): Parts {
  const { fft_type: type, fft_length: lengths } = op.attributes;
  const { element, shape } = typeOfValue(re);
  const wide = convert(builder, re, "f64");
  const other = im === undefined ? like(builder, wide, 0) : convert(builder, im, "f64");
  let value: Parts = { re: wide, im: other };
  const axes = lengths.map((_, i) => shape.length - lengths.length + i);
  const sign: Sign = type === "FFT" || type === "RFFT" ? -1 : 1;
  const last = axes.at(-1);
  if (sizeOf(shape) > 0 && last !== undefined) {
    const length = lengths.at(-1) ?? 1;
    if (type === "RFFT") {
      const spectrum = alongAxis(builder, value, last, sign);
      value = mapParts(spectrum, (part) => cut(builder, part, 0, Math.floor(length / 2) + 1));
    }
    const isReal = type === "RFFT" || type === "IRFFT";
    for (const axis of isReal ? axes.slice(0, -1) : axes)
      value = alongAxis(builder, value, axis, sign);
    if (type === "IRFFT") value = alongAxis(builder, completed(builder, value, length), last, sign);
  }
  return mapParts(value, (part) => convert(builder, part, element));
}
