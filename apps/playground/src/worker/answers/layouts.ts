/** Where the tiles of a placed kernel lie: a list of them, and for one that is looked at, the place of every element. */
import { layoutName } from "../../../../../src/layout/algebra/named-layouts.ts";
import { elementTable, padding } from "../../../../../src/layout/algebra/element-maps.ts";
import {
  registersPerLane,
  replication,
} from "../../../../../src/layout/algebra/register-layout.ts";
import type { RegisterLayout } from "../../../../../src/layout/algebra/register-layout.ts";
import { viewBits, wholeView } from "../../../../../src/layout/algebra/shared-view.ts";
import type { PlacedKernel } from "../../../../../src/lower/stages.ts";
import { emitKernel } from "../../../../../src/ptx/emit/kernel.ts";
import { bankUses } from "../../../../../src/ptx/notes/bank-use.ts";
import { emittedAccesses } from "../../../../../src/ptx/notes/emitted-accesses.ts";
import { opName } from "../../../../../src/ir/op-names.ts";
import type { Value } from "../../../../../src/ir/node.ts";
import { placedTiles } from "../../../../../src/cli/placed-tiles.ts";
import type { ElementMap, LayoutReport, LayoutSubject, SharedSummary } from "../../protocol.ts";
import type { SourceLines } from "../source-lines.ts";

const ways = {
  none: "nothing to do",
  registers: "within each thread",
  shuffle: "by shuffles within each warp",
  shared: "through shared memory",
} as const;

export function layoutReport(placed: PlacedKernel, lines: SourceLines): LayoutReport {
  const { placement, kernel } = placed;
  const { module } = emitKernel(kernel);
  return {
    tiles: placedTiles(placement).map(({ op, position, dtype, shape, layout }) => ({
      op,
      line: lines.lineOf(position),
      dtype,
      shape,
      layout: layout.text,
      name: layoutName(layout),
      registers: registersPerLane(layout, shape),
    })),
    conversions: placement.conversions.map(({ op, source, target, plan, cost }) => ({
      op: opName(op),
      line: lines.lineOf(op.location.position),
      shape: plan.shape,
      before: source.text,
      after: target.text,
      way: ways[plan.kind],
      cost,
    })),
    shared: sharedTiles(placed).map(({ value, ...rest }) => ({
      ...rest,
      line: lines.lineOf(lineOfBuffer(placed, value)),
    })),
    banks: bankUses(placement, emittedAccesses(module)).map(({ op, wavefronts, ideal }) => ({
      op: opName(op),
      line: lines.lineOf(op.location.position),
      wavefronts,
      ideal,
    })),
  };
}

function lineOfBuffer({ placement }: PlacedKernel, value: Value) {
  return placement.memory.buffers.find((buffer) => buffer.value === value)?.op.location.position;
}

interface SharedTile extends Omit<SharedSummary, "line"> {
  readonly value: Value;
}

function sharedTiles({ placement }: PlacedKernel): readonly SharedTile[] {
  return [...placement.shared].flatMap(([value, layout], index) => {
    const { type } = value;
    if (type.kind !== "ref") return [];
    const buffer = placement.memory.buffers.find((each) => each.value === value);
    const name = buffer?.name ?? `member ${index + 1} of a union`;
    const shape = type.shape.map(Number);
    return [{ value, name, dtype: type.dtype.name, shape, layout: layout.text }];
  });
}

export function elementMap(placed: PlacedKernel, { kind, number }: LayoutSubject): ElementMap {
  const { placement } = placed;
  if (kind === "shared") {
    const [value, layout] = [...placement.shared][number] ?? [];
    if (value?.type.kind !== "ref" || layout === undefined) throw new Error("no such buffer");
    const shape = value.type.shape.map(Number);
    const { bits } = value.type.dtype;
    const offsets = Uint32Array.from(viewBits(wholeView(layout, shape, bits)));
    return { kind: "shared", ...matrixOf(shape), offsets, bits, title: layout.text };
  }
  if (kind === "tile") {
    const tile = placedTiles(placement)[number];
    if (tile === undefined) throw new Error("no such tile");
    return registerMap(tile.layout, tile.shape);
  }
  const conversion = placement.conversions[number];
  if (conversion === undefined) throw new Error("no such conversion");
  const layout = kind === "before" ? conversion.source : conversion.target;
  return registerMap(layout, conversion.plan.shape);
}

function matrixOf(shape: readonly number[]): { readonly rows: number; readonly columns: number } {
  const columns = shape.at(-1) ?? 1;
  const count = shape.reduce((product, extent) => product * extent, 1);
  return { rows: columns === 0 ? 0 : count / columns, columns };
}

function registerMap(layout: RegisterLayout, shape: readonly number[]): ElementMap {
  const count = shape.reduce((product, extent) => product * extent, 1);
  const lanes = new Uint8Array(count);
  const warps = new Uint8Array(count);
  const registers = new Uint16Array(count);
  const title = layoutName(layout) ?? layout.text;
  const copies = layout.kind === "splat" ? 128 : replication(layout);
  if (layout.kind !== "splat") {
    const known = new Uint8Array(count);
    const perLane = registersPerLane(layout, shape);
    elementTable(layout, shape).forEach((element, place) => {
      // Of several holders the first one is shown.
      if (element === padding || known[element] === 1) return;
      known[element] = 1;
      const thread = Math.floor(place / perLane);
      lanes[element] = thread % 32;
      warps[element] = Math.floor(thread / 32);
      registers[element] = place % perLane;
    });
  }
  return { kind: "registers", ...matrixOf(shape), lanes, warps, registers, copies, title };
}
