/**
 * Drawings in plain text, for terminals and reports.
 *
 *   wgmmaRow (L2 L3 L4 R0 W0 W1)
 *   tile 64, 2 registers a lane, each element in 4 lanes
 *          0     1     2  …
 *     0  0.0:0 0.4:0 0.8:0 …          warp.lane:register
 *
 * and for shared memory the bank of each word, with `*` at words that an access fights over.
 */
import { holders } from "../algebra/elements.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { bankOf } from "../algebra/bank-conflicts.ts";
import type { SharedView } from "../algebra/shared-view.ts";
import { layoutCaption } from "./register-drawing.ts";
import { sharedCaption, sharedGrid, worstPhase } from "./shared-drawing.ts";
import type { SharedAccess } from "./shared-drawing.ts";
import { cutWindow, layoutWindow } from "./window.ts";

/** Columns that fit a terminal of 120 characters. */
const mostColumns = 16;

export function drawLayoutText(layout: RegisterLayout, shape: readonly number[]): string {
  const full = layoutWindow(layout, shape);
  const columns = Math.min(full.columns, mostColumns);
  const window = cutWindow(shape, { rows: full.rows, columns });
  const rows = Array.from({ length: window.rows }, (_, row) =>
    Array.from({ length: window.columns }, (_, column) => {
      const [first] = holders(layout, shape, row * window.pitch + column);
      return first === undefined ? "" : `${first.warp}.${first.lane}:${first.register}`;
    }),
  );
  const caption = layoutCaption(layout, shape);
  const lines = window.note === "" ? caption : [...caption, window.note];
  return [...lines, ...table(rows), "cells: warp.lane:register", ""].join("\n");
}

export function drawSharedText(view: SharedView, access?: SharedAccess): string {
  const grid = sharedGrid(view);
  const read = access === undefined ? new Map<number, boolean>() : worstPhase(view, access);
  const marks = { true: "*", false: "+", undefined: "" };
  const rows = grid.words.map((words) =>
    words.map((word) => `${bankOf(word)}${marks[`${read.get(word)}`]}`),
  );
  const caption = sharedCaption(view, access);
  const lines = grid.note === "" ? caption : [...caption, grid.note];
  const legend = access === undefined ? [] : ["+ read together, * in each other's way"];
  return [...lines, ...table(rows), ...legend, ""].join("\n");
}

/** Cells under their column numbers, rows behind theirs. */
function table(rows: readonly (readonly string[])[]): readonly string[] {
  const count = Math.max(0, ...rows.map((row) => row.length));
  const headings = Array.from({ length: count }, (_, column) => `${column}`);
  const width = Math.max(...[headings, ...rows].flat().map((text) => text.length));
  const side = Math.max(3, `${rows.length - 1}`.length);
  const line = (first: string, cells: readonly string[]): string =>
    [first.padStart(side), ...cells.map((text) => text.padStart(width))].join("  ").trimEnd();
  return [line("", headings), ...rows.map((row, index) => line(`${index}`, row))];
}
