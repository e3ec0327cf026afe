/**
 * Drawings of shared memory: the tile as the program sees it, each 4-byte word with the bank it lies in.
 * Colours go with the eight groups of four banks, a 16-byte chunk each, so that a swizzle shows as
 * columns of changing colour and its absence as stripes. With a register layout, the access that suffers
 * most is outlined: black where a lane reads, red where its bank has more than one word to give.
 */
import {
  bankConflicts,
  bankOf,
  phasesOf,
  planAccesses,
  wavefrontsOf,
} from "../algebra/bank-conflicts.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { viewBits } from "../algebra/shared-view.ts";
import type { SharedView } from "../algebra/shared-view.ts";
import { cell, gridCell, stackPanels, svgDocument, textPanel } from "./svg.ts";
import type { Panel } from "./svg.ts";
import { cutWindow } from "./window.ts";

/** An access to mark: who reads or writes, and how many bytes a lane at a time. */
export interface SharedAccess {
  readonly registers: RegisterLayout;
  readonly vectorBytes: number;
}

/** The word of each cell of the grid; a cell holds the elements of a row that share a word. */
interface WordGrid {
  readonly rows: number;
  readonly columns: number;
  readonly words: readonly (readonly number[])[];
  readonly note: string;
}

export function sharedGrid(view: SharedView): WordGrid {
  const bits = viewBits(view);
  const pitch = view.shape.at(-1) ?? 1;
  const perWord = wordRun(bits, pitch, view.bits);
  const shown = cutWindow(view.shape, { rows: 16, columns: 32 * perWord });
  const columns = Math.min(32, Math.ceil(Math.min(pitch, 32 * perWord) / perWord));
  const words = Array.from({ length: shown.rows }, (_, row) =>
    Array.from({ length: columns }, (_, column) =>
      Math.floor((bits[row * pitch + column * perWord] ?? 0) / 32),
    ),
  );
  const complete = shown.rows * columns * perWord >= bits.length;
  const note = complete ? "" : `shown: ${shown.rows} rows, ${columns} words of each`;
  return { rows: shown.rows, columns, words, note };
}

/** How many neighbours along the last axis lie in one word throughout. */
function wordRun(bits: Int32Array, pitch: number, size: number): number {
  const most = Math.max(1, 32 / size);
  if (pitch % most !== 0) return 1;
  const together = bits.every(
    (bit, element) => bit >> 5 === (bits[element - (element % most)] ?? 0) >> 5,
  );
  return together ? most : 1;
}

/** What a view is, and what an access to it costs, a line each. */
export function sharedCaption(view: SharedView, access: SharedAccess | undefined): string[] {
  const lines = [
    view.layout.text,
    `${view.shape.join(" × ")} elements of ${view.bits} bits; each cell is a word and shows its bank`,
  ];
  if (access === undefined) return lines;
  const use = bankConflicts(access.registers, view, access.vectorBytes);
  lines.push(
    use === undefined
      ? `${access.registers.text} cannot access it ${access.vectorBytes} bytes at a time`
      : `${access.registers.text}, ${access.vectorBytes} bytes a lane: ${use.wavefronts} wavefronts, ${use.ideal} at best`,
  );
  return lines;
}

/** Words of the worst phase of an access, by word: whether its bank has others to give. */
export function worstPhase(view: SharedView, access: SharedAccess): ReadonlyMap<number, boolean> {
  let worst: readonly number[] = [];
  for (const { bytes } of planAccesses(access.registers, view, access.vectorBytes) ?? [])
    for (const words of phasesOf(bytes, access.vectorBytes))
      if (wavefrontsOf(words) > wavefrontsOf(worst)) worst = words;
  const distinct = [...new Set(worst)];
  return new Map(
    distinct.map((word) => [
      word,
      distinct.some((other) => other !== word && bankOf(other) === bankOf(word)),
    ]),
  );
}

/** An SVG page of the view's banks. */
export function drawSharedLayout(view: SharedView, access?: SharedAccess): string {
  const grid = sharedGrid(view);
  const caption = sharedCaption(view, access);
  const lines = grid.note === "" ? caption : [...caption, grid.note];
  const read = access === undefined ? new Map<number, boolean>() : worstPhase(view, access);
  const shapes = grid.words.flatMap((words, row) =>
    words.map((word, column) => wordCell(word, row, column, read.get(word))),
  );
  const panel: Panel = {
    width: grid.columns * cell.width,
    height: grid.rows * cell.height,
    shapes,
  };
  return svgDocument(stackPanels([textPanel(lines), panel]));
}

function wordCell(
  word: number,
  row: number,
  column: number,
  contended: boolean | undefined,
): string {
  const bank = bankOf(word);
  const marks = { true: "#c0392b", false: "#222222", undefined: undefined };
  return gridCell(column, row, {
    fill: `hsl(${45 * (bank >> 2)}, 70%, ${82 - 4 * (bank & 3)}%)`,
    label: `${bank}`,
    hint: `word ${word}, bytes ${4 * word} to ${4 * word + 3}, bank ${bank}`,
    mark: marks[`${contended}`],
  });
}
