/**
 * Options and their values that had another name once: a program that still says the old one is told the new one, also
 * where the two are nothing alike. `docs/renames.json` has the same names for `npm run rename`.
 *
 *   matmul({ …, configuration: { turned: true } })    unknown option turned of the configuration of matmul, which is called swapAB
 */

/** By the old name the new ones: that which a function has is meant. */
const options: { readonly [old: string]: readonly string[] } = {
  axes: ["axis", "permutation"],
  axis: ["gridAxis"],
  block: ["blockSize"],
  dealing: ["schedule"],
  firstDecay: ["beta1"],
  group: ["groupSize"],
  keep: ["keepDims"],
  lanes: ["threads"],
  least: ["largest"],
  multipliers: ["consumers"],
  ranges: ["splits"],
  rate: ["learningRate"],
  resident: ["minBlocksPerMultiprocessor"],
  secondDecay: ["beta2"],
  settled: ["independent"],
  split: ["splitK", "streamK"],
  stride: ["strides"],
  turned: ["swapAB"],
  turns: ["sliceK"],
  zero: ["zeroPoint"],
};

/** By option and old value the new value. */
const values: { readonly [option: string]: { readonly [old: string]: string } } = {
  find: { least: "min", greatest: "max" },
  kernel: { narrow: "skinny", dots: "gemv", specialised: "warp-specialized" },
  schedule: {
    split: "stream-k",
    parts: "split-k",
    "by rows": "linear",
    "in pairs": "paired",
    "back and forth": "longest-first",
  },
};

/** What an option is called now, where it had this name once and `known` has the new one. */
export function renamedOption(name: string, known: readonly string[]): string | undefined {
  const now = Object.hasOwn(options, name) ? options[name] : undefined;
  return now?.find((each) => known.includes(each));
}

/** What a value of an option is called now. */
export function renamedValue(name: string, value: unknown): string | undefined {
  const now = Object.hasOwn(values, name) ? values[name] : undefined;
  return now !== undefined && typeof value === "string" && Object.hasOwn(now, value)
    ? now[value]
    : undefined;
}
