/**
 * The header of an npy file, a Python dictionary written out:
 *
 *   93 'NUMPY' 01 00  76 00  {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      \n
 *   magic      version length  padded with spaces so that elements begin at a multiple of 64
 *
 * Versions 2 and 3 have a length of four bytes. The type is a string such as '<f4' (order, kind, bytes);
 * a list stands for records, which are refused.
 *
 *   | written        | read as                | written     | read as                            |
 *   |----------------|------------------------|-------------|------------------------------------|
 *   | |b1            | bool                   | f2 f4 f8    | f16, f32, f64                      |
 *   | |i1, i2 i4 i8  | i8, i16, i32, i64      | c8 c16      | f32, f64 with one more axis of two |
 *   | |u1, u2 u4 u8  | u8, u16, u32, u64      | |V1 V2      | the format the caller names        |
 */
import { TilewrightError } from "../support/diagnostics.ts";
import * as formats from "../formats/dtype.ts";
import type { DType, DTypeName } from "../formats/dtype.ts";
import { parsePythonLiteral, PythonSyntaxError } from "./python-literal.ts";
import type { PythonValue } from "./python-literal.ts";
import type { ByteRanges } from "./source.ts";
import type { ElementLayout } from "./stored-array.ts";

export interface NpyHeader {
  readonly layout: ElementLayout;
  readonly shape: readonly number[];
  /** The numbers of an element: of a complex one, two. */
  readonly parts: 1 | 2;
  readonly fortran: boolean;
  /** Where the elements begin. */
  readonly start: number;
}

const magic = Uint8Array.of(0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59);
/** NumPy refuses longer ones. */
const longestHeader = 10_000;
const keys = ["descr", "fortran_order", "shape"];

export async function readNpyHeader(file: ByteRanges, opaque?: DType): Promise<NpyHeader> {
  const opening = await file.read(0, Math.min(12, file.size));
  if (magic.some((byte, i) => opening[i] !== byte))
    throw new TilewrightError({
      code: "TW0101",
      message: "this is no npy file",
      expected: "\\x93NUMPY at its beginning",
      found: [...opening.subarray(0, magic.length)].map((byte) => byte.toString(16)).join(" "),
    });
  if (opening.length < 12) await file.read(0, 12);
  const [major = 0, minor = 0] = opening.subarray(magic.length);
  if (major < 1 || major > 3 || minor !== 0)
    throw damaged("the version is none of 1.0, 2.0, 3.0", `${major}.${minor}`);
  const view = new DataView(opening.buffer, opening.byteOffset, opening.length);
  const begin = major === 1 ? 10 : 12;
  const length = major === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (length > 4 * longestHeader) throw damaged("the header is too long", `${length} bytes`);
  const text = decodeHeader(await file.read(begin, begin + length), major);
  if (text.length > longestHeader)
    throw damaged("the header is too long", `${text.length} characters`);
  return { ...parseHeader(text, major < 3, opaque), start: begin + length };
}

function damaged(message: string, found: string): TilewrightError {
  return new TilewrightError({
    code: "TW0103",
    message: `the header of the npy file is damaged: ${message}`,
    expected: "a header as NumPy writes it",
    found,
  });
}

/** Version 3 is in UTF-8; those before are in Latin-1, where a byte is a character. */
function decodeHeader(bytes: Uint8Array, version: number): string {
  if (version < 3) return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw damaged("it is no UTF-8", `${bytes.length} bytes`);
  }
}

function parseHeader(
  text: string,
  python2: boolean,
  opaque: DType | undefined,
): Omit<NpyHeader, "start"> {
  const header = parseLiteral(text, python2);
  if (header.kind !== "dict") throw damaged("it is no dictionary", text.trim().slice(0, 120));
  const { entries } = header;
  const [descr, order, extents] = keys.map((key) => entries.get(key));
  if (descr === undefined || order === undefined || extents === undefined || entries.size !== 3)
    throw damaged(`its keys are not ${keys.join(", ")}`, [...entries.keys()].sort().join(", "));
  if (order.kind !== "bool") throw damaged("fortran_order is no bool", text.trim().slice(0, 120));
  const shape = shapeOf(extents, text);
  if (descr.kind === "list" || descr.kind === "tuple")
    throw unknownType("records of several fields", "a type such as '<f4'");
  if (descr.kind !== "string") throw damaged("descr is no type", text.trim().slice(0, 120));
  return { ...layoutOf(descr.value, opaque), shape, fortran: order.value };
}

function parseLiteral(text: string, python2: boolean): PythonValue {
  try {
    return parsePythonLiteral(text, python2);
  } catch (error) {
    if (error instanceof PythonSyntaxError) throw damaged(error.message, text.trim().slice(0, 120));
    throw error;
  }
}

function shapeOf(value: PythonValue, text: string): readonly number[] {
  const found = text.trim().slice(0, 120);
  if (value.kind !== "tuple") throw damaged("the shape is no tuple", found);
  return value.items.map((item) => {
    const extent = item.kind === "number" ? item.value : -1;
    if (!Number.isSafeInteger(extent) || extent < 0)
      throw damaged("the shape has what is no extent", found);
    return extent;
  });
}

/** What NumPy's names of types stand for: those that mean the same on every machine. */
const namedTypes: { readonly [name: string]: DTypeName } = {
  ...{ b1: "bool", "?": "bool", bool: "bool", bool_: "bool" },
  ...{ i1: "i8", b: "i8", int8: "i8", byte: "i8" },
  ...{ i2: "i16", h: "i16", int16: "i16", short: "i16" },
  ...{ i4: "i32", i: "i32", int32: "i32", intc: "i32" },
  ...{ i8: "i64", q: "i64", int64: "i64", longlong: "i64" },
  ...{ u1: "u8", B: "u8", uint8: "u8", ubyte: "u8" },
  ...{ u2: "u16", H: "u16", uint16: "u16", ushort: "u16" },
  ...{ u4: "u32", I: "u32", uint32: "u32", uintc: "u32" },
  ...{ u8: "u64", Q: "u64", uint64: "u64", ulonglong: "u64" },
  ...{ f2: "f16", e: "f16", float16: "f16", half: "f16" },
  ...{ f4: "f32", f: "f32", float32: "f32", single: "f32" },
  ...{ f8: "f64", d: "f64", float64: "f64", double: "f64", float: "f64" },
};

/** Complex numbers are pairs. */
const complexTypes: { readonly [name: string]: DTypeName } = {
  ...{ c8: "f32", F: "f32", complex64: "f32", csingle: "f32" },
  ...{ c16: "f64", D: "f64", complex128: "f64", cdouble: "f64", complex: "f64" },
};

/** Types of a letter, with or without a size, may have an order before them; names may not. */
const orderedType = /^([<>|=]?)([a-zA-Z?]\d*)$/;

function layoutOf(descr: string, opaque: DType | undefined): Pick<NpyHeader, "layout" | "parts"> {
  const [, order = "", name = descr] = orderedType.exec(descr) ?? [];
  const layout = { packed: false, order: order === ">" ? ("big" as const) : ("little" as const) };
  const real = Object.hasOwn(namedTypes, name) ? namedTypes[name] : undefined;
  if (real !== undefined) return { layout: { ...layout, dtype: formats.dtypes[real] }, parts: 1 };
  const part = Object.hasOwn(complexTypes, name) ? complexTypes[name] : undefined;
  if (part !== undefined) return { layout: { ...layout, dtype: formats.dtypes[part] }, parts: 2 };
  if (!/^V[12]$/.test(name)) throw unknownType(descr, "numbers of at most eight bytes");
  if (opaque === undefined || storedUnit(opaque) !== Number(name[1]))
    throw new TilewrightError({
      code: "TW0104",
      message: `NumPy knows elements of type ${descr} only by their size`,
      expected: `a format of ${name[1]} bytes`,
      found: opaque?.name ?? "none",
      remedy: "name the format that they have: { opaque: bf16 }",
    });
  return { layout: { ...layout, dtype: opaque }, parts: 1 };
}

/** The bytes of one element in a file, where nothing shares a byte. */
function storedUnit({ bits }: DType): number {
  return Math.max(1, bits / 8);
}

function unknownType(found: string, expected: string): TilewrightError {
  return new TilewrightError({
    code: "TW0104",
    message: "the npy file has elements that no format here can hold",
    expected,
    found,
  });
}

/** How each format is named; ml_dtypes' own are known to NumPy by their size alone. */
const writtenTypes: { readonly [N in DTypeName]: string | undefined } = {
  bool: "|b1",
  i8: "|i1",
  i16: "<i2",
  i32: "<i4",
  i64: "<i8",
  u8: "|u1",
  u16: "<u2",
  u32: "<u4",
  u64: "<u8",
  f16: "<f2",
  f32: "<f4",
  f64: "<f8",
  bf16: "<V2",
  f8e4m3fn: "|V1",
  f8e5m2: "|V1",
  f8e8m0fnu: "|V1",
  f6e2m3fn: "|V1",
  f6e3m2fn: "|V1",
  f4e2m1fn: "|V1",
  i4: "|V1",
  u4: "|V1",
  tf32: undefined,
};

/** The bytes before the elements of an array in row-major order. */
export function writeNpyHeader(dtype: DType, shape: readonly number[]): Uint8Array {
  const descr = writtenTypes[dtype.name];
  if (descr === undefined)
    throw new TilewrightError({
      code: "TW0109",
      message: `npy files have no elements of ${dtype.name}`,
      expected: Object.keys(writtenTypes).join(", "),
      found: dtype.name,
      remedy: "convert the array to f32, which holds all of its numbers",
    });
  const extents = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${extents}), }`;
  const length = Math.ceil((10 + text.length + 1) / 64) * 64;
  const bytes = new TextEncoder().encode(`${" ".repeat(10)}${text}`.padEnd(length - 1) + "\n");
  bytes.set(magic);
  bytes.set([1, 0, (length - 10) & 255, (length - 10) >> 8], 6);
  return bytes;
}
