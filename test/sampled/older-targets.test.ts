/** What GPUs other than Hopper do in other instructions: conversions, halves, copies, barriers, products. */
import { targets } from "../../src/targets/target.ts";
import { matrixCases } from "../matrix/index.ts";
import { sample } from "./sample.ts";

sample(
  "sm_80",
  matrixCases(),
  [
    "binary add bf16 any",
    "binary sub bf16 any",
    "binary mul bf16 any",
    "compare lt bf16",
    "cast f32 f8e4m3fn",
    "cast f32 f8e4m3fn nan",
    "cast f32 f8e5m2 nan",
    "cast f8e4m3fn f32",
    "cast f8e5m2 f16",
    "cast f32 tf32",
    "atomic add bf16",
    "atomic max f16",
    "copyAsync f32 rows",
    "copyAsync f16 overhanging",
    "copyAsync i8 odd rows",
    "copyAsync filled with NaN f16",
    "dot f16 f16 f32 16x8x64",
    "dot bf16 bf16 f32 64x48x64",
    "dot f64 f64 f64 64x48x64",
    "shared transposed f16",
    "barriers between threads",
    "waits by parity",
    "one warp copies, all wait",
  ],
  { target: targets.sm_80 },
);

const conversions = [
  "cast f32 f8e4m3fn",
  "cast f32 f8e4m3fn nan",
  "cast f32 f8e5m2 nan",
  "cast f8e4m3fn f32",
  "cast f8e5m2 f16",
  "cast f32 tf32",
];
const others = ["binary add bf16 any", "atomic add bf16", "dot bf16 bf16 f32 64x48x64"];

sample("sm_86", matrixCases(), ["cast f32 f8e4m3fn", ...others], { target: targets.sm_86 });
sample("sm_89", matrixCases(), [...conversions, ...others], { target: targets.sm_89 });
sample(
  "sm_120a",
  matrixCases(),
  [...conversions, ...others, "copyAsync f16 overhanging", "barriers between threads"],
  { target: targets.sm_120a },
);
