/**
 * Drawings of shared memory: the tile as the program sees it, each 4-byte word with the bank it lies in.
 * Colours go with the eight groups of four banks, a 16-byte chunk each, so that a swizzle shows as
 * columns of changing colour and its absence as stripes. With a register layout, the lanes' accesses at
 * one moment are marked, of those moments that take longest the first: outlined where a bank has one word
 * to give, filled red where it has several and threads wait.
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
import { gridPanel, legendPanel, stackPanels, svgDocument, textPanel } from "./svg.ts";
import type { CellStyle, LegendEntry, Mark } from "./svg.ts";
import { cutWindow } from "./window.ts";

/** An access to mark: who reads or writes, and how many bytes a lane at a time. */
export interface SharedAccess {
  /** How the tile lies in registers. */
  readonly registers: RegisterLayout;
  /** Bytes that a thread accesses at once. */
  readonly vectorBytes: number;
}

/** The word of each cell of the grid. */
export interface WordGrid {
  /** Neighbours of a row that a cell stands for: those that share a word throughout. */
  readonly perCell: number;
  readonly words: readonly (readonly (number | undefined)[])[];
  readonly rowLabels: readonly string[];
  readonly columnLabels: readonly string[];
  readonly note: string;
}

const shownRows = 16;
const shownWords = 32;

export function sharedGrid(view: SharedView): WordGrid {
  const bits = viewBits(view);
  const perCell = wordRun(bits, view.shape.at(-1) ?? 1, view.bits);
  const window = cutWindow(view.shape, { rows: shownRows, columns: shownWords * perCell });
  const columns = Math.ceil(window.columns / perCell);
  const words = Array.from({ length: window.rows }, (_, row) =>
    Array.from({ length: columns }, (_, column) => {
      const bit = bits[row * window.pitch + column * perCell];
      return bit === undefined ? undefined : Math.floor(bit / 32);
    }),
  );
  const columnLabels = Array.from({ length: columns }, (_, column) => `${column * perCell}`);
  return { perCell, words, rowLabels: window.rowLabels, columnLabels, note: window.note };
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
export function sharedCaption(
  view: SharedView,
  access: SharedAccess | undefined,
  { perCell, note }: WordGrid,
): readonly string[] {
  const cell = perCell === 1 ? "an element" : `${perCell} elements, a word,`;
  const lines = [
    view.layout.text,
    `${view.shape.join(" × ")} elements of ${view.bits} bits; each cell is ${cell} and shows its ${view.bits > 32 ? "first bank" : "bank"}`,
  ];
  if (note !== "") lines.push(note);
  if (access === undefined) return lines;
  const { registers, vectorBytes } = access;
  const use = bankConflicts(registers, view, vectorBytes);
  lines.push(
    use === undefined
      ? `${registers.text} cannot access it ${vectorBytes} bytes at a time`
      : `${registers.text}, ${vectorBytes} bytes a thread: ${use.wavefronts} wavefronts, ${use.ideal} at best`,
  );
  return lines;
}

/** Words of the worst phase of an access, by word: whether its bank has others to give. */
export function worstPhase(
  view: SharedView,
  access: SharedAccess | undefined,
): ReadonlyMap<number, boolean> {
  if (access === undefined) return new Map();
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

const togetherMark: Mark = { outline: "#222222" };
const conflictMark: Mark = { outline: "#c0392b", inverse: true };

/** An SVG page of the view's banks. */
export function drawSharedLayout(view: SharedView, access?: SharedAccess): string {
  const grid = sharedGrid(view);
  const touched = worstPhase(view, access);
  const cells = grid.words.map((words) =>
    words.map((word) => (word === undefined ? undefined : wordCell(word, touched.get(word)))),
  );
  const { rowLabels, columnLabels } = grid;
  const panels = [
    textPanel(sharedCaption(view, access, grid)),
    gridPanel({ cells, rowLabels, columnLabels }),
  ];
  if (touched.size > 0) panels.push(legendPanel(legendEntries(touched), ""));
  return svgDocument(stackPanels(panels));
}

function wordCell(word: number, contended: boolean | undefined): CellStyle {
  const bank = bankOf(word);
  const marks = { true: conflictMark, false: togetherMark, undefined: undefined };
  return {
    fill: `hsl(${45 * (bank >> 2)}, 60%, ${86 - 3 * (bank & 3)}%)`,
    label: `${bank}`,
    hint: `word ${word}, bytes ${4 * word} to ${4 * word + 3}, bank ${bank}`,
    mark: marks[`${contended}`],
  };
}

function legendEntries(touched: ReadonlyMap<number, boolean>): readonly LegendEntry[] {
  const contended = new Set(touched.values());
  const entries: LegendEntry[] = [];
  if (contended.has(false))
    entries.push({ fill: "#ffffff", mark: togetherMark, label: "accessed at one moment" });
  if (contended.has(true))
    entries.push({
      fill: "#ffffff",
      mark: conflictMark,
      label: "at one moment from one bank: threads wait",
    });
  return entries;
}
