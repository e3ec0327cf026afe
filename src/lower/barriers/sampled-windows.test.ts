/**
 * Windows between which no barrier is needed, compared with what is obvious: their elements, listed for many values of everything that
 * an offset is computed from. Two ways of the compiler say whether windows lie apart, one that decides and one that verifies. Neither
 * may say so of windows with an element in common, and what the first says the second must find, too.
 */
import { expect, test, vi } from "vitest";
import { f32, i32, i4 } from "../../formats/dtype.ts";
import type { AnyOp, Kernel, Op, Value } from "../../ir/node.ts";
import { definingOps } from "../../ir/rewrite/analysis.ts";
import { evaluateSize } from "../../ir/size.ts";
import { walkOps } from "../../ir/traverse.ts";
import { tensor, dim, iota, kernel, scalar, slice, zeros } from "../../lang/index.ts";
import type { TensorSpec, Ref, Scalar } from "../../lang/index.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { targets } from "../../targets/target.ts";
import { place } from "../stages.ts";
import { SummedBoxes } from "./disjoint-windows.ts";
import { verifyBarriers } from "./index.ts";
import { SampledBoxes } from "./sampled-windows.ts";

const kernels = 1000;
const stride = dim("stride");

type Index = Scalar<"i32">;

/** An index computed from others and from constants, some of which lead around all integers. */
function randomIndex(random: Random, leaves: readonly Index[], depth: number): Index | number {
  const kind = depth === 0 ? random.below(2) : random.below(6);
  if (kind === 0) return random.below(8) === 0 ? 1 << 30 : random.below(13) - 6;
  const leaf = leaves[random.below(leaves.length)] ?? expect.fail();
  if (kind === 1) return leaf;
  const left = randomIndex(random, leaves, depth - 1);
  const right = randomIndex(random, leaves, depth - 1);
  const from = typeof left === "number" ? leaf.add(left) : left;
  if (kind < 4) return from.add(right);
  return kind === 4 ? from.sub(right) : from.mul(typeof right === "number" ? right : 4);
}

const forms: readonly (() => TensorSpec)[] = [
  () => tensor(f32, [dim("n")]),
  () => tensor(f32, [64, 64]),
  () => tensor(f32, [64, 64], { strides: [4, 1] }),
  () => tensor(f32, [64, 64], { strides: [1, 6] }),
  () => tensor(f32, [64, 64], { strides: [stride, 1] }),
  () => tensor(f32, [64, 64], { strides: [2, stride] }),
];

/** A kernel that stores some windows of one array. Most offsets of an axis differ by constants alone, or they would say nothing. */
function randomWindows(random: Random): Kernel {
  const spec = (forms[random.below(forms.length)] ?? expect.fail())();
  return kernel(
    {
      name: "windows",
      grid: { i: 4 },
      inputs: { p: scalar(i32), q: scalar(i32) },
      inouts: { out: spec },
    },
    ({ i, p, q, out }) => {
      const common = spec.shape.map(() => randomIndex(random, [i, p, q], 2));
      for (let count = 0; count < 4; count += 1) {
        const sizes = spec.shape.map(() => 2 ** random.below(3));
        const parts = sizes.map((size, axis) => {
          const along = common[axis] ?? expect.fail();
          const from = typeof along === "number" ? i.mul(0).add(along) : along;
          const way = random.below(4);
          const offset =
            way === 0 ? randomIndex(random, [i, p, q], 2) : from.add(random.below(9) - 4);
          return slice(way === 1 ? from : offset, size);
        });
        (out as unknown as Ref<"f32">).at(...parts).store(zeros(f32, sizes));
      }
    },
  ).kernel;
}

/** What a scalar is, in the integers of 32 bits that a kernel computes with. */
function evaluated(
  value: Value,
  definitions: ReadonlyMap<Value, AnyOp>,
  given: ReadonlyMap<Value, number>,
): number {
  const op = definitions.get(value);
  const known = given.get(value);
  if (known !== undefined) return known;
  if (op?.kind === "constant") return Number(op.attributes.value);
  if (op?.kind !== "binary") return expect.fail(`%${value.id}`);
  const left = evaluated(op.operands.left, definitions, given);
  const right = evaluated(op.operands.right, definitions, given);
  const { fn } = op.attributes;
  if (fn === "add") return (left + right) | 0;
  if (fn === "sub") return (left - right) | 0;
  return fn === "mul" ? Math.imul(left, right) : expect.fail(fn);
}

interface Given {
  readonly values: ReadonlyMap<Value, number>;
  readonly dimensions: ReadonlyMap<string, number>;
}

/** Indices along each axis of a window, or its places in memory where strides say these. */
function elementsOf(
  op: Op<"slice_ref">,
  made: Kernel,
  definitions: ReadonlyMap<Value, AnyOp>,
  { values, dimensions }: Given,
): readonly ReadonlySet<number>[] {
  const strides = made.parameters
    .find(({ value }) => value === op.operands.ref)
    ?.strides?.map((each) => evaluateSize(each, dimensions));
  const indices = op.operands.offsets.map((offset, axis) => {
    const first = evaluated(offset, definitions, values);
    // An index wraps around where it is added to; the elements of a window do as well, as far as anybody could say.
    return Array.from({ length: Number(op.attributes.sizes[axis]) }, (_, at) =>
      strides === undefined ? (first + at) | 0 : first + at,
    );
  });
  if (strides === undefined) return indices.map((along) => new Set(along));
  let places = [0];
  for (const [axis, along] of indices.entries()) {
    const by = strides[axis] ?? 1;
    places = places.flatMap((place) => along.map((index) => place + index * by));
  }
  return [new Set(places)];
}

/** Whether two windows have an element in common: one of the same place, or of the same index along every axis. */
function haveCommon(
  left: readonly ReadonlySet<number>[],
  right: readonly ReadonlySet<number>[],
): boolean {
  return left.every((along, axis) => [...along].some((index) => right[axis]?.has(index)));
}

/** Values for everything that is not computed: small ones, and some at the edges of what an integer can be. */
function randomGiven(made: Kernel, random: Random): Given {
  const edges = [2 ** 31 - 1, -(2 ** 31), 2 ** 30, -1];
  const integer = (): number =>
    random.below(4) === 0 ? (edges[random.below(edges.length)] ?? 0) : random.below(9) - 4;
  const values = new Map(made.parameters.map(({ value }) => [value, integer()]));
  walkOps(made.body, (op) => {
    if (op.kind === "block_index")
      for (const result of op.results) values.set(result, random.below(4));
  });
  return { values, dimensions: new Map([["stride", 1 + random.below(8)]]) };
}

test("no window that is said to lie apart from another has an element of it", () => {
  const counts = { apart: 0, tried: 0, met: 0 };
  const wrong: string[] = [];
  for (let seed = 0; seed < kernels; seed += 1) {
    const random = new Random(seed);
    const made = randomWindows(random);
    const windows: Op<"slice_ref">[] = [];
    walkOps(made.body, (op) => {
      if (op.kind === "slice_ref") windows.push(op);
    });
    const definitions = definingOps(made.body);
    const [summed, tried] = [
      new SummedBoxes(made, definitions),
      new SampledBoxes(made, definitions),
    ];
    const givens = Array.from({ length: 24 }, () => randomGiven(made, random));
    const elements = windows.map((op) =>
      givens.map((given) => elementsOf(op, made, definitions, given)),
    );
    windows.forEach((left, first) => {
      windows.slice(0, first).forEach((right, second) => {
        const [one, other] = [left, right].map(({ results: [result] }) => result ?? expect.fail());
        if (one === undefined || other === undefined) return;
        const decided = both(summed.of(one), summed.of(other));
        const verified = both(tried.of(one), tried.of(other));
        const meets = givens.some((_, index) =>
          haveCommon(elements[first]?.[index] ?? [], elements[second]?.[index] ?? []),
        );
        if ((decided && !verified) || (verified && meets))
          wrong.push(`seed ${seed}, windows ${first} and ${second}`);
        counts.apart += Number(decided);
        counts.tried += Number(verified);
        counts.met += Number(meets);
      });
    });
  }
  expect(wrong).toEqual([]);
  // As many as show that neither says the same of all.
  expect(counts.apart).toBeGreaterThan(500);
  expect(counts.tried).toBeGreaterThanOrEqual(counts.apart);
  expect(counts.met).toBeGreaterThan(1000);
});

function both<B extends { isApart(other: B): boolean }>(left?: B, right?: B): boolean {
  return left !== undefined && right !== undefined && left.isApart(right);
}

test("elements narrower than a byte lie in no box", () => {
  const { kernel: made } = kernel(
    { name: "narrow", grid: { i: 4 }, inouts: { out: tensor(i4, [64]) } },
    ({ i, out }) => {
      out.at(slice(i.mul(8), 4)).store(zeros(i4, [4]));
    },
  );
  walkOps(made.body, (op) => {
    if (op.kind === "slice_ref")
      expect(
        new SampledBoxes(made, definingOps(made.body)).of(op.results[0] ?? expect.fail()),
      ).toBe(undefined);
  });
});

/** Stores and loads of windows of 128 elements, some of which overlap; a block keeps to 1024 elements of its own. */
function randomAccesses(random: Random) {
  return kernel(
    {
      name: "accesses",
      grid: { i: 4 },
      inputs: { p: scalar(i32) },
      inouts: { out: tensor(f32, [4096]) },
    },
    ({ i, p, out }) => {
      let last = iota(f32, [128], { axis: 0 });
      for (let count = 0; count < 5; count += 1) {
        const base = random.below(3) === 0 ? i.mul(1024).add(p.mul(64)) : i.mul(1024);
        const window = out.at(slice(base.add(64 * random.below(8) + random.below(2)), 128));
        if (random.below(3) === 0) last = last.add(window.load());
        else window.store(last.mul(2).add(count));
      }
    },
  );
}

test("windows that are stored and loaded without a barrier between them race on no emulator", async () => {
  const [simulator, emulator] = [await open("simulator"), await open("emulator")];
  for (let seed = 0; seed < 30; seed += 1) {
    const made = randomAccesses(new Random(seed));
    const given = { p: 1 + (seed % 3), out: full(4096) };
    const [expected, found] = [
      await simulator.run(made, given),
      await emulator.run(made, given),
    ].map(({ out }) => [...toNumbers(out)]);
    expect(found, `seed ${seed}`).toEqual(expected);
  }
  simulator.dispose();
  emulator.dispose();
});

function full(count: number): HostArray<"f32"> {
  return fromNumbers(
    f32,
    [count],
    Array.from({ length: count }, (_, index) => index % 7),
  );
}

/** Stores two windows, the second of which begins in the last element of the first. */
function overlapping(): Kernel {
  return kernel(
    { name: "overlapping", grid: { i: 4 }, inouts: { out: tensor(f32, [dim("n")]) } },
    ({ i, out }) => {
      out.at(slice(i.mul(256), 128)).store(zeros(f32, [128]));
      out.at(slice(i.mul(256).add(127), 128)).store(zeros(f32, [128]));
    },
  ).kernel;
}

test("windows that are wrongly decided to lie apart are refused", () => {
  const traced = overlapping();
  const decides = vi.spyOn(SummedBoxes.prototype, "of");
  decides.mockReturnValue({ isApart: () => true } as unknown as ReturnType<SummedBoxes["of"]>);
  try {
    expect(() => place(traced, targets.sm_90a)).toThrow("other lanes may have written out before");
  } finally {
    decides.mockRestore();
  }
});

test("a kernel without the barrier between windows that meet is not accepted", () => {
  const traced = overlapping();
  const { kernel: placed } = place(traced, targets.sm_90a);
  const ops = placed.body.ops.filter(({ kind }) => kind !== "lane_barrier");
  expect(ops).toHaveLength(placed.body.ops.length - 1);
  expect(() => {
    verifyBarriers({ ...placed, body: { ...placed.body, ops } });
  }).toThrow("other lanes may have written out before");
});
