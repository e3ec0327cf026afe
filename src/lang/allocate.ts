/**
 * From descriptions of scratch to the ops that allocate it and the objects the body gets.
 *
 * A union is one allocation. Members of a group lie side by side, each at a multiple of 128 bytes, as
 * copies and tensor cores need it; the groups lie on top of each other:
 *
 *   union({ a: smem(f32, [10]), b: smem(f32, [64]) }, { c: smem(f32, [100]) })
 *
 *     byte   0        40       128               384   400
 *     group  a ………………         b ……………………………………
 *            c …………………………………………………………………………………………      512 bytes in all
 *
 * One in tensor memory has columns in place of bytes.
 */
import { packedBytes, u32 } from "../formats/dtype.ts";
import { tmemColumnCount } from "../ir/infer/tensor-memory.ts";
import type { DType } from "../formats/dtype.ts";
import type { Size } from "../ir/size.ts";
import type { SharedLayout } from "../layout/algebra/shared-layout.ts";
import type { Location } from "../support/location.ts";
import { requireAttributeKinds } from "./attribute-kinds.ts";
import type {
  BarrierSpec,
  ClusterBarrierSpec,
  MemorySpec,
  ScratchSpec,
  SemaphoreSpec,
  UnionSpec,
} from "./arguments.ts";
import type { ByTarget } from "./by-target.ts";
import { Ref, refObject } from "./ref.ts";
import { Barrier } from "./barriers.ts";
import { allocateClusterBarrier } from "./cluster-barriers.ts";
import type { ClusterBarrier } from "./cluster-barriers.ts";
import { Semaphore } from "./sync.ts";
import { activeTrace, emitOrigin, emitValue } from "./trace.ts";

/** What a description of scratch is in the body. */
export type ScratchObject<S> =
  S extends MemorySpec<infer D>
    ? Ref<D>
    : S extends BarrierSpec
      ? Barrier
      : S extends ClusterBarrierSpec
        ? ClusterBarrier
        : S extends SemaphoreSpec
          ? Semaphore
          : S extends UnionSpec<infer Members>
            ? { readonly [N in keyof Members]: ScratchObject<Members[N]> }
            : S extends ByTarget<infer Chosen>
              ? ScratchObject<Chosen>
              : never;

export type ScratchObjects<S> = { readonly [N in keyof S]: ScratchObject<S[N]> };

const memberAlignment = 128;
/** Lanes that all columns of tensor memory have. */
const lanes = 128;

/** What an allocation of tensor memory says of how its elements lie. */
const lying = {
  apart: {},
  packed: { packed: true },
  scales: { scales: true },
  "halved scales": { scales: true, halves: true },
} as const satisfies { readonly [L in MemorySpec["lies"]]: object };

/** Emits the allocation that `spec` describes, under the name that the user gave it. */
export function allocate(name: string, spec: ScratchSpec): unknown {
  switch (spec.kind) {
    case "memory": {
      const { space, dtype, shape, layout, location } = spec;
      if (space === "tmem") {
        const attributes = { ...tensorAttributes(spec), name };
        return new Ref(emitOrigin("alloc_tmem", {}, attributes, location));
      }
      const attributes = { space, dtype, shape, name, ...layoutAttribute(layout) };
      return new Ref(emitOrigin("alloc", {}, attributes, location));
    }
    case "barrier": {
      const { count, shape, arrivals, location } = spec;
      const axes = shape.length > 1 ? { shape } : {};
      const attributes = { count, ...axes, arrivals, name };
      return new Barrier(emitOrigin("alloc_barrier", {}, attributes, location), shape);
    }
    case "cluster barrier":
      return allocateClusterBarrier(activeTrace("clusterBarrier", spec.location), name, spec);
    case "semaphore": {
      const { shape, restored, location } = spec;
      const attributes = { shape, name, ...(restored && { restored }) };
      requireAttributeKinds("alloc_semaphore", attributes, location);
      return new Semaphore(activeTrace("semaphore", location).addCounters(attributes, location));
    }
    case "union": {
      const inTensorMemory = spec.groups.some((group) =>
        Object.values(group).some(({ space }) => space === "tmem"),
      );
      return inTensorMemory ? allocateColumns(name, spec) : allocateUnion(name, spec);
    }
  }
}

function layoutAttribute(layout: SharedLayout | undefined): { readonly layout?: string } {
  return layout === undefined ? {} : { layout: layout.text };
}

interface Member {
  readonly name: string;
  readonly group: number;
  readonly offset: number;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly layout: SharedLayout | undefined;
  readonly location: Location;
}

function allocateUnion(
  unionName: string,
  { groups, location }: UnionSpec,
): { readonly [name: string]: Ref } {
  const members: Member[] = [];
  let bytes = 0;
  for (const [group, specs] of groups.entries()) {
    let offset = 0;
    for (const [name, { dtype, shape: sizes, layout, location: place }] of Object.entries(specs)) {
      const shape = numbersOf(sizes);
      members.push({ name, group, offset, dtype, shape, layout, location: place });
      const elements = shape.reduce((count, extent) => count * extent, 1);
      offset += alignUp(packedBytes(dtype, elements));
    }
    bytes = Math.max(bytes, offset);
  }
  const union = emitValue("alloc_union", {}, { bytes, name: unionName }, location);
  return Object.fromEntries(
    members.map(({ name, group, offset, dtype, shape, layout, location: place }) => {
      const attributes = { group, offset, dtype, shape, name, ...layoutAttribute(layout) };
      return [name, refObject(emitValue("union_member", { union }, attributes, place), place)];
    }),
  );
}

/** The attributes that say how tiles lie in tensor memory. */
function tensorAttributes({ dtype, shape, lies, pair }: MemorySpec) {
  return {
    dtype,
    shape: numbersOf(shape),
    ...lying[lies],
    ...(pair && { pair }),
  };
}

/** A union in tensor memory: members of a group have columns side by side. */
function allocateColumns(
  unionName: string,
  { groups, location }: UnionSpec,
): { readonly [name: string]: Ref } {
  const members = groups.flatMap((group) => {
    let column = 0;
    return Object.entries(group).map(([name, spec]) => {
      const own = { name, spec, column };
      column += Math.ceil(tmemColumnCount(tensorAttributes(spec)));
      return { ...own, end: column };
    });
  });
  const columns = members.reduce((most, { end }) => Math.max(most, end), 0);
  const pair = members.some(({ spec }) => spec.pair);
  const attributes = {
    dtype: u32,
    shape: [lanes, columns],
    name: unionName,
    ...(pair && { pair }),
  };
  const union = emitValue("alloc_tmem", {}, attributes, location);
  return Object.fromEntries(
    members.map(({ name, spec, column }) => {
      const own = { ...tensorAttributes(spec), column, name };
      return [name, refObject(emitValue("tmem_member", { union }, own, spec.location), location)];
    }),
  );
}

/** The types allow nothing else for shared and tensor memory; `smem` is called from JavaScript too. */
function numbersOf(sizes: readonly Size[]): readonly number[] {
  return sizes.map((size) => (typeof size === "number" ? size : NaN));
}

function alignUp(bytes: number): number {
  return Math.ceil(bytes / memberAlignment) * memberAlignment;
}
