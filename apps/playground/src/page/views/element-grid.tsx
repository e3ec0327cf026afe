/**
 * A tile's elements to touch: a grid of cells coloured by where each lies. The pointer or the arrow keys choose an element,
 * and the place of that element is told in words.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { ElementMap } from "../../protocol.ts";
import { wheelColour } from "../colours.ts";

export type Colouring = "warp" | "lane" | "register" | "bank";

/** Cells of the grid that are drawn at once; larger tiles show their beginning. */
const mostRows = 128;
const mostColumns = 256;

export function elementText(map: ElementMap, element: number): string {
  const place = `[${Math.floor(element / map.columns)}, ${element % map.columns}]`;
  if (map.kind === "registers") {
    const copies = map.copies > 1 ? `, and in ${map.copies - 1} more lanes` : "";
    return `${place}: warp ${map.warps[element] ?? 0}, lane ${map.lanes[element] ?? 0}, register ${map.registers[element] ?? 0}${copies}`;
  }
  const bits = map.offsets[element] ?? 0;
  const first = Math.floor(bits / 8);
  const last = first + Math.max(1, map.bits / 8) - 1;
  return `${place}: bytes ${first} to ${last}, bank ${Math.floor(first / 4) % 32}`;
}

function cellColour(map: ElementMap, element: number, colouring: Colouring): string {
  if (map.kind === "shared")
    return wheelColour(Math.floor((map.offsets[element] ?? 0) / 32) % 32, 32);
  if (colouring === "lane") return wheelColour(map.lanes[element] ?? 0, 32);
  if (colouring === "register") return wheelColour((map.registers[element] ?? 0) % 16, 16);
  return wheelColour(map.warps[element] ?? 0, 4, 62 + ((map.lanes[element] ?? 0) % 4) * 5);
}

function cellLabel(map: ElementMap, element: number): string {
  if (map.kind === "registers") return `${map.lanes[element] ?? 0}:${map.registers[element] ?? 0}`;
  return String(Math.floor((map.offsets[element] ?? 0) / 8));
}

export function ElementGrid({
  map,
  colouring,
  label,
  chosen,
  choose,
}: {
  readonly map: ElementMap;
  readonly colouring: Colouring;
  readonly label: string;
  readonly chosen: number;
  readonly choose: (element: number) => void;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(600);
  const rows = Math.min(map.rows, mostRows);
  const columns = Math.min(map.columns, mostColumns);
  const cell = Math.max(5, Math.min(36, Math.floor(width / columns)));
  useEffect(() => {
    const parent = canvas.current?.parentElement;
    if (parent !== null && parent !== undefined) setWidth(Math.max(240, parent.clientWidth - 4));
  }, []);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (context !== null && context !== undefined)
      drawCells(context, map, { rows, columns, cell, colouring, chosen });
  }, [map, colouring, chosen, cell]);
  const at = (event: MouseEvent): number | undefined => {
    const row = Math.floor(event.offsetY / cell);
    const column = Math.floor(event.offsetX / cell);
    if (row < 0 || column < 0 || row >= rows || column >= columns) return undefined;
    return row * map.columns + column;
  };
  const move = (event: KeyboardEvent): void => {
    const [row, column] = [Math.floor(chosen / map.columns), chosen % map.columns];
    const moves: { readonly [key: string]: readonly [number, number] } = {
      ArrowDown: [1, 0],
      ArrowUp: [-1, 0],
      ArrowRight: [0, 1],
      ArrowLeft: [0, -1],
    };
    const by = moves[event.key];
    if (by === undefined) return;
    const clamp = (value: number, end: number): number => Math.max(0, Math.min(end - 1, value));
    choose(clamp(row + by[0], rows) * map.columns + clamp(column + by[1], columns));
    event.preventDefault();
  };
  return (
    <figure class="element-grid">
      <div class="grid-scroll">
        <canvas
          ref={canvas}
          width={columns * cell + 1}
          height={rows * cell + 1}
          tabIndex={0}
          role="application"
          aria-roledescription="grid of elements"
          aria-label={`${label}: arrow keys choose an element. ${elementText(map, chosen)}`}
          onMouseMove={(event) => {
            const element = at(event);
            if (element !== undefined) choose(element);
          }}
          onKeyDown={move}
        />
      </div>
      <figcaption>
        <code>{map.title}</code>
        {(map.rows > rows || map.columns > columns) &&
          ` — the first ${rows} × ${columns} of ${map.rows} × ${map.columns}`}
      </figcaption>
    </figure>
  );
}

interface Drawn {
  readonly rows: number;
  readonly columns: number;
  readonly cell: number;
  readonly colouring: Colouring;
  readonly chosen: number;
}

function drawCells(context: CanvasRenderingContext2D, map: ElementMap, drawn: Drawn): void {
  const { rows, columns, cell, colouring, chosen } = drawn;
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  const edge = cell > 7 ? 1 : 0;
  const labelled = cell >= 26;
  context.font = `${Math.min(11, Math.floor(cell / 2.8))}px ui-monospace, monospace`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let row = 0; row < rows; row += 1)
    for (let column = 0; column < columns; column += 1) {
      const element = row * map.columns + column;
      context.fillStyle = cellColour(map, element, colouring);
      context.fillRect(column * cell, row * cell, cell - edge, cell - edge);
      if (!labelled) continue;
      context.fillStyle = "#10131a";
      context.fillText(cellLabel(map, element), (column + 0.5) * cell, (row + 0.5) * cell);
    }
  const place = sameLane(map, chosen);
  context.lineWidth = 2;
  for (const element of place) {
    const [row, column] = [Math.floor(element / map.columns), element % map.columns];
    if (row >= rows || column >= columns) continue;
    context.strokeStyle = element === chosen ? "#000" : "#00000088";
    context.strokeRect(
      column * cell + 1,
      row * cell + 1,
      Math.max(2, cell - 2),
      Math.max(2, cell - 2),
    );
  }
}

/** The chosen element, and what else lies in its lane or starts in its bank. */
function sameLane(map: ElementMap, chosen: number): readonly number[] {
  if (map.kind === "shared") return [chosen];
  const [lane, warp] = [map.lanes[chosen], map.warps[chosen]];
  const others: number[] = [];
  for (let element = 0; element < map.lanes.length; element += 1)
    if (map.lanes[element] === lane && map.warps[element] === warp) others.push(element);
  return [...others.filter((element) => element !== chosen), chosen];
}
