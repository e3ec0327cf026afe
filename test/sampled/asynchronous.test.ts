/** Copies by the copy engine: boxes, swizzles, overhanging windows, fills and reductions. */
import { updatingCases } from "../matrix/updating.ts";
import { sample } from "./sample.ts";

sample("copies", updatingCases(), [
  "copyAsync f32 one axis",
  "copyAsync bf16 rows",
  "copyAsync f16 overhanging",
  "copyAsync i8 overhanging",
  "copyAsync f32 odd rows",
  "copyAsync f64 three axes",
  "copyAsync u8 three axes",
  "copyAsync add f32",
  "copyAsync add i64",
  "copyAsync min bf16",
  "copyAsync max i32",
  "copyAsync filled with NaN f16",
  "copyAsync filled with NaN f32",
  "copyAsync of what lanes wrote",
]);
