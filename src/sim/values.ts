/**
 * What a slot of a program thread holds, by the type of its IR value:
 *
 * | type      | held as                                                                      |
 * |-----------|------------------------------------------------------------------------------|
 * | scalar    | number, or bigint for 64-bit integers, exactly as an element would hold it (the  |
 * |           | bits of bf16, 0 or 1 of bool)                                                |
 * | tile      | its elements in row-major order; the shape is in the type                       |
 * | ref       | a view                                                                       |
 * | barrier   | the array of barriers of one block                                           |
 * | semaphore | the counters of the grid                                                     |
 * | inflight  | the elements that wgmma will have added to                                      |
 *
 * A slot's kind is fixed when the kernel is assembled, so the readers below only assert it.
 */
import type { DType, HostValue, Elements } from "../formats/dtype.ts";
import { readElement } from "../formats/values.ts";
import { allocateElements } from "../formats/dtype.ts";
import type { Value } from "../ir/node.ts";
import type { BarrierArray } from "./barriers.ts";
import type { SemaphoreArray } from "./semaphores.ts";
import type { View } from "./view.ts";

export type ScalarValue = number | bigint;

/** An accumulator; `elements` hold its value once no wgmma on it is pending. */
export interface Inflight {
  readonly elements: Elements;
}

export type SlotValue =
  | ScalarValue
  | Elements
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

export function elementsAt(agent: HasSlots, slot: number): Elements {
  return agent.slots[slot] as Elements;
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

/** The elements' only element, as a slot holds it. */
export function toScalar(elements: Elements): ScalarValue {
  return elements[0] as ScalarValue;
}

/** A single element with the scalar in it. */
export function toElements(dtype: DType, value: ScalarValue): Elements {
  const elements = allocateElements(dtype, 1);
  elements[0] = value;
  return elements;
}

export type Decoded = HostValue | readonly Decoded[];

/** A data value as people read it: a number, or arrays within arrays. */
export function decodeValue(value: Value, held: SlotValue): Decoded {
  const { type } = value;
  if (type.kind === "scalar")
    return readElement(type.dtype, toElements(type.dtype, held as ScalarValue), 0);
  if (type.kind !== "tile") throw new Error(`${type.kind} is no data`);
  const { dtype, shape } = type;
  const elements = held as Elements;
  const nest = (axis: number, start: number, count: number): Decoded => {
    const extent = shape[axis];
    if (extent === undefined) return readElement(dtype, elements, start);
    const inner = count / extent;
    return Array.from({ length: extent }, (_, i) => nest(axis + 1, start + i * inner, inner));
  };
  return nest(0, 0, elements.length);
}
