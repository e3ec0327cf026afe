/**
 * Memories: the bytes behind refs, and the movement between them and elements.
 *
 * A memory is one allocation: an argument in gmem, a buffer in smem, the bytes of a union. Elements are
 * moved as words of their width, never as floating-point numbers, so that the bits of a NaN survive.
 *
 *   load    memory words --gather--> elements     what is out of bounds is filled first
 *   store   elements --scatter--> memory words    what is out of bounds is skipped
 *
 * Formats of 4 bits pack two elements a byte in memory and take an element each in registers.
 */
import { allocateElements, elementConstructors } from "../formats/dtype.ts";
import type { DType, DTypeName, Elements } from "../formats/dtype.ts";
import type { Location } from "../support/location.ts";
import type { Owner } from "./allocation.ts";
import { ShadowMemory } from "../happens-before/shadow.ts";
import { ReleasedKnowledge } from "./released-knowledge.ts";
import { WaitList } from "./wait-queue.ts";
import type { Polled } from "./wait-queue.ts";
import { isFullyValid, product, visitRuns } from "./view.ts";
import type { View } from "./view.ts";

export type Words = Uint8Array | Uint16Array | Uint32Array;

/** 64-bit elements move as two words of 32. */
const wordsPerElement: { readonly [B in DType["bits"]]: number } = {
  4: 1,
  8: 1,
  16: 1,
  32: 1,
  64: 2,
};

/** How finely accesses are checked, and whether reading before writing is right. */
export interface Shadow {
  /** Bytes of the smallest element that is accessed; half a byte for 4 bits, since stores leave the other half alone. */
  readonly granuleBytes: number;
  readonly initialised: boolean;
}

/** Where an allocation came from and who may use it. */
export interface MemoryDescription {
  /** How reports name it: the argument's name, or the kind of allocation. */
  readonly name: string;
  readonly space: "gmem" | "smem" | "tmem";
  readonly location: Location | undefined;
  /** The allocation's number in the program; −1 for arguments. */
  readonly site: number;
}

export class Memory implements Polled {
  readonly description: MemoryDescription;
  readonly bytes: Uint8Array;
  /** What the checker knows about each granule; absent without checks. */
  readonly shadow: ShadowMemory | undefined;
  readonly granuleBytes: number;
  /** The block whose shared memory it is. */
  owner: Owner | undefined;
  /** Whether anything but the owner's threads, at once, has used it: a copy, wgmma, another block. */
  usedFromOutside = false;
  /** What was released through its elements. */
  readonly released = new ReleasedKnowledge();
  /** Woken when something is written, which changes the version. */
  readonly waiters = new WaitList();
  version = 0;
  readonly #words = new Map<number, Words>();

  constructor(description: MemoryDescription, bytes: Uint8Array, shadow?: Shadow) {
    this.description = description;
    this.bytes = bytes;
    this.granuleBytes = shadow?.granuleBytes ?? 1;
    this.shadow =
      shadow &&
      new ShadowMemory({
        granules: bytes.length / this.granuleBytes,
        space: description.space,
        initialised: shadow.initialised,
      });
  }

  /** Makes it the fresh memory of another block: all bits set, which is NaN for every float. */
  renew(owner: Owner): void {
    this.owner = owner;
    this.usedFromOutside = false;
    this.bytes.fill(255);
    this.shadow?.clear();
    this.released.clear();
  }

  /** How reports name it. */
  get name(): string {
    return this.description.name;
  }

  /** Somebody has written to it. */
  changed(): void {
    this.version += 1;
    this.waiters.wake();
  }

  /** The bytes as words of the width in which elements of `dtype` move. */
  words(dtype: DType): Words {
    const { bits } = dtype;
    let words = this.#words.get(bits);
    if (words === undefined) {
      words = wordsOf(this.bytes, bits);
      this.#words.set(bits, words);
    }
    return words;
  }
}

export function wordsOf(array: Elements, bits: DType["bits"]): Words {
  const { buffer, byteOffset, byteLength } = array;
  if (bits <= 8) return new Uint8Array(buffer, byteOffset, byteLength);
  if (bits === 16) return new Uint16Array(buffer, byteOffset, byteLength >> 1);
  return new Uint32Array(buffer, byteOffset, byteLength >> 2);
}

/** The same bits as elements of another format of the same width. */
export function bitcastElements<N extends DTypeName>(
  elements: Elements,
  dtype: DType<N>,
): Elements<N> {
  return new elementConstructors[dtype.name](elements.buffer, elements.byteOffset, elements.length);
}

/** Runs shorter than this are faster to copy word by word. */
const shortRun = 16;

/** Reads the view into `elements`, which it fills with `fill` where it is out of bounds. */
export function gather(view: View, elements: Elements, fill: number | bigint): void {
  if (!isFullyValid(view)) fillElements(elements, fill);
  gatherInside(view, elements);
}

/** Reads what is in bounds of the view into `elements`, and leaves the others as they are. */
export function gatherInside(view: View, elements: Elements): void {
  const { dtype, memory } = view;
  if (dtype.bits === 4) {
    gatherNibbles(view, elements as Int8Array);
    return;
  }
  const source = memory.words(dtype);
  const target = wordsOf(elements, dtype.bits);
  const unit = wordsPerElement[dtype.bits];
  visitRuns(view, (element, flat, length, stride) => {
    copyRun(source, element * unit, stride * unit, target, flat * unit, unit, length, unit);
  });
}

/** Writes `elements` to the view where it is in bounds. */
export function scatter(view: View, elements: Elements): void {
  const { dtype, memory } = view;
  memory.changed();
  if (dtype.bits === 4) {
    scatterNibbles(view, elements as Int8Array);
    return;
  }
  const source = wordsOf(elements, dtype.bits);
  const target = memory.words(dtype);
  const unit = wordsPerElement[dtype.bits];
  visitRuns(view, (element, flat, length, stride) => {
    copyRun(source, flat * unit, unit, target, element * unit, stride * unit, length, unit);
  });
}

export function fillElements(elements: Elements, value: number | bigint): void {
  (elements as { fill(value: number | bigint): void }).fill(value);
}

/** Copies `length` elements of `unit` words each between words at given distances. */
function copyRun(
  source: Words,
  from: number,
  sourceStride: number,
  target: Words,
  to: number,
  targetStride: number,
  length: number,
  unit: number,
): void {
  const contiguous = sourceStride === unit && targetStride === unit;
  if (contiguous && length > shortRun) {
    target.set(source.subarray(from, from + length * unit), to);
    return;
  }
  for (let word = 0; word < unit; word++) {
    let read = from + word;
    let write = to + word;
    for (let i = 0; i < length; i++) {
      target[write] = source[read] as number;
      read += sourceStride;
      write += targetStride;
    }
  }
}

function gatherNibbles(view: View, elements: Int8Array | Uint8Array): void {
  const { bytes } = view.memory;
  const signed = view.dtype.kind === "signed";
  visitRuns(view, (element, flat, length, stride) => {
    for (let i = 0; i < length; i++) {
      const at = element + i * stride;
      const nibble = ((bytes[at >> 1] as number) >> ((at & 1) << 2)) & 15;
      elements[flat + i] = signed ? (nibble << 28) >> 28 : nibble;
    }
  });
}

function scatterNibbles(view: View, elements: Int8Array | Uint8Array): void {
  const { bytes } = view.memory;
  visitRuns(view, (element, flat, length, stride) => {
    for (let i = 0; i < length; i++) {
      const at = element + i * stride;
      const shift = (at & 1) << 2;
      const kept = (bytes[at >> 1] as number) & (240 >> shift);
      bytes[at >> 1] = kept | (((elements[flat + i] as number) & 15) << shift);
    }
  });
}

/** A fresh copy of the view's elements. */
export function readView(view: View, fill: number | bigint): Elements {
  const elements = allocateElements(view.dtype, product(view.sizes));
  gather(view, elements, fill);
  return elements;
}
