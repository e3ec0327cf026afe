/**
 * Programs over meshes: those whose mesh was opened run on its ranks, whatever device is chosen, and what they compute stays there until it
 * is read.
 */
import type { GraphRegion } from "../graph/ops/node.ts";
import { meshText, readShardings } from "../graph/ops/sharding.ts";
import { opsWithin } from "../graph/ops/traverse.ts";
import type { Place } from "./default-device.ts";
import type { RankRunner } from "./rank-runner.ts";

const meshes = new Map<string, Place>();

/** Has programs over a mesh run on ranks from now on. */
export function registerMesh(mesh: string, ranks: RankRunner): void {
  meshes.set(mesh, {
    isDefault: false,
    device: undefined,
    ranks,
    open: () => Promise.resolve(undefined),
  });
}

const known = new WeakMap<GraphRegion, { readonly place: Place | undefined }>();

/** The ranks that a graph runs on; undefined where it has no mesh, or one that nobody opened. */
export function ranksFor(graph: GraphRegion): Place | undefined {
  const found = known.get(graph) ?? { place: find(graph) };
  if (found.place !== undefined) known.set(graph, found);
  return found.place;
}

function find(graph: GraphRegion): Place | undefined {
  if (meshes.size === 0) return undefined;
  for (const op of opsWithin(graph)) {
    if (op.kind !== "sdy.manual_computation") continue;
    const [first] = [op.attributes.in_shardings, op.attributes.out_shardings].flatMap((each) =>
      readShardings(each, new Map(), op.location),
    );
    if (first !== undefined) return meshes.get(meshText(first.mesh));
  }
  return undefined;
}
