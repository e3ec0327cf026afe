/**
 * What the gallery offers: every example, the matrix product in steps, kernels with a bug to find, and StableHLO programs. A bug
 * says which code reports it and which lines the report must name, by a piece of their text.
 */
import type { Language } from "../src/protocol.ts";
import axpy from "../../../examples/axpy.ts?text";
import cluster from "../../../examples/cluster.ts?text";
import columnSum from "../../../examples/column-sum.ts?text";
import gemm from "../../../examples/gemm.ts?text";
import handoff from "../../../examples/handoff.ts?text";
import matmul from "../../../examples/matmul.ts?text";
import softmax from "../../../examples/softmax.ts?text";
import tour from "../../../examples/tour.ts?text";
import transpose from "../../../examples/transpose.ts?text";
import blocksBug from "./bugs/blocks.ts?text";
import boundsBug from "./bugs/bounds.ts?text";
import deadlockBug from "./bugs/deadlock.ts?text";
import inflightBug from "./bugs/inflight.ts?text";
import proxyBug from "./bugs/proxy.ts?text";
import ringBug from "./bugs/ring.ts?text";
import unwrittenBug from "./bugs/unwritten.ts?text";
import descent from "./library/descent.ts?text";
import linear from "./library/linear.ts?text";
import rows from "./library/rows.ts?text";
import mlp from "./programs/mlp.mlir?text";
import stablehloSoftmax from "./programs/softmax.mlir?text";
import step1 from "./tutorial/matmul-1.ts?text";
import step2 from "./tutorial/matmul-2.ts?text";
import step3 from "./tutorial/matmul-3.ts?text";

export const galleryGroups = [
  "Examples",
  "Matmul, step by step",
  "Find the bug",
  "Library and arrays",
  "StableHLO",
] as const;
export type GalleryGroup = (typeof galleryGroups)[number];

export interface GalleryItem {
  readonly id: string;
  readonly group: GalleryGroup;
  readonly title: string;
  /** What to look at, in a sentence or two; of a bug, what is wrong, shown once it was found. */
  readonly guide: string;
  readonly name: string;
  readonly language: Language;
  readonly source: string;
  /** Of a bug: its code and the lines that the report names. */
  readonly reports?: { readonly code: string; readonly lines: readonly string[] };
}

function item(
  group: GalleryGroup,
  id: string,
  title: string,
  source: string,
  guide: string,
  reports?: GalleryItem["reports"],
): GalleryItem {
  const isGraph = group === "StableHLO";
  return {
    id,
    group,
    title,
    guide,
    source,
    name: `${id}.${isGraph ? "mlir" : "ts"}`,
    language: isGraph ? "stablehlo" : "typescript",
    ...(reports !== undefined && { reports }),
  };
}

const [examples, steps, bugs, library, programs] = galleryGroups;

export const gallery: readonly GalleryItem[] = [
  item(
    examples,
    "axpy",
    "A scaled sum",
    axpy,
    "The smallest kernel: one line of arithmetic over a vector whose last block is not full.",
  ),
  item(
    examples,
    "softmax",
    "Softmax of rows",
    softmax,
    "Reductions along a row; Layouts shows how the lanes share one.",
  ),
  item(
    examples,
    "column-sum",
    "Column sums across blocks",
    columnSum,
    "Blocks add their parts one after another, in turns that a semaphore gives them.",
  ),
  item(
    examples,
    "transpose",
    "Transpose through shared memory",
    transpose,
    "The buffer's layout keeps both sides free of bank conflicts: see Layouts.",
  ),
  item(
    examples,
    "matmul",
    "Matrix product, double-buffered",
    matmul,
    "While the tensor cores multiply one pair of tiles, TMA brings the next: see Timeline.",
  ),
  item(
    examples,
    "gemm",
    "Matrix product with a copying thread",
    gemm,
    "One program thread copies, two multiply; Memory shows the ring of buffers at work.",
  ),
  item(
    examples,
    "handoff",
    "Two threads and a ring",
    handoff,
    "Tiles pass from one program thread to another through two buffers and two arrays of barriers.",
  ),
  item(
    examples,
    "cluster",
    "A cluster that shares sums",
    cluster,
    "Blocks of a cluster read each other's shared memory.",
  ),
  item(
    examples,
    "tour",
    "The tour of all examples",
    tour,
    "Every example after the other; the last one has a bug on purpose, so that there is something to find.",
  ),
  item(
    steps,
    "matmul-1",
    "1. A tile of the result",
    step1,
    "Each block loads what its 64 × 64 elements need. Next: sums of any length.",
  ),
  item(
    steps,
    "matmul-2",
    "2. A loop along the sum",
    step2,
    "The loop carries the product so far, in registers. Next: shared memory.",
  ),
  item(
    steps,
    "matmul-3",
    "3. Copies and wgmma",
    step3,
    "Tiles arrive by TMA; in Timeline, copies and products still take turns. Next: both at once.",
  ),
  item(
    steps,
    "matmul-4",
    "4. Two buffers",
    matmul,
    "The double-buffered product of the examples: the next tiles are on their way while these are multiplied.",
  ),
  item(
    steps,
    "matmul-5",
    "5. A thread that copies",
    gemm,
    "The warp-specialized product of the examples: whoever copies waits for nobody but the barriers.",
  ),
  item(
    bugs,
    "bug-ring",
    "A ring in a hurry",
    ringBug,
    "The copying thread never waits for `empty`: in the third step it overwrites the first buffer while that may still be read. Waiting for empty[slot] from the third tile on orders the two.",
    {
      code: "TW3001",
      lines: ["copyAsync(source, ring.at(slot)"],
    },
  ),
  item(
    bugs,
    "bug-proxy",
    "Prepared, but for whom?",
    proxyBug,
    "Tensor cores read through another path than lanes write by. Without commitShared() after the stores, the barrier orders the threads but not the two paths.",
    {
      code: "TW3001",
      lines: ["left.store(a.load().mul(2))", "wgmma(accumulator("],
    },
  ),
  item(
    bugs,
    "bug-deadlock",
    "Nobody starts",
    deadlockBug,
    "The first wait for `empty` has nobody to end it: a buffer that was never filled is empty already. Only from the third tile on is there anything to wait for.",
    {
      code: "TW3011",
      lines: ["empty.at(slot).wait()", "full.at(slot).wait()"],
    },
  ),
  item(
    bugs,
    "bug-blocks",
    "Blocks that add",
    blocksBug,
    "Load, add, store is three steps, and blocks run side by side: two may load the same old sum. An atomic addition, or turns by a semaphore, would do.",
    {
      code: "TW3001",
      lines: ["total.store("],
    },
  ),
  item(
    bugs,
    "bug-unwritten",
    "Shifted by one",
    unwrittenBug,
    "Nothing was ever stored at the buffer's first element, so what is read there is whatever a kernel before has left.",
    {
      code: "TW3002",
      lines: ["out.store(buffer.at("],
    },
  ),
  item(
    bugs,
    "bug-inflight",
    "Still being read",
    inflightBug,
    "wgmma returns at once and reads its operands later; the next step's copies overwrite them meanwhile. Two buffers and waitPending(1) let both go on.",
    {
      code: "TW3001",
      lines: ["copyAsync(a.at(", "wgmma(sum, tileA, tileB)"],
    },
  ),
  item(
    bugs,
    "bug-bounds",
    "Out of the table",
    boundsBug,
    "The last block asks for row 16 of rows 0 to 15. A slice may overhang an array; an index may not.",
    {
      code: "TW3005",
      lines: ["table.at(row).load()"],
    },
  ),
  item(
    library,
    "linear",
    "A linear layer",
    linear,
    "matmul of tilewright/kernels, with an epilogue of one's own; Stages shows the kernel that was chosen for these sizes.",
  ),
  item(
    library,
    "rows",
    "Norm, softmax, the best two",
    rows,
    "Three operations of tilewright/kernels after one another, each a launch or more: see Results.",
  ),
  item(
    library,
    "descent",
    "Gradient descent",
    descent,
    "Arrays with jit and grad: the whole step is compiled once and runs as a few kernels.",
  ),
  item(
    programs,
    "mlp",
    "A multi-layer perceptron",
    mlp,
    "A JAX program as StableHLO: Graph shows its plan and what is left after simplification; Stages has its kernels.",
  ),
  item(
    programs,
    "softmax-graph",
    "Softmax as a graph",
    stablehloSoftmax,
    "The same softmax as among the examples, as whole-array operations.",
  ),
];

export function galleryItemNamed(id: string): GalleryItem | undefined {
  return gallery.find((each) => each.id === id);
}
