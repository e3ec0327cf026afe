/**
 * Zip archives, as far as NumPy's are concerned: entries that are stored or deflated, with 64-bit sizes
 * where they are large.
 *
 *   local header, name, bytes │ local header, name, bytes │ … │ directory │ [zip64 end, locator] │ end
 *                                                              one record an entry: sizes, checksum, offset
 *
 * Reading begins at the end: the last record says where the directory is. Fields that are all ones have
 * their value elsewhere, in the zip64 records.
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { inflate } from "./inflate.ts";
import { openRanges, subrange } from "./source.ts";
import type { ByteRanges } from "./source.ts";

export interface ZipEntry {
  readonly name: string;
  /** All of its bytes, whose checksum was verified. */
  bytes(): Promise<Uint8Array>;
  /** Its bytes in ranges: of a stored entry without reading the others, and so without the checksum. */
  ranges(): Promise<ByteRanges>;
}

interface DirectoryRecord {
  readonly name: string;
  readonly flags: number;
  readonly method: number;
  readonly checksum: number;
  readonly compressed: number;
  readonly size: number;
  readonly offset: number;
}

const endSignature = 0x06054b50;
const end64Signature = 0x06064b50;
const locatorSignature = 0x07064b50;
const recordSignature = 0x02014b50;
const localSignature = 0x04034b50;
const endLength = 22;
const longestComment = 0xffff;
const locatorLength = 20;
const localLength = 30;
const recordLength = 46;
const fullShort = 0xffff;
const fullWord = 0xffffffff;

function damaged(message: string): TilewrightError {
  return new TilewrightError({
    code: "TW0103",
    message: `the directory of the archive is damaged: ${message}`,
    expected: "a directory whose entries are all there",
    found: message,
  });
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** A 64-bit field; no file is larger than a number can count. */
function longAt(view: DataView, offset: number): number {
  const value = Number(view.getBigUint64(offset, true));
  if (!Number.isSafeInteger(value)) throw damaged("a size beyond all files");
  return value;
}

export async function openZip(file: ByteRanges): Promise<readonly ZipEntry[]> {
  const { start, length, entries } = await findDirectory(file);
  const directory = await file.read(start, start + length);
  return readDirectory(directory, entries).map((record) => zipEntry(file, record));
}

interface DirectoryPlace {
  readonly start: number;
  readonly length: number;
  readonly entries: number;
}

async function findDirectory(file: ByteRanges): Promise<DirectoryPlace> {
  const start = Math.max(0, file.size - endLength - longestComment - locatorLength);
  const tail = viewOf(await file.read(start, file.size));
  for (let at = tail.byteLength - endLength; at >= 0; at--) {
    if (tail.getUint32(at, true) !== endSignature) continue;
    if (at + endLength + tail.getUint16(at + 20, true) !== tail.byteLength) continue;
    const place = {
      entries: tail.getUint16(at + 10, true),
      length: tail.getUint32(at + 12, true),
      start: tail.getUint32(at + 16, true),
    };
    const isFull =
      place.entries === fullShort || place.length === fullWord || place.start === fullWord;
    const locator = at - locatorLength;
    if (!isFull || locator < 0 || tail.getUint32(locator, true) !== locatorSignature) return place;
    return readEnd64(file, longAt(tail, locator + 8));
  }
  throw new TilewrightError({
    code: file.size > 4 ? "TW0101" : "TW0102",
    message: "this is no archive: it does not end as one",
    expected: "the end of a zip archive's directory",
    found: `${file.size} bytes without it`,
  });
}

async function readEnd64(file: ByteRanges, offset: number): Promise<DirectoryPlace> {
  const view = viewOf(await file.read(offset, offset + 56));
  if (view.getUint32(0, true) !== end64Signature) throw damaged("its 64-bit end is not there");
  return { entries: longAt(view, 32), length: longAt(view, 40), start: longAt(view, 48) };
}

function readDirectory(bytes: Uint8Array, entries: number): readonly DirectoryRecord[] {
  const view = viewOf(bytes);
  const records: DirectoryRecord[] = [];
  let at = 0;
  while (records.length < entries) {
    if (at + recordLength > bytes.length || view.getUint32(at, true) !== recordSignature)
      throw damaged(`entry ${records.length} of ${entries} is not there`);
    const nameLength = view.getUint16(at + 28, true);
    const extraLength = view.getUint16(at + 30, true);
    const extra = at + recordLength + nameLength;
    const end = extra + extraLength + view.getUint16(at + 32, true);
    if (end > bytes.length) throw damaged("an entry goes beyond the end");
    const name = new TextDecoder().decode(bytes.subarray(at + recordLength, extra));
    const wide = wideFields(view, at, extra, extra + extraLength);
    records.push({
      name,
      flags: view.getUint16(at + 8, true),
      method: view.getUint16(at + 10, true),
      checksum: view.getUint32(at + 16, true),
      ...wide,
    });
    at = end;
  }
  return records;
}

/** Sizes and offset of a record, of which those that are all ones follow in order in extra field 1. */
function wideFields(
  view: DataView,
  record: number,
  extra: number,
  end: number,
): Pick<DirectoryRecord, "size" | "compressed" | "offset"> {
  let field = extra;
  while (field + 4 <= end && view.getUint16(field, true) !== 1)
    field += 4 + view.getUint16(field + 2, true);
  let next = field + 4;
  const limit = field + 4 <= end ? Math.min(end, next + view.getUint16(field + 2, true)) : next;
  const value = (offset: number): number => {
    const short = view.getUint32(record + offset, true);
    if (short !== fullWord || next + 8 > limit) return short;
    next += 8;
    return longAt(view, next - 8);
  };
  const size = value(24);
  return { size, compressed: value(20), offset: value(42) };
}

function zipEntry(file: ByteRanges, record: DirectoryRecord): ZipEntry {
  const { name, method, size } = record;
  const bytes = async (): Promise<Uint8Array> => {
    const stored = await storedRanges(file, record);
    const data = await stored.read(0, stored.size);
    const expanded = method === 0 ? data : inflate(data, size);
    verifyChecksum(record, expanded);
    return expanded;
  };
  return {
    name,
    bytes,
    ranges: async () =>
      method === 0 ? storedRanges(file, record) : openRanges(await bytes(), "npz"),
  };
}

/** The bytes of an entry as they lie in the file. */
async function storedRanges(file: ByteRanges, record: DirectoryRecord): Promise<ByteRanges> {
  const { name, flags, method, offset, compressed, size } = record;
  if ((flags & 1) !== 0) throw unreadable(name, "it is encrypted");
  if (method !== 0 && method !== 8) throw unreadable(name, `it is compressed by method ${method}`);
  if (method === 0 && compressed !== size) throw damaged(`${name} is stored with two sizes`);
  const header = viewOf(await file.read(offset, offset + localLength));
  if (header.getUint32(0, true) !== localSignature) throw damaged(`${name} is not where it says`);
  const start = offset + localLength + header.getUint16(26, true) + header.getUint16(28, true);
  if (start + compressed > file.size) await file.read(start, start + compressed);
  return subrange(file, start, start + compressed);
}

function unreadable(name: string, reason: string): TilewrightError {
  return new TilewrightError({
    code: "TW0105",
    message: `entry ${name} of the archive cannot be read: ${reason}`,
    expected: "entries that are stored or deflated, and not encrypted",
    found: reason,
  });
}

function verifyChecksum({ name, checksum }: DirectoryRecord, bytes: Uint8Array): void {
  const found = crc32(bytes);
  if (found === checksum) return;
  throw new TilewrightError({
    code: "TW0106",
    message: `the bytes of entry ${name} do not have the checksum that the archive says`,
    expected: checksum.toString(16),
    found: found.toString(16),
  });
}

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++)
    value = (value & 1) === 0 ? value >>> 1 : (value >>> 1) ^ 0xedb88320;
  return value;
});

function crc32(bytes: Uint8Array): number {
  let value = ~0;
  for (let i = 0; i < bytes.length; i++)
    value = (value >>> 8) ^ (crcTable[(value ^ (bytes[i] as number)) & 255] as number);
  return ~value >>> 0;
}

/** An archive of stored entries. */
export function writeZip(
  entries: readonly (readonly [name: string, bytes: Uint8Array])[],
): Uint8Array {
  const named = entries.map(([name, bytes]) => ({ name: new TextEncoder().encode(name), bytes }));
  const sizes = named.map(({ name, bytes }) => localLength + name.length + bytes.length);
  const start = sizes.reduce((sum, size) => sum + size, 0);
  const length = named.reduce((sum, { name }) => sum + recordLength + name.length, 0);
  if (start + length >= fullWord || entries.length >= fullShort)
    throw new TilewrightError({
      code: "TW0109",
      message: "the archive is larger than 4 GiB or has more than 65534 arrays",
      expected: "less than 4 GiB, and at most 65534 arrays",
      found: `${start + length} bytes, ${entries.length} arrays`,
      remedy: "write several archives, or a safetensors file",
    });
  const archive = new Uint8Array(start + length + endLength);
  const view = viewOf(archive);
  let local = 0;
  let record = start;
  for (const { name, bytes } of named) {
    const checksum = crc32(bytes);
    view.setUint32(local, localSignature, true);
    writeEntryFields(view, local + 4, name.length, bytes.length, checksum);
    archive.set(name, local + localLength);
    archive.set(bytes, local + localLength + name.length);
    view.setUint32(record, recordSignature, true);
    view.setUint16(record + 4, formatVersion, true);
    writeEntryFields(view, record + 6, name.length, bytes.length, checksum);
    view.setUint32(record + 42, local, true);
    archive.set(name, record + recordLength);
    local += localLength + name.length + bytes.length;
    record += recordLength + name.length;
  }
  view.setUint32(record, endSignature, true);
  view.setUint16(record + 8, named.length, true);
  view.setUint16(record + 10, named.length, true);
  view.setUint32(record + 12, length, true);
  view.setUint32(record + 16, start, true);
  return archive;
}

/** Version 2.0 of the format; names are in UTF-8. */
const formatVersion = 20;
const namesInUtf8 = 0x800;
/** The first of January 1980: equal arrays make equal archives. */
const date = 0x21;

/** The fields that an entry has before its bytes and in the directory. */
function writeEntryFields(
  view: DataView,
  at: number,
  nameLength: number,
  size: number,
  checksum: number,
): void {
  view.setUint16(at, formatVersion, true);
  view.setUint16(at + 2, namesInUtf8, true);
  view.setUint16(at + 8, date, true);
  view.setUint32(at + 10, checksum, true);
  view.setUint32(at + 14, size, true);
  view.setUint32(at + 18, size, true);
  view.setUint16(at + 22, nameLength, true);
}
