/** What inference gives for ops on tensor memory, for products with scales and for launch control. */
import { barrier, infer, ref, tile } from "../ir-fixtures.ts";
import { bf16, f32, f4e2m1fn, f8e4m3fn, f8e8m0fnu, i32, u32 } from "../../src/formats/dtype.ts";
import type { OpKind } from "../../src/ir/ops.ts";

export const tensorProductResults: readonly (readonly [
  OpKind,
  readonly string[],
  readonly string[],
])[] = [
  [
    "alloc_tmem",
    infer("alloc_tmem", {}, { dtype: f32, shape: [128, 8] }),
    ["ref<tmem, f32, [128, 8]>"],
  ],
  [
    "tmem_member",
    infer(
      "tmem_member",
      { union: ref("tmem", u32, 128, 64) },
      { column: 32, dtype: f32, shape: [128, 32] },
    ),
    ["ref<tmem, f32, [128, 32]>"],
  ],
  ["tmem_load", infer("tmem_load", { ref: ref("tmem", f32, 64, 8) }, {}), ["tile<f32, [64, 8]>"]],
  [
    "tmem_store",
    infer("tmem_store", { ref: ref("tmem", f32, 64, 32), value: tile(f32, 64, 32) }, {}),
    [],
  ],
  [
    "tcgen05_mma",
    infer(
      "tcgen05_mma",
      {
        sums: ref("tmem", f32, 128, 32),
        a: ref("smem", bf16, 128, 64),
        b: ref("smem", bf16, 64, 32),
      },
      {},
    ),
    [],
  ],
  [
    "tcgen05_copy",
    infer(
      "tcgen05_copy",
      {
        source: ref("smem", f8e8m0fnu, 1, 2, 32, 16),
        destination: ref("tmem", f8e8m0fnu, 128, 8),
      },
      {},
    ),
    [],
  ],
  ["tcgen05_commit", infer("tcgen05_commit", { barrier: barrier(1, 1) }, {}), []],
  [
    "scaled_dot",
    infer(
      "scaled_dot",
      {
        ...{ left: tile(f8e4m3fn, 16, 64), right: tile(f4e2m1fn, 64, 8) },
        ...{ leftScales: tile(f8e8m0fnu, 16, 2), rightScales: tile(f8e8m0fnu, 8, 2) },
      },
      { block: 32 },
    ),
    ["tile<f32, [16, 8]>"],
  ],
  [
    "take_block",
    infer("take_block", { response: ref("smem", i32, 4), barrier: barrier() }, {}),
    [],
  ],
  ["taken_block", infer("taken_block", { response: ref("smem", i32, 4) }, {}), ["i32"]],
];
