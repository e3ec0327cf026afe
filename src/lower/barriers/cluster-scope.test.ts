/** How far barriers of a cluster reach: no further than needed, and wherever that matters a race is found without it. */
import { describe, expect, test } from "vitest";
import { ptxOf, runEdited } from "../../../test/support/edited-kernel.ts";
import { bf16, f32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import {
  accumulator,
  tensor,
  barrier,
  clusterRank,
  clusterSync,
  commitShared,
  copyAsync,
  kernel,
  loop,
  slice,
  smem,
  wgmma,
  when,
  zeros,
} from "../../lang/index.ts";
import type { KernelDefinition } from "../../lang/index.ts";

const pair = { grid: { i: 2 }, cluster: { i: 2 } } as const;
const width = 128;
const [rows, columns, depth, rounds] = [64, 16, 64, 3];
const x = fromNumbers(
  f32,
  [2, width],
  Array.from({ length: 2 * width }, (_, index) => index % 11),
);
const swapped = [1, 0].flatMap((block) =>
  [...toNumbers(x)].slice(block * width, (block + 1) * width),
);

/** Each block writes into the other's shared memory. */
const mailbox = (through: "the writer" | "another thread"): KernelDefinition =>
  kernel(
    {
      name: "mailbox",
      ...pair,
      threads: ["write", "read"],
      inputs: { x: tensor(f32, [2, width]) },
      outputs: { out: tensor(f32, [2, width]) },
      scratch: { inbox: smem(f32, [width]), arrived: barrier(), told: barrier() },
    },
    ({ i, x: source, out, inbox, arrived, told, write, read }) => {
      const peer = clusterRank("i").xor(1);
      write(() => {
        inbox.peer(peer).store(source.at(i).load());
        if (through === "the writer") arrived.arrive({ peer });
        else told.arrive();
      });
      read(() => {
        if (through === "another thread") {
          told.wait();
          arrived.arrive({ peer });
        }
        arrived.wait();
        out.at(i).store(inbox.load());
      });
      clusterSync();
    },
  );

/** One block's copies land in both; each tells both when it is done with a buffer. */
const shared = (by: "lanes" | "tensor cores"): KernelDefinition => {
  return kernel(
    {
      name: "shared",
      ...pair,
      threads: ["copy", "use"],
      inputs: { a: tensor(bf16, [rounds, rows, depth]), b: tensor(bf16, [rounds, depth, columns]) },
      outputs: { out: tensor(f32, [2, rows, columns]) },
      scratch: {
        tileA: smem(bf16, [rows, depth]),
        tileB: smem(bf16, [depth, columns]),
        full: barrier({ arrivals: 3 }),
        empty: barrier({ arrivals: 2 }),
      },
    },
    ({ i, a, b, out, tileA, tileB, full, empty, copy, use }) => {
      const rank = clusterRank("i");
      copy(() => {
        loop(rounds, (round) => {
          when(round.gt(0), () => empty.wait());
          copyAsync(a.at(round), tileA, { barrier: full });
          const half = slice(rank.mul(depth / 2), depth / 2);
          copyAsync(b.at(round, half), tileB.at(half), { barrier: full, multicast: ["i"] });
        });
      });
      use(() => {
        const start = zeros(f32, [rows, columns]);
        const sum = loop({ to: rounds, carry: start }, (round, total) => {
          full.wait();
          const product = wgmma(accumulator(f32, [rows, columns]), tileA, tileB).wait();
          const read = by === "lanes" ? tileB.load().cast(f32) : undefined;
          if (by === "lanes") commitShared();
          when(round.lt(rounds - 1), () => {
            for (const peer of [0, 1]) empty.arrive({ peer });
          });
          return read === undefined ? total.add(product) : total.add(product).add(read);
        });
        out.at(i).store(sum);
      });
      clusterSync();
    },
  );
};

const numbers = (count: number, step: number): readonly number[] =>
  Array.from({ length: count }, (_, index) => ((index * step) % 5) - 2);
const [a, b] = [numbers(rounds * rows * depth, 3), numbers(rounds * depth * columns, 7)];
const factors = {
  a: fromNumbers(bf16, [rounds, rows, depth], a),
  b: fromNumbers(bf16, [rounds, depth, columns], b),
};

/** The sum of all products, and of all right factors where lanes read them too. */
function expectedSum(withFactors: boolean): readonly number[] {
  return Array.from({ length: rows * columns }, (_, at) => {
    const [row, column] = [Math.floor(at / columns), at % columns];
    let sum = 0;
    for (let round = 0; round < rounds; round += 1) {
      for (let k = 0; k < depth; k += 1)
        sum +=
          (a[(round * rows + row) * depth + k] ?? NaN) *
          (b[(round * depth + k) * columns + column] ?? NaN);
      if (withFactors) sum += b[(round * depth + row) * columns + column] ?? NaN;
    }
    return sum;
  });
}

const reaches = (definition: KernelDefinition) => {
  const text = ptxOf(definition);
  return {
    arrive: /mbarrier\.arrive\.release\.cluster/.test(text),
    wait: /try_wait\.parity\.acquire\.cluster/.test(text),
  };
};

const withoutRelease = (text: string): string =>
  text.replaceAll(".release.cluster.shared::cluster", ".shared::cluster");
const withoutAcquire = (text: string): string =>
  text.replaceAll("parity.acquire.cluster", "parity");

describe("a barrier of a cluster", () => {
  test.each(["the writer", "another thread"] as const)(
    "reaches it where lanes wrote a peer's memory, told by %s",
    async (through) => {
      const definition = mailbox(through);
      expect(reaches(definition)).toEqual({ arrive: true, wait: true });
      const { codes, results } = await runEdited(definition, { x });
      expect(codes).toEqual([]);
      expect(results?.["out"] && [...toNumbers(results["out"])]).toEqual(swapped);
      for (const edit of [withoutRelease, withoutAcquire])
        expect((await runEdited(definition, { x }, { edit })).codes).toContain("TW8014");
    },
  );

  test("reaches it where lanes read what a peer's copies overwrite", async () => {
    const definition = shared("lanes");
    expect(reaches(definition)).toEqual({ arrive: true, wait: true });
    const { codes, results } = await runEdited(definition, factors);
    expect(codes).toEqual([]);
    const sum = expectedSum(true);
    expect(results?.["out"] && [...toNumbers(results["out"])]).toEqual([...sum, ...sum]);
    expect((await runEdited(definition, factors, { edit: withoutRelease })).codes).not.toEqual([]);
  });

  test("stays in its block where the tensor cores alone read it", async () => {
    const definition = shared("tensor cores");
    expect(reaches(definition)).toEqual({ arrive: false, wait: false });
    for (const seed of [1, 2]) {
      const { codes, results } = await runEdited(definition, factors, { seed });
      expect(codes).toEqual([]);
      const sum = expectedSum(false);
      expect(results?.["out"] && [...toNumbers(results["out"])]).toEqual([...sum, ...sum]);
    }
  });
});
