/** The public names of the number formats. */
export * from "./dtype.ts";
export { decodeFloat, encodeFloat, floatFormats, roundFloat } from "./floats.ts";
export type { CodedFloatName, ConversionOptions, FloatFormat, Overflow } from "./floats.ts";
export { conversionRules, numberClass } from "./conversion-rules.ts";
export type { ConversionRule, NumberClass } from "./conversion-rules.ts";
export { convertLanes, convertRange } from "./convert.ts";
export { convertValue, readLane, writeLane } from "./values.ts";
export { packLanes, unpackLanes } from "./packed.ts";
export {
  elementCount,
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
