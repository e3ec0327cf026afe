/** Functions of single elements, arrays in a pattern, joining and splitting. */
import * as a from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";
import type { Case } from "./inputs.ts";

type F64 = NDArray<"f64">;

const ties = "elements are equal";
const unit = (x: F64): F64 => a.div(x, 4);
const bool = (x: F64): NDArray<"bool"> => a.greater(x, 0);

export const elementCases: { readonly [name: string]: readonly Case[] } = {
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
};
