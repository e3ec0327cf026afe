/** Loads, stores and atomic updates, with tails on every axis and elements of every width. */
import { rearrangingCases } from "../matrix/rearranging.ts";
import { updatingCases } from "../matrix/updating.ts";
import { sample } from "./sample.ts";

sample("windows", rearrangingCases(), [
  "copy f32 [63]",
  "copy f32 [300]",
  "copy f32 [5, 33]",
  "copy f16 [7, 130]",
  "copy f32 [8, 133]",
  "copy i8 [3, 5, 24]",
  "copy i4 [37]",
  "copy u4 [5, 33]",
  "copy bool [7, 130]",
  "copy f64 [64, 64]",
  "copy bf16 [1]",
  "load transposed f32",
  "load transposed i8",
  "load reshaped f16",
  "load reshaped i4",
  "load nested windows f32",
  "load nested windows i4",
  "load windows before windows f32",
  "load unaligned rows f32",
  "load unaligned rows i8",
  "run-time rows bf16",
  "run-time rows i4",
  "shared transposed f16",
  "shared transposed f32",
  "shared transposed i4",
  "shared transposed bool",
]);

sample("far outside", updatingCases(), [
  "load filled f32 64x64 of 40x50",
  "load filled f16 1x8 of 1x7",
  "load filled i8 4x512 of 2x300",
  "load filled u4 1x8 of 1x7",
  "load filled f64 64x64 of 40x50",
  "copyAsync filled with NaN f16 by lanes",
]);

sample("atomic updates", updatingCases(), [
  "atomic add f32",
  "atomic add f16",
  "atomic add i64",
  "atomic min i32",
  "atomic max u32",
  "atomic min bf16",
  "atomic xor u64",
  "atomic exchange f32",
  "atomic compare_exchange i32",
  "atomic compare_exchange u64",
  "atomic add of many blocks",
  "atomic sums f16",
  "atomic sums f32",
]);
