/**
 * Drawings in plain text, for terminals and reports.
 *
 *   wgmmaRow (L2 L3 L4 R0 W0 W1)
 *   tile 64, 2 registers a lane, each element in 4 lanes
 *            0      1      2  …
 *     0  0.0:0  0.4:0  0.8:0  …          warp.lane:register
 *
 * and for shared memory the bank of each word, with `*` at words that an access fights over.
 */
import { product } from "../algebra/index-bits.ts";
import { holders } from "../algebra/element-maps.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { bankOf } from "../algebra/bank-conflicts.ts";
import type { SharedView } from "../algebra/shared-view.ts";
import { changedElements, layoutCaption, relayoutSummary } from "./register-drawing.ts";
import { sharedCaption, sharedGrid, worstPhase } from "./shared-drawing.ts";
import type { SharedAccess } from "./shared-drawing.ts";
import { cutWindow, layoutWindow, relayoutWindow, windowElements } from "./window.ts";
import type { Window } from "./window.ts";

/** Columns that fit a terminal of 120 characters. */
const mostColumns = 16;

/** The layout on a tile of this shape, an element a cell. */
export function drawLayoutText(layout: RegisterLayout, shape: readonly number[]): string {
  const lines = layoutLines(layout, shape, layoutWindow(layout, shape), new Set());
  return [...lines, "cells: warp.lane:register", ""].join("\n");
}

/** A tile before and after its layout changes. */
export function drawRelayoutText(
  before: RegisterLayout,
  after: RegisterLayout,
  shape: readonly number[],
): string {
  const window = relayoutWindow(before, after, shape);
  const changed = changedElements(before, after, shape);
  const grids = [before, after].flatMap((layout) => [
    ...layoutLines(layout, shape, window, changed),
    "",
  ]);
  const legend = changed.size === 0 ? "" : ", * changes threads";
  return [
    relayoutSummary(changed.size, product(shape)),
    "",
    ...grids,
    `cells: warp.lane:register${legend}`,
    "",
  ].join("\n");
}

function layoutLines(
  layout: RegisterLayout,
  shape: readonly number[],
  { rows, columns }: Window,
  changed: ReadonlySet<number>,
): readonly string[] {
  const window = cutWindow(shape, { rows, columns: Math.min(columns, mostColumns) });
  const cells = windowElements(window, shape).map((row) =>
    row.map((element) => {
      if (element === undefined) return "";
      const [first] = holders(layout, shape, element);
      if (first === undefined) return "";
      return `${first.warp}.${first.lane}:${first.register}${changed.has(element) ? "*" : ""}`;
    }),
  );
  const caption = layoutCaption(layout, shape);
  const lines = window.note === "" ? caption : [...caption, window.note];
  const columnLabels = Array.from({ length: window.columns }, (_, column) => `${column}`);
  return [...lines, ...table(cells, window.rowLabels, columnLabels)];
}

/** The banks of a view, and what an access to it fights over. */
export function drawSharedText(view: SharedView, access?: SharedAccess): string {
  const grid = sharedGrid(view);
  const touched = worstPhase(view, access);
  const marks = { true: "*", false: "+", undefined: "" };
  const cells = grid.words.map((words) =>
    words.map((word) =>
      word === undefined ? "" : `${bankOf(word)}${marks[`${touched.get(word)}`]}`,
    ),
  );
  const legend = touched.size === 0 ? [] : ["+ accessed at one moment, * in each other's way"];
  return [
    ...sharedCaption(view, access, grid),
    ...table(cells, grid.rowLabels, grid.columnLabels),
    ...legend,
    "",
  ].join("\n");
}

/** Cells under their column labels, rows behind theirs. */
function table(
  cells: readonly (readonly string[])[],
  rowLabels: readonly string[],
  columnLabels: readonly string[],
): readonly string[] {
  const width = Math.max(0, ...[columnLabels, ...cells].flat().map((text) => text.length));
  const side = Math.max(3, ...rowLabels.map((label) => label.length));
  const line = (first: string, texts: readonly string[]): string =>
    [first.padStart(side), ...texts.map((text) => text.padStart(width))].join("  ").trimEnd();
  return [
    line("", columnLabels),
    ...cells.map((texts, index) => line(rowLabels[index] ?? "", texts)),
  ];
}
