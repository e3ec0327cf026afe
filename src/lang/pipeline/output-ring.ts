/**
 * Drains: how a pipeline's outputs leave shared memory. The body writes a block into a slot; once the window moves on, and
 * after the last step, the slot is copied out, and a slot is written again once its copy has been read. A window that
 * stays is written to the same slot in every step, so that its last visit wins:
 *
 *   step       0          1          2          3
 *   window     0          0          1          1
 *   slot       0          0          1          1
 *   stored                0                     1
 *
 * All copies of a step are one group, whether a window has moved or not, so that counting groups counts steps.
 */
import { i32 } from "../../formats/dtype.ts";
import { atLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { smem } from "../arguments.ts";
import { commitGroup, commitShared, copyAsync, waitGroup } from "../async.ts";
import { when } from "../control.ts";
import { constant } from "../create.ts";
import { Ref } from "../ref.ts";
import type { Scalar } from "../elementwise.ts";
import type { Trace } from "../trace.ts";
import { placeBlock } from "./blocks.ts";
import type { BlockPlan } from "./blocks.ts";
import { nextSlot } from "./ring.ts";
import { partHere, partOfSlot, partOfWindow } from "./multicast.ts";
import type { Sharers } from "../multicast.ts";
import type { Axes } from "./step-grid.ts";
import type { PipelineScratch } from "./warp-scratch.ts";

export interface OutputPlan extends BlockPlan {
  readonly depth: number;
  /** Whether a window may come back after others; its stores then wait for each other. */
  readonly revisited: boolean;
  /** The axis along which threads divide the block. */
  readonly divided: number;
}

export interface DrainPlan {
  readonly outputs: readonly OutputPlan[];
  /** Threads that each write a part of every block. */
  readonly sharers: Sharers;
  /** Threads that each write blocks of their own. */
  readonly writers: Sharers;
  readonly synchronous: boolean;
  /** Whether the last copies need only have read shared memory in the end. */
  readonly waitReadOnly: boolean;
}

/** The slot of each output; can be carried by a loop. */
export type Draining = readonly Scalar<"i32">[];

/** Which step is over: its indices, those of the next one, and whether there is none. */
export interface StepOver {
  readonly axes: Axes;
  readonly next: Axes;
  readonly last: () => Scalar<"bool">;
}

export class Drain {
  readonly #trace: Trace;
  readonly #plan: DrainPlan;
  readonly #buffers: readonly Ref[];
  readonly #location: Location;

  constructor(
    trace: Trace,
    plan: DrainPlan,
    objects: { readonly [name: string]: unknown },
    location: Location,
  ) {
    this.#trace = trace;
    this.#plan = plan;
    this.#location = location;
    this.#buffers = plan.outputs.flatMap(({ name }) => {
      const buffer = objects[name];
      return buffer instanceof Ref ? [buffer] : [];
    });
  }

  /** Whether steps write blocks that are copied out right after them. */
  get writesSteps(): boolean {
    return this.#plan.outputs.some(moves);
  }

  start(): Draining {
    return this.#plan.outputs.map(() => constant(i32, 0));
  }

  /** Before a step writes: the slots that it may write have been read. */
  begin(): void {
    const depths = this.#plan.outputs.filter(moves).map(({ depth }) => depth);
    if (depths.length > 0) waitGroup(Math.min(...depths) - 1, { read: true });
  }

  blocks(slots: Draining): { readonly [name: string]: Ref } {
    return Object.fromEntries(
      this.#plan.outputs.map((output, position) => [output.name, this.#block(position, slots)]),
    );
  }

  /** After a step whose writes are committed: copies out what will not be visited by the next one. */
  end(slots: Draining, { axes, next, last }: StepOver): Draining {
    const { outputs, synchronous } = this.#plan;
    if (!this.writesSteps) return slots;
    const following = outputs.map((output, position) => {
      const slot = slots[position];
      if (slot === undefined || !moves(output)) return slot ?? constant(i32, 0);
      const advanced = nextSlot(output.depth, slot);
      if (output.pace === "each step") {
        this.#store(position, slots, axes);
        return advanced;
      }
      const left = last().or(this.#differ(output, axes, next));
      when(left, () => {
        this.#store(position, slots, axes);
      });
      return left.select(advanced, slot);
    });
    commitGroup();
    if (synchronous) waitGroup(0);
    return following;
  }

  /** After the last step of a run: copies out the windows that have not moved, where anything was written. */
  finish(slots: Draining, axes: Axes, written?: () => Scalar<"bool">): void {
    const still = this.#plan.outputs.flatMap((output, position) =>
      moves(output) ? [] : [position],
    );
    if (still.length === 0) return;
    commitShared();
    const store = (): void => {
      for (const position of still) this.#store(position, slots, axes);
    };
    if (written === undefined) store();
    else when(written(), store);
    commitGroup();
  }

  /** In the end: the outputs have landed, or the slots can at least be given to something else. */
  settle(): void {
    const { outputs, waitReadOnly } = this.#plan;
    if (outputs.length > 0) waitGroup(0, { read: waitReadOnly });
  }

  /** Before a run in which windows that do not move are written again. */
  renew(): void {
    if (this.#plan.outputs.some((output) => !moves(output))) waitGroup(0, { read: true });
  }

  #block(position: number, slots: Draining): Ref {
    const { outputs, sharers, writers } = this.#plan;
    const [buffer, slot, output] = [this.#buffers[position], slots[position], outputs[position]];
    if (buffer === undefined || slot === undefined || output === undefined)
      throw new Error("an output has a buffer");
    const writer = writers.part();
    const own = writer === undefined ? buffer.at(0, slot) : buffer.at(writer, slot);
    return partOfSlot(own, partHere(output.divided, output.shape[output.divided], [sharers]));
  }

  #store(position: number, slots: Draining, axes: Axes): void {
    const output = this.#plan.outputs[position];
    if (output === undefined) throw new Error("an output has a plan");
    const placed = placeBlock(this.#trace, output, axes);
    const { divided, shape, revisited } = output;
    atLocation(output.location, () => {
      if (revisited) waitGroup(0);
      const part = partHere(divided, shape[divided], [this.#plan.sharers]);
      copyAsync(this.#block(position, slots), partOfWindow(placed, part));
    });
  }

  #differ(output: OutputPlan, axes: Axes, next: Axes): Scalar<"bool"> {
    const now = placeBlock(this.#trace, output, axes).starts;
    const then = placeBlock(this.#trace, output, next).starts;
    return atLocation(this.#location, () => {
      const differences = now.flatMap((start, axis) => {
        const other = then[axis];
        return other === undefined ? [] : [start.ne(other)];
      });
      const [first, ...others] = differences;
      if (first === undefined) throw new Error("a window that moves has a start that does");
      return others.reduce((any, each) => any.or(each), first);
    });
  }
}

/** Whether the window of an output depends on the step. */
function moves({ pace }: OutputPlan): boolean {
  return pace !== "never";
}

/** The shared memory of the outputs. */
export function drainScratch({ outputs, writers }: DrainPlan): PipelineScratch {
  return Object.fromEntries(
    outputs.map(({ name, dtype, shape, depth, location }) => [
      name,
      atLocation(location, () => smem(dtype, [writers.count, depth, ...shape])),
    ]),
  );
}
