/**
 * When the kernel for one row is possible, which configurations of it there are, and what a model thinks of them. bf16 on an H200, µs, of the fastest
 * of the persistent kernel that the model knows and of blocks of so many columns, warps and words:
 *
 *   n × k            persistent   1, 4, 4   2, 4, 4   2, 2, 4   1, 2, 4
 *   8192 × 28672     103.1        102.3     102.3     102.6     104.0
 *   28672 × 8192     107.6        102.0     101.9     102.3     102.4
 *   13824 × 5120     36.1         40.8      38.6      34.2      33.6
 *   5120 × 13824     35.3         35.2      34.5      33.9      32.9
 *   4096 × 14336     28.7         29.3      28.6      27.4      28.9
 *   14336 × 4096     28.8         27.3      27.1      27.2      27.2
 *   4928 × 3520      9.61                   9.13      9.35      9.65
 *   3072 × 7232      12.6                   11.6      12.9      12.4
 *   320 × 4864       4.23                   2.73      3.17      2.95
 *   384 × 1152       2.95                   1.52      1.46      1.58
 *   8192 × 1024      5.17                   9.24      6.23      10.2
 *
 * On another card the first line is 105.8, 104.2, 105.8, 110.8 and 104.7. Blocks of 256 lanes took 5 to 60 % longer, those that keep a sum for every element of all words up to
 * 8 %; single warps with four columns 5.6 µs of 8192 × 1024. With two rows, blocks that keep twice as many sums took 120 µs of 8192 × 28672 instead of 107.
 */
import { dtypes, packedBytes } from "../../../formats/dtype.ts";
import type { Location } from "../../../support/location.ts";
import { requireSettings } from "../../support/arguments.ts";
import { matmulSettings } from "../configuration.ts";
import type { GemvConfiguration, ProductSizes } from "../configuration.ts";
import { wordDepth } from "./gemv.ts";
import { refused } from "../argument-errors.ts";
import type { MatmulProblem } from "../problem.ts";

/** Those that were the fastest of some sizes. Of two for which the model has the same time the first is chosen. */
const forms: readonly Omit<GemvConfiguration, "kernel">[] = [
  { columns: 1, warps: 4, words: 4 },
  { columns: 2, warps: 4, words: 4 },
  { columns: 2, warps: 2, words: 4 },
  { columns: 1, warps: 2, words: 4 },
];

/** Seconds until what a block asks for is there, those of the first step that the end of the launch before hides, and those in which the GPU starts another block. */
const [askedSeconds, hiddenSeconds, blockSeconds] = [0.9e-6, 0.4e-6, 1.4e-9];
/** Bytes a second that memory gives those who only read. */
const readRate = 4.6e12;
/** Seconds of a launch besides: lanes add up what they have, and the launch after begins meanwhile. */
const besidesSeconds = 0.77e-6;
/** The part of the time of lanes that are beyond the end of k which nobody else uses, in blocks of one column and of two. */
const idleShare = { 1: 0.5, 2: 0.32, 4: 0.32 };

/** Why the kernel for one row cannot be used, in words; undefined where it can. */
function gemvProblem(problem: MatmulProblem, { m }: ProductSizes): string | undefined {
  const { a, b, sizes, major, outputs, prologues, weights, sparse, accumulator } = problem;
  if (m !== 1) return `a has ${m} rows`;
  if (sizes.batch !== undefined) return "there is a batch";
  if (problem.views !== undefined) return "an operand is part of a larger array";
  if (major.a !== "k" || major.b !== "k") return "operands do not lie along k";
  if (outputs.length > 0) return "there are further outputs";
  if (weights !== undefined || sparse || (prologues.a ?? prologues.b) !== undefined)
    return "an operand is computed";
  const isHalf = [a, b].every(({ dtype }) => dtype === dtypes.bf16 || dtype === dtypes.f16);
  return isHalf && accumulator === dtypes.f32 ? undefined : "operands are not of 16 bits";
}

/** Those of rows whose lanes read as widely as they can. */
export function gemvCandidates(
  problem: MatmulProblem,
  sizes: ProductSizes,
): readonly GemvConfiguration[] {
  if (gemvProblem(problem, sizes) !== undefined || sizes.k % 8 !== 0) return [];
  return forms.map((form) => ({ kernel: "gemv", ...form }));
}

/**
 * What the model thinks a configuration takes: the longest of what memory takes for the weights, of the steps of a block, and of the blocks one after the
 * other.
 */
export function gemvSeconds(
  problem: MatmulProblem,
  { n, k }: ProductSizes,
  configuration: GemvConfiguration,
): number {
  const { columns, words } = configuration;
  const depth = words * wordDepth(problem, configuration);
  const steps = Math.ceil(k / depth);
  const idle = k === 0 ? 0 : (steps * depth) / k - 1;
  const memory = packedBytes(problem.b.dtype, n * k) / readRate;
  const busy = Math.max(
    memory * (1 + idleShare[columns] * idle),
    steps * askedSeconds - hiddenSeconds,
    Math.ceil(n / columns) * blockSeconds,
  );
  return besidesSeconds + busy;
}

/** Refuses what no kernel of this form can be. */
export function requireGemv(
  configuration: GemvConfiguration,
  problem: MatmulProblem,
  sizes: ProductSizes,
  location: Location,
): void {
  requireSettings(problem.of, configuration, matmulSettings.gemv, location);
  const text = JSON.stringify(configuration);
  const reason = gemvProblem(problem, sizes);
  if (reason !== undefined)
    throw refused(
      "TW9904",
      `matmul cannot use the kernel for one row here: ${reason}`,
      'another kernel, or none: { kernel: "plain", … }',
      text,
      location,
    );
  const { columns, warps, words } = configuration;
  if (![columns, warps, words].every((each) => [1, 2, 4].includes(each)))
    throw refused(
      "TW9904",
      "matmul has no such kernel for one row",
      "columns, warps and words 1, 2 or 4",
      text,
      location,
    );
}
