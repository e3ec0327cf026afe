/** `tilewright layout FILE`: where the tiles of a file's kernels lie, and what moving them costs. */
import { join, resolve } from "node:path";
import { layoutName } from "../../layout/algebra/named-layouts.ts";
import { layoutTitle } from "../../layout/drawing/register-drawing.ts";
import type { AllocatedPlacement } from "../../layout/plan/place.ts";
import { placementReport } from "../../layout/plan/report.ts";
import { place } from "../../lower/stages.ts";
import { formatPosition } from "../../support/location.ts";
import type { Position } from "../../support/location.ts";
import { makeFolder, writeFile } from "../files.ts";
import type { FileRequest } from "../layout-request.ts";
import { formatTable } from "../output.ts";
import type { Output } from "../output.ts";
import { placedTiles, placementDrawings } from "../placed-tiles.ts";
import { runUserCode } from "../program-output.ts";
import { loadUserModule, selectKernels } from "../user-module.ts";

interface PlacedKernel {
  readonly name: string;
  readonly placement: AllocatedPlacement;
}

/** Places every selected kernel, after the passes; `folder` takes the drawings. */
export async function placeCommand(
  { file, kernel, target }: FileRequest,
  folder: string | undefined,
  output: Output,
): Promise<number> {
  const module = await runUserCode(output, () => loadUserModule(file));
  const placed = selectKernels(module, kernel).map(({ name, definition }) => ({
    name,
    placement: place(definition.kernel, target).placement,
  }));
  for (const each of placed) printPlacement(each, file, output);
  const drawings = folder === undefined ? [] : writeDrawings(placed, folder, output);
  const kernels = placed.map(placementDocument);
  output.document({ file, target: target.name, kernels, drawings });
  return 0;
}

function printPlacement({ placement }: PlacedKernel, file: string, output: Output): void {
  const [heading, ...report] = placementReport(placement).trimEnd().split("\n");
  const rows = placedTiles(placement).map(({ position, op, dtype, shape, layout }) => [
    `  ${lineOf(position, file)}`,
    op,
    `${dtype}[${shape.join(", ")}]`,
    layoutTitle(layout),
  ]);
  output.line(output.bold(heading ?? ""));
  if (rows.length > 0) output.line("tiles");
  for (const line of formatTable(rows)) output.line(line);
  // Lines of this file need no path here either.
  const own = `${resolve(file)}:`;
  for (const line of report) output.line(line.replaceAll(own, ""));
  output.line();
}

/** Line and column, and the file where it is another. */
function lineOf(position: Position | undefined, file: string): string {
  return position?.file === resolve(file)
    ? `${position.line}:${position.column}`
    : formatPosition(position);
}

function writeDrawings(
  placed: readonly PlacedKernel[],
  folder: string,
  output: Output,
): readonly unknown[] {
  makeFolder(folder);
  return placed.flatMap(({ name, placement }) =>
    placementDrawings(name, placement).map(({ file, subject, svg }) => {
      const path = join(folder, file);
      writeFile(path, svg());
      output.line(`wrote ${path}: ${subject}`);
      return { path, subject };
    }),
  );
}

function placementDocument({ name, placement }: PlacedKernel): unknown {
  const { kernel, conversions, products, copies, memory, shared, cost } = placement;
  return {
    name,
    kernel: kernel.name,
    cost,
    tiles: placedTiles(placement).map(({ layout, ...tile }) => ({
      ...tile,
      layout: { text: layout.text, name: layoutName(layout) },
    })),
    products: [...products].map(([op, product]) => ({
      position: op.location.position,
      ...product,
    })),
    copies: [...copies].map(([op, copy]) => ({ position: op.location.position, ...copy })),
    conversions: conversions.map((conversion) => ({
      position: conversion.op.location.position,
      from: conversion.source.text,
      to: conversion.target.text,
      kind: conversion.plan.kind,
      cost: conversion.cost,
      times: conversion.weight,
    })),
    memory: {
      bytes: memory.bytes,
      buffers: memory.buffers.map(({ name: buffer, value, offset, bytes }) => ({
        name: buffer,
        offset,
        bytes,
        layout: shared.get(value)?.text,
      })),
    },
  };
}
