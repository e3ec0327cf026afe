import { describe, expect, test } from "vitest";
import {
  context,
  here,
  n,
  op,
  region,
  scalar,
  testMistakes,
  value,
} from "../../../test/ir-fixtures.ts";
import type { Mistake } from "../../../test/ir-fixtures.ts";
import { empty, header, kernelOf, stop, there } from "../../../test/ir-kernels.ts";
import { f32, i32 } from "../../formats/dtype.ts";
import { verifierCodes } from "../../support/diagnostic-codes/ir/verifier.ts";
import { Builder } from "../builder.ts";
import type { Kernel, KernelParameter } from "../node.ts";
import { dimension } from "../size.ts";
import { refType, scalarType } from "../types.ts";
import type { Type } from "../types.ts";
import { verifyKernel, verifyModule } from "./index.ts";

/** Verifies a kernel whose header is changed. */
function verifyHeader(changes: Partial<Kernel>): void {
  verifyKernel(kernelOf(empty, changes));
}

describe("a kernel passes", () => {
  test("when it has everything", () => {
    const builder = new Builder(context);
    const parameters = builder.openRegion([refType("gmem", f32, [n, 64]), scalarType(i32)]);
    const [array, offset] = parameters;
    if (array === undefined || offset === undefined) throw new Error("two parameters");
    builder.add("alloc", {}, { space: "gmem", dtype: f32, shape: [n] }, {}, here);
    builder.add("alloc_semaphore", {}, { shape: [4] }, {}, here);
    builder.openRegion([]);
    builder.add("alloc", {}, { space: "smem", dtype: f32, shape: [64] }, {}, here);
    builder.add("alloc_barrier", {}, { count: 1, arrivals: 1 }, {}, here);
    builder.openRegion([]);
    builder.add("block_sync", {}, {}, {}, here);
    const everyone = builder.closeRegion([], here);
    builder.add("on_threads", {}, { threads: [0, 1] }, { body: everyone }, here);
    const scope = builder.closeRegion([], here);
    builder.add("scoped", {}, {}, { body: scope }, here);
    const body = builder.closeRegion([], here);
    const kernel = kernelOf(body, {
      parameters: [
        { name: "x", role: "inout", value: array, strides: [64, 1] },
        { name: "offset", role: "scalar", value: offset },
      ],
    });
    expect(() => verifyModule({ kernels: [kernel] })).not.toThrow();
  });
});

function parameter(type: Type, changes: Partial<KernelParameter> = {}): Partial<Kernel> {
  const inner = value(type);
  return {
    parameters: [{ name: "x", role: "input", value: inner, ...changes }],
    body: region([inner], [stop]),
  };
}

const axis = { name: "i", extent: 8, cluster: 1 };

const mistakes: readonly Mistake[] = [
  {
    name: "body that yields",
    code: "TW2213",
    make: () => {
      const index = scalar(i32);
      const ops = [op("thread_index", {}, {}, {}, [index]), op("yield", { values: [index] }, {})];
      verifyHeader({ body: region([], ops) });
    },
    message: "the body of k yields values",
    found: "(i32)",
  },
  {
    name: "two kernels of one name",
    code: "TW2214",
    make: () => verifyModule({ kernels: [kernelOf(empty, { location: there }), kernelOf(empty)] }),
    message: "the module has two kernels k",
    notes: [["the first is here", there]],
  },
  {
    name: "two axes of one name",
    code: "TW2215",
    make: () => verifyHeader({ grid: [axis, axis] }),
    message: "the grid of k has two axes i",
  },
  {
    name: "grid without blocks",
    code: "TW2215",
    make: () => verifyHeader({ grid: [{ ...axis, extent: 0 }] }),
    message: "grid axis i of k has no blocks",
    found: "0",
  },
  {
    name: "grid of too many axes",
    code: "TW2215",
    make: () =>
      verifyHeader({ grid: Array.from({ length: 17 }, (_, at) => ({ ...axis, name: `i${at}` })) }),
    message: "the grid of k has too many axes",
    expected: "at most 16",
    found: "17",
  },
  {
    name: "cluster that does not divide the grid",
    code: "TW2216",
    make: () => verifyHeader({ grid: [{ ...axis, extent: 6, cluster: 4 }] }),
    message: "the cluster along i does not divide the grid",
    expected: "a divisor of 6",
  },
  {
    name: "cluster of no blocks",
    code: "TW2216",
    make: () => verifyHeader({ grid: [{ ...axis, cluster: 0 }] }),
    message: "the cluster along i has 0 blocks",
  },
  {
    name: "clusters that are too large",
    code: "TW2216",
    make: () =>
      verifyHeader({
        grid: [
          { ...axis, cluster: 8 },
          { ...axis, name: "j", cluster: 4 },
        ],
      }),
    message: "the clusters of k are too large",
    expected: "at most 16 blocks",
    found: "32 blocks",
  },
  {
    name: "no program threads",
    code: "TW2217",
    make: () => verifyHeader({ threads: [] }),
    message: "k has 0 program threads",
  },
  {
    name: "too many program threads",
    code: "TW2217",
    make: () => verifyHeader({ threads: Array.from({ length: 9 }, (_, at) => `t${at}`) }),
    message: "k has 9 program threads",
    expected: "1 to 8, of 128 threads each",
  },
  {
    name: "too many program threads of eight warps",
    code: "TW2217",
    make: () => verifyHeader({ warps: 8, threads: ["a", "b", "c", "d", "e"] }),
    message: "k has 5 program threads",
    expected: "1 to 4, of 256 threads each",
  },
  {
    name: "three warps",
    code: "TW2217",
    make: () => verifyHeader({ warps: 3 }),
    message: "the program threads of k have 3 warps",
    expected: "one of 1, 2, 4, 8, 16, 32",
  },
  {
    name: "two program threads of one name",
    code: "TW2217",
    make: () => verifyHeader({ threads: ["a", "b", "a"] }),
    message: "k has two program threads a",
  },
  {
    name: "array in shared memory",
    code: "TW2218",
    make: () => verifyHeader(parameter(refType("smem", f32, [4]))),
    message: "input parameter x of k has another type",
    expected: "a ref to gmem",
  },
  {
    name: "array as a scalar",
    code: "TW2218",
    make: () => verifyHeader(parameter(refType("gmem", f32, [4]), { role: "scalar" })),
    message: "scalar parameter x of k has another type",
  },
  {
    name: "strides of another rank",
    code: "TW2218",
    make: () => verifyHeader(parameter(refType("gmem", f32, [4, 4]), { strides: [4] })),
    message: "parameter x of k needs one stride for each axis",
    expected: "2 strides for [4, 4]",
    found: "[4]",
  },
  {
    name: "parameter that the body does not take",
    code: "TW2218",
    make: () => verifyHeader({ ...parameter(scalarType(i32), { role: "scalar" }), body: empty }),
    message: "the parameters of k are not those of its body",
  },
  {
    name: "two parameters of one name",
    code: "TW2218",
    make: () => {
      const x = scalar(i32);
      const parameters = [
        { name: "x", role: "scalar", value: x },
        { name: "x", role: "scalar", value: x },
      ] as const;
      verifyHeader({ parameters });
    },
    message: "k has two parameters x",
  },
  {
    name: "extent by a dimension that is not declared",
    code: "TW2011",
    make: () => verifyHeader(parameter(refType("gmem", f32, [dimension("m")]))),
    message: "k declares no dimension m",
  },
  {
    name: "grid by a dimension that is not declared",
    code: "TW2011",
    make: () => verifyHeader({ grid: [{ ...axis, extent: dimension("m") }] }),
    message: "k declares no dimension m",
  },
  {
    name: "dimension declared twice",
    code: "TW2219",
    make: () => verifyHeader({ dimensions: [n, n] }),
    message: "k declares dimension n twice",
  },
  {
    name: "dimension that is a multiple of zero",
    code: "TW2219",
    make: () => verifyHeader({ dimensions: [dimension("n", 0)] }),
    message: "dimension n cannot be a multiple of 0",
  },
  {
    name: "dimension with two divisors",
    code: "TW2219",
    make: () => verifyHeader(parameter(refType("gmem", f32, [dimension("n", 4)]))),
    message: "dimension n promises different divisors",
    expected: "a multiple of 8",
    found: "a multiple of 4",
  },
].map((mistake): Mistake => ({ at: header, ...mistake }) as Mistake);

describe("kernels and modules", () => testMistakes(mistakes));

test("every code of kernels and modules has a test", () => {
  const tested = new Set<string>(mistakes.map(({ code }) => code));
  const registered = Object.keys(verifierCodes).filter((code) => /^TW221[3-9]$/.test(code));
  expect(registered.filter((code) => !tested.has(code))).toEqual([]);
});
