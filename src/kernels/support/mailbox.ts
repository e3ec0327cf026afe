/**
 * A flagged mailbox in global memory, through which co-resident blocks exchange states of one or more numbers. A word has 64 bits: the
 * upper half is a flag, the lower half the data. Flag and data arrive together, so no fence is needed, which would wait for all
 * earlier stores.
 *
 *   [words of a state, blocks]     0 · 0 · 1·number · 0 · …     nonzero: published
 *
 * The mailbox is cleared before the launch. Blocks publish their own state and poll for those of the others.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { iota, slice, whileLoop, zeros } from "../../lang/index.ts";
import type { Ref, Scalar, Tile } from "../../lang/index.ts";
import { powerOfTwoFrom } from "./sizes.ts";

/** The numbers of a state by name. */
export interface MailboxState {
  readonly [name: string]: { readonly dtype: DType };
}

/** Their values by name, tiles. */
export interface MailboxValues {
  readonly [name: string]: Tile;
}

/** The flag: the upper half of a word is 1 once it is published. */
const published = 2 ** 32;

const wordsOf = ({ bits }: DType): number => Math.ceil(bits / 32);

/** Words of a state. */
function wordCount(state: MailboxState): number {
  return Object.values(state).reduce((sum, { dtype }) => sum + wordsOf(dtype), 0);
}

/** The shape of the mailbox for one exchange between so many blocks. */
export function mailboxShape(state: MailboxState, blocks: number): readonly [number, number] {
  return [wordCount(state), powerOfTwoFrom(blocks)];
}

const unsigned = { 8: dtypes.u8, 16: dtypes.u16, 32: dtypes.u32, 64: dtypes.u64 } as const;

function unsignedOf(dtype: DType): DType {
  const found = Object.entries(unsigned).find(([bits]) => Number(bits) === dtype.bits);
  if (found === undefined) throw new Error(`no words of ${dtype.name}`);
  return found[1];
}

/** Publishes the state of a block, tiles of one element each. Each word carries its own flag, so no fence orders them. */
export function publish(
  state: MailboxState,
  mailbox: Ref<"u64">,
  block: Scalar<"i32">,
  values: MailboxValues,
): void {
  let word = 0;
  for (const [name, { dtype }] of Object.entries(state)) {
    const bits = (values[name] as Tile).bitcast(unsignedOf(dtype)).cast(dtypes.u64).reshape([1]);
    for (let each = 0; each < wordsOf(dtype); each += 1) {
      const own = wordsOf(dtype) === 1 ? bits : bits.shr(32 * each).and(published - 1);
      mailbox.at(word, slice(block, 1)).atomicAdd(own.add(published));
      word += 1;
    }
  }
}

/** The words received so far, and which ones are missing. */
export interface PolledWords {
  readonly words: Tile<"u64">;
  readonly missing: Tile<"bool">;
}

/** Before the first poll. */
export function nothingReceived(state: MailboxState, blocks: number): PolledWords {
  const shape = mailboxShape(state, blocks);
  return {
    words: zeros(dtypes.u64, shape),
    missing: iota(dtypes.i32, shape, { axis: 1 }).lt(blocks),
  };
}

/** Polls the missing words once. */
export function poll(mailbox: Ref<"u64">, { words, missing }: PolledWords): PolledWords {
  const found = mailbox.atomicAdd(zeros(dtypes.u64, words.shape), { where: missing });
  return { words: words.or(found), missing: missing.and(found.eq(0)) };
}

/** Polls until all blocks have published; their states, [1, blocks] each. */
export function receiveAll(
  state: MailboxState,
  mailbox: Ref<"u64">,
  polled: PolledWords,
): MailboxValues {
  const { words } = whileLoop(
    { ...polled },
    ({ missing }) => missing.reduce("or"),
    (known) => ({ ...poll(mailbox, known) }),
  );
  const width = words.shape[1] ?? 1;
  let word = 0;
  return Object.fromEntries(
    Object.entries(state).map(([name, { dtype }]) => {
      const halves = Array.from({ length: wordsOf(dtype) }, (_, each) =>
        words
          .slice([word + each, 0], [1, width])
          .and(published - 1)
          .shl(32 * each),
      );
      word += halves.length;
      const bits = halves.reduce((low, high) => low.or(high));
      return [name, bits.cast(unsignedOf(dtype)).bitcast(dtype)];
    }),
  );
}

/** The name of the mailbox among the arrays of a kernel. */
export const mailboxName = "told_by_blocks";
