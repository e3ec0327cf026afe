/** Reductions, scans, searches, sorts and rearrangements of tiles. */
import { combiningCases } from "../matrix/combining.ts";
import { rearrangingCases } from "../matrix/rearranging.ts";
import { sample } from "./sample.ts";

sample("along axes", combiningCases(), [
  "reduce sum f32 [6, 50] axis 1",
  "reduce sum f16 [64, 64] axis 0",
  "reduce sum i8 [3, 4, 20] axis 1",
  "reduce prod f64 [6, 50] axis 0",
  "reduce min bf16 [6, 50] axis 1",
  "reduce max f32 [3, 4, 20] axis 2",
  "reduce max i32 [64, 64] axis 1",
  "reduce and i16 [6, 50] axis 1",
  "reduce xor u32 [64, 64] axis 1",
  "reduce or bool [6, 50] axis 0",
  "reduce to a scalar i32",
  "reduce to a scalar f64",
  "scan sum i32 axis 1",
  "scan sum f32 axis 1 reverse",
  "scan max bf16 axis 0 reverse",
  "scan prod f64 axis 1",
  "argmax f32 axis 1",
  "argmin f16 axis 0",
  "argmin i64 axis 1",
  "argmax u8 axis 0",
  "sort f32 [10, 33]",
  "sort f16 [64, 6] descending",
  "sort i64 [10, 33]",
  "sort i8 [10, 33] descending",
]);

sample("rearranged", rearrangingCases(), [
  "transpose f32",
  "transpose i8",
  "transpose bool",
  "transpose i4",
  "transpose of three axes f16",
  "transpose of a large tile",
  "reshape i4",
  "reshape f64",
  "slice bf16",
  "slice bool",
  "slice u4",
  "concatenate i8",
  "concatenate rows f32",
  "broadcast f16",
  "broadcast columns i32",
  "if i4",
  "if bool",
]);
