import { describe, expect, test } from "vitest";
import {
  barrier,
  infer,
  inflight,
  ref,
  scalar,
  testMistakes,
  tile,
} from "../../../test/ir-fixtures.ts";
import type { Mistake } from "../../../test/ir-fixtures.ts";
import { mannerMistakes } from "../../../test/support/manner-mistakes.ts";
import { dtypes } from "../../formats/dtype.ts";
import { dimension } from "../size.ts";
import { tileCodes } from "../../support/diagnostic-codes/ir/tiles.ts";
import { valueCodes } from "../../support/diagnostic-codes/ir/values.ts";

const { bf16, bool, f16, f32, f8e4m3fn, f8e5m2, i32, i64, i8, u64, u8 } = dtypes;
const row = tile(f32, 64);
const square = tile(bf16, 64, 64);
const matrix = tile(f32, 128, 64);

const valueMistakes: readonly Mistake[] = [
  {
    name: "a window where a number is expected",
    code: "TW2002",
    make: () => infer("unary", { source: ref("gmem", f32, 64) }, { fn: "exp" }),
    message: "the operand of exp must be a tile or a scalar",
    found: "ref<gmem, f32, [64]>",
    remedy: "load the window first",
  },
  {
    name: "an accumulator in flight where a number is expected",
    code: "TW2002",
    make: () => infer("binary", { left: row, right: inflight(f32, 64, 8) }, { fn: "add" }),
    message: "the right operand of add must be a tile or a scalar",
    remedy: "wait for the accumulator first",
  },
  {
    name: "a barrier where a tile is expected",
    code: "TW2002",
    make: () => infer("scan", { source: barrier() }, { fn: "sum", axis: 0, reverse: false }),
    message: "the operand of cumsum must be a tile",
    found: "barrier<1, arrivals=1>",
  },
  {
    name: "a promise about floats",
    code: "TW2106",
    make: () => infer("assume", { source: row }, { multipleOf: 4 }),
    message: "assumeMultipleOf promises something of f32",
    expected: "an integer format",
  },
  {
    name: "a promise that no number keeps",
    code: "TW2106",
    make: () => infer("assume", { source: scalar(i32) }, { least: 8, greatest: 4 }),
    message: "assumeBetween promises what no number is",
    found: "a number from 8 to 4",
  },
  {
    name: "addition of two formats",
    code: "TW2003",
    make: () => infer("binary", { left: row, right: tile(bf16, 64) }, { fn: "add" }),
    message: "operands of add have different dtypes",
    expected: "f32",
    found: "bf16",
    remedy: ".cast(f32)",
  },
  {
    name: "addition of a stored format to f32",
    code: "TW2003",
    make: () => infer("binary", { left: tile(f8e4m3fn, 64), right: row }, { fn: "add" }),
    message: "operands of add have different dtypes",
    remedy: "cast the f8e4m3fn operand with .cast(f32)",
  },
  {
    name: "addition of bf16 and a stored format",
    code: "TW2003",
    make: () => infer("binary", { left: tile(bf16, 64), right: tile(f8e5m2, 64) }, { fn: "add" }),
    message: "operands of add have different dtypes",
    remedy: "cast the f8e5m2 operand with .cast(f32), and the bf16 one too",
  },
  {
    name: "addition of two stored formats",
    code: "TW2003",
    make: () =>
      infer("binary", { left: tile(f8e4m3fn, 64), right: tile(f8e5m2, 64) }, { fn: "add" }),
    message: "operands of add have different dtypes",
    remedy: "cast both, for example with .cast(f32)",
  },
  {
    name: "comparison of two formats",
    code: "TW2003",
    make: () => infer("compare", { left: scalar(i32), right: scalar(i64) }, { predicate: "lt" }),
    message: "operands of lt have different dtypes",
  },
  {
    name: "third operand of fma",
    code: "TW2003",
    make: () => infer("fma", { a: row, b: row, c: tile(f16, 64) }, {}),
    message: "operands of fma have different dtypes",
    found: "f16",
  },
  {
    name: "addition of two shapes",
    code: "TW2004",
    make: () => infer("binary", { left: matrix, right: tile(f32, 64, 128) }, { fn: "mul" }),
    message: "operands of mul have different shapes",
    expected: "[128, 64]",
    found: "[64, 128]",
    remedy: "broadcast",
  },
  {
    name: "a scalar added to a tile",
    code: "TW2004",
    make: () => infer("binary", { left: row, right: scalar(f32) }, { fn: "add" }),
    message: "operands of add have different shapes",
    found: "[]",
  },
  {
    name: "select by a condition of another shape",
    code: "TW2004",
    make: () => infer("select", { condition: tile(bool, 32), ifTrue: row, ifFalse: row }, {}),
    message: "operands of select have different shapes",
    expected: "[64]",
    found: "[32]",
  },
  {
    name: "exp of an integer",
    code: "TW2005",
    make: () => infer("unary", { source: tile(i32, 64) }, { fn: "exp" }),
    message: "exp is not defined for i32",
    remedy: ".cast(f32)",
  },
  {
    name: "arithmetic in a storage format",
    code: "TW2005",
    make: () =>
      infer("binary", { left: tile(f8e4m3fn, 8), right: tile(f8e4m3fn, 8) }, { fn: "add" }),
    message: "add is not defined for f8e4m3fn",
  },
  {
    name: "is_nan of an integer",
    code: "TW2005",
    make: () => infer("classify", { source: scalar(i32) }, { fn: "is_nan" }),
    message: "isNan is not defined for i32",
  },
  {
    name: "order of bools",
    code: "TW2005",
    make: () => infer("compare", { left: scalar(bool), right: scalar(bool) }, { predicate: "lt" }),
    message: "lt is not defined for bool",
  },
  {
    name: "fma of integers",
    code: "TW2005",
    make: () => infer("fma", { a: scalar(i32), b: scalar(i32), c: scalar(i32) }, {}),
    message: "fma is not defined for i32",
  },
  {
    name: "iota of bool",
    code: "TW2005",
    make: () => infer("iota", {}, { dtype: bool, shape: [2], axis: 0 }),
    message: "iota is not defined for bool",
  },
  ...mannerMistakes,
  {
    name: "PTX of one's own with operands of two shapes",
    code: "TW2016",
    make: () =>
      infer(
        "inline_ptx",
        { sources: [row, tile(f32, 32)], meaning: [] },
        { code: "", types: ["f32"] },
      ),
    message: "operands of inlinePtx have different shapes",
  },
  {
    name: "select by a number",
    code: "TW2006",
    make: () => infer("select", { condition: tile(i32, 64), ifTrue: row, ifFalse: row }, {}),
    message: "the condition of select must be bool",
    found: "i32",
    remedy: ".ne(0)",
  },
  {
    name: "assertion of a number",
    code: "TW2006",
    make: () => infer("assert", { condition: scalar(f32) }, { message: "positive" }),
    message: "the condition of assert must be bool",
  },
  {
    name: "integer beyond its format",
    code: "TW2007",
    make: () => infer("constant", {}, { value: 256, dtype: u8, shape: [] }),
    message: "256 is not a value of u8",
    expected: "an integer from 0 to 255",
  },
  {
    name: "fraction as an integer",
    code: "TW2007",
    make: () => infer("constant", {}, { value: 0.5, dtype: i32, shape: [] }),
    message: "0.5 is not a value of i32",
  },
  {
    name: "64-bit integer as a number",
    code: "TW2007",
    make: () => infer("constant", {}, { value: 1, dtype: u64, shape: [] }),
    message: "1 is not a value of u64",
    expected: "a bigint from 0 to 18446744073709551615",
    found: "number 1",
  },
  {
    name: "bigint as a float",
    code: "TW2007",
    make: () => infer("constant", {}, { value: 1n, dtype: f32, shape: [] }),
    message: "1 is not a value of f32",
    expected: "a number",
  },
  {
    name: "number as bool",
    code: "TW2007",
    make: () => infer("constant", {}, { value: 1, dtype: bool, shape: [] }),
    message: "1 is not a value of bool",
    expected: "true or false",
  },
  {
    name: "iota that counts beyond its format",
    code: "TW2007",
    make: () => infer("iota", {}, { dtype: i8, shape: [129], axis: 0 }),
    message: "iota counts to 128, which i8 cannot hold",
  },
  {
    name: "empty tile",
    code: "TW2008",
    make: () => infer("constant", {}, { value: 0, dtype: f32, shape: [0, 64] }),
    message: "extents of a tile must be positive integers, not [0, 64]",
  },
  {
    name: "fractional extent",
    code: "TW2008",
    make: () => infer("iota", {}, { dtype: i32, shape: [1.5], axis: 0 }),
    message: "extents of a tile must be positive integers, not [1.5]",
  },
  {
    name: "tile too large",
    code: "TW2009",
    make: () => infer("constant", {}, { value: 0, dtype: f32, shape: [1024, 1025] }),
    message: "a tile of shape [1024, 1025] is too large",
    expected: "at most 1048576 elements",
    found: "1049600 elements, 8200 for each of a program thread's 128 threads",
  },
  {
    name: "axis that the grid lacks",
    code: "TW2010",
    make: () => infer("block_index", {}, { axis: "k" }),
    message: "the grid has no axis k",
    expected: "one of i, j",
  },
  {
    name: "dimension that the kernel lacks",
    code: "TW2011",
    make: () => infer("size", {}, { of: dimension("m") }),
    message: "the kernel has no dimension m",
    expected: "one of n",
  },
  {
    name: "bitcast to another width",
    code: "TW2012",
    make: () => infer("bitcast", { source: row }, { dtype: f16 }),
    message: "f32 and f16 differ in width",
    expected: "a format of 32 bits",
    found: "f16, of 16 bits",
  },
  {
    name: "bitcast of a scalar to another width",
    code: "TW2012",
    make: () => infer("bitcast_width", { source: scalar(u64) }, { dtype: u8 }),
    message: "the bits of u64 are no u8",
    remedy: "choose a format of 64 bits, or cast",
  },
  {
    name: "bitcast of an odd number of bytes",
    code: "TW2012",
    make: () => infer("bitcast_width", { source: tile(u8, 4, 3) }, { dtype: bf16 }),
    message: "the bits of tile<u8, [4, 3]> are no bf16",
    expected: "a last axis of a multiple of 2 elements",
  },
  {
    name: "bitcast of bool to another width",
    code: "TW2013",
    make: () => infer("bitcast_width", { source: tile(bool, 8) }, { dtype: f16 }),
    message: "bool has no bits to reinterpret",
  },
  {
    name: "bitcast of bool",
    code: "TW2013",
    make: () => infer("bitcast", { source: tile(bool, 8) }, { dtype: u8 }),
    message: "bool has no bits to reinterpret",
    remedy: "cast",
  },
  {
    name: "bitcast to bool",
    code: "TW2013",
    make: () => infer("bitcast", { source: tile(u8, 8) }, { dtype: bool }),
    message: "bool has no bits to reinterpret",
  },
  {
    name: "rounding of integers",
    code: "TW2104",
    make: () => infer("cast", { source: tile(u8, 8) }, { dtype: f32, rounding: "away" }),
    message: "a conversion from u8 to f32 has no such rounding",
    expected: '"nearest", "zero", "down", "up"',
    found: '"away"',
  },
  {
    name: "bound of a format that has infinities",
    code: "TW2104",
    make: () => infer("cast", { source: row }, { dtype: f16, overflow: "nan" }),
    message: "a conversion from f32 to f16 has no such overflow",
    remedy: 'choose "saturate", "unit", or leave it out',
  },
  {
    name: "choice where there is none",
    code: "TW2104",
    make: () => infer("cast", { source: row }, { dtype: bool, rounding: "up" }),
    message: "a conversion from f32 to bool has no such rounding",
    remedy: "leave rounding out",
  },
  {
    name: "index of i64",
    code: "TW2014",
    make: () =>
      infer(
        "slice_ref",
        { ref: ref("gmem", f32, 64), offsets: [scalar(i64)] },
        { sizes: [8], dropped: [] },
      ),
    message: "an index of at must be an i32 scalar",
    found: "i64",
    remedy: ".cast(i32)",
  },
];

const dotted = { dtype: f32, precision: "native" } as const;

const tileMistakes: readonly Mistake[] = [
  {
    name: "sort that keeps what is no power of two",
    code: "TW2105",
    make: () =>
      infer("sort", { keys: row, payloads: [] }, { axis: 0, descending: false, first: 3 }),
    message: "a sort keeps the first 3 of 64",
    expected: "a power of two from 1 to 64",
  },
  {
    name: "reduction along an axis that does not exist",
    code: "TW2020",
    make: () => infer("reduce", { source: matrix }, { fn: "sum", axes: [2] }),
    message: "sum has no axis 2",
    expected: "an axis from 0 to 1",
  },
  {
    name: "scan along a negative axis",
    code: "TW2020",
    make: () => infer("scan", { source: matrix }, { fn: "sum", axis: -1, reverse: false }),
    message: "cumsum has no axis -1",
  },
  {
    name: "iota of a scalar",
    code: "TW2020",
    make: () => infer("iota", {}, { dtype: i32, shape: [], axis: 0 }),
    message: "iota has no axis 0",
    expected: "a tile, which has axes",
  },
  {
    name: "concatenation along an axis that does not exist",
    code: "TW2020",
    make: () => infer("concatenate", { parts: [row] }, { axis: 1 }),
    message: "concatenate has no axis 1",
  },
  {
    name: "sort along an axis that does not exist",
    code: "TW2020",
    make: () => infer("sort", { keys: row, payloads: [] }, { axis: 1, descending: false }),
    message: "sort has no axis 1",
  },
  {
    name: "arg_reduce along an axis that does not exist",
    code: "TW2020",
    make: () => infer("arg_reduce", { source: row }, { fn: "argmin", axis: 1 }),
    message: "argmin has no axis 1",
  },
  {
    name: "axis reduced twice",
    code: "TW2021",
    make: () => infer("reduce", { source: matrix }, { fn: "sum", axes: [1, 1] }),
    message: "sum names an axis twice",
    found: "[1, 1]",
  },
  {
    name: "permutation that repeats an axis",
    code: "TW2022",
    make: () => infer("transpose", { source: matrix }, { permutation: [0, 0] }),
    message: "[0, 0] does not permute 2 axes",
    expected: "each of 0 to 1 once",
  },
  {
    name: "permutation of a window that forgets an axis",
    code: "TW2022",
    make: () => infer("transpose_ref", { ref: ref("smem", f32, 4, 8) }, { permutation: [0] }),
    message: "[0] does not permute 2 axes",
  },
  {
    name: "broadcast to another extent",
    code: "TW2023",
    make: () => infer("broadcast", { source: tile(f32, 32) }, { shape: [128, 64], axes: [1] }),
    message: "tile<f32, [32]> does not broadcast to [128, 64]",
    expected: "extents that are 1 or those of axes [1] of [128, 64]",
    found: "[32]",
  },
  {
    name: "broadcast that swaps axes",
    code: "TW2023",
    make: () => infer("broadcast", { source: tile(f32, 4, 4) }, { shape: [4, 4], axes: [1, 0] }),
    message: "tile<f32, [4, 4]> does not broadcast to [4, 4]",
  },
  {
    name: "broadcast that forgets an axis",
    code: "TW2023",
    make: () => infer("broadcast", { source: tile(f32, 4, 4) }, { shape: [4, 4], axes: [0] }),
    message: "tile<f32, [4, 4]> does not broadcast to [4, 4]",
  },
  {
    name: "reshape to more elements",
    code: "TW2024",
    make: () => infer("reshape", { source: matrix }, { shape: [128, 128] }),
    message: "reshape of tile<f32, [128, 64]> to [128, 128] changes the number of elements",
    expected: "8192 elements",
    found: "16384 elements",
  },
  {
    name: "slice beyond the end",
    code: "TW2025",
    make: () => infer("slice", { source: matrix }, { starts: [64, 0], sizes: [65, 64] }),
    message: "the slice reaches outside tile<f32, [128, 64]>",
    expected: "a window within [128, 64]",
    found: "[65, 64] from [64, 0]",
  },
  {
    name: "slice before the start",
    code: "TW2025",
    make: () => infer("slice", { source: row }, { starts: [-1], sizes: [4] }),
    message: "the slice reaches outside tile<f32, [64]>",
  },
  {
    name: "slice of another rank",
    code: "TW2025",
    make: () => infer("slice", { source: matrix }, { starts: [0], sizes: [4] }),
    message: "the slice reaches outside tile<f32, [128, 64]>",
  },
  {
    name: "concatenation of nothing",
    code: "TW2026",
    make: () => infer("concatenate", { parts: [] }, { axis: 0 }),
    message: "concatenate was given no tiles",
  },
  {
    name: "concatenation of tiles that differ elsewhere",
    code: "TW2027",
    make: () => infer("concatenate", { parts: [matrix, tile(f32, 128, 32)] }, { axis: 0 }),
    message: "tiles to concatenate differ outside axis 0",
    expected: "[128, 64]",
    found: "[128, 32]",
  },
  {
    name: "concatenation of two formats",
    code: "TW2003",
    make: () => infer("concatenate", { parts: [row, tile(f16, 64)] }, { axis: 0 }),
    message: "operands of concatenate have different dtypes",
  },
  {
    name: "concatenation to a tile too large",
    code: "TW2009",
    make: () => infer("concatenate", { parts: [tile(f32, 2 ** 20), tile(f32, 1)] }, { axis: 0 }),
    message: "a tile of shape [1048577] is too large",
  },
  {
    name: "xor of floats along an axis",
    code: "TW2005",
    make: () => infer("reduce", { source: row }, { fn: "xor", axes: [0] }),
    message: "xor is not defined for f32",
  },
  {
    name: "running sum of bools",
    code: "TW2005",
    make: () => infer("scan", { source: tile(bool, 4) }, { fn: "sum", axis: 0, reverse: false }),
    message: "cumsum is not defined for bool",
  },
  {
    name: "argmax of bools",
    code: "TW2005",
    make: () => infer("arg_reduce", { source: tile(bool, 4) }, { fn: "argmax", axis: 0 }),
    message: "argmax is not defined for bool",
  },
  {
    name: "bools as sort keys",
    code: "TW2005",
    make: () => infer("sort", { keys: tile(bool, 4), payloads: [] }, { axis: 0, descending: true }),
    message: "sort is not defined for bool",
  },
  {
    name: "sort payload of another shape",
    code: "TW2004",
    make: () =>
      infer("sort", { keys: row, payloads: [tile(i32, 32)] }, { axis: 0, descending: false }),
    message: "operands of sort have different shapes",
  },
  {
    name: "product of a vector",
    code: "TW2029",
    make: () => infer("dot", { left: matrix, right: row }, dotted),
    message: "the right operand of dot must have two axes",
    expected: "[k, n]",
    found: "[64]",
  },
  {
    name: "inner extents that differ",
    code: "TW2030",
    make: () => infer("dot", { left: tile(f16, 128, 64), right: tile(f16, 128, 64) }, dotted),
    message: "inner extents of dot differ",
    expected: "[64, n] on the right of [128, 64]",
    found: "[128, 64]",
    remedy: "transpose",
  },
  {
    name: "product of two formats",
    code: "TW2031",
    make: () => infer("dot", { left: tile(f16, 64, 64), right: tile(bf16, 64, 64) }, dotted),
    message: "dot does not multiply f16 by bf16",
  },
  {
    name: "product of i32",
    code: "TW2031",
    make: () => infer("dot", { left: tile(i32, 64, 64), right: tile(i32, 64, 64) }, dotted),
    message: "dot does not multiply i32 by i32",
  },
  {
    name: "product of f32 without a precision",
    code: "TW2032",
    make: () => infer("dot", { left: tile(f32, 64, 64), right: tile(f32, 64, 64) }, dotted),
    message: "dot of f32 must say with which precision it multiplies",
    remedy: '"ieee" for exact f32, or "tf32"',
  },
  {
    name: "precision of a product of bf16",
    code: "TW2033",
    make: () => infer("dot", { left: square, right: square }, { dtype: f32, precision: "tf32" }),
    message: 'precision "tf32" is for f32, and the operands are bf16',
  },
  {
    name: "accumulator of another format",
    code: "TW2034",
    make: () =>
      infer(
        "dot",
        { left: tile(f16, 64, 32), right: tile(f16, 32, 64), accumulator: tile(f16, 64, 64) },
        dotted,
      ),
    message: "what dot begins with has another type than the result",
    expected: "tile<f32, [64, 64]>",
    found: "tile<f16, [64, 64]>",
  },
  {
    name: "product that accumulates in bf16",
    code: "TW2035",
    make: () =>
      infer(
        "dot",
        { left: tile(bf16, 64, 32), right: tile(bf16, 32, 64) },
        { dtype: bf16, precision: "native" },
      ),
    message: "dot of bf16 does not accumulate in bf16",
    expected: "f32",
  },
];

describe("values", () => testMistakes(valueMistakes));
describe("tiles", () => testMistakes(tileMistakes));

test("every code of values and tiles has a test", () => {
  const tested = new Set([...valueMistakes, ...tileMistakes].map(({ code }) => code));
  // A malformed operation comes from IR built by hand; the verifier's tests make some.
  const registered = Object.keys({ ...valueCodes, ...tileCodes }).filter(
    (code) => code !== "TW2001",
  );
  expect(registered.filter((code) => !tested.has(code as Mistake["code"]))).toEqual([]);
});
