/**
 * Groups of processes given by axes of a mesh. Processes are numbered along the mesh, last axis fastest;
 * a group holds those that differ along the named axes alone. An axis may be cut: `(p)s` of an axis of
 * extent n is the part of extent s that p parts go before and n / (p · s) follow.
 *
 *   mesh x=2, y=4; axes y:(1)2     numbers 4x + 2a + b, groups along a: [0, 2], [1, 3], [4, 6], [5, 7]
 */

interface Part {
  readonly axis: string;
  readonly before: number;
  readonly extent: number;
  readonly stride: number;
}

function product(numbers: readonly number[]): number {
  return numbers.reduce((result, each) => result * each, 1);
}

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
  const parts: Part[] = [];
  for (const { name, before, extent } of references) {
    const place = axes.findIndex((axis) => axis.name === name);
    const size = axes[place]?.size;
    if (size === undefined) return undefined;
    const own = extent === undefined ? size : Number(extent);
    const inner = product(axes.slice(place + 1).map((axis) => axis.size));
    parts.push({ axis: name, before, extent: own, stride: (inner * size) / (before * own) });
  }
  const count = product(axes.map(({ size }) => size));
  const ids = deviceIds(body, count);
  return ids === undefined ? undefined : groupsAlong(parts, ids);
}

/** The processes in the order of the mesh; their own order where it gives none. */
function deviceIds(body: string, count: number): readonly number[] | undefined {
  const listed = /device_ids = (?:array<i64: |dense<)?\[?([\d, ]+)/.exec(body)?.[1];
  const ids = listed?.split(",").map(Number) ?? Array.from({ length: count }, (_, id) => id);
  return ids.length === count ? ids : undefined;
}

function groupsAlong(
  parts: readonly Part[],
  ids: readonly number[],
): readonly (readonly number[])[] {
  const offsets = parts.reduce<readonly number[]>(
    (found, { extent, stride }) =>
      found.flatMap((offset) => Array.from({ length: extent }, (_, i) => offset + i * stride)),
    [0],
  );
  const first = (index: number): boolean =>
    parts.every(({ extent, stride }) => Math.floor(index / stride) % extent === 0);
  return Object.freeze(
    ids.flatMap((_, index) =>
      first(index) ? [Object.freeze(offsets.map((offset) => ids[index + offset] ?? 0))] : [],
    ),
  );
}
