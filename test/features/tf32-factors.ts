/** Products of f32 that is rounded to tf32 on its way into shared memory. */
import {
  accumulator,
  all,
  barrier,
  block,
  copyAsync,
  defaultTarget,
  dot,
  f32,
  kernel,
  loop,
  placeKernel,
  slice,
  smem,
  tensor,
  tf32,
  wgmma,
  when,
  zeros,
} from "tilewright";
import type { KernelDefinition } from "tilewright";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type { Feature } from "./feature.ts";

const [rows, columns, depth, steps] = [64, 32, 16, 3];
const sums = steps * depth;

interface Order {
  /** Whether the axis that is summed over is contiguous in the array of the left factor, and of the right one. */
  readonly left: boolean;
  readonly right: boolean;
}

/** A product of f32 that is rounded to tf32 on its way into shared memory, of factors in any order. */
const singles = ({ left, right }: Order) =>
  kernel(
    {
      name: "singles",
      inputs: {
        a: tensor(f32, left ? [rows, sums] : [sums, rows]),
        b: tensor(f32, right ? [columns, sums] : [sums, columns]),
      },
      outputs: { c: tensor(f32, [rows, columns]) },
      scratch: {
        slots: smem(tf32, [steps, rows, depth]),
        others: smem(tf32, [steps, depth, columns]),
        full: barrier({ count: steps, arrivals: 2 }),
      },
    },
    ({ a, b, c, slots, others, full }) => {
      const product = loop({ to: steps, carry: accumulator(f32, [rows, columns]) }, (step, sum) => {
        const here = block(step, depth);
        const across = slice(0, rows);
        const along = slice(0, columns);
        const from = left ? a.at(across, here) : a.at(here, across).transpose();
        const other = right ? b.at(along, here).transpose() : b.at(here, along);
        const barrierOf = { barrier: full.at(step) };
        copyAsync(from, slots.at(step), barrierOf);
        copyAsync(other, others.at(step), barrierOf);
        full.at(step).wait();
        return wgmma(sum, slots.at(step), others.at(step));
      });
      c.store(product.wait());
    },
  );

/** The same by `dot`, whose loop the compiler pipelines where it can. */
const singlesByDot = ({ left, right }: Order) =>
  kernel(
    {
      name: "singles_by_dot",
      inputs: {
        a: tensor(f32, left ? [rows, sums] : [sums, rows]),
        b: tensor(f32, right ? [columns, sums] : [sums, columns]),
      },
      outputs: { c: tensor(f32, [rows, columns]) },
    },
    ({ a, b, c }) => {
      const product = loop({ to: steps, carry: zeros(f32, [rows, columns]) }, (step, sum) => {
        const here = block(step, depth);
        const from = left ? a.at(all, here).load() : a.at(here).load().transpose();
        const other = right ? b.at(all, here).load().transpose() : b.at(here).load();
        return dot(from, other, { accumulator: sum, precision: "tf32" });
      });
      c.store(product);
    },
  );

const whole = (row: number, column: number): number => ((row * 5 + column * 3) % 6) + 1;

function productCase(way: string, order: Order, make: (order: Order) => KernelDefinition) {
  const factor = (outer: number, isPlain: boolean): readonly number[] =>
    Array.from({ length: outer * sums }, (_, place) => {
      const [row, column] = isPlain
        ? [Math.floor(place / sums), place % sums]
        : [place % outer, Math.floor(place / outer)];
      // What is behind the tenth bit is rounded away.
      return whole(row, column) + 2 ** -13;
    });
  const shapeOf = (outer: number, isPlain: boolean) => (isPlain ? [outer, sums] : [sums, outer]);
  const orders = [order.left, order.right].map((isPlain) => (isPlain ? "along k" : "across"));
  return {
    name: `${way}, ${orders.join(" and ")}`,
    kernel: () => make(order),
    inputs: {
      a: fromNumbers(f32, shapeOf(rows, order.left), factor(rows, order.left)),
      b: fromNumbers(f32, shapeOf(columns, order.right), factor(columns, order.right)),
    },
    expected: {
      c: Array.from({ length: rows * columns }, (_, place) =>
        Array.from(
          { length: sums },
          (_each, k) => whole(Math.floor(place / columns), k) * whole(place % columns, k),
        ).reduce((sum, term) => sum + term),
      ),
    },
  };
}

const bothOrders = [true, false].flatMap((left) => [true, false].map((right) => ({ left, right })));

const transposed: Feature = {
  name: "Factors of tf32 in either order",
  written: ["copyAsync(a.at(here).transpose(), left, { barrier: full })"],
  page: "pipelines.md#factors-of-tf32-in-either-order",
  cases: () => [
    ...bothOrders.map((order) => productCase("wgmma", order, singles)),
    ...bothOrders.slice(1).map((order) => productCase("dot", order, singlesByDot)),
  ],
  refused: [
    {
      code: "TW6101",
      by: () => {
        const { kernel: bad } = kernel(
          {
            name: "handed_around_across",
            grid: { i: 2 },
            cluster: { i: 2 },
            inputs: { a: tensor(f32, [depth, rows]), b: tensor(f32, [columns, depth]) },
            outputs: { c: tensor(f32, [2, rows, columns]) },
            scratch: {
              left: smem(tf32, [rows, depth]),
              right: smem(tf32, [depth, columns]),
              full: barrier({ arrivals: 2 }),
            },
          },
          ({ i, a, b, c, left, right, full }) => {
            when(i.eq(0), () => {
              copyAsync(a.transpose(), left, { barrier: full, multicast: "i" });
            });
            copyAsync(b.transpose(), right, { barrier: full });
            full.wait();
            c.at(i).store(wgmma(accumulator(f32, [rows, columns]), left, right).wait());
          },
        );
        placeKernel(bad, defaultTarget);
      },
    },
  ],
};

export const tf32FactorFeatures: readonly Feature[] = [transposed];
