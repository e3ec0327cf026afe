/**
 * Host arrays: how arrays of numbers cross the API, as `{ dtype, shape, data }`.
 *
 *   fromNumbers(bf16, [2, 2], [1, 2, 3, 4])
 *     -> { dtype: bf16, shape: [2, 2], data: Uint16Array [3f80, 4000, 4040, 4080] }
 *
 * Elements are in row-major order, as they lie in packed memory: `data` is a format's elements, except
 * that 4-bit formats keep two elements a byte in a Uint8Array (see `packed.ts`). Whoever takes an array
 * from a user calls `checkedArray`: what it costs does not depend on the length of a typed array.
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { optionText } from "../support/options.ts";
import { convertInto, convertElements } from "./convert.ts";
import * as formats from "./dtype.ts";
import { allocateElements, packedBytes, u8 } from "./dtype.ts";
import type { DType, DTypeName, HostValue, IntegerName, Elements } from "./dtype.ts";
import type { ConversionOptions } from "./floats.ts";
import { packElements, unpackElements } from "./packed.ts";
import { elementCount } from "./shape.ts";
import {
  arrayKind,
  otherKindText,
  otherStorage,
  requireDType,
  requireElements,
} from "./argument-checks.ts";
import { readElement, writeElement } from "./values.ts";

/** The formats that pack two elements a byte. */
export type PackedName = "i4" | "u4" | "f4e2m1fn";

/** The typed array that holds the elements of a host array. */
export type Storage<N extends DTypeName = DTypeName> = N extends PackedName
  ? Uint8Array
  : Elements<N>;

/** An array in the host's memory: what launches take and give. `fromNumbers` and `hostArray` make one. */
export interface HostArray<N extends DTypeName = DTypeName> {
  /** The format of the elements. */
  readonly dtype: DType<N>;
  /** The extents of the axes. */
  readonly shape: readonly number[];
  /** The elements in row-major order, in a typed array of their format. */
  readonly data: Storage<N>;
}

/** Plain values in a list, which the format they are for converts. */
export type PlainList = readonly (number | bigint | boolean)[];

/** What a function that takes an array of the host accepts: its elements may be a plain list. */
export interface GivenArray<N extends DTypeName = DTypeName> {
  /** The format of the elements. */
  readonly dtype: DType<N>;
  /** The extents of the axes. */
  readonly shape: readonly number[];
  /** The elements in row-major order. */
  readonly data: Storage<N> | PlainList;
}

/** A host array of what a user gave, with its format, its shape and its data found to agree. */
export function checkedArray<N extends DTypeName>(given: GivenArray<N>): HostArray<N> {
  const { dtype, shape, data } = given;
  // Without data `hostArray` would make some.
  if (data === undefined) throw otherStorage(requireDType(dtype), "its elements", data);
  if (!isPlainList(data)) return hostArray(dtype, shape, data);
  return fromNumbers(dtype, shape, data);
}

/** An array that a function reads, whoever made it. */
function readableArray<N extends DTypeName>(array: HostArray<N>): HostArray<N> {
  if (isHostArray(array) && (array.data as unknown) !== undefined)
    return hostArray(array.dtype, array.shape, array.data);
  throw new TilewrightError({
    code: "TW0002",
    message: "this is no array of the host",
    expected: "{ dtype, shape, data }",
    found: otherKindText(array),
    remedy: "make one with fromNumbers(dtype, shape, numbers)",
  });
}

function isPlainList(data: unknown): data is PlainList {
  return Array.isArray(data);
}

/** The memory of an array's elements, as bytes. */
export function storageBytes({ buffer, byteOffset, byteLength }: Storage): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Whether a value has the form of a host array. */
export function isHostArray(value: unknown): value is HostArray {
  if (typeof value !== "object" || value === null) return false;
  return "dtype" in value && "shape" in value && "data" in value;
}

/** An array over `data`, which is kept and not copied; of zero bits when there is none. */
export function hostArray<N extends DTypeName>(
  dtype: DType<N>,
  shape: readonly number[],
  data: Storage<N> = emptyStorage(dtype, shape),
): HostArray<N> {
  requireDType(dtype);
  const count = elementCount(shape);
  const expected = arrayKind(allocateStorage(dtype, 0)) ?? "";
  const found = arrayKind(data);
  if (found !== expected) throw otherStorage(dtype, expected, data);
  const length = dtype.bits === 4 ? packedBytes(dtype, count) : count;
  if (data.length !== length)
    throw mismatch(dtype, shape, `${expected} of ${length}`, `${data.length}${lostMemory(data)}`);
  return Object.freeze({ dtype, shape: Object.freeze([...shape]), data });
}

/** Says so where a typed array is empty because its memory has gone elsewhere. */
function lostMemory({ buffer, byteLength }: Storage): string {
  if (byteLength > 0) return "";
  try {
    new Uint8Array(buffer);
    return "";
  } catch {
    return ", since its buffer was transferred away";
  }
}

function emptyStorage<N extends DTypeName>(dtype: DType<N>, shape: readonly number[]): Storage<N> {
  requireDType(dtype);
  return allocateStorage(dtype, elementCount(shape));
}

function allocateStorage<N extends DTypeName>(dtype: DType<N>, count: number): Storage<N> {
  const storage =
    dtype.bits === 4
      ? allocateElements(u8, packedBytes(dtype, count))
      : allocateElements(dtype, count);
  return storage as Storage<N>;
}

/** Bytes of storage as the storage of another format; the bytes begin where that format may. */
export function viewStorage<N extends DTypeName>(
  dtype: DType<N>,
  { buffer, byteOffset }: Storage,
  offset: number,
  bytes: number,
): Storage<N> {
  const { constructor, BYTES_PER_ELEMENT: size } = allocateStorage(dtype, 0);
  const View = constructor as new (of: ArrayBufferLike, at: number, length: number) => Storage<N>;
  return new View(buffer, byteOffset + offset, bytes / size);
}

function mismatch(
  dtype: DType,
  shape: readonly number[],
  expected: string,
  found: string,
): TilewrightError {
  return new TilewrightError({
    code: "TW0001",
    message: `data does not fit ${dtype.name}[${shape.join(", ")}]`,
    expected,
    found,
  });
}

/** An array of elements, packed where the format packs; other formats keep the elements themselves. */
export function fromElements<N extends DTypeName>(
  dtype: DType<N>,
  shape: readonly number[],
  elements: Elements<N>,
): HostArray<N> {
  const count = elementCount(shape);
  requireElements(dtype, elements);
  if (elements.length !== count) {
    throw mismatch(dtype, shape, `${count} elements`, `${elements.length}`);
  }
  const data = dtype.bits === 4 ? packElements(dtype, elements) : elements;
  return hostArray(dtype, shape, data as Storage<N>);
}

/** One element an element: a fresh array where the format packs, the array's own data elsewhere. */
export function toElements<N extends DTypeName>(array: HostArray<N>): Elements<N> {
  const { dtype, shape, data } = readableArray(array);
  if (dtype.bits !== 4) return data as Elements<N>;
  return unpackElements(dtype, data as Uint8Array, elementCount(shape));
}

/**
 * An array of `values` converted by the table. A typed array counts as what it holds (an Int32Array
 * as i32); elsewhere a number counts as f64, a boolean as bool and a BigInt as a 64-bit integer.
 */
export function fromNumbers<N extends DTypeName>(
  dtype: DType<N>,
  shape: readonly number[],
  values: ArrayLike<number | bigint | boolean>,
  options?: ConversionOptions,
): HostArray<N> {
  requireDType(dtype);
  const count = elementCount(shape);
  requireValues(dtype, shape, values);
  if (values.length !== count) throw mismatch(dtype, shape, `${count} values`, `${values.length}`);
  const elements = allocateElements(dtype, count);
  const source = plainFormats.get(arrayKind(values) ?? "");
  if (source !== undefined) {
    convertInto(source, dtype, values as Elements, elements, 0, options);
  } else if (isNumberList(values)) {
    convertElements(formats.f64, dtype, Float64Array.from(values), elements, options);
  } else {
    for (let i = 0; i < count; i++) {
      writeElement(dtype, elements, i, values[i] as number | bigint | boolean, options);
    }
  }
  return fromElements(dtype, shape, elements);
}

/** Elements come in a list or a typed array, not in a text or one by one. */
function requireValues(dtype: DType, shape: readonly number[], values: unknown): void {
  if (Array.isArray(values) || arrayKind(values) !== undefined) return;
  throw mismatch(dtype, shape, "a list of values or a typed array", otherKindText(values));
}

const plainFormats: ReadonlyMap<string, DType> = new Map<string, DType>([
  ["Float64Array", formats.f64],
  ["Float32Array", formats.f32],
  ["Int8Array", formats.i8],
  ["Int16Array", formats.i16],
  ["Int32Array", formats.i32],
  ["BigInt64Array", formats.i64],
  ["Uint8Array", formats.u8],
  ["Uint8ClampedArray", formats.u8],
  ["Uint16Array", formats.u16],
  ["Uint32Array", formats.u32],
  ["BigUint64Array", formats.u64],
]);

function isNumberList(values: ArrayLike<unknown>): values is ArrayLike<number> {
  if (!Array.isArray(values)) return false;
  for (const value of values) if (typeof value !== "number") return false;
  return true;
}

function convertArray<N extends DTypeName>(array: HostArray, to: DType<N>): Elements<N> {
  const source = toElements(array);
  const elements = allocateElements(to, source.length);
  convertElements(array.dtype, to, source, elements);
  return elements;
}

/** The elements as f64; 64-bit integers beyond 2^53 are rounded. */
export function toNumbers(array: HostArray): Float64Array {
  return convertArray(array, formats.f64);
}

/** The elements as f32. */
export function toFloat32(array: HostArray): Float32Array {
  return convertArray(array, formats.f32);
}

/** The elements of an integer array, exactly. */
export function toBigInts(array: HostArray<IntegerName | "bool">): BigInt64Array | BigUint64Array {
  const signed = readableArray(array).dtype.kind === "signed";
  return convertArray(array, signed ? formats.i64 : formats.u64);
}

/** Lists within lists, an innermost one a row. */
export type NestedList = readonly (number | bigint | boolean | NestedList)[];

/** An array of nested lists, whose lengths are its shape. */
export function fromNested<N extends DTypeName>(dtype: DType<N>, list: NestedList): HostArray<N> {
  requireDType(dtype);
  const shape: number[] = [];
  for (let row: unknown = list; Array.isArray(row); row = row[0]) shape.push(row.length);
  const values: (number | bigint | boolean)[] = [];
  const collect = (item: unknown, axis: number): void => {
    const isRow = Array.isArray(item);
    if (isRow !== axis < shape.length || (isRow && item.length !== shape[axis]))
      throw raggedList(shape, axis, item);
    if (isRow) for (let index = 0; index < item.length; index += 1) collect(item[index], axis + 1);
    else values.push(item as number);
  };
  if (shape.length === 0) throw raggedList([0], 0, list);
  collect(list, 0);
  return fromNumbers(dtype, shape, values);
}

function raggedList(shape: readonly number[], axis: number, item: unknown): TilewrightError {
  return new TilewrightError({
    code: "TW0003",
    message: "the lists do not make an array",
    expected: axis < shape.length ? `a list of ${shape[axis] ?? 0}` : "a number",
    found: Array.isArray(item) ? `a list of ${item.length}` : optionText(item),
    remedy: "give every row the same number of elements",
  });
}

/** Arrays within arrays, an innermost one a row; the value alone for an array without dimensions. */
export type Nested<V> = V | readonly Nested<V>[];

/** The elements as nested JavaScript arrays. */
export function toNested<N extends DTypeName>(array: HostArray<N>): Nested<HostValue<N>> {
  const elements = toElements(array);
  const { dtype, shape } = array;
  const nest = (dimension: number, start: number): Nested<HostValue<N>> => {
    const extent = shape[dimension];
    if (extent === undefined) return readElement(dtype, elements, start);
    const stride = elementCount(shape.slice(dimension + 1));
    return Array.from({ length: extent }, (_, i) => nest(dimension + 1, start + i * stride));
  };
  return nest(0, 0);
}

/** Rows and columns shown at each edge of a dimension that is too long. */
const edgeItems = 3;

/** Short text for people: the format and the shape, then the elements with the middle left out, or all of them where asked. */
export function formatArray(
  array: HostArray,
  { whole: all = false }: { readonly whole?: boolean } = {},
): string {
  const elements = toElements(array);
  const { dtype, shape } = array;
  const format = (dimension: number, start: number): string => {
    const extent = shape[dimension];
    if (extent === undefined) return formatValue(readElement(dtype, elements, start));
    const stride = elementCount(shape.slice(dimension + 1));
    const item = (index: number): string => format(dimension + 1, start + index * stride);
    const whole = all || extent <= 2 * edgeItems + 1;
    const head = Array.from({ length: whole ? extent : edgeItems }, (_, i) => item(i));
    const tail = Array.from({ length: edgeItems }, (_, i) => item(extent - edgeItems + i));
    const items = whole ? head : [...head, "…", ...tail];
    const separator = dimension === shape.length - 1 ? ", " : `,\n${" ".repeat(dimension + 1)}`;
    return `[${items.join(separator)}]`;
  };
  return `${dtype.name}[${shape.join(", ")}]\n${format(0, 0)}`;
}

function formatValue(value: HostValue): string {
  if (typeof value !== "number") return String(value);
  if (Object.is(value, -0)) return "-0";
  return String(Number(value.toPrecision(6)));
}
