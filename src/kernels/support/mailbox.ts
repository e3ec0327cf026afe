/**
 * What blocks that run at once tell each other through global memory: states of one or more numbers, in words of 64 bits, half of
 * which say that the other half is there. Whoever finds such a word has all of it, so that no fence is needed, which would wait
 * until what was stored before has reached memory.
 *
 *   [words of a state, blocks]     0 · 0 · 1·number · 0 · …     what is not 0 has been told
 *
 * The words are 0 before blocks begin.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { iota, slice, whileLoop, zeros } from "../../lang/index.ts";
import type { Ref, Scalar, Tile } from "../../lang/index.ts";
import { powerOfTwoFrom } from "./sizes.ts";

/** The numbers of a state by name. */
export interface ToldState {
  readonly [name: string]: { readonly dtype: DType };
}

/** Their values by name. */
export interface ToldTiles {
  readonly [name: string]: Tile;
}

/** Half a word; the other half is 1 where it has been told. */
const isThere = 2 ** 32;

const wordsOf = ({ bits }: DType): number => Math.ceil(bits / 32);

/** How many words a state has. */
function wordCount(state: ToldState): number {
  return Object.values(state).reduce((sum, { dtype }) => sum + wordsOf(dtype), 0);
}

/** The shape of what a number of blocks tell each other at a time. */
export function wordShape(state: ToldState, blocks: number): readonly [number, number] {
  return [wordCount(state), powerOfTwoFrom(blocks)];
}

const unsigned = { 8: dtypes.u8, 16: dtypes.u16, 32: dtypes.u32, 64: dtypes.u64 } as const;

function unsignedOf(dtype: DType): DType {
  const found = Object.entries(unsigned).find(([bits]) => Number(bits) === dtype.bits);
  if (found === undefined) throw new Error(`no words of ${dtype.name}`);
  return found[1];
}

/** Tells a block's numbers, of one element each: whoever sees a word sees all of it, so that nothing else has to be ordered. */
export function tellWords(
  state: ToldState,
  told: Ref<"u64">,
  block: Scalar<"i32">,
  values: ToldTiles,
): void {
  let word = 0;
  for (const [name, { dtype }] of Object.entries(state)) {
    const bits = (values[name] as Tile)
      .bitcast(unsignedOf(dtype))
      .cast(dtypes.u64)
      .reshape([1]) as Tile<"u64">;
    for (let each = 0; each < wordsOf(dtype); each += 1) {
      const own = wordsOf(dtype) === 1 ? bits : bits.shr(32 * each).and(isThere - 1);
      told.at(word, slice(block, 1)).atomicAdd(own.add(isThere));
      word += 1;
    }
  }
}

/** Words, and which of them are still to be told. */
export interface Words {
  readonly words: Tile<"u64">;
  readonly open: Tile<"bool">;
}

/** Nothing yet of what blocks will tell. */
export function nothingTold(state: ToldState, blocks: number): Words {
  const shape = wordShape(state, blocks);
  return { words: zeros(dtypes.u64, shape), open: iota(dtypes.i32, shape, { axis: 1 }).lt(blocks) };
}

/** What has been told beside what was known before. */
export function askForWords(told: Ref<"u64">, { words, open }: Words): Words {
  const found = told.atomicAdd(zeros(dtypes.u64, words.shape), { where: open });
  return { words: words.or(found), open: open.and(found.eq(0)) };
}

/** States of all blocks, [1, blocks] each, once all have told theirs. */
export function heardStates(state: ToldState, told: Ref<"u64">, asked: Words): ToldTiles {
  const { words } = whileLoop(
    { ...asked },
    ({ open }) => open.reduce("or"),
    (known) => ({ ...askForWords(told, known) }),
  );
  const width = words.shape[1] ?? 1;
  let word = 0;
  return Object.fromEntries(
    Object.entries(state).map(([name, { dtype }]) => {
      const parts = Array.from({ length: wordsOf(dtype) }, (_, each) =>
        words
          .slice([word + each, 0], [1, width])
          .and(isThere - 1)
          .shl(32 * each),
      );
      word += parts.length;
      const bits = parts.reduce((low, high) => low.or(high));
      return [name, bits.cast(unsignedOf(dtype)).bitcast(dtype) as Tile];
    }),
  );
}

/** What blocks tell each other is called this, beside the arrays of a kernel. */
export const toldName = "told_by_blocks";
