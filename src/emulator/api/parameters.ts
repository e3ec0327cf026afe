/**
 * Values for the parameters of an entry, as the bytes that a driver would copy:
 *
 *   .param .u64 x       an array: its address; null; a whole number
 *   .param .u32 n       1000, -1
 *   .param .f32 alpha   0.5
 *   .param .b32 beta    { dtype: f32, value: 0.5 }: the text does not tell what the bits are
 *   .param .align 64 .b8 map[128]   a tensor map, or the bytes of a structure
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { isHostArray } from "../../formats/hostarray.ts";
import { valueBytes } from "../../formats/values.ts";
import type { PtxType } from "../../ptx/module.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { tensorMapBytes } from "../tensor-map.ts";
import type { Entry, EntryParameter } from "./module.ts";

/** A value whose format the parameter's type does not tell. */
export interface TypedValue {
  /** The format of the number. */
  readonly dtype: DType;
  /** The number. */
  readonly value: number | bigint | boolean;
}

/** Values that mean the same wherever an entry is launched. */
export type PlainValue = TypedValue | Uint8Array | number | bigint | boolean | null;

/** An array where it lies, for a parameter that is a pointer. */
export class ArrayPlace {
  readonly address: number;
  /** The array in words. */
  readonly text: string;

  constructor(address: number, text: string) {
    this.address = address;
    this.text = text;
  }
}

/** The bytes of a tensor map. */
export class MapBytes {
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }
}

/** A value with its arrays and tensor maps found. */
export type PlacedValue = ArrayPlace | MapBytes | PlainValue;

/** The format of a number that is given for a parameter of this type; whole numbers for the rest. */
const floatTypes: ReadonlyMap<PtxType, DTypeName> = new Map<PtxType, DTypeName>([
  ["f16", "f16"],
  ["bf16", "bf16"],
  ["f32", "f32"],
  ["f64", "f64"],
]);

const pointerBytes = 8;
/** Types that hold several numbers take bytes alone. */
const several: readonly PtxType[] = ["f16x2", "bf16x2", "b128"];

function parameterText({ name, type, count, vector }: EntryParameter): string {
  const array = count === undefined ? "" : `[${count}]`;
  return `.param ${vector === undefined ? "" : `.v${vector} `}.${type} ${name}${array}`;
}

/** What a parameter takes, in words. */
function takenText(parameter: EntryParameter): string {
  const { type, count, vector, bytes } = parameter;
  const asBytes = `a Uint8Array of ${bytes} bytes`;
  if (count !== undefined || vector !== undefined || several.includes(type))
    return bytes === tensorMapBytes ? `a tensor map, or ${asBytes}` : asBytes;
  if (floatTypes.has(type)) return `a number, or ${asBytes}`;
  return bytes === pointerBytes
    ? `an array, null, a whole number, { dtype, value }, or ${asBytes}`
    : `a whole number, { dtype, value }, or ${asBytes}`;
}

/** The bytes of all parameters of an entry; `place` finds the arrays and tensor maps among the values. */
export function entryParameterBytes<V>(
  { name, parameters }: Entry,
  values: unknown,
  place: (value: V) => PlacedValue,
  location: Location,
): readonly Uint8Array[] {
  if (!Array.isArray(values) || values.length !== parameters.length)
    throw new TilewrightError({
      code: "TW8003",
      message: `${name} takes another number of parameters`,
      location,
      expected: `${parameters.length}: ${parameters.map(parameterText).join(", ")}`,
      found: Array.isArray(values) ? `${values.length}` : "no list of values",
    });
  return parameters.map((parameter, position) =>
    parameterBytes(parameter, place((values as readonly V[])[position] as V), location),
  );
}

/** The bytes of a value for a parameter. */
export function parameterBytes(
  parameter: EntryParameter,
  value: PlacedValue,
  location: Location,
): Uint8Array {
  const bytes = encode(parameter, value);
  if (typeof bytes !== "string") return bytes;
  throw new TilewrightError({
    code: "TW8004",
    message: `${parameterText(parameter)} cannot be given this value`,
    location,
    expected: takenText(parameter),
    found: bytes,
  });
}

/** The bytes, or in words what was found instead of something that fits. */
function encode(parameter: EntryParameter, value: PlacedValue): Uint8Array | string {
  const { bytes, count, vector, type } = parameter;
  if (value instanceof Uint8Array)
    return value.length === bytes ? value.slice() : `${value.length} bytes`;
  if (value instanceof MapBytes) return bytes === tensorMapBytes ? value.bytes : "a tensor map";
  if (count !== undefined || vector !== undefined || several.includes(type)) return textOf(value);
  if (value instanceof ArrayPlace)
    return bytes === pointerBytes && !floatTypes.has(type)
      ? integerBytes(BigInt(value.address), bytes)
      : value.text;
  if (value === null)
    return bytes === pointerBytes ? new Uint8Array(bytes) : "null, which is a pointer";
  return typeof value === "object" ? typedBytes(parameter, value) : numberBytes(parameter, value);
}

function typedBytes({ bytes }: EntryParameter, value: TypedValue): Uint8Array | string {
  const { dtype, value: number } = value;
  if (!isDType(dtype) || !isScalar(number)) return textOf(value);
  const encoded = valueBytes(dtype, number);
  return encoded.length === bytes ? encoded : `${dtype.name}, of ${encoded.length} bytes`;
}

function numberBytes(
  { bytes, type }: EntryParameter,
  value: number | bigint | boolean,
): Uint8Array | string {
  if (!isScalar(value)) return textOf(value);
  const float = floatTypes.get(type);
  if (float !== undefined) return valueBytes(dtypes[float], Number(value));
  if (typeof value === "number" && !Number.isInteger(value)) return textOf(value);
  const whole = BigInt(value);
  const bits = BigInt(8 * bytes);
  // Compilers declare signed integers as unsigned ones and as bits: both ranges are fine.
  return whole >= -(1n << (bits - 1n)) && whole < 1n << bits
    ? integerBytes(whole, bytes)
    : `${whole}, which takes more than ${bits} bits`;
}

function integerBytes(value: bigint, bytes: number): Uint8Array {
  return new Uint8Array(BigUint64Array.of(BigInt.asUintN(64, value)).buffer).slice(0, bytes);
}

function isScalar(value: unknown): value is number | bigint | boolean {
  return typeof value === "number" || typeof value === "bigint" || typeof value === "boolean";
}

function isDType(value: unknown): value is DType {
  return Object.values(dtypes).some((each) => each === value);
}

function textOf(value: unknown): string {
  if (value instanceof ArrayPlace) return value.text;
  if (value === undefined) return "nothing";
  if (typeof value !== "object" || value === null) return optionText(value);
  if (isHostArray(value)) return "an array of the host, which upload() takes";
  return "dtype" in value ? "{ dtype, value } of something else" : "an object";
}
