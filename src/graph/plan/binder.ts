/**
 * Binding a plan to arrays: every launch is bound once, and those that follow each other are recorded as one piece, between
 * which the host decides where it has to.
 *
 *   launch a, launch b, while p { launch c }, launch d     ──▶  pieces  [a b], while [c], [d]
 *
 * A device that decides loops and branches by itself has them recorded with the launches around them, so that a program is
 * one piece: [a b ⟳c d].
 */
import type { BoundLaunch } from "../../device/bound-launch.ts";
import type { DeviceArray } from "../../device/device-array.ts";
import type { Device } from "../../device/device.ts";
import { inputName, outputName } from "../lower/kernel-of.ts";
import { allSteps } from "./plan.ts";
import type {
  BranchStep,
  Buffer,
  CheckStep,
  CollectiveStep,
  LaunchStep,
  NamedBuffer,
  OperationStep,
  Plan,
  Step,
  WhileStep,
} from "./plan.ts";

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
      readonly kind: "collective";
      readonly step: CollectiveStep;
      /** None for what has no elements. */
      readonly inputs: readonly (DeviceArray | undefined)[];
      readonly outputs: readonly (DeviceArray | undefined)[];
    }
  | {
      readonly kind: "check";
      readonly step: CheckStep;
      /** None for what has no elements. */
      readonly operands: readonly (DeviceArray | undefined)[];
    };

/** Steps of loops with a known number of turns that are recorded turn by turn within another. */
const mostRecorded = 1024;

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
  /** Loops and branches of the device's own, which run as parts of recordings. */
  readonly #decided = new Set<BoundLaunch>();

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

  /** Arrays that the host reads or writes. */
  #arrays(buffers: readonly Buffer[]): readonly (DeviceArray | undefined)[] {
    return buffers.map((buffer) => (buffer.count === 0 ? undefined : this.#array(buffer)));
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

  /** The pieces of steps, each of so many launches at most; loops and branches are the device's own where it decides them and may. */
  pieces(steps: readonly Step[], mayDecide: boolean, most = Infinity): readonly Piece[] {
    const pieces: Piece[] = [];
    let pending: BoundLaunch[] = [];
    const flush = (): void => {
      const [only] = pending;
      if (only === undefined) return;
      const isWhole = pending.length === 1 && !this.#decided.has(only);
      const work = isWhole ? only : this.#keep(this.#device.record(pending));
      pieces.push({ kind: "launches", work });
      pending = [];
    };
    for (const step of steps) {
      if (step.kind === "launch" || step.kind === "operation") {
        pending.push(this.bound(step));
        if (pending.length >= most) flush();
        continue;
      }
      const decided =
        mayDecide && this.#device.decides && step.kind !== "check" && step.kind !== "collective"
          ? this.#onDevice([step])
          : undefined;
      if (decided !== undefined) {
        pending.push(...decided);
        continue;
      }
      flush();
      pieces.push(this.#controlled(step, mayDecide, most));
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
      [...inputs, ...outputs].map((each) => [each.name, this.#argument(each)]),
    );
    return this.#keep(this.#device.bind(operation, args as never));
  }

  #argument({ buffer, shape, view }: NamedBuffer): DeviceArray {
    const array = this.#array(buffer);
    if (view === undefined) return array.reshape(shape);
    return array.part(buffer.dtype, shape, (view.offset * buffer.dtype.bits) / 8);
  }

  /** The work of steps that leave nothing to the host; undefined where one does. */
  #onDevice(steps: readonly Step[]): readonly BoundLaunch[] | undefined {
    const all: BoundLaunch[] = [];
    for (const step of steps) {
      const works = this.#stepOnDevice(step);
      if (works === undefined) return undefined;
      all.push(...works);
    }
    return all;
  }

  #stepOnDevice(step: Step): readonly BoundLaunch[] | undefined {
    switch (step.kind) {
      case "launch":
      case "operation":
        return [this.bound(step)];
      case "check":
      case "collective":
        return undefined;
      case "branch":
        return this.#branchOnDevice(step);
      case "while":
        return step.trips === undefined
          ? this.#loopOnDevice(step)
          : this.#repeatedOnDevice(step, step.trips);
    }
  }

  #loopOnDevice({ predicate, ...step }: WhileStep): readonly BoundLaunch[] | undefined {
    const condition = this.#onDevice(step.condition);
    const body = condition === undefined ? undefined : this.#onDevice(step.body);
    if (condition === undefined || body === undefined) return undefined;
    return [this.#control({ kind: "while", ...this.#selector(predicate), condition, body })];
  }

  #branchOnDevice({ index, ...step }: BranchStep): readonly BoundLaunch[] | undefined {
    const branches = step.branches.map((branch) => this.#onDevice(branch));
    if (!branches.every((branch) => branch !== undefined)) return undefined;
    return [this.#control({ kind: "branch", ...this.#selector(index), branches })];
  }

  /** A known number of turns, as long as a recording of all of them stays small. */
  #repeatedOnDevice({ body }: WhileStep, trips: number): readonly BoundLaunch[] | undefined {
    if (trips * Array.from(allSteps(body)).length > mostRecorded) return undefined;
    const turn = this.#onDevice(body);
    return turn === undefined ? undefined : Array.from({ length: trips }, () => turn).flat();
  }

  #selector(buffer: Buffer): { readonly selector: DeviceArray; readonly isBool: boolean } {
    const selector = this.#array(buffer);
    return { selector, isBool: selector.dtype.kind === "bool" };
  }

  #control(control: Parameters<Device["control"]>[0]): BoundLaunch {
    const bound = this.#keep(this.#device.control(control));
    this.#decided.add(bound);
    return bound;
  }

  #controlled(
    step: Exclude<Step, LaunchStep | OperationStep>,
    mayDecide: boolean,
    most: number,
  ): Piece {
    switch (step.kind) {
      case "while":
        return {
          kind: "while",
          condition: this.pieces(step.condition, mayDecide, most),
          predicate: this.#array(step.predicate),
          body: this.pieces(step.body, mayDecide, most),
          trips: step.trips,
        };
      case "branch":
        return {
          kind: "branch",
          index: this.#array(step.index),
          branches: step.branches.map((branch) => this.pieces(branch, mayDecide, most)),
        };
      case "collective":
        return {
          kind: "collective",
          step,
          inputs: this.#arrays(step.inputs),
          outputs: this.#arrays(step.outputs),
        };
      case "check":
        return { kind: "check", step, operands: this.#arrays(step.operands) };
    }
  }
}
