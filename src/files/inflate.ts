/**
 * Expands DEFLATE data (RFC 1951), what archives of compressed arrays hold. Platforms have a stream for
 * it, but not every Node from 20 on knows the raw form, and damaged data must end in a report of ours.
 *
 * Data is a row of blocks; a block is stored bytes, or symbols in Huffman codes:
 *
 *   0..255     a byte
 *   256        the end of the block
 *   257..285   a copy of 3 to 258 bytes; another code says from how far back
 *
 * Codes are decoded by counting: of the codes of each length only their number and their symbols in
 * order are kept, and a code of length n is below `first + count` for exactly one n.
 */
import { TilewrightError } from "../support/diagnostics.ts";

const lengthBases = [
  3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131,
  163, 195, 227, 258,
];
const lengthBits = [
  0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
];
const distanceBases = [
  1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049,
  3073, 4097, 6145, 8193, 12289, 16385, 24577,
];
const distanceBits = [
  0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13,
];
/** The order in which a block gives the lengths of the codes for lengths. */
const codeLengthOrder = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const longestCode = 15;

function damaged(message: string): TilewrightError {
  return new TilewrightError({
    code: "TW0106",
    message: `compressed data of the archive is damaged: ${message}`,
    expected: "a stream of deflate, as long as the directory says",
    found: message,
  });
}

interface HuffmanCode {
  /** How many codes there are of each length. */
  readonly counts: Uint16Array;
  /** The symbols by length and value of their codes. */
  readonly symbols: Uint16Array;
}

function huffmanCode(lengths: ArrayLike<number>): HuffmanCode {
  const counts = new Uint16Array(longestCode + 1);
  for (let i = 0; i < lengths.length; i++) increment(counts, lengths[i] as number);
  counts[0] = 0;
  const starts = new Uint16Array(longestCode + 2);
  let space = 1;
  for (let length = 1; length <= longestCode; length++) {
    space = 2 * space - (counts[length] as number);
    if (space < 0) throw damaged("more codes than their lengths allow");
    starts[length + 1] = (starts[length] as number) + (counts[length] as number);
  }
  const symbols = new Uint16Array(lengths.length);
  for (let symbol = 0; symbol < lengths.length; symbol++) {
    const length = lengths[symbol] as number;
    if (length !== 0) symbols[increment(starts, length)] = symbol;
  }
  return { counts, symbols };
}

/** Adds one to an element, and gives what it was. */
function increment(counts: Uint16Array, index: number): number {
  const before = counts[index] as number;
  counts[index] = before + 1;
  return before;
}

/** Bits of the data, the lowest of each byte first. */
class BitReader {
  #position = 0;
  #held = 0;
  #heldBits = 0;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** The next `count` bits, at most 16, as a number. */
  bits(count: number): number {
    while (this.#heldBits < count) {
      this.#held |= this.#byte() << this.#heldBits;
      this.#heldBits += 8;
    }
    const value = this.#held & ((1 << count) - 1);
    this.#held >>>= count;
    this.#heldBits -= count;
    return value;
  }

  /** The symbol whose code comes next, the code's highest bit first. */
  symbol({ counts, symbols }: HuffmanCode): number {
    let code = 0;
    let first = 0;
    let index = 0;
    for (let length = 1; length <= longestCode; length++) {
      code |= this.bits(1);
      const count = counts[length] as number;
      if (code - first < count) return symbols[index + code - first] as number;
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    throw damaged("a code that stands for nothing");
  }

  /** Whole bytes, from the next byte's beginning on. */
  wholeBytes(count: number): Uint8Array {
    this.#held = 0;
    this.#heldBits = 0;
    const end = this.#position + count;
    if (end > this.#bytes.length) throw damaged("it ends too early");
    const bytes = this.#bytes.subarray(this.#position, end);
    this.#position = end;
    return bytes;
  }

  #byte(): number {
    const byte = this.#bytes[this.#position++];
    if (byte === undefined) throw damaged("it ends too early");
    return byte;
  }
}

/** The expanded bytes, filled from the front. */
class Expansion {
  readonly bytes: Uint8Array;
  filled = 0;

  constructor(size: number) {
    this.bytes = new Uint8Array(size);
  }

  push(byte: number): void {
    if (this.filled >= this.bytes.length) throw damaged("it expands to more than it should");
    this.bytes[this.filled++] = byte;
  }

  append(bytes: Uint8Array): void {
    if (this.filled + bytes.length > this.bytes.length)
      throw damaged("it expands to more than it should");
    this.bytes.set(bytes, this.filled);
    this.filled += bytes.length;
  }

  /** Copies what lies `distance` back; a copy longer than that repeats itself. */
  repeat(length: number, distance: number): void {
    if (distance > this.filled) throw damaged("a copy from before the beginning");
    for (let i = 0; i < length; i++) this.push(this.bytes[this.filled - distance] as number);
  }
}

interface BlockCodes {
  readonly symbols: HuffmanCode;
  readonly distances: HuffmanCode;
}

let fixedCodes: BlockCodes | undefined;

/** The codes of blocks that bring none. */
function fixed(): BlockCodes {
  const length = (symbol: number) => (symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8);
  fixedCodes ??= {
    symbols: huffmanCode(Array.from({ length: 288 }, (_, symbol) => length(symbol))),
    distances: huffmanCode(new Array<number>(30).fill(5)),
  };
  return fixedCodes;
}

function readCodes(reader: BitReader): BlockCodes {
  const symbols = reader.bits(5) + 257;
  const distances = reader.bits(5) + 1;
  if (symbols > 286 || distances > 30) throw damaged("more symbols than there are");
  const codeLengths = new Uint8Array(19);
  const given = reader.bits(4) + 4;
  for (const symbol of codeLengthOrder.slice(0, given)) codeLengths[symbol] = reader.bits(3);
  const lengths = readLengths(reader, huffmanCode(codeLengths), symbols + distances);
  return {
    symbols: huffmanCode(lengths.subarray(0, symbols)),
    distances: huffmanCode(lengths.subarray(symbols)),
  };
}

/** Lengths of codes, in which 16 repeats the last one and 17 and 18 stand for runs of zeros. */
function readLengths(reader: BitReader, code: HuffmanCode, count: number): Uint8Array {
  const lengths = new Uint8Array(count);
  let filled = 0;
  while (filled < count) {
    const symbol = reader.symbol(code);
    if (symbol < 16) {
      lengths[filled++] = symbol;
      continue;
    }
    const previous = symbol === 16 ? lengths[filled - 1] : 0;
    if (previous === undefined) throw damaged("a repetition of nothing");
    const repeat =
      symbol === 16 ? reader.bits(2) + 3 : symbol === 17 ? reader.bits(3) + 3 : reader.bits(7) + 11;
    if (filled + repeat > count) throw damaged("more lengths of codes than symbols");
    lengths.fill(previous, filled, filled + repeat);
    filled += repeat;
  }
  return lengths;
}

function expandSymbols(reader: BitReader, codes: BlockCodes, output: Expansion): void {
  for (;;) {
    const symbol = reader.symbol(codes.symbols);
    if (symbol === 256) return;
    if (symbol < 256) {
      output.push(symbol);
      continue;
    }
    const length = (lengthBases[symbol - 257] ?? 0) + reader.bits(lengthBits[symbol - 257] ?? 0);
    const way = reader.symbol(codes.distances);
    const base = distanceBases[way];
    if (base === undefined || symbol > 285) throw damaged("a copy of no length or distance");
    output.repeat(length, base + reader.bits(distanceBits[way] ?? 0));
  }
}

function expandStored(reader: BitReader, output: Expansion): void {
  const [low = 0, high = 0, notLow = 0, notHigh = 0] = reader.wholeBytes(4);
  if ((low ^ notLow) !== 255 || (high ^ notHigh) !== 255)
    throw damaged("a stored length that is none");
  output.append(reader.wholeBytes(low | (high << 8)));
}

/** No DEFLATE data expands further than this. */
const greatestExpansion = 1032;

/** The `size` bytes that `data` expands to. */
export function inflate(data: Uint8Array, size: number): Uint8Array {
  if (size > greatestExpansion * data.length + 1)
    throw damaged("it cannot hold as much as it should");
  const reader = new BitReader(data);
  const output = new Expansion(size);
  for (let last = false; !last;) {
    last = reader.bits(1) === 1;
    const form = reader.bits(2);
    if (form === 0) expandStored(reader, output);
    else if (form === 3) throw damaged("a block of no known form");
    else expandSymbols(reader, form === 1 ? fixed() : readCodes(reader), output);
  }
  if (output.filled !== size) throw damaged("it expands to less than it should");
  return output.bytes;
}
