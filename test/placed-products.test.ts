/** The verifier of placed kernels on products in flight: which registers they have, and which groups waits leave of them. */
import { readText } from "./source-files.ts";
import { rejectsBroken } from "./support/broken-placed.ts";
import type { BrokenCases } from "./support/broken-placed.ts";

/** Accumulators that change places in each round, one of them multiplied from registers. */
const swapped = `kernel @swapped grid [] threads [main] target sm_90a shared 256 layouts [A = "(L2 L3 L4 R1 W0 W1 | R0 L0 L1)"] (
  output %0 "out": ref<gmem, f32, [64, 8]>
) {
  %1 = alloc {space = smem, dtype = bf16, shape = [16, 8], name = "b", layout = "shared()", at = 0} : ref<smem, bf16, [16, 8]>
  %2 = constant {value = 0, dtype = bf16, shape = [64, 16]} : tile<bf16, [64, 16], splat>
  %3 = accumulator {dtype = f32, shape = [64, 8]} : inflight<f32, [64, 8], A>
  %4 = accumulator {dtype = f32, shape = [64, 8]} : inflight<f32, [64, 8], A>
  %5 = constant {value = 0, dtype = i32, shape = []} : i32
  %6 = constant {value = 3, dtype = i32, shape = []} : i32
  %7 = constant {value = 1, dtype = i32, shape = []} : i32
  %8, %9 = loop %5, %6, %7 initial(%3, %4) body(%10: i32, %11: inflight<f32, [64, 8], A>, %12: inflight<f32, [64, 8], A>) {
    %13 = convert_layout %2 : tile<bf16, [64, 16], A>
    %14 = wgmma %11, %13, %1 {groups = 1} : inflight<f32, [64, 8], A>
    products_wait {pending = 0, groups = 0}
    yield %14, %12
  } : inflight<f32, [64, 8], A>, inflight<f32, [64, 8], A>
  %15, %16 = loop %5, %6, %7 initial(%8, %9) body(%17: i32, %18: inflight<f32, [64, 8], A>, %19: inflight<f32, [64, 8], A>) {
    %20 = convert_layout %2 : tile<bf16, [64, 16], A>
    %21 = wgmma %18, %20, %1 {groups = 1} : inflight<f32, [64, 8], A>
    products_wait {pending = 0, groups = 0}
    yield %19, %21
  } : inflight<f32, [64, 8], A>, inflight<f32, [64, 8], A>
  %22 = wgmma_wait %15 {pending = 0, gives = tile, groups = 0} : tile<f32, [64, 8], A>
  %23 = wgmma_wait %16 {pending = 0, gives = tile, groups = 0} : tile<f32, [64, 8], A>
  %24 = binary %22, %23 {fn = add} : tile<f32, [64, 8], A>
  store %0, %24 {unit = "global 4"}
  yield
}
`;

/** Products of several groups behind branches, in loops and of other threads; what they sum up is nobody's. */
const joins = `kernel @joins grid [] threads [main, other] target sm_90a shared 26624 layouts [A = "(L2 L3 L4 R1 W0 W1 | R0 L0 L1)"] (
  scalar %0 "flag": bool
) {
  %1 = alloc {space = smem, dtype = bf16, shape = [64, 64], name = "a", layout = "shared(swizzle 128)", at = 0} : ref<smem, bf16, [64, 64]>
  %2 = alloc {space = smem, dtype = bf16, shape = [64, 16], name = "b", layout = "shared(swizzle 32)", at = 8192} : ref<smem, bf16, [64, 16]>
  %19 = alloc {space = smem, dtype = bf16, shape = [128, 64], name = "tall", layout = "shared(swizzle 128)", at = 10240} : ref<smem, bf16, [128, 64]>
  %20 = accumulator {dtype = f32, shape = [128, 16]} : inflight<f32, [128, 16], A>
  %21 = wgmma %20, %19, %2 {groups = 1} : inflight<f32, [128, 16], A>
  %3 = accumulator {dtype = f32, shape = [64, 16]} : inflight<f32, [64, 16], A>
  %4 = wgmma %3, %1, %2 {groups = 4} : inflight<f32, [64, 16], A>
  if %0 then {
    %5 = accumulator {dtype = f32, shape = [64, 16]} : inflight<f32, [64, 16], A>
    %6 = wgmma %5, %1, %2 {groups = 4} : inflight<f32, [64, 16], A>
    yield
  } otherwise {
    yield
  }
  %7 = accumulator {dtype = f32, shape = [64, 16]} : inflight<f32, [64, 16], A>
  %8 = wgmma %7, %1, %2 {groups = 1} : inflight<f32, [64, 16], A>
  products_wait {pending = 2, groups = 5}
  on_threads {threads = [1]} body {
    %9 = accumulator {dtype = f32, shape = [64, 16]} : inflight<f32, [64, 16], A>
    %10 = wgmma %9, %1, %2 {groups = 4} : inflight<f32, [64, 16], A>
    yield
  }
  products_wait {pending = 1, groups = 1}
  %11 = constant {value = 0, dtype = i32, shape = []} : i32
  %12 = constant {value = 3, dtype = i32, shape = []} : i32
  %13 = constant {value = 1, dtype = i32, shape = []} : i32
  products_wait {pending = 0, groups = 0}
  loop %11, %12, %13 body(%14: i32) {
    products_wait {pending = 1, groups = 4}
    %15 = accumulator {dtype = f32, shape = [64, 16]} : inflight<f32, [64, 16], A>
    %16 = wgmma %15, %1, %2 {groups = 4} : inflight<f32, [64, 16], A>
    yield
  }
  while condition {
    products_wait {pending = 1, groups = 4}
    yield %0
  } body {
    %17 = accumulator {dtype = f32, shape = [64, 16]} : inflight<f32, [64, 16], A>
    %18 = wgmma %17, %1, %2 {groups = 4} : inflight<f32, [64, 16], A>
    yield
  }
  yield
}
`;

const texts: { readonly [name: string]: string } = {
  swapped,
  joins,
  matmul: readText("test/golden/placed/matmul.sm_90a.ir"),
  rolled: readText("test/golden/placed/rolled.sm_90a.ir"),
};

const broken: BrokenCases = [
  [
    "TW6201",
    [
      {
        what: "a product closes nobody knows how many groups",
        of: "rolled",
        replace: ", groups = 4}",
        by: "}",
        says: "wgmma has no groups",
      },
      {
        what: "a wait leaves nobody knows how many groups",
        of: "swapped",
        replace: ", groups = 0}",
        by: "}",
        says: "products_wait has no groups",
      },
    ],
  ],
  [
    "TW6208",
    [
      {
        what: "a tile is taken while its own product may run",
        of: "matmul",
        replace: "pending = 0, gives = tile",
        by: "pending = 1, gives = tile",
      },
      {
        what: "a round yields another accumulator whose product may run",
        of: "swapped",
        replace: "products_wait {pending = 0, groups = 0}\n    yield %19",
        by: "yield %19",
      },
      {
        what: "a round ends while a product may read registers",
        of: "swapped",
        replace: "products_wait {pending = 0, groups = 0}\n    yield %14",
        by: "yield %14",
      },
    ],
  ],
  [
    "TW6210",
    [
      {
        what: "a wait leaves one group of the product before the last",
        of: "rolled",
        replace: "gives = accumulator, groups = 4",
        by: "gives = accumulator, groups = 5",
        says: "{groups = 4}, which are the youngest 1",
      },
      {
        what: "the last wait leaves a group",
        of: "rolled",
        replace: "gives = tile, groups = 0",
        by: "gives = tile, groups = 1",
      },
      {
        what: "a product is fewer groups than instructions",
        of: "rolled",
        replace: "rolled = true, groups = 4",
        by: "rolled = true, groups = 2",
        says: "it has 4 instructions",
      },
      {
        what: "a wait counts four groups of a product that is one",
        of: "rolled",
        replace: "rolled = true, groups = 4",
        by: "rolled = true, groups = 1",
        says: "leaves groups of more than 1 products",
      },
      {
        what: "a product of registers is a loop",
        of: "swapped",
        replace: "%14 = wgmma %11, %13, %1 {groups = 1}",
        by: "%14 = wgmma %11, %13, %1 {groups = 2}",
        says: "it reads registers",
      },
      {
        what: "two slabs of rows are a loop",
        of: "joins",
        replace: "%19, %2 {groups = 1}",
        by: "%19, %2 {groups = 4}",
        says: "128 rows are several slabs",
      },
      {
        what: "steps lie unevenly",
        of: "rolled",
        replace: "shared(swizzle 128)",
        by: "shared(tile 64 32, swizzle 64)",
        says: "bytes of its left factor lie unevenly",
      },
      {
        what: "a branch starts a product of one group",
        of: "joins",
        replace: "%5, %1, %2 {groups = 4}",
        by: "%5, %1, %2 {groups = 1}",
        says: "{groups = 2}",
      },
      {
        what: "a wait counts a product of a branch that may be left out",
        of: "joins",
        replace: "%4 = wgmma %3, %1, %2 {groups = 4}",
        by: "%4 = wgmma %3, %1, %2 {groups = 1}",
        says: "{groups = 2}",
      },
      {
        what: "a wait counts a product of another thread",
        of: "joins",
        replace: "products_wait {pending = 1, groups = 1}",
        by: "products_wait {pending = 1, groups = 4}",
        says: "{groups = 1}",
      },
      {
        what: "the round before started a product of one group",
        of: "joins",
        replace: "%16 = wgmma %15, %1, %2 {groups = 4}",
        by: "%16 = wgmma %15, %1, %2 {groups = 1}",
      },
      {
        what: "the condition waits for what the round before started",
        of: "joins",
        replace: "%18 = wgmma %17, %1, %2 {groups = 4}",
        by: "%18 = wgmma %17, %1, %2 {groups = 1}",
      },
    ],
  ],
];

rejectsBroken(texts, broken);
