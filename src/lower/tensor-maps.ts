/**
 * The stage that assigns tensor maps to TMA copies, and prefetches them: the first copy by a map would otherwise wait some 500 cycles for its
 * 128 bytes to come from memory, at the start of every block.
 *
 *   prefetch_maps %0 {maps = ["load 64 of k, 128 of m every 2*k bytes, swizzle 128"]}          one thread of the block
 *   alloc_barrier …
 *   …
 *     copy_async %source, %slot barrier(%full) {…, by = "tensor", map = "load 64 of k, …"}
 *
 * A kernel that calls `prefetchMaps(x)` itself decides where the maps of `x` are prefetched; those of all other arrays are at its
 * start, those of scratch behind its allocations.
 */
import type { AnyOp, Kernel, Region, Value } from "../ir/node.ts";
import {
  changeBody,
  changeEachOp,
  changeOps,
  changeRegions,
  withAttributes,
} from "../ir/rewrite/substitute.ts";
import { traitsOf } from "../ir/traits.ts";
import { walkOps } from "../ir/traverse.ts";
import { tensorCopyOf, tensorMaps } from "../layout/model/tensor-maps.ts";
import { windowsOf } from "../layout/model/windows.ts";
import type { Windows } from "../layout/model/windows.ts";
import { makeOp } from "../ir/make-op.ts";

/** Maps by the array that they describe. */
type MapTexts = ReadonlyMap<Value, readonly string[]>;

/** The placed kernel with its tensor maps assigned, and prefetched before copies need them. */
export function assignTensorMaps(kernel: Kernel): Kernel {
  const kinds = new Set<AnyOp["kind"]>();
  walkOps(kernel.body, (op) => kinds.add(op.kind));
  if (!kinds.has("copy_async") && !kinds.has("prefetch_maps")) return kernel;
  const windows = windowsOf(kernel);
  const texts: MapTexts = new Map(
    [...tensorMaps(kernel, windows)].map(([root, maps]) => [root, Object.freeze([...maps.keys()])]),
  );
  const named = namedRegion(kernel.body, windows, texts);
  return changeBody(kernel, withPrefetches(kernel, named, unasked(kernel, windows, texts)));
}

function namedRegion(region: Region, windows: Windows, texts: MapTexts): Region {
  return changeEachOp(region, (op) => {
    if (op.kind === "copy_async" && op.attributes.by === "tensor")
      return withAttributes(op, { map: tensorCopyOf(op, windows).text });
    if (op.kind === "prefetch_maps")
      return withAttributes(op, { maps: texts.get(windows.of(op.operands.ref).root) ?? [] });
    return changeRegions(op, (inner) => namedRegion(inner, windows, texts));
  });
}

/** Arrays whose maps the kernel does not ask for itself. */
function unasked({ body }: Kernel, windows: Windows, texts: MapTexts): MapTexts {
  const left = new Map(texts);
  walkOps(body, (op) => {
    if (op.kind === "prefetch_maps") left.delete(windows.of(op.operands.ref).root);
  });
  return left;
}

function withPrefetches({ parameters, location }: Kernel, body: Region, texts: MapTexts): Region {
  const of = (arrays: readonly Value[]): readonly AnyOp[] =>
    arrays.flatMap((ref) => {
      const maps = texts.get(ref);
      if (maps === undefined) return [];
      return [makeOp("prefetch_maps", { operands: { ref }, attributes: { maps }, location })];
    });
  const { ops } = body;
  const allocations = ops.findIndex((op) => traitsOf(op).results !== "memory");
  const scratch = ops.slice(0, allocations).flatMap(({ results }) => results);
  return changeOps(body, [
    ...of(parameters.map(({ value }) => value)),
    ...ops.slice(0, allocations),
    ...of(scratch),
    ...ops.slice(allocations),
  ]);
}
