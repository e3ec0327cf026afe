/**
 * Products in tensor memory on the simulator: what they are, and what is found of waits, commits and fences that are left out. The pairs of accesses are
 * those of the happens-before table of such products.
 */
import { describe, expect, test } from "vitest";
import { runKernel, schedules } from "../../test/simulation.ts";
import type { Kernel } from "../ir/node.ts";
import { bf16, f32, f8e4m3fn, f8e8m0fnu } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import {
  all,
  barrier,
  commitShared,
  full,
  kernel,
  slice,
  smem,
  tcgen05Commit,
  tcgen05Copy,
  tcgen05Mma,
  tensor,
  tmem,
} from "../lang/index.ts";
import type { Barrier, Ref } from "../lang/index.ts";
import { targets } from "../targets/target.ts";

const [m, n, k] = [128, 32, 64];

function numbers(rows: number, columns: number, of: (row: number, column: number) => number) {
  const values = Float64Array.from({ length: rows * columns }, (_, at) =>
    of(Math.floor(at / columns), at % columns),
  );
  return fromNumbers(bf16, [rows, columns], values);
}

const left = (row: number, column: number): number => ((row * 7 + column * 3) % 9) - 4;
const right = (row: number, column: number): number => ((row * 5 + column * 11) % 7) - 3;

const inputs: { readonly [name: string]: HostArray } = {
  a: numbers(m, k, left),
  b: numbers(k, n, right),
};

/** Sums of small integers, which every order of adding gives. */
function product(times = 1): readonly number[] {
  return Array.from({ length: m * n }, (_, at) => {
    let sum = 0;
    for (let each = 0; each < k; each += 1)
      sum += left(Math.floor(at / n), each) * right(each, at % n);
    return times * sum;
  });
}

interface Parts {
  readonly sums: Ref<"f32">;
  readonly a: Ref<"bf16">;
  readonly b: Ref<"bf16">;
  readonly done: Barrier;
  readonly ready: Barrier;
  readonly out: Ref<"f32">;
}

interface Options {
  readonly fenced?: boolean;
  readonly threads?: readonly string[];
}

/** A kernel of factors in shared memory, and what is done with them. */
function multiplying(body: (parts: Parts) => void, { fenced = true }: Options = {}) {
  return kernel(
    {
      name: "multiplying",
      inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
      outputs: { out: tensor(f32, [m, n]) },
      scratch: {
        sums: tmem(f32, [m, n]),
        left: smem(bf16, [m, k]),
        right: smem(bf16, [k, n]),
        done: barrier(),
        ready: barrier(),
      },
    },
    ({ a, b, out, sums, left: own, right: other, done, ready }) => {
      own.store(a.load());
      other.store(b.load());
      if (fenced) commitShared();
      body({ sums, a: own, b: other, done, ready, out });
    },
  );
}

const complete = ({ sums, a, b, done, out }: Parts): void => {
  tcgen05Mma(sums, a, b, { adds: false });
  tcgen05Mma(sums, a, b);
  tcgen05Commit(done);
  done.wait();
  out.store(sums.load());
};

async function codes(definition: { readonly kernel: Kernel }): Promise<readonly string[]> {
  const found = new Set<string>();
  for (const schedule of schedules) {
    const run = await runKernel(definition, inputs, { ...schedule, target: targets.sm_100a });
    for (const finding of run.findings) found.add(JSON.stringify(finding));
  }
  return [...found];
}

describe("products in tensor memory", () => {
  test("add up in the order in which they were started, and are there after a commit", async () => {
    for (const schedule of schedules) {
      const run = await runKernel(multiplying(complete), inputs, {
        ...schedule,
        target: targets.sm_100a,
      });
      expect(run.findings).toEqual([]);
      expect(run.numbers("out")).toEqual(product(2));
    }
  });
});

test("products beside each other, and behind a wait, are in any order", async () => {
  const beside = multiplying(({ sums, a, b, done, out }) => {
    for (const start of [0, 16])
      tcgen05Mma(sums.at(all, slice(start, 16)), a, b.at(all, slice(start, 16)), { adds: false });
    tcgen05Commit(done);
    done.wait();
    tcgen05Mma(sums, a, b);
    tcgen05Commit(done);
    done.wait();
    out.store(sums.load());
  });
  expect(await codes(beside)).toEqual([]);
});

describe("what is left out is found", () => {
  test.each<[string, (parts: Parts) => void, RegExp]>([
    [
      "a wait for the commit",
      ({ sums, a, b, done, out }) => {
        tcgen05Mma(sums, a, b, { adds: false });
        tcgen05Commit(done);
        out.store(sums.load());
        done.wait();
      },
      /TW3001.*sums: load and tcgen05Mma.*tcgen05Commit/s,
    ],
    [
      "what a first product adds to",
      ({ sums, a, b, done, out }) => {
        tcgen05Mma(sums, a, b);
        tcgen05Commit(done);
        done.wait();
        out.store(sums.load());
      },
      /TW3002.*sums/s,
    ],
    [
      "a commit behind the last product",
      ({ sums, a, b, done, out }) => {
        tcgen05Mma(sums, a, b, { adds: false });
        tcgen05Commit(done);
        tcgen05Mma(sums, a, b);
        done.wait();
        out.store(sums.load());
      },
      /TW3001/s,
    ],
    [
      "a wait between products on columns that overlap",
      ({ sums, a, b, done, out }) => {
        tcgen05Mma(sums, a, b, { adds: false });
        tcgen05Mma(sums.at(all, slice(16, 16)), a, b.at(all, slice(0, 16)));
        tcgen05Commit(done);
        done.wait();
        out.store(sums.load());
      },
      /TW3001.*sums: tcgen05Mma and tcgen05Mma.*tcgen05Commit/s,
    ],
    [
      "a wait before a factor changes",
      ({ sums, a, b, done, out }) => {
        tcgen05Mma(sums, a, b, { adds: false });
        a.store(full(bf16, [m, k], 0));
        tcgen05Commit(done);
        done.wait();
        out.store(sums.load());
      },
      /TW3001/s,
    ],
    [
      "a wait before sums are stored",
      ({ sums, a, b, done, out }) => {
        tcgen05Mma(sums, a, b, { adds: false });
        sums.store(full(f32, [m, n], 0));
        tcgen05Commit(done);
        done.wait();
        out.store(sums.load());
      },
      /TW3001/s,
    ],
  ])("%s", async (_, body, expected) => {
    expect((await codes(multiplying(body))).join("\n")).toMatch(expected);
  });

  describe("of copies of scales", () => {
    const scaled = (
      body: (parts: {
        readonly copy: () => void;
        readonly multiply: () => void;
        readonly settle: () => void;
      }) => void,
    ) =>
      kernel(
        {
          name: "scaled",
          scratch: {
            sums: tmem(f32, [m, n]),
            a: smem(f8e4m3fn, [m, k]),
            b: smem(f8e4m3fn, [k, n]),
            atoms: smem(f8e8m0fnu, [1, 1, 32, 16]),
            scales: tmem(f8e8m0fnu, [128, 4], { scales: true }),
            done: barrier(),
          },
        },
        ({ sums, a, b, atoms, scales, done }) => {
          a.store(full(f8e4m3fn, [m, k], 1));
          b.store(full(f8e4m3fn, [k, n], 1));
          atoms.store(full(f8e8m0fnu, [1, 1, 32, 16], 1));
          commitShared();
          body({
            copy() {
              tcgen05Copy(atoms, scales);
            },
            multiply() {
              tcgen05Mma(sums, a, b, { adds: false, scales: [scales, scales] });
            },
            settle() {
              tcgen05Commit(done);
              done.wait();
            },
          });
        },
      );

    test("a product follows a copy", async () => {
      expect(
        await codes(
          scaled(({ copy, multiply, settle }) => {
            copy();
            multiply();
            settle();
            copy();
            settle();
          }),
        ),
      ).toEqual([]);
    });

    test("a wait before scales are copied over those that a product reads", async () => {
      const found = await codes(
        scaled(({ copy, multiply, settle }) => {
          copy();
          multiply();
          copy();
          settle();
        }),
      );
      expect(found.join()).toMatch(/data race on scales: tcgen05Copy and tcgen05Mma/);
    });

    test("a wait between two copies to one place", async () => {
      const found = await codes(
        scaled(({ copy, settle }) => {
          copy();
          copy();
          settle();
        }),
      );
      expect(found.join()).toMatch(/data race on scales: tcgen05Copy and tcgen05Copy/);
    });
  });

  test("a barrier between products of two threads, whose commits tell of their own alone", async () => {
    const two = (ordered: boolean, committed: boolean) =>
      kernel(
        {
          name: "two",
          threads: ["first", "second"],
          inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
          outputs: { out: tensor(f32, [m, n]) },
          scratch: {
            sums: tmem(f32, [m, n]),
            own: smem(bf16, [m, k]),
            other: smem(bf16, [k, n]),
            filled: barrier(),
            ready: barrier(),
            over: barrier(),
            done: barrier(),
          },
        },
        ({ a, b, out, sums, own, other, filled, ready, over, done, first, second }) => {
          first(() => {
            own.store(a.load());
            other.store(b.load());
            commitShared();
            filled.arrive();
            tcgen05Mma(sums, own, other, { adds: false });
            if (ordered) ready.arrive();
            tcgen05Commit(over);
          });
          second(() => {
            filled.wait();
            if (ordered) ready.wait();
            tcgen05Mma(sums, own, other);
            tcgen05Commit(done);
            done.wait();
            if (committed) over.wait();
            out.store(sums.load());
          });
        },
      );
    expect(await codes(two(true, true))).toEqual([]);
    expect((await codes(two(false, true))).join()).toMatch(/sums: tcgen05Mma and tcgen05Mma/);
    // The first product is over when the second one is, whose commit does not tell so of its factors.
    expect((await codes(two(true, false))).join()).toMatch(/TW3009.*tcgen05Mma is not awaited/);
  });

  test("the fence behind ordinary stores", async () => {
    expect((await codes(multiplying(complete, { fenced: false }))).join("\n")).toMatch(
      /TW3001.*commitShared/s,
    );
  });
});
