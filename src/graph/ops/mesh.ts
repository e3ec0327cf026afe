/**
 * Groups of processes given by axes of a mesh. Processes are numbered along the mesh, last axis fastest;
 * a group holds those that differ along the named axes alone. An axis may be cut: `(p)s` of an axis of
 * extent n is the part of extent s that p parts go before and n / (p · s) follow.
 *
 *   mesh x=2, y=4; axes y:(1)2     numbers 4x + 2a + b, groups along a: [0, 2], [1, 3], [4, 6], [5, 7]
 */

import { axisPart, groupsAlong, meshOf } from "./sharding.ts";

/** The groups that the body of `#stablehlo.replica_group_mesh_axes<…>` spells; undefined where it does not. */
export function readMeshGroups(body: string): readonly (readonly number[])[] | undefined {
  const axes = Array.from(
    body.matchAll(/mesh_axis<name = "([^"]*)", size = (\d+)>/g),
    ([, name = "", size]) => ({ name, size: Number(size) }),
  );
  const references = Array.from(
    body.matchAll(/axis_ref<name = "([^"]*)"(?:, sub_axis_info = \((\d+)\)(\d+))?>/g),
    ([, name = "", before, extent]) => ({ name, before: Number(before ?? 1), extent }),
  );
  if (axes.length === 0 || references.length === 0) return undefined;
  const ids = deviceIds(
    body,
    axes.reduce((count, { size }) => count * size, 1),
  );
  if (ids === undefined) return undefined;
  const mesh = meshOf(axes, ids);
  const parts = references.map(({ name, before, extent }) =>
    axisPart(mesh, name, before, extent === undefined ? undefined : Number(extent)),
  );
  const known = parts.filter((part) => part !== undefined);
  return known.length === parts.length ? groupsAlong(mesh, known) : undefined;
}

/** The processes in the order of the mesh; their own order where it gives none. */
function deviceIds(body: string, count: number): readonly number[] | undefined {
  const listed = /device_ids = (?:array<i64: |dense<)?\[?([\d, ]+)/.exec(body)?.[1];
  const ids = listed?.split(",").map(Number) ?? Array.from({ length: count }, (_, id) => id);
  return ids.length === count ? ids : undefined;
}
