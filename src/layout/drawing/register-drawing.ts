/**
 * Drawings of register layouts: a grid of the tile's elements, each with the lane and register that hold
 * it, coloured by warp.
 *
 *   ┌──────┬──────┬──────┬──────┐
 *   │ 0:0  │ 0:1  │ 1:0  │ 1:1  │   lane:register; where several lanes hold the element, the first
 *   ├──────┼──────┼──────┼──────┤
 *   │ 4:0  │ 4:1  │ 5:0  │ 5:1  │
 *   └──────┴──────┴──────┴──────┘
 *
 * A relayout is two of them side by side; elements that change lanes are outlined.
 */
import { lanesPerWarp } from "../algebra/bits.ts";
import { holders, placeTable } from "../algebra/elements.ts";
import { layoutName } from "../algebra/named.ts";
import { registersPerLane, replication } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { cell, gridCell, placeSideBySide, stackPanels, svgDocument, textPanel } from "./svg.ts";
import type { Panel } from "./svg.ts";
import { layoutWindow } from "./window.ts";
import type { Window } from "./window.ts";

const warpColours = ["#9ecae1", "#a1d99b", "#fdd0a2", "#dadaeb"];
/** Elements that all warps hold. */
const sharedColour = "#e5e5e5";
const changedColour = "#c0392b";

/** An SVG page of the layout on a tile of this shape. */
export function drawRegisterLayout(layout: RegisterLayout, shape: readonly number[]): string {
  return svgDocument(layoutPanel(layout, shape, layoutWindow(layout, shape), new Set()));
}

/** An SVG page of a tile before and after its layout changes. */
export function drawRelayout(
  before: RegisterLayout,
  after: RegisterLayout,
  shape: readonly number[],
): string {
  const [first, second] = [layoutWindow(before, shape), layoutWindow(after, shape)];
  const window = first.rows * first.columns >= second.rows * second.columns ? first : second;
  const changed = changedElements(before, after, shape);
  const elements = placeTable(before, shape).length;
  const summary =
    changed.size === 0
      ? "every element stays in its lane"
      : `${changed.size} of ${elements} elements change lanes`;
  const panels = [before, after].map((layout) => layoutPanel(layout, shape, window, changed));
  return svgDocument(stackPanels([textPanel([summary]), placeSideBySide(panels)]));
}

/** Elements that some lane needs afterwards and did not hold before. */
function changedElements(
  before: RegisterLayout,
  after: RegisterLayout,
  shape: readonly number[],
): ReadonlySet<number> {
  const changed = new Set<number>();
  const elements = placeTable(after, shape).length;
  for (let element = 0; element < elements; element += 1) {
    const held = new Set(holders(before, shape, element).map(threadOf));
    if (!holders(after, shape, element).every((holder) => held.has(threadOf(holder))))
      changed.add(element);
  }
  return changed;
}

function threadOf({ warp, lane }: { readonly warp: number; readonly lane: number }): number {
  return warp * lanesPerWarp + lane;
}

/** What a layout is called and how much it takes, a line each. */
export function layoutCaption(layout: RegisterLayout, shape: readonly number[]): readonly string[] {
  const name = layoutName(layout);
  const registers = registersPerLane(layout, shape);
  const copies = replication(layout);
  return [
    name === undefined || name === layout.text ? layout.text : `${name} ${layout.text}`,
    `tile ${shape.join(" × ")}, ${registers} register${registers === 1 ? "" : "s"} a lane` +
      (copies > 1 ? `, each element in ${copies} lanes` : ""),
  ];
}

function layoutPanel(
  layout: RegisterLayout,
  shape: readonly number[],
  window: Window,
  marked: ReadonlySet<number>,
): Panel {
  const caption = layoutCaption(layout, shape);
  const lines = window.note === "" ? caption : [...caption, window.note];
  const cells: string[] = [];
  for (let row = 0; row < window.rows; row += 1)
    for (let column = 0; column < window.columns; column += 1)
      cells.push(elementCell(layout, shape, { row, column, window, marked }));
  const grid = {
    width: window.columns * cell.width,
    height: window.rows * cell.height,
    shapes: cells,
  };
  return stackPanels([textPanel(lines), grid, warpLegend()]);
}

interface CellPlace {
  readonly row: number;
  readonly column: number;
  readonly window: Window;
  readonly marked: ReadonlySet<number>;
}

function elementCell(
  layout: RegisterLayout,
  shape: readonly number[],
  { row, column, window, marked }: CellPlace,
): string {
  const element = row * window.pitch + column;
  const all = holders(layout, shape, element);
  const first = all[0] ?? { warp: 0, lane: 0, register: 0 };
  const warps = new Set(all.map(({ warp }) => warp));
  const others = all.length > 1 ? `, and ${all.length - 1} more` : "";
  return gridCell(column, row, {
    fill: warps.size > 1 ? sharedColour : (warpColours[first.warp] ?? sharedColour),
    label: `${first.lane}:${first.register}`,
    hint: `(${row}, ${column}): warp ${first.warp} lane ${first.lane} register ${first.register}${others}`,
    mark: marked.has(element) ? changedColour : undefined,
  });
}

function warpLegend(): Panel {
  const swatches = [...warpColours, sharedColour].map((fill, index) =>
    gridCell(index, 0, { fill, label: index < warpColours.length ? `warp ${index}` : "shared" }),
  );
  return { width: swatches.length * cell.width, height: cell.height, shapes: swatches };
}
