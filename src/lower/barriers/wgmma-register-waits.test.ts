/** What products wait for before their left factor's registers are written again, and what they are handed. */
import { describe, expect, test } from "vitest";
import { runEdited, withoutLines } from "../../../test/support/edited-kernel.ts";
import { bf16, bool, f32, u16 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import type { AnyOp, Region } from "../../ir/node.ts";
import { changeBody, changeOps, changeRegions } from "../../ir/rewrite/substitute.ts";
import { walkOps } from "../../ir/traverse.ts";
import {
  accumulator,
  tensor,
  barrier,
  commitShared,
  dot,
  full,
  kernel,
  loop,
  scalar,
  smem,
  wgmma,
  when,
  zeros,
} from "../../lang/index.ts";
import type { Accumulator, KernelDefinition } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { targets } from "../../targets/target.ts";
import { place } from "../stages.ts";
import { verifyPlaced } from "../verify/index.ts";

const [rounds, rows, depth] = [3, 64, 16];
const left = fromNumbers(bf16, [rows, depth], new Array<number>(rows * depth).fill(2));

/** Rounds of a product whose left factor is a tile, and of another behind it that `pending` may leave in flight. */
const again = (pending?: number): KernelDefinition =>
  kernel(
    {
      name: "again",
      inputs: { left: tensor(bf16, [rows, depth]) },
      outputs: { out: tensor(f32, [rows, depth]), other: tensor(f32, [rows, depth]) },
      scratch: { a: smem(bf16, [rows, depth]), b: smem(bf16, [depth, depth]) },
    },
    ({ left: source, out, other, a, b }) => {
      a.store(source.load());
      b.store(full(bf16, [depth, depth], 1));
      commitShared();
      const tile = source.load();
      const zero = () => accumulator(f32, [rows, depth]);
      const [sum, second] = loop({ to: rounds, carry: [zero(), zero()] }, (_, [before, last]) => {
        const started = wgmma(before, tile, b);
        const behind = wgmma(last, a, b);
        return [started, pending === undefined ? behind : behind.waitPending(pending)];
      });
      out.store(sum.wait());
      other.store(second.wait());
    },
  );

function waitsOf({ kernel: traced }: KernelDefinition): readonly number[] {
  const found: number[] = [];
  walkOps(place(traced, targets.sm_90a).kernel.body, (op: AnyOp) => {
    if (op.kind === "products_wait") found.push(op.attributes.pending);
  });
  return found;
}

describe("registers of a left factor", () => {
  test.each([
    ["nothing", undefined, [1]],
    ["the one before", 1, []],
    ["too little", 2, [1]],
  ] as const)("whose round waits for %s", async (_, pending, waits) => {
    expect(waitsOf(again(pending))).toEqual(waits);
    const { codes, results } = await runEdited(again(pending), { left });
    expect(codes).toEqual([]);
    for (const name of ["out", "other"])
      expect(new Set(results?.[name] && toNumbers(results[name]))).toEqual(
        new Set([rounds * depth * 2]),
      );
  });
});

describe("products that read registers, and what comes behind them", () => {
  /** A product before a loop of others, all sparse or with a tile on the left. */
  const behind = (isSparse: boolean): KernelDefinition => {
    const [held, wide] = isSparse ? [32, 64] : [16, 16];
    return kernel(
      {
        name: "behind",
        inputs: { left: tensor(bf16, [rows, held]) },
        outputs: { out: tensor(f32, [rows, 8]) },
        scratch: { a: smem(bf16, [rows, held]), b: smem(bf16, [8, wide]) },
      },
      ({ left: source, out, a, b }) => {
        a.store(source.load());
        b.store(full(bf16, [8, wide], 1));
        commitShared();
        const multiplied = (sum: Accumulator<"f32">) =>
          isSparse
            ? wgmma(sum, a, b.transpose(), { sparse: full(u16, [rows, 4], 0x4444) })
            : wgmma(sum, source.load(), b.transpose());
        const first = multiplied(accumulator(f32, [rows, 8])).waitPending(1);
        const sum = loop({ to: rounds, carry: first }, (_, before) =>
          multiplied(before).waitPending(1),
        );
        out.store(sum.wait());
      },
    );
  };

  test.each([
    ["a left factor", false],
    ["metadata", true],
  ])("%s: they are over before the loop and at the end of each round", async (_, isSparse) => {
    expect(waitsOf(behind(isSparse))).toEqual([0, 0]);
    const shape = [rows, isSparse ? 32 : 16];
    const ones = fromNumbers(bf16, shape, new Array<number>(rows * (shape[1] ?? 0)).fill(1));
    const { codes, results, ptx } = await runEdited(behind(isSparse), { left: ones });
    expect(codes).toEqual([]);
    expect(new Set(results?.["out"] && toNumbers(results["out"]))).toEqual(
      new Set([(rounds + 1) * (shape[1] ?? 0)]),
    );
    // Nothing but branches and arithmetic of the loop lies between the wait and the round's end.
    expect(ptx).toMatch(/wait_group\.sync\.aligned 0;(?:(?!mma_async|ldmatrix|ld\.)[^])*bra/);
  });
});

test("a product that reads registers is over before a branch that holds a loop", () => {
  const branching = kernel(
    {
      name: "branching",
      inputs: { left: tensor(bf16, [rows, depth]), isLong: scalar(bool) },
      outputs: { out: tensor(f32, [rows, 8]) },
      inouts: { count: tensor(f32, [rows]) },
      scratch: { b: smem(bf16, [8, depth]) },
    },
    ({ left: source, isLong, out, count, b }) => {
      b.store(full(bf16, [8, depth], 1));
      commitShared();
      const running = wgmma(accumulator(f32, [rows, 8]), source.load(), b.transpose());
      when(isLong, () => {
        loop(rounds, () => {
          count.store(count.load().add(1));
        });
      });
      out.store(running.wait());
    },
  );
  expect(waitsOf(branching)).toEqual([0]);
});

describe("a product that reads registers, and a branch behind it", () => {
  /** A branch that gives the factor, or another tile, with the product in flight. */
  const choosing = (given: "the factor" | "wider elements") =>
    kernel(
      {
        name: "choosing",
        inputs: { left: tensor(bf16, [rows, depth]) },
        outputs: { out: tensor(f32, [rows, 8]), other: tensor(f32, [rows, depth]) },
        scratch: { b: smem(bf16, [8, depth]) },
      },
      ({ left: source, out, other, b }) => {
        b.store(full(bf16, [8, depth], 1));
        commitShared();
        const tile = source.load();
        const isChanged = source.at(0, 0).loadScalar().gt(1);
        const running = wgmma(accumulator(f32, [rows, 8]), tile, b.transpose());
        const taken =
          given === "the factor"
            ? when(
                isChanged,
                () => tile.add(1),
                () => tile,
              ).cast(f32)
            : when(
                isChanged,
                () => tile.cast(f32).add(1),
                () => tile.cast(f32),
              );
        other.store(taken);
        out.store(running.wait());
      },
    );

  test.each([
    // The assembler computes what an arm gives where the other arm has it already: in the factor's registers.
    ["the factor", [0]],
    ["wider elements", []],
  ] as const)("that gives %s", async (given, waits) => {
    expect(waitsOf(choosing(given))).toEqual(waits);
    const { codes, results } = await runEdited(choosing(given), { left });
    expect(codes).toEqual([]);
    expect(new Set(results?.["out"] && toNumbers(results["out"]))).toEqual(new Set([2 * depth]));
    expect(new Set(results?.["other"] && toNumbers(results["other"]))).toEqual(new Set([3]));
  });
});

test("a kernel without the wait is refused", () => {
  const { kernel: ordered } = place(again().kernel, targets.sm_90a);
  const strip = (region: Region): Region =>
    changeOps(
      region,
      region.ops
        .filter(({ kind }) => kind !== "products_wait")
        .map((op) => changeRegions(op, strip)),
    );
  expect(() => verifyPlaced(changeBody(ordered, strip(ordered.body)))).toThrow("TW6208");
});

test("what another thread multiplies is handed over by the lanes that wrote it", async () => {
  const handed = kernel(
    {
      name: "handed",
      threads: ["write", "multiply"],
      inputs: { left: tensor(bf16, [rows, depth]) },
      outputs: { out: tensor(f32, [rows, depth]) },
      scratch: {
        a: smem(bf16, [rows, depth]),
        b: smem(bf16, [depth, depth]),
        ready: barrier(),
      },
    },
    ({ left: source, out, a, b, ready, write, multiply }) => {
      write(() => {
        a.store(source.load());
        b.store(full(bf16, [depth, depth], 1));
        ready.arrive();
      });
      multiply(() => {
        ready.wait();
        out.store(dot(a.load(), b.load()));
      });
    },
  );
  const fence = /fence\.proxy\.async.*the tensor cores may read/m;
  const { ptx, codes, results } = await runEdited(handed, { left });
  expect(ptx).toMatch(fence);
  expect(codes).toEqual([]);
  expect(new Set(results?.["out"] && toNumbers(results["out"]))).toEqual(new Set([depth * 2]));
  const without = await runEdited(handed, { left }, { edit: withoutLines(fence) });
  expect(without.codes).not.toEqual([]);
});

test("accumulators that change places wait for their products, and compute what they should", async () => {
  const swapping = kernel(
    {
      name: "swapping",
      inputs: { left: tensor(bf16, [rows, depth]) },
      outputs: { out: tensor(f32, [rows, depth]), other: tensor(f32, [rows, depth]) },
      scratch: { a: smem(bf16, [rows, depth]), b: smem(bf16, [depth, depth]) },
    },
    ({ left: source, out, other, a, b }) => {
      a.store(source.load());
      b.store(full(bf16, [depth, depth], 1));
      commitShared();
      const start = [
        accumulator(f32, [rows, depth]),
        accumulator(f32, [rows, depth], full(f32, [rows, depth], 1)),
      ] as const;
      const [first, second] = loop({ to: rounds, carry: start }, (_, [one, two]) => {
        return [two, wgmma(one, a, b)] as const;
      });
      out.store(first.wait());
      other.store(second.wait());
    },
  );
  expect(waitsOf(swapping)).toEqual([0]);
  const { codes, results } = await runEdited(swapping, { left });
  expect(codes).toEqual([]);
  // Of three rounds the first and third multiply the accumulator of zeros, the second that of ones.
  const [ofZeros, ofOnes] = [2 * depth * 2, 1 + depth * 2];
  expect(new Set(results?.["out"] && toNumbers(results["out"]))).toEqual(new Set([ofOnes]));
  expect(new Set(results?.["other"] && toNumbers(results["other"]))).toEqual(new Set([ofZeros]));
  const without = await runEdited(swapping, { left }, { edit: withoutLines(/wgmma\.wait_group/) });
  expect(without.codes).not.toEqual([]);
});

/** Scores of one round are worked on while values of the round before are multiplied, as attention does. */
const overlapped = kernel(
  {
    name: "overlapped",
    inputs: { left: tensor(bf16, [rows, depth]), right: tensor(bf16, [depth, depth]) },
    outputs: { out: tensor(f32, [rows, depth]) },
    scratch: { a: smem(bf16, [rows, depth]), b: smem(bf16, [depth, depth]) },
  },
  ({ left: source, right, out, a, b }) => {
    a.store(source.load());
    b.store(right.load());
    commitShared();
    const first = { p: source.load(), o: zeros(f32, [rows, depth]) };
    const end = loop({ to: rounds, carry: first }, (_, { p, o }) => {
      const scores = wgmma(accumulator(f32, [rows, depth]), a, b);
      const values = wgmma(accumulator(f32, [rows, depth], o), p, b);
      const high = scores.wait({ pending: 1 }).max({ axis: 1, keepDims: true }).minimum(4);
      const next = p.mul(high.mul(0.5).cast(bf16));
      return { p: next, o: values.wait().mul(0.5) };
    });
    out.store(end.o);
  },
);

test("a tile is taken while a later product runs, and its registers are left alone", async () => {
  const random = Array.from({ length: rows * depth }, (_, index) => ((index * 7) % 5) - 2);
  const factors = Array.from({ length: depth * depth }, (_, index) => ((index * 5) % 7) - 3);
  const inputs = {
    left: fromNumbers(bf16, [rows, depth], random),
    right: fromNumbers(bf16, [depth, depth], factors),
  };
  const { codes, results, ptx } = await runEdited(overlapped, inputs);
  expect(codes).toEqual([]);
  expect(ptx).toContain("wgmma.wait_group.sync.aligned 1");
  const device = await open("simulator");
  const simulated = await device.run(overlapped, inputs).finally(() => device.dispose());
  expect(results?.["out"] && toNumbers(results["out"])).toEqual(toNumbers(simulated.out));
  const expected = reference(random, factors);
  expect(toNumbers(simulated.out)).toEqual(Float64Array.from(expected));
  // One product fewer is waited for than the tile needs: the emulator sees that its registers are in flight.
  const early = (text: string): string => text.replace(/(wait_group\.sync\.aligned) 1;/, "$1 2;");
  expect((await runEdited(overlapped, inputs, { edit: early })).codes).not.toEqual([]);
});

/** The same rounds in exact arithmetic: all numbers are small integers and their halves. */
function reference(source: readonly number[], factors: readonly number[]): readonly number[] {
  const times = (left: readonly number[]): number[] =>
    Array.from({ length: rows * depth }, (_, index) => {
      const [row, column] = [Math.floor(index / depth), index % depth];
      let sum = 0;
      for (let k = 0; k < depth; k += 1)
        sum += (left[row * depth + k] ?? 0) * (factors[k * depth + column] ?? 0);
      return sum;
    });
  const scores = times(source);
  const highs = Array.from({ length: rows }, (_, row) =>
    Math.min(4, Math.max(...scores.slice(row * depth, (row + 1) * depth))),
  );
  let p = [...source];
  let o = new Array<number>(rows * depth).fill(0);
  for (let round = 0; round < rounds; round += 1) {
    const product = times(p);
    o = o.map((each, index) => (each + (product[index] ?? 0)) / 2);
    p = p.map((each, index) => each * ((highs[Math.floor(index / depth)] ?? 0) / 2));
  }
  return o;
}
