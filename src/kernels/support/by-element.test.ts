/** Functions that are given pieces: what depends on how arrays are cut is refused, and what does not is taken. */
import { expect, test } from "vitest";
import { codeOf } from "../../../test/support/library-checks.ts";
import { bf16, f32, i32, u32 } from "../../formats/dtype.ts";
import {
  tensor,
  concatenate,
  debugPrint,
  dim,
  dot,
  elementRun,
  flip,
  full,
  histogram,
  inlinePtx,
  iota,
  loop,
  randomKey,
  roll,
  scoped,
  smem,
  takeAlong,
  threadIndex,
  topK,
  when,
} from "../../lang/index.ts";
import type { Tile } from "../../lang/index.ts";
import { attention } from "../attention/attention.ts";
import { map } from "../elementwise/map.ts";
import { matmul } from "../matmul/matmul.ts";

const [m, n] = [dim("m"), dim("n")];
const sizes = { m: 64, n: 64, k: 64 };
const heads = { b: 1, s: 64, t: 64, h: 1, kv: 1, d: 16, e: 16 };

type Given = Tile<"f32">;
type Piecewise = (piece: Given, column: Given) => Tile<"f32">;

let calls = 0;

/** Each gives a piece of the piece's shape, so that nothing but the check could refuse it. */
const mixing: { readonly [name: string]: Piecewise } = {
  "a reduction": (x) => x.sub(x.max({ axis: 1, keepDims: true })),
  "a reduction over extents of its own": (x) =>
    x
      .reshape([x.shape[0] ?? 1, 2, (x.shape[1] ?? 2) / 2])
      .max({ axis: 1 })
      .mul(0)
      .sum()
      .add(x),
  "a reduction of all": (x) => x.mul(x.sum()),
  "a scan": (x) => x.cumsum({ axis: 0 }),
  "a sort": (x) => x.sort({ axis: 1 }),
  "a position of the greatest": (x) => x.add(x.argmax({ axis: 1 }).cast(f32).expand({ axis: 1 })),
  "a function of one's own": (x) => x.scan((a, b) => a.add(b), 0, { axis: 1 }),
  flip: (x) => flip(x, { axis: 1 }),
  roll: (x) => roll(x, 1, { axis: 0 }),
  "a gather": (x) => takeAlong(x, iota(i32, x.shape, { axis: 1 }), { axis: 1 }),
  "the greatest ones": (x) => x.add(topK(x, 1, { axis: 1 })[0]),
  "a histogram": (x) => x.add(histogram(x.cast(i32), 1).cast(f32)),
  "a place": (x) => x.add(iota(f32, x.shape, { axis: 1 })),
  "a transposition": (x) => x.transpose().transpose(),
  "a bias under another shape": (x, column) =>
    x.add(column.reshape([column.shape[1] ?? 1, 1]).reshape(column.shape)),
  "a part": (x) => x.add(x.slice([0, 0], [1, 1])),
  "parts in another order": (x) => concatenate([x, x], { axis: 0 }).slice([1, 0], x.shape),
  "a product": (x) =>
    dot(x, x.transpose(), { precision: "ieee" }).sum({ axis: 1, keepDims: true }).add(x),
  "shared memory": (x) =>
    scoped({ held: smem(f32, x.shape) }, ({ held }) => {
      held.store(x);
      return held.transpose().load().transpose();
    }),
  "how wide it is": (x) => x.mul(1 / (x.shape[1] ?? 1)),
  "as many times as it is high": (x) =>
    Array.from({ length: x.shape[0] ?? 1 }).reduce<Given>((sum) => sum.add(1), x),
  "how wide it is, in a loop": (x) =>
    loop({ to: 2, carry: x }, (_, sum) => sum.add(x.shape[1] ?? 1)),
  "one of two results, by how wide it is": (x, column) => {
    const [one, other] = [x.add(column), x.sub(column)];
    return (x.shape[1] ?? 1) > 100 ? one : other;
  },
  "one of two operands, by how high it is": (x, column) =>
    x.mul((x.shape[0] ?? 1) > 100 ? x : column),
  "something else for every call": (x) => x.add(calls++),
  "who computes it": (x) => x.add(threadIndex().cast(f32)),
  "random numbers of a run": (x) => randomKey(1).uniform(elementRun(0, x.shape)).add(x),
  "something in a branch": (x) =>
    when(
      x.max().gt(0),
      () => x,
      () => x.neg(),
    ),
  "something in a loop": (x) => loop({ to: 2, carry: x }, (_, sum) => flip(sum, { axis: 0 })),
};

const taken: { readonly [name: string]: Piecewise } = {
  arithmetic: (x, column) => x.fma(2, column).gt(0).select(x, x.exp().cast(bf16).cast(f32)),
  bits: (x) => x.bitcast(u32).xor(1).bitcast(f32),
  "a number for each element": (x) => x.gt(0).select(x, full(f32, x.shape, 2)),
  "a bias for all rows": (x, column) => x.add(column.broadcastTo(x.shape)),
  "a loop": (x) => loop({ to: 3, carry: x }, (step, sum) => sum.mul(0.5).add(step.cast(f32))),
  "a report": (x) => {
    debugPrint("{}", x);
    return x;
  },
  "a hint": (x) => x.layoutHint("(L2 L3 L4 R2 W0 W1 | R0 L0 L1 R1 R3 R4)"),
  "PTX of its own": (x) =>
    inlinePtx({
      operands: [x],
      results: [f32],
      code: ([own], [twice]) => `add.f32 ${twice}, ${own}, ${own};`,
      meaning: (own) => [own.add(own)],
    })[0],
};

const withEpilogue = (compute: Piecewise) =>
  matmul({
    ...{ a: bf16, b: bf16, out: f32, inputs: { column: tensor(f32, [n]) } },
    epilogue: ({ sums, column }) => compute(sums, column),
  });

test.each(Object.entries(mixing))("%s is refused", (_, compute) => {
  expect(codeOf(() => withEpilogue(compute).kernels(sizes))).toBe("TW9905");
});

test.each(Object.entries(taken))("%s is taken", (_, compute) => {
  expect(codeOf(() => withEpilogue(compute).kernels(sizes))).toBe("nothing was thrown");
});

test("every function that is given pieces is held to that", () => {
  const turned = (x: Tile): Tile => flip(x, { axis: 1 });
  const operands = { q: bf16, k: bf16, v: bf16 } as const;
  const prologue = { a: { as: bf16, compute: ({ a }: { a: Tile<"bf16"> }) => turned(a) } };
  for (const make of [
    () => matmul({ ...{ a: bf16, b: bf16, out: f32 }, prologue }).kernels(sizes),
    () => attention({ ...operands, score: ({ score }) => turned(score) as Given }).kernels(heads),
    () =>
      attention({
        ...operands,
        mask: ({ row, column }) => row.ge(turned(column) as Tile<"i32">),
      }).kernels(heads),
    () =>
      attention({
        ...operands,
        mask: ({ row, column }) => column.lt(row.shape[0] ?? 1),
      }).plan(heads).launches,
    () =>
      attention({
        ...operands,
        score: ({ score }) => score.mul(1 / (score.shape[1] ?? 1)),
      }).kernels(heads),
    () =>
      map({ x: f32 }, ({ x }) => ({ out: x.mul(x.shape.length === 1 ? 1 : (x.shape[1] ?? 1)) })),
  ])
    expect(codeOf(make)).toBe("TW9905");
});

test("scores and masks draw by the positions that they are given", () => {
  const op = attention({
    ...{ q: bf16, k: bf16, v: bf16 },
    score: ({ score, row, column }) => score.add(randomKey(7).uniform(row.mul(64).add(column))),
    mask: ({ row, column }) => randomKey(8).bernoulli(0.5, row.mul(64).add(column)),
  });
  expect(codeOf(() => op.kernels(heads))).toBe("nothing was thrown");
});

test("the line of what is refused is named", () => {
  const op = matmul({
    ...{ a: bf16, b: bf16, out: f32 },
    inputs: { residual: tensor(f32, [m, n]) },
    epilogue: ({ sums, residual }) => sums.add(residual.transpose().transpose()),
  });
  expect(() => op.kernels(sizes)).toThrow(/looks beyond an element of a piece[\s\S]*transpose/u);
});
