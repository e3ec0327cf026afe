/** Calls of the functions of `tilewright/arrays` that NumPy has too, by what their arguments are. */
import * as arrays from "tilewright/arrays";
import type { BadCall } from "./bad-call.ts";
import { call } from "./array-calls.ts";
import { numberTakes, options, parameter } from "./junk.ts";
import type { Parameter } from "./junk.ts";

const matrix = (): unknown =>
  arrays.array([
    [1, 2],
    [3, 4],
  ]);
const line = (): unknown => arrays.array([1, 2, 4]);
const whole = (): unknown => arrays.array([1, 2, 3], "i32");
const truths = (): unknown => arrays.array([1, 0, 1], "bool");
const array = parameter(matrix);
const row = parameter(line);
const operand = parameter(matrix, ...numberTakes);
const integers = parameter(whole);
const integer = parameter(whole, ...numberTakes);
const truth = parameter(truths, ...numberTakes);
const list = parameter(() => [matrix(), matrix()]);
const lines = parameter(() => [line(), line()]);
const count = parameter(() => 3, "zero");
const optionalCount = parameter(() => 1, "undefined", "zero");
const number = parameter(() => 2, ...numberTakes);
const optionalNumber = parameter(() => 2, "undefined", ...numberTakes);
const offset = parameter(() => 1, "undefined", "negative", "zero");
const place = parameter(() => 1, "negative", "zero");
const axisNumber = parameter(() => 1, "negative", "zero");
const axesOrOne = parameter(() => 1, "negative", "zero", "list", "numbers");
const shape = parameter(() => [2, 2], "list", "numbers");
const optionalDType = parameter(() => "f32", "undefined");
const part = parameter(() => 0.5, "zero", "list", "numbers");
const percent = parameter(() => 50, "zero", "fraction", "list", "numbers");
const times = parameter(() => 2, "zero", "list", "numbers");
const cuts = parameter(() => 2, "list", "numbers");
const axis = options(() => ({ axis: 0 }));
const reduce = options(() => ({ axis: 0, keepDims: true }));
const size = parameter(() => ({ size: 2 }));

/** Names by the arguments that they all take. */
const groups: readonly (readonly [names: string, ...parameters: readonly Parameter[]])[] = [
  [
    "acos asin atan sinh cosh asinh acosh atanh square reciprocal exp2 log2 log10 trunc deg2rad rad2deg sinc modf i0 isnan isinf isfinite isposinf isneginf signbit ravel fliplr flipud matrixTranspose ediff1d atleast1d atleast2d atleast3d",
    array,
  ],
  ["bitwiseNot bitwiseCount countLeadingZeros", integers],
  [
    "floorDivide mod divmod hypot copysign nextafter fmax fmin heaviside logaddexp logaddexp2",
    operand,
    operand,
  ],
  ["gcd lcm", integer, integer],
  ["logicalAnd logicalOr logicalXor", truth, truth],
  ["ldexp", row, integer],
  ["nanToNum", array, options(() => ({ nan: 1 }))],
  ["isclose allclose", operand, operand, options(() => ({ equalNaN: true }))],
  ["arrayEqual arrayEquiv dot vdot inner outer kron isin", array, array],
  ["zerosLike onesLike", array, optionalDType],
  ["fullLike", array, number],
  ["eye tri", count, options(() => ({ offset: 1 }))],
  ["identity", count, optionalDType],
  ["tril triu", array, offset],
  ["linspace logspace geomspace", number, number, count, options(() => ({ endpoint: false }))],
  ["meshgrid", lines, options(() => ({ indexing: "ij" }))],
  ["indices", shape, optionalDType],
  ["vander", row, optionalCount, options(() => ({ increasing: true }))],
  ["hanning hamming blackman bartlett", count],
  ["kaiser", count, number],
  ["vstack hstack dstack columnStack broadcastArrays multiDot", list],
  ["unstack", array, axis],
  ["split arraySplit", array, cuts, axis],
  ["vsplit hsplit", array, cuts],
  ["dsplit", parameter(() => arrays.zeros([1, 1, 2])), cuts],
  ["tile", array, times],
  ["repeat", array, times, axis],
  ["append", array, array, axis],
  ["insert", row, place, number, axis],
  ["deleteAt", row, parameter(() => 1, "negative", "zero", "list", "numbers"), axis],
  ["block", parameter(() => [[matrix()]])],
  ["resize", array, shape],
  ["moveaxis", array, axesOrOne, axesOrOne],
  ["swapaxes", array, axisNumber, axisNumber],
  ["rot90", array, offset, options(() => ({ axes: [0, 1] }))],
  ["roll", array, axesOrOne, axis],
  ["diagonal trace", array, options(() => ({ offset: 1 }))],
  ["diag diagflat", array, offset],
  ["fillDiagonal", array, parameter(() => 1, ...numberTakes)],
  ["trilIndices triuIndices", count, options(() => ({ offset: 1 }))],
  ["diagIndices", count, optionalCount],
  ["unravelIndex", integers, shape],
  ["ravelMultiIndex", parameter(() => [whole(), whole()]), shape],
  ["select", parameter(() => [truths()]), parameter(() => [line()]), optionalNumber],
  ["choose", integers, lines],
  [
    "putAlongAxis",
    array,
    parameter(() => arrays.array([[0], [1]], "i32")),
    parameter(() => 1, ...numberTakes),
    axis,
  ],
  ["vecdot", array, array, axis],
  ["matvec", array, parameter(() => arrays.array([1, 2]))],
  ["vecmat", parameter(() => arrays.array([1, 2])), array],
  ["tensordot", array, array, parameter(() => 1, "undefined", "zero")],
  ["cross", row, row, axis],
  ["variance std nanvar nanstd", array, options(() => ({ ddof: 1 }))],
  ["ptp countNonzero median nansum nanprod nanmax nanmin nanmean nanmedian", array, reduce],
  ["average", array, options(() => ({ weights: matrix() }))],
  ["quantile", array, part, options(() => ({ method: "lower" }))],
  ["percentile", array, percent, options(() => ({ axis: 0 }))],
  ["nanquantile", array, part, reduce],
  ["nanpercentile", array, percent, reduce],
  ["cov", array, options(() => ({ ddof: 0 }))],
  ["corrcoef", array, options(() => ({ rowvar: false }))],
  ["nanargmax nanargmin", array, axis],
  ["nancumsum nancumprod", array, options(() => ({ axis: 0, reverse: true }))],
  ["searchsorted", row, row, options(() => ({ side: "right" }))],
  ["digitize", row, row, options(() => ({ right: true }))],
  ["bincount", integers, parameter(() => ({ length: 4 }))],
  ["histogram histogramBinEdges", row, options(() => ({ bins: 4 }))],
  ["interp", row, row, row, options(() => ({ left: 0 }))],
  ["nonzero flatnonzero argwhere unique uniqueAll", row, size],
  ["union1d intersect1d setdiff1d setxor1d", row, row, size],
  ["lexsort", lines],
  ["diff", row, optionalCount, axis],
  ["gradient trapezoid", row, options(() => ({ spacing: 2 }))],
  ["convolve correlate", row, row, options(() => ({ mode: "same" }))],
  ["polyval", row, operand],
  ["polyadd polysub polymul", row, row],
  ["polyder", row, optionalCount],
  ["polyint", row, optionalNumber],
];

export const numpyCalls: readonly BadCall[] = groups.flatMap(([names, ...parameters]) =>
  names.split(" ").map((name) => call(name, ...parameters)),
);
