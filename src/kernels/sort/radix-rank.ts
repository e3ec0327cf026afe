/**
 * Ranks of keys by digit within one block, by warp-level multi-split. A warp has rows of 32 keys, one for each lane, and goes through them
 * in order. For each row every lane learns by ballots which lanes have its digit, and a counter of the warp for each digit says how many
 * keys came before the row:
 *
 *   lane        0  1  2  3           ballots: lanes 0 and 3 match            counter of digit 7: 4 so far
 *   digit       7  1  0  7           in the row: 0 0 0 1 are before          ranks 4 … 5, and 6 from here on
 *
 * The order is stable, and costs each key a ballot for each bit of its digit.
 */
import { dtypes } from "../../formats/dtype.ts";
import { full, inlinePtx, iota } from "../../lang/index.ts";
import type { Ref, Tile } from "../../lang/index.ts";

export const digitBits = 8;
export const digits = 2 ** digitBits;

/** Names of index bits, for the text of a layout. */
export function bitNames(name: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, bit) => `${name}${bit}`);
}

/** Which lanes of the warp have the same digit, as bits; digits are [32]. */
function matchingLanes(digit: Tile<"u32">): Tile<"u32"> {
  const { shape } = digit;
  const layout = `(${bitNames("L", 5).join(" ")})`;
  const [alike] = inlinePtx({
    operands: [digit],
    results: [{ dtype: dtypes.u32, shape }],
    layouts: { operands: [layout], results: [layout] },
    code: ([[own = ""]], [[mask = ""]]) =>
      [
        "{ .reg .pred set; .reg .b32 bit, lanes;",
        `mov.b32 ${mask}, 0xffffffff;`,
        ...Array.from({ length: digitBits }, (_, bit) => [
          `and.b32 bit, ${own}, ${2 ** bit}; setp.ne.u32 set, bit, 0;`,
          "vote.sync.ballot.b32 lanes, set, 0xffffffff; @!set not.b32 lanes, lanes;",
          `and.b32 ${mask}, ${mask}, lanes;`,
        ]).flat(),
        "}",
      ].join("\n"),
    meaning: (own) => {
      const lane = iota(dtypes.u32, shape, { axis: 0 });
      let mask = full(dtypes.u32, shape, 0xffffffff);
      for (let bit = 0; bit < digitBits; bit += 1) {
        const isSet = own.shr(bit).and(1);
        const votes = isSet.shl(lane).sum({ axis: 0, keepDims: true });
        mask = mask.and(isSet.eq(1).select(votes, votes.not()));
      }
      return [mask];
    },
  });
  return alike;
}

/**
 * The ranks of a row of 32 keys with these digits: `counts` has for each digit the rank of its next key, and is advanced.
 */
export function rankDigits(counts: Ref<"i32">, digit: Tile<"i32">): Tile<"i32"> {
  const lowerLanes = full(dtypes.u32, [32], 1)
    .shl(iota(dtypes.u32, [32], { axis: 0 }))
    .sub(1);
  const lanes = matchingLanes(digit.cast(dtypes.u32));
  const before = lanes.and(lowerLanes).popcount().cast(dtypes.i32);
  const counter = counts.at(digit);
  const first = counter.load();
  const after = first.add(lanes.popcount().cast(dtypes.i32));
  counter.store(after, { where: before.eq(0) });
  return first.add(before);
}
