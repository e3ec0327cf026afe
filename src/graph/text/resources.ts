/**
 * The data that constants name, in a section at the end of program text. A blob is bytes in hexadecimal: the alignment that the data
 * had in memory, in four bytes, and the elements, little-endian and without a short form for equal ones.
 *
 *   %0 = stablehlo.constant dense_resource<weights> : tensor<2xf32>
 *   {-#
 *     dialect_resources: { builtin: { weights: "0x040000000000803F00000040" } }
 *   #-}
 */
import { elementConstructor, slotsOf } from "../ops/elements.ts";
import { sizeOf } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import type { Literal } from "../ops/literal.ts";
import { DenseMismatch, parseDense } from "./dense.ts";
import type { Scanner } from "./scanner.ts";

/** Where the text between a blob's quotes lies. */
interface Blob {
  readonly start: number;
  readonly end: number;
}

export class ResourceTable {
  readonly #scanner: Scanner;
  #blobs: ReadonlyMap<string, Blob> | undefined;

  constructor(scanner: Scanner) {
    this.#scanner = scanner;
  }

  /** The constant of a resource; undefined where the text has no data of this name. */
  literal(name: string, type: TensorType): Literal | undefined {
    this.#blobs ??= this.#find();
    const blob = this.#blobs.get(name);
    if (blob === undefined) return undefined;
    const digits = /^0x([0-9a-fA-F]*)$/.exec(this.#scanner.text.slice(blob.start, blob.end))?.[1];
    if (digits === undefined || digits.length % 2 !== 0)
      throw new DenseMismatch('a blob of bytes, such as "0x04000000…"', "other text");
    const [bytes, wanted] = [digits.length / 2 - alignmentBytes, bytesOf(type)];
    if (bytes !== wanted)
      throw new DenseMismatch(
        `a blob of ${wanted} bytes after the four of its alignment`,
        bytes < 0 ? `${bytes + alignmentBytes} in all` : `${bytes}`,
      );
    return parseDense(`"0x${digits.slice(2 * alignmentBytes)}"`, type);
  }

  /** Blobs of all dialects by name; those of `builtin` are what constants name. */
  #find(): ReadonlyMap<string, Blob> {
    const scanner = this.#scanner;
    const blobs = new Map<string, Blob>();
    for (const { index } of scanner.text.matchAll(/^[ \t]*\{-#/gm))
      scanner.elsewhere(index, () => {
        scanner.expect("{-#");
        this.#entries("#-}", (section) => {
          this.#value((dialect) => {
            this.#value((name) => {
              const blob = this.#blob();
              if (section === "dialect_resources" && dialect === "builtin" && blob !== undefined)
                blobs.set(name, blob);
            });
          });
        });
      });
    return blobs;
  }

  /** Entries `name: …` up to a sign, which is taken. */
  #entries(close: string, entry: (name: string) => void): void {
    const scanner = this.#scanner;
    if (scanner.accept(close)) return;
    scanner.commaSeparated(() => {
      const name = scanner.seesString() ? scanner.string() : scanner.match(key);
      if (name === undefined) return scanner.unexpected("a resource's name");
      scanner.expect(":");
      entry(name);
    });
    scanner.expect(close);
  }

  #value(entry: (name: string) => void): void {
    this.#scanner.expect("{");
    this.#entries("}", entry);
  }

  /** A quoted blob, or a value of another kind, which is passed over. */
  #blob(): Blob | undefined {
    const scanner = this.#scanner;
    if (!scanner.accept('"')) {
      scanner.word("a blob");
      return undefined;
    }
    const start = scanner.position;
    // Blobs are long, and have no escapes: the pattern of strings would go through them step by step.
    const found = scanner.match(/[^"]*"/y) ?? scanner.unexpected("the end of the blob");
    return { start, end: start + found.length - 1 };
  }
}

const key = /[A-Za-z_][\w$.-]*/y;
const alignmentBytes = 4;

/** The bytes of a tensor in memory, with a byte for each element below 8 bits. */
function bytesOf({ element, shape }: TensorType): number {
  return sizeOf(shape) * slotsOf(element) * elementConstructor(element).BYTES_PER_ELEMENT;
}
