/**
 * Where a plan's time goes, as text: the dearest kinds of launches, each with its bar, which is full up to what it needs.
 *
 *   runs  roofline  estimate  bound by
 *     12      14.5      50.1  instructions  ████▒▒▒▒▒▒▒▒▒▒  multiply  step.mlir:117  jit(f)/gelu/mul
 *                                           because lanes …
 */
import { noteText } from "../../ptx/notes/note.ts";
import { formatPosition } from "../../support/location.ts";
import { costNotes } from "./cost-notes.ts";
import type { StepCost } from "./costs.ts";
import type { Plan } from "./plan.ts";
import { launchReasons } from "./reasons.ts";

/** How long launches took, in the order of a plan: what `profile()` gives. */
export type MeasuredTimes = readonly { readonly milliseconds: number }[];

/** Launches that differ in nothing but their place. */
interface Kind {
  readonly cost: StepCost;
  readonly reason: string;
  runs: number;
  places: number;
  measured: number;
}

const barWidth = 24;
const listed = 20;

function kindsOf(
  plan: Plan,
  costs: readonly StepCost[],
  times: MeasuredTimes | undefined,
): readonly Kind[] {
  const reasons = launchReasons(plan);
  const kinds = new Map<string, Kind>();
  for (const [i, cost] of costs.entries()) {
    const reason = reasons[i] ?? "";
    const { kernel, roofline, estimate, bound, blocks, products } = cost;
    const key = [kernel, roofline, estimate, bound, blocks.join(), products, reason].join("|");
    const kind = kinds.get(key) ?? { cost, reason, runs: 0, places: 0, measured: 0 };
    kinds.set(key, kind);
    kind.runs += cost.runs;
    kind.places += 1;
    kind.measured += 1000 * (times?.[i]?.milliseconds ?? 0);
  }
  return [...kinds.values()].sort(
    (left, right) => right.runs * right.cost.estimate - left.runs * left.cost.estimate,
  );
}

/** A number of microseconds in few characters. */
export function timeText(microseconds: number): string {
  if (microseconds < 1000) return microseconds.toFixed(1);
  return Math.round(microseconds).toLocaleString("en-US");
}

function total(costs: readonly StepCost[], of: "roofline" | "estimate"): number {
  return costs.reduce((sum, cost) => sum + cost.runs * cost[of], 0);
}

/** The part of the dearest that a kind takes, full up to what it needs. */
function bar({ runs, cost }: Kind, most: number): string {
  const full = Math.round((barWidth * runs * Math.min(cost.roofline, cost.estimate)) / most);
  const all = Math.max(full, Math.round((barWidth * runs * cost.estimate) / most));
  return `${"█".repeat(full)}${"▒".repeat(all - full)}`.padEnd(barWidth);
}

/** Where the time of a plan goes, beside what was measured where that is given, and what is slow in it. */
export function explainPlan(plan: Plan, costs: readonly StepCost[], times?: MeasuredTimes): string {
  const kinds = kindsOf(plan, costs, times);
  const [dearest] = kinds;
  const most = dearest === undefined ? 1 : dearest.runs * dearest.cost.estimate;
  const measured = times?.reduce(
    (sum, { milliseconds }, i) => sum + 1000 * milliseconds * (costs[i]?.runs ?? 1),
    0,
  );
  const column = (text: string): string => text.padStart(10);
  const heading = ["  runs", column("roofline"), column("estimate")];
  if (times !== undefined) heading.push(column("measured"));
  const lines = kinds.slice(0, listed).flatMap((kind) => {
    const { cost, runs, places, reason } = kind;
    const row = [String(runs).padStart(6), column(timeText(cost.roofline))];
    row.push(column(timeText(cost.estimate)));
    if (times !== undefined) row.push(column(timeText(kind.measured / places)));
    const { position } = cost.location;
    const place = position === undefined ? [] : [formatPosition(position)];
    const what = [cost.kernel, cost.products, ...place, cost.name].filter((text) => text !== "");
    const first = `${row.join("")}  ${cost.bound.padEnd(12)}  ${bar(kind, most)}  ${what.join("  ")}`;
    return reason === "" ? [first] : [first.trimEnd(), `${" ".repeat(8)}${reason}`];
  });
  const rest = kinds.slice(listed).reduce((sum, { runs, cost }) => sum + runs * cost.estimate, 0);
  const left = kinds.length - listed;
  const notes = costNotes(costs);
  return [
    `${costs.length} launches: at least ${timeText(total(costs, "roofline"))} µs, estimated ` +
      `${timeText(total(costs, "estimate"))} µs${
        measured === undefined ? "" : `, measured ${timeText(measured)} µs`
      }; those of loops whose turns are not known count once`,
    "",
    `${heading.join("")}  bound by      in µs, each run`,
    ...lines,
    ...(left > 0 ? [`${left} more kinds of launches, ${timeText(rest)} µs in all`] : []),
    ...(notes.length === 0 ? [] : ["", ...notes.map(noteText)]),
  ].join("\n");
}
