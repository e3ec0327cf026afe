/** Control flow in the kernel: branches and what goes through them, and ends of loops (`early-ends.ts`). */
import {
  accumulator,
  barrier,
  copyAsync,
  f16,
  f32,
  i32,
  kernel,
  loop,
  smem,
  switchCase,
  tensor,
  wgmma,
  when,
} from "tilewright";
import type { Accumulator, KernelDefinition, Ref, Scalar } from "tilewright";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import { earlyEndFeatures } from "./early-ends.ts";
import type { Feature, FeatureCase } from "./feature.ts";
import { partFeatures } from "./parts.ts";

const size = 64;
const integers = (seed: number): readonly number[] =>
  Array.from({ length: size * size }, (_, index) => ((index * seed) % 7) - 3);
const left = integers(5);
const right = integers(11);

/** left · right, in whole numbers that every sum keeps exactly. */
function productOf(): readonly number[] {
  return Array.from({ length: size * size }, (_, index) => {
    const [row, column] = [Math.floor(index / size), index % size];
    let sum = 0;
    for (let k = 0; k < size; k += 1)
      sum += (left[row * size + k] ?? 0) * (right[k * size + column] ?? 0);
    return sum;
  });
}

type Sums = Accumulator<"f32">;
type Factors = { readonly p: Scalar<"i32">; readonly a: Ref<"f16">; readonly b: Ref<"f16"> };

/** A kernel with both factors in shared memory, and a number by which it branches. */
function multiplying(body: (factors: Factors) => Sums): KernelDefinition {
  return kernel(
    {
      name: "branches",
      inputs: { p: tensor(i32, [1]), a: tensor(f16, [size, size]), b: tensor(f16, [size, size]) },
      outputs: { out: tensor(f32, [size, size]) },
      scratch: {
        left: smem(f16, [size, size]),
        right: smem(f16, [size, size]),
        landed: barrier({ arrivals: 2 }),
      },
    },
    ({ p, a, b, out, left: first, right: second, landed }) => {
      copyAsync(a, first, { barrier: landed });
      copyAsync(b, second, { barrier: landed });
      landed.wait();
      out.store(body({ p: p.at(0).loadScalar(), a: first, b: second }).wait());
    },
  );
}

/** Rounds add the product as often as `times` says, by p. */
function productCases(
  name: string,
  body: (factors: Factors) => Sums,
  times: (p: number) => number,
): readonly FeatureCase[] {
  const once = productOf();
  return [0, 1, 2].map((p) => ({
    name: `${name}, p = ${p}`,
    kernel: () => multiplying(body),
    inputs: {
      p: fromNumbers(i32, [1], [p]),
      a: fromNumbers(f16, [size, size], left),
      b: fromNumbers(f16, [size, size], right),
    },
    expected: { out: once.map((value) => value * times(p)) },
  }));
}

const fresh = (): Sums => accumulator(f32, [size, size]);

export const controlFeatures: readonly Feature[] = [
  ...earlyEndFeatures,
  ...partFeatures,
  {
    name: "Accumulators of `wgmma` through branches",
    written: ["when(", "wgmma(sum, a, b)", "() => sum"],
    page: "language.md#accumulators-through-branches",
    cases: () => [
      ...productCases(
        "a product in one branch of a loop",
        ({ p, a, b }) =>
          loop({ to: 4, carry: fresh() }, (k, sum) =>
            when(
              k.ne(p),
              () => wgmma(sum, a, b),
              () => sum,
            ),
          ),
        () => 3,
      ),
      ...productCases(
        "products in both branches, and waits",
        ({ p, a, b }) => {
          const sum = wgmma(fresh(), a, b);
          return when(
            p.gt(0),
            () => wgmma(wgmma(sum, a, b).waitPending(1), a, b),
            () => wgmma(sum, a, b),
          );
        },
        (p) => (p > 0 ? 3 : 2),
      ),
      ...productCases(
        "branches in branches and cases",
        ({ p, a, b }) =>
          loop({ to: 3, carry: fresh() }, (k, sum) =>
            when(
              k.gt(0),
              () =>
                switchCase(p, [
                  () => sum,
                  () => loop({ to: k, carry: sum }, (_, inner) => wgmma(inner, a, b)),
                  () => wgmma(wgmma(sum, a, b), a, b),
                ]),
              () => wgmma(sum, a, b),
            ),
          ),
        (p) => [1, 4, 5][p] ?? NaN,
      ),
      ...productCases(
        "another accumulator from one branch",
        ({ p, a, b }) => {
          const sum = wgmma(fresh(), a, b);
          return when(
            p.eq(1),
            () => accumulator(f32, [size, size], sum.wait().mul(5)),
            () => wgmma(sum, a, b),
          );
        },
        (p) => (p === 1 ? 5 : 2),
      ),
    ],
    refused: [
      {
        code: "TW2096",
        by: () =>
          multiplying(({ p, a, b }) => {
            const sum = fresh();
            when(p.gt(0), () => {
              wgmma(sum, a, b).wait();
            });
            return fresh();
          }),
      },
      {
        code: "TW1011",
        by: () =>
          multiplying(({ p, a, b }) => {
            const sum = fresh();
            when(
              p.gt(0),
              () => wgmma(sum, a, b),
              () => sum,
            ).wait();
            return sum;
          }),
      },
    ],
  },
];
