/** Random caches: formats, heads, pages, lengths and what rows see. */
import { bf16, f16, f8e4m3fn, f8e5m2 } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { Random } from "../../src/support/random.ts";
import type { PagedCase } from "./paged-reference.ts";

/** Products of the reference, which takes about half a second for them. */
const mostProducts = 3e7;

/** Sequences as long as the reference has time for, each token of which takes `each` products. */
function withinWork(lengths: readonly number[], each: number): readonly number[] {
  let left = Math.floor(mostProducts / each);
  return lengths.map((length) => {
    const kept = Math.min(length, left);
    left -= kept;
    return kept;
  });
}

/** The case of a seed; large ones have longer sequences and wider heads than the emulator has time for. */
export function randomPaged(number: number, isLarge: boolean): PagedCase {
  const random = new Random(number);
  const pick = <T>(...choices: readonly [T, ...T[]]): T =>
    choices[Math.floor(random.uniform() * choices.length)] ?? choices[0];
  const below = (end: number): number => Math.floor(random.uniform() * end);
  const dtype = pick<DType<"bf16" | "f16">>(bf16, f16);
  const kv = pick(1, 2, 3);
  const d = pick(16, 32, 64, 80, ...(isLarge ? [128, 192, 256] : []));
  const longest = pick(1, 40, isLarge ? 1000 : 150);
  const hasWindow = random.uniform() < 0.3;
  const drawn = Array.from({ length: 1 + below(isLarge ? 20 : 4) }, () => below(longest + 1));
  const s = pick(1, 1, 1, 2, 7, isLarge ? 100 : 9);
  const [h, e] = [kv * pick(1, 2, 4, 5, 8), pick(d, 64)];
  return {
    name: `case ${number}`,
    lengths: withinWork(drawn, s * h * (d + e)),
    s,
    heads: [h, kv, d, e],
    size: pick(16, 32, 64, 128),
    ...{ dtype, kept: pick<NonNullable<PagedCase["kept"]>>(dtype, dtype, f8e4m3fn, f8e5m2) },
    causal: random.uniform() < 0.6,
    ...(hasWindow && { window: { left: below(100) } }),
    ...(random.uniform() < 0.3 && { softCap: 1 + 4 * random.uniform() }),
    ...(random.uniform() < 0.3 && { scale: random.uniform() }),
    scales: random.uniform() < 0.4,
  };
}
