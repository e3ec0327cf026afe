/**
 * A timeline as rows to look at: who copies, multiplies, waits, when, and of which iteration. Neighbours that do the
 * same are one bar:
 *
 *   copy             c0 c1 c2 ▒▒▒▒▒▒▒▒▒▒▒▒ c3
 *   copy, beside 1     c0 ───────
 *   first            ▒▒▒▒▒▒▒▒▒▒▒▒▒ p0 ▒▒▒ p1
 *   first, beside 1                 p0 ──
 *
 * What an op is shown as follows from its traits and its cost, so that a new op needs no entry here.
 */
import { costRules } from "../ir/cost/index.ts";
import type { CostContext } from "../ir/cost/index.ts";
import type { AnyOp } from "../ir/node.ts";
import { ruleOf } from "../ir/ops.ts";
import { accessesOf } from "../ir/traits.ts";
import type { Span } from "./timeline.ts";
import { spanTracks } from "./trace-events.ts";

/** What somebody does for a while. */
export type Activity = "copies" | "multiplies" | "loads or stores" | "computes" | "waits";

export interface Bar {
  readonly activity: Activity;
  readonly from: number;
  readonly to: number;
  /** Of the enclosing loops, outermost first; that of its first op. */
  readonly iterations: readonly number[];
  readonly hint: string;
}

export interface ChartRow {
  readonly block: string;
  readonly track: string;
  readonly bars: readonly Bar[];
}

export interface TimelineChart {
  readonly rows: readonly ChartRow[];
  /** When the last bar ends. */
  readonly end: number;
  /** Whether it shows every row of the whole run. */
  readonly complete: boolean;
}

/** A bar while it grows. */
type Stretch = { -readonly [F in keyof Bar]: Bar[F] };

export interface ChartLimits {
  readonly blocks: number;
  readonly rows: number;
}

/** The first blocks of a run that do anything. */
export function timelineChart(
  { spans, complete }: { readonly spans: readonly Span[]; readonly complete: boolean },
  context: CostContext,
  limits: ChartLimits,
): TimelineChart {
  const rows = new Map<string, { block: string; track: string; bars: Stretch[] }>();
  for (const { span, block, track } of spanTracks(spans)) {
    const key = `${block} ${track}`;
    const row = rows.get(key) ?? { block, track, bars: [] };
    rows.set(key, row);
    addSpan(row.bars, span, context);
  }
  const busy = [...rows.values()].filter(({ bars }) => bars.some(isBusy));
  const blocks = [...new Set(busy.map(({ block }) => block))].slice(0, limits.blocks);
  const shown = busy
    .filter(({ block }) => blocks.includes(block))
    .sort(byBlockAndThread(busy))
    .slice(0, limits.rows);
  const ends = shown.flatMap(({ bars }) => bars.map(({ to }) => to));
  return {
    rows: shown,
    end: ends.reduce((latest, end) => Math.max(latest, end), 0),
    complete: complete && shown.length === busy.length,
  };
}

/** A row of nothing but indices and waits shows nothing. */
function isBusy({ activity }: Bar): boolean {
  return activity !== "computes" && activity !== "waits";
}

/** Blocks in the order in which they begin; in a block each thread, then what runs beside it. */
function byBlockAndThread(rows: readonly { block: string; track: string }[]) {
  const order = (names: readonly string[]) =>
    new Map([...new Set(names)].map((name, at) => [name, at]));
  const blocks = order(rows.map(({ block }) => block));
  const threads = order(rows.map(({ track }) => threadOf(track)));
  const place = (row: { block: string; track: string }): readonly [number, number] => [
    blocks.get(row.block) ?? 0,
    threads.get(threadOf(row.track)) ?? 0,
  ];
  return (
    left: { block: string; track: string },
    right: { block: string; track: string },
  ): number => {
    const [leftBlock, leftThread] = place(left);
    const [rightBlock, rightThread] = place(right);
    return (
      leftBlock - rightBlock || leftThread - rightThread || (left.track < right.track ? -1 : 1)
    );
  };
}

function threadOf(track: string): string {
  return track.replace(/, beside \d+$/, "");
}

/** Lengthens the last bar where the same goes on in the same iteration. */
function addSpan(bars: Stretch[], span: Span, context: CostContext): void {
  const activity = span.kind === "waits" ? "waits" : activityOf(span.op, context);
  const { iterations } = span.place;
  const last = bars.at(-1);
  const goesOn =
    span.kind !== "beside" &&
    last?.to === span.from &&
    last.activity === activity &&
    (activity === "computes" || last.iterations.join() === iterations.join());
  if (goesOn) last.to = span.to;
  else bars.push({ activity, from: span.from, to: span.to, iterations, hint: hintOf(span) });
}

function activityOf(op: AnyOp, context: CostContext): Activity {
  const accesses = accessesOf(op);
  if (accesses.some(({ done }) => done === "copy")) return "copies";
  const { products } = ruleOf(costRules, op)(op, context);
  if (Object.values(products).some((count) => count > 0)) return "multiplies";
  return accesses.some(({ value }) => value.type.kind === "ref") ? "loads or stores" : "computes";
}

function hintOf({ kind, op, place }: Span): string {
  const { position } = op.location;
  return [
    `${kind === "waits" ? "waits at " : ""}${op.kind}`,
    ...(place.iterations.length > 0 ? [`iteration ${place.iterations.join(".")}`] : []),
    // A drawing is passed on to others: where the file lies on this machine says nothing to them.
    ...(position === undefined
      ? []
      : [`${position.file.split(/[\\/]/).at(-1) ?? ""}:${position.line}`]),
  ].join(", ");
}
