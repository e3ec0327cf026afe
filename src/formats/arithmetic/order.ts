/**
 * Searches for extremes, and sorting, along an axis.
 *
 * A search gives the first of equal extremes; -0 equals +0, and the first NaN beats every number.
 *
 * A sort is stable in both directions, with -0 before +0 and NaN as the greatest key, whatever its bits:
 *
 *   keys                 2  NaN  -0   1   0   1
 *   ascending           -0    0   1   1   2  NaN
 *   descending         NaN    2   1   1   0  -0
 */
import type { DType, Elements } from "../dtype.ts";
import { writeElement } from "../values.ts";
import type { Axis } from "./axis.ts";
import { acceptsArg, acceptsSort } from "./functions.ts";
import type { ArgFunction } from "./functions.ts";
import { laneBits, widenElements } from "./registers.ts";
import type { NumberElements } from "./registers.ts";

/** Elements as values that `<` orders: numbers, or BigInts for the 64-bit integers. */
type Keys = NumberElements | BigInt64Array | BigUint64Array;

function comparableKeys(dtype: DType, elements: Elements): Keys {
  if (dtype.kind !== "float") return elements;
  const values = new Float64Array(elements.length);
  widenElements(dtype, elements, 0, elements.length, values);
  return values;
}

/** Writes, for each (outer, inner), where along the axis the extreme lies. */
export function argElements(
  fn: ArgFunction,
  dtype: DType,
  source: Elements,
  axis: Axis,
  target: Int32Array,
): void {
  if (!acceptsArg(fn, dtype)) throw new Error(`${fn} is not defined for ${dtype.name}`);
  const { outer, length, inner } = axis;
  const keys = comparableKeys(dtype, source);
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      const start = o * length * inner + i;
      target[o * inner + i] = findExtreme(keys, start, length, inner, fn === "argmax");
    }
  }
}

function findExtreme(
  keys: Keys,
  start: number,
  length: number,
  stride: number,
  greatest: boolean,
): number {
  let found = 0;
  let best = keys[start] as number | bigint;
  for (let k = 1; k < length && best === best; k++) {
    const key = keys[start + k * stride] as number | bigint;
    if ((greatest ? key > best : key < best) || key !== key) {
      found = k;
      best = key;
    }
  }
  return found;
}

function compareKeys(left: number | bigint, right: number | bigint): number {
  if (left < right) return -1;
  if (left > right) return 1;
  if (left === right) return left === 0 ? compareZeros(left, right as number) : 0;
  return Number(left !== left) - Number(right !== right);
}

function compareZeros(left: number, right: number): number {
  return Number(Object.is(right, -0)) - Number(Object.is(left, -0));
}

/**
 * Sorts `keys` along the axis in place, and every one of `payloads`, elements of any format, with them; of those only the
 * first `first`, over and over.
 */
export function sortElements(
  dtype: DType,
  keys: Elements,
  payloads: readonly Elements[],
  axis: Axis,
  descending: boolean,
  first = axis.length,
): void {
  if (!acceptsSort(dtype)) throw new Error(`sort is not defined for ${dtype.name}`);
  const { outer, length, inner } = axis;
  const comparable = comparableKeys(dtype, keys);
  const moved = [keys, ...payloads];
  const order = new Uint32Array(length);
  const sign = descending ? -1 : 1;
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      const start = o * length * inner + i;
      for (let k = 0; k < length; k++) order[k] = k;
      order.sort((left, right) => {
        const leftKey = comparable[start + left * inner] as number | bigint;
        const rightKey = comparable[start + right * inner] as number | bigint;
        return sign * compareKeys(leftKey, rightKey) || left - right;
      });
      for (let k = first; k < length; k++) order[k] = order[k % first] as number;
      for (const elements of moved) permute(elements, order, start, inner);
    }
  }
  if (dtype.kind === "float") uniteNans(dtype, keys);
}

/** Equal keys are the same number, and so is every NaN among them: the one that operations make. */
function uniteNans(dtype: DType, keys: Elements): void {
  comparableKeys(dtype, keys).forEach((key, element) => {
    if (key !== key) writeElement(dtype, keys, element, NaN);
  });
}

/** Moves element `order[k]` of those from `start` on, `stride` apart, to place k. */
function permute(elements: Elements, order: Uint32Array, start: number, stride: number): void {
  const bits = laneBits(elements);
  const words = bits.length / elements.length;
  for (let word = 0; word < words; word++) {
    const before = Array.from(order, (k) => bits[(start + k * stride) * words + word] as number);
    for (const [k, value] of before.entries()) bits[(start + k * stride) * words + word] = value;
  }
}
