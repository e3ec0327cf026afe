/** Loops and kernels that end before their last line: `breakIf`, `continueIf`, `returnIf`. */
import {
  accumulator,
  barrier,
  blockSync,
  bool,
  constant,
  copyAsync,
  f16,
  f32,
  i32,
  iota,
  kernel,
  loop,
  returnIf,
  scoped,
  slice,
  smem,
  tensor,
  threadIndex,
  warps,
  wgmma,
  when,
  whileLoop,
  zeros,
} from "tilewright";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type { Feature, FeatureCase } from "./feature.ts";

const [rows, columns] = [5, 32];
const numbers = Array.from({ length: rows * columns }, (_, at) => ((at * 29) % 37) - 12);
const x = fromNumbers(i32, [rows, columns], numbers);
const rowsOf = <T>(each: (row: readonly number[], index: number) => T): readonly T[] =>
  Array.from({ length: rows }, (_, row) =>
    each(numbers.slice(row * columns, (row + 1) * columns), row),
  );
const arrays = {
  grid: { i: rows },
  inputs: { x: tensor(i32, [rows, columns]) },
  outputs: { out: tensor(i32, [rows]) },
};

/** Positive numbers are added up until there is more than 60. */
const sumUntil: FeatureCase = {
  name: "a sum of scalars",
  kernel: () =>
    kernel({ name: "sum_until", ...arrays }, ({ i, x: all, out }) => {
      const sum = loop(
        { to: columns, carry: constant(i32, 0) },
        (k, before, { breakIf, continueIf }) => {
          const value = all.at(i, k).loadScalar();
          continueIf(value.lt(0), before);
          const after = before.add(value);
          breakIf(after.gt(60), after.neg());
          return after;
        },
      );
      out.at(i).store(sum);
    }),
  inputs: { x },
  expected: {
    out: rowsOf((row) => {
      let sum = 0;
      for (const value of row) {
        if (value < 0) continue;
        sum += value;
        if (sum > 60) return -sum;
      }
      return sum;
    }),
  },
};

/** Rounds that store, of a loop that carries nothing, with an inner loop that ends early. */
const marks: FeatureCase = {
  name: "loops in loops, without a carry",
  kernel: () =>
    kernel(
      { ...arrays, name: "marks", outputs: { out: tensor(i32, [rows, columns]) } },
      ({ i, x: all, out }) => {
        out.at(i, slice(0, columns)).store(zeros(i32, [columns]));
        loop(columns, (k, { breakIf, continueIf }) => {
          const value = all.at(i, k).loadScalar();
          continueIf(value.rem(3).eq(0));
          breakIf(value.gt(20));
          loop({ from: k, to: columns, step: 2 }, (j, { breakIf: breakInner }) => {
            const other = all.at(i, j).loadScalar();
            breakInner(other.eq(value).and(j.ne(k)).or(other.gt(23)));
            out.at(i, j).store(k.add(1));
          });
        });
      },
    ),
  inputs: { x },
  expected: {
    out: rowsOf((row) => {
      const out = row.map(() => 0);
      for (const [k, value] of row.entries()) {
        if (value % 3 === 0) continue;
        if (value > 20) break;
        for (let j = k; j < columns; j += 2) {
          const other = row[j] ?? 0;
          if ((other === value && j !== k) || other > 23) break;
          out[j] = k + 1;
        }
      }
      return out;
    }).flat(),
  },
};

const collatz: FeatureCase = {
  name: "whileLoop, with tiles and bools carried",
  kernel: () =>
    kernel(
      { name: "collatz", grid: { i: rows }, outputs: { out: tensor(i32, [rows, 8]) } },
      ({ i, out }) => {
        const carry = {
          n: i.mul(3).add(2),
          steps: iota(i32, [8], { axis: 0 }),
          isLarge: constant(bool, false),
        };
        const end = whileLoop(
          carry,
          ({ n }) => n.ne(1),
          ({ n, steps, isLarge }, { breakIf, continueIf }) => {
            const more = steps.add(1);
            // What is carried is the condition, too.
            breakIf(isLarge, { n: n.neg(), steps, isLarge: constant(bool, false) });
            const half = n.div(2);
            continueIf(n.rem(2).eq(0), { n: half, steps: more, isLarge });
            const next = n.mul(3).add(1);
            return { n: next, steps: more.add(10), isLarge: next.gt(30) };
          },
        );
        out.at(i, slice(0, 8)).store(end.steps.add(end.n.mul(100)));
      },
    ),
  inputs: {},
  expected: {
    out: Array.from({ length: rows }, (_, i) => {
      let [n, steps, isLarge] = [i * 3 + 2, 0, false];
      while (n !== 1) {
        if (isLarge) {
          n = -n;
          break;
        }
        if (n % 2 === 0) {
          [n, steps] = [n / 2, steps + 1];
          continue;
        }
        [n, steps, isLarge] = [n * 3 + 1, steps + 11, n * 3 + 1 > 30];
      }
      return Array.from({ length: 8 }, (__, at) => at + steps + n * 100);
    }).flat(),
  },
};

const size = 64;
const factor = (seed: number): readonly number[] =>
  Array.from({ length: size * size }, (_, at) => ((at * seed) % 5) - 2);
const [left, right] = [factor(3), factor(7)];
const product = Array.from({ length: size * size }, (_, at) => {
  const [row, column] = [Math.floor(at / size), at % size];
  let sum = 0;
  for (let k = 0; k < size; k += 1)
    sum += (left[row * size + k] ?? 0) * (right[k * size + column] ?? 0);
  return sum;
});

/** Copies, barriers and products in rounds that end at different places. */
const products: readonly FeatureCase[] = [0, 2, 7].map((last) => ({
  name: `products in flight, and barriers, ${last} rounds`,
  kernel: () =>
    kernel(
      {
        name: "products_until",
        inputs: {
          p: tensor(i32, [1]),
          a: tensor(f16, [size, size]),
          b: tensor(f16, [size, size]),
        },
        outputs: { out: tensor(f32, [size, size]) },
        scratch: {
          first: smem(f16, [size, size]),
          second: smem(f16, [size, size]),
          landed: barrier({ arrivals: 2 }),
        },
      },
      ({ p, a, b, out, first, second, landed }) => {
        const end = p.at(0).loadScalar();
        const sums = loop(
          { to: 5, carry: accumulator(f32, [size, size]) },
          (k, sum, { breakIf, continueIf }) => {
            breakIf(k.eq(end), sum);
            copyAsync(a, first, { barrier: landed });
            copyAsync(b, second, { barrier: landed });
            landed.wait();
            continueIf(k.eq(1), sum);
            // The next round copies over what this one multiplies.
            const next = wgmma(sum, first, second).wait();
            return accumulator(f32, [size, size], next);
          },
        );
        out.store(sums.wait());
      },
    ),
  inputs: {
    p: fromNumbers(i32, [1], [last]),
    a: fromNumbers(f16, [size, size], left),
    b: fromNumbers(f16, [size, size], right),
  },
  expected: {
    out: product.map(
      (value) => value * [0, 1, 2, 3, 4, 5].filter((k) => k < Math.min(last, 5) && k !== 1).length,
    ),
  },
}));

const inWarps: FeatureCase = {
  name: "in the code of warps",
  kernel: () =>
    kernel(
      { ...arrays, name: "by_warp", outputs: { out: tensor(i32, [rows, 4]) } },
      ({ i, x: all, out }) => {
        warps((warp) => {
          const found = loop(
            { from: warp, to: columns, step: 4, carry: constant(i32, -1) },
            (k, before, { breakIf }) => {
              breakIf(all.at(i, k).loadScalar().gt(18), k);
              return before;
            },
          );
          out.at(i, warp).store(found);
        });
      },
    ),
  inputs: { x },
  expected: {
    out: rowsOf((row) =>
      [0, 1, 2, 3].map((warp) => row.findIndex((value, k) => k % 4 === warp && value > 18)),
    ).flat(),
  },
};

const returns: readonly FeatureCase[] = [
  {
    name: "blocks that have nothing to do",
    kernel: () =>
      kernel({ ...arrays, name: "returning" }, ({ i, x: all, out }) => {
        out.at(i).store(constant(i32, 7));
        returnIf(i.eq(1));
        const first = all.at(i, 0).loadScalar();
        const sum = scoped({ row: smem(i32, [columns]) }, ({ row }) => {
          row.store(all.at(i, slice(0, columns)).load());
          return row.load().sum();
        });
        returnIf(first.lt(0));
        out.at(i).store(sum);
      }),
    inputs: { x },
    expected: {
      out: rowsOf((row, i) =>
        i === 1 || (row[0] ?? 0) < 0 ? 7 : row.reduce((sum, value) => sum + value, 0),
      ),
    },
  },
  {
    name: "with two program threads",
    kernel: () =>
      kernel(
        {
          ...arrays,
          name: "returning_threads",
          threads: ["store", "add"],
          scratch: { row: smem(i32, [columns]) },
        },
        ({ i, x: all, out, row, store, add }) => {
          store(() => {
            out.at(i).store(constant(i32, -1));
            row.store(all.at(i, slice(0, columns)).load());
          });
          blockSync();
          returnIf(i.rem(2).eq(0));
          add(() => {
            out.at(i).store(row.load().max());
          });
        },
      ),
    inputs: { x },
    expected: { out: rowsOf((row, i) => (i % 2 === 0 ? -1 : Math.max(...row))) },
  },
];

export const earlyEndFeatures: readonly Feature[] = [
  {
    name: "`break` and `continue` of loops",
    written: ["breakIf(", "continueIf(", "whileLoop("],
    page: "language.md#ending-a-loop-early",
    cases: () => [sumUntil, marks, collatz, ...products, inWarps],
    refused: [
      {
        code: "TW1041",
        by: () =>
          kernel({ ...arrays, name: "from_branch" }, ({ i, x: all }) => {
            loop(columns, (k, { breakIf }) => {
              const value = all.at(i, k).loadScalar();
              when(value.gt(0), () => {
                breakIf(value.gt(3));
              });
            });
          }),
      },
      {
        code: "TW1012",
        by: () =>
          kernel({ ...arrays, name: "another_form" }, ({ i, out }) => {
            const end = loop({ to: 4, carry: { sum: i } }, (k, { sum }, { continueIf }) => {
              // @ts-expect-error the carry is called otherwise
              continueIf(k.eq(2), { total: sum });
              return { sum: sum.add(k) };
            });
            out.at(i).store(end.sum);
          }),
      },
      {
        code: "TW1008",
        by: () =>
          kernel({ ...arrays, name: "by_tile" }, ({ i, x: all }) => {
            loop(4, (_, { breakIf }) => {
              // @ts-expect-error a condition is a scalar
              breakIf(all.at(i, slice(0, columns)).load().gt(0));
            });
          }),
      },
    ],
  },
  {
    name: "Early return of a kernel",
    written: ["returnIf("],
    page: "language.md#returning-early",
    cases: () => returns,
    refused: [
      {
        code: "TW1041",
        by: () =>
          kernel({ ...arrays, name: "from_loop" }, ({ i }) => {
            loop(4, (k) => {
              returnIf(k.eq(i));
            });
          }),
      },
      {
        code: "TW1041",
        by: () =>
          kernel({ ...arrays, name: "from_thread", threads: ["one", "two"] }, ({ i, one }) => {
            one(() => {
              returnIf(i.eq(2));
            });
          }),
      },
      {
        code: "TW1042",
        by: () =>
          kernel({ ...arrays, name: "of_one_thread", threads: ["one", "two"] }, ({ i }) => {
            const isOne = threadIndex().eq(1);
            returnIf(
              when(
                isOne,
                () => i,
                () => i.add(1),
              ).eq(2),
            );
          }),
      },
    ],
  },
];
