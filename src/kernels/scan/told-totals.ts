/**
 * What blocks that share a row of a scan tell each other: in every wave the total of their piece. A total is told in words of
 * 64 bits, half of which say that it is there. Whoever finds such a word has all of it, so that no fence is needed, which would wait
 * until what was stored before has reached memory.
 *
 *   [waves, words of a state, workers]     0 · 0 · 1·total · 0 · …     what is not 0 has been told
 *
 * All blocks combine the totals of all waves in one order, so results repeat bit for bit on GPUs with as many processors.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { cdiv, full, iota, slice, whileLoop, zeros } from "../../lang/index.ts";
import type { LaunchSize, Ref, Scalar, Tile } from "../../lang/index.ts";
import type { Size } from "../../ir/size.ts";
import type { ReduceTiles, StatePart } from "../reduce/reducer.ts";
import { powerOfTwoFrom } from "../support/sizes.ts";
import { eachTile, only } from "./scan-kernel.ts";
import type { ScanConfiguration, ScanRule } from "./scan-kernel.ts";

/** A block that tells and hears. */
export interface Teller {
  readonly rule: ScanRule;
  readonly configuration: Pick<ScanConfiguration, "workers">;
  /** The words that blocks of this row tell each other, [waves, words of a state, workers]. */
  readonly told: Ref<"u64">;
  readonly worker: Scalar<"i32">;
}

/** A number of the state as words that can be told: 32 bits each, and above them that they are there. */
const isThere = 2 ** 32;

/** Words of a number. */
function wordsOf({ dtype }: StatePart): number {
  return Math.ceil(dtype.bits / 32);
}

/** How many words a state has. */
function wordCount({ state }: Pick<ScanRule, "state">): number {
  return Object.values(state).reduce((sum, part) => sum + wordsOf(part), 0);
}

/** How many words of a wave lie side by side. */
function wordsOfWave({ workers }: Teller["configuration"]): number {
  return powerOfTwoFrom(workers);
}

const unsigned = { 8: dtypes.u8, 16: dtypes.u16, 32: dtypes.u32, 64: dtypes.u64 } as const;

function unsignedOf({ dtype }: StatePart): DType {
  const found = Object.entries(unsigned).find(([bits]) => Number(bits) === dtype.bits);
  if (found === undefined) throw new Error(`no words of ${dtype.name}`);
  return found[1];
}

/** Tells the total of a piece: whoever sees a word sees all of it, so that nothing else has to be ordered. */
export function tell(
  { rule, told, worker }: Teller,
  wave: Scalar<"i32">,
  total: ReduceTiles,
): void {
  let word = 0;
  for (const [name, part] of Object.entries(rule.state)) {
    const bits = (total[name] as Tile)
      .bitcast(unsignedOf(part))
      .cast(dtypes.u64)
      .reshape([1]) as Tile<"u64">;
    for (let each = 0; each < wordsOf(part); each += 1) {
      const own = wordsOf(part) === 1 ? bits : bits.shr(32 * each).and(isThere - 1);
      told.at(wave, word, slice(worker, 1)).atomicAdd(own.add(isThere));
      word += 1;
    }
  }
}

/** Words of a wave, and which of them are still to be told. */
export interface Words {
  readonly words: Tile<"u64">;
  readonly open: Tile<"bool">;
}

/** What has been told of a wave beside what was known before. */
export function ask({ told }: Teller, wave: Scalar<"i32">, { words, open }: Words): Words {
  const found = told.at(wave).atomicAdd(zeros(dtypes.u64, words.shape), { where: open });
  return { words: words.or(found), open: open.and(found.eq(0)) };
}

export function nothingTold({ rule, configuration }: Teller): Words {
  const shape = [wordCount(rule), wordsOfWave(configuration)];
  return {
    words: zeros(dtypes.u64, shape),
    open: iota(dtypes.i32, shape, 1).lt(configuration.workers),
  };
}

/** What comes before this block's piece of a wave, and what comes before the next wave. */
export function hear(
  teller: Teller,
  wave: Scalar<"i32">,
  asked: Words,
  before: ReduceTiles,
): { readonly here: ReduceTiles; readonly next: ReduceTiles } {
  const { rule, configuration, worker } = teller;
  const { workers } = configuration;
  const { words } = whileLoop(
    { ...asked },
    ({ open }) => open.reduce("or"),
    (known) => ({ ...ask(teller, wave, known) }),
  );
  const width = wordsOfWave(configuration);
  const numbers = iota(dtypes.i32, [2, width], 1);
  const isHere = iota(dtypes.i32, [2, 1], 0).eq(0);
  const isIn = numbers.lt(
    isHere.select(full(dtypes.i32, [1, 1], 0).add(worker), full(dtypes.i32, [1, 1], workers)),
  );
  const both = rule.together(only(rule, isIn, statesOf(rule, words)));
  const of = (row: number): ReduceTiles =>
    rule.merge(
      before,
      eachTile(both, (tile) => tile.slice([row, 0], [1, 1])),
    );
  return { here: of(0), next: of(1) };
}

/** States as their words tell them. */
function statesOf({ state }: ScanRule, words: Tile<"u64">): ReduceTiles {
  const width = words.shape[1] ?? 1;
  let word = 0;
  return Object.fromEntries(
    Object.entries(state).map(([name, part]) => {
      const parts = Array.from({ length: wordsOf(part) }, (_, each) =>
        words
          .slice([word + each, 0], [1, width])
          .and(isThere - 1)
          .shl(32 * each),
      );
      word += parts.length;
      const bits = parts.reduce((low, high) => low.or(high));
      return [name, bits.cast(unsignedOf(part)).bitcast(part.dtype) as Tile];
    }),
  );
}

/** What blocks tell each other is called this, beside the arrays of the kernel. */
export const toldName = "told_by_blocks";

/** Its shape, which is 0 at first: rows, waves and so many beyond the last, words of a state, words of a wave. */
export function toldShape(
  rule: Pick<ScanRule, "state">,
  extents: readonly Size[],
  { columns, workers }: Pick<ScanConfiguration, "columns" | "workers">,
  beyond: number,
): readonly Size[] {
  const waves = cdiv(extents.at(-1) ?? 1, columns * workers);
  const told = typeof waves === "number" ? waves + beyond : (waves as LaunchSize).add(beyond);
  return [...extents.slice(0, -1), told, wordCount(rule), wordsOfWave({ workers })];
}
