/**
 * Dense constants in program text: nested lists, one element for all, or the bytes.
 *
 *   dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
 *   dense<0xFF800000> : tensor<8xf32>                 minus infinity, eight times
 *   dense<"0x0000803F00000040"> : tensor<2xf32>       little-endian memory; below 8 bits, a byte an element
 */
import { allocateTensorData, elements, elementConstructor, slotsOf } from "../ops/elements.ts";
import type { TensorData, ElementType } from "../ops/elements.ts";
import { literal } from "../ops/literal.ts";
import type { Literal } from "../ops/literal.ts";
import { sizeOf } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import { numberText, parseNumber } from "./numbers.ts";

/** What is wrong with a constant, as the expected and the found. */
export class DenseMismatch extends Error {
  readonly expected: string;
  readonly found: string;

  constructor(expected: string, found: string) {
    super(`expected ${expected}, found ${found}`);
    this.expected = expected;
    this.found = found;
  }
}

const piece = /\s*([[\](),]|"[^"]*"|[-+\w.]+)/gy;

/** The literal that the text between `dense<` and `>` spells. */
export function parseDense(text: string, type: TensorType): Literal {
  const bytes = /^"0x([0-9a-fA-F]*)"$/.exec(text)?.[1];
  if (bytes !== undefined) return literal(type, parseBytes(bytes, type));
  const slots = slotsOf(type.element);
  const count = sizeOf(type.shape);
  const pieces = piecesOf(text);
  const splat = pieces[0] !== "[" && pieces.length > 0;
  // Where the list is shorter than the type, reading it fails: there are no more elements than pieces of text.
  const data = allocateTensorData(type.element, splat ? 1 : Math.min(count, pieces.length));
  const reader = new ElementReader(pieces, type, data);
  if (splat) reader.element();
  else if (pieces.length > 0) reader.level(0);
  reader.finish();
  if (pieces.length === 0 && count !== 0) throw new DenseMismatch(`${count} elements`, "none");
  return literal(type, splat && count === 0 ? data.subarray(0, 0) : shared(data, slots));
}

/** The signs and numbers of a list. */
function piecesOf(text: string): readonly string[] {
  const found = Array.from(text.matchAll(piece));
  const last = found.at(-1);
  const rest = text.slice(last === undefined ? 0 : last.index + last[0].length).trim();
  if (rest !== "") throw new DenseMismatch("numbers in brackets", rest);
  return found.map(([, each = ""]) => each);
}

/** The elements, or the first element alone where there is just one: a splat of one is itself. */
function shared(data: TensorData, slots: number): TensorData {
  return data.length === slots ? data.slice() : data;
}

class ElementReader {
  readonly #pieces: readonly string[];
  readonly #type: TensorType;
  readonly #data: TensorData;
  #next = 0;
  #written = 0;

  constructor(pieces: readonly string[], type: TensorType, data: TensorData) {
    this.#pieces = pieces;
    this.#type = type;
    this.#data = data;
  }

  #take(): string {
    return this.#pieces[this.#next++] ?? "the end of the list";
  }

  #expect(sign: string): void {
    const found = this.#take();
    if (found !== sign) throw new DenseMismatch(`\`${sign}\``, found);
  }

  /** A list of the axis `depth`, or an element below the last. */
  level(depth: number): void {
    const extent = this.#type.shape[depth];
    if (extent === undefined) {
      this.element();
      return;
    }
    this.#expect("[");
    let found = 0;
    if (this.#pieces[this.#next] !== "]")
      do {
        found++;
        if (found > extent) break;
        this.level(depth + 1);
      } while (this.#pieces[this.#next] === "," && this.#next++ >= 0);
    const matches = found === extent || (extent !== 0 && sizeOf(this.#type.shape) === 0);
    if (!matches)
      throw new DenseMismatch(
        `${extent} along axis ${depth}`,
        found > extent ? `more than ${extent}` : `${found}`,
      );
    this.#expect("]");
  }

  element(): void {
    if (slotsOf(this.#type.element) === 1) {
      this.#number();
      return;
    }
    this.#expect("(");
    this.#number();
    this.#expect(",");
    this.#number();
    this.#expect(")");
  }

  #number(): void {
    const text = this.#take();
    const lane = parseNumber(this.#type.element, text);
    if (lane === undefined) throw new DenseMismatch(`a number of ${this.#type.element}`, text);
    // Wide elements are BigInt and the others numbers, as `parseNumber` gives them.
    this.#data[this.#written++] = lane;
  }

  finish(): void {
    const rest = this.#pieces[this.#next];
    if (rest !== undefined) throw new DenseMismatch("the end of the list", rest);
  }
}

function parseBytes(digits: string, { element, shape }: TensorType): TensorData {
  const constructor = elementConstructor(element);
  const slots = slotsOf(element);
  const slotBytes = constructor.BYTES_PER_ELEMENT;
  const bytes = new Uint8Array(digits.length >> 1);
  for (let i = 0; i < bytes.length; i++)
    bytes[i] = (digitAt(digits, 2 * i) << 4) | digitAt(digits, 2 * i + 1);
  const count = sizeOf(shape);
  if (element === "i1" && digits.length % 2 === 0) return truthsOf(bytes, count);
  const length = bytes.length / slotBytes;
  if (digits.length % 2 !== 0 || (length !== slots && length !== count * slots))
    throw new DenseMismatch(
      `${count * slots * slotBytes} bytes, or ${slots * slotBytes} for one element`,
      `${digits.length / 2}`,
    );
  return wrapped(element, new constructor(bytes.buffer, 0, length));
}

/** The value of a hexadecimal digit: letters of either case are nine more than their low four bits. */
function digitAt(digits: string, index: number): number {
  const code = digits.charCodeAt(index);
  return (code & 15) + (code > 0x39 ? 9 : 0);
}

/** Elements of less than a byte, whose other bits say nothing. */
function wrapped(element: ElementType, data: TensorData): TensorData {
  const { bits, kind } = elements[element];
  if (bits >= 8) return data;
  const unused = 32 - bits;
  return (data as Int8Array | Uint8Array).map((lane) =>
    kind === "signed" ? (lane << unused) >> unused : (lane << unused) >>> unused,
  );
}

/** Truths: a byte each, one byte for all, or eight to a byte, the first lowest, as MLIR printed them for long. */
function truthsOf(bytes: Uint8Array, count: number): Uint8Array {
  const areTruths = bytes.every((byte) => byte <= 1 || byte === 0xff);
  if (areTruths && (bytes.length === count || bytes.length === 1))
    return bytes.map((byte) => (byte === 0 ? 0 : 1));
  if (bytes.length !== Math.ceil(count / 8))
    throw new DenseMismatch(
      `${count} bytes, ${Math.ceil(count / 8)} with eight elements each, or 1 for one element`,
      `${bytes.length}`,
    );
  return Uint8Array.from({ length: count }, (_, i) => ((bytes[i >> 3] ?? 0) >> (i & 7)) & 1);
}

/** Lists of more elements are printed as bytes. */
const longestList = 100;

/** What stands between `dense<` and `>`. */
export function denseText({ type, splat, data }: Literal): string {
  const { element, shape } = type;
  const slots = slotsOf(element);
  const item = (index: number): string => {
    const texts = Array.from(
      data.subarray(index * slots, (index + 1) * slots) as Iterable<number | bigint>,
      (lane) => numberText(element, lane),
    );
    return slots === 1 ? texts.join("") : `(${texts.join(",")})`;
  };
  if (splat) return item(0);
  const count = sizeOf(shape);
  if (count === 0) return "";
  if (count > longestList) return `"0x${bytesText(data)}"`;
  const nest = (depth: number, start: number): string => {
    const extent = shape[depth];
    if (extent === undefined) return item(start);
    const stride = sizeOf(shape.slice(depth + 1));
    return `[${Array.from({ length: extent }, (_, i) => nest(depth + 1, start + i * stride)).join(", ")}]`;
  };
  return nest(0, 0);
}

function bytesText(data: TensorData): string {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join("");
}
