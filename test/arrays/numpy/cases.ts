/**
 * Calls of the functions that NumPy has too, each beside NumPy's own expression for it. `record.py` writes what NumPy answers to
 * `test/fixtures/numpy-results.json`; `numpy.test.ts` holds values, batches and gradients against that.
 *
 *   roll: [[({ m }) => a.roll(m, 2), "np.roll(m, 2)"]],
 */
import * as a from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";

type F64 = NDArray<"f64">;
type I32 = NDArray<"i32">;

/** What calls are made with; `record.py` makes the same. */
export interface Inputs {
  /** Between 0.1 and 3, [3, 4]. */
  readonly m: F64;
  /** Of both signs, [3, 4]. */
  readonly s: F64;
  /** Five numbers of both signs. */
  readonly v: F64;
  /** Five numbers that ascend. */
  readonly w: F64;
  /** A square matrix, [3, 3]. */
  readonly q: F64;
  /** Three axes, [2, 3, 4]. */
  readonly t: F64;
  /** With NaN, [3, 4]. */
  readonly n: F64;
  /** Integers of both signs, [3, 4], none of them 0. */
  readonly i: I32;
  /** Integers from 0 to 5, some of them alike, [8]. */
  readonly k: I32;
}

export type Call = (inputs: Inputs) => NDArray | readonly NDArray[];
/** The call, NumPy's expression, and why the gradient is not compared, where it is not. */
export type Case = readonly [call: Call, numpy: string, noGradient?: string];

const jumps = "it jumps";
const ties = "elements are equal";
const integers = (...values: readonly number[]): I32 => a.array(values, "i32");
const unit = (x: F64): F64 => a.div(x, 4);
const bool = (x: F64): NDArray<"bool"> => a.greater(x, 0);

export const cases: { readonly [name: string]: readonly Case[] } = {
  // Element by element
  acos: [[({ s }) => a.acos(unit(s)), "np.arccos(s / 4)"]],
  asin: [[({ s }) => a.asin(unit(s)), "np.arcsin(s / 4)"]],
  atan: [[({ s }) => a.atan(s), "np.arctan(s)"]],
  sinh: [[({ s }) => a.sinh(s), "np.sinh(s)"]],
  cosh: [[({ s }) => a.cosh(s), "np.cosh(s)"]],
  asinh: [[({ s }) => a.asinh(s), "np.arcsinh(s)"]],
  acosh: [[({ m }) => a.acosh(a.add(m, 1)), "np.arccosh(m + 1)"]],
  atanh: [[({ s }) => a.atanh(unit(s)), "np.arctanh(s / 4)"]],
  square: [[({ s }) => a.square(s), "np.square(s)"]],
  reciprocal: [[({ s }) => a.reciprocal(s), "np.reciprocal(s)"]],
  exp2: [[({ s }) => a.exp2(s), "np.exp2(s)"]],
  log2: [[({ m }) => a.log2(m), "np.log2(m)"]],
  log10: [[({ m }) => a.log10(m), "np.log10(m)"]],
  trunc: [[({ s }) => a.trunc(s), "np.trunc(s)"]],
  deg2rad: [[({ s }) => a.deg2rad(s), "np.deg2rad(s)"]],
  rad2deg: [[({ s }) => a.rad2deg(s), "np.rad2deg(s)"]],
  sinc: [
    [({ s }) => a.sinc(s), "np.sinc(s)"],
    [() => a.sinc(a.array([0, 1, 0.5], "f64")), "np.sinc(np.array([0, 1, 0.5]))"],
  ],
  bitwiseNot: [[({ i }) => a.bitwiseNot(i), "np.bitwise_not(i)"]],
  bitwiseCount: [[({ k }) => a.bitwiseCount(k), "np.bitwise_count(k)"]],
  countLeadingZeros: [
    [({ k }) => a.countLeadingZeros(k), "np.array([32 - int(x).bit_length() for x in k])"],
  ],
  floorDivide: [
    [({ s, m }) => a.floorDivide(s, m), "np.floor_divide(s, m)"],
    [({ i }) => a.floorDivide(i, 3), "np.floor_divide(i, 3)"],
    [({ i }) => a.floorDivide(7, i), "np.floor_divide(7, i)"],
  ],
  mod: [
    [({ s, m }) => a.mod(s, m), "np.mod(s, m)"],
    [({ s }) => a.mod(s, -0.7), "np.mod(s, -0.7)"],
    [({ i }) => a.mod(i, -3), "np.mod(i, -3)"],
  ],
  divmod: [[({ s, m }) => a.divmod(s, m), "np.divmod(s, m)"]],
  modf: [[({ s }) => a.modf(s), "np.modf(s)"]],
  hypot: [
    [({ s, m }) => a.hypot(s, m), "np.hypot(s, m)"],
    [() => a.hypot(a.array([3e200, 0], "f64"), 4e200), "np.hypot(np.array([3e200, 0]), 4e200)"],
  ],
  copysign: [[({ s, m }) => a.copysign(m, s), "np.copysign(m, s)"]],
  nextafter: [
    [({ s, m }) => a.nextafter(s, m), "np.nextafter(s, m)", "it is a step of the format"],
  ],
  fmax: [
    [({ s, m }) => a.fmax(s, m), "np.fmax(s, m)"],
    [({ n, m }) => a.fmax(n, m), "np.fmax(n, m)", ties],
  ],
  fmin: [
    [({ s, m }) => a.fmin(s, m), "np.fmin(s, m)"],
    [({ n, m }) => a.fmin(m, n), "np.fmin(m, n)", ties],
  ],
  heaviside: [[({ s }) => a.heaviside(s, 0.5), "np.heaviside(s, 0.5)"]],
  logaddexp: [[({ s, m }) => a.logaddexp(s, m), "np.logaddexp(s, m)"]],
  logaddexp2: [[({ s, m }) => a.logaddexp2(s, m), "np.logaddexp2(s, m)"]],
  ldexp: [[({ s, i }) => a.ldexp(s, i), "np.ldexp(s, i)"]],
  logicalAnd: [[({ s, m }) => a.logicalAnd(bool(s), a.less(m, 1)), "np.logical_and(s > 0, m < 1)"]],
  logicalOr: [[({ s, m }) => a.logicalOr(bool(s), a.less(m, 1)), "np.logical_or(s > 0, m < 1)"]],
  logicalXor: [[({ s, m }) => a.logicalXor(bool(s), a.less(m, 1)), "np.logical_xor(s > 0, m < 1)"]],
  gcd: [[({ i }) => a.gcd(a.mul(i, 6), 20), "np.gcd(i * 6, 20)"]],
  lcm: [[({ i }) => a.lcm(i, 6), "np.lcm(i, 6)"]],
  nanToNum: [
    [({ n }) => a.nanToNum(n), "np.nan_to_num(n)"],
    [({ n }) => a.nanToNum(n, { nan: 7 }), "np.nan_to_num(n, nan=7)"],
  ],
  isnan: [[({ n }) => a.isnan(n), "np.isnan(n)"]],
  isinf: [[({ n }) => a.isinf(a.div(n, 0)), "np.isinf(n / 0)"]],
  isfinite: [[({ n }) => a.isfinite(n), "np.isfinite(n)"]],
  isposinf: [[({ s }) => a.isposinf(a.div(s, 0)), "np.isposinf(s / 0)"]],
  isneginf: [[({ s }) => a.isneginf(a.div(s, 0)), "np.isneginf(s / 0)"]],
  signbit: [[({ s }) => a.signbit(a.mul(s, 0)), "np.signbit(s * 0)"]],
  isclose: [
    [({ s }) => a.isclose(s, a.add(s, 1e-6)), "np.isclose(s, s + 1e-6)"],
    [({ n }) => a.isclose(n, n, { equalNaN: true }), "np.isclose(n, n, equal_nan=True)"],
    [
      ({ s }) => a.isclose(s, a.add(s, 0.1), { relative: 0.05, absolute: 0 }),
      "np.isclose(s, s + 0.1, rtol=0.05, atol=0)",
    ],
  ],
  allclose: [[({ s, m }) => a.allclose(s, m), "np.allclose(s, m)"]],
  arrayEqual: [[({ s }) => a.arrayEqual(s, s), "np.array_equal(s, s)"]],
  arrayEquiv: [[({ v, w }) => a.arrayEquiv(v, w), "np.array_equiv(v, w)"]],

  // Making arrays
  zerosLike: [[({ m }) => a.zerosLike(m), "np.zeros_like(m)"]],
  onesLike: [[({ m }) => a.onesLike(m, "i32"), "np.ones_like(m, dtype=np.int32)"]],
  fullLike: [[({ m }) => a.fullLike(m, 7), "np.full_like(m, 7)"]],
  eye: [
    [() => a.eye(3), "np.eye(3)"],
    [() => a.eye(3, { columns: 5, offset: -1 }), "np.eye(3, 5, -1)"],
  ],
  identity: [[() => a.identity(4, "f64"), "np.identity(4)"]],
  tri: [[() => a.tri(3, { columns: 4, offset: 1 }), "np.tri(3, 4, 1)"]],
  tril: [
    [({ m }) => a.tril(m), "np.tril(m)"],
    [({ t }) => a.tril(t, -1), "np.tril(t, -1)"],
  ],
  triu: [[({ t }) => a.triu(t, 1), "np.triu(t, 1)"]],
  linspace: [
    [() => a.linspace(-1, 2, 7, { dtype: "f64" }), "np.linspace(-1, 2, 7)"],
    [
      () => a.linspace(0, 1, 4, { dtype: "f64", endpoint: false }),
      "np.linspace(0, 1, 4, endpoint=False)",
    ],
  ],
  logspace: [
    [() => a.logspace(0, 3, 4, { dtype: "f64" }), "np.logspace(0, 3, 4)"],
    [() => a.logspace(0, 3, 4, { dtype: "f64", base: 2 }), "np.logspace(0, 3, 4, base=2)"],
  ],
  geomspace: [
    [() => a.geomspace(1, 256, 9, { dtype: "f64" }), "np.geomspace(1, 256, 9)"],
    [() => a.geomspace(-1, -8, 4, { dtype: "f64" }), "np.geomspace(-1, -8, 4)"],
  ],
  meshgrid: [
    [({ v, w }) => a.meshgrid([v, w]), "np.meshgrid(v, w)"],
    [
      ({ v, w }) => a.meshgrid([v, w, v], { indexing: "ij" }),
      "np.meshgrid(v, w, v, indexing='ij')",
    ],
  ],
  indices: [[() => a.indices([2, 3]), "np.indices((2, 3))"]],
  vander: [
    [({ v }) => a.vander(v), "np.vander(v)"],
    [({ v }) => a.vander(v, 3, { increasing: true }), "np.vander(v, 3, increasing=True)"],
  ],
  hanning: [[() => a.hanning(6), "np.hanning(6)"]],
  hamming: [[() => a.hamming(5), "np.hamming(5)"]],
  blackman: [[() => a.blackman(6), "np.blackman(6)"]],
  bartlett: [[() => a.bartlett(7), "np.bartlett(7)"]],
  kaiser: [[() => a.kaiser(6, 8.6), "np.kaiser(6, 8.6)"]],
  i0: [[({ s }) => a.i0(a.mul(s, 9)), "np.i0(s * 9)"]],

  // Joining and splitting
  atleast1d: [[({ v }) => a.atleast1d(a.sum(v)), "np.atleast_1d(np.sum(v))"]],
  atleast2d: [[({ v }) => a.atleast2d(v), "np.atleast_2d(v)"]],
  atleast3d: [
    [({ v }) => a.atleast3d(v), "np.atleast_3d(v)"],
    [({ m }) => a.atleast3d(m), "np.atleast_3d(m)"],
  ],
  vstack: [[({ v, w }) => a.vstack([v, w]), "np.vstack([v, w])"]],
  hstack: [
    [({ v, w }) => a.hstack([v, w]), "np.hstack([v, w])"],
    [({ m, q }) => a.hstack([m, q]), "np.hstack([m, q])"],
  ],
  dstack: [[({ v, w }) => a.dstack([v, w]), "np.dstack([v, w])"]],
  columnStack: [[({ v, w }) => a.columnStack([v, w]), "np.column_stack([v, w])"]],
  unstack: [[({ t }) => a.unstack(t, { axis: 1 }), "[t[:, 0], t[:, 1], t[:, 2]]"]],
  split: [
    [({ m }) => a.split(m, 2, { axis: 1 }), "np.split(m, 2, axis=1)"],
    [({ v }) => a.split(v, [1, 3, 9]), "np.split(v, [1, 3, 9])"],
  ],
  arraySplit: [[({ v }) => a.arraySplit(v, 3), "np.array_split(v, 3)"]],
  vsplit: [[({ m }) => a.vsplit(m, [1]), "np.vsplit(m, [1])"]],
  hsplit: [[({ m }) => a.hsplit(m, 2), "np.hsplit(m, 2)"]],
  dsplit: [[({ t }) => a.dsplit(t, 2), "np.dsplit(t, 2)"]],
  tile: [
    [({ m }) => a.tile(m, 2), "np.tile(m, 2)"],
    [({ v }) => a.tile(v, [2, 3]), "np.tile(v, [2, 3])"],
    [({ t }) => a.tile(t, [2, 1, 3]), "np.tile(t, [2, 1, 3])"],
  ],
  repeat: [
    [({ m }) => a.repeat(m, 2), "np.repeat(m, 2)"],
    [({ m }) => a.repeat(m, 3, { axis: 0 }), "np.repeat(m, 3, axis=0)"],
    [({ m }) => a.repeat(m, [1, 0, 2], { axis: 0 }), "np.repeat(m, [1, 0, 2], axis=0)"],
  ],
  append: [
    [({ v, m }) => a.append(v, m), "np.append(v, m)"],
    [({ m, q }) => a.append(m, q, { axis: 1 }), "np.append(m, q, axis=1)"],
  ],
  insert: [
    [({ v }) => a.insert(v, 2, 9), "np.insert(v, 2, 9)"],
    [({ m }) => a.insert(m, -1, 5, { axis: 1 }), "np.insert(m, -1, 5, axis=1)"],
  ],
  deleteAt: [
    [({ v }) => a.deleteAt(v, 1), "np.delete(v, 1)"],
    [({ m }) => a.deleteAt(m, [0, -1], { axis: 1 }), "np.delete(m, [0, -1], axis=1)"],
  ],
  block: [
    [
      ({ m, q }) =>
        a.block([
          [m, q],
          [q, m],
        ]),
      "np.block([[m, q], [q, m]])",
    ],
  ],
  broadcastArrays: [
    [
      ({ m }) => a.broadcastArrays([m, a.array([[2], [3], [4]], "f64")]),
      "np.broadcast_arrays(m, np.array([[2], [3], [4]]))",
    ],
  ],
  resize: [
    [({ v }) => a.resize(v, [2, 4]), "np.resize(v, (2, 4))"],
    [({ m }) => a.resize(m, [3]), "np.resize(m, (3,))"],
  ],

  // Moving
  ravel: [[({ t }) => a.ravel(t), "np.ravel(t)"]],
  moveaxis: [
    [({ t }) => a.moveaxis(t, 0, -1), "np.moveaxis(t, 0, -1)"],
    [({ t }) => a.moveaxis(t, [0, 1], [-1, 0]), "np.moveaxis(t, [0, 1], [-1, 0])"],
  ],
  swapaxes: [[({ t }) => a.swapaxes(t, 0, 2), "np.swapaxes(t, 0, 2)"]],
  matrixTranspose: [[({ t }) => a.matrixTranspose(t), "np.matrix_transpose(t)"]],
  fliplr: [[({ m }) => a.fliplr(m), "np.fliplr(m)"]],
  flipud: [[({ m }) => a.flipud(m), "np.flipud(m)"]],
  rot90: [
    [({ m }) => a.rot90(m), "np.rot90(m)"],
    [({ m }) => a.rot90(m, 2), "np.rot90(m, 2)"],
    [({ t }) => a.rot90(t, -1, { axes: [1, 2] }), "np.rot90(t, -1, axes=(1, 2))"],
  ],
  roll: [
    [({ m }) => a.roll(m, 5), "np.roll(m, 5)"],
    [({ m }) => a.roll(m, -1, { axis: 0 }), "np.roll(m, -1, axis=0)"],
    [({ m }) => a.roll(m, [1, 2], { axis: [0, 1] }), "np.roll(m, (1, 2), axis=(0, 1))"],
  ],
  diagonal: [
    [({ m }) => a.diagonal(m), "np.diagonal(m)"],
    [({ m }) => a.diagonal(m, { offset: 2 }), "np.diagonal(m, 2)"],
    [({ t }) => a.diagonal(t, { offset: -1, axes: [1, 2] }), "np.diagonal(t, -1, 1, 2)"],
  ],
  trace: [[({ t }) => a.trace(t, { axes: [1, 2] }), "np.trace(t, axis1=1, axis2=2)"]],
  diag: [
    [({ v }) => a.diag(v, 1), "np.diag(v, 1)"],
    [({ v }) => a.diag(v, -2), "np.diag(v, -2)"],
    [({ m }) => a.diag(m, 1), "np.diag(m, 1)"],
  ],
  diagflat: [[({ q }) => a.diagflat(q), "np.diagflat(q)"]],
  fillDiagonal: [
    [({ q }) => a.fillDiagonal(q, 2), "q * (1 - np.eye(3)) + 2 * np.eye(3)"],
    [
      ({ m, v }) => a.fillDiagonal(m, a.slice(v, [[0, 3]])),
      "m * (1 - np.eye(3, 4)) + np.eye(3, 4) * v[:3, None]",
    ],
  ],
  trilIndices: [[() => a.trilIndices(3, { offset: 1, columns: 4 }), "np.tril_indices(3, 1, 4)"]],
  triuIndices: [[() => a.triuIndices(3), "np.triu_indices(3)"]],
  diagIndices: [[() => a.diagIndices(3), "np.diag_indices(3)"]],
  unravelIndex: [[({ k }) => a.unravelIndex(k, [2, 3]), "np.unravel_index(k, (2, 3))"]],
  ravelMultiIndex: [
    [({ k }) => a.ravelMultiIndex([k, k], [6, 7]), "np.ravel_multi_index((k, k), (6, 7))"],
  ],
  select: [
    [
      ({ s, m }) => a.select([a.less(s, 0), a.less(m, 1)], [m, s], 9),
      "np.select([s < 0, m < 1], [m, s], 9)",
    ],
  ],
  choose: [
    [
      ({ k, v }) => a.choose(a.minimum(k, 1), [a.sum(v), a.max(v)]),
      "np.choose(np.minimum(k, 1), [np.sum(v), np.max(v)])",
    ],
  ],
  putAlongAxis: [
    [
      ({ m }) => a.putAlongAxis(m, a.array([[1], [0], [3]], "i32"), 9),
      "put_along_axis(m, np.array([[1], [0], [3]]), 9, 1)",
    ],
  ],
  pad: [
    [
      ({ m }) =>
        a.pad(
          m,
          [
            [1, 0],
            [0, 2],
          ],
          5,
        ),
      "np.pad(m, [(1, 0), (0, 2)], constant_values=5)",
    ],
    [
      ({ m }) =>
        a.pad(
          m,
          [
            [1, 2],
            [3, 1],
          ],
          { mode: "edge" },
        ),
      "np.pad(m, [(1, 2), (3, 1)], 'edge')",
    ],
    [
      ({ m }) =>
        a.pad(
          m,
          [
            [4, 5],
            [1, 7],
          ],
          { mode: "reflect" },
        ),
      "np.pad(m, [(4, 5), (1, 7)], 'reflect')",
    ],
    [
      ({ m }) =>
        a.pad(
          m,
          [
            [4, 5],
            [1, 9],
          ],
          { mode: "symmetric" },
        ),
      "np.pad(m, [(4, 5), (1, 9)], 'symmetric')",
    ],
    [
      ({ m }) =>
        a.pad(
          m,
          [
            [4, 5],
            [1, 9],
          ],
          { mode: "wrap" },
        ),
      "np.pad(m, [(4, 5), (1, 9)], 'wrap')",
    ],
  ],
  take: [
    [({ t }) => a.take(t, integers(2, 0), { axis: 1 }), "np.take(t, [2, 0], axis=1)"],
    [
      ({ t }) =>
        a.take(
          t,
          a.array(
            [
              [1, 3],
              [0, 0],
            ],
            "i32",
          ),
          { axis: -1 },
        ),
      "np.take(t, [[1, 3], [0, 0]], axis=-1)",
    ],
  ],
  where: [[({ s }) => a.where(a.greater(s, 0), 1, 2), "np.where(s > 0, 1.0, 2.0)"]],

  // Products
  dot: [
    [({ v, w }) => a.dot(v, w), "np.dot(v, w)"],
    [({ t, m }) => a.dot(t, a.transpose(m)), "np.dot(t, m.T)"],
    [({ m, t }) => a.dot(a.transpose(m), t), "np.dot(m.T, t)"],
  ],
  vdot: [[({ m, s }) => a.vdot(m, s), "np.vdot(m, s)"]],
  inner: [[({ t, m }) => a.inner(t, m), "np.inner(t, m)"]],
  outer: [[({ v, m }) => a.outer(v, m), "np.outer(v, m)"]],
  vecdot: [[({ t, m }) => a.vecdot(t, m), "np.vecdot(t, m)"]],
  matvec: [
    [
      ({ q, t }) => a.matvec(q, a.slice(a.matrixTranspose(t), [null, null, null])),
      "np.matvec(q, np.matrix_transpose(t))",
    ],
  ],
  vecmat: [
    [({ t, m }) => a.vecmat(a.matrixTranspose(t), m), "np.vecmat(np.matrix_transpose(t), m)"],
  ],
  tensordot: [
    [
      ({ t }) =>
        a.tensordot(t, t, [
          [0, 2],
          [0, 2],
        ]),
      "np.tensordot(t, t, [(0, 2), (0, 2)])",
    ],
    [({ t, m }) => a.tensordot(t, m), "np.tensordot(t, m)"],
    [({ v, m }) => a.tensordot(v, m, 0), "np.tensordot(v, m, 0)"],
  ],
  kron: [
    [({ m, q }) => a.kron(m, q), "np.kron(m, q)"],
    [({ v, m }) => a.kron(v, m), "np.kron(v, m)"],
  ],
  cross: [
    [({ q }) => a.cross(q, a.flip(q)), "np.cross(q, q[::-1])"],
    [({ q }) => a.cross(q, a.flip(q), { axis: 0 }), "np.cross(q, q[::-1], axis=0)"],
  ],
  multiDot: [
    [
      ({ m, q, s }) => a.multiDot([a.transpose(m), q, s, a.transpose(s)]),
      "np.linalg.multi_dot([m.T, q, s, s.T])",
    ],
  ],

  // Statistics
  variance: [[({ m }) => a.variance(m, { axis: 1, ddof: 1 }), "np.var(m, axis=1, ddof=1)"]],
  std: [
    [({ m }) => a.std(m), "np.std(m)"],
    [
      ({ t }) => a.std(t, { axis: [0, 2], keepDims: true }),
      "np.std(t, axis=(0, 2), keepdims=True)",
    ],
  ],
  ptp: [[({ m }) => a.ptp(m, { axis: 0 }), "np.ptp(m, axis=0)"]],
  countNonzero: [[({ k }) => a.countNonzero(k), "np.count_nonzero(k)"]],
  average: [
    [
      ({ m }) => a.average(m, { axis: 1, weights: a.array([1, 2, 3, 4], "f64") }),
      "np.average(m, axis=1, weights=[1, 2, 3, 4])",
    ],
    [({ m, s }) => a.average(m, { weights: a.square(s) }), "np.average(m, weights=s ** 2)"],
  ],
  quantile: [
    [({ m }) => a.quantile(m, 0.3), "np.quantile(m, 0.3)"],
    [
      ({ t }) => a.quantile(t, [0.1, 0.5], { axis: [0, 2] }),
      "np.quantile(t, [0.1, 0.5], axis=(0, 2))",
    ],
    [
      ({ m }) => a.quantile(m, 0.4, { axis: 1, method: "lower" }),
      "np.quantile(m, 0.4, axis=1, method='lower')",
    ],
    [
      ({ m }) => a.quantile(m, 0.4, { axis: 1, method: "higher" }),
      "np.quantile(m, 0.4, axis=1, method='higher')",
    ],
    [
      ({ m }) => a.quantile(m, 0.4, { axis: 1, method: "nearest" }),
      "np.quantile(m, 0.4, axis=1, method='nearest')",
    ],
    [
      ({ m }) => a.quantile(m, 0.4, { axis: 1, method: "midpoint" }),
      "np.quantile(m, 0.4, axis=1, method='midpoint')",
    ],
    [({ n }) => a.quantile(n, 0.5, { axis: 1 }), "np.quantile(n, 0.5, axis=1)", "it is NaN"],
  ],
  percentile: [
    [
      ({ m }) => a.percentile(m, 35, { axis: 0, keepDims: true }),
      "np.percentile(m, 35, axis=0, keepdims=True)",
    ],
  ],
  median: [
    [({ m }) => a.median(m, { axis: 0 }), "np.median(m, axis=0)"],
    [({ m }) => a.median(m), "np.median(m)"],
  ],
  cov: [
    [({ m }) => a.cov(m), "np.cov(m)"],
    [({ m }) => a.cov(m, { rowvar: false, ddof: 0 }), "np.cov(m, rowvar=False, ddof=0)"],
    [({ v }) => a.cov(v), "np.cov(v)"],
  ],
  corrcoef: [
    [({ m }) => a.corrcoef(m), "np.corrcoef(m)", "1 of each with itself, where it is cut"],
  ],
  nansum: [[({ n }) => a.nansum(n, { axis: 1 }), "np.nansum(n, axis=1)"]],
  nanprod: [[({ n }) => a.nanprod(n, { axis: 0 }), "np.nanprod(n, axis=0)"]],
  nanmax: [[({ n }) => a.nanmax(n, { axis: 1 }), "np.nanmax(n, axis=1)"]],
  nanmin: [[({ n }) => a.nanmin(n), "np.nanmin(n)"]],
  nanmean: [[({ n }) => a.nanmean(n, { axis: 0 }), "np.nanmean(n, axis=0)"]],
  nanvar: [[({ n }) => a.nanvar(n, { axis: 1 }), "np.nanvar(n, axis=1)"]],
  nanstd: [[({ n }) => a.nanstd(n, { ddof: 1 }), "np.nanstd(n, ddof=1)"]],
  nanmedian: [[({ n }) => a.nanmedian(n, { axis: 1 }), "np.nanmedian(n, axis=1)"]],
  nanquantile: [
    [({ n }) => a.nanquantile(n, [0.2, 0.7], { axis: 1 }), "np.nanquantile(n, [0.2, 0.7], axis=1)"],
  ],
  nanpercentile: [[({ n }) => a.nanpercentile(n, 40), "np.nanpercentile(n, 40)"]],
  nanargmax: [[({ n }) => a.nanargmax(n, { axis: 1 }), "np.nanargmax(n, axis=1)"]],
  nanargmin: [[({ n }) => a.nanargmin(n), "np.nanargmin(n)"]],
  nancumsum: [[({ n }) => a.nancumsum(n, { axis: 0 }), "np.nancumsum(n, axis=0)"]],
  nancumprod: [[({ n }) => a.nancumprod(n), "np.nancumprod(n, axis=1)"]],

  // Counting
  searchsorted: [
    [({ w, m }) => a.searchsorted(w, m), "np.searchsorted(w, m)"],
    [({ w }) => a.searchsorted(w, w, { side: "right" }), "np.searchsorted(w, w, side='right')"],
    [({ n, w }) => a.searchsorted(w, n), "np.searchsorted(w, n)"],
  ],
  digitize: [
    [({ w, m }) => a.digitize(m, w), "np.digitize(m, w)"],
    [({ w }) => a.digitize(w, w, { right: true }), "np.digitize(w, w, right=True)"],
  ],
  bincount: [
    [({ k }) => a.bincount(k, { length: 7 }), "np.bincount(k, minlength=7)"],
    [
      ({ k }) => a.bincount(k, { length: 6, weights: a.square(a.astype(k, "f64")) }),
      "np.bincount(k, weights=k.astype(float) ** 2, minlength=6)",
    ],
  ],
  histogram: [
    [({ m }) => a.histogram(m, { bins: 5 }), "np.histogram(m, bins=5)", jumps],
    [
      ({ m }) => a.histogram(m, { bins: [0, 0.5, 1, 3], density: true }),
      "np.histogram(m, bins=[0, 0.5, 1, 3], density=True)",
      jumps,
    ],
    [
      ({ m, s }) => a.histogram(m, { bins: 4, range: [0.5, 2], weights: a.square(s) }),
      "np.histogram(m, bins=4, range=(0.5, 2), weights=s ** 2)",
    ],
  ],
  histogramBinEdges: [
    [({ m }) => a.histogramBinEdges(m, { bins: 4 }), "np.histogram_bin_edges(m, bins=4)"],
  ],
  interp: [
    [({ m, w, v }) => a.interp(m, w, v), "np.interp(m, w, v)"],
    [
      ({ s, w, v }) => a.interp(s, w, v, { left: -1, right: 7 }),
      "np.interp(s, w, v, left=-1, right=7)",
    ],
  ],
  nonzero: [[({ k }) => a.nonzero(k, { size: 8, fill: -1 }), "[sized(np.nonzero(k)[0], 8, -1)]"]],
  flatnonzero: [
    [({ i }) => a.flatnonzero(a.greater(i, 0), { size: 4 }), "sized(np.flatnonzero(i > 0), 4, 0)"],
  ],
  argwhere: [[({ i }) => a.argwhere(a.greater(i, 2), { size: 3 }), "np.argwhere(i > 2)[:3]"]],
  unique: [
    [({ k }) => a.unique(k, { size: 8, fill: -1 }), "sized(np.unique(k), 8, -1)"],
    [({ k }) => a.unique(k, { size: 2 }), "np.unique(k)[:2]"],
  ],
  uniqueAll: [
    [
      ({ k }) => {
        const { values, indices, inverse, counts } = a.uniqueAll(k, { size: 5 });
        return [values, indices, inverse, counts];
      },
      "np.unique(k, return_index=True, return_inverse=True, return_counts=True)",
    ],
  ],
  isin: [[({ k }) => a.isin(k, integers(1, 3, 9)), "np.isin(k, [1, 3, 9])"]],
  union1d: [
    [
      ({ k }) => a.union1d(k, integers(9, 1), { size: 7, fill: 0 }),
      "sized(np.union1d(k, [9, 1]), 7, 0)",
    ],
  ],
  intersect1d: [
    [
      ({ k }) => a.intersect1d(k, integers(9, 1, 3, 3), { size: 3, fill: -1 }),
      "sized(np.intersect1d(k, [9, 1, 3, 3]), 3, -1)",
    ],
  ],
  setdiff1d: [
    [
      ({ k }) => a.setdiff1d(k, integers(9, 1), { size: 6, fill: -1 }),
      "sized(np.setdiff1d(k, [9, 1]), 6, -1)",
    ],
  ],
  setxor1d: [
    [
      ({ k }) => a.setxor1d(k, integers(9, 1), { size: 6, fill: -1 }),
      "sized(np.setxor1d(np.unique(k), [9, 1]), 6, -1)",
    ],
  ],
  lexsort: [[({ k }) => a.lexsort([a.flip(k), k]), "np.lexsort((k[::-1], k))"]],

  // Calculus
  diff: [
    [({ m }) => a.diff(m), "np.diff(m)"],
    [({ m }) => a.diff(m, 2, { axis: 0 }), "np.diff(m, 2, axis=0)"],
  ],
  ediff1d: [[({ m }) => a.ediff1d(m), "np.ediff1d(m)"]],
  gradient: [
    [({ m }) => a.gradient(m, { spacing: 0.5 }), "np.gradient(m, 0.5, axis=1)"],
    [({ m }) => a.gradient(m, { axis: 0 }), "np.gradient(m, axis=0)"],
  ],
  trapezoid: [
    [({ m }) => a.trapezoid(m, { axis: 0, spacing: 0.1 }), "np.trapezoid(m, dx=0.1, axis=0)"],
  ],
  convolve: [
    [({ v, w }) => a.convolve(v, a.slice(w, [[0, 3]])), "np.convolve(v, w[:3])"],
    [
      ({ v, w }) => a.convolve(a.slice(v, [[0, 2]]), w, { mode: "same" }),
      "np.convolve(v[:2], w, 'same')",
    ],
    [
      ({ v, w }) => a.convolve(v, a.slice(w, [[0, 4]]), { mode: "same" }),
      "np.convolve(v, w[:4], 'same')",
    ],
    [
      ({ v, w }) => a.convolve(v, a.slice(w, [[0, 2]]), { mode: "valid" }),
      "np.convolve(v, w[:2], 'valid')",
    ],
  ],
  correlate: [
    [({ v, w }) => a.correlate(v, a.slice(w, [[0, 3]])), "np.correlate(v, w[:3])"],
    [
      ({ v, w }) => a.correlate(a.slice(v, [[0, 2]]), w, { mode: "full" }),
      "np.correlate(v[:2], w, 'full')",
    ],
    [
      ({ v, w }) => a.correlate(v, a.slice(w, [[0, 3]]), { mode: "same" }),
      "np.correlate(v, w[:3], 'same')",
    ],
  ],
  polyval: [
    [({ v, m }) => a.polyval(v, m), "np.polyval(v, m)"],
    [({ v }) => a.polyval(v, 2), "np.polyval(v, 2)"],
  ],
  polyadd: [[({ v, w }) => a.polyadd(v, a.slice(w, [[0, 3]])), "np.polyadd(v, w[:3])"]],
  polysub: [[({ v, w }) => a.polysub(a.slice(w, [[0, 3]]), v), "np.polysub(w[:3], v)"]],
  polymul: [[({ v, w }) => a.polymul(v, w), "np.polymul(v, w)"]],
  polyder: [[({ v }) => a.polyder(v, 2), "np.polyder(v, 2)"]],
  polyint: [[({ v }) => a.polyint(v, 3), "np.polyint(v, 1, 3)"]],
};
