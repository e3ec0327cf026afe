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
  "run-time rows bf16",
  "run-time rows i4",
  "shared transposed f16",
  "shared transposed f32",
  "shared transposed i4",
  "shared transposed bool",
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
]);
