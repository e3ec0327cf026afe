/** Attention to a paged cache in float64 as its page has it, and numbers to try it on. */
import { bf16, f32, i32 } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../src/formats/hostarray.ts";
import type { PagedConfiguration } from "../../src/kernels/paged/configuration.ts";
import type { PagedWindow } from "../../src/kernels/paged/problem.ts";
import { Random } from "../../src/support/random.ts";

type Format = "bf16" | "f16";
type Kept = Format | "f8e4m3fn" | "f8e5m2";

export interface PagedCase {
  readonly name: string;
  readonly lengths: readonly number[];
  readonly s?: number;
  readonly heads: readonly [h: number, kv: number, d: number, e: number];
  /** Tokens of a page. */
  readonly size: number;
  readonly dtype?: DType<Format>;
  readonly kept?: DType<Kept>;
  readonly causal?: boolean;
  readonly window?: PagedWindow;
  readonly softCap?: number;
  readonly scale?: number;
  readonly scales?: boolean;
  readonly configuration?: PagedConfiguration;
}

/** The cache has pages that belong to nobody, full of NaNs, and so is what lies behind the last token of a sequence. */
export function pagedInputs(one: PagedCase, seed: number) {
  const { lengths, s = 1, size, dtype = bf16, heads, scales } = one;
  const [h, kv, d, e] = heads;
  const kept = one.kept ?? dtype;
  const random = new Random(seed);
  const counts = lengths.map((length) => Math.ceil(length / size));
  const used = counts.reduce((sum, count) => sum + count, 0);
  const pages = used + 2;
  const most = Math.max(1, ...counts) + 1;
  const order = shuffled(pages, random);
  const table = new Int32Array(lengths.length * most).fill(-1);
  let next = 0;
  for (const [sequence, count] of counts.entries())
    for (let place = 0; place < count; place += 1)
      table[sequence * most + place] = order[next++] ?? 0;
  const drawn = (own: DType, shape: readonly number[], spread = 1) => {
    const count = shape.reduce((product, extent) => product * extent, 1);
    const values = Array.from({ length: count }, () => spread * (2 * random.uniform() - 1));
    const array = fromNumbers(own, shape, values);
    return { array, values: toNumbers(array) };
  };
  const written = new Uint8Array(pages * size);
  for (const [sequence, length] of lengths.entries())
    for (let token = 0; token < length; token += 1)
      written[tokenPlace(table, most, size, sequence, token)] = 1;
  const cache = (width: number) => {
    const { values } = drawn(kept, [pages, size, kv, width]);
    const whole = values.map((value, index) =>
      written[Math.floor(index / (kv * width))] === 1 ? value : NaN,
    );
    return { array: fromNumbers(kept, [pages, size, kv, width], whole), values: whole };
  };
  const scale = (from: number) => {
    const values = Array.from({ length: kv }, (_, head) => from + head / 8);
    return { array: fromNumbers(f32, [kv], values), values };
  };
  return {
    ...{ q: drawn(dtype, [lengths.length, s, h, d], 2), k: cache(d), v: cache(e) },
    table: { array: fromNumbers(i32, [lengths.length, most], [...table]), values: table, most },
    lengths: { array: fromNumbers(i32, [lengths.length], [...lengths]) },
    ...(scales === true && { kScale: scale(0.5), vScale: scale(0.75) }),
  };
}

function shuffled(count: number, random: Random): readonly number[] {
  const order = Array.from({ length: count }, (_, index) => index);
  for (let last = count - 1; last > 0; last -= 1) {
    const other = Math.floor(random.uniform() * (last + 1));
    [order[last], order[other]] = [order[other] ?? 0, order[last] ?? 0];
  }
  return order;
}

function tokenPlace(
  table: ArrayLike<number>,
  most: number,
  size: number,
  sequence: number,
  token: number,
): number {
  return (table[sequence * most + Math.floor(token / size)] ?? 0) * size + (token % size);
}

/** The tokens that a row of a head sees, as places in the cache, and their scores. */
function seenTokens(
  one: PagedCase,
  given: ReturnType<typeof pagedInputs>,
  sequence: number,
  row: number,
  head: number,
): readonly { readonly place: number; readonly score: number }[] {
  const { lengths, s = 1, size, heads, softCap, window, causal } = one;
  const [h, kv, d] = heads;
  const length = lengths[sequence] ?? 0;
  const shared = Math.floor(head / (h / kv));
  const position = length - s + row;
  const right = causal === true ? 0 : (window?.right ?? Infinity);
  const first = Math.max(0, position - (window?.left ?? Infinity));
  const last = Math.min(length - 1, position + right);
  const scale = (one.scale ?? 1 / Math.sqrt(d)) * (given.kScale?.values[shared] ?? 1);
  const from = ((sequence * s + row) * h + head) * d;
  const seen: { readonly place: number; readonly score: number }[] = [];
  for (let token = first; token <= last; token += 1) {
    const place = tokenPlace(given.table.values, given.table.most, size, sequence, token);
    const at = (place * kv + shared) * d;
    let sum = 0;
    for (let i = 0; i < d; i += 1)
      sum += (given.q.values[from + i] ?? NaN) * (given.k.values[at + i] ?? NaN);
    const score = sum * scale;
    const capped = softCap === undefined ? score : softCap * Math.tanh(score / softCap);
    seen.push({ place, score: capped });
  }
  return seen;
}

/** softmax(score) · v and the logarithm of the sum, in float64, as the documentation has it. */
export function expectedPaged(one: PagedCase, given: ReturnType<typeof pagedInputs>) {
  const { lengths, s = 1, heads } = one;
  const [h, kv, , e] = heads;
  const out: number[] = [];
  const logSumExp = new Float64Array(lengths.length * h * s);
  for (const sequence of lengths.keys())
    for (let row = 0; row < s; row += 1)
      for (let head = 0; head < h; head += 1) {
        const shared = Math.floor(head / (h / kv));
        const seen = seenTokens(one, given, sequence, row, head);
        const high = seen.reduce((best, { score }) => Math.max(best, score), -1e300);
        const powers = seen.map(({ score }) => Math.exp(score - high));
        const sum = powers.reduce((total, power) => total + power, 0);
        logSumExp[(sequence * h + head) * s + row] = high + Math.log(sum);
        const value = (place: number, i: number): number =>
          given.v.values[(place * kv + shared) * e + i] ?? NaN;
        for (let i = 0; i < e; i += 1) {
          const weighted = seen.reduce(
            (total, { place }, index) => total + (powers[index] ?? 0) * value(place, i),
            0,
          );
          out.push(sum === 0 ? 0 : (weighted / sum) * (given.vScale?.values[shared] ?? 1));
        }
      }
  return { out, logSumExp };
}
