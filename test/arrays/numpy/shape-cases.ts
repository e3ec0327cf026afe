/** Moving, products, statistics, counting, differences. */
import * as a from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";
import type { Case } from "./inputs.ts";

type I32 = NDArray<"i32">;

const jumps = "it jumps";
const integers = (...values: readonly number[]): I32 => a.array(values, "i32");

export const shapeCases: { readonly [name: string]: readonly Case[] } = {
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
