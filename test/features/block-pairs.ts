/** Products of pairs of blocks in tensor memory, and of several pairs in a cluster. */
import {
  all,
  barrier,
  bf16,
  block,
  copyAsync,
  f32,
  fromNumbers,
  kernel,
  smem,
  tcgen05Commit,
  tcgen05Mma,
  tensor,
  tmem,
  when,
} from "tilewright";
import type { Feature, FeatureCase } from "./feature.ts";

const [rows, n, k] = [128, 32, 32];
const pair = true;

const left = (row: number, column: number): number => ((row * 7 + column * 3) % 9) - 4;
const right = (row: number, column: number): number => ((row * 5 + column * 11) % 7) - 3;

function listed(height: number, width: number, of: (row: number, column: number) => number) {
  return Array.from({ length: height * width }, (_, at) => of(Math.floor(at / width), at % width));
}

/** Each pair has 256 rows of its own; the columns of b are the same for all, and one pair fetches them. */
const product = (pairs: number) =>
  kernel(
    {
      name: "product_of_pairs",
      cluster: { i: pairs, half: 2 },
      inputs: { x: tensor(bf16, [2 * pairs * rows, k]), y: tensor(bf16, [n, k]) },
      outputs: { out: tensor(f32, [2 * pairs * rows, n]) },
      scratch: {
        sums: tmem(f32, [rows, n], { pair }),
        a: smem(bf16, [rows, k]),
        b: smem(bf16, [n / 2, k]),
        landed: barrier({ arrivals: 2 }),
        done: barrier(),
      },
    },
    ({ i, half, x, y, out, sums, a, b, landed, done }) => {
      const own = block(i.mul(2).add(half), rows);
      const toLeader = { barrier: landed, pair };
      copyAsync(x.at(own, all), a, toLeader);
      const columns = y.at(block(half, n / 2), all);
      if (pairs === 1) copyAsync(columns, b, toLeader);
      else
        when(i.eq(0), () => {
          copyAsync(columns, b, { ...toLeader, multicast: "i" });
        });
      when(half.eq(0), () => {
        landed.wait();
        tcgen05Mma(sums, a, b.transpose(), { adds: false, pair });
        tcgen05Commit(done, { multicast: "half" });
      });
      done.wait();
      out.at(own, all).store(sums.load());
    },
  );

function multiplied(pairs: number, name: string): FeatureCase {
  const height = 2 * pairs * rows;
  return {
    name,
    kernel: () => product(pairs),
    inputs: {
      x: fromNumbers(bf16, [height, k], listed(height, k, left)),
      y: fromNumbers(bf16, [n, k], listed(n, k, right)),
    },
    expected: {
      out: listed(height, n, (row, column) => {
        let sum = 0;
        for (let each = 0; each < k; each += 1) sum += left(row, each) * right(column, each);
        return sum;
      }),
    },
    device: "sm_100a",
    targets: ["sm_100a", "sm_103a"],
  };
}

/** A product of a pair where there is none, or with all columns of b in each block. */
const refused = (cluster: { readonly half: number } | undefined, columns = n / 2) =>
  kernel(
    {
      name: "refused",
      grid: { i: 1 },
      ...(cluster && { cluster }),
      scratch: {
        sums: tmem(f32, [rows, n]),
        a: smem(bf16, [rows, k]),
        b: smem(bf16, [k, columns]),
      },
    },
    ({ sums, a, b }) => {
      tcgen05Mma(sums, a, b, { adds: false, pair });
    },
  );

const pairs: Feature = {
  name: "Products of pairs of blocks in tensor memory",
  written: ["pair: true });", 'tcgen05Commit(empty.at(slot), { multicast: "half" })'],
  page: "blackwell.md#pairs-of-blocks",
  cases: () => [
    multiplied(1, "of 256 rows"),
    multiplied(2, "of two pairs in a cluster of four, with columns of b by a multicast"),
  ],
  refused: [
    { code: "TW2309", by: () => refused(undefined) },
    { code: "TW2309", by: () => refused({ half: 3 }) },
    { code: "TW2304", by: () => refused({ half: 2 }, n) },
  ],
};

export const blockPairFeatures: readonly Feature[] = [pairs];
