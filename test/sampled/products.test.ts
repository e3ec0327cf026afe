/** Products by every instruction, with operands in every place and order. */
import { productCases } from "../matrix/products.ts";
import { sample } from "./sample.ts";

sample("products", productCases(), [
  "dot f16 f16 f32 16x8x64",
  "dot bf16 bf16 f32 64x48x64",
  "dot f32 f32 f32 5x7x9",
  "dot i8 i8 i32 16x8x64",
  "dot f64 f64 f64 5x7x9",
  "dot f16 f16 f32 128x16x32",
  "dot f32 as tf32",
  "dot f32 rounded up to tf32",
  "dot of shared memory bf16 bf16 f32",
  "wgmma f16 f16 f32 k-major by n-major n 64",
  "wgmma f16 f16 f16 m-major by k-major n 8",
  "wgmma bf16 bf16 f32 m-major by n-major n 64",
  "wgmma bf16 bf16 f32 k-major by n-major n 8",
  "wgmma bf16 bf16 f32 registers by n-major n 64",
  "wgmma bf16 bf16 f32 registers by k-major n 8",
  "wgmma f8e4m3fn f8e5m2 f32 k-major by k-major n 64",
  "wgmma i8 u8 i32 k-major by k-major n 8",
]);
