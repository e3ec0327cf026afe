/**
 * Zip archives, as far as NumPy's are concerned: entries that are stored or deflated, with 64-bit sizes
 * where they are large.
 *
 *   local header, name, bytes │ local header, name, bytes │ … │ directory │ [zip64 end, locator] │ end │ anything short
 *                                              one record an entry: name, sizes, checksum, offset
 *
 * What Python's zipfile reads is read alike, and what it refuses is refused: the directory ends where the last end record
 * begins, offsets count from where that says the archive began, and an entry is where its own header, of the same name, says so.
 */
import { zipSync } from "fflate";
import { TilewrightError } from "../support/diagnostics.ts";
import { inflatedRanges } from "./inflate.ts";
import { subrange } from "./source.ts";
import type { ByteRanges } from "./source.ts";

export interface ZipEntry {
  readonly name: string;
  /** Its bytes in ranges: of a stored entry without reading the others, of a compressed one only those before. */
  ranges(): Promise<ByteRanges>;
  /** Compares the checksum of all of its bytes with that of the directory. */
  verify(bytes: Uint8Array): void;
}

interface DirectoryRecord {
  /** Up to its first null character. */
  readonly name: string;
  readonly fullName: string;
  readonly flags: number;
  readonly method: number;
  readonly checksum: number;
  readonly compressed: number;
  readonly size: number;
  readonly offset: number;
  /** Where the next entry, or the directory, begins. */
  readonly limit: number;
}

const endSignature = 0x06054b50;
const end64Signature = 0x06064b50;
const locatorSignature = 0x07064b50;
const recordSignature = 0x02014b50;
const localSignature = 0x04034b50;
const endLength = 22;
const end64Length = 56;
const longestComment = 1 << 16;
const locatorLength = 20;
const localLength = 30;
const recordLength = 46;
const fullShort = 0xffff;
const fullWord = 0xffffffff;
/** The newest version of the format that readers know. */
const newestVersion = 63;
/** Bits of an entry's flags. */
const encrypted = 0x1;
const patched = 0x20;
const stronglyEncrypted = 0x40;
const namedInUtf8 = 0x800;

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

/** The entries of an archive, none of which expands to more than `limit` bytes. */
export async function openZip(file: ByteRanges, limit: number): Promise<readonly ZipEntry[]> {
  await requireBeginning(file);
  const { start, length, shift } = await findDirectory(file);
  const directory = await file.read(start, start + length);
  return readDirectory(directory, start, shift).map((record) => zipEntry(file, record, limit));
}

/** An archive of arrays begins with an entry, or with its end where it has none. */
async function requireBeginning(file: ByteRanges): Promise<void> {
  const view = viewOf(await file.read(0, Math.min(4, file.size)));
  const found = view.byteLength < 4 ? undefined : view.getUint32(0, true);
  if (found === localSignature || found === endSignature) return;
  throw new TilewrightError({
    code: found === undefined ? "TW0102" : "TW0101",
    message: "this is no archive: it does not begin as one",
    expected: "an entry of a zip archive",
    found: found === undefined ? `${file.size} bytes` : found.toString(16).padStart(8, "0"),
  });
}

interface DirectoryPlace {
  readonly start: number;
  readonly length: number;
  /** How far everything lies behind where it says, as where something was put between. */
  readonly shift: number;
}

async function findDirectory(file: ByteRanges): Promise<DirectoryPlace> {
  const start = Math.max(0, file.size - endLength - longestComment);
  const tail = viewOf(await file.read(start, file.size));
  const at = lastEndRecord(tail);
  if (at === undefined)
    throw new TilewrightError({
      code: file.size > 4 ? "TW0101" : "TW0102",
      message: "this is no archive: it does not end as one",
      expected: "the end of a zip archive's directory",
      found: `${file.size} bytes without it`,
    });
  const end = start + at;
  const place = (await findEnd64(file, end)) ?? {
    end,
    length: tail.getUint32(at + 12, true),
    offset: tail.getUint32(at + 16, true),
  };
  const begin = place.end - place.length;
  if (begin < 0) throw damaged("it would begin before the file does");
  return { start: begin, length: place.length, shift: begin - place.offset };
}

/** Where the end record is: the one without a comment at the very end, otherwise the last one that there is room for. */
function lastEndRecord(tail: DataView): number | undefined {
  const atEnd = tail.byteLength - endLength;
  const isEnd = (at: number): boolean => tail.getUint32(at, true) === endSignature;
  if (atEnd >= 0 && isEnd(atEnd) && tail.getUint16(atEnd + 20, true) === 0) return atEnd;
  let at = tail.byteLength - 4;
  while (at >= 0 && !isEnd(at)) at--;
  return at >= 0 && at <= atEnd ? at : undefined;
}

interface EndRecord {
  /** Where the directory ends. */
  readonly end: number;
  readonly length: number;
  readonly offset: number;
}

/** The end record with 64-bit fields, which lies before its locator, which lies before the end record at `end`. */
async function findEnd64(file: ByteRanges, end: number): Promise<EndRecord | undefined> {
  const start = end - locatorLength - end64Length;
  if (start < 0) return undefined;
  const view = viewOf(await file.read(start, end));
  if (view.getUint32(end64Length, true) !== locatorSignature) return undefined;
  if (view.getUint32(end64Length + 4, true) !== 0 || view.getUint32(end64Length + 16, true) > 1)
    throw damaged("it is spread over several files");
  if (view.getUint32(0, true) !== end64Signature) return undefined;
  return { end: start, length: longAt(view, 40), offset: longAt(view, 48) };
}

function readDirectory(
  bytes: Uint8Array,
  start: number,
  shift: number,
): readonly DirectoryRecord[] {
  const view = viewOf(bytes);
  const records: Omit<DirectoryRecord, "limit">[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (at + recordLength > bytes.length || view.getUint32(at, true) !== recordSignature)
      throw damaged(`entry ${records.length} is not there`);
    const nameLength = view.getUint16(at + 28, true);
    const extraLength = view.getUint16(at + 30, true);
    const extra = at + recordLength + nameLength;
    const end = extra + extraLength + view.getUint16(at + 32, true);
    const flags = view.getUint16(at + 8, true);
    const fullName = decodeName(bytes.subarray(at + recordLength, extra), flags);
    const [name = ""] = fullName.split("\0", 1);
    const version = view.getUint8(at + 6);
    if (version > newestVersion) throw unreadable(name, `it needs version ${version / 10}`);
    // A comment or an extra field that is cut off is as long as it is.
    const wide = wideFields(view, at, extra, Math.min(extra + extraLength, bytes.length));
    records.push({
      name,
      fullName,
      flags,
      method: view.getUint16(at + 10, true),
      checksum: view.getUint32(at + 16, true),
      ...wide,
      offset: wide.offset + shift,
    });
    at = end;
  }
  const begins = [...records.map(({ offset }) => offset), start].sort((a, b) => a - b);
  return records.map((record) => ({
    ...record,
    limit: begins.find((begin) => begin > record.offset) ?? start,
  }));
}

/** The upper half of code page 437, in which names are that do not say otherwise. */
const codePage437 =
  "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0";

function decodeName(bytes: Uint8Array, flags: number): string {
  if ((flags & namedInUtf8) === 0)
    return Array.from(bytes, (byte) =>
      byte < 128 ? String.fromCharCode(byte) : (codePage437[byte - 128] ?? ""),
    ).join("");
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw damaged("a name is no UTF-8");
  }
}

/** Sizes and offset of a record, of which those that are all ones follow in order in extra field 1. */
function wideFields(
  view: DataView,
  record: number,
  extra: number,
  end: number,
): Pick<DirectoryRecord, "size" | "compressed" | "offset"> {
  const fields = {
    size: view.getUint32(record + 24, true),
    compressed: view.getUint32(record + 20, true),
    offset: view.getUint32(record + 42, true),
  };
  for (let field = extra; field + 4 <= end;) {
    const kind = view.getUint16(field, true);
    const next = field + 4 + view.getUint16(field + 2, true);
    if (next > end) throw damaged("an extra field goes beyond its end");
    let at = field + 4;
    if (kind === 1)
      for (const name of ["size", "compressed", "offset"] as const) {
        if (fields[name] !== fullWord) continue;
        if (at + 8 > next) throw damaged("a 64-bit field is not there");
        fields[name] = longAt(view, at);
        at += 8;
      }
    field = next;
  }
  return fields;
}

function zipEntry(file: ByteRanges, record: DirectoryRecord, limit: number): ZipEntry {
  return {
    name: record.name,
    ranges: async () => {
      const stored = await storedRanges(file, record);
      return record.method === 0 ? stored : inflatedRanges(stored, record.size, limit);
    },
    verify: (bytes) => verifyChecksum(record, bytes),
  };
}

/** The bytes of an entry as they lie in the file. */
async function storedRanges(file: ByteRanges, record: DirectoryRecord): Promise<ByteRanges> {
  const { name, fullName, flags, method, offset, compressed, size, limit } = record;
  if ((flags & (encrypted | stronglyEncrypted)) !== 0) throw unreadable(name, "it is encrypted");
  if ((flags & patched) !== 0) throw unreadable(name, "it is a patch of another file");
  if (method !== 0 && method !== 8) throw unreadable(name, `it is compressed by method ${method}`);
  const header = viewOf(await file.read(offset, offset + localLength));
  if (header.getUint32(0, true) !== localSignature) throw damaged(`${name} is not where it says`);
  const nameEnd = offset + localLength + header.getUint16(26, true);
  const own = decodeName(await file.read(offset + localLength, nameEnd), header.getUint16(6, true));
  if (own !== fullName) throw damaged(`${name} is called ${own} where it lies`);
  const start = nameEnd + header.getUint16(28, true);
  // Of two sizes of stored bytes the smaller one counts.
  const end = start + (method === 0 ? Math.min(size, compressed) : compressed);
  if (end > file.size) await file.read(start, end);
  if (end > limit) throw damaged(`${name} goes on into the next entry`);
  return subrange(file, start, end);
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

/** Equal arrays make equal archives: no entry has the time of its writing. */
const beginningOfZip = new Date(1980, 0, 1);

/** An archive of stored entries. */
export function writeZip(
  entries: readonly (readonly [name: string, bytes: Uint8Array])[],
): Uint8Array {
  const bytes = entries.reduce((sum, [, each]) => sum + each.length, 0);
  const names = entries.reduce((sum, [name]) => sum + 3 * name.length + 100, 0);
  if (bytes + 2 * names >= fullWord || entries.length >= fullShort)
    throw new TilewrightError({
      code: "TW0109",
      message: "the archive is larger than 4 GiB or has more than 65534 arrays",
      expected: "less than 4 GiB, and at most 65534 arrays",
      found: `${bytes} bytes, ${entries.length} arrays`,
      remedy: "write several archives, or a safetensors file",
    });
  return zipSync(Object.fromEntries(entries), { level: 0, mtime: beginningOfZip });
}
