/**
 * Which targets have an instruction. The letter behind a number says what a module runs on, and so what it may
 * use: `a` on that GPU alone and all that it has, `f` on its family and what the family has, none on all later ones.
 *
 *   sm_100  architecture 100, letter ""      sm_100f, sm_100a   the same, letters f and a
 */
export interface TargetSet {
  /** As errors name it. */
  readonly title: string;
  /** From an architecture on, or a list. */
  readonly architectures: { readonly from: number } | readonly number[];
  /** The letters that the target may have, "" for none. */
  readonly letters: readonly string[];
  /** Single targets besides. */
  readonly also?: readonly string[];
}

const anyLetter = ["", "f", "a"];
const accelerated = ["f", "a"];
const tensorMemory = [100, 103, 110];

/** By the name that forms give. */
export const targetSets = {
  hopper: { title: "sm_90 and later", architectures: { from: 90 }, letters: anyLetter },
  hopperOnly: { title: "sm_90a", architectures: [], letters: [], also: ["sm_90a"] },
  ampere: { title: "sm_80 and later", architectures: { from: 80 }, letters: anyLetter },
  ada: { title: "sm_89 and later", architectures: { from: 89 }, letters: anyLetter },
  registers: {
    title: "sm_90a, or sm_100 and later with a or f",
    architectures: { from: 100 },
    letters: accelerated,
    also: ["sm_90a"],
  },
  blackwell: { title: "sm_100 and later", architectures: { from: 100 }, letters: anyLetter },
  accelerated: {
    title: "sm_100 and later with a or f",
    architectures: { from: 100 },
    letters: accelerated,
  },
  tensorMemory: {
    title: "sm_100, sm_103 and sm_110 with a or f",
    architectures: tensorMemory,
    letters: accelerated,
  },
  tensorMemoryExact: {
    title: "sm_100a, sm_103a and sm_110a",
    architectures: tensorMemory,
    letters: ["a"],
  },
  integerProducts: { title: "sm_100a and sm_110a", architectures: [100, 110], letters: ["a"] },
  loadReductions: {
    title: "sm_103 and sm_110 with a or f",
    architectures: [103, 110],
    letters: accelerated,
  },
  scaledSums: {
    title: "sm_100 and sm_103 with a or f",
    architectures: [100, 103],
    letters: accelerated,
  },
  stochastic: { title: "sm_100a and sm_103a", architectures: [100, 103], letters: ["a"] },
  swizzle96: { title: "sm_103a", architectures: [103], letters: ["a"] },
  blockScaled: {
    title: "sm_120 and sm_121 with a or f",
    architectures: [120, 121],
    letters: accelerated,
  },
  blockScaledExact: { title: "sm_120a and sm_121a", architectures: [120, 121], letters: ["a"] },
} as const satisfies { readonly [name: string]: TargetSet };

export type TargetSetName = keyof typeof targetSets;

const namePattern = /^sm_(\d+)([af]?)$/;

export function isInSet(target: string, set: TargetSet): boolean {
  if (set.also?.includes(target) === true) return true;
  const match = namePattern.exec(target);
  if (match === null) return false;
  const architecture = Number(match[1]);
  const { architectures } = set;
  const has =
    "from" in architectures
      ? architecture >= architectures.from
      : architectures.includes(architecture);
  return has && set.letters.includes(match[2] ?? "");
}
