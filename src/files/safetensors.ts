/**
 * safetensors files: a header in JSON, then the elements of all arrays, row-major and little-endian.
 *
 *   8 bytes   length of the header
 *   header    {"w":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},"__metadata__":{"step":"100"}}
 *   elements  offsets count from here; arrays lie side by side, without holes
 *
 *   BOOL U8 I8 U16 I16 U32 I32 U64 I64     bool, u8 … i64        F4       f4e2m1fn, two a byte
 *   F16 BF16 F32 F64                       f16, bf16, f32, f64   C64      f32 with one more axis of two
 *   F8_E4M3 F8_E5M2 F8_E8M0                f8e4m3fn, f8e5m2, f8e8m0fnu
 *   F6_E2M3 F6_E3M2                        f6e2m3fn, f6e3m2fn, four in three bytes
 */
import { TilewrightError } from "../support/diagnostics.ts";
import * as formats from "../formats/dtype.ts";
import type { DTypeName } from "../formats/dtype.ts";
import { elementCount } from "../formats/shape.ts";
import { storageBytes, toElements } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { denseBits, packDense } from "../formats/packed.ts";
import { JsonSyntaxError, parseJsonHeader } from "./json-header.ts";
import type { JsonValue } from "./json-header.ts";
import { openRanges, reportedHere, subrange } from "./source.ts";
import type { ByteRanges, FileSource } from "./source.ts";
import { storedArray } from "./stored-array.ts";
import type { StoredArray } from "./stored-array.ts";

/** An opened safetensors file, whose arrays are read one by one. */
export interface SafetensorsFile {
  /** The file's own notes. */
  readonly metadata: { readonly [key: string]: string };
  /** The arrays by name, of which nothing is read yet. */
  readonly arrays: ReadonlyMap<string, StoredArray>;
  /** All of an array. */
  read(name: string): Promise<HostArray>;
}

type Members = Extract<JsonValue, { kind: "object" }>["members"];

const lengthBytes = 8;
/** The format's own limit. */
const longestHeader = 100_000_000;
const metadataKey = "__metadata__";

const readTypes: { readonly [name: string]: DTypeName } = {
  BOOL: "bool",
  U8: "u8",
  I8: "i8",
  U16: "u16",
  I16: "i16",
  U32: "u32",
  I32: "i32",
  U64: "u64",
  I64: "i64",
  F16: "f16",
  BF16: "bf16",
  F32: "f32",
  F64: "f64",
  F8_E4M3: "f8e4m3fn",
  F8_E5M2: "f8e5m2",
  F8_E8M0: "f8e8m0fnu",
  F6_E2M3: "f6e2m3fn",
  F6_E3M2: "f6e3m2fn",
  F4: "f4e2m1fn",
  C64: "f32",
};

const writtenTypes = new Map(
  Object.entries(readTypes)
    .filter(([name]) => name !== "C64")
    .map(([name, dtype]) => [dtype, name]),
);

function damaged(message: string, found = message): TilewrightError {
  return new TilewrightError({
    code: "TW0103",
    message: `the header of the safetensors file is damaged: ${message}`,
    expected: "names with dtype, shape and data_offsets, one array behind the other",
    found,
  });
}

/** The arrays of a safetensors file, of which nothing but the header is read yet. */
export function openSafetensors(source: FileSource): Promise<SafetensorsFile> {
  return reportedHere(async () => {
    const file = await openRanges(source, "safetensors");
    const { header, start } = await readHeader(file);
    const elements = subrange(file, start, file.size);
    const notes = header.filter(([name]) => name === metadataKey);
    if (notes.length > 1) throw damaged(`${metadataKey} stands twice`);
    // Of arrays of one name the last one counts.
    const described = new Map(header.filter(([name]) => name !== metadataKey));
    const places = [...described].map(([name, value]) => parsePlace(name, value));
    requireNoHoles(places, elements.size);
    const arrays = new Map(places.map((place) => [place.name, arrayAt(place, elements)]));
    return {
      metadata: parseMetadata(notes[0]?.[1]),
      arrays,
      read: (name) => reportedHere(async () => find(arrays, name).read()),
    };
  });
}

/** All arrays of a safetensors file by name. */
export function readSafetensors(
  source: FileSource,
): Promise<{ readonly [name: string]: HostArray }> {
  return reportedHere(async () => {
    const { arrays } = await openSafetensors(source);
    const read: [string, HostArray][] = [];
    for (const [name, array] of arrays) read.push([name, await array.read()]);
    return Object.fromEntries(read);
  });
}

async function readHeader(
  file: ByteRanges,
): Promise<{ readonly header: Members; readonly start: number }> {
  const opening = await file.read(0, lengthBytes);
  const length = new DataView(opening.buffer, opening.byteOffset).getBigUint64(0, true);
  if (length > BigInt(longestHeader))
    throw new TilewrightError({
      code: "TW0101",
      message: "this is no safetensors file: its header would be longer than any",
      expected: `a header of at most ${longestHeader} bytes`,
      found: `${length} bytes`,
    });
  const start = lengthBytes + Number(length);
  const header = parseHeader(decodeUtf8(await file.read(lengthBytes, start)));
  if (header.kind !== "object")
    throw new TilewrightError({
      code: "TW0101",
      message: "this is no safetensors file: its header is no JSON object",
      expected: "names with arrays",
      found: header.kind,
    });
  return { header: header.members, start };
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw damaged("it is no UTF-8", `${bytes.length} bytes`);
  }
}

function parseHeader(text: string): JsonValue {
  try {
    return parseJsonHeader(text);
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw damaged("it is no JSON", error.message);
    throw error;
  }
}

function parseMetadata(notes: JsonValue | undefined): { readonly [key: string]: string } {
  if (notes === undefined || notes.kind === "null") return {};
  if (notes.kind !== "object") throw damaged(`${metadataKey} maps no texts to texts`, notes.kind);
  return Object.fromEntries(
    notes.members.map(([key, value]) => {
      if (value.kind !== "string")
        throw damaged(`${metadataKey} maps no texts to texts`, `${key} is no text`);
      return [key, value.value];
    }),
  );
}

/** Where an array lies among the elements. */
interface Place {
  readonly name: string;
  readonly dtype: DTypeName;
  readonly shape: readonly number[];
  readonly start: number;
  readonly end: number;
}

function parsePlace(name: string, value: JsonValue): Place {
  const { dtype, shape, data_offsets: offsets } = placeFields(name, value);
  const extents = countsOf(shape);
  const [start, end, ...more] = countsOf(offsets) ?? [];
  if (
    dtype?.kind !== "string" ||
    extents === undefined ||
    start === undefined ||
    end === undefined ||
    more.length > 0
  )
    throw damaged(`${name} lacks dtype, shape or data_offsets`);
  const format = Object.hasOwn(readTypes, dtype.value) ? readTypes[dtype.value] : undefined;
  if (format === undefined)
    throw new TilewrightError({
      code: "TW0104",
      message: `${name} has elements that no format here can hold`,
      expected: Object.keys(readTypes).join(", "),
      found: dtype.value,
    });
  const whole = dtype.value === "C64" ? [...extents, 2] : extents;
  const bytes = (elementCount(whole) * denseBits(formats.dtypes[format])) / 8;
  if (!Number.isSafeInteger(bytes))
    throw damaged(`${name} takes no whole number of bytes`, `[${whole.join(", ")}]`);
  if (end - start !== bytes)
    throw damaged(`${name} takes ${bytes} bytes`, `offsets ${start} to ${end}`);
  return { name, dtype: format, shape: whole, start, end };
}

const fieldNames = ["dtype", "shape", "data_offsets"] as const;

/** The fields of an array, none of which may stand twice; others are left alone. */
function placeFields(
  name: string,
  value: JsonValue,
): { readonly [field in (typeof fieldNames)[number]]?: JsonValue } {
  // The format's own reader also takes the fields as a list.
  if (value.kind === "array" && value.items.length === fieldNames.length)
    return Object.fromEntries(fieldNames.map((field, i) => [field, value.items[i]]));
  const members = value.kind === "object" ? value.members : [];
  for (const field of fieldNames)
    if (members.filter(([member]) => member === field).length > 1)
      throw damaged(`${name} has ${field} twice`);
  return Object.fromEntries(members);
}

function countsOf(value: JsonValue | undefined): readonly number[] | undefined {
  if (value?.kind !== "array") return undefined;
  const counts = value.items.map((item) => (item.kind === "count" ? item.value : NaN));
  return counts.every((count) => !Number.isNaN(count)) ? counts : undefined;
}

/** Arrays share no bytes and leave none out, as the format demands. */
function requireNoHoles(places: readonly Place[], size: number): void {
  let end = 0;
  for (const place of places.toSorted(
    (left, right) => left.start - right.start || left.end - right.end,
  )) {
    if (place.start !== end) throw damaged(`${place.name} does not begin where another ends`);
    end = place.end;
  }
  if (end > size)
    throw new TilewrightError({
      code: "TW0102",
      message: "the safetensors file ends too early",
      expected: `${end} bytes of elements`,
      found: `${size}`,
    });
  if (end < size) throw damaged("bytes after the last array", `${size - end}`);
}

function arrayAt({ dtype, shape, start, end }: Place, elements: ByteRanges): StoredArray {
  const layout = { dtype: formats.dtypes[dtype], packed: true, order: "little" } as const;
  const own = subrange(elements, start, end);
  return storedArray({ layout, shape, fortran: false, elements: () => Promise.resolve(own) });
}

function find(arrays: ReadonlyMap<string, StoredArray>, name: string): StoredArray {
  const array = arrays.get(name);
  if (array !== undefined) return array;
  throw new TilewrightError({
    code: "TW0107",
    message: `the safetensors file has no array ${name}`,
    expected: [...arrays.keys()].join(", "),
    found: name,
  });
}

/** The bytes of a safetensors file: wide elements first, so that all of them are aligned. */
export function writeSafetensors(
  arrays: { readonly [name: string]: HostArray },
  metadata: { readonly [key: string]: string } = {},
): Uint8Array {
  const ordered = Object.entries(arrays).sort(
    ([left, { dtype: first }], [right, { dtype: second }]) =>
      denseBits(second) - denseBits(first) || (left < right ? -1 : 1),
  );
  const header: Record<string, unknown> = {};
  if (Object.keys(metadata).length > 0) header[metadataKey] = metadata;
  let end = 0;
  const stored: Uint8Array[] = [];
  for (const [name, array] of ordered) {
    const { dtype, shape } = array;
    if (name === metadataKey)
      throw unwritable(`${metadataKey} is no name for an array`, "another name", metadataKey);
    const written = writtenTypes.get(dtype.name);
    if (written === undefined)
      throw unwritable(
        `safetensors files have no elements of ${dtype.name}`,
        "a format that safetensors files have",
        dtype.name,
      );
    if ((elementCount(shape) * denseBits(dtype)) % 8 !== 0)
      throw unwritable(
        `${name} ends within a byte, as no array of a safetensors file may`,
        `a multiple of ${denseBits(dtype) === 6 ? 4 : 2} elements of ${dtype.name}`,
        `[${shape.join(", ")}]`,
      );
    const bytes =
      denseBits(dtype) === 6 ? packDense(dtype, toElements(array)) : storageBytes(array.data);
    header[name] = { dtype: written, shape, data_offsets: [end, end + bytes.length] };
    end += bytes.length;
    stored.push(bytes);
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const start = lengthBytes + Math.ceil(text.length / 8) * 8;
  const bytes = new Uint8Array(start + end).fill(0x20, lengthBytes, start);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(start - lengthBytes), true);
  bytes.set(text, lengthBytes);
  let at = start;
  for (const each of stored) {
    bytes.set(each, at);
    at += each.length;
  }
  return bytes;
}

function unwritable(message: string, expected: string, found: string): TilewrightError {
  return new TilewrightError({ code: "TW0109", message, expected, found });
}
