/** Mistakes with control flow: loops and carries, branches, regions, program threads, debugging. */
import {
  assert,
  blockSync,
  constant,
  debugBreak,
  debugPrint,
  f32,
  flip,
  gridSize,
  kernel,
  loop,
  scoped,
  gmem,
  smem,
  switchCase,
  warps,
  whileLoop,
  when,
  zeros,
  accumulator,
  bf16,
  i64,
} from "tilewright";
import type { Scalar, Tile } from "tilewright";
import { mistakeTable, program } from "./mistake.ts";

export const controlMistakes = mistakeTable(import.meta.url, [
  {
    name: "carry that changes its dtype",
    code: "TW1012",
    make: () =>
      program(({ tile }) => {
        // @ts-expect-error the carry is f32
        loop({ to: 4, carry: tile }, (_, sum) => sum.cast(bf16)); // <- carry that changes its dtype
      }),
    message: "carry: tile<f32, [8, 64]> became tile<bf16, [8, 64]>",
    expected: "tile<f32, [8, 64]>",
    found: "tile<bf16, [8, 64]>",
  },
  {
    name: "carry that changes its shape",
    code: "TW1012",
    make: () =>
      program(({ tile }) => {
        loop({ to: 4, carry: tile }, (_, sum) => sum.transpose()); // <- carry that changes its shape
      }),
    message: "carry: tile<f32, [8, 64]> became tile<f32, [64, 8]>",
  },
  {
    name: "carry with another name",
    code: "TW1012",
    make: () =>
      program(({ tile }) => {
        // @ts-expect-error the names differ
        loop({ to: 4, carry: { sum: tile } }, (_, { sum }) => ({ total: sum })); // <- carry with another name
      }),
    message: "carry.sum",
    found: "nothing",
  },
  {
    name: "carry that is not returned",
    code: "TW1012",
    make: () =>
      program(({ tile }) => {
        // @ts-expect-error the body returns nothing
        loop({ to: 4, carry: tile }, (_, sum) => void sum.add(1)); // <- carry that is not returned
      }),
    message: "carry: tile<f32, [8, 64]> became nothing",
  },
  {
    name: "number for a carry",
    code: "TW1009",
    make: () =>
      program(() => {
        // @ts-expect-error a number has no dtype
        loop({ to: 4, carry: 0 }, (_, sum) => sum); // <- number for a carry
      }),
    message: "carry is a plain JavaScript value and has no dtype",
    remedy: "write constant(dtype, 0)",
  },
  {
    name: "window for a carry",
    code: "TW1008",
    make: () =>
      program(({ x }) => {
        // @ts-expect-error memory cannot be carried
        loop({ to: 4, carry: x }, (_, ref) => ref); // <- window for a carry
      }),
    message: "carry must be a tile, a scalar or an accumulator",
    found: "ref<gmem, f32, [8, 64]>",
  },
  {
    name: "loop that stands still",
    code: "TW1014",
    make: () =>
      program(() => {
        loop({ to: 8, step: 0 }, () => undefined); // <- loop that stands still
      }),
    message: "a loop cannot count by 0",
    expected: "a positive whole number",
  },
  {
    name: "loop that counts down",
    code: "TW1014",
    make: () =>
      program(() => {
        loop({ from: 8, to: 0, step: -1 }, () => undefined); // <- loop that counts down
      }),
    message: "a loop cannot count by -1",
    remedy: "to count down, compute the index",
  },
  {
    name: "loop to a float",
    code: "TW2090",
    make: () =>
      program(({ factor }) => {
        // @ts-expect-error a loop counts in i32
        loop(factor, () => undefined); // <- loop to a float
      }),
    message: "bounds of a loop must be scalars of one type, i32 or i64",
    found: "end of f32",
    remedy: "cast the bounds to i32",
  },
  {
    name: "loop without its body",
    code: "TW1008",
    make: () =>
      program(() => {
        // @ts-expect-error a loop has a body
        loop(4); // <- loop without its body
      }),
    message: "the body of loop must be a function",
    found: "undefined",
  },
  {
    name: "condition that is a tile",
    code: "TW1008",
    make: () =>
      program(({ tile }) => {
        // @ts-expect-error a branch needs one bool
        when(tile.gt(0), () => undefined); // <- condition that is a tile
      }),
    message: "the condition of when must be a bool scalar",
    found: "tile<bool, [8, 64]>",
    remedy: "all() or any()",
  },
  {
    name: "condition that JavaScript decided",
    code: "TW1008",
    make: () =>
      program(({ tile }) => {
        // @ts-expect-error JavaScript's own if does it
        when(tile.shape.length === 2, () => undefined); // <- condition that JavaScript decided
      }),
    found: "true",
    remedy: "JavaScript's own if",
  },
  {
    name: "branches of different types",
    code: "TW1012",
    make: () =>
      program(({ i, factor }) => {
        const [first, second] = [() => factor, () => i];
        // @ts-expect-error the first branch gives f32
        when(i.eq(0), first, second); // <- branches of different types
      }),
    message: "result differs between the branches: f32 and, in the second branch of when, i32",
  },
  {
    name: "result of one branch",
    code: "TW1013",
    make: () =>
      program(({ i, tile }) => {
        // @ts-expect-error one branch gives nothing
        when(i.eq(0), () => tile.add(1)); // <- result of one branch
      }),
    expected: "a second branch that gives the same",
    remedy: "put braces around the first",
  },
  {
    name: "cases of different shapes",
    code: "TW1012",
    make: () =>
      program(({ i, tile }) => {
        switchCase(i, [() => tile, () => tile.transpose()]); // <- cases of different shapes
      }),
    message: "case 1 of switchCase",
  },
  {
    name: "switch without cases",
    code: "TW1008",
    make: () =>
      program(({ i }) => {
        switchCase(i, []); // <- switch without cases
      }),
    message: "the cases of switchCase must be a list of at least one function",
  },
  {
    name: "while condition that counts",
    code: "TW1008",
    make: () =>
      program(({ i }) => {
        const next = (left: Scalar<"i32">) => left.sub(1);
        // @ts-expect-error the condition is no bool
        whileLoop(i, next, next); // <- while condition that counts
      }),
    message: "the condition of whileLoop must be a bool scalar",
    found: "i32",
  },
  {
    name: "tile that leaks out of a loop",
    code: "TW1004",
    make: () =>
      program(({ x, out }) => {
        let last: Tile<"f32"> | undefined;
        loop(8, (k) => {
          last = x.at(k).load();
        });
        if (last !== undefined) out.store(last); // <- tile that leaks out of a loop
      }),
    message: "tile<f32, [64]> was used outside the body of loop, in which it was made",
    remedy: "carry",
    notes: ["the value is made here"],
  },
  {
    name: "tile that leaks out of a branch",
    code: "TW1004",
    make: () =>
      program(({ i, x, out }) => {
        let row: Tile<"f32"> = zeros(f32, [64]);
        when(i.eq(0), () => {
          row = x.at(0).load();
        });
        out.at(0).store(row); // <- tile that leaks out of a branch
      }),
    message: "was used outside the first branch of when",
    remedy: "the result of the branch",
  },
  {
    name: "buffer that leaks out of its scope",
    code: "TW1008",
    make: () =>
      program(() => {
        scoped({ buffer: smem(f32, [64]) }, ({ buffer }) => buffer); // <- buffer that leaks out of its scope
      }),
    found: "ref<smem, f32, [64]>",
  },
  {
    name: "scoped global memory",
    code: "TW1031",
    make: () =>
      program(() => {
        // @ts-expect-error global memory is the kernel's
        scoped({ kept: gmem(f32, [64]) }, () => undefined); // <- scoped global memory
      }),
    message: "kept cannot be allocated by scoped",
    expected: "smem(…), tmem(…), barrier(…), clusterBarrier(…), semaphore(…) or union(…)",
    found: "gmem(…)",
  },
  {
    name: "asynchronous kernel",
    code: "TW1005",
    make: () => kernel({ name: "patient" }, async () => Promise.resolve()), // <- asynchronous kernel
    message: "the body of kernel patient is an asynchronous function",
    found: "a promise",
  },
  {
    name: "asynchronous loop",
    code: "TW1005",
    make: () =>
      program(() => {
        loop(4, (async () => Promise.resolve()) as () => void); // <- asynchronous loop
      }),
    message: "the body of loop is an asynchronous function",
  },
  {
    name: "thread within a thread",
    code: "TW1026",
    make: () =>
      kernel({ name: "nested", threads: ["load", "compute"] }, ({ load, compute }) => {
        load(() => {
          compute(() => undefined); // <- thread within a thread
        });
      }),
    message: "code of thread compute stands within code of thread load",
  },
  {
    name: "meeting that one thread misses",
    code: "TW2210",
    make: () =>
      kernel({ name: "lonely", threads: ["load", "compute"] }, ({ load }) => {
        load(() => {
          blockSync(); // <- meeting that one thread misses
        });
      }),
    message: "not all program threads reach blockSync",
    expected: "all of load, compute",
    found: "load",
  },
  {
    name: "meeting outside every kernel",
    code: "TW1002",
    make: () => {
      blockSync(); // <- meeting outside every kernel
    },
    message: "blockSync was used outside a kernel's body",
  },
  {
    name: "size of an unknown axis",
    code: "TW2010",
    make: () =>
      program(() => {
        gridSize("j"); // <- size of an unknown axis
      }),
    message: "the grid has no axis j",
    expected: "one of i",
  },
  {
    name: "meeting in warp code",
    code: "TW2209",
    make: () =>
      program(() => {
        warps(() => {
          blockSync(); // <- meeting in warp code
        });
      }),
    message: "blockSync needs the whole program thread, not one warp",
  },
  {
    name: "warps within warps",
    code: "TW2209",
    make: () =>
      program(() => {
        warps(() => {
          warps(() => undefined); // <- warps within warps
        });
      }),
    message: "warps needs the whole program thread",
  },
  {
    name: "tile turned around in warp code",
    code: "TW2209",
    make: () =>
      program(({ tile }) => {
        warps(() => {
          flip(tile, { axis: 0 }); // <- tile turned around in warp code
        });
      }),
    message: "flip needs the whole program thread, not one warp",
    notes: ["the warps split up here"],
  },
  {
    name: "tensor cores in warp code",
    code: "TW2209",
    make: () =>
      program(() => {
        warps(() => {
          accumulator(f32, [64, 8]).wait(); // <- tensor cores in warp code
        });
      }),
    message: "accumulator needs the whole program thread",
  },
  {
    name: "too few values to print",
    code: "TW2101",
    make: () =>
      program(({ i }) => {
        debugPrint("block {} of {}", i); // <- too few values to print
      }),
    expected: '2 values for "block {} of {}"',
    found: "1 value",
    remedy: "one {} for each value",
  },
  {
    name: "number to print",
    code: "TW1008",
    make: () =>
      program(() => {
        // @ts-expect-error a plain number goes into the text
        debugPrint("{}", 3); // <- number to print
      }),
    message: "a value of debugPrint must be a tile or a scalar",
    found: "3",
  },
  {
    name: "tile for the text to print",
    code: "TW1008",
    make: () =>
      program(({ tile }) => {
        // @ts-expect-error the text comes first
        debugPrint(tile); // <- tile for the text to print
      }),
    message: "the first argument of debugPrint must be a text",
    found: "tile<f32, [8, 64]>",
    remedy: 'debugPrint("value {}", value)',
  },
  {
    name: "assertion without a message",
    code: "TW1008",
    make: () =>
      program(({ i }) => {
        // @ts-expect-error the message says what is wrong
        assert(i.lt(3)); // <- assertion without a message
      }),
    message: "the message of assert must be a text",
    found: "undefined",
  },
  {
    name: "breakpoint on a tile",
    code: "TW1008",
    make: () =>
      program(({ tile }) => {
        // @ts-expect-error values have names
        debugBreak(tile); // <- breakpoint on a tile
      }),
    message: "what debugBreak takes must be an object of values by name",
    remedy: "debugBreak({ value })",
  },
  {
    name: "assertion of a number",
    code: "TW2006",
    make: () =>
      program(({ i }) => {
        // @ts-expect-error i is no bool
        assert(i, "i is not 0"); // <- assertion of a number
      }),
    message: "the condition of assert must be bool",
  },
  {
    name: "loop to an i64",
    code: "TW2090",
    make: () =>
      program(() => {
        // @ts-expect-error a loop counts in i32
        loop(constant(i64, 4n), () => undefined); // <- loop to an i64
      }),
    found: "end of i64",
  },
]);
