import { expect, test } from "vitest";
import { testMistakes, trace, wrong } from "../../test/language.ts";
import type { Mistake } from "../../test/language.ts";
import { listFiles, readText } from "../../test/source-files.ts";
import { languageCodes } from "../support/diagnostic-codes/language.ts";
import { pipelineCodes } from "../support/diagnostic-codes/pipelines.ts";
import { bf16, f32, i32, i64, i8 } from "../formats/dtype.ts";
import {
  accumulator,
  tensor,
  cdiv,
  constant,
  dim,
  gmem,
  iota,
  kernel,
  loop,
  reduceWith,
  scalar,
  scoped,
  semaphore,
  smem,
  threadIndex,
  union,
  zeros,
} from "./index.ts";

const n = dim("n");

const specifications: readonly Mistake[] = [
  {
    name: "grid as a function",
    code: "TW1034",
    make: () => kernel({ name: "k", grid: wrong(() => [8]) }, () => undefined), // <- here
    message: "grid of a kernel cannot be a function",
    remedy: "give the object itself, not a function that makes it",
  },
  {
    name: "threads that are no list",
    code: "TW1034",
    make: () => kernel({ name: "k", threads: wrong("load") }, () => undefined), // <- here
    message: 'threads of a kernel cannot be the text "load"',
  },
  {
    name: "body that nests without end",
    code: "TW1035",
    make: () => {
      const nest = (): void => {
        loop(2, nest);
      };
      kernel({ name: "k" }, nest); // <- here
    },
    message: "tracing kernel k ran out of stack",
  },
  {
    name: "kernel with a space in its name",
    code: "TW1020",
    make: () => kernel({ name: "my kernel" }, () => undefined), // <- here
    message: 'the text "my kernel" cannot name a kernel',
  },
  {
    name: "nameless kernel",
    code: "TW1020",
    make: () => kernel({ name: "" }, () => undefined), // <- here
  },
  {
    name: "input that starts with a digit",
    code: "TW1020",
    make: () => kernel({ name: "k", inputs: { "2x": scalar(f32) } }, () => undefined), // <- here
    message: 'the text "2x" cannot name an input',
  },
  {
    name: "dimension without a name",
    code: "TW1020",
    make: () => dim(""), // <- here
  },
  {
    name: "axis and input of one name",
    code: "TW1021",
    make: () => kernel({ name: "k", grid: { x: 4 }, inputs: { x: scalar(f32) } }, () => 0), // <- here
    message: "x names both a grid axis and an input",
  },
  {
    name: "two threads of one name",
    code: "TW1021",
    make: () => kernel({ name: "k", threads: ["a", "a"] }, () => undefined), // <- here
    message: "a names a program thread twice",
  },
  {
    name: "two members of one name",
    code: "TW1021",
    make: () => union({ a: smem(f32, [4]) }, { a: smem(f32, [8]) }), // <- here
    message: "a names members of group 0 and of group 1",
  },
  {
    name: "unknown name in the body",
    code: "TW1022",
    make: () =>
      kernel({ name: "k", inputs: { x: scalar(f32) } }, (argument) => {
        const { y } = wrong(argument) as { readonly y: unknown }; // <- here
        return y;
      }),
    message: "kernel k has nothing called y",
    expected: "one of x",
  },
  {
    name: "grid without blocks",
    code: "TW1023",
    make: () => kernel({ name: "k", grid: { i: 0 } }, () => undefined), // <- here
    message: "the grid cannot have 0 blocks along i",
  },
  {
    name: "grid of a fraction",
    code: "TW1023",
    make: () => kernel({ name: "k", grid: { i: 100 / 64 } }, () => undefined), // <- here
    remedy: "use `cdiv(size, block)`",
  },
  {
    name: "cluster of its own without blocks",
    code: "TW1024",
    make: () => kernel({ name: "k", grid: { i: 4 }, cluster: { c: 0.5 } }, () => 0), // <- here
    message: "a cluster cannot have 0.5 blocks along c",
  },
  {
    name: "cluster axis with the name of a thread",
    code: "TW1021",
    make: () => kernel({ name: "k", cluster: { c: 2 }, threads: ["c", "d"] }, () => 0), // <- here
    message: "c names both a cluster axis and a program thread",
  },
  {
    name: "cluster that does not divide the grid",
    code: "TW1024",
    make: () => kernel({ name: "k", grid: { i: 7 }, cluster: { i: 2 } }, () => undefined), // <- here
    expected: "a divisor of 7",
  },
  {
    name: "cluster of no blocks",
    code: "TW1024",
    make: () => kernel({ name: "k", grid: { i: 4 }, cluster: { i: 0 } }, () => undefined), // <- here
  },
  {
    name: "no threads",
    code: "TW1025",
    make: () => kernel({ name: "k", threads: [] }, () => undefined), // <- here
  },
  {
    name: "nine threads",
    code: "TW1025",
    make: () => kernel({ name: "k", threads: [..."abcdefghi"] }, () => undefined), // <- here
    expected: "1 to 8, each being 128 threads",
  },
  {
    name: "three threads of sixteen warps",
    code: "TW1025",
    make: () => kernel({ name: "k", warps: 16, threads: ["a", "b", "c"] }, () => undefined), // <- here
    expected: "1 to 2, each being 512 threads",
  },
  {
    name: "a combining function that loses a tile",
    code: "TW1038",
    make: () =>
      kernel({ name: "k", inputs: { x: tensor(f32, [4, 4]) } }, ({ x }) => {
        const tile = x.load();
        reduceWith([tile, tile], ([a]) => [a] as never, { axis: 0, identity: [0, 0] }); // <- here
      }),
  },
  {
    name: "six warps",
    code: "TW1037",
    make: () => kernel({ name: "k", warps: 6 }, () => undefined), // <- here
    expected: "one of 1, 2, 4, 8, 16, 32",
  },
  {
    name: "no blocks on a processor",
    code: "TW1008",
    make: () => kernel({ name: "k", minBlocksPerMultiprocessor: 0 }, () => undefined), // <- here
    expected: "a whole number from 1 to 32",
  },
  {
    name: "thread within a thread",
    code: "TW1026",
    make: () =>
      kernel({ name: "k", threads: ["a", "b"] }, ({ a, b }) => {
        a(() => {
          b(() => undefined); // <- here
        });
      }),
    message: "code of thread b stands within code of thread a",
  },
  {
    name: "division by 0",
    code: "TW1027",
    make: () => cdiv(n, 0), // <- here
  },
  {
    name: "division of no size",
    code: "TW1027",
    make: () => cdiv(wrong("n"), 4), // <- here
    found: 'the text "n"',
  },
  {
    name: "multiple of a fraction",
    code: "TW1027",
    make: () => dim("n", { multipleOf: 0.5 }), // <- here
    message: "dimension n cannot be a multiple of 0.5",
  },
  {
    name: "dimension with two promises",
    code: "TW1028",
    make: () => {
      const inputs = { x: tensor(f32, [n]), y: tensor(f32, [dim("n", { multipleOf: 8 })]) };
      return kernel({ name: "k", inputs }, () => undefined); // <- here
    },
    message: "dimension n is said to be a multiple of 1 and of 8",
  },
  {
    name: "array without elements",
    code: "TW1029",
    make: () => tensor(f32, [n, 0]), // <- here
    message: "an array has a shape that is not a list of sizes",
    found: "[n, 0]",
  },
  {
    name: "number for the shape of an array",
    code: "TW1029",
    make: () => tensor(f32, wrong(64)), // <- here
    found: "64",
  },
  {
    name: "shared memory of a fraction",
    code: "TW1029",
    make: () => smem(f32, [2.5]), // <- here
    message: "smem has a shape that is not a list of sizes",
  },
  {
    name: "a semaphore that is restored in words",
    code: "TW1008",
    make: () => semaphore([1], wrong({ restored: "yes" })), // <- here
    expected: "true or false",
  },
  {
    name: "negative extent of a semaphore",
    code: "TW1029",
    make: () => semaphore([-1]), // <- here
  },
  {
    name: "too few strides",
    code: "TW1030",
    make: () => tensor(bf16, [n, 64], { strides: [64] }), // <- here
    message: "strides do not fit an array of shape [n, 64]",
    expected: "2 positive strides",
    found: "[64]",
  },
  {
    name: "stride of 0",
    code: "TW1030",
    make: () => tensor(i8, [4, 64], { strides: [0, 1] }), // <- here
  },
  {
    name: "scalar as an output",
    code: "TW1031",
    make: () => kernel({ name: "k", outputs: { y: wrong(scalar(f32)) } }, () => 0), // <- here
    message: "y cannot be an output",
    found: "scalar(…)",
    remedy: "a single result is `tensor(dtype, [1])`",
  },
  {
    name: "shared memory as an input",
    code: "TW1031",
    make: () => kernel({ name: "k", inputs: { x: wrong(smem(f32, [4])) } }, () => 0), // <- here
    found: "smem(…)",
  },
  {
    name: "array as scratch",
    code: "TW1031",
    make: () => kernel({ name: "k", scratch: { s: wrong(tensor(f32, [4])) } }, () => 0), // <- here
    expected: "smem(…), gmem(…), tmem(…), barrier(…), clusterBarrier(…), semaphore(…), union(…)",
  },
  {
    name: "global memory in scoped",
    code: "TW1031",
    make: () =>
      trace(() => {
        scoped({ buffer: wrong(gmem(f32, [4])) }, () => undefined); // <- here
      }),
    message: "buffer cannot be allocated by scoped",
    found: "gmem(…)",
  },
  {
    name: "global memory in a union",
    code: "TW1031",
    make: () => union({ a: wrong(gmem(f32, [4])) }), // <- here
  },
];

testMistakes("specifications", specifications);

const elsewhere: readonly Mistake[] = [
  {
    name: "operands of different dtypes",
    code: "TW2003",
    make: () => trace(({ row }) => row.add(wrong(zeros(bf16, [64])))), // <- here
  },
  {
    name: "size beside a float",
    code: "TW2003",
    make: () =>
      kernel({ name: "k", inputs: { x: tensor(f32, [n]) } }, () => {
        constant(f32, 1).add(wrong(n)); // <- here
      }),
    found: "i32, the size n",
    remedy: "write constant(f32, n)",
  },
  {
    name: "dimension that the kernel does not have",
    code: "TW2011",
    make: () => trace(({ x }) => x.at(dim("m"))), // <- here
  },
  {
    name: "store of another shape",
    code: "TW2043",
    make: () =>
      trace(({ shared, row }) => {
        shared.at(0).store(row.reshape([8, 8])); // <- here
      }),
  },
  {
    name: "load of an extent known at launch",
    code: "TW2040",
    make: () =>
      kernel({ name: "k", inputs: { x: tensor(f32, [n]) } }, ({ x }) => {
        x.load(); // <- here
      }),
  },
  {
    name: "shared memory of an extent known at launch",
    code: "TW2041",
    make: () => {
      const buffer = smem(f32, wrong([n])); // <- here
      return kernel({ name: "k", inputs: { x: tensor(f32, [n]) }, scratch: { buffer } }, () => 0);
    },
  },
  {
    name: "function that the dtype does not have",
    code: "TW2005",
    make: () =>
      trace(() => {
        const counts = iota(i32, [4], { axis: 0 });
        // @ts-expect-error integers have no exponential
        counts.exp(); // <- here
      }),
  },
  {
    name: "index that is not i32",
    code: "TW2014",
    make: () => trace(({ x }) => x.at(wrong(constant(i64, 0)))), // <- here
  },
  {
    name: "accumulator never waited for",
    code: "TW2206",
    make: () => trace(() => accumulator(f32, [64, 64])), // <- here
  },
  {
    name: "thread index as a peer without a cluster",
    code: "TW2050",
    make: () => trace(({ shared }) => shared.peer(threadIndex())), // <- here
  },
];

testMistakes("what inference and the verifier see", elsewhere);

test("every code of the language has a test", () => {
  const files = [...listFiles("src/lang", /\.test\.ts$/), ...listFiles("test/features", /\.ts$/)];
  const tested = files.flatMap((file) =>
    [...readText(file).matchAll(/code: "(TW1\d{3})"/g)].map((match) => match[1]),
  );
  expect(new Set(tested)).toEqual(new Set(Object.keys({ ...languageCodes, ...pipelineCodes })));
});
