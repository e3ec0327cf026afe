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
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { packedBytes } from "../formats/dtype.ts";
import * as formats from "../formats/dtype.ts";
import type { DTypeName } from "../formats/dtype.ts";
import { elementCount } from "../formats/shape.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { openRanges, reportedHere, subrange } from "./source.ts";
import type { ByteRanges, FileSource } from "./source.ts";
import { storedArray } from "./stored-array.ts";
import type { StoredArray } from "./stored-array.ts";

export interface SafetensorsFile {
  /** The file's own notes. */
  readonly metadata: { readonly [key: string]: string };
  /** The arrays by name, of which nothing is read yet. */
  readonly arrays: ReadonlyMap<string, StoredArray>;
  /** All of an array. */
  read(name: string): Promise<HostArray>;
}

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
    const { [metadataKey]: notes = {}, ...described } = header;
    const places = Object.entries(described).map(([name, value]) => parsePlace(name, value));
    requireNoHoles(places, elements.size);
    const arrays = new Map(places.map((place) => [place.name, arrayAt(place, elements)]));
    return {
      metadata: parseMetadata(notes),
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
): Promise<{ readonly header: Record<string, unknown>; readonly start: number }> {
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
  const text = new TextDecoder().decode(await file.read(lengthBytes, start));
  if (!text.startsWith("{"))
    throw new TilewrightError({
      code: "TW0101",
      message: "this is no safetensors file: its header is no JSON object",
      expected: "{",
      found: text.slice(0, 20),
    });
  return { header: parseJson(text) as Record<string, unknown>, start };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw damaged("it is no JSON", error instanceof Error ? error.message : undefined);
  }
}

function parseMetadata(notes: unknown): { readonly [key: string]: string } {
  const isText = (value: unknown) => typeof value === "string";
  if (typeof notes !== "object" || notes === null || !Object.values(notes).every(isText))
    throw damaged(`${metadataKey} maps no texts to texts`);
  return notes as { readonly [key: string]: string };
}

/** Where an array lies among the elements. */
interface Place {
  readonly name: string;
  readonly dtype: DTypeName;
  readonly shape: readonly number[];
  readonly start: number;
  readonly end: number;
}

function parsePlace(name: string, value: unknown): Place {
  const fields = typeof value === "object" && value !== null ? value : {};
  const { dtype, shape, data_offsets: offsets } = fields as Record<string, unknown>;
  if (typeof dtype !== "string" || !isCounts(shape) || !isCounts(offsets) || offsets.length !== 2)
    throw damaged(`${name} lacks dtype, shape or data_offsets`);
  const format = Object.hasOwn(readTypes, dtype) ? readTypes[dtype] : undefined;
  if (format === undefined)
    throw new TilewrightError({
      code: "TW0104",
      message: `${name} has elements that no format here can hold`,
      expected: Object.keys(readTypes).join(", "),
      found: dtype,
    });
  const [start = 0, end = 0] = offsets;
  const whole = dtype === "C64" ? [...shape, 2] : shape;
  const bytes = packedBytes(formats.dtypes[format], elementCount(whole));
  if (end - start !== bytes)
    throw damaged(`${name} takes ${bytes} bytes`, `offsets ${start} to ${end}`);
  return { name, dtype: format, shape: whole, start, end };
}

function isCounts(value: unknown): value is readonly number[] {
  const isCount = (each: unknown) => Number.isSafeInteger(each) && (each as number) >= 0;
  return Array.isArray(value) && value.every(isCount);
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
      second.bits - first.bits || (left < right ? -1 : 1),
  );
  const header: Record<string, unknown> = {};
  if (Object.keys(metadata).length > 0) header[metadataKey] = metadata;
  let end = 0;
  for (const [name, { dtype, shape, data }] of ordered) {
    if (name === metadataKey)
      throw unwritable(`${metadataKey} is no name for an array`, "another name", metadataKey);
    const written = writtenTypes.get(dtype.name);
    if (written === undefined)
      throw unwritable(
        `safetensors files have no elements of ${dtype.name}`,
        "a format that safetensors files have",
        dtype.name,
      );
    header[name] = { dtype: written, shape, data_offsets: [end, end + data.byteLength] };
    end += data.byteLength;
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const start = lengthBytes + Math.ceil(text.length / 8) * 8;
  const bytes = new Uint8Array(start + end).fill(0x20, lengthBytes, start);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(start - lengthBytes), true);
  bytes.set(text, lengthBytes);
  let at = start;
  for (const [, { data }] of ordered) {
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return bytes;
}

function unwritable(message: string, expected: string, found: string): TilewrightError {
  return new TilewrightError({ code: "TW0109", message, expected, found });
}
