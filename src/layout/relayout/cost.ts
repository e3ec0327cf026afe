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
 *   | warp barrier           | 4      | `bar.warp.sync`, and the way to memory and back             |
 *   | warpgroup barrier      | 24     | the slowest of four warps                                  |
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
  barrier: Object.freeze({ warp: 4, warpgroup: 24 }),
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
    barriers: { warp: barriers("warp"), warpgroup: barriers("warpgroup") },
  };
}

function selectCount({ zeros, ones }: SelectStep): number {
  return zeros.filter((zero, index) => zero !== ones[index]).length;
}

function shuffleCount({ words }: ShuffleStep): number {
  return words.filter(({ word, lanes }) => word !== nothing && lanes !== undefined).length;
}

/** `prmt` takes bytes of two words; halves of bytes are shifted into place one by one. */
function permuteCount({ words }: PackStep, bits: number): number {
  const slots = slotsPerWord(bits);
  if (slots === 1) return 0;
  let count = 0;
  for (const word of words) {
    const read = new Set<number>();
    let inPlace = true;
    let used = 0;
    word.forEach((slot, part) => {
      if (slot === nothing) return;
      read.add(Math.floor(slot / slots));
      inPlace &&= slot % slots === part;
      used += 1;
    });
    if (inPlace && read.size <= 1) continue;
    count += bits < 8 ? used : Math.max(1, read.size - 1);
  }
  return count;
}

/** Cost of steps on elements of `bits` bits. */
export function stepsCost(steps: readonly RelayoutStep[], bits: number): number {
  const counts = relayoutCounts(steps, bits);
  const { select, permute, shuffle, access, wavefront, barrier } = relayoutWeights;
  return (
    counts.selects * select +
    counts.permutes * permute +
    counts.shuffles * shuffle +
    counts.accesses * access +
    counts.wavefronts * wavefront +
    counts.barriers.warp * barrier.warp +
    counts.barriers.warpgroup * barrier.warpgroup
  );
}

/** Cost of a plan; nothing for kind `none`. */
export function relayoutCost(plan: RelayoutPlan): number {
  return plan.kind === "none" ? 0 : stepsCost(plan.steps, plan.bits);
}
