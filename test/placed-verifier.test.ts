/**
 * The verifier of placed kernels: each rule rejects kernels that break it, given as texts in which one thing was
 * changed, and a kernel that ordinary placing once got wrong is right.
 */
import { expect, test } from "vitest";
import { tensor, bf16, dot, f32, kernel, smem } from "tilewright";
import { fromNumbers } from "../src/formats/hostarray.ts";
import { runKernel } from "./simulation.ts";
import { readText } from "./source-files.ts";
import { rejectsBroken, reportOf } from "./support/broken-placed.ts";
import type { BrokenCases } from "./support/broken-placed.ts";
import { emulateKernel } from "./support/emulated-kernel.ts";

/** One value handed to two carries of different layouts: a conversion is missing in what `broken` makes of it. */
const twoCarries = `kernel @carries grid [] threads [main] target sm_90a shared 4224 layouts [A = "(W0 W1 | L0 L1 L2 L3 L4)", B = "(L0 L1 L2 L3 L4 | W0 W1)"] (
  input %0 "x": ref<gmem, f32, [32, 32]>,
  output %1 "out": ref<gmem, f32, [32, 32]>
) {
  %2 = load %0 {unit = "global 4"} : tile<f32, [32, 32], A>
  %3 = alloc_scratch {bytes = 4224, agents = 1, at = 0} : ref<smem, u8, [1, 4224]>
  %4 = convert_layout %2 scratch(%3) : tile<f32, [32, 32], B>
  %5 = constant {value = 0, dtype = i32, shape = []} : i32
  %6 = constant {value = 3, dtype = i32, shape = []} : i32
  %7 = constant {value = 1, dtype = i32, shape = []} : i32
  %8, %9 = loop %5, %6, %7 initial(%2, %4) body(%10: i32, %11: tile<f32, [32, 32], A>, %12: tile<f32, [32, 32], B>) {
    %13 = unary %11 {fn = exp} : tile<f32, [32, 32], A>
    %14 = unary %12 {fn = exp} : tile<f32, [32, 32], B>
    yield %13, %14
  } : tile<f32, [32, 32], A>, tile<f32, [32, 32], B>
  store %1, %8 {unit = "global 4"}
  warps body(%15: i32) {
    %16 = load %0 {unit = "global 4"} : tile<f32, [32, 32], "(L0 L1 L2 L3 L4)">
    yield
  }
  yield
}
`;

/** Rows by index, with a mask: index and mask lie beside the elements that they are of. */
const rows = `kernel @rows grid [] threads [main] target sm_90a shared 0 layouts [A = "(W0 W1 | L0 L1 L2 L3 L4)", B = "(W0 W1)", C = "(W0 W1 |)"] (
  input %0 "x": ref<gmem, f32, [64, 32]>,
  input %1 "ids": ref<gmem, i32, [4]>,
  input %2 "keep": ref<gmem, bool, [4, 1]>,
  inout %3 "out": ref<gmem, f32, [64, 32]>
) {
  %4 = load %1 {unit = "global 4"} : tile<i32, [4], B>
  %5 = load %2 {unit = "global 1"} : tile<bool, [4, 1], C>
  %6 = load %0 indices(%4) where(%5) {indexed = [0], guard = ["index 0"], unit = "global 4"} : tile<f32, [4, 32], A>
  store %3, %6 indices(%4) {indexed = [0], guard = ["index 0"], unit = "global 4"}
  yield
}
`;

/** A result of every law that no example has; each is stored, which takes tiles wherever they lie. */
const laws = `kernel @laws grid [] threads [main] target sm_90a shared 0 layouts [A = "(W0 W1 | L0 L1 L2 L3 L4)", B = "(L0 L1 L2 L3 L4 | W0 W1)", C = "(L0 L1 L2 L3 | L4 W0 W1)"] (
  input %0 "x": ref<gmem, f32, [32, 32]>,
  input %1 "column": ref<gmem, f32, [32, 1]>,
  inout %2 "out": ref<gmem, f32, [32, 32]>,
  inout %3 "half": ref<gmem, f32, [16, 32]>,
  scalar %4 "flag": bool,
  scalar %5 "which": i32
) {
  %6 = load %0 {unit = "global 4"} : tile<f32, [32, 32], A>
  %7 = load %0 {unit = "global 4"} : tile<f32, [32, 32], B>
  %8 = load %1 {unit = "global 4"} : tile<f32, [32, 1], "(W0 W1 |)">
  %9 = transpose %6 {permutation = [1, 0]} : tile<f32, [32, 32], B>
  store %2, %9 {unit = "global 4"}
  %10 = slice %6 {starts = [16, 0], sizes = [16, 32]} : tile<f32, [16, 32], A>
  store %3, %10 {unit = "global 4"}
  %11 = load %3 {unit = "global 4"} : tile<f32, [16, 32], A>
  %12 = load %3 {unit = "global 4"} : tile<f32, [16, 32], C>
  %13 = concatenate %11, %11 {axis = 0} : tile<f32, [32, 32], A>
  store %2, %13 {unit = "global 4"}
  %14 = broadcast %8 {shape = [32, 32], axes = [0, 1]} : tile<f32, [32, 32], A>
  store %2, %14 {unit = "global 4"}
  %15 = scan %6 {fn = sum, axis = 1, reverse = false} : tile<f32, [32, 32], A>
  store %2, %15 {unit = "global 4"}
  %16, %17 = sort %6 payloads(%6) {axis = 1, descending = false} : tile<f32, [32, 32], A>, tile<f32, [32, 32], A>
  store %2, %17 {unit = "global 4"}
  %18 = while %6 condition(%19: tile<f32, [32, 32], A>) {
    yield %4
  } body(%20: tile<f32, [32, 32], A>) {
    %21 = unary %20 {fn = exp} : tile<f32, [32, 32], A>
    yield %21
  } : tile<f32, [32, 32], A>
  store %2, %18 {unit = "global 4"}
  %22 = switch %5 cases {
    yield %6
  } cases {
    yield %18
  } : tile<f32, [32, 32], A>
  store %2, %22 {unit = "global 4"}
  yield
}
`;

const texts: { readonly [name: string]: string } = {
  carries: twoCarries,
  rows,
  laws,
  ...Object.fromEntries(
    ["axpy", "column-sum", "dot", "matmul"].map((name) => [
      name,
      readText(`test/golden/placed/${name}.sm_90a.ir`),
    ]),
  ),
  "mma.sync": readText("test/golden/placed/dot.sm_80.ir"),
};

const broken: BrokenCases = [
  [
    "TW6201",
    [
      {
        what: "a tile has no layout",
        of: "dot",
        replace: "tile<bf16, [128, 64], B>",
        by: "tile<bf16, [128, 64]>",
      },
      {
        what: "a copy is made in no way",
        of: "matmul",
        replace: ', by = "tensor"',
        by: "",
        says: "copy_async has no by",
      },
      {
        what: "a tensor copy goes by no map",
        of: "matmul",
        replace: /(by = "tensor"), map = "[^"]*"/,
        by: "$1",
        says: "copy_async has no map",
      },
      { what: "nothing is said of bounds", of: "axpy", replace: ', guard = ["0 below"]', by: "" },
      {
        what: "an access has no unit",
        of: "axpy",
        replace: ' {unit = "global 16 if whole"}',
        by: "",
      },
      { what: "a buffer lies nowhere", of: "dot", replace: ", at = 16384", by: "" },
      {
        what: "a buffer is stored in no way",
        of: "dot",
        replace: ', layout = "shared(swizzle 128)"',
        by: "",
      },
      {
        what: "a product has no instruction",
        of: "mma.sync",
        replace: ', instruction = "mma.sync"',
        by: "",
      },
      {
        what: "the grid of warps is missing",
        of: "mma.sync",
        replace: /, warps = \[\d, \d\]/,
        by: "",
      },
    ],
  ],
  [
    "TW6202",
    [
      { what: "a layout has two spellings", of: "axpy", replace: '"(R0 R1', by: '"flat(R0 R1' },
      {
        what: "a warp holds what lies in others",
        of: "carries",
        replace: '"(L0 L1 L2 L3 L4)"',
        by: '"(W0 L0 L1 L2 L3)"',
        says: "over more warps than the 1 that hold it",
      },
      {
        what: "a layout has too many axes",
        of: "axpy",
        replace: /"\(R0 R1[^"]*"/,
        by: '"(R0 | L0 L1)"',
      },
    ],
  ],
  [
    "TW6203",
    [
      {
        what: "an index lies in another lane than its row",
        of: "rows",
        replace: "tile<i32, [4], B>",
        by: 'tile<i32, [4], "(L0 L1)">',
      },
      {
        what: "a mask lies in another lane than its row",
        of: "rows",
        replace: "tile<bool, [4, 1], C>",
        by: 'tile<bool, [4, 1], "(L0 L1 |)">',
      },
      {
        what: "one value is yielded to two carries",
        of: "carries",
        replace: "yield %13, %14",
        by: "yield %13, %13",
      },
      {
        what: "a carry begins elsewhere",
        of: "carries",
        replace: "initial(%2, %4)",
        by: "initial(%2, %2)",
      },
      {
        what: "a function moves its operand",
        of: "carries",
        replace: "unary %11",
        by: "unary %12",
      },
      {
        what: "a sum lies elsewhere",
        of: "column-sum",
        replace: "axes = [0]} : tile<f32, [96], B>",
        by: "axes = [0]} : tile<f32, [96], C>",
      },
      {
        what: "an operand is one number, and the other is spread",
        of: "axpy",
        replace: "binary %9, %11",
        by: "binary %9, %10",
      },
      {
        what: "wgmma accumulates elsewhere",
        of: "dot",
        replace: /"\(L2 L3 L4 R1 W0 W1 \| R0 L0 L1\)"/,
        by: '"(L2 L3 L4 W0 W1 | R0 L0 L1)"',
      },
      {
        what: "a transposed tile lies as it was",
        of: "laws",
        replace: "permutation = [1, 0]} : tile<f32, [32, 32], B>",
        by: "permutation = [1, 0]} : tile<f32, [32, 32], A>",
      },
      {
        what: "a slice lies elsewhere",
        of: "laws",
        replace: "sizes = [16, 32]} : tile<f32, [16, 32], A>",
        by: "sizes = [16, 32]} : tile<f32, [16, 32], C>",
      },
      {
        what: "the second part of a concatenation lies elsewhere",
        of: "laws",
        replace: "concatenate %11, %11",
        by: "concatenate %11, %12",
      },
      {
        what: "a tile is repeated in other lanes",
        of: "laws",
        replace: "axes = [0, 1]} : tile<f32, [32, 32], A>",
        by: "axes = [0, 1]} : tile<f32, [32, 32], B>",
      },
      {
        what: "a scan moves its operand",
        of: "laws",
        replace: "reverse = false} : tile<f32, [32, 32], A>",
        by: "reverse = false} : tile<f32, [32, 32], B>",
      },
      {
        what: "a payload lies elsewhere than its key",
        of: "laws",
        replace: "sort %6 payloads(%6)",
        by: "sort %6 payloads(%7)",
      },
      {
        what: "the condition of a while gets its carry elsewhere",
        of: "laws",
        replace: "condition(%19: tile<f32, [32, 32], A>)",
        by: "condition(%19: tile<f32, [32, 32], B>)",
      },
      {
        what: "a while yields what lies elsewhere",
        of: "laws",
        replace: "yield %21",
        by: "yield %7",
      },
      {
        what: "the last case of a switch gives what lies elsewhere",
        of: "laws",
        replace: "yield %18",
        by: "yield %7",
      },
      {
        what: "the left operand of mma.sync lies elsewhere",
        of: "mma.sync",
        replace: '{unit = "shared matrices"} : tile<bf16, [128, 64], A>',
        by: '{unit = "shared 2"} : tile<bf16, [128, 64], B>',
      },
      {
        what: "the right operand of mma.sync lies elsewhere",
        of: "mma.sync",
        replace: '{unit = "shared matrices"} : tile<bf16, [64, 128], D>',
        by: '{unit = "shared 2"} : tile<bf16, [64, 128], C>',
      },
      {
        what: "what is stored is one number",
        of: "axpy",
        replace: "store %7, %15",
        by: "store %7, %10",
      },
    ],
  ],
  [
    "TW6204",
    [
      {
        what: "a conversion goes nowhere",
        of: "axpy",
        replace: "  store %7",
        by: "  %16 = convert_layout %15 : tile<f32, [1024], A>\n  store %7",
      },
      {
        what: "a warp on its own reads a tile of which it has a part",
        of: "carries",
        replace: '%16 = load %0 {unit = "global 4"} : tile<f32, [32, 32], "(L0 L1 L2 L3 L4)">',
        by: 'store %1, %2 {unit = "global 4"}',
      },
    ],
  ],
  [
    "TW6205",
    [
      { what: "a conversion has no scratch", of: "carries", replace: " scratch(%3)", by: "" },
      {
        what: "the scratch of a conversion is too small",
        of: "carries",
        replace: /4224(?=, agents)|4224(?=\]>)/g,
        by: "512",
      },
      {
        what: "the scratch of a sum is too small",
        of: "column-sum",
        replace: /1536(?=, agents)|1536(?=\]>)/g,
        by: "1024",
      },
      {
        what: "two threads share the scratch of one",
        of: "carries",
        replace: "threads [main]",
        by: "threads [main, other]",
      },
    ],
  ],
  [
    "TW6206",
    [
      {
        what: "wgmma reads rows that are not swizzled as it wants",
        of: "dot",
        replace: "shared(tile 64 64, swizzle 128)",
        by: "shared(order 1 0)",
      },
      {
        what: "a tensor copy writes what no box is",
        of: "matmul",
        replace: "shared(swizzle 128)",
        by: "shared(order 2 1 0)",
        says: "the copy would transpose",
      },
      {
        what: "the target has no tensor copies",
        of: "matmul",
        replace: "target sm_90a",
        by: "target sm_80",
        says: "copy_async cannot be made",
      },
      {
        what: "a copy goes by another map than its windows say",
        of: "matmul",
        replace: /by = "tensor", map = "load 64 of k/,
        by: 'by = "tensor", map = "load 32 of k',
        says: "its map is load 64 of k",
      },
      {
        what: "a map is asked for that no copy goes by",
        of: "matmul",
        replace: /maps = \["load 64 of k/,
        by: 'maps = ["load 32 of k',
        says: "a map that no copy goes by",
      },
      { what: "there is no such instruction", of: "mma.sync", replace: '"mma.sync"', by: '"hmma"' },
      {
        what: "too many warps",
        of: "mma.sync",
        replace: /warps = \[\d, \d\]/,
        by: "warps = [4, 4]",
      },
    ],
  ],
  [
    "TW6207",
    [
      { what: "two buffers lie in one place", of: "dot", replace: "at = 16384", by: "at = 0" },
      {
        what: "a buffer lies between multiples of its pattern",
        says: "a multiple of 1024",
        of: "dot",
        replace: "at = 16384",
        by: "at = 16512",
      },
      {
        what: "a buffer ends behind the kernel's memory",
        of: "dot",
        replace: "shared 32768",
        by: "shared 32640",
      },
      {
        what: "the kernel takes more than there is",
        of: "dot",
        replace: "shared 32768",
        by: "shared 1000000",
      },
    ],
  ],
];

rejectsBroken(texts, broken);

test("a kernel that was never placed is rejected", () => {
  expect(reportOf("kernel @k grid [] threads [main] () {\n  yield\n}\n")?.code).toBe("TW6201");
});

test("scratch does not lie where a product still reads what was loaded before it", async () => {
  const shape = [64, 64] as const;
  const definition = kernel(
    {
      name: "late",
      inputs: { a: tensor(bf16, shape), b: tensor(bf16, shape), x: tensor(f32, shape) },
      outputs: { c: tensor(f32, shape), sums: tensor(f32, [64]) },
      scratch: { sa: smem(bf16, shape), sb: smem(bf16, shape) },
    },
    ({ a, b, x, c, sums, sa, sb }) => {
      const tile = x.load();
      sa.store(a.load());
      sb.store(b.load());
      const [left, right] = [sa.load(), sb.load()];
      const total = tile.sum({ axis: 0 });
      c.store(dot(left, right, { dtype: f32 }));
      sums.store(total);
    },
  );
  const counting = Array.from({ length: 64 * 64 }, (_, index) => index % 7);
  const inputs = {
    a: fromNumbers(bf16, shape, counting),
    b: fromNumbers(bf16, shape, counting.toReversed()),
    x: fromNumbers(f32, shape, counting),
  };
  const simulated = await runKernel(definition, inputs);
  const { results } = emulateKernel(definition, inputs);
  for (const name of ["c", "sums"])
    expect(results[name]?.data, name).toEqual(simulated.results[name]?.data);
});
