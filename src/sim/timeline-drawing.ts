/**
 * The chart of a timeline for a terminal and as a drawing. In letters a bar begins with what it is and the iteration
 * that it belongs to, as far as there is room:
 *
 *   copy             c0 c1 c2 ········c3
 *   copy, beside 1     c0──── c3────
 *   first            ········p0 ·····
 *   first, beside 1            p0───
 */
import { escapeText, legendPanel, stackPanels, textPanel } from "../layout/drawing/svg.ts";
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

const [chartWidth, rowHeight, letterWidth] = [1100, 22, 7.3];

/** The same as shapes; a bar says its op, iteration and line where the pointer rests. */
export function timelinePanel(title: string, chart: TimelineChart): Panel {
  const { rows, end, complete } = chart;
  const labels = rowLabels(chart);
  const left = Math.round(Math.max(0, ...labels.map(({ length }) => length)) * letterWidth + 8);
  const scale = chartWidth / Math.max(1, end);
  const shapes = rows.flatMap(({ bars }, row) => [
    `<text x="${left - 6}" y="${row * rowHeight + 15}" text-anchor="end" font-size="11">${escapeText(labels[row] ?? "")}</text>`,
    ...bars.map((bar) => barShape(bar, left, row * rowHeight, scale)),
  ]);
  const legend = activities.map((label) => ({ fill: looks[label].fill, label }));
  return stackPanels([
    textPanel([title]),
    { width: left + chartWidth, height: rows.length * rowHeight, shapes },
    legendPanel(legend, complete ? "" : "others are left out"),
  ]);
}

function barShape(bar: Bar, left: number, top: number, scale: number): string {
  const { activity, from, to, iterations, hint } = bar;
  const [x, width] = [left + from * scale, (to - from) * scale];
  const inset = activity === "waits" ? 6 : 2;
  const number = isNumbered(activity) ? String(iterations.at(-1) ?? "") : "";
  const label =
    number !== "" && number.length * letterWidth < width
      ? `<text x="${(x + width / 2).toFixed(1)}" y="${top + 15}" text-anchor="middle" font-size="10">${number}</text>`
      : "";
  return [
    `<g><title>${escapeText(`${hint}, cycles ${from} to ${to}`)}</title>`,
    `<rect x="${x.toFixed(1)}" y="${top + inset}" width="${Math.max(0.5, width - 0.5).toFixed(1)}" height="${rowHeight - 2 * inset}" fill="${looks[activity].fill}"/>`,
    `${label}</g>`,
  ].join("");
}
