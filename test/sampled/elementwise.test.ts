/** Functions and casts of tiles, one of each way that they are computed. */
import { elementwiseCases } from "../matrix/elementwise.ts";
import { sample } from "./sample.ts";

const cases = elementwiseCases();

sample("functions", cases, [
  "unary sign f32",
  "unary clz i8",
  "unary popcount u64",
  "unary not bool",
  "unary exp f32",
  "unary rsqrt f16",
  "binary add i8 any",
  "binary sub bf16 any",
  "binary mul tf32 any",
  "binary div i32 any",
  "binary rem i64 any",
  "binary rem f32 any",
  "binary pow i16 any",
  "binary min f64 any",
  "binary min f64 zeros",
  "binary max f16 zeros",
  "binary max bf16 any",
  "binary shl u64 any",
  "binary shr i8 any",
  "binary xor u4 any",
  "compare ne f16",
  "compare lt i8",
  "compare eq bool",
  "classify is_nan bf16",
  "classify is_finite f64",
  "select i4",
  "select bool",
  "fma f16",
  "fma tf32",
]);

sample("casts", cases, [
  "cast f32 f16 saturate",
  "cast f64 bf16 saturate",
  "cast i64 bf16 saturate",
  "cast f32 f8e4m3fn saturate",
  "cast f32 f8e4m3fn nan",
  "cast f32 f8e5m2 nan",
  "cast f32 f4e2m1fn saturate",
  "cast f32 f8e8m0fnu saturate",
  "cast f32 tf32 saturate",
  "cast f8e8m0fnu f32 saturate",
  "cast f4e2m1fn f32 saturate",
  "cast f8e5m2 f16 saturate",
  "cast u4 f16 saturate",
  "cast i4 bf16 saturate",
  "cast i8 f16 saturate",
  "cast i8 f32 saturate",
  "cast u16 f32 saturate",
  "cast f32 i8 saturate",
  "cast f64 i32 saturate",
  "cast f32 u64 saturate",
  "cast i16 u8 saturate",
  "cast i8 i64 saturate",
  "cast f16 bool saturate",
  "cast bool bf16 saturate",
  "bitcast f32 i32",
]);

sample("what takes no input", cases, [
  "constant i4",
  "constant bool",
  "constant f8e5m2",
  "iota i8 axis 0",
  "iota bf16 axis 1",
]);
