/**
 * The few SVG elements that drawings need, as text. A drawing is a list of *shapes* on a grid of
 * pixels; `svgDocument` makes a page of them that stands alone.
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

export const cell = Object.freeze({ width: 44, height: 22 });

export interface CellStyle {
  readonly fill: string;
  readonly label: string;
  /** Shown when the pointer rests on the cell. */
  readonly hint?: string | undefined;
  /** Colour of a thick outline. */
  readonly mark?: string | undefined;
}

/** A labelled box at a column and row of the grid. */
export function gridCell(column: number, row: number, style: CellStyle): string {
  const x = column * cell.width;
  const y = row * cell.height;
  const outline =
    style.mark === undefined ? 'stroke="#ffffff"' : `stroke="${style.mark}" stroke-width="2.5"`;
  const hint = style.hint === undefined ? "" : `<title>${escapeText(style.hint)}</title>`;
  const inset = style.mark === undefined ? 0 : 1.5;
  const box = `x="${x + inset}" y="${y + inset}" width="${cell.width - 2 * inset}" height="${cell.height - 2 * inset}"`;
  return [
    `<g>${hint}<rect ${box} fill="${style.fill}" ${outline}/>`,
    `<text x="${x + cell.width / 2}" y="${y + 15}" text-anchor="middle">${escapeText(style.label)}</text></g>`,
  ].join("");
}

export function textLine(x: number, y: number, text: string, attributes = ""): string {
  const extra = attributes === "" ? "" : ` ${attributes}`;
  return `<text x="${x}" y="${y}"${extra}>${escapeText(text)}</text>`;
}

export function moved(x: number, y: number, shapes: readonly string[]): readonly string[] {
  return [`<g transform="translate(${x} ${y})">`, ...shapes, "</g>"];
}

const lineHeight = 18;

/** Lines of text, the first in bold. */
export function textPanel(lines: readonly string[]): Panel {
  const shapes = lines.map((line, index) =>
    textLine(0, 14 + index * lineHeight, line, index === 0 ? 'font-weight="bold"' : ""),
  );
  const longest = Math.max(0, ...lines.map((line) => line.length));
  return { width: longest * 7.3, height: lines.length * lineHeight + 6, shapes };
}

export function stackPanels(panels: readonly Panel[], gap = 8): Panel {
  const shapes: string[] = [];
  let height = 0;
  for (const panel of panels) {
    shapes.push(...moved(0, height, panel.shapes));
    height += panel.height + gap;
  }
  return { width: Math.max(0, ...panels.map(({ width }) => width)), height, shapes };
}

export function placeSideBySide(panels: readonly Panel[], gap = 40): Panel {
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
  const size = `${Math.ceil(width + 2 * margin)} ${Math.ceil(height + 2 * margin)}`;
  const [pageWidth, pageHeight] = size.split(" ");
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${pageWidth}" height="${pageHeight}" viewBox="0 0 ${size}" font-family="ui-monospace, monospace" font-size="12">`,
    `<rect width="100%" height="100%" fill="#ffffff"/>`,
    ...moved(margin, margin, shapes),
    "</svg>",
    "",
  ].join("\n");
}
