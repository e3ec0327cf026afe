/**
 * The few SVG elements that drawings need, as text. A drawing is made of *panels*: shapes and how far they
 * reach. Panels are stacked or stand side by side, and `svgDocument` makes a page of one.
 *
 *   caption         textPanel
 *      0   1   2
 *   0 ┌───┬───┬──   gridPanel, with the numbers of rows and columns
 *   1 ├───┼───┼──
 *   ■ warp 0        legendPanel
 */

const escapes: { readonly [character: string]: string } = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

export function escapeText(text: string): string {
  return text.replace(/[&<>"]/g, (character) => escapes[character] ?? character);
}

/** A part of a drawing and how far it reaches from its origin. */
export interface Panel {
  readonly width: number;
  readonly height: number;
  readonly shapes: readonly string[];
}

/** How a cell stands out. */
export interface Mark {
  /** Colour of a thick outline. */
  readonly outline: string;
  /** Colours in place of the cell's own. */
  readonly inverse?: boolean;
}

export interface CellStyle {
  readonly fill: string;
  readonly label: string;
  /** Shown when the pointer rests on the cell. */
  readonly hint: string;
  readonly mark: Mark | undefined;
}

/** Cells in rows and columns; undefined where there is none. */
export interface Grid {
  readonly cells: readonly (readonly (CellStyle | undefined)[])[];
  readonly rowLabels: readonly string[];
  readonly columnLabels: readonly string[];
}

const letterWidth = 7.3;
const lineHeight = 18;
const cellHeight = 22;
const leastCellWidth = 26;
const rulerColour = "#777777";

/** The grid with its row numbers at the left and column numbers above. */
export function gridPanel({ cells, rowLabels, columnLabels }: Grid): Panel {
  const labels = cells.flat().map((style) => style?.label ?? "");
  const width = Math.max(leastCellWidth, Math.round(longest(labels) * letterWidth + 10));
  const left = Math.round(longest(rowLabels) * letterWidth + 8);
  const rulers = [
    ...columnLabels.map((label, column) => textLine(left + (column + 0.5) * width, 12, label)),
    ...rowLabels.map((label, row) =>
      textLine(left - 6, lineHeight + row * cellHeight + 15, label, 'text-anchor="end"'),
    ),
  ];
  const boxes = cells.flatMap((row, index) =>
    row.flatMap((style, column) =>
      style === undefined ? [] : [cellShape(column * width, index * cellHeight, width, style)],
    ),
  );
  return {
    width: left + columnLabels.length * width,
    height: lineHeight + cells.length * cellHeight,
    shapes: [
      `<g text-anchor="middle" fill="${rulerColour}" font-size="11">`,
      ...rulers,
      "</g>",
      `<g text-anchor="middle" transform="translate(${left} ${lineHeight})">`,
      ...boxes,
      "</g>",
    ],
  };
}

function longest(texts: readonly string[]): number {
  return texts.reduce((length, text) => Math.max(length, text.length), 0);
}

function cellShape(x: number, y: number, width: number, style: CellStyle): string {
  const { fill, mark, label, hint } = style;
  const box = boxShape({ x, y, width, height: cellHeight }, fill, mark);
  const letters =
    mark === undefined ? "" : ` font-weight="bold"${mark.inverse ? ' fill="#ffffff"' : ""}`;
  const text = textLine(x + width / 2, y + 15, label, letters.trim());
  return `<g><title>${escapeText(hint)}</title>${box}${text}</g>`;
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

function boxShape({ x, y, width, height }: Box, fill: string, mark: Mark | undefined): string {
  const inset = mark === undefined ? 0 : 1.5;
  const place = `x="${x + inset}" y="${y + inset}" width="${width - 2 * inset}" height="${height - 2 * inset}"`;
  if (mark === undefined) return `<rect ${place} fill="${fill}" stroke="#ffffff"/>`;
  const inside = mark.inverse ? mark.outline : fill;
  return `<rect ${place} fill="${inside}" stroke="${mark.outline}" stroke-width="2"/>`;
}

function textLine(x: number, y: number, text: string, attributes = ""): string {
  const extra = attributes === "" ? "" : ` ${attributes}`;
  return `<text x="${x}" y="${y}"${extra}>${escapeText(text)}</text>`;
}

function moved(x: number, y: number, shapes: readonly string[]): readonly string[] {
  return [`<g transform="translate(${x} ${y})">`, ...shapes, "</g>"];
}

/** Lines of text, the first in bold. */
export function textPanel(lines: readonly string[]): Panel {
  const shapes = lines.map((line, index) =>
    textLine(0, 14 + index * lineHeight, line, index === 0 ? 'font-weight="bold"' : ""),
  );
  return { width: longest(lines) * letterWidth, height: lines.length * lineHeight, shapes };
}

/** What a colour or an outline means. */
export interface LegendEntry {
  readonly fill: string;
  readonly mark?: Mark;
  readonly label: string;
}

/** Entries in one line, then what cannot be said in colours. */
export function legendPanel(entries: readonly LegendEntry[], note: string): Panel {
  const swatch = 14;
  const shapes: string[] = [];
  let width = 0;
  for (const { fill, mark, label } of entries) {
    shapes.push(boxShape({ x: width, y: 2, width: swatch, height: swatch }, fill, mark));
    shapes.push(textLine(width + swatch + 6, 14, label));
    width += swatch + 6 + label.length * letterWidth + 16;
  }
  const line = note === "" ? [] : [textLine(width, 14, note, `fill="${rulerColour}"`)];
  return {
    width: width + note.length * letterWidth,
    height: lineHeight,
    shapes: [...shapes, ...line],
  };
}

export function stackPanels(panels: readonly Panel[], gap = 10): Panel {
  const shapes: string[] = [];
  let height = 0;
  for (const panel of panels) {
    shapes.push(...moved(0, height, panel.shapes));
    height += panel.height + gap;
  }
  return {
    width: Math.max(0, ...panels.map(({ width }) => width)),
    height: height - gap,
    shapes,
  };
}

export function placeSideBySide(panels: readonly Panel[], gap = 32): Panel {
  const shapes: string[] = [];
  let width = 0;
  for (const panel of panels) {
    shapes.push(...moved(width, 0, panel.shapes));
    width += panel.width + gap;
  }
  return { width: width - gap, height: Math.max(0, ...panels.map(({ height }) => height)), shapes };
}

/** A page with a white ground, so that it reads alike in light and dark surroundings. */
export function svgDocument({ width, height, shapes }: Panel): string {
  const margin = 12;
  const pageWidth = Math.ceil(width + 2 * margin);
  const pageHeight = Math.ceil(height + 2 * margin);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${pageWidth}" height="${pageHeight}" viewBox="0 0 ${pageWidth} ${pageHeight}" font-family="ui-monospace, monospace" font-size="12">`,
    `<rect width="100%" height="100%" fill="#ffffff"/>`,
    ...moved(margin, margin, shapes),
    "</svg>",
    "",
  ].join("\n");
}
