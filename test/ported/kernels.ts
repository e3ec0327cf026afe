/**
 * Kernels as users of other languages bring them, said without tricks: groups of rows end where their data does, rows
 * and pages are picked by their numbers, elements are stored where a mask says.
 */
import {
  tensor,
  bf16,
  cdiv,
  concatenate,
  constant,
  dim,
  dot,
  f32,
  full,
  histogram,
  i32,
  iota,
  kernel,
  loop,
  scalar,
  slice,
  topK,
  takeAlong,
  when,
  zeros,
} from "tilewright";

const [n, v, d] = [dim("n"), dim("v"), dim("d")];

/** Rows of a table, 32 a block. */
export const embedding = kernel(
  {
    name: "embedding",
    grid: { i: cdiv(n, 32), j: cdiv(d, 128) },
    inputs: { ids: tensor(i32, [n]), table: tensor(f32, [v, d]) },
    outputs: { out: tensor(f32, [n, d]) },
  },
  ({ i, j, ids, table, out }) => {
    const [rows, columns] = [slice(i.mul(32), 32), slice(j.mul(128), 128)];
    out.at(rows, columns).store(table.at(ids.at(rows).load(), columns).load());
  },
);

/** The gradient of the same: rows that were taken twice are added twice. */
export const scatterAdd = kernel(
  {
    name: "scatter_add",
    grid: { i: cdiv(n, 32), j: cdiv(d, 128) },
    inputs: { ids: tensor(i32, [n]), grad: tensor(f32, [n, d]) },
    inouts: { table: tensor(f32, [v, d]) },
  },
  ({ i, j, ids, grad, table }) => {
    const [rows, columns] = [slice(i.mul(32), 32), slice(j.mul(128), 128)];
    const own = ids.at(rows).load({ fill: -1 });
    const where = own.ge(0).expand({ axis: 1 });
    table.at(own, columns).atomicAdd(grad.at(rows, columns).load(), { where });
  },
);

export const bins = 64;

/** How often each number occurs: a block counts for itself first. */
export const counts = kernel(
  {
    name: "counts",
    grid: { i: cdiv(n, 256) },
    inputs: { x: tensor(i32, [n]) },
    inouts: { total: tensor(i32, [bins]) },
  },
  ({ i, x, total }) => {
    const values = x.at(slice(i.mul(256), 256)).load({ fill: -1 });
    total.atomicAdd(histogram(values, bins, { where: values.ge(0) }));
  },
);

/** Elements where a condition on them holds; the others keep what they were. */
export const positives = kernel(
  {
    name: "positives",
    grid: { i: cdiv(n, 128) },
    inputs: { x: tensor(f32, [n]) },
    inouts: { out: tensor(f32, [n]) },
  },
  ({ i, x, out }) => {
    const here = slice(i.mul(128), 128);
    const tile = x.at(here).load();
    out.at(here).store(tile, { where: tile.gt(0) });
  },
);

const [t, g, k, w] = [dim("t"), dim("g"), dim("k"), dim("w")];
const [tileRows, tileColumns, depth] = [64, 64, 32];

/** Products of groups of rows, each with a matrix of its own; a tile's rows end where its group does. */
export const grouped = kernel(
  {
    name: "grouped",
    grid: { p: cdiv(t, tileRows).add(g), j: cdiv(w, tileColumns) },
    inputs: {
      x: tensor(bf16, [t, k]),
      weights: tensor(bf16, [g, k, w]),
      offsets: tensor(i32, [g.add(1)]),
    },
    outputs: { out: tensor(f32, [t, w]) },
  },
  ({ p, j, x, weights, offsets, out }) => {
    const none = { group: constant(i32, -1), tile: constant(i32, 0), seen: constant(i32, 0) };
    const { group, tile } = loop({ to: g, carry: none }, (each, found) => {
      const size = offsets.at(each.add(1)).loadScalar().sub(offsets.at(each).loadScalar());
      const after = found.seen.add(size.add(tileRows - 1).div(tileRows));
      const isHere = p.ge(found.seen).and(p.lt(after));
      return {
        group: isHere.select(each, found.group),
        tile: isHere.select(p.sub(found.seen), found.tile),
        seen: after,
      };
    });
    when(group.ge(0), () => {
      const start = offsets.at(group).loadScalar().add(tile.mul(tileRows));
      const end = offsets.at(group.add(1)).loadScalar();
      const [rows, columns] = [slice(start, tileRows, { end }), slice(j.mul(64), tileColumns)];
      const sums = loop(
        { to: cdiv(k, depth), carry: zeros(f32, [tileRows, tileColumns]) },
        (step, accumulator) => {
          const part = slice(step.mul(depth), depth);
          return dot(x.at(rows, part).load(), weights.at(group, part, columns).load(), {
            accumulator,
          });
        },
      );
      out.at(rows, columns).store(sums);
    });
  },
);

export const [page, head, queries] = [16, 64, 4];
const [batch, heads, most, pages] = [dim("batch"), dim("heads"), dim("most"), dim("pages")];
const tokens = 32;

/** Attention of one token to keys in pages, 32 tokens of whatever pages at a time. */
export const paged = kernel(
  {
    name: "paged",
    grid: { b: batch, h: heads },
    inputs: {
      q: tensor(bf16, [batch, heads, queries, head]),
      keys: tensor(bf16, [pages, page, heads, head]),
      values: tensor(bf16, [pages, page, heads, head]),
      table: tensor(i32, [batch, most]),
      lengths: tensor(i32, [batch]),
      scale: scalar(f32),
    },
    outputs: { out: tensor(f32, [batch, heads, queries, head]) },
  },
  ({ b, h, q, keys, values, table, lengths, scale, out }) => {
    const length = lengths.at(b).loadScalar();
    const query = q.at(b, h).load();
    const initial = {
      greatest: full(f32, [queries, 1], -Infinity),
      total: zeros(f32, [queries, 1]),
      sums: zeros(f32, [queries, head]),
    };
    const { total, sums } = loop(
      { to: length.add(tokens - 1).div(tokens), carry: initial },
      (step, state) => {
        const token = iota(i32, [tokens], { axis: 0 }).add(step.mul(tokens));
        const isThere = token.lt(length);
        const own = table.at(b).at(token.div(page)).load({ where: isThere });
        const pick = (array: typeof keys) =>
          array.at(own, token.rem(page), h).load({ where: isThere.expand({ axis: 1 }) });
        const scores = isThere
          .expand({ axis: 0 })
          .select(dot(query, pick(keys).transpose()).mul(scale), -Infinity);
        const greatest = state.greatest.maximum(scores.max({ axis: 1, keepDims: true }));
        const weights = scores.sub(greatest).exp();
        const decay = state.greatest.sub(greatest).exp();
        return {
          greatest,
          total: state.total.mul(decay).add(weights.sum({ axis: 1, keepDims: true })),
          sums: dot(weights.cast(bf16), pick(values), { accumulator: state.sums.mul(decay) }),
        };
      },
    );
    out.at(b, h).store(sums.div(total));
  },
);

export const best = 8;
const chunk = 248;
const [rows, length] = [dim("rows"), dim("length")];

/** The greatest of rows of any length, and where they are. */
export const greatest = kernel(
  {
    name: "greatest",
    grid: { i: rows },
    inputs: { x: tensor(f32, [rows, length]) },
    outputs: { values: tensor(f32, [rows, best]), places: tensor(i32, [rows, best]) },
  },
  ({ i, x, values, places }) => {
    const none = { found: full(f32, [best], -Infinity), at: full(i32, [best], -1) };
    const { found, at } = loop({ to: cdiv(length, chunk), carry: none }, (step, state) => {
      const here = slice(step.mul(chunk), chunk);
      const tile = concatenate([state.found, x.at(i, here).load({ fill: -Infinity })], { axis: 0 });
      const own = concatenate([state.at, iota(i32, [chunk], { axis: 0 }).add(step.mul(chunk))], {
        axis: 0,
      });
      const [next, order] = topK(tile, best, { axis: 0 });
      return { found: next, at: takeAlong(own, order, { axis: 0 }) };
    });
    values.at(i).store(found);
    places.at(i).store(at);
  },
);
