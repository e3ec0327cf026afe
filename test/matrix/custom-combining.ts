/** Reductions and scans by functions of the kernel's own: argmax with a payload, linear recurrences, Welford's sums. */
import { f32, i32 } from "../../src/formats/dtype.ts";
import { tensor, iota, kernel, reduceWith, scanWith } from "../../src/lang/index.ts";
import type { Tile } from "../../src/lang/index.ts";
import { exactCase } from "./case.ts";
import type { MatrixCase } from "./case.ts";
import { ordinaryNumbers } from "./inputs.ts";

type Shape = readonly [rows: number, columns: number];

function greatest([rows, columns]: Shape, axis: 0 | 1, warps: number): MatrixCase {
  const inputs = { x: ordinaryNumbers(i32, [rows, columns], 7) };
  const kept = axis === 0 ? columns : rows;
  const name = `reduceWith of [${rows}, ${columns}] along ${axis}, ${warps} warps`;
  return exactCase(name, inputs, () =>
    kernel(
      {
        name: "greatest",
        warps,
        inputs: { x: tensor(i32, [rows, columns]) },
        outputs: { values: tensor(i32, [kept]), at: tensor(i32, [kept]) },
      },
      ({ x, values, at }) => {
        const [value, place] = reduceWith(
          [x.load(), iota(i32, [rows, columns], { axis })],
          ([a, i], [b, j]) => {
            const later = b.gt(a);
            return [later.select(b, a), later.select(j, i)];
          },
          { axis, identity: [-(2 ** 31), -1] },
        );
        values.store(value);
        at.store(place);
      },
    ),
  );
}

/** y[t] = a[t] y[t-1] + b[t], by coefficients that combine in their order only. */
function recurrence([rows, columns]: Shape, axis: 0 | 1, reverse: boolean): MatrixCase {
  const inputs = {
    a: ordinaryNumbers(i32, [rows, columns], 8),
    b: ordinaryNumbers(i32, [rows, columns], 9),
  };
  const name = `scanWith of [${rows}, ${columns}] along ${axis}${reverse ? ", from the end" : ""}`;
  return exactCase(name, inputs, () =>
    kernel(
      {
        name: "recurrence",
        inputs: { a: tensor(i32, [rows, columns]), b: tensor(i32, [rows, columns]) },
        outputs: { out: tensor(i32, [rows, columns]) },
      },
      ({ a, b, out }) => {
        const [, y] = scanWith(
          [a.load(), b.load()],
          ([a0, b0], [a1, b1]) => [a0.mul(a1), b0.mul(a1).add(b1)],
          { axis, identity: [1, 0], reverse },
        );
        out.store(y);
      },
    ),
  );
}

/** Number, mean and squared deviations of rows, which two groups combine to those of both. */
function deviations(warps: number): MatrixCase {
  const inputs = { x: ordinaryNumbers(f32, [8, 96], 10) };
  return exactCase(`Welford's sums, ${warps} warps`, inputs, () =>
    kernel(
      {
        name: "deviations",
        warps,
        inputs: { x: tensor(f32, [8, 96]) },
        outputs: { mean: tensor(f32, [8, 1]), sum: tensor(f32, [8, 1]) },
      },
      ({ x, mean, sum }) => {
        const tile = x.load();
        const [, means, sums] = reduceWith(
          [tile.mul(0).add(1), tile, tile.mul(0)],
          ([n0, m0, s0], [n1, m1, s1]) => {
            const count = n0.add(n1);
            const share = count.eq(0).select(0, n1.div(count));
            const apart = m1.sub(m0);
            return [
              count,
              m0.add(apart.mul(share)),
              s0.add(s1).add(apart.mul(apart).mul(n0).mul(share)),
            ];
          },
          { axis: -1, identity: [0, 0, 0], keepDims: true },
        );
        mean.store(means);
        sum.store(sums);
      },
    ),
  );
}

/** One tile by its methods: the first element that is not 0, of all and so far along an axis. */
function firstOnes([rows, columns]: Shape, axis: 0 | 1, warps: number): MatrixCase {
  const inputs = { x: ordinaryNumbers(i32, [rows, columns], 11) };
  return exactCase(`reduce and scan of [${rows}, ${columns}], ${warps} warps`, inputs, () =>
    kernel(
      {
        name: "first_ones",
        warps,
        inputs: { x: tensor(i32, [rows, columns]) },
        outputs: { first: tensor(i32, [1]), seen: tensor(i32, [rows, columns]) },
      },
      ({ x, first, seen }) => {
        const tile = x.load().rem(2);
        const earlier = (left: Tile<"i32">, right: Tile<"i32">): Tile<"i32"> =>
          left.ne(0).select(left, right);
        first.at(0).store(tile.reduce(earlier, 0));
        seen.store(tile.scan(earlier, 0, { axis }));
      },
    ),
  );
}

export function customCombiningCases(): readonly MatrixCase[] {
  return [
    greatest([4, 64], 1, 4),
    greatest([33, 20], 0, 4),
    greatest([6, 50], 1, 8),
    recurrence([4, 64], 1, false),
    recurrence([9, 40], 0, true),
    recurrence([2, 37], 1, true),
    firstOnes([6, 50], 1, 4),
    firstOnes([9, 16], 0, 2),
    deviations(4),
    deviations(1),
  ];
}
