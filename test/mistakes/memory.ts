/** Mistakes with memory: windows, loads and stores, atomic updates, peers. */
import {
  full,
  iota,
  all,
  tensor,
  constant,
  copyAsync,
  f32,
  i32,
  i64,
  kernel,
  scoped,
  slice,
  smem,
  waitForPreviousKernel,
  zeros,
} from "tilewright";
import type { Ref, Tile } from "tilewright";
import { mistakeTable, program } from "./mistake.ts";

/** A kernel of rows. */
function starting(body: (arrays: { readonly x: Ref<"f32">; readonly out: Ref<"f32"> }) => unknown) {
  const rows = tensor(f32, [4, 64]);
  return kernel(
    { name: "starting", inputs: { x: rows, whole: tensor(i32, [4]) }, outputs: { out: rows } },
    body,
  );
}

export const memoryMistakes = mistakeTable(import.meta.url, [
  {
    name: "index for an axis that is not there",
    code: "TW1017",
    make: () =>
      program(({ list, i }) => {
        list.at(i, 0); // <- index for an axis that is not there
      }),
    message: "2 indices for ref<gmem, f32, [n]>",
    expected: "at most 1",
    found: "2",
  },
  {
    name: "negative index",
    code: "TW1016",
    make: () =>
      program(({ x }) => {
        x.at(-1); // <- negative index
      }),
    message: "axis 0 of ref<gmem, f32, [8, 64]> has no element -1",
    expected: "0 to 7",
  },
  {
    name: "index at the extent",
    code: "TW1016",
    make: () =>
      program(({ x }) => {
        x.at(8); // <- index at the extent
      }),
    message: "has no element 8",
  },
  {
    name: "slice beyond shared memory",
    code: "TW1016",
    make: () =>
      program(({ shared }) => {
        shared.at(all, slice(32, 64)); // <- slice beyond shared memory
      }),
    message: "axis 1 of ref<smem, f32, [8, 64]> has no 64 elements from 32",
    expected: "start and size within 64 elements",
  },
  {
    name: "slice of no elements",
    code: "TW1008",
    make: () =>
      program(({ x }) => {
        x.at(slice(0, 0)); // <- slice of no elements
      }),
    message: "the size of a slice must be a positive whole number",
    found: "0",
    remedy: "give a positive whole number",
  },
  {
    name: "slice of traced size",
    code: "TW1008",
    make: () =>
      program(({ x, i }) => {
        // @ts-expect-error tile shapes are static
        x.at(slice(0, i)); // <- slice of traced size
      }),
    message: "the size of a slice must be a positive whole number",
    found: "i32",
  },
  {
    name: "tile of floats for indices",
    code: "TW2053",
    make: () =>
      program(({ x }) => {
        const rows: unknown = x.at(slice(0, 4), 0).load();
        x.at(rows as Tile<"i32">).load(); // <- tile of floats for indices
      }),
    message: "load is indexed by a tile of f32",
    found: "f32",
  },
  {
    name: "index tiles that do not fit together",
    code: "TW1010",
    make: () =>
      program(({ x, counts }) => {
        const [rows, columns] = [counts.at(0).load(), counts.at(slice(0, 3), 0).load()];
        x.at(rows, columns).load(); // <- index tiles that do not fit together
      }),
    message: "operands of at have shapes that do not fit together",
    found: "[3]",
  },
  {
    name: "mask of another shape",
    code: "TW2054",
    make: () =>
      program(({ x }) => {
        const tile = x.at(slice(0, 4)).load();
        x.at(slice(0, 8)).load({ where: tile.gt(0) }); // <- mask of another shape
      }),
    message: "the mask of load does not fit what is accessed",
    found: "[4, 64]",
  },
  {
    name: "mask without its name",
    code: "TW1008",
    make: () =>
      program(({ x, out }) => {
        const tile = x.at(slice(0, 8)).load();
        // @ts-expect-error the mask is an option
        out.at(slice(0, 8)).store(tile, tile.gt(0)); // <- mask without its name
      }),
    message: "the options of store must be { where }",
    found: "tile<bool, [8, 64]>",
  },
  {
    name: "end of a slice of shared memory",
    code: "TW1036",
    make: () =>
      program(({ shared, i }) => {
        shared.at(slice(0, 4, { end: i })); // <- end of a slice of shared memory
      }),
    message: "a slice of ref<smem, f32, [8, 64]> has an end of its own",
    found: "smem",
  },
  {
    name: "end of a slice that is no position",
    code: "TW1008",
    make: () =>
      program(() => {
        slice(0, 4, { end: 0.5 }); // <- end of a slice that is no position
      }),
    message: "the end of a slice must be a number, an i32 scalar or a size",
  },
  {
    name: "text for an index",
    code: "TW1008",
    make: () =>
      program(({ x }) => {
        // @ts-expect-error an index is a number
        x.at("0"); // <- text for an index
      }),
    message: "an index must be a number, an i32 scalar, a slice, a tile of indices or `all`",
    found: 'the text "0"',
  },
  {
    name: "index of i64",
    code: "TW2014",
    make: () =>
      program(({ x }) => {
        // @ts-expect-error indices are i32
        x.at(constant(i64, 1)); // <- index of i64
      }),
    message: "an index of at must be an i32 scalar",
    expected: "i32",
    found: "i64",
    remedy: ".cast(i32)",
  },
  {
    name: "load of a run-time extent",
    code: "TW2040",
    make: () =>
      program(({ list }) => {
        list.load(); // <- load of a run-time extent
      }),
    message: "load needs static extents, and n is known at launch",
    found: "ref<gmem, f32, [n]>",
    remedy: "x.at(slice(start, 128))",
  },
  {
    name: "store to a run-time extent",
    code: "TW2040",
    make: () =>
      kernel({ name: "fill", outputs: { out: tensor(f32, [4, 4]) } }, ({ out }) => {
        out
          .reshape([2, 2, 2, 2])
          .at(0, 0)
          .store(zeros(f32, [2, 2]));
        return program(({ list }) => {
          list.store(0); // <- store to a run-time extent
        });
      }),
    message: "store needs static extents, and n is known at launch",
  },
  {
    name: "loadScalar of a row",
    code: "TW1018",
    make: () =>
      program(({ x, i }) => {
        x.at(i).loadScalar(); // <- loadScalar of a row
      }),
    found: "ref<gmem, f32, [64]>",
    remedy: "write load()",
  },
  {
    name: "load larger than a tile",
    code: "TW2009",
    make: () =>
      kernel({ name: "whole", inputs: { x: tensor(f32, [4096, 4096]) } }, ({ x }) => {
        x.load(); // <- load larger than a tile
      }),
    message: "a tile of shape [4096, 4096] is too large",
  },
  {
    name: "fill of another dtype",
    code: "TW2044",
    make: () =>
      program(({ x, i }) => {
        // @ts-expect-error the fill has the dtype of the memory
        x.at(slice(4, 8)).load({ fill: i }); // <- fill of another dtype
      }),
    message: "the fill value of a load of f32 is i32",
    expected: "f32",
    found: "i32",
  },
  {
    name: "fill of another shape",
    code: "TW2044",
    make: () =>
      program(({ x }) => {
        x.at(slice(4, 8)).load({ fill: zeros(f32, [4]) }); // <- fill of another shape
      }),
    message: "the fill value of a load has another shape than what is loaded",
    expected: "[8, 64], or what repeats to it",
    found: "[4]",
  },
  {
    name: "padding of a window",
    code: "TW1008",
    make: () =>
      program(({ x }) => {
        x.at(slice(4, 8)).load({ outOfBounds: "pad" }); // <- padding of a window
      }),
    message: "outOfBounds of load",
    remedy: "loads pad and stores drop anyway",
  },
  {
    name: "padding that a store cannot do",
    code: "TW1008",
    make: () =>
      program(({ x }) => {
        const ids = iota(i32, [8], { axis: 0 });
        // @ts-expect-error a store drops
        x.at(ids).store(1, { outOfBounds: "pad" }); // <- padding that a store cannot do
      }),
    message: "outOfBounds of store",
    expected: '"drop"',
  },
  {
    name: "a promise that is no flag",
    code: "TW1008",
    make: () =>
      program(({ x }) => {
        // @ts-expect-error a promise is given or not
        x.at(slice(4, 8)).load({ inBounds: 1 }); // <- a promise that is no flag
      }),
    message: "inBounds of load",
    expected: "true or false",
  },
  {
    name: "a promise beside what is done outside",
    code: "TW1008",
    make: () =>
      program(({ x }) => {
        const ids = iota(i32, [8], { axis: 0 });
        x.at(ids).store(1, { inBounds: true, outOfBounds: "drop" }); // <- a promise beside what is done outside
      }),
    message: "inBounds of store",
    expected: "inBounds or outOfBounds",
  },
  {
    name: "full of a tile of several elements",
    code: "TW1008",
    make: () =>
      program(({ x }) => {
        full(f32, [8], x.at(slice(0, 2)).load()); // <- full of a tile of several elements
      }),
    message: "the value of full",
    expected: "a scalar, or a tile of one element",
  },
  {
    name: "full of a value of another format",
    code: "TW2003",
    make: () =>
      program(({ i }) => {
        // @ts-expect-error the value has the format of the tile
        full(f32, [8], i); // <- full of a value of another format
      }),
    message: "full makes a tile of f32 of a value of i32",
  },
  {
    name: "store of another dtype",
    code: "TW2042",
    make: () =>
      program(({ out, halves }) => {
        // @ts-expect-error stores do not convert
        out.store(halves.load()); // <- store of another dtype
      }),
    message: "store of bf16 into memory of f32",
    remedy: ".cast(f32)",
  },
  {
    name: "store of another shape",
    code: "TW2043",
    make: () =>
      program(({ out, tile }) => {
        out.at(slice(0, 4)).store(tile); // <- store of another shape
      }),
    expected: "[4, 64]",
    found: "[8, 64]",
  },
  {
    name: "window that is stored",
    code: "TW1008",
    make: () =>
      program(({ out, x }) => {
        // @ts-expect-error x is memory
        out.store(x); // <- window that is stored
      }),
    message: "an operand of store",
    remedy: ".load()",
  },
  {
    name: "reshaped window of other elements",
    code: "TW2024",
    make: () =>
      program(({ x }) => {
        x.reshape([8, 8]); // <- reshaped window of other elements
      }),
    message: "reshape of ref<gmem, f32, [8, 64]> to [8, 8] changes the number of elements",
  },
  {
    name: "transposed window of another rank",
    code: "TW2022",
    make: () =>
      program(({ x }) => {
        x.at(0).transpose([1, 0]); // <- transposed window of another rank
      }),
    message: "does not permute 1 axes",
  },
  {
    name: "atomic combination of bits of floats",
    code: "TW2045",
    make: () =>
      program(({ out }) => {
        out.at(0, 0).atomic("or", 1); // <- atomic combination of bits of floats
      }),
    message: "there is no atomic or on f32",
    expected: "one of i32",
  },
  {
    name: "one number for many atomic updates",
    code: "TW1032",
    make: () =>
      program(({ out }) => {
        out.at(0).atomicAdd(1); // <- one number for many atomic updates
      }),
    expected: "a tile of shape [64]",
    remedy: "full(dtype, shape, value)",
  },
  {
    name: "a bitwise and of floats in memory",
    code: "TW2045",
    make: () =>
      program(({ out }) => {
        out.at(0, 0).atomic("and", 1); // <- a bitwise and of floats in memory
      }),
    message: "there is no atomic and on f32",
  },
  {
    name: "peer without a cluster",
    code: "TW2050",
    make: () =>
      program(({ shared }) => {
        shared.peer(1); // <- peer without a cluster
      }),
    message: "peer addresses a peer, and the kernel has no cluster",
    remedy: "give a grid axis a cluster",
  },
  {
    name: "peer of global memory",
    code: "TW2049",
    make: () =>
      kernel(
        { name: "far", grid: { i: 2 }, cluster: { i: 2 }, inputs: { x: tensor(i32, [4]) } },
        ({ x }) => {
          x.peer(1); // <- peer of global memory
        },
      ),
    message: "the window of peer must lie in smem",
    found: "ref<gmem, i32, [4]>",
  },
  {
    name: "shared memory of run-time extent",
    code: "TW2041",
    make: () =>
      program(({ list }) => {
        const [n = 0] = list.shape;
        return kernel(
          {
            name: "buffered",
            inputs: { list: tensor(f32, [n]) },
            // @ts-expect-error the extents of shared memory are numbers
            scratch: { buffer: smem(f32, [n]) }, // <- shared memory of run-time extent
          },
          () => undefined,
        );
      }),
    message: "shared memory cannot have extent n, known at launch",
    remedy: "give a number",
  },
  {
    name: "store to an input",
    code: "TW2220",
    make: () =>
      program(({ x }) => {
        x.at(slice(0, 4)).store(zeros(f32, [4, 64])); // <- store to an input
      }),
    message: "store writes x, which is an input",
    expected: "an output, an inout or scratch memory",
    found: "the input x",
    notes: ["the kernel is declared here"],
  },
  {
    name: "atomic update of an input",
    code: "TW2220",
    make: () =>
      program(({ counts, tile }) => {
        counts.transpose().atomicAdd(tile.cast(i32).transpose()); // <- atomic update of an input
      }),
    message: "writes counts, which is an input",
  },
  {
    name: "copy into an input",
    code: "TW2220",
    make: () =>
      program(({ x, shared }) => {
        copyAsync(shared, x); // <- copy into an input
      }),
    message: "copyAsync writes x, which is an input",
  },
  {
    name: "peer of a thread's own memory",
    code: "TW2221",
    make: () =>
      kernel(
        { name: "far", grid: { i: 2 }, cluster: { i: 2 }, threads: ["load", "use"] },
        ({ load }) => {
          load(() => {
            scoped({ buffer: smem(f32, [4]) }, ({ buffer }) => {
              buffer.peer(1); // <- peer of a thread's own memory
            });
          });
        },
      ),
    message: "peer reaches memory that belongs to one program thread",
    notes: ["it is allocated here"],
  },
  {
    name: "load before the kernel before has ended",
    code: "TW2223",
    make: () =>
      starting(({ x, out }) => {
        const row = x.at(0).load(); // <- load before the kernel before has ended
        waitForPreviousKernel();
        out.at(0).store(row);
      }),
    message: "load reads x before the kernel before has ended",
    expected: "waitForPreviousKernel() before it, on every way that leads here",
    found: "a way of the kernel without it",
    remedy: "call waitForPreviousKernel() first",
    notes: ["it is waited for here"],
  },
  {
    name: "independent output",
    code: "TW2224",
    make: () =>
      starting(() => {
        waitForPreviousKernel({ independent: ["out"] }); // <- independent output
      }),
    message: "out is said to be independent, which is no input array",
    expected: "x, whole",
    found: "out",
  },
]);
