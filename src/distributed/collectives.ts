/**
 * What ranks do together within `shardMap`, as JAX names it. Each takes the name of an axis of the mesh, or several, and concerns the ranks that
 * differ along these alone.
 *
 *   shardMap((x) => psum(x, "x"), { mesh, inSpecs: [P("x")], outSpecs: P() })
 */
import type { DTypeName } from "../formats/dtype.ts";
import { combiner, divide, like } from "../graph/transform/arithmetic.ts";
import { axisPart, cutsOf, groupsAlong } from "../graph/ops/sharding.ts";
import type { AxisPart } from "../graph/ops/sharding.ts";
import { literal } from "../graph/ops/literal.ts";
import { tensorType } from "../graph/ops/types.ts";
import { NDArray, recordWith, typeOfArray } from "../arrays/array.ts";
import { expandDims, squeeze } from "../arrays/shapes.ts";
import { flatten, rebuild } from "../arrays/tree.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Mesh } from "./mesh.ts";

/** One axis of a mesh, or several. */
export type AxisNames = string | readonly string[];

interface Bound {
  readonly mesh: Mesh;
  readonly axes: readonly string[];
}

/** The bodies that are being recorded, the innermost last. */
const bound: Bound[] = [];

/** Records a body whose collectives may name axes of a mesh. */
export function withAxes<T>(mesh: Mesh, axes: readonly string[], body: () => T): T {
  bound.push({ mesh, axes });
  try {
    return body();
  } finally {
    bound.pop();
  }
}

interface Along {
  readonly mesh: Mesh;
  readonly parts: readonly AxisPart[];
  readonly count: number;
  readonly groups: readonly (readonly number[])[];
}

function along(what: string, names: AxisNames): Along {
  const inner = bound.at(-1);
  const parts = [names].flat().map((name) => {
    const part =
      inner?.axes.includes(name) === true ? axisPart(inner.mesh.processes, name) : undefined;
    if (part !== undefined) return part;
    throw new TilewrightError({
      code: "TW9709",
      message: `${what} names the axis ${name}, over which nothing is mapped here`,
      expected: inner === undefined ? "a call within shardMap" : inner.axes.join(", "),
      found: name,
    });
  });
  if (inner === undefined) throw new Error("collectives name an axis");
  const { mesh } = inner;
  const groups = groupsAlong(mesh.processes, parts);
  return { mesh, parts, count: cutsOf(parts), groups };
}

const channel = { channel_handle: { handle: 1, type: 1 } } as const;

function eachArray<T>(tree: T, change: (array: NDArray) => NDArray): T {
  return rebuild(tree, flatten(tree).leaves.map(change));
}

function reduced<T>(
  what: string,
  tree: T,
  names: AxisNames,
  kind: "stablehlo.add" | "stablehlo.maximum" | "stablehlo.minimum",
): T {
  const { groups } = along(what, names);
  return eachArray(
    tree,
    ({ value }) =>
      new NDArray(
        recordWith(what, (builder) =>
          builder.one(
            "stablehlo.all_reduce",
            { operands: [value] },
            { replica_groups: groups, ...channel, use_global_device_ids: true },
            { regions: { computation: combiner(builder, typeOfArray(value).element, kind) } },
          ),
        ),
      ),
  );
}

/** The sum over ranks, of each array of a tree. */
export function psum<T>(tree: T, axisName: AxisNames): T {
  return reduced("psum", tree, axisName, "stablehlo.add");
}

/** The mean over ranks, of each array of a tree. */
export function pmean<T>(tree: T, axisName: AxisNames): T {
  const { count } = along("pmean", axisName);
  return eachArray(
    psum(tree, axisName),
    ({ value }) =>
      new NDArray(
        recordWith("pmean", (builder) => divide(builder, value, like(builder, value, count))),
      ),
  );
}

/** The maximum over ranks, of each array of a tree. */
export function pmax<T>(tree: T, axisName: AxisNames): T {
  return reduced("pmax", tree, axisName, "stablehlo.maximum");
}

/** The minimum over ranks, of each array of a tree. */
export function pmin<T>(tree: T, axisName: AxisNames): T {
  return reduced("pmin", tree, axisName, "stablehlo.minimum");
}

/** Options of `allGather`. */
export interface GatherOptions {
  /** The axis along which the parts come to lie; 0 unless given. */
  readonly axis?: number | undefined;
  /** Whether parts are joined along that axis; else it is a new one, with an entry for each rank. */
  readonly tiled?: boolean | undefined;
}

/** The arrays of all ranks, on each of them. */
export function allGather<D extends DTypeName>(
  x: NDArray<D>,
  axisName: AxisNames,
  { axis = 0, tiled = false }: GatherOptions = {},
): NDArray<D> {
  const { groups } = along("allGather", axisName);
  const { value } = tiled ? x : expandDims(x, { axis });
  return new NDArray<D>(
    recordWith("allGather", (builder) =>
      builder.one(
        "stablehlo.all_gather",
        { operands: [value] },
        { all_gather_dim: axis, replica_groups: groups, ...channel, use_global_device_ids: true },
      ),
    ),
  );
}

/** Options of `psumScatter`. */
export interface ScatterOptions {
  /** The axis that is cut; 0 unless given. */
  readonly scatterDimension?: number | undefined;
  /** Whether each rank keeps a run of that axis; else the axis has an entry for each rank, and goes. */
  readonly tiled?: boolean | undefined;
}

/** The sum over ranks, of which each keeps its part. */
export function psumScatter<D extends DTypeName>(
  x: NDArray<D>,
  axisName: AxisNames,
  { scatterDimension = 0, tiled = false }: ScatterOptions = {},
): NDArray<D> {
  const { groups, count } = along("psumScatter", axisName);
  const part = cutAxis("psumScatter", x, scatterDimension, count, tiled);
  const { element, shape } = typeOfArray(x.value);
  const kept = new NDArray<D>(
    recordWith("psumScatter", (builder) =>
      builder.one(
        "stablehlo.reduce_scatter",
        { operand: x.value },
        {
          scatter_dimension: scatterDimension,
          replica_groups: groups,
          ...channel,
          use_global_device_ids: true,
        },
        {
          regions: { computation: combiner(builder, element, "stablehlo.add") },
          types: [tensorType(element, shape.with(scatterDimension, part))],
        },
      ),
    ),
  );
  return tiled ? kept : squeeze(kept, { axis: scatterDimension });
}

/** The extent of a part. */
function cutAxis(what: string, x: NDArray, axis: number, count: number, tiled: boolean): number {
  const extent = x.shape[axis];
  const fits = extent !== undefined && (tiled ? extent % count === 0 : extent === count);
  if (fits) return extent / count;
  throw new TilewrightError({
    code: "TW9705",
    message: `${what} cannot cut axis ${axis} of ${String(x)} for ${count} ranks`,
    expected: tiled ? `a multiple of ${count}` : `${count}, or tiled: true and a multiple of it`,
    found: extent === undefined ? `an array of rank ${x.shape.length}` : `${extent}`,
  });
}

/** Options of `allToAll`. */
export interface ExchangeOptions {
  /** Whether runs of the axes are exchanged; else the split axis has an entry for each rank, and becomes the other. */
  readonly tiled?: boolean | undefined;
}

/** Each rank sends each other one its part of an axis, and joins what comes along another. */
export function allToAll<D extends DTypeName>(
  x: NDArray<D>,
  axisName: AxisNames,
  splitAxis: number,
  concatAxis: number,
  { tiled = false }: ExchangeOptions = {},
): NDArray<D> {
  const { groups, count } = along("allToAll", axisName);
  cutAxis("allToAll", x, splitAxis, count, tiled);
  // The new axis lies at its place among those that stay.
  const at = concatAxis <= splitAxis ? concatAxis : concatAxis + 1;
  const wide = tiled ? x : expandDims(x, { axis: at });
  const split = tiled || at > splitAxis ? splitAxis : splitAxis + 1;
  const exchanged = new NDArray<D>(
    recordWith("allToAll", (builder) =>
      builder.one(
        "stablehlo.all_to_all",
        { operands: [wide.value] },
        {
          split_dimension: split,
          concat_dimension: tiled ? concatAxis : at,
          split_count: count,
          replica_groups: groups,
          ...channel,
        },
      ),
    ),
  );
  return tiled ? exchanged : squeeze(exchanged, { axis: split });
}

/** Sends arrays along pairs of ranks, `[from, to]` along the axis; who is sent nothing has zeros. */
export function ppermute<T>(
  tree: T,
  axisName: AxisNames,
  perm: readonly (readonly [number, number])[],
): T {
  const { groups, count } = along("ppermute", axisName);
  for (const side of [0, 1] as const) {
    const places = perm.map((pair) => pair[side]);
    const isOnce = new Set(places).size === places.length;
    if (
      isOnce &&
      places.every((place) => Number.isSafeInteger(place) && place >= 0 && place < count)
    )
      continue;
    throw new TilewrightError({
      code: "TW9709",
      message: "perm of ppermute is no permutation",
      expected: `pairs of 0 … ${count - 1}, each once as a source and once as a target at most`,
      found: JSON.stringify(perm),
    });
  }
  const pairs = groups.flatMap((group) =>
    perm.map(([from, to]) => [group[from] ?? 0, group[to] ?? 0]),
  );
  return eachArray(
    tree,
    ({ value }) =>
      new NDArray(
        recordWith("ppermute", (builder) =>
          builder.one(
            "stablehlo.collective_permute",
            { operand: value },
            { source_target_pairs: pairs, ...channel },
          ),
        ),
      ),
  );
}

/** The place of the rank along an axis, an i32. */
export function axisIndex(axisName: AxisNames): NDArray<"i32"> {
  const { mesh, parts } = along("axisIndex", axisName);
  const { ids } = mesh.processes;
  const table = new Int32Array(ids.length);
  for (const [place, id] of ids.entries())
    table[id] = parts.reduce(
      (index, { size, stride }) => index * size + (Math.floor(place / stride) % size),
      0,
    );
  const scalar = tensorType("i32", []);
  return new NDArray(
    recordWith("axisIndex", (builder) => {
      const number = builder.one("stablehlo.partition_id", {}, {});
      const id = builder.one("stablehlo.convert", { operand: number }, {}, { types: [scalar] });
      const value = literal(tensorType("i32", [table.length]), table);
      const row = builder.one(
        "stablehlo.dynamic_slice",
        { operand: builder.one("stablehlo.constant", {}, { value }), start_indices: [id] },
        { slice_sizes: [1] },
      );
      return builder.one("stablehlo.reshape", { operand: row }, {}, { types: [scalar] });
    }),
  );
}

/** How many ranks there are along an axis. */
export function axisSize(axisName: AxisNames): number {
  return along("axisSize", axisName).count;
}
