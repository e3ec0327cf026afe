/**
 * The tiles of a placed kernel, in the order of the program, and the drawings that show them: one for
 * every layout and shape, for every conversion, and for every layout of shared memory.
 *
 *   softmax-1.svg             rows of 64 × 128 in (L2 L3 L4 R1 W0 W1 | R0 L0 L1)
 *   softmax-conversion-1.svg  from that to another
 *   softmax-shared-1.svg      the buffer that both products read
 */
import type { AnyOp, Kernel, Value } from "../ir/node.ts";
import { opName } from "../ir/op-names.ts";
import { regionList, walkOps } from "../ir/traverse.ts";
import type { RegisterLayout } from "../layout/algebra/register-layout.ts";
import { wholeView } from "../layout/algebra/shared-view.ts";
import { drawRegisterLayout, drawRelayout } from "../layout/drawing/register-drawing.ts";
import { drawSharedLayout } from "../layout/drawing/shared-drawing.ts";
import type { Placement } from "../layout/plan/place.ts";
import type { Position } from "../support/location.ts";

/** A value that has a register layout. */
export interface PlacedTile {
  readonly position: Position | undefined;
  /** The op that gives it, or that carries it. */
  readonly op: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly layout: RegisterLayout;
}

export interface PlacementDrawing {
  readonly file: string;
  readonly subject: string;
  readonly svg: () => string;
}

export function placedTiles({ kernel, layouts }: Placement): readonly PlacedTile[] {
  return definitions(kernel).flatMap(({ value, op, name }) => {
    const layout = layouts.get(value);
    const { type } = value;
    if (layout === undefined || (type.kind !== "tile" && type.kind !== "inflight")) return [];
    const { position } = op.location;
    return [{ position, op: name, dtype: type.dtype.name, shape: type.shape, layout }];
  });
}

interface Definition {
  readonly value: Value;
  readonly op: AnyOp;
  readonly name: string;
}

/** Results of ops and parameters of their regions. */
function definitions(kernel: Kernel): readonly Definition[] {
  const found: Definition[] = [];
  walkOps(kernel.body, (op) => {
    const name = opName(op);
    for (const value of op.results) found.push({ value, op, name });
    for (const { parameters } of regionList(op))
      for (const value of parameters) found.push({ value, op, name: `carried by ${name}` });
  });
  return found;
}

/** The drawings, whose files are named after the kernel. */
export function placementDrawings(name: string, placement: Placement): readonly PlacementDrawing[] {
  return [
    ...numbered(name, tileDrawings(placement)),
    ...numbered(`${name}-conversion`, conversionDrawings(placement)),
    ...numbered(`${name}-shared`, sharedDrawings(placement)),
  ];
}

type Drawn = Omit<PlacementDrawing, "file">;

/** Each subject once. */
function numbered(stem: string, drawings: readonly Drawn[]): readonly PlacementDrawing[] {
  const distinct = new Map(drawings.map((drawing) => [drawing.subject, drawing]));
  return [...distinct.values()].map((drawing, index) => ({
    ...drawing,
    file: `${stem}-${index + 1}.svg`,
  }));
}

function tileDrawings(placement: Placement): readonly Drawn[] {
  return placedTiles(placement).flatMap(({ layout, shape }) =>
    // One number in every lane is nothing to look at.
    layout.kind === "splat"
      ? []
      : [
          {
            subject: `${shape.join(" × ")} in ${layout.text}`,
            svg: () => drawRegisterLayout(layout, shape),
          },
        ],
  );
}

function conversionDrawings({ conversions }: Placement): readonly Drawn[] {
  return conversions.map(({ source, target, plan: { shape } }) => ({
    subject: `${shape.join(" × ")} from ${source.text} to ${target.text}`,
    svg: () => drawRelayout(source, target, shape),
  }));
}

function sharedDrawings({ shared }: Placement): readonly Drawn[] {
  return [...shared].flatMap(([{ type }, layout]) => {
    if (type.kind !== "ref") return [];
    const shape = type.shape.map(Number);
    const { bits, name } = type.dtype;
    return [
      {
        subject: `${shape.join(" × ")} ${name} in ${layout.text}`,
        svg: () => drawSharedLayout(wholeView(layout, shape, bits)),
      },
    ];
  });
}
