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
import type { ByteRanges } from "./source.ts";
import type { ElementLayout } from "./stored-array.ts";

export interface NpyHeader {
  readonly layout: ElementLayout;
  readonly shape: readonly number[];
  readonly fortran: boolean;
  /** Where the elements begin. */
  readonly start: number;
}

const magic = Uint8Array.of(0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59);
/** Header texts are short; NumPy itself refuses longer ones. */
const longestHeader = 1 << 20;

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
  const version = opening[6] as number;
  if (version < 1 || version > 3) throw damaged("the version is none of 1, 2, 3", `${version}`);
  const view = new DataView(opening.buffer, opening.byteOffset, opening.length);
  const begin = version === 1 ? 10 : 12;
  const length = version === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (length > longestHeader) throw damaged("the header is too long", `${length} bytes`);
  const text = new TextDecoder().decode(await file.read(begin, begin + length));
  return { ...parseHeader(text, opaque), start: begin + length };
}

function damaged(message: string, found: string): TilewrightError {
  return new TilewrightError({
    code: "TW0103",
    message: `the header of the npy file is damaged: ${message}`,
    expected: "a header as NumPy writes it",
    found,
  });
}

function parseHeader(text: string, opaque: DType | undefined): Omit<NpyHeader, "start"> {
  const descr = /'descr':\s*(?:'([^']*)'|(\[))/.exec(text);
  const order = /'fortran_order':\s*(True|False)/.exec(text);
  const extents = /'shape':\s*\(([^)]*)\)/.exec(text);
  if (descr === null || order === null || extents === null)
    throw damaged("it lacks descr, fortran_order or shape", text.trim().slice(0, 120));
  if (descr[2] !== undefined) throw unknownType("records of several fields", text);
  const { layout, parts } = layoutOf(descr[1] ?? "", opaque);
  const fortran = order[1] === "True";
  const shape = parseShape(extents[1] ?? "");
  if (parts === 1) return { layout, shape, fortran };
  if (fortran) throw unknownType("complex numbers in Fortran order", descr[1] ?? "");
  return { layout, shape: [...shape, parts], fortran };
}

function parseShape(text: string): readonly number[] {
  const items = text.split(",").map((item) => item.trim());
  if (items.at(-1) === "") items.pop();
  const shape = items.map((item) => (/^\d{1,15}L?$/.test(item) ? parseInt(item, 10) : NaN));
  if (!shape.every(Number.isSafeInteger)) throw damaged("the shape is none", `(${text})`);
  return shape;
}

const namedTypes: { readonly [descr: string]: DTypeName } = {
  b1: "bool",
  i1: "i8",
  i2: "i16",
  i4: "i32",
  i8: "i64",
  u1: "u8",
  u2: "u16",
  u4: "u32",
  u8: "u64",
  f2: "f16",
  f4: "f32",
  f8: "f64",
  c8: "f32",
  c16: "f64",
};

function layoutOf(
  descr: string,
  opaque: DType | undefined,
): { readonly layout: ElementLayout; readonly parts: 1 | 2 } {
  const [, order, name] = /^([<>|=])([a-zA-Z]\d+)$/.exec(descr) ?? [];
  if (name === undefined) throw unknownType(descr, "a type such as '<f4'");
  const layout = { packed: false, order: order === ">" ? ("big" as const) : ("little" as const) };
  const dtype = Object.hasOwn(namedTypes, name) ? namedTypes[name] : undefined;
  if (dtype !== undefined)
    return { layout: { ...layout, dtype: formats.dtypes[dtype] }, parts: name[0] === "c" ? 2 : 1 };
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
