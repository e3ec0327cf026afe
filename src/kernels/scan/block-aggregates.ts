/**
 * What blocks that share a row of a scan tell each other (`mailbox.ts`): in every wave the total of their piece.
 *
 * All blocks combine the totals of all waves in one order, so results repeat bit for bit on GPUs with as many processors.
 */
import { dtypes } from "../../formats/dtype.ts";
import { cdiv, full, iota } from "../../lang/index.ts";
import type { LaunchSize, Ref, Scalar } from "../../lang/index.ts";
import type { Size } from "../../ir/size.ts";
import type { ReduceTiles } from "../reduce/reducer.ts";
import { askForWords, heardStates, nothingTold, tellWords, wordShape } from "../support/mailbox.ts";
import type { Words } from "../support/mailbox.ts";
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

/** Tells the total of a piece. */
export function tell(
  { rule, told, worker }: Teller,
  wave: Scalar<"i32">,
  total: ReduceTiles,
): void {
  tellWords(rule.state, told.at(wave), worker, total);
}

/** What has been told of a wave beside what was known before. */
export function ask({ told }: Teller, wave: Scalar<"i32">, known: Words): Words {
  return askForWords(told.at(wave), known);
}

export function nothingHeard({ rule, configuration }: Teller): Words {
  return nothingTold(rule.state, configuration.workers);
}

/** What comes before this block's piece of a wave, and what comes before the next wave. */
export function hear(
  { rule, configuration, told, worker }: Teller,
  wave: Scalar<"i32">,
  asked: Words,
  before: ReduceTiles,
): { readonly here: ReduceTiles; readonly next: ReduceTiles } {
  const { workers } = configuration;
  const states = heardStates(rule.state, told.at(wave), asked);
  const [, width] = wordShape(rule.state, workers);
  const numbers = iota(dtypes.i32, [2, width], { axis: 1 });
  const isHere = iota(dtypes.i32, [2, 1], { axis: 0 }).eq(0);
  const isIn = numbers.lt(
    isHere.select(full(dtypes.i32, [1, 1], 0).add(worker), full(dtypes.i32, [1, 1], workers)),
  );
  const both = rule.together(only(rule, isIn, states));
  const of = (row: number): ReduceTiles =>
    rule.merge(
      before,
      eachTile(both, (tile) => tile.slice([row, 0], [1, 1])),
    );
  return { here: of(0), next: of(1) };
}

/** The shape of all that is told: rows, waves and so many beyond the last, words of a state, words of a wave. */
export function toldShape(
  { state }: Pick<ScanRule, "state">,
  extents: readonly Size[],
  { columns, workers }: Pick<ScanConfiguration, "columns" | "workers">,
  beyond: number,
): readonly Size[] {
  const waves = cdiv(extents.at(-1) ?? 1, columns * workers);
  const told = typeof waves === "number" ? waves + beyond : (waves as LaunchSize).add(beyond);
  return [...extents.slice(0, -1), told, ...wordShape(state, workers)];
}
