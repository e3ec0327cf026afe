/** Codes of values and elementwise operations: TW200x and TW201x. */
import { registerCodes } from "../entry.ts";

export const valueCodes = registerCodes({
  TW2001: {
    title: "malformed operation",
    cause: "An operation's operands, attributes or regions break the rules of its kind.",
    example: "%1 = binary %0, %0 {fn = frobnicate}",
    remedy: "see the operation's entry in docs/operations.md",
  },
  TW2002: {
    title: "operand of another kind",
    cause:
      "The operation computes on another kind of thing: tiles and scalars are numbers, refs are windows on memory, barriers and semaphores are neither.",
    example: "x.at(here).add(1)  // x.at(here) is a window, not its contents",
    remedy: "pass a value of the expected kind",
  },
  TW2003: {
    title: "operands of different dtypes",
    cause: "Operands are never converted silently; an operation computes in one number format.",
    example: "a.add(b)  // f32 and bf16",
    remedy: "cast one of the operands",
  },
  TW2004: {
    title: "operands of different shapes",
    cause: "An elementwise operation needs operands of one shape.",
    example: "a.add(b)  // [128, 64] and [64, 128]",
    remedy: "transpose, reshape or broadcast one of the operands to the other's shape",
  },
  TW2005: {
    title: "function not defined for the dtype",
    cause:
      "The function has no meaning in this number format, or the format is for storage and has no arithmetic of its own.",
    example: "counts.exp()  // i32",
    remedy:
      "cast to a format that has the function first, for example with .cast(f32), or with .cast(i32) where the function is one of integers",
  },
  TW2006: {
    title: "condition is not bool",
    cause: "Conditions are values of type bool; numbers do not convert to it.",
    example: "count.select(a, b)  // count is i32",
    remedy: "compare first, for example with .ne(0)",
  },
  TW2007: {
    title: "literal outside the dtype",
    cause:
      "An integer must lie in its format's range, a 64-bit integer is written as a bigint, and bool as true or false.",
    example: "full(u8, [64], 300)",
    remedy: "write a value that the dtype holds, or choose another dtype",
  },
  TW2008: {
    title: "extent is not a positive integer",
    cause: "Every extent of a tile, window or allocation is a whole number of at least 1.",
    example: "zeros(f32, [0, 64])",
    remedy: "give positive integers",
  },
  TW2009: {
    title: "tile too large",
    cause:
      "A tile lives in the registers of a program thread's threads, 128 unless the kernel says `warps`, of which each has at most 255.",
    example: "zeros(f32, [4096, 4096])",
    remedy: "use smaller tiles: split the work over more blocks or a loop",
  },
  TW2010: {
    title: "unknown grid axis",
    cause: "The kernel's grid has no axis of this name.",
    example: 'gridSize("j")  // grid: { i: 8 }',
    remedy: "use a name from the kernel's grid",
  },
  TW2011: {
    title: "unknown dimension",
    cause:
      "The named dimension belongs to no argument of this kernel, so no launch gives it a value.",
    example: 'scratch: { sums: gmem(f32, [dim("k")]) }  // no argument has extent k',
    remedy: "use a dimension of one of the kernel's arguments",
  },
  TW2012: {
    title: "bitcast to a width that the last axis does not have",
    cause:
      "A bitcast keeps the bits. To a wider format the elements along the last axis are joined, so there is a whole number of them for each; a scalar has no axis.",
    example: "x.bitcast(u32)  // x is u8, of shape [8, 6]",
    remedy: "choose a format of the same width, or make the last axis a multiple",
  },
  TW2013: {
    title: "bitcast of bool",
    cause: "bool has two values and no bit pattern to reinterpret.",
    example: "mask.bitcast(u8)",
    remedy: "cast instead",
  },
  TW2014: {
    title: "index is not i32",
    cause: "Offsets, indices, ranks, parities and counts are scalars of i32.",
    example: "x.at(row)  // row is i64",
    remedy: "cast the index with .cast(i32)",
  },
  TW2015: {
    title: "no approximate form",
    cause:
      "GPUs approximate a few functions in f32, and the narrower floats go through it. For the others, and in f64, there is only the accurate form.",
    example: "angle.tan({ approximate: true })",
    remedy: "leave the option out",
  },
  TW2016: {
    title: "inline PTX whose operands, results and meaning do not fit together",
    cause:
      "Without layouts the code runs once for each element, so that all operands and results have one shape. With layouts each operand and each result has one. The meaning gives exactly the results that are declared.",
    example: "inlinePtx({ operands: [x], results: [f32], meaning: (x) => [x.cast(i32)], … })",
    remedy: "declare the results as the meaning gives them",
  },
  TW2017: {
    title: "factors that are often one of something else than a product of f32",
    cause:
      "Warps go past products of f32 whose right factors are all one. Narrower floats share words, and integers are multiplied as fast as they are compared.",
    example: "x.cast(bf16).mul(factors, { oftenOne: true })",
    remedy: "leave the option out, or multiply in f32",
  },
  TW2018: {
    title: "rounding that a function has not",
    cause:
      "GPUs round sums, differences, products, fused products, quotients and roots of f32 and f64 as asked, and flush subnormal numbers of f32, of f16 but for quotients and roots. Everything else is rounded to the nearest number, and an approximation has a bound instead.",
    example: 'x.cast(f16).add(1, { rounding: "up" })',
    remedy: "leave the option out, or compute in f32",
  },
  TW2104: {
    title: "option that a conversion has not",
    cause:
      "Which way to round and what to do with numbers beyond the format can only be chosen where the hardware has the choice; docs/numbers.md lists the choices of every conversion.",
    example: 'x.cast(f8e4m3fn, { rounding: "up" })',
    remedy: "leave the option out, or convert in two steps",
  },
  TW2106: {
    title: "impossible promise",
    cause:
      "Promises are about integers: of which number they are a multiple, between which two they lie, below which size they are. They must leave a number that keeps them.",
    example: "assumeBetween(count, 8, 4)",
    remedy: "promise what some integer keeps",
  },
});
