/**
 * The library's entry: everything `import … from "tilewright"` offers, named one by one. Nothing here
 * reaches the command line, so the entry bundles for a browser.
 */
export { TilewrightError } from "./support/diagnostics.ts";
export type { DiagnosticCode } from "./support/diagnostics.ts";
export {
  bf16,
  bool,
  f16,
  f32,
  f4e2m1fn,
  f64,
  f8e4m3fn,
  f8e5m2,
  f8e8m0fnu,
  i16,
  i32,
  i4,
  i64,
  i8,
  tf32,
  u16,
  u32,
  u4,
  u64,
  u8,
} from "./formats/dtype.ts";
export type { DType, DTypeName, HostValue, Lanes } from "./formats/dtype.ts";
export { decodeFloat, encodeFloat } from "./formats/floats.ts";
export type { CodedFloatName, ConversionOptions } from "./formats/floats.ts";
export { convertLanes } from "./formats/convert.ts";
export { convertValue } from "./formats/values.ts";
export { packLanes, unpackLanes } from "./formats/packed.ts";
export {
  formatArray,
  fromLanes,
  fromNumbers,
  hostArray,
  toBigInts,
  toFloat32,
  toLanes,
  toNested,
  toNumbers,
} from "./formats/hostarray.ts";
export type { HostArray, Nested, Storage } from "./formats/hostarray.ts";
