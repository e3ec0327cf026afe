/**
 * A compiled program on a device. Everything that running takes is made once: the arena, the constants, and for a set of
 * argument and result arrays the bound launches, of which those that follow each other are recorded as one piece. Running
 * then issues them and allocates nothing.
 *
 *   const program = await Program.load(device, compilePlan(module, "main"));
 *   await program.run([x, y])         host tensors in, host tensors out
 */
import { u8 } from "../../formats/dtype.ts";
import { fromLanes, toLanes } from "../../formats/hostarray.ts";
import { bindDimensions } from "../../device/binding.ts";
import type { BoundLaunch } from "../../device/bound-launch.ts";
import type { DeviceArray } from "../../device/device-array.ts";
import type { Device } from "../../device/device.ts";
import type { Kernel } from "../../ir/node.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { LimitedProgram, RunLimits } from "../../support/run-limits.ts";
import { runCheck } from "../evaluate/evaluate.ts";
import { datumText, emptyTensor, tensor } from "../evaluate/datum.ts";
import type { Tensor } from "../evaluate/datum.ts";
import { inputName, outputName } from "../lower/kernel-of.ts";
import { heldElements } from "../lower/storage.ts";
import { sizeOf, typeText } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import { unlimited, waitOf, withinLimits } from "./limits.ts";
import { allSteps } from "./plan.ts";
import type { Buffer, CheckStep, LaunchStep, OperationStep, Plan, Step } from "./plan.ts";

/** What running a step list takes: recorded launches, and what the host decides between them. */
type Piece =
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

/** The program bound to arrays. */
export interface BoundProgram {
  run(limits?: LimitedProgram): Promise<void>;
  dispose(): void;
}

export function allocateFor(device: Device, type: TensorType): DeviceArray {
  const held = heldElements(type.element);
  if (held === undefined) throw new Error(`devices have no ${typeText(type)}`);
  return device.allocate(held.dtype, [Math.max(1, held.each * sizeOf(type.shape))]);
}

export class Program {
  readonly plan: Plan;
  readonly #device: Device;
  readonly #arena: DeviceArray | undefined;
  readonly #constants: readonly DeviceArray[];
  #own:
    | {
        readonly inputs: readonly DeviceArray[];
        readonly outputs: readonly DeviceArray[];
        readonly bound: BoundProgram;
      }
    | undefined;

  private constructor(
    device: Device,
    plan: Plan,
    arena: DeviceArray | undefined,
    constants: readonly DeviceArray[],
  ) {
    this.#device = device;
    this.plan = plan;
    this.#arena = arena;
    this.#constants = constants;
  }

  static async load(device: Device, plan: Plan): Promise<Program> {
    await device.compileAside(kernelsOf(plan, device));
    const arena = plan.arenaBytes === 0 ? undefined : device.allocate(u8, [plan.arenaBytes]);
    const constants = await Promise.all(
      plan.constants.map(async (each) =>
        sizeOf(each.shape) === 0 ? device.allocate(each.dtype, [1]) : device.upload(each),
      ),
    );
    return new Program(device, plan, arena, constants);
  }

  /** The program over given arrays, flat or in their shapes; issuing it allocates nothing. */
  bind(inputs: readonly DeviceArray[], outputs: readonly DeviceArray[]): BoundProgram {
    const binder = new Binder(
      this.#device,
      this.plan,
      this.#arena,
      this.#constants,
      inputs,
      outputs,
    );
    const pieces = binder.pieces(this.plan.steps);
    return {
      run: (limits = unlimited) => this.#runAll(pieces, limits),
      dispose: () => {
        for (const bound of [...binder.made].reverse()) bound.dispose();
      },
    };
  }

  /** Runs on host tensors. A step, for limits, is a launch or a decision of the host. */
  async run(inputs: readonly Tensor[], limits: RunLimits = {}): Promise<readonly Tensor[]> {
    this.#requireInputs(inputs);
    return withinLimits(this.#device, limits, async (limited) => {
      const { inputs: arrays, outputs, bound } = this.#ownArrays();
      const device = this.#device;
      await Promise.all(
        inputs.map(async ({ lanes }, i) => {
          const array = arrays[i];
          if (array === undefined || lanes.length === 0) return;
          const values = fromLanes(array.dtype, array.shape, lanes);
          await device.write(array, values, ...waitOf(limited));
        }),
      );
      await bound.run(limited);
      await device.synchronize(...waitOf(limited));
      return Promise.all(
        outputs.map((array, i) => this.#tensor(array, this.plan.results[i] as TensorType, limited)),
      );
    });
  }

  #ownArrays() {
    if (this.#own !== undefined) return this.#own;
    const { parameters, results } = this.plan;
    const inputs = parameters.map((type) => allocateFor(this.#device, type));
    const outputs = results.map((type) => allocateFor(this.#device, type));
    this.#own = { inputs, outputs, bound: this.bind(inputs, outputs) };
    return this.#own;
  }

  #requireInputs(inputs: readonly Tensor[]): void {
    const expected = this.plan.parameters.map(typeText);
    const found = inputs.map(datumText);
    if (expected.length === found.length && expected.every((each, i) => each === found[i])) return;
    throw new TilewrightError({
      code: "TW9505",
      message: `@${this.plan.name} is given other values than it takes`,
      expected: expected.join(", "),
      found: found.join(", "),
    });
  }

  async #tensor(
    array: DeviceArray,
    { element, shape }: TensorType,
    limited: LimitedProgram,
  ): Promise<Tensor> {
    const lanes = toLanes(await this.#device.download(array, ...waitOf(limited)));
    return tensor(element, shape, sizeOf(shape) === 0 ? lanes.slice(0, 0) : lanes);
  }

  async #runAll(pieces: readonly Piece[], limited: LimitedProgram): Promise<void> {
    for (const piece of pieces) await this.#runPiece(piece, limited);
  }

  async #runPiece(piece: Piece, limited: LimitedProgram): Promise<void> {
    limited.step();
    switch (piece.kind) {
      case "launches":
        piece.work.launchWith(limited.stop);
        return;
      case "while":
        if (piece.trips !== undefined) {
          for (let trip = 0; trip < piece.trips; trip++) {
            await this.#runAll(piece.body, limited);
            await limited.pause();
          }
          return;
        }
        for (;;) {
          limited.step();
          await this.#runAll(piece.condition, limited);
          if ((await this.#number(piece.predicate, limited)) === 0) return;
          await this.#runAll(piece.body, limited);
          await limited.pause();
        }
      case "branch": {
        const value = await this.#number(piece.index, limited);
        const index = piece.index.dtype.kind === "bool" ? 1 - value : value;
        await this.#runAll(piece.branches[index] ?? piece.branches.at(-1) ?? [], limited);
        return;
      }
      case "check": {
        const tensors = await Promise.all(
          piece.operands.map(async (array, i) => {
            const { type } = piece.step.operands[i] as Buffer;
            return array === undefined ? emptyTensor(type) : this.#tensor(array, type, limited);
          }),
        );
        runCheck(piece.step.op, tensors);
      }
    }
  }

  async #number(array: DeviceArray, limited: LimitedProgram): Promise<number> {
    const [limits] = waitOf(limited);
    const index = limits === undefined ? ([0] as const) : ([0, limits] as const);
    return Number(await this.#device.element(array, ...index));
  }

  /** Gives back everything that it holds. */
  dispose(): void {
    this.#own?.bound.dispose();
    const arrays = [
      ...(this.#own?.inputs ?? []),
      ...(this.#own?.outputs ?? []),
      ...this.#constants,
    ];
    this.#own = undefined;
    for (const each of arrays) each.dispose();
    this.#arena?.dispose();
  }
}

/** The kernels that binding a plan compiles. */
function kernelsOf(plan: Plan, device: Device): readonly Kernel[] {
  return Array.from(allSteps(plan.steps)).flatMap((step) => {
    if (step.kind === "launch") return [step.kernel.kernel];
    if (step.kind !== "operation") return [];
    const { operation } = step;
    return operation.kernels(sizesOf(step, device), device).map(({ kernel }) => kernel);
  });
}

/** The sizes that an operation is carried out for, by the shapes of its arguments. */
function sizesOf(
  { operation, inputs, outputs }: OperationStep,
  { target }: Device,
): { readonly [name: string]: number } {
  const arrays = new Map(
    [...inputs, ...outputs].map(({ name, shape, buffer }) => [
      name,
      { dtype: buffer.dtype, shape },
    ]),
  );
  return Object.fromEntries(bindDimensions(operation.kernel, arrays, {}, target));
}

/** Binds the launches of a plan to arrays. */
class Binder {
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
        pending.push(step.kind === "launch" ? this.#launch(step) : this.#operation(step));
        continue;
      }
      flush();
      pieces.push(this.#controlled(step));
    }
    flush();
    return pieces;
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
