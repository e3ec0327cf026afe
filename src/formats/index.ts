/** The public names of the number formats. */
export {
  allocateLanes,
  bf16,
  bool,
  dtypeNames,
  dtypes,
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
  isFloat,
  isInteger,
  isWide,
  packedBytes,
  tf32,
  u16,
  u32,
  u4,
  u64,
  u8,
} from "./dtype.ts";
export type {
  DType,
  DTypeKind,
  DTypeName,
  FloatName,
  HostValue,
  IntegerName,
  Lanes,
  SignedName,
  UnsignedName,
} from "./dtype.ts";
export { decodeFloat, encodeFloat, floatFormats, roundFloat } from "./floats.ts";
export type {
  CodedFloatName,
  ConversionOptions,
  FloatFormat,
  Overflow,
  Rounding,
} from "./floats.ts";
export { conversionRules, numberClass } from "./conversion-rules.ts";
export type { ConversionRule, NumberClass } from "./conversion-rules.ts";
export { convertInto, convertLanes } from "./convert.ts";
export { convertValue, readLane, writeLane } from "./values.ts";
export { packLanes, unpackLanes } from "./packed.ts";
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
} from "./hostarray.ts";
export type { HostArray, Nested, PackedName, Storage } from "./hostarray.ts";
export { elementCount } from "./shape.ts";
