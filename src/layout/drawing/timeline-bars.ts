/**
 * Bars over time: a row for each of those who do something, with bars where they do it. Bars inside others lie below
 * them, and a bar says more where the pointer rests on it.
 *
 *   load      ███ 0 ███   ███ 1 ███
 *   compute      ──────   ████ product ████       thin: nothing is done
 *                           ██ load                depth 1
 */
import { escapeText } from "./svg.ts";
import type { Panel } from "./svg.ts";

export interface TimeBar {
  readonly from: number;
  readonly to: number;
  /** How many bars of the row it lies in. */
  readonly depth: number;
  readonly fill: string;
  readonly thin: boolean;
  /** Shown where there is room. */
  readonly label: string;
  readonly hint: string;
}

export interface BarRow {
  readonly name: string;
  readonly bars: readonly TimeBar[];
}

const [lineHeight, rowGap, letterWidth, timeWidth] = [18, 4, 7.3, 1100];

/** Rows whose bars end at `end` at the latest. */
export function barsPanel(rows: readonly BarRow[], end: number): Panel {
  const left = Math.round(Math.max(0, ...rows.map(({ name }) => name.length)) * letterWidth + 8);
  const scale = timeWidth / Math.max(1, end);
  const shapes: string[] = [];
  let top = 0;
  for (const { name, bars } of rows) {
    shapes.push(
      `<text x="${left - 6}" y="${top + 13}" text-anchor="end" font-size="11">${escapeText(name)}</text>`,
      ...bars.map((bar) => barShape(bar, left, top + bar.depth * lineHeight, scale)),
    );
    const deepest = bars.reduce((most, { depth }) => Math.max(most, depth), 0);
    top += (deepest + 1) * lineHeight + rowGap;
  }
  return { width: left + timeWidth, height: top, shapes };
}

function barShape(bar: TimeBar, left: number, top: number, scale: number): string {
  const { from, to, fill, thin, label, hint } = bar;
  const [x, width] = [left + from * scale, (to - from) * scale];
  const inset = thin ? 5 : 0;
  const words =
    label !== "" && label.length * letterWidth < width
      ? `<text x="${(x + width / 2).toFixed(1)}" y="${top + 13}" text-anchor="middle" font-size="10">${escapeText(label)}</text>`
      : "";
  return [
    `<g><title>${escapeText(hint)}</title>`,
    `<rect x="${x.toFixed(1)}" y="${top + inset}" width="${Math.max(0.5, width - 0.5).toFixed(1)}" height="${lineHeight - 2 * inset}" fill="${fill}"/>`,
    `${words}</g>`,
  ].join("");
}
