/** Mistakes with numbers: dtypes, constants, conditions, and JavaScript's own operators. */
import {
  accumulator,
  bool,
  constant,
  f32,
  full,
  i32,
  i64,
  i8,
  iota,
  kernel,
  u32,
  zeros,
} from "tilewright";
import type { Scalar, Tile } from "tilewright";
import { mistakeTable, program } from "./mistake.ts";

export const valueMistakes = mistakeTable(import.meta.url, [
  {
    name: "f32 and bf16 added",
    code: "TW2003",
    make: () =>
      program(({ tile, halves }) => {
        // @ts-expect-error the dtypes differ
        tile.add(halves.load()); // <- f32 and bf16 added
      }),
    message: "operands of add have different dtypes",
    expected: "f32",
    found: "bf16",
    remedy: ".cast(f32)",
  },
  {
    name: "approximation that no GPU has",
    code: "TW2015",
    make: () =>
      program(({ i }) => {
        i.div(3, { approximate: true }); // <- approximation that no GPU has
      }),
    message: "div has no approximate form for i32",
    remedy: "leave the option out",
  },
  {
    name: "factors of bf16 that are often one",
    code: "TW2017",
    make: () =>
      program(({ halves }) => {
        halves.load().mul(2, { oftenOne: true }); // <- factors of bf16 that are often one
      }),
    message: "mul of bf16 has no form for factors that are often one",
    expected: "mul of f32",
    remedy: "multiply in f32",
  },
  {
    name: "rounding that a format has not",
    code: "TW2018",
    make: () =>
      program(({ halves }) => {
        halves.load().add(1, { rounding: "up" }); // <- rounding that a format has not
      }),
    message: 'add of bf16 has no rounding "up"',
    expected: "one of add, sub, mul, div, sqrt, fma; in f32 or f64",
    found: "add of bf16",
    remedy: "compute in f32",
  },
  {
    name: "rounding that nobody has",
    code: "TW1033",
    make: () =>
      program(({ tile }) => {
        // @ts-expect-error there is no such rounding
        tile.sqrt({ rounding: "odd" }); // <- rounding that nobody has
      }),
    message: 'sqrt has no rounding the text "odd"',
    expected: '"nearest", "zero", "down", "up"',
  },
  {
    name: "scalar of another dtype",
    code: "TW2003",
    make: () =>
      program(({ tile, i }) => {
        // @ts-expect-error the dtypes differ
        tile.mul(i); // <- scalar of another dtype
      }),
    message: "operands of mul have different dtypes",
    found: "i32",
  },
  {
    name: "exponential of integers",
    code: "TW2005",
    make: () =>
      program(({ counts }) => {
        // @ts-expect-error integers have no exponential
        counts.load().exp(); // <- exponential of integers
      }),
    message: "exp is not defined for i32",
    remedy: ".cast(f32)",
  },
  {
    name: "bits of floats",
    code: "TW2005",
    make: () =>
      program(({ tile }) => {
        // @ts-expect-error bits of floats are taken by bitcast
        tile.and(1); // <- bits of floats
      }),
    message: "and is not defined for f32",
    remedy: ".bitcast(u32)",
  },
  {
    name: "minimum of bools",
    code: "TW2005",
    make: () =>
      program(({ tile }) => {
        const positive = tile.gt(0);
        positive.minimum(positive); // <- minimum of bools
      }),
    message: "minimum is not defined for bool",
  },
  {
    name: "number where a bool is needed",
    code: "TW2006",
    make: () =>
      program(({ i, factor }) => {
        // @ts-expect-error i is no bool
        i.select(factor, 0); // <- number where a bool is needed
      }),
    message: "the condition of select must be bool",
    expected: "bool",
    found: "i32",
    remedy: ".ne(0)",
  },
  {
    name: "300 as i8",
    code: "TW1007",
    make: () =>
      program(() => {
        full(i8, [16], 300); // <- 300 as i8
      }),
    message: "300 is not a value of i8",
    expected: "a whole number from -128 to 127",
    found: "300",
  },
  {
    name: "half of an integer",
    code: "TW1007",
    make: () =>
      program(({ i }) => {
        i.mul(1.5); // <- half of an integer
      }),
    message: "1.5 is not a value of i32",
    expected: "whole number",
  },
  {
    name: "-1 as u32",
    code: "TW1007",
    make: () =>
      program(() => {
        constant(u32, -1); // <- -1 as u32
      }),
    message: "-1 is not a value of u32",
    expected: "from 0 to 4294967295",
  },
  {
    name: "2 to the 40th as i32",
    code: "TW1007",
    make: () =>
      program(({ i }) => {
        i.add(2 ** 40); // <- 2 to the 40th as i32
      }),
    message: "1099511627776 is not a value of i32",
  },
  {
    name: "inexact number as i64",
    code: "TW1007",
    make: () =>
      program(() => {
        constant(i64, 2 ** 60 + 1); // <- inexact number as i64
      }),
    expected: "as a bigint where a number is not exact",
  },
  {
    name: "bigint for f32",
    code: "TW1007",
    make: () =>
      program(({ tile }) => {
        // @ts-expect-error floats take numbers
        tile.mul(2n); // <- bigint for f32
      }),
    message: "2n is not a value of f32",
    expected: "a number",
    found: "bigint",
  },
  {
    name: "1 as bool",
    code: "TW1007",
    make: () =>
      program(() => {
        full(bool, [8], 1); // <- 1 as bool
      }),
    message: "1 is not a value of bool",
    expected: "true or false",
  },
  {
    name: "counting beyond i8",
    code: "TW2007",
    make: () =>
      program(() => {
        iota(i8, [256], { axis: 0 }); // <- counting beyond i8
      }),
    message: "iota counts to 255, which i8 cannot hold",
    expected: "from -128 to 127",
  },
  {
    name: "bits of another width",
    code: "TW2012",
    make: () =>
      program(() => {
        iota(i8, [6], { axis: 0 }).bitcast(f32); // <- bits of another width
      }),
    message: "the bits of tile<i8, [6]> are no f32",
    expected: "a last axis of a multiple of 4 elements",
    remedy: "make the last axis a multiple of 4",
  },
  {
    name: "bits of a bool",
    code: "TW2013",
    make: () =>
      program(({ tile }) => {
        tile.gt(0).bitcast(i8); // <- bits of a bool
      }),
    remedy: "cast instead",
  },
  {
    name: "window instead of its contents",
    code: "TW1008",
    make: () =>
      program(({ tile, x }) => {
        // @ts-expect-error x is memory
        tile.add(x); // <- window instead of its contents
      }),
    message: "an operand of add must be a tile, a scalar or a number",
    found: "ref<gmem, f32, [8, 64]>",
    remedy: ".load()",
  },
  {
    name: "arithmetic of a window",
    code: "TW1008",
    make: () =>
      program(({ x }) => {
        (x.at(0) as never as Tile<"f32">).mul(2); // <- arithmetic of a window
      }),
    message: "an operand of mul must be a tile, a scalar or a number",
    found: "ref<gmem, f32, [64]>",
    remedy: "load the window first, with `.load()`",
  },
  {
    name: "maximum of memory",
    code: "TW1008",
    make: () =>
      program(({ x }) => {
        (x as never as Tile<"f32">).max({ axis: 0 }); // <- maximum of memory
      }),
    message: "an operand of max must be a tile",
    remedy: ".load()",
  },
  {
    name: "sums in flight",
    code: "TW1008",
    make: () =>
      program(() => {
        (accumulator(f32, [64, 64]) as never as Tile<"f32">).mul(2); // <- sums in flight
      }),
    message: "an operand of mul must be a tile",
    remedy: ".wait()",
  },
  {
    name: "operand left out",
    code: "TW1008",
    make: () =>
      program(({ tile }) => {
        // @ts-expect-error add takes an operand
        tile.add(); // <- operand left out
      }),
    found: "undefined",
    remedy: "give a tile, a scalar or a number",
  },
  {
    name: "two plain numbers selected",
    code: "TW1009",
    make: () =>
      program(({ tile }) => {
        // @ts-expect-error neither number has a dtype
        tile.gt(0).select(1, 0); // <- two plain numbers selected
      }),
    message: "select of plain values alone has no dtype",
    found: "1 and 0",
    remedy: "constant(dtype, value)",
  },
  {
    name: "plus sign",
    code: "TW1001",
    make: () =>
      program(({ i }) => {
        return (i as unknown as number) + 1; // <- plus sign
      }),
    message: "i32 was used as a JavaScript value, by an operator such as +",
    remedy: "methods",
  },
  {
    name: "template string",
    code: "TW1001",
    make: () =>
      program(({ tile }) => {
        console.log(`the tile is ${tile as unknown as string}`); // <- template string
      }),
    message: "by a template string",
  },
  {
    name: "less-than sign",
    code: "TW1001",
    make: () =>
      program(({ i }) => {
        // @ts-expect-error i is an object
        if (i < 3) return zeros(f32, [8]); // <- less-than sign
        return undefined;
      }),
    message: "by an arithmetic operator or a comparison",
    remedy: "`when`",
  },
  {
    name: "index of a JavaScript array",
    code: "TW1001",
    make: () =>
      program(({ i }) => {
        const rows = [1, 2, 3, 4];
        return rows[i as unknown as number]; // <- index of a JavaScript array
      }),
    message: "an index in []",
  },
  {
    name: "tile in JSON",
    code: "TW1001",
    make: () =>
      program(({ tile }) => {
        JSON.stringify({ tile }); // <- tile in JSON
      }),
    message: "tile<f32, [8, 64]> was used as a JavaScript value, by JSON.stringify",
  },
  {
    name: "condition that JavaScript's if sees",
    code: "TW1006",
    make: () =>
      program(({ i, tile, out }) => {
        if (i.lt(3)) out.store(tile); // <- condition that JavaScript's if sees
      }),
    message: "the condition made by lt is never used",
    remedy: "`when(condition, …)`",
  },
  {
    name: "value of another kernel",
    code: "TW1003",
    make: () => {
      let kept: Scalar<"i32"> | undefined;
      kernel({ name: "first", grid: { i: 2 } }, ({ i }) => {
        kept = i;
      });
      kernel({ name: "second", grid: { i: 2 } }, ({ i }) => {
        i.add(kept ?? 0); // <- value of another kernel
      });
    },
    message: "i32 belongs to kernel first, not to kernel second",
    notes: ["the value is made here"],
  },
  {
    name: "zeros before the kernel",
    code: "TW1002",
    make: () => {
      const start = zeros(f32, [64]); // <- zeros before the kernel
      return kernel({ name: "late" }, () => start.add(1));
    },
    message: "was used outside a kernel's body",
    remedy: "move the call into the body",
  },
  {
    name: "value kept for later",
    code: "TW1002",
    make: () => {
      let kept: Scalar<"i32"> | undefined;
      kernel({ name: "early", grid: { i: 2 } }, ({ i }) => {
        kept = i;
      });
      return kept?.add(1); // <- value kept for later
    },
    message: "i32 was used outside a kernel's body",
  },
  {
    name: "constant of a tile",
    code: "TW1008",
    make: () =>
      program(({ factor }) => {
        // @ts-expect-error a constant is a plain value
        constant(i32, factor); // <- constant of a tile
      }),
    message: "a constant must be a plain JavaScript value",
    found: "f32",
  },
]);
