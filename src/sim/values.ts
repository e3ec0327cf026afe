/**
 * What a slot of a program thread holds, by the type of its IR value:
 *
 * | type      | held as                                                                      |
 * |-----------|------------------------------------------------------------------------------|
 * | scalar    | number, or bigint for 64-bit integers, exactly as a lane would hold it (the  |
 * |           | bits of bf16, 0 or 1 of bool)                                                |
 * | tile      | its lanes in row-major order; the shape is in the type                       |
 * | ref       | a view                                                                       |
 * | barrier   | the array of barriers of one block                                           |
 * | semaphore | the counters of the grid                                                     |
 * | inflight  | the lanes that wgmma will have added to                                      |
 *
 * A slot's kind is fixed when the kernel is assembled, so the readers below only assert it.
 */
import type { DType, HostValue, Lanes } from "../formats/dtype.ts";
import { readLane } from "../formats/values.ts";
import { allocateLanes } from "../formats/dtype.ts";
import type { Value } from "../ir/node.ts";
import type { BarrierArray } from "./barriers.ts";
import type { SemaphoreArray } from "./semaphores.ts";
import type { View } from "./view.ts";

export type ScalarValue = number | bigint;

/** An accumulator; `lanes` hold its value once no wgmma on it is pending. */
export interface Inflight {
  readonly lanes: Lanes;
}

export type SlotValue =
  | ScalarValue
  | Lanes
  | View
  | BarrierArray
  | SemaphoreArray
  | Inflight
  | undefined;

/** An agent, by what it holds. */
interface HasSlots {
  readonly slots: readonly SlotValue[];
}

export function numberAt(agent: HasSlots, slot: number): number {
  return agent.slots[slot] as number;
}

export function scalarAt(agent: HasSlots, slot: number): ScalarValue {
  return agent.slots[slot] as ScalarValue;
}

export function lanesAt(agent: HasSlots, slot: number): Lanes {
  return agent.slots[slot] as Lanes;
}

export function viewAt(agent: HasSlots, slot: number): View {
  return agent.slots[slot] as View;
}

export function barrierAt(agent: HasSlots, slot: number): BarrierArray {
  return agent.slots[slot] as BarrierArray;
}

export function semaphoreAt(agent: HasSlots, slot: number): SemaphoreArray {
  return agent.slots[slot] as SemaphoreArray;
}

export function inflightAt(agent: HasSlots, slot: number): Inflight {
  return agent.slots[slot] as Inflight;
}

/** The lanes' only element, as a slot holds it. */
export function toScalar(lanes: Lanes): ScalarValue {
  return lanes[0] as ScalarValue;
}

/** A single lane with the scalar in it. */
export function toLanes(dtype: DType, value: ScalarValue): Lanes {
  const lanes = allocateLanes(dtype, 1);
  lanes[0] = value;
  return lanes;
}

export type Decoded = HostValue | readonly Decoded[];

/** A data value as people read it: a number, or arrays within arrays. */
export function decodeValue(value: Value, held: SlotValue): Decoded {
  const { type } = value;
  if (type.kind === "scalar")
    return readLane(type.dtype, toLanes(type.dtype, held as ScalarValue), 0);
  if (type.kind !== "tile") throw new Error(`${type.kind} is no data`);
  const { dtype, shape } = type;
  const lanes = held as Lanes;
  const nest = (axis: number, start: number, count: number): Decoded => {
    const extent = shape[axis];
    if (extent === undefined) return readLane(dtype, lanes, start);
    const inner = count / extent;
    return Array.from({ length: extent }, (_, i) => nest(axis + 1, start + i * inner, inner));
  };
  return nest(0, 0, lanes.length);
}
