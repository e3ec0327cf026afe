/**
 * Entries that are compressed, expanded only as far as they are asked for: the header of an array takes the first bytes of
 * the stream, whatever the archive says that the rest expands to. DEFLATE itself is fflate's.
 *
 *   compressed   ├────piece────┼────piece────┼ …  read from the file when it is needed
 *   expanded     ├──────────────────┤ end of what was asked for
 */
import { Inflate } from "fflate";
import { TilewrightError } from "../support/diagnostics.ts";
import type { ByteRanges } from "./source.ts";

/** Compressed bytes that are expanded at once; none expands to more than 1,032 bytes. */
const pieceLength = 1 << 14;

/** What `compressed` expands to as a source of its own, of `size` bytes and never more than `limit`. */
export function inflatedRanges(compressed: ByteRanges, size: number, limit: number): ByteRanges {
  const stream = new InflatedPrefix(compressed, size);
  let turn: Promise<unknown> = Promise.resolve();
  return {
    size,
    read(start, end) {
      if (end > limit) throw tooLarge(end, limit);
      const bytes = turn.then(() => stream.read(start, end));
      // Whoever reads next goes on where this one ended.
      turn = bytes.catch(() => undefined);
      return bytes;
    },
  };
}

class InflatedPrefix {
  #bytes = new Uint8Array(0);
  #filled = 0;
  #consumed = 0;
  readonly #compressed: ByteRanges;
  readonly #size: number;
  readonly #inflate = new Inflate((chunk) => this.#append(chunk));

  constructor(compressed: ByteRanges, size: number) {
    this.#compressed = compressed;
    this.#size = size;
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    while (this.#filled < end && this.#consumed < this.#compressed.size) await this.#step();
    if (this.#filled < end) throw damaged("it expands to less than it should");
    return this.#bytes.subarray(start, end);
  }

  async #step(): Promise<void> {
    const end = Math.min(this.#consumed + pieceLength, this.#compressed.size);
    const piece = await this.#compressed.read(this.#consumed, end);
    this.#consumed = end;
    try {
      // The last piece may hold what comes after the stream: that the stream ended is seen by its length.
      this.#inflate.push(piece, false);
    } catch (error) {
      throw damaged(error instanceof Error ? error.message : "it is no stream of deflate");
    }
  }

  /** What goes beyond the size that the directory says is left out, as Python does; the checksum tells. */
  #append(chunk: Uint8Array): void {
    const used = chunk.subarray(0, this.#size - this.#filled);
    const needed = this.#filled + used.length;
    if (needed > this.#bytes.length) {
      const grown = new Uint8Array(Math.min(this.#size, Math.max(needed, 2 * this.#bytes.length)));
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    this.#bytes.set(used, this.#filled);
    this.#filled = needed;
  }
}

function damaged(message: string): TilewrightError {
  return new TilewrightError({
    code: "TW0106",
    message: `compressed data of the archive is damaged: ${message}`,
    expected: "a stream of deflate, as long as the directory says",
    found: message,
  });
}

function tooLarge(wanted: number, limit: number): TilewrightError {
  return new TilewrightError({
    code: "TW0111",
    message: "an array of the archive expands to more than is allowed",
    expected: `at most ${limit} bytes`,
    found: `${wanted} bytes`,
  });
}
