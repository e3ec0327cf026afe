/** Mistakes in what a kernel is made of: names, grid, clusters, threads, dimensions, arguments. */
import { tensor, bf16, cdiv, dim, f32, gmem, kernel, scalar, smem, union } from "tilewright";
import { mistakeTable } from "./mistake.ts";

const nothing = (): void => undefined;

export const specificationMistakes = mistakeTable(import.meta.url, [
  {
    name: "kernel named with a space",
    code: "TW1020",
    make: () => kernel({ name: "my kernel" }, nothing), // <- kernel named with a space
    message: 'the text "my kernel" cannot name a kernel',
    expected: "letters, digits and _",
  },
  {
    name: "dimension named by a number",
    code: "TW1020",
    make: () => dim("2n"), // <- dimension named by a number
    message: 'the text "2n" cannot name a dimension',
  },
  {
    name: "axis and input of one name",
    code: "TW1021",
    make: () => kernel({ name: "clash", grid: { x: 4 }, inputs: { x: tensor(f32, [4]) } }, nothing), // <- axis and input of one name
    message: "x names both a grid axis and an input",
    remedy: "rename one of them",
  },
  {
    name: "two threads of one name",
    code: "TW1021",
    make: () => kernel({ name: "twins", threads: ["load", "load"] }, nothing), // <- two threads of one name
    message: "load names a program thread twice",
  },
  {
    name: "name that is not declared",
    code: "TW1022",
    make: () =>
      kernel({ name: "typo", inputs: { x: tensor(f32, [4]) } }, (things) => {
        const { y } = things as unknown as { y: unknown }; // <- name that is not declared
        return y;
      }),
    message: "kernel typo has nothing called y",
    expected: "one of x",
  },
  {
    name: "fraction of a block",
    code: "TW1023",
    make: () => kernel({ name: "part", grid: { i: 100 / 64 } }, nothing), // <- fraction of a block
    message: "the grid cannot have 1.5625 blocks along i",
    remedy: "cdiv(size, block)",
  },
  {
    name: "grid without blocks",
    code: "TW1023",
    make: () => kernel({ name: "none", grid: { i: 0 } }, nothing), // <- grid without blocks
    message: "the grid cannot have 0 blocks along i",
  },
  {
    name: "cluster axis and thread of one name",
    code: "TW1021",
    make: () => kernel({ name: "lost", cluster: { c: 2 }, threads: ["c"] }, nothing), // <- cluster axis and thread of one name
    message: "c names both a cluster axis and a program thread",
    expected: "a name for each thing",
  },
  {
    name: "cluster that leaves blocks over",
    code: "TW1024",
    make: () => kernel({ name: "odd", grid: { i: 7 }, cluster: { i: 2 } }, nothing), // <- cluster that leaves blocks over
    message: "clusters of 2 blocks do not divide the 7 blocks along i",
    expected: "a divisor of 7",
  },
  {
    name: "cluster of 32 blocks",
    code: "TW2216",
    make: () => kernel({ name: "huge", grid: { i: 32 }, cluster: { i: 32 } }, nothing), // <- cluster of 32 blocks
    message: "the clusters of huge are too large",
    expected: "at most 16 blocks",
  },
  {
    name: "nine threads",
    code: "TW1025",
    make: () => kernel({ name: "many", threads: [..."abcdefghi"] }, nothing), // <- nine threads
    message: "a block cannot have 9 program threads",
    expected: "1 to 8, each being 128 threads",
  },
  {
    name: "no threads",
    code: "TW1025",
    make: () => kernel({ name: "few", threads: [] }, nothing), // <- no threads
    message: "a block cannot have 0 program threads",
  },
  {
    name: "multiple of nothing",
    code: "TW1027",
    make: () => dim("n", { multipleOf: 0 }), // <- multiple of nothing
    message: "dimension n cannot be a multiple of 0",
  },
  {
    name: "blocks of no elements",
    code: "TW1027",
    make: () => cdiv(dim("n"), 0), // <- blocks of no elements
    message: "cdiv takes a size and a positive whole number",
    found: "0",
  },
  {
    name: "dimension with two promises",
    code: "TW1028",
    make: () => {
      const shape = [dim("n"), dim("n", { multipleOf: 8 })];
      return kernel({ name: "torn", inputs: { x: tensor(f32, shape) } }, nothing); // <- dimension with two promises
    },
    message: "dimension n is said to be a multiple of 1 and of 8",
    remedy: "make the dimension once",
  },
  {
    name: "array of no elements",
    code: "TW1029",
    make: () => tensor(f32, [0]), // <- array of no elements
    message: "an array has a shape that is not a list of sizes",
    found: "[0]",
  },
  {
    name: "length for a shape",
    code: "TW1029",
    // @ts-expect-error a shape is a list
    make: () => smem(f32, 64), // <- length for a shape
    message: "smem has a shape that is not a list of sizes",
    found: "64",
  },
  {
    name: "text for a dtype",
    code: "TW1008",
    // @ts-expect-error a dtype is an object
    make: () => tensor("f32", [64]), // <- text for a dtype
    message: "a dtype must be one of the number formats, such as f32",
    found: 'the text "f32"',
  },
  {
    name: "stride for one of two axes",
    code: "TW1030",
    make: () => tensor(f32, [8, 64], { strides: [64] }), // <- stride for one of two axes
    message: "strides do not fit an array of shape [8, 64]",
    expected: "2 positive strides",
    found: "[64]",
  },
  {
    name: "negative stride",
    code: "TW1030",
    make: () => tensor(f32, [8], { strides: [-1] }), // <- negative stride
    found: "[-1]",
  },
  {
    name: "scalar for an output",
    code: "TW1031",
    make: () =>
      // @ts-expect-error outputs are arrays
      kernel({ name: "total", outputs: { sum: scalar(f32) } }, nothing), // <- scalar for an output
    message: "sum cannot be an output",
    expected: "tensor(…)",
    found: "scalar(…)",
    remedy: "tensor(dtype, [1])",
  },
  {
    name: "array for scratch",
    code: "TW1031",
    make: () =>
      // @ts-expect-error scratch is smem or gmem
      kernel({ name: "space", scratch: { buffer: tensor(f32, [64]) } }, nothing), // <- array for scratch
    message: "buffer cannot be scratch",
    expected: "smem(…), gmem(…)",
  },
  {
    name: "global memory in a union",
    code: "TW1031",
    // @ts-expect-error members are shared memory
    make: () => union({ a: smem(f32, [8]) }, { b: gmem(f32, [8]) }), // <- global memory in a union
    message: "member b of a union lies in another memory",
    found: "gmem(…)",
  },
  {
    name: "two members of one name",
    code: "TW1021",
    make: () => union({ a: smem(f32, [8]) }, { a: smem(bf16, [8]) }), // <- two members of one name
    message: "a names members of group 0 and of group 1",
  },
  {
    name: "union of nothing",
    code: "TW1008",
    make: () => union(), // <- union of nothing
    message: "a union must be groups with members",
  },
  {
    name: "scratch of an unknown extent",
    code: "TW2011",
    make: () =>
      kernel({ name: "sums", inputs: { x: tensor(f32, [dim("n")]) } }, ({ x }) => {
        x.reshape([dim("m")]); // <- scratch of an unknown extent
      }),
    message: "the kernel has no dimension m",
    expected: "one of n",
  },
]);
