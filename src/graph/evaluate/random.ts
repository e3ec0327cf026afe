/**
 * Random bits as XLA makes them. A state is a key and a counter, both of 64-bit words; element n is a hash of
 * counter + n under the key, so that equal states give equal bits.
 *
 * | algorithm | a hash gives              | 64-bit elements          | 32-bit elements                        |
 * |-----------|---------------------------|--------------------------|----------------------------------------|
 * | THREE_FRY | two words of 32 bits      | one hash each            | a hash a pair, interleaved along an axis |
 * | PHILOX    | four words of 32 bits     | two a hash, in order     | four a hash, in order                  |
 *
 * Narrower elements are the low bits of 32-bit ones. DEFAULT is PHILOX, as on CPUs and GPUs.
 */
import type { ElementType, TensorType } from "../ops/index.ts";
import { elements, sizeOf } from "../ops/index.ts";
import { emptyTensor, tensor } from "./value.ts";
import type { Tensor } from "./value.ts";
import { pause, pieceWork } from "./frame.ts";
import type { Steps } from "./frame.ts";
import { indicesOf, placeOf, stridesOf } from "./strides.ts";

/** Hashes between two pauses: each counts as 32 elements. */
const hashes = pieceWork / 32;

type Words = readonly [number, number];

const rotations = [
  [13, 15, 26, 6],
  [17, 29, 16, 24],
] as const;

function rotateLeft(value: number, distance: number): number {
  return (value << distance) | (value >>> (32 - distance));
}

/** Twenty rounds of Threefry-2x32. */
export function threefry(key: Words, counter: Words): Words {
  const schedule = [key[0], key[1], key[0] ^ key[1] ^ 0x1bd11bda] as const;
  let x = (counter[0] + schedule[0]) | 0;
  let y = (counter[1] + schedule[1]) | 0;
  for (let group = 1; group <= 5; group++) {
    for (const distance of rotations[(group - 1) % 2] as readonly number[]) {
      x = (x + y) | 0;
      y = rotateLeft(y, distance) ^ x;
    }
    x = (x + (schedule[group % 3] as number)) | 0;
    y = (y + (schedule[(group + 1) % 3] as number) + group) | 0;
  }
  return [x >>> 0, y >>> 0];
}

const philoxMultipliers = [0xd2511f53n, 0xcd9e8d57n] as const;
const philoxSteps = [0x9e3779b9, 0xbb67ae85] as const;

/** Ten rounds of Philox-4x32. */
function philox(key: Words, counter: bigint): readonly number[] {
  let words = [0, 32, 64, 96].map((shift) => Number((counter >> BigInt(shift)) & 0xffffffffn));
  let [first, second] = key;
  for (let round = 0; round < 10; round++) {
    const [a = 0, b = 0, c = 0, d = 0] = words;
    const left = BigInt(a) * philoxMultipliers[0];
    const right = BigInt(c) * philoxMultipliers[1];
    words = [
      (Number(right >> 32n) ^ b ^ first) >>> 0,
      Number(right & 0xffffffffn),
      (Number(left >> 32n) ^ d ^ second) >>> 0,
      Number(left & 0xffffffffn),
    ];
    first = (first + philoxSteps[0]) >>> 0;
    second = (second + philoxSteps[1]) >>> 0;
  }
  return words;
}

/** Low word first. */
function wordsOf(value: bigint): Words {
  return [Number(value & 0xffffffffn), Number((value >> 32n) & 0xffffffffn)];
}

function join(low: number, high: number): bigint {
  return BigInt(low) | (BigInt(high) << 32n);
}

export type RandomAlgorithm = "DEFAULT" | "THREE_FRY" | "PHILOX";

/** The state after, and the bits. */
export function* randomBits(
  state: Tensor,
  algorithm: RandomAlgorithm,
  type: TensorType,
): Steps<readonly [Tensor, Tensor]> {
  const { bits } = elements[type.element];
  const words = Array.from(state.data, BigInt);
  const wide = bits === 64;
  const { values, after } =
    algorithm === "THREE_FRY"
      ? yield* threefryBits(words, type, wide)
      : yield* philoxBits(words, type, wide);
  const result = emptyTensor(type);
  // Floats get the bits as their pattern.
  const target = wide
    ? new BigUint64Array(result.data.buffer)
    : integerView(type.element, result.data.buffer);
  for (let i = 0; i < values.length; i++) {
    target[i] = values[i] as never;
    if (i % pieceWork === pieceWork - 1) yield pause;
  }
  return [tensor(state.element, state.shape, BigUint64Array.from(after)), result];
}

function integerView(
  element: ElementType,
  buffer: ArrayBufferLike,
): Uint8Array | Uint16Array | Uint32Array {
  const { bits } = elements[element];
  if (bits === 32) return new Uint32Array(buffer);
  return bits === 16 ? new Uint16Array(buffer) : new Uint8Array(buffer);
}

interface Generated {
  readonly values: readonly (number | bigint)[];
  readonly after: readonly bigint[];
}

function* threefryBits(
  state: readonly bigint[],
  { shape }: TensorType,
  wide: boolean,
): Steps<Generated> {
  const [key = 0n, counter = 0n] = state;
  const hash = (n: number) =>
    threefry(wordsOf(key), wordsOf(BigInt.asUintN(64, counter + BigInt(n))));
  if (wide) {
    const values: bigint[] = [];
    for (let n = 0; n < sizeOf(shape); n++) {
      values.push(join(...hash(n)));
      if (n % hashes === hashes - 1) yield pause;
    }
    return { values, after: [key, counter + BigInt(values.length)] };
  }
  const half = halfShape(shape);
  const strides = stridesOf(half.shape);
  const values: number[] = [];
  for (const index of indicesOf(shape)) {
    const own = index.map((each, axis) => (axis === half.axis ? each >> 1 : each));
    const words = hash(placeOf(own, strides));
    values.push(words[(index[half.axis] ?? 0) & 1] as number);
    if (values.length % hashes === 0) yield pause;
  }
  return { values, after: [key, counter + BigInt(sizeOf(half.shape))] };
}

/** The shape of hashes, each a pair along one axis: the first even one, or else the longest. */
function halfShape(shape: readonly number[]): {
  readonly shape: readonly number[];
  readonly axis: number;
} {
  const even = shape.findIndex((extent) => extent % 2 === 0);
  const axis = even >= 0 ? even : shape.indexOf(Math.max(...shape));
  return {
    axis,
    shape: shape.map((extent, each) => (each === axis ? Math.ceil(extent / 2) : extent)),
  };
}

function* philoxBits(
  state: readonly bigint[],
  { shape }: TensorType,
  wide: boolean,
): Steps<Generated> {
  // A state of two words has the key in the upper half of the counter too.
  const [key = 0n, low = 0n, high = key] = state;
  const counter = low | (high << 64n);
  const count = sizeOf(shape);
  const perHash = wide ? 2 : 4;
  const needed = Math.ceil(count / perHash);
  const values: (number | bigint)[] = [];
  for (let n = 0; n < needed; n++) {
    const words = philox(wordsOf(key), BigInt.asUintN(128, counter + BigInt(n)));
    const [a = 0, b = 0, c = 0, d = 0] = words;
    values.push(...(wide ? [join(a, b), join(c, d)] : words));
    if (n % hashes === hashes - 1) yield pause;
  }
  const next = BigInt.asUintN(128, counter + BigInt(needed));
  const after = [key, BigInt.asUintN(64, next), next >> 64n].slice(0, state.length);
  return { values: values.slice(0, count), after };
}
