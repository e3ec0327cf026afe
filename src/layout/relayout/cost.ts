/**
 * What a conversion costs, in cycles of a multiprocessor for the four warps of a program thread. One
 * table holds the whole model; only its ratios matter for a choice.
 *
 *   | what                   | cycles | because                                                    |
 *   |------------------------|--------|------------------------------------------------------------|
 *   | select (`selp`)        | 2      | 4 warps at half rate: two warp instructions a cycle         |
 *   | permute (`prmt`)       | 2      | the same                                                   |
 *   | shuffle (`shfl.sync`)  | 4      | 4 warps at one warp instruction a cycle                     |
 *   | access                 | 0.5    | issuing one `ld.shared` or `st.shared` of a warp             |
 *   | wavefront              | 1      | one word of each bank                                      |
 *   | warp barrier           | 12     | `bar.warp.sync`, and the way to memory and back             |
 *   | thread barrier         | 24     | the slowest of four warps                                  |
 *
 * Elements of 64 bits are two words, and count twice.
 */
import { nothing, slotsPerWord } from "./steps.ts";
import type {
  BarrierScope,
  PackStep,
  RelayoutPlan,
  RelayoutStep,
  SelectStep,
  ShuffleStep,
} from "./steps.ts";

export interface RelayoutWeights {
  readonly select: number;
  readonly permute: number;
  readonly shuffle: number;
  readonly access: number;
  readonly wavefront: number;
  readonly barrier: { readonly [K in BarrierScope]: number };
}

export const relayoutWeights: RelayoutWeights = Object.freeze({
  select: 2,
  permute: 2,
  shuffle: 4,
  access: 0.5,
  wavefront: 1,
  barrier: Object.freeze({ warp: 12, thread: 24 }),
});

/** Instructions that a plan takes, for reports. Those of shared memory are of all warps together. */
export interface RelayoutCounts {
  readonly selects: number;
  readonly permutes: number;
  readonly shuffles: number;
  readonly accesses: number;
  readonly wavefronts: number;
  readonly barriers: { readonly [K in BarrierScope]: number };
}

export function relayoutCounts(steps: readonly RelayoutStep[], bits: number): RelayoutCounts {
  const parts = Math.max(1, bits / 32);
  const total = <K extends RelayoutStep["kind"]>(
    kind: K,
    count: (step: Extract<RelayoutStep, { kind: K }>) => number,
  ): number =>
    steps.reduce(
      (sum, step) =>
        step.kind === kind ? sum + count(step as Extract<RelayoutStep, { kind: K }>) : sum,
      0,
    );
  const barriers = (scope: BarrierScope): number =>
    total("exchange", (step) => (step.scope === scope ? 2 * step.chunks.length : 0));
  return {
    selects: parts * total("select", selectCount),
    permutes: total("pack", (step) => permuteCount(step, bits)),
    shuffles: parts * total("shuffle", shuffleCount),
    accesses: total("exchange", ({ stores, loads }) => stores.instructions + loads.instructions),
    wavefronts: total("exchange", ({ stores, loads }) => stores.wavefronts + loads.wavefronts),
    barriers: { warp: barriers("warp"), thread: barriers("thread") },
  };
}

function selectCount({ zeros, ones }: SelectStep): number {
  return zeros.filter((zero, index) => zero !== ones[index]).length;
}

function shuffleCount({ words }: ShuffleStep): number {
  return words.filter(({ word, lanes }) => word !== nothing && lanes !== undefined).length;
}

function permuteCount({ words }: PackStep, bits: number): number {
  return words.reduce((sum, word) => sum + wordPermutes(word, 0, word.length, bits), 0);
}

/**
 * Instructions that put the slots from `start` side by side into a word. `prmt` takes bytes of two
 * words; halves of bytes are shifted into place one by one.
 */
export function wordPermutes(
  slots: ArrayLike<number>,
  start: number,
  length: number,
  bits: number,
): number {
  const width = slotsPerWord(bits);
  if (width === 1) return 0;
  let inPlace = true;
  let used = 0;
  let words = 0;
  for (let part = 0; part < length; part += 1) {
    const slot = slots[start + part] as number;
    if (slot === nothing) continue;
    used += 1;
    inPlace &&= slot % width === part;
    const word = Math.floor(slot / width);
    let seen = false;
    for (let other = 0; other < part; other += 1) {
      const before = slots[start + other] as number;
      seen ||= before !== nothing && Math.floor(before / width) === word;
    }
    if (!seen) words += 1;
  }
  if (inPlace && words <= 1) return 0;
  return bits < 8 ? used : Math.max(1, words - 1);
}

/** Cost of steps on elements of `bits` bits. */
export function stepsCost(steps: readonly RelayoutStep[], bits: number): number {
  return countsCost(relayoutCounts(steps, bits));
}

export function countsCost(counts: RelayoutCounts): number {
  const { select, permute, shuffle, access, wavefront, barrier } = relayoutWeights;
  return (
    counts.selects * select +
    counts.permutes * permute +
    counts.shuffles * shuffle +
    counts.accesses * access +
    counts.wavefronts * wavefront +
    counts.barriers.warp * barrier.warp +
    counts.barriers.thread * barrier.thread
  );
}

/** Cost of a plan; nothing for kind `none`. */
export function relayoutCost(plan: RelayoutPlan): number {
  return plan.kind === "none" ? 0 : stepsCost(plan.steps, plan.bits);
}
