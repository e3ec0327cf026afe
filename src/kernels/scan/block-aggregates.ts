/**
 * Block aggregates of a grid-cooperative scan, exchanged through a mailbox (`mailbox.ts`): in each wave every block of a row publishes the
 * aggregate of its piece, receives those of the others and computes its exclusive prefix.
 *
 * All blocks combine the aggregates in the same order, so results repeat bit for bit on GPUs with as many processors.
 */
import { dtypes } from "../../formats/dtype.ts";
import { cdiv, full, iota } from "../../lang/index.ts";
import type { LaunchSize, Ref, Scalar } from "../../lang/index.ts";
import type { Size } from "../../ir/size.ts";
import type { ReduceTiles } from "../reduce/reducer.ts";
import { poll, receiveAll, nothingReceived, publish, mailboxShape } from "../support/mailbox.ts";
import type { PolledWords } from "../support/mailbox.ts";
import { eachTile, masked } from "./scan-kernel.ts";
import type { ScanConfiguration, ScanRule } from "./scan-kernel.ts";

/** A block that exchanges aggregates. */
export interface AggregateExchange {
  readonly rule: ScanRule;
  readonly configuration: Pick<ScanConfiguration, "workers">;
  /** The mailbox of this row, [waves, words of a state, workers]. */
  readonly mailbox: Ref<"u64">;
  readonly worker: Scalar<"i32">;
}

/** Publishes the aggregate of a piece. */
export function publishAggregate(
  { rule, mailbox, worker }: AggregateExchange,
  wave: Scalar<"i32">,
  aggregate: ReduceTiles,
): void {
  publish(rule.state, mailbox.at(wave), worker, aggregate);
}

/** Polls the missing aggregates of a wave once. */
export function pollAggregates(
  { mailbox }: AggregateExchange,
  wave: Scalar<"i32">,
  known: PolledWords,
): PolledWords {
  return poll(mailbox.at(wave), known);
}

export function noAggregates({ rule, configuration }: AggregateExchange): PolledWords {
  return nothingReceived(rule.state, configuration.workers);
}

/** The exclusive prefix of this block's piece in a wave, and that of the next wave. */
export function receivePrefix(
  { rule, configuration, mailbox, worker }: AggregateExchange,
  wave: Scalar<"i32">,
  polled: PolledWords,
  before: ReduceTiles,
): { readonly here: ReduceTiles; readonly next: ReduceTiles } {
  const { workers } = configuration;
  const states = receiveAll(rule.state, mailbox.at(wave), polled);
  const [, width] = mailboxShape(rule.state, workers);
  const numbers = iota(dtypes.i32, [2, width], { axis: 1 });
  const isHere = iota(dtypes.i32, [2, 1], { axis: 0 }).eq(0);
  const isIn = numbers.lt(
    isHere.select(full(dtypes.i32, [1, 1], 0).add(worker), full(dtypes.i32, [1, 1], workers)),
  );
  const both = rule.together(masked(rule, isIn, states));
  const of = (row: number): ReduceTiles =>
    rule.merge(
      before,
      eachTile(both, (tile) => tile.slice([row, 0], [1, 1])),
    );
  return { here: of(0), next: of(1) };
}

/** The shape of the mailbox: rows, waves with some beyond the last, words of a state, words of a wave. */
export function aggregatesMailboxShape(
  { state }: Pick<ScanRule, "state">,
  extents: readonly Size[],
  { columns, workers }: Pick<ScanConfiguration, "columns" | "workers">,
  beyond: number,
): readonly Size[] {
  const waves = cdiv(extents.at(-1) ?? 1, columns * workers);
  const slices = typeof waves === "number" ? waves + beyond : (waves as LaunchSize).add(beyond);
  return [...extents.slice(0, -1), slices, ...mailboxShape(state, workers)];
}
