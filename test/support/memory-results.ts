/** What ops that access memory give for operands that fit: rows of `src/ir/infer/results.test.ts`. */
import { bf16, bool, f32, f64, i16, i32, i64 } from "../../src/formats/dtype.ts";
import type { OpKind } from "../../src/ir/ops.ts";
import { infer, n, ref, scalar, tile } from "../ir-fixtures.ts";

const index = scalar(i32);

export const memoryResults: readonly (readonly [OpKind, readonly string[], readonly string[]])[] = [
  ["load", infer("load", { indices: [], ref: ref("peer", f32, 4, 8) }, {}), ["tile<f32, [4, 8]>"]],
  ["load", infer("load", { indices: [], ref: ref("gmem", i32), fill: index }, {}), ["i32"]],
  ["store", infer("store", { indices: [], ref: ref("smem", f32, 4), value: tile(f32, 4) }, {}), []],
  ["store", infer("store", { indices: [], ref: ref("gmem", i32), value: index }, {}), []],
  [
    "load",
    infer(
      "load",
      { ref: ref("gmem", f32, n, 64), indices: [tile(i64, 8)], where: tile(bool, 8, 1) },
      { indexed: [0] },
    ),
    ["tile<f32, [8, 64]>"],
  ],
  [
    "load",
    infer(
      "load",
      { ref: ref("gmem", f32, n, 16, n), indices: [tile(i32, 8, 1), tile(i32, 1, 4)] },
      { indexed: [0, 2] },
    ),
    ["tile<f32, [8, 4, 16]>"],
  ],
  [
    "atomic",
    infer(
      "atomic",
      { ref: ref("smem", i32, 2, 64), value: tile(i32, 2, 5), indices: [tile(i32, 5)] },
      { fn: "add", indexed: [1] },
    ),
    ["tile<i32, [2, 5]>"],
  ],
  [
    "atomic",
    infer(
      "atomic",
      { indices: [], ref: ref("gmem", bf16, 4), value: tile(bf16, 4) },
      { fn: "max" },
    ),
    ["tile<bf16, [4]>"],
  ],
  [
    "atomic",
    infer("atomic", { indices: [], ref: ref("smem", f64), value: scalar(f64) }, { fn: "add" }),
    ["f64"],
  ],
  [
    "atomic",
    infer("atomic", { indices: [], ref: ref("gmem", f32), value: scalar(f32) }, { fn: "exchange" }),
    ["f32"],
  ],
  [
    "atomic_compare_exchange",
    infer(
      "atomic_compare_exchange",
      { indices: [], ref: ref("gmem", i16, 4), expected: tile(i16, 4), value: tile(i16, 4) },
      {},
    ),
    ["tile<i16, [4]>"],
  ],
  [
    "atomic_load",
    infer(
      "atomic_load",
      { indices: [], ref: ref("gmem", i16, 4), fill: tile(i16, 4) },
      { order: "acquire", scope: "device" },
    ),
    ["tile<i16, [4]>"],
  ],
  [
    "atomic_store",
    infer(
      "atomic_store",
      { indices: [], ref: ref("smem", f32, 4), value: tile(f32, 4) },
      { order: "release", scope: "block" },
    ),
    [],
  ],
];
