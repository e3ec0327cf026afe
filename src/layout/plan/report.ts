/**
 * A placement in words: the instructions that were chosen and why, each conversion that is left with its
 * line and cost, and where shared memory lies.
 *
 *   matmul on sm_90a
 *   products
 *     matmul.ts:57:23  dot  wgmma: both operands are windows of shared memory
 *   copies
 *     matmul.ts:47:9   tensor, 1 box: the windows are boxes of a tensor map
 *   conversions: 1, 208 cycles in all
 *     matmul.ts:70:33  store reads add  shuffle  16384 bytes  26 cycles × 8
 *       from (L2 L3 L4 R1 W0 W1 | R0 L0 L1)
 *       to   (L2 L3 L4 R0 W0 W1 | R1 L0 L1)
 *   shared memory: 65552 of 232448 bytes
 *          0  32768 bytes  tileA  shared(swizzle 128)
 */
import { packedBytes } from "../../formats/dtype.ts";
import type { AnyOp, Value } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import { definingOps } from "../../ir/rewrite/analysis.ts";
import { formatPosition } from "../../support/location.ts";
import type { CopyMethod } from "../model/copy-methods.ts";
import type { AllocatedPlacement, Conversion, Placement } from "./place.ts";

export function placementReport(placement: AllocatedPlacement): string {
  const { kernel, target } = placement;
  return [
    `${kernel.name} on ${target.name}`,
    ...section("products", productLines(placement)),
    ...section("copies", copyLines(placement)),
    ...conversionLines(placement),
    ...memoryLines(placement),
    "",
  ].join("\n");
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [title, ...lines];
}

function placeOf(op: AnyOp): string {
  const { position } = op.location;
  return position === undefined ? "" : `${formatPosition(position)}  `;
}

function productLines({ products }: Placement): readonly string[] {
  return [...products].map(
    ([op, { instruction, reason }]) => `  ${placeOf(op)}dot  ${instruction}: ${reason}`,
  );
}

const units: { readonly [M in CopyMethod["method"]]: (pieces: number) => string } = {
  tensor: (pieces) => `tensor, ${pieces} ${pieces === 1 ? "box" : "boxes"}`,
  bulk: (pieces) => `bulk, ${pieces} ${pieces === 1 ? "run" : "runs"}`,
  "cp.async": (pieces) => `cp.async, ${pieces} bytes a thread`,
  plain: (pieces) => `loads and stores, ${pieces} bytes a thread`,
};

function copyLines({ copies }: Placement): readonly string[] {
  return [...copies].map(
    ([op, { method, pieces, reason }]) => `  ${placeOf(op)}${units[method](pieces)}: ${reason}`,
  );
}

function conversionLines({ kernel, conversions }: Placement): readonly string[] {
  if (conversions.length === 0) return ["no conversions"];
  const definitions = definingOps(kernel.body);
  const total = conversions.reduce((sum, { cost, weight }) => sum + cost * weight, 0);
  const heading = `conversions: ${conversions.length}, ${total} cycles in all`;
  return [heading, ...conversions.flatMap((each) => oneConversion(each, definitions))];
}

function oneConversion(
  { op, value, source, target, plan, cost, weight }: Conversion,
  definitions: ReadonlyMap<Value, AnyOp>,
): readonly string[] {
  const maker = definitions.get(value);
  const made = maker === undefined ? "a carried value" : opName(maker);
  const often = weight === 1 ? "" : ` × ${weight}`;
  return [
    `  ${placeOf(op)}${opName(op)} reads ${made}  ${plan.kind}  ${tileBytes(value)} bytes  ${cost} cycles${often}`,
    `    from ${source.text}`,
    `    to   ${target.text}`,
  ];
}

function tileBytes({ type }: Value): number {
  if (type.kind !== "tile") return 0;
  return packedBytes(
    type.dtype,
    type.shape.reduce((count, extent) => count * extent, 1),
  );
}

function memoryLines({ memory, target, shared }: AllocatedPlacement): readonly string[] {
  if (memory.buffers.length === 0) return [];
  const inOrder = [...memory.buffers].sort((left, right) => left.offset - right.offset);
  return [
    `shared memory: ${memory.bytes} of ${target.sharedMemoryPerBlock} bytes`,
    ...inOrder.map(({ offset, bytes, name, value }) => {
      const layout = shared.get(value);
      const stored = layout === undefined ? "" : `  ${layout.text}`;
      return `  ${String(offset).padStart(6)}  ${String(bytes).padStart(6)} bytes  ${name}${stored}`;
    }),
  ];
}
