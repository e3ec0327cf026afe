/**
 * Binding a plan to arrays: every launch is bound once, and those that follow each other are recorded as one piece, between
 * which the host decides where it has to.
 *
 *   launch a, launch b, while p { launch c }, launch d     ──▶  pieces  [a b], while [c], [d]
 */
import type { BoundLaunch } from "../../device/bound-launch.ts";
import type { DeviceArray } from "../../device/device-array.ts";
import type { Device } from "../../device/device.ts";
import { inputName, outputName } from "../lower/kernel-of.ts";
import type { Buffer, CheckStep, LaunchStep, OperationStep, Plan, Step } from "./plan.ts";

/** What running a step list takes: recorded launches, and what the host decides between them. */
export type Piece =
  | { readonly kind: "launches"; readonly work: BoundLaunch }
  | {
      readonly kind: "while";
      readonly condition: readonly Piece[];
      readonly predicate: DeviceArray;
      readonly body: readonly Piece[];
      readonly trips: number | undefined;
    }
  | {
      readonly kind: "branch";
      readonly index: DeviceArray;
      readonly branches: readonly (readonly Piece[])[];
    }
  | {
      readonly kind: "check";
      readonly step: CheckStep;
      /** None for what has no elements. */
      readonly operands: readonly (DeviceArray | undefined)[];
    };

/** Binds the launches of a plan to arrays. */
export class Binder {
  readonly made: BoundLaunch[] = [];
  readonly #device: Device;
  readonly #plan: Plan;
  readonly #arena: DeviceArray | undefined;
  readonly #constants: readonly DeviceArray[];
  readonly #inputs: readonly DeviceArray[];
  readonly #outputs: readonly DeviceArray[];
  readonly #views = new Map<Buffer, DeviceArray>();

  constructor(
    device: Device,
    plan: Plan,
    arena: DeviceArray | undefined,
    constants: readonly DeviceArray[],
    inputs: readonly DeviceArray[],
    outputs: readonly DeviceArray[],
  ) {
    this.#device = device;
    this.#plan = plan;
    this.#arena = arena;
    this.#constants = constants;
    this.#inputs = inputs;
    this.#outputs = outputs;
  }

  #array(buffer: Buffer): DeviceArray {
    const known = this.#views.get(buffer);
    if (known !== undefined) return known;
    const made = this.#find(buffer);
    this.#views.set(buffer, made);
    return made;
  }

  #find(buffer: Buffer): DeviceArray {
    const { place, dtype, count } = buffer;
    if (place.kind === "arena") {
      const offset = this.#plan.offsets.get(buffer);
      if (this.#arena === undefined || offset === undefined)
        throw new Error("a buffer has no place");
      return this.#arena.part(dtype, [count], offset);
    }
    const lists = {
      argument: this.#inputs,
      result: this.#outputs,
      constant: this.#constants,
    };
    const array = lists[place.kind][place.index];
    if (array === undefined) throw new Error(`no ${place.kind} ${place.index}`);
    return array.shape.length === 1 ? array : array.reshape([count]);
  }

  pieces(steps: readonly Step[]): readonly Piece[] {
    const pieces: Piece[] = [];
    let pending: BoundLaunch[] = [];
    const flush = (): void => {
      const [only] = pending;
      if (only === undefined) return;
      const work = pending.length === 1 ? only : this.#keep(this.#device.record(pending));
      pieces.push({ kind: "launches", work });
      pending = [];
    };
    for (const step of steps) {
      if (step.kind === "launch" || step.kind === "operation") {
        pending.push(this.bound(step));
        continue;
      }
      flush();
      pieces.push(this.#controlled(step));
    }
    flush();
    return pieces;
  }

  /** One launch by itself. */
  bound(step: LaunchStep | OperationStep): BoundLaunch {
    return step.kind === "launch" ? this.#launch(step) : this.#operation(step);
  }

  #keep(bound: BoundLaunch): BoundLaunch {
    this.made.push(bound);
    return bound;
  }

  #launch({ kernel, inputs, outputs }: LaunchStep): BoundLaunch {
    const args = Object.fromEntries([
      ...inputs.map((buffer, i) => [inputName(i), this.#array(buffer)] as const),
      ...outputs.map((buffer, i) => [outputName(i), this.#array(buffer)] as const),
    ]);
    return this.#keep(this.#device.bind(kernel, args as never));
  }

  #operation({ operation, inputs, outputs }: OperationStep): BoundLaunch {
    const args = Object.fromEntries(
      [...inputs, ...outputs].map(({ name, buffer, shape }) => [
        name,
        this.#array(buffer).reshape(shape),
      ]),
    );
    return this.#keep(this.#device.bind(operation, args as never));
  }

  #controlled(step: Exclude<Step, LaunchStep | OperationStep>): Piece {
    switch (step.kind) {
      case "while":
        return {
          kind: "while",
          condition: this.pieces(step.condition),
          predicate: this.#array(step.predicate),
          body: this.pieces(step.body),
          trips: step.trips,
        };
      case "branch":
        return {
          kind: "branch",
          index: this.#array(step.index),
          branches: step.branches.map((branch) => this.pieces(branch)),
        };
      case "check":
        return {
          kind: "check",
          step,
          operands: step.operands.map((buffer) =>
            buffer.count === 0 ? undefined : this.#array(buffer),
          ),
        };
    }
  }
}
