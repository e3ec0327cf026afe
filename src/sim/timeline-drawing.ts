/**
 * The chart of a timeline for a terminal and as a drawing. In letters a bar begins with what it is and the iteration
 * that it belongs to, as far as it fits:
 *
 *   copy             c0 c1 c2 ········c3
 *   copy, beside 1     c0──── c3────
 *   first            ········p0 ·····
 *   first, beside 1            p0───
 */
import { barsPanel } from "../layout/drawing/timeline-bars.ts";
import type { TimeBar } from "../layout/drawing/timeline-bars.ts";
import { legendPanel, stackPanels, textPanel } from "../layout/drawing/svg.ts";
import type { Panel } from "../layout/drawing/svg.ts";
import type { Activity, Bar, TimelineChart } from "./timeline-chart.ts";

interface Look {
  readonly letter: string;
  /** Repeated behind the letter and the iteration. */
  readonly filling: string;
  readonly fill: string;
}

const looks: { readonly [A in Activity]: Look } = {
  copies: { letter: "c", filling: "─", fill: "#8ecae6" },
  multiplies: { letter: "p", filling: "─", fill: "#ffb703" },
  "loads or stores": { letter: "m", filling: "─", fill: "#b7d99b" },
  computes: { letter: "=", filling: "=", fill: "#d9d9d9" },
  waits: { letter: "·", filling: "·", fill: "#f4c9c9" },
};

const activities = Object.keys(looks) as readonly Activity[];

/** What letters mean. */
export const timelineKey = activities
  .map((activity) => `${looks[activity].letter} ${activity}`)
  .join("   ");

const isNumbered = (activity: Activity): boolean => activity !== "computes" && activity !== "waits";

/** A line for every row. */
export function timelineText(chart: TimelineChart, columns = 96): readonly string[] {
  const labels = rowLabels(chart);
  const widest = Math.max(0, ...labels.map(({ length }) => length));
  const place = (time: number): number => Math.floor((time * columns) / Math.max(1, chart.end));
  return chart.rows.map(({ bars }, index) => {
    const cells = Array.from({ length: columns }, () => " ");
    // What is drawn later covers what came before: work covers waiting where both fall in one column.
    for (const bar of bars.toSorted((left, right) => importance(left) - importance(right)))
      for (const [offset, character] of [...barText(bar, place(bar.from), place(bar.to))].entries())
        cells[place(bar.from) + offset] = character;
    return `${(labels[index] ?? "").padEnd(widest)}  ${cells.join("").slice(0, columns).trimEnd()}`;
  });
}

function importance({ activity }: Bar): number {
  return activities.length - activities.indexOf(activity);
}

function barText({ activity, iterations }: Bar, from: number, to: number): string {
  const { letter, filling } = looks[activity];
  const width = Math.max(1, to - from);
  const name = isNumbered(activity) ? `${letter}${iterations.at(-1) ?? ""}` : letter;
  return name.slice(0, width).padEnd(width, filling);
}

/** Threads by name, with their block where there are several. */
function rowLabels({ rows }: TimelineChart): readonly string[] {
  const several = new Set(rows.map(({ block }) => block)).size > 1;
  return rows.map(({ block, track }) => (several ? `${block}, ${track}` : track));
}

/** The same as shapes; a bar says its op, iteration and line where the pointer rests. */
export function timelinePanel(title: string, chart: TimelineChart): Panel {
  const { rows, end, complete } = chart;
  const labels = rowLabels(chart);
  const legend = activities.map((label) => ({ fill: looks[label].fill, label }));
  const bars = rows.map((row, index) => ({
    name: labels[index] ?? "",
    bars: row.bars.map(timeBar),
  }));
  return stackPanels([
    textPanel([title]),
    barsPanel(bars, end),
    legendPanel(legend, complete ? "" : "others are left out"),
  ]);
}

function timeBar({ activity, from, to, iterations, hint }: Bar): TimeBar {
  return {
    from,
    to,
    depth: 0,
    fill: looks[activity].fill,
    thin: activity === "waits",
    label: isNumbered(activity) ? String(iterations.at(-1) ?? "") : "",
    hint: `${hint}, cycles ${from} to ${to}`,
  };
}
