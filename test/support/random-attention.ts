/** Random cases of attention: any sizes within a budget of work, any options, and any configuration that can be given. */
import { bf16, f16, f32, f8e4m3fn, f8e5m2 } from "../../src/formats/dtype.ts";
import { attentionSchedules } from "../../src/kernels/attention/configuration.ts";
import type { AttentionConfiguration } from "../../src/kernels/attention/configuration.ts";
import { Random } from "../../src/support/random.ts";
import { masks } from "./attention-masks.ts";
import type { MaskName } from "./attention-masks.ts";
import type { AttentionCase } from "./attention-reference.ts";
import type { PackedCase } from "./packed-attention.ts";

/** How large cases become: their lengths, their heads, and products of the reference. */
export interface RandomLimits {
  readonly length: number;
  readonly head: number;
  readonly products: number;
}

export function randomAttention(random: Random, limits: RandomLimits): AttentionCase {
  const within = (most: number): number => 1 + random.below(most);
  const chance = (parts: number): boolean => random.below(parts) === 0;
  const dtype = random.pick([bf16, bf16, bf16, f16, f32, f8e4m3fn, f8e5m2] as const);
  const step = dtype.bits === 8 ? 16 : 8;
  // Most heads are such that TMA takes them.
  const head = (): number =>
    chance(6) ? within(limits.head) : step * within(Math.floor(limits.head / step));
  const d = head();
  const e = chance(3) ? head() : d;
  const kv = within(2);
  const h = kv * within(3);
  const b = within(2);
  const most = Math.sqrt(limits.products / (b * h * (d + e)));
  const length = (): number => within(Math.max(8, Math.min(limits.length, Math.floor(most))));
  const [s, t] = [length(), length()];
  const back = random.below(70);
  return {
    name: "random",
    sizes: [b, s, t, h, kv, d, e],
    dtype,
    causal: chance(2),
    ...(chance(4) && {
      window: chance(2) ? { left: back } : { left: back, right: random.below(70) },
    }),
    ...(chance(5) && { softCap: random.pick([0.5, 2, 30]) }),
    ...(chance(4) && { scale: random.pick([0.1, 0.3, 1, -0.7]) }),
    ...(chance(4) && { bias: Array.from({ length: 4 }, () => chance(2)) }),
    ...(chance(4) && { mask: random.pick(Object.keys(masks) as MaskName[]) }),
    ...(chance(5) && { dropout: random.pick([0.1, 0.5]) }),
    slopes: chance(6),
    sinks: chance(6),
    deterministic: chance(4),
    ...(dtype.bits === 8 && { scales: chance(2) }),
    ...(dtype !== f32 &&
      [d, e].every((size) => size % step === 0) &&
      chance(2) &&
      configured(random, d, e)),
  };
}

/** One that fits shared memory. */
function configured(
  random: Random,
  d: number,
  e: number,
): { readonly configuration: AttentionConfiguration } {
  const columns = Math.max(d, e) > 128 ? 64 : random.pick([32, 64, 128] as const);
  return {
    configuration: {
      kernel: "warp-specialized",
      consumers: random.pick([1, 2] as const),
      columns,
      stages: random.pick([1, 2] as const),
      schedule: random.pick(attentionSchedules),
      workers: 1 + random.below(20),
    },
  };
}

/** The same case of other lengths, for which few of its kernels are made anew. */
export function otherLengths(random: Random, one: AttentionCase): AttentionCase {
  const [b, s, t, h, kv, d, e] = one.sizes;
  const near = (length: number): number => 1 + random.below(length + Math.ceil(length / 4));
  return { ...one, sizes: [b, near(s), near(t), h, kv, d, e] };
}

/** Cases of one seed: options of one drawing, over several lengths. */
export function attentionSeries(
  seed: number,
  limits: RandomLimits,
  count: number,
): readonly AttentionCase[] {
  const random = new Random(seed);
  const first = randomAttention(random, limits);
  return Array.from({ length: count }, (_, index) =>
    index === 0 ? first : otherLengths(random, first),
  );
}

/** The part of a case that gradients take: those of scores of one's own need a slope, and FP8 has none. */
export function withGradients({
  slopes: _,
  scales: _scales,
  ...one
}: AttentionCase): AttentionCase {
  return one.dtype?.bits === 8 ? { ...one, dtype: bf16 } : one;
}

/** Sequences of different lengths, some of them empty. */
export function randomPacked(random: Random, limits: RandomLimits): PackedCase {
  const chance = (parts: number): boolean => random.below(parts) === 0;
  const kv = 1 + random.below(2);
  const size = (): number => 8 * (1 + random.below(Math.min(limits.head, 128) / 8));
  const d = size();
  const length = (): number => (chance(6) ? 0 : 1 + random.below(limits.length));
  return {
    lengths: Array.from({ length: 1 + random.below(5) }, () => [length(), length()] as const),
    rest: [random.below(4), random.below(4)],
    heads: [kv * (1 + random.below(3)), kv, d, chance(3) ? size() : d],
    causal: chance(2),
    ...(chance(3) && { window: { left: random.below(limits.length) } }),
    deterministic: chance(3),
  };
}

/** A case in words, to run it again. */
export function caseText({ dtype, ...others }: AttentionCase): string {
  return `${dtype?.name ?? "bf16"} ${JSON.stringify(others)}`;
}
