/**
 * Meshes of ranks and how arrays lie on them, as JAX names them.
 *
 *   const mesh = makeMesh({ x: 2, y: 4 });          rank = 4x + y
 *   new NamedSharding(mesh, P("x", null))           rows cut along x, whole along y
 */
import { axisPart, meshOf } from "../graph/ops/sharding.ts";
import type { AxisPart, ProcessMesh, TensorSharding } from "../graph/ops/sharding.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { runOnRanks } from "./world.ts";
import { optionText } from "../support/options.ts";

/** What cuts an axis of an array: an axis of a mesh, several, the first the outermost, or none. */
export type AxisSpec = string | null | readonly string[];

/** How the axes of an array are cut, the first ones named; what is not named is whole. */
export class PartitionSpec {
  /** What cuts each axis. */
  readonly axes: readonly AxisSpec[];

  constructor(axes: readonly AxisSpec[]) {
    this.axes = Object.freeze([...axes]);
  }

  /** As it is written: `P("x", null)`. */
  toString(): string {
    return `P(${this.axes.map((axis) => JSON.stringify(axis)).join(", ")})`;
  }
}

/** How the axes of an array are cut: `P("x")`, `P(null, ["x", "y"])`. */
export function P(...axes: readonly AxisSpec[]): PartitionSpec {
  return new PartitionSpec(axes);
}

/** Ranks along named axes. `makeMesh` makes one. */
export class Mesh {
  /** The size of each axis. */
  readonly shape: { readonly [axis: string]: number };
  /** The names of the axes, the last the fastest. */
  readonly axisNames: readonly string[];
  /** How many ranks it has. */
  readonly size: number;
  /** @internal */
  readonly processes: ProcessMesh;

  /** @internal */
  constructor(shape: { readonly [axis: string]: number }, devices?: readonly number[]) {
    this.shape = Object.freeze({ ...shape });
    this.axisNames = Object.freeze(Object.keys(shape));
    const axes = Object.entries(shape).map(([name, size]) => ({ name, size }));
    this.processes = meshOf(axes, devices);
    this.size = this.processes.ids.length;
  }
}

/** Options of `makeMesh`. */
export interface MeshOptions {
  /** The ranks in the order of the mesh; 0, 1, 2 … unless given. */
  readonly devices?: readonly number[] | undefined;
}

/** A mesh of ranks: `makeMesh({ x: 2, y: 4 })` has eight. */
export function makeMesh(
  shape: { readonly [axis: string]: number },
  { devices }: MeshOptions = {},
): Mesh {
  const location = captureLocation();
  const sizes = Object.values(shape);
  const isSized = sizes.every((size) => Number.isSafeInteger(size) && size > 0);
  const count = sizes.reduce((all, size) => all * size, 1);
  const isOrder =
    devices === undefined ||
    (devices.length === count && new Set(devices).size === count && Math.max(...devices) < count);
  if (isSized && sizes.length > 0 && isOrder) {
    const mesh = new Mesh(shape, devices);
    runOnRanks(mesh.processes);
    return mesh;
  }
  throw new TilewrightError({
    code: "TW9708",
    message: "a mesh cannot be made of this",
    location,
    expected: isOrder
      ? "axes with sizes from 1 up, such as { x: 2, y: 4 }"
      : `each of ranks 0 … ${count - 1} once`,
    found: optionText(isOrder ? shape : devices),
  });
}

/** A mesh, and how an array is cut over it. */
export class NamedSharding {
  /** The mesh that it is cut over. */
  readonly mesh: Mesh;
  /** How each axis is cut. */
  readonly spec: PartitionSpec;

  constructor(mesh: Mesh, spec: PartitionSpec) {
    this.mesh = mesh;
    this.spec = spec;
    shardingOf(mesh, spec, undefined, captureLocation());
  }
}

/** A sharding as programs have it; `rank` is that of the array, where there is one. */
export function shardingOf(
  mesh: Mesh,
  spec: PartitionSpec,
  rank: number | undefined,
  location: Location,
): TensorSharding {
  const refuse = (message: string, expected: string, found: string): never => {
    throw new TilewrightError({ code: "TW9708", message, location, expected, found });
  };
  if (rank !== undefined && spec.axes.length > rank)
    refuse(
      `${spec.toString()} has more entries than the array has axes`,
      `${rank} at most`,
      `${spec.axes.length}`,
    );
  const used = new Set<string>();
  const dimensions = spec.axes.map((axis) =>
    (axis === null ? [] : [axis].flat()).map((name): AxisPart => {
      const part = axisPart(mesh.processes, name);
      if (part === undefined)
        return refuse(
          `${spec.toString()} names an axis that the mesh does not have`,
          mesh.axisNames.join(", "),
          name,
        );
      if (used.has(name))
        refuse(`${spec.toString()} names ${name} twice`, "each axis of the mesh once", name);
      used.add(name);
      return part;
    }),
  );
  const open = Array.from({ length: Math.max(0, (rank ?? 0) - dimensions.length) }, () => []);
  return { mesh: mesh.processes, dimensions: [...dimensions, ...open] };
}
