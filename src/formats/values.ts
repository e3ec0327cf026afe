/**
 * Single values: how one element is read and written as a JavaScript value.
 *
 * A JavaScript value is converted by the table like any other: a number as an f64, a boolean as a
 * bool, a BigInt as the 64-bit integer that holds it.
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { optionText } from "../support/options.ts";
import { convertInto, convertElements } from "./convert.ts";
import { allocateElements, bool, f64, i64, u64 } from "./dtype.ts";
import type { DType, DTypeName, HostValue, Elements } from "./dtype.ts";
import { requireDType } from "./argument-checks.ts";
import { decodeTable } from "./floats.ts";
import type { ConversionOptions, TableFloatName } from "./floats.ts";

const scratchNumber = new Float64Array(1);
const scratchSigned = new BigInt64Array(1);
const scratchUnsigned = new BigUint64Array(1);
const scratchBool = new Uint8Array(1);

const hasCodes: { readonly [N in TableFloatName]: true } = {
  f16: true,
  bf16: true,
  f8e4m3fn: true,
  f8e5m2: true,
  f8e8m0fnu: true,
  f6e2m3fn: true,
  f6e3m2fn: true,
  f4e2m1fn: true,
};

function isTableFloat(name: DTypeName): name is TableFloatName {
  return Object.hasOwn(hasCodes, name);
}

/** The value in an element; `index` must be one of the elements'. */
export function readElement<N extends DTypeName>(
  dtype: DType<N>,
  elements: Elements<N>,
  index: number,
): HostValue<N>;
export function readElement(dtype: DType, elements: Elements, index: number): HostValue {
  const element = elements[index] as number | bigint;
  if (isTableFloat(dtype.name)) return decodeTable(dtype.name)[element as number] as number;
  return dtype.kind === "bool" ? element !== 0 : element;
}

/** Converts `value` into the element at `index`. */
export function writeElement<N extends DTypeName>(
  dtype: DType<N>,
  elements: Elements<N>,
  index: number,
  value: number | bigint | boolean,
  options?: ConversionOptions,
): void {
  if (typeof value === "number") {
    scratchNumber[0] = value;
    convertInto(f64, dtype, scratchNumber, elements, index, options);
  } else if (typeof value === "boolean") {
    scratchBool[0] = value ? 1 : 0;
    convertInto(bool, dtype, scratchBool, elements, index, options);
  } else if (isWideValue(value) && value < 0n) {
    scratchSigned[0] = value;
    convertInto(i64, dtype, scratchSigned, elements, index, options);
  } else if (isWideValue(value)) {
    scratchUnsigned[0] = value;
    convertInto(u64, dtype, scratchUnsigned, elements, index, options);
  } else {
    throw new TilewrightError({
      code: "TW0004",
      message: `element ${index} of a ${dtype.name} array is not a value it can take`,
      expected: "a number, a boolean, or a BigInt from -2^63 to 2^64 - 1",
      found: optionText(value),
    });
  }
}

function isWideValue(value: unknown): value is bigint {
  return typeof value === "bigint" && value >= -(2n ** 63n) && value < 2n ** 64n;
}

/** `value`, first taken into `from`, converted to `to`. */
export function convertValue<To extends DTypeName>(
  from: DType,
  to: DType<To>,
  value: number | bigint | boolean,
  options?: ConversionOptions,
): HostValue<To> {
  const source = allocateElements(requireDType(from), 1);
  const target = allocateElements(requireDType(to), 1) as Elements<To>;
  writeElement(from, source, 0, value, options);
  convertElements(from, to, source, target, options);
  return readElement(to, target, 0);
}

/** The bytes of one value in memory; a 4-bit one takes a byte. */
export function valueBytes(dtype: DType, value: HostValue): Uint8Array {
  const elements = allocateElements(dtype, 1);
  writeElement(dtype, elements, 0, value);
  return new Uint8Array(elements.buffer);
}
