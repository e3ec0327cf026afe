/**
 * What a kernel says while it runs: debugPrint and assert write records into a ring of words, which the
 * host reads once the work is done. (Writing them is `emit/debug.ts`.)
 *
 *   word 0    words used so far, also by records that found no room
 *   word 1    words there are, these four included
 *   word 2    1 where an assertion failed
 *   word 3    unused
 *   from 4    records: site + 1, block, program thread, words of values, then the values
 *
 * An element takes a word, two where it has 64 bits. Rooms are handed out in order, so after the first
 * record that does not fit none does: what has been written is one run of whole records.
 */
import { coordinatesOf } from "../formats/shape.ts";
import { allocateElements } from "../formats/dtype.ts";
import type { DType, Elements } from "../formats/dtype.ts";
import { evaluateSize } from "../ir/size.ts";
import type { DimensionValues } from "../ir/size.ts";
import {
  assertionReport,
  brokenPromise,
  falseText,
  printText,
  stepReport,
  valueText,
} from "../sim/print-messages.ts";
import { placeText } from "../happens-before/access.ts";
import type { Place } from "../happens-before/access.ts";
import { parsePrintFormat } from "../support/print-format.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { unknownLocation } from "../support/location.ts";
import type { LaunchPlan, MessageSite } from "./executable.ts";

export const ringHeaderWords = 4;
const recordHeaderWords = 4;

/** What of a plan says who speaks. */
export type Speakers = Pick<LaunchPlan, "name" | "messages" | "grid" | "threads">;

export interface Messages {
  /** Lines of debugPrint, in the order in which they were written. */
  readonly lines: readonly string[];
  /** The first assertion that failed. */
  readonly failure: TilewrightError | undefined;
}

/** The word of a ring that says whether an assertion has failed. */
export const ringFailureWord = 2;

/** The first words of an empty ring of so many words. */
export function ringHeader(words: number): Uint32Array {
  return Uint32Array.of(0, words, 0, 0);
}

/** What the ring says, after launches with these dimensions. */
export function readMessages(
  ring: Uint32Array,
  speakers: Speakers,
  dimensions: DimensionValues,
): Messages {
  const lines: string[] = [];
  let failure: TilewrightError | undefined;
  const end = Math.min(word(ring, 0) + ringHeaderWords, ring.length);
  let position = ringHeaderWords;
  while (position + recordHeaderWords <= end) {
    const site = speakers.messages[word(ring, position) - 1];
    const count = word(ring, position + 3);
    const start = position + recordHeaderWords;
    if (site === undefined || start + count > end) break;
    const place = placeOf(speakers, dimensions, word(ring, position + 1), word(ring, position + 2));
    const values = siteValues(site, ring.subarray(start, start + count));
    if (site.kind === "print") lines.push(printText(site.text, textsOf(site, values), place));
    else failure ??= failures[site.kind](site, values, place);
    position = start + count;
  }
  const used = word(ring, 0) + ringHeaderWords;
  if (used > ring.length) lines.push(droppedText(speakers.name, used - position));
  if (word(ring, ringFailureWord) !== 0) failure ??= unrecordedAssertion(speakers.name);
  return { lines, failure };
}

function word(ring: Uint32Array, position: number): number {
  return ring[position] ?? 0;
}

function droppedText(kernel: string, words: number): string {
  return `[kernel ${kernel}] further messages found no room: ${4 * words} bytes of them were dropped`;
}

/** Who speaks, by the number of the block in the launch. */
function placeOf(
  { grid, threads }: Speakers,
  dimensions: DimensionValues,
  block: number,
  thread: number,
): Place {
  const axes = grid.map(({ extent, cluster }) => ({
    extent: evaluateSize(extent, dimensions),
    cluster,
  }));
  return {
    thread: threads[thread] ?? String(thread),
    axes: grid.map(({ name }) => name),
    block: blockCoordinates(axes, block),
    iterations: [],
  };
}

/** A block's index along each axis, by its number in the launch: blocks of a cluster follow one another. */
export function blockCoordinates(
  axes: readonly { readonly extent: number; readonly cluster: number }[],
  block: number,
): readonly number[] {
  const shape = axes.map(({ cluster }) => cluster);
  const size = shape.reduce((total, extent) => total * extent, 1);
  const clusters = axes.map(({ extent, cluster }) => extent / cluster);
  const outer = coordinatesOf(Math.floor(block / size), clusters);
  const inner = coordinatesOf(block % size, shape);
  return outer.map((index, axis) => index * (shape[axis] ?? 1) + (inner[axis] ?? 0));
}

function siteValues(site: MessageSite, words: Uint32Array): readonly Elements[] {
  let start = 0;
  return site.values.map(({ dtype, shape }) => {
    const count = shape.reduce((total, extent) => total * extent, 1);
    const length = count * (dtype.bits === 64 ? 2 : 1);
    const lanes = lanesOf(dtype, words.subarray(start, start + length), count);
    start += length;
    return lanes;
  });
}

/** Elements from their words; what lies above an element's bits does not count. */
function lanesOf(dtype: DType, words: Uint32Array, count: number): Elements {
  const lanes = allocateElements(dtype, count);
  const bytes = new DataView(lanes.buffer);
  const size = lanes.BYTES_PER_ELEMENT;
  for (let index = 0; index < count; index += 1) {
    if (size === 8) {
      bytes.setUint32(8 * index, word(words, 2 * index), true);
      bytes.setUint32(8 * index + 4, word(words, 2 * index + 1), true);
    } else {
      const bits = dtype.bits === 4 ? fourBits(dtype, word(words, index)) : word(words, index);
      if (size === 4) bytes.setUint32(4 * index, bits, true);
      else if (size === 2) bytes.setUint16(2 * index, bits, true);
      else bytes.setUint8(index, bits);
    }
  }
  return lanes;
}

function fourBits({ kind }: DType, bits: number): number {
  return kind === "signed" ? (bits << 28) >> 28 : bits & 15;
}

function textsOf(site: MessageSite, values: readonly Elements[]): readonly string[] {
  const { whole } = parsePrintFormat(site.text);
  return site.values.flatMap(({ dtype, shape }, position) => {
    const lanes = values[position];
    return lanes === undefined ? [] : [valueText(dtype, shape, lanes, whole[position])];
  });
}

const failures = { assert: failedAssertion, step: failedStep, promise: failedPromise } as const;

function failedPromise(
  { text, position }: MessageSite,
  _: readonly Elements[],
  place: Place,
): TilewrightError {
  return new TilewrightError(brokenPromise(text, { position }, placeText(place)));
}

function failedStep(
  { position }: MessageSite,
  [step]: readonly Elements[],
  place: Place,
): TilewrightError {
  return new TilewrightError(stepReport(step?.[0] ?? 0, { position }, placeText(place)));
}

function failedAssertion(
  site: MessageSite,
  [flags]: readonly Elements[],
  place: Place,
): TilewrightError {
  const [value] = site.values;
  const tile = value !== undefined && value.shape.length > 0 && flags !== undefined;
  const found = tile ? falseText(flags as Uint8Array, value.shape) : "false";
  const location = { position: site.position };
  return new TilewrightError(
    assertionReport(site.text, location, `${found} in ${placeText(place)}`),
  );
}

/** An assertion whose record found no room. */
function unrecordedAssertion(kernel: string): TilewrightError {
  return new TilewrightError(
    assertionReport(
      `one of kernel ${kernel}`,
      unknownLocation,
      "false, after so many messages that the rest found no room",
    ),
  );
}
