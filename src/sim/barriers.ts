/** Arrays of mbarriers as they lie in the shared memory of a block. */
import { rowMajorStrides } from "../formats/shape.ts";
import type { Op } from "../ir/node.ts";
import { BarrierState } from "../happens-before/barrier.ts";
import { ShadowMemory } from "../happens-before/shadow.ts";
import type { Owner } from "./allocation.ts";
import { WaitList } from "./wait-queue.ts";
import type { Polled } from "./wait-queue.ts";

export class BarrierElement implements Polled {
  readonly index: number;
  readonly #array: BarrierArray;
  readonly state: BarrierState;
  readonly waiters = new WaitList();

  constructor(array: BarrierArray, index: number, arrivals: number) {
    this.#array = array;
    this.index = index;
    this.state = new BarrierState(arrivals);
  }

  /** How reports name it. */
  get name(): string {
    return this.#array.nameOf(this);
  }

  /** A test finds something else once a phase completes. */
  get version(): number {
    return this.state.phase;
  }
}

export class BarrierArray {
  readonly op: Op<"alloc_barrier">;
  readonly block: Owner;
  readonly site: number;
  readonly elements: readonly BarrierElement[];
  /** Arrivals from other blocks, which must be over when the block exits; only in clusters. */
  readonly shadow: ShadowMemory | undefined;

  constructor(op: Op<"alloc_barrier">, block: Owner, site: number, watched: boolean) {
    this.op = op;
    this.block = block;
    this.site = site;
    const { count, arrivals } = op.attributes;
    this.elements = Array.from(
      { length: count },
      (_, index) => new BarrierElement(this, index, arrivals),
    );
    this.shadow = watched
      ? new ShadowMemory({ granules: count, space: "smem", initialised: true })
      : undefined;
  }

  /** How reports name the array. */
  get name(): string {
    const { name } = this.op.attributes;
    return name === undefined ? "the barrier" : `barrier ${name}`;
  }

  /** How reports name one barrier of the array. */
  nameOf(element: BarrierElement): string {
    if (this.elements.length === 1) return this.name;
    const { shape = [this.elements.length] } = this.op.attributes;
    const strides = rowMajorStrides(shape);
    const indices = shape.map(
      (extent, axis) => Math.floor(element.index / (strides[axis] ?? 1)) % extent,
    );
    return `${this.name}[${indices.join(", ")}]`;
  }
}
