/**
 * More kernels as users of other languages bring them: rows, products, attention, random numbers, running sums and windows
 * of neighbours, each said as the mathematics says it.
 */
import {
  tensor,
  bf16,
  cdiv,
  constant,
  dim,
  dot,
  f16,
  f32,
  full,
  gmem,
  i32,
  i4,
  iota,
  kernel,
  loop,
  randomKey,
  scalar,
  semaphore,
  slice,
  u32,
  when,
  zeros,
} from "tilewright";

const [rows, columns] = [dim("rows"), dim("columns")];
const [m, n, k] = [dim("m"), dim("n"), dim("k")];

export const add = kernel(
  {
    name: "add",
    grid: { i: cdiv(n, 1024) },
    inputs: { x: tensor(f32, [n]), y: tensor(f32, [n]) },
    outputs: { out: tensor(f32, [n]) },
  },
  ({ i, x, y, out }) => {
    const here = slice(i.mul(1024), 1024);
    out.at(here).store(x.at(here).load().add(y.at(here).load()));
  },
);

/** The longest row that the row kernels below hold at once. */
const longest = 256;
const whole = slice(0, longest);

export const softmax = kernel(
  {
    name: "softmax",
    grid: { i: rows },
    inputs: { x: tensor(f32, [rows, columns]) },
    outputs: { out: tensor(f32, [rows, columns]) },
  },
  ({ i, x, out }) => {
    const row = x.at(i, whole).load({ fill: -Infinity });
    const powers = row.sub(row.max()).exp();
    out.at(i, whole).store(powers.div(powers.sum()));
  },
);

const [tile, depth, together] = [64, 32, 4];

/** A product whose tiles are made in groups of rows, so that those which run at once share what they read. */
export const groupedOrder = kernel(
  {
    name: "grouped_order",
    grid: { p: cdiv(m, tile).mul(cdiv(n, tile)) },
    inputs: { a: tensor(f16, [m, k]), b: tensor(f16, [k, n]) },
    outputs: { c: tensor(f16, [m, n]) },
  },
  ({ p, a, b, c }) => {
    const [down, across] = [constant(i32, cdiv(m, tile)), constant(i32, cdiv(n, tile))];
    const first = p.div(across.mul(together)).mul(together);
    const size = down.sub(first).minimum(together);
    const within = p.rem(across.mul(together));
    const here = slice(first.add(within.rem(size)).mul(tile), tile);
    const there = slice(within.div(size).mul(tile), tile);
    const sums = loop(
      { to: cdiv(k, depth), carry: zeros(f32, [tile, tile]) },
      (step, accumulator) => {
        const part = slice(step.mul(depth), depth);
        return dot(a.at(here, part).load(), b.at(part, there).load(), { accumulator });
      },
    );
    c.at(here, there).store(sums.ge(0).select(sums, sums.mul(0.01)).cast(f16));
  },
);

/** Elements that a draw keeps, the same for the same seed however blocks are cut. */
export const dropout = kernel(
  {
    name: "dropout",
    grid: { i: cdiv(n, 512) },
    inputs: { x: tensor(f32, [n]), seed: scalar(u32), dropped: scalar(f32) },
    outputs: { out: tensor(f32, [n]) },
  },
  ({ i, x, seed, dropped, out }) => {
    const here = slice(i.mul(512), 512);
    const numbers = iota(u32, [512], { axis: 0 }).add(i.mul(512).cast(u32));
    const key = randomKey([constant(u32, 0), seed], { generator: "philox" });
    const keeps = key.uniform(numbers).ge(dropped);
    const scaled = x.at(here).load().div(dropped.neg().add(1));
    out.at(here).store(keeps.select(scaled, 0));
  },
);

export const layerNorm = kernel(
  {
    name: "layer_norm",
    grid: { i: rows },
    inputs: {
      x: tensor(f32, [rows, columns]),
      weight: tensor(f32, [columns]),
      bias: tensor(f32, [columns]),
      epsilon: scalar(f32),
    },
    outputs: {
      y: tensor(f32, [rows, columns]),
      means: tensor(f32, [rows]),
      inverses: tensor(f32, [rows]),
    },
  },
  ({ i, x, weight, bias, epsilon, y, means, inverses }) => {
    const count = constant(f32, columns);
    const row = x.at(i, whole).load();
    const mean = row.sum().div(count);
    const apart = iota(i32, [longest], { axis: 0 })
      .lt(constant(i32, columns))
      .select(row.sub(mean), 0);
    const inverse = apart.mul(apart).sum().div(count).add(epsilon).rsqrt();
    means.at(i).store(mean);
    inverses.at(i).store(inverse);
    const scaled = apart.mul(inverse).mul(weight.at(whole).load());
    y.at(i, whole).store(scaled.add(bias.at(whole).load()));
  },
);

const parts = dim("parts");

/** The gradient of the same: of x by rows, of weight and bias as sums over every `parts`-th row. */
export const layerNormGradient = kernel(
  {
    name: "layer_norm_gradient",
    grid: { part: parts },
    inputs: {
      x: tensor(f32, [rows, columns]),
      weight: tensor(f32, [columns]),
      dy: tensor(f32, [rows, columns]),
      means: tensor(f32, [rows]),
      inverses: tensor(f32, [rows]),
    },
    outputs: {
      dx: tensor(f32, [rows, columns]),
      weights: tensor(f32, [parts, columns]),
      biases: tensor(f32, [parts, columns]),
    },
  },
  ({ part, x, weight, dy, means, inverses, dx, weights, biases }) => {
    const count = constant(f32, columns);
    const initial = { weight: zeros(f32, [longest]), bias: zeros(f32, [longest]) };
    const sums = loop({ from: part, to: rows, step: parts, carry: initial }, (i, sum) => {
      const inverse = inverses.at(i).loadScalar();
      const normal = x.at(i, whole).load().sub(means.at(i).loadScalar()).mul(inverse);
      const given = dy.at(i, whole).load();
      const weighted = weight.at(whole).load().mul(given);
      const along = normal.mul(weighted).sum().div(count);
      const shift = weighted.sum().div(count);
      dx.at(i, whole).store(weighted.sub(normal.mul(along)).sub(shift).mul(inverse));
      return { weight: sum.weight.add(given.mul(normal)), bias: sum.bias.add(given) };
    });
    weights.at(part, whole).store(sums.weight);
    biases.at(part, whole).store(sums.bias);
  },
);

export const sumOfParts = kernel(
  {
    name: "sum_of_parts",
    grid: { j: cdiv(columns, 64) },
    inputs: { x: tensor(f32, [parts, columns]) },
    outputs: { out: tensor(f32, [columns]) },
  },
  ({ j, x, out }) => {
    const here = slice(j.mul(64), 64);
    const sums = loop({ to: cdiv(parts, 16), carry: zeros(f32, [64]) }, (step, sum) =>
      sum.add(
        x
          .at(slice(step.mul(16), 16), here)
          .load()
          .sum({ axis: 0 }),
      ),
    );
    out.at(here).store(sums);
  },
);

const heads = dim("heads");
export const headSize = 32;
const block = 64;

/** Causal attention with the greatest score so far carried along; also the logarithm of the sums, for a gradient. */
export const attention = kernel(
  {
    name: "attention",
    grid: { h: heads, i: cdiv(n, block) },
    inputs: {
      q: tensor(f16, [heads, n, headSize]),
      keys: tensor(f16, [heads, n, headSize]),
      values: tensor(f16, [heads, n, headSize]),
      scale: scalar(f32),
    },
    outputs: { out: tensor(f32, [heads, n, headSize]), logarithms: tensor(f32, [heads, n]) },
  },
  ({ h, i, q, keys, values, scale, out, logarithms }) => {
    const here = slice(i.mul(block), block);
    const query = q.at(h, here).load();
    const row = iota(i32, [block, 1], { axis: 0 }).add(i.mul(block));
    const initial = {
      greatest: full(f32, [block, 1], -Infinity),
      total: zeros(f32, [block, 1]),
      sums: zeros(f32, [block, headSize]),
    };
    const { greatest, total, sums } = loop({ to: i.add(1), carry: initial }, (j, state) => {
      const there = slice(j.mul(block), block);
      const column = iota(i32, [1, block], { axis: 1 }).add(j.mul(block));
      const all = dot(query, keys.at(h, there).transpose().load()).mul(scale.mul(Math.LOG2E));
      const scores = row.ge(column).select(all, -Infinity);
      const next = state.greatest.maximum(scores.max({ axis: 1, keepDims: true }));
      const weights = scores.sub(next).exp2();
      const decay = state.greatest.sub(next).exp2();
      return {
        greatest: next,
        total: state.total.mul(decay).add(weights.sum({ axis: 1, keepDims: true })),
        sums: dot(weights.cast(f16), values.at(h, there).load(), {
          accumulator: state.sums.mul(decay),
        }),
      };
    });
    out.at(h, here).store(sums.div(total));
    logarithms.at(h, here).store(greatest.add(total.log2()).mul(Math.LN2).reshape([block]));
  },
);

export const group = 32;
const pairs = dim("pairs", { multipleOf: 2 });
const deep = dim("deep", { multipleOf: group });

/** Weights of 4 bits with a scale for each group of rows. */
export const int4Product = kernel(
  {
    name: "int4_product",
    grid: { i: cdiv(m, 32), j: cdiv(pairs, 64) },
    inputs: {
      x: tensor(bf16, [m, deep]),
      weights: tensor(i4, [deep, pairs]),
      scales: tensor(bf16, [deep.div(group), pairs]),
    },
    outputs: { out: tensor(f32, [m, pairs]) },
  },
  ({ i, j, x, weights, scales, out }) => {
    const [here, there] = [slice(i.mul(32), 32), slice(j.mul(64), 64)];
    const sums = loop({ to: deep.div(group), carry: zeros(f32, [32, 64]) }, (step, sum) => {
      const part = slice(step.mul(group), group);
      const product = dot(x.at(here, part).load(), weights.at(part, there).load().cast(bf16));
      return sum.add(product.mul(scales.at(step, there).load().cast(f32)));
    });
    out.at(here, there).store(sums);
  },
);

const stretch = 256;

/** Running sums of long rows: a block goes along its row. */
export const runningSums = kernel(
  {
    name: "running_sums",
    grid: { i: rows },
    inputs: { x: tensor(f32, [rows, n]) },
    outputs: { out: tensor(f32, [rows, n]) },
  },
  ({ i, x, out }) => {
    loop({ to: cdiv(n, stretch), carry: constant(f32, 0) }, (step, before) => {
      const here = slice(step.mul(stretch), stretch);
      const values = x.at(i, here).load();
      out.at(i, here).store(values.cumsum({ axis: 0 }).add(before));
      return before.add(values.sum());
    });
  },
);

/** Running sums of one long row: each block waits for the sum before it. */
export const chainedSums = kernel(
  {
    name: "chained_sums",
    grid: { i: cdiv(n, stretch) },
    inputs: { x: tensor(f32, [n]) },
    outputs: { out: tensor(f32, [n]) },
    scratch: {
      sums: gmem(f32, [cdiv(n, stretch)]),
      known: semaphore([cdiv(n, stretch)]),
    },
  },
  ({ i, x, out, sums, known }) => {
    const here = slice(i.mul(stretch), stretch);
    const values = x.at(here).load();
    const before = when(
      i.gt(0),
      () => {
        known.at(i.sub(1)).wait(1);
        return sums.at(i.sub(1)).loadScalar();
      },
      () => constant(f32, 0),
    );
    sums.at(i).store(before.add(values.sum()));
    known.at(i).signal(1);
    out.at(here).store(values.cumsum({ axis: 0 }).add(before));
  },
);

const [channels, height, width] = [dim("channels"), dim("height"), dim("width")];
const [down, across] = [16, 32];

/** A filter of 3 × 3 for each channel; what lies outside of the picture counts as zero. */
export const depthwise = kernel(
  {
    name: "depthwise",
    grid: { c: channels, i: cdiv(height, down), j: cdiv(width, across) },
    inputs: { x: tensor(f32, [channels, height, width]), filters: tensor(f32, [channels, 3, 3]) },
    outputs: { out: tensor(f32, [channels, height, width]) },
  },
  ({ c, i, j, x, filters, out }) => {
    const picture = x.at(c);
    const [y, z] = [
      iota(i32, [down, 1], { axis: 0 }).add(i.mul(down)),
      iota(i32, [1, across], { axis: 1 }).add(j.mul(across)),
    ];
    const inside = (place: typeof y, extent: typeof height) =>
      place.ge(0).and(place.lt(constant(i32, extent)));
    const sums = loop({ to: 9, carry: zeros(f32, [down, across]) }, (place, sum) => {
      const [dy, dz] = [place.div(3), place.rem(3)];
      const [row, column] = [y.add(dy.sub(1)), z.add(dz.sub(1))];
      const where = inside(row, height).and(inside(column, width));
      const weight = filters.at(c, dy, dz).loadScalar();
      return sum.add(picture.at(row, column).load({ where }).mul(weight));
    });
    out.at(c, slice(i.mul(down), down), slice(j.mul(across), across)).store(sums);
  },
);
