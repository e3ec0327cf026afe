/**
 * Drawings of register layouts: a grid of the tile's elements, each with the lane and register that hold
 * it, coloured by warp.
 *
 *          0      1      2      3
 *      ┌──────┬──────┬──────┬──────┐
 *    0 │ 0:0  │ 0:1  │ 1:0  │ 1:1  │   lane:register; where several lanes hold the element, the first
 *      ├──────┼──────┼──────┼──────┤
 *    1 │ 4:0  │ 4:1  │ 5:0  │ 5:1  │
 *      └──────┴──────┴──────┴──────┘
 *
 * Tall grids are folded into bands of rows side by side. A relayout is two grids; elements that change
 * lanes are outlined.
 */
import { coordinatesOf } from "../../formats/shape.ts";
import { lanesPerWarp, product } from "../algebra/index-bits.ts";
import { elementTable, holders, padding } from "../algebra/element-maps.ts";
import type { Holder } from "../algebra/element-maps.ts";
import { layoutName } from "../algebra/named-layouts.ts";
import { registersPerLane, replication, shownWarps } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import {
  gridPanel,
  legendPanel,
  placeSideBySide,
  stackPanels,
  svgDocument,
  textPanel,
} from "./svg.ts";
import type { CellStyle, LegendEntry, Mark, Panel } from "./svg.ts";
import { layoutWindow, relayoutWindow, windowElements } from "./window.ts";
import type { Window } from "./window.ts";

const warpColours = ["#9ecae1", "#a1d99b", "#fdd0a2", "#d4b9e6"];
/** Elements that several warps hold. */
const severalColour = "#e5e5e5";
const changedMark: Mark = { outline: "#c0392b" };

const bandRows = 32;
/** Columns of all bands together. */
const bandColumns = 32;

/** An SVG page of the layout on a tile of this shape. */
export function drawRegisterLayout(layout: RegisterLayout, shape: readonly number[]): string {
  const window = layoutWindow(layout, shape);
  const bands = Math.ceil(window.rows / bandRows);
  const rows = bands * window.columns <= bandColumns ? bandRows : window.rows;
  const presentation = { window, rows, changed: new Set<number>() };
  const panel = layoutPanel(layout, shape, presentation);
  return svgDocument(stackPanels([panel, legendOf([layout], shape, presentation)]));
}

/** An SVG page of a tile before and after its layout changes. */
export function drawRelayout(
  before: RegisterLayout,
  after: RegisterLayout,
  shape: readonly number[],
): string {
  const window = relayoutWindow(before, after, shape);
  const changed = changedElements(before, after, shape);
  const presentation = { window, rows: window.rows, changed };
  const layouts = [before, after];
  const panels = layouts.map((layout) => layoutPanel(layout, shape, presentation));
  const summary = textPanel([relayoutSummary(changed.size, product(shape))]);
  const legend = legendOf(layouts, shape, presentation);
  return svgDocument(stackPanels([summary, placeSideBySide(panels), legend]));
}

/** How many elements move, in words. */
export function relayoutSummary(changed: number, elements: number): string {
  return changed === 0
    ? "every element stays in its thread"
    : `${changed} of ${elements} elements change threads`;
}

/** Elements that some lane needs afterwards and did not hold before. */
export function changedElements(
  before: RegisterLayout,
  after: RegisterLayout,
  shape: readonly number[],
): ReadonlySet<number> {
  const elements = product(shape);
  const warps = Math.max(shownWarps(before), shownWarps(after));
  const held = heldElements(before, shape, warps);
  const needed = heldElements(after, shape, warps);
  const changed = new Set<number>();
  needed.forEach((isNeeded, place) => {
    if (isNeeded === 1 && held[place] === 0) changed.add(place % elements);
  });
  return changed;
}

/** Whether a thread holds an element, at thread · elements + element. */
function heldElements(layout: RegisterLayout, shape: readonly number[], warps: number): Uint8Array {
  const elements = product(shape);
  const held = new Uint8Array(warps * lanesPerWarp * elements);
  if (layout.kind === "splat") return held.fill(1);
  const registers = registersPerLane(layout, shape);
  elementTable(layout, shape, warps).forEach((element, place) => {
    if (element !== padding) held[Math.floor(place / registers) * elements + element] = 1;
  });
  return held;
}

/** The layout's name, if it has one, and its text. */
export function layoutTitle(layout: RegisterLayout): string {
  const name = layoutName(layout);
  return name === undefined || name === layout.text ? layout.text : `${name} ${layout.text}`;
}

/** What a layout is called and how much it takes, a line each. */
export function layoutCaption(layout: RegisterLayout, shape: readonly number[]): readonly string[] {
  const registers = registersPerLane(layout, shape);
  const copies = replication(layout);
  return [
    layoutTitle(layout),
    `tile ${shape.join(" × ")}, ${registers} register${registers === 1 ? "" : "s"} a thread` +
      (copies > 1 ? `, each element in ${copies} threads` : ""),
  ];
}

/** What of a tile is drawn, and how. */
interface Presentation {
  readonly window: Window;
  /** Rows to a band. */
  readonly rows: number;
  /** Elements to outline. */
  readonly changed: ReadonlySet<number>;
}

function layoutPanel(
  layout: RegisterLayout,
  shape: readonly number[],
  { window, rows, changed }: Presentation,
): Panel {
  const caption = layoutCaption(layout, shape);
  const lines = window.note === "" ? caption : [...caption, window.note];
  const cells = windowElements(window, shape).map((row) =>
    row.map((element) =>
      element === undefined
        ? undefined
        : elementCell(layout, shape, element, changed.has(element) ? changedMark : undefined),
    ),
  );
  const columnLabels = Array.from({ length: window.columns }, (_, column) => `${column}`);
  const bands = Array.from({ length: Math.ceil(window.rows / rows) }, (_, band) => {
    const [from, to] = [band * rows, (band + 1) * rows];
    const rowLabels = window.rowLabels.slice(from, to);
    return gridPanel({ cells: cells.slice(from, to), rowLabels, columnLabels });
  });
  return stackPanels([textPanel(lines), placeSideBySide(bands)]);
}

/** The warp of all holders; undefined where there are several. */
function onlyWarp(all: readonly Holder[]): number | undefined {
  const warp = all[0]?.warp;
  return all.every((holder) => holder.warp === warp) ? warp : undefined;
}

function elementCell(
  layout: RegisterLayout,
  shape: readonly number[],
  element: number,
  mark: Mark | undefined,
): CellStyle {
  const all = holders(layout, shape, element);
  const first = all[0] ?? { warp: 0, lane: 0, register: 0 };
  const warp = onlyWarp(all);
  const others = all.length > 1 ? `, and ${all.length - 1} more` : "";
  return {
    fill: (warp === undefined ? undefined : warpColours[warp]) ?? severalColour,
    label: `${first.lane}:${first.register}`,
    hint: `(${coordinatesOf(element, shape).join(", ")}): warp ${first.warp} lane ${first.lane} register ${first.register}${others}`,
    mark,
  };
}

function legendOf(
  layouts: readonly RegisterLayout[],
  shape: readonly number[],
  { window, changed }: Presentation,
): Panel {
  const elements = windowElements(window, shape).flat();
  const warps = new Set(
    layouts.flatMap((layout) =>
      elements.map((element) => onlyWarp(holders(layout, shape, element ?? 0))),
    ),
  );
  const entries: LegendEntry[] = warpColours.flatMap((fill, warp) =>
    warps.has(warp) ? [{ fill, label: `warp ${warp}` }] : [],
  );
  if (warps.has(undefined)) entries.push({ fill: severalColour, label: "several warps" });
  if (changed.size > 0)
    entries.push({ fill: "#ffffff", mark: changedMark, label: "changes threads" });
  return legendPanel(entries, "lane:register");
}
