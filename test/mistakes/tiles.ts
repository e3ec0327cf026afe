/** Mistakes with shapes: broadcasting, axes, reshapes, slices and matrix products. */
import { bf16, concatenate, dot, f16, f32, f64, full, zeros } from "tilewright";
import { mistakeTable, program } from "./mistake.ts";

export const tileMistakes = mistakeTable(import.meta.url, [
  {
    name: "rows added to columns",
    code: "TW1010",
    make: () =>
      program(({ tile }) => {
        tile.add(tile.transpose()); // <- rows added to columns
      }),
    message: "operands of add have shapes that do not fit together",
    expected: "[8, 64]",
    found: "[64, 8]",
  },
  {
    name: "sum of rows without its axis",
    code: "TW1010",
    make: () =>
      program(({ tile }) => {
        tile.div(tile.sum({ axis: 1 })); // <- sum of rows without its axis
      }),
    message: "operands of div",
    found: "[8]",
    remedy: "expand",
  },
  {
    name: "broadcast to other extents",
    code: "TW1010",
    make: () =>
      program(() => {
        zeros(f32, [32]).broadcastTo([128, 64]); // <- broadcast to other extents
      }),
    message: "a tile of shape [32] does not broadcast to [128, 64]",
  },
  {
    name: "sum along a third axis",
    code: "TW2020",
    make: () =>
      program(({ tile }) => {
        tile.sum({ axis: 2 }); // <- sum along a third axis
      }),
    message: "sum has no axis 2",
    expected: "an axis from 0 to 1",
    found: "2",
  },
  {
    name: "axis before the first",
    code: "TW2020",
    make: () =>
      program(({ tile }) => {
        tile.cumsum({ axis: -3 }); // <- axis before the first
      }),
    message: "cumsum has no axis -3",
  },
  {
    name: "argmax along no axis",
    code: "TW2020",
    make: () =>
      program(({ tile }) => {
        tile.argmax({ axis: 2 }); // <- argmax along no axis
      }),
    message: "argmax has no axis 2",
  },
  {
    name: "reshape to fewer elements",
    code: "TW2024",
    make: () =>
      program(({ tile }) => {
        tile.reshape([16, 16]); // <- reshape to fewer elements
      }),
    expected: "512 elements",
    found: "256 elements",
  },
  {
    name: "shape that is a number",
    code: "TW1008",
    make: () =>
      program(({ tile }) => {
        // @ts-expect-error a shape is a list
        tile.reshape(512); // <- shape that is a number
      }),
    message: "the shape of reshape must be a list of numbers",
    found: "512",
  },
  {
    name: "transpose that repeats an axis",
    code: "TW2022",
    make: () =>
      program(({ tile }) => {
        tile.transpose([0, 0]); // <- transpose that repeats an axis
      }),
    expected: "each of 0 to 1 once",
    found: "[0, 0]",
  },
  {
    name: "transpose of three axes",
    code: "TW2022",
    make: () =>
      program(({ tile }) => {
        tile.transpose([2, 1, 0]); // <- transpose of three axes
      }),
    message: "does not permute 2 axes",
  },
  {
    name: "expand beyond the end",
    code: "TW1008",
    make: () =>
      program(({ tile }) => {
        tile.expand({ axis: 3 }); // <- expand beyond the end
      }),
    message: "an axis from -3 to 2",
    found: "3",
  },
  {
    name: "slice outside its tile",
    code: "TW2025",
    make: () =>
      program(({ tile }) => {
        tile.slice([0, 32], [8, 64]); // <- slice outside its tile
      }),
    expected: "a window within [8, 64]",
    found: "[8, 64] from [0, 32]",
  },
  {
    name: "slice of nothing",
    code: "TW2008",
    make: () =>
      program(({ tile }) => {
        tile.slice([0, 0], [0, 64]); // <- slice of nothing
      }),
    expected: "positive integers",
    found: "[0, 64]",
  },
  {
    name: "tiles of different widths joined",
    code: "TW2027",
    make: () =>
      program(({ tile }) => {
        concatenate([tile, zeros(f32, [8, 32])], { axis: 0 }); // <- tiles of different widths joined
      }),
    message: "tiles to concatenate differ outside axis 0",
    expected: "[8, 64]",
    found: "[8, 32]",
  },
  {
    name: "tiles of different dtypes joined",
    code: "TW2003",
    make: () =>
      program(({ tile, halves }) => {
        concatenate([tile, halves.load()], { axis: 0 }); // <- tiles of different dtypes joined
      }),
    message: "operands of concatenate",
  },
  {
    name: "nothing joined",
    code: "TW2026",
    make: () =>
      program(() => {
        concatenate([], { axis: 0 }); // <- nothing joined
      }),
    remedy: "give at least one tile",
  },
  {
    name: "tile of two million elements",
    code: "TW2009",
    make: () =>
      program(() => {
        zeros(f32, [2048, 1024]); // <- tile of two million elements
      }),
    message: "a tile of shape [2048, 1024] is too large",
    expected: "at most 1048576 elements",
    found: "2097152 elements",
    remedy: "smaller tiles",
  },
  {
    name: "tile that grows too large",
    code: "TW2009",
    make: () =>
      program(() => {
        zeros(f32, [4096, 1]).add(zeros(f32, [1, 512])); // <- tile that grows too large
      }),
    message: "is too large",
  },
  {
    name: "extent that is no whole number",
    code: "TW2008",
    make: () =>
      program(() => {
        full(f32, [100 / 8], 1); // <- extent that is no whole number
      }),
    found: "[12.5]",
  },
  {
    name: "dot of unequal inner extents",
    code: "TW2030",
    make: () =>
      program(({ halves }) => {
        dot(halves.load(), halves.load()); // <- dot of unequal inner extents
      }),
    message: "inner extents of dot differ",
    expected: "[64, n] on the right of [8, 64]",
    found: "[8, 64]",
    remedy: "transpose",
  },
  {
    name: "dot of a vector",
    code: "TW2029",
    make: () =>
      program(({ halves }) => {
        dot(halves.load(), zeros(bf16, [64])); // <- dot of a vector
      }),
    message: "the right operand of dot must have two axes",
    expected: "[k, n]",
    found: "[64]",
  },
  {
    name: "dot of two formats",
    code: "TW2031",
    make: () =>
      program(({ halves }) => {
        dot(halves.load(), zeros(f16, [64, 8])); // <- dot of two formats
      }),
    message: "dot does not multiply bf16 by f16",
    remedy: "cast",
  },
  {
    name: "dot of f32 without a precision",
    code: "TW2032",
    make: () =>
      program(({ tile }) => {
        dot(tile, tile.transpose()); // <- dot of f32 without a precision
      }),
    message: "dot of f32 must say with which precision it multiplies",
    expected: 'precision: one of "ieee", "tf32", "tf32x3", "bf16x3", "bf16x6", "bf16x9"',
    found: "no precision",
  },
  {
    name: "precision for bf16",
    code: "TW2033",
    make: () =>
      program(({ halves }) => {
        const half = halves.load();
        dot(half, half.transpose(), { precision: "tf32" }); // <- precision for bf16
      }),
    expected: "no precision",
    found: 'precision: "tf32"',
    remedy: "leave the precision out",
  },
  {
    name: "dot onto a smaller tile",
    code: "TW2034",
    make: () =>
      program(({ halves }) => {
        const half = halves.load();
        dot(half, half.transpose(), { accumulator: zeros(f32, [8, 4]) }); // <- dot onto a smaller tile
      }),
    expected: "tile<f32, [8, 8]>",
    found: "tile<f32, [8, 4]>",
  },
  {
    name: "dot that sums in bf16",
    code: "TW2035",
    make: () =>
      program(({ halves }) => {
        const half = halves.load();
        dot(half, half.transpose(), { dtype: bf16 }); // <- dot that sums in bf16
      }),
    message: "dot of bf16 does not accumulate in bf16",
    expected: "f32",
    remedy: "cast the result",
  },
  {
    name: "payload of another shape",
    code: "TW2004",
    make: () =>
      program(({ tile }) => {
        tile.sortWith([zeros(f64, [8, 32])], { axis: 1 }); // <- payload of another shape
      }),
    message: "operands of sort have different shapes",
    expected: "[8, 64]",
    found: "[8, 32]",
  },
]);
