/**
 * A compiled program on a device. Everything that running takes is made once: the arena, the constants, and for a set of
 * argument and result arrays the bound launches, of which those that follow each other are recorded as one piece. Running
 * then issues them and allocates nothing.
 *
 *   const program = await Program.load(device, compilePlan(module, "main"));
 *   await program.run([x, y])         host tensors in, host tensors out
 */
import { u8 } from "../../formats/dtype.ts";
import { fromElements, toElements } from "../../formats/hostarray.ts";
import type { BoundLaunch } from "../../device/bound-launch.ts";
import { disposeAll } from "../../device/device-array.ts";
import type { DeviceArray } from "../../device/device-array.ts";
import type { Device } from "../../device/device.ts";
import { WorkQueue } from "../../device/work-queue.ts";
import type { Kernel } from "../../ir/node.ts";
import { allOrNone, runEach } from "../../support/run-all.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { atLocation, settledLocation } from "../../support/location.ts";
import type { LimitedProgram, RunLimits } from "../../support/run-limits.ts";
import { runCheck } from "../evaluate/evaluate.ts";
import { emptyTensor, tensor } from "../evaluate/value.ts";
import type { Tensor } from "../evaluate/value.ts";
import { heldElements } from "../lower/storage.ts";
import { sizeOf, typeText } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import type { RankEndpoint } from "../ranks/endpoint.ts";
import { Binder } from "./binder.ts";
import type { Piece } from "./binder.ts";
import { requireArrays, requireLoadable, requireTensors } from "./arguments.ts";
import { mostAhead, unlimited, waited, withinLimits } from "./limits.ts";
import { sizesOf } from "./operation-sizes.ts";
import { allSteps, buffersOf } from "./plan.ts";
import type { Buffer, Plan } from "./plan.ts";
import { numbered, ranksOf } from "./plan-ranks.ts";

/** The program bound to arrays. */
export interface BoundProgram {
  /** Runs the program once, with the arrays that it was bound to. */
  run(limits?: LimitedProgram): Promise<void>;
  /** Gives the memory of the binding back; using it afterwards is an error. */
  dispose(): void;
}

/** Runs what allocates: says for which line of the user's it does, and who gives it back. */
export type Allocating = <T>(work: () => T) => T;

/** How long a launch took by itself. */
export interface LaunchTime {
  /** The kernel's, or the operation's. */
  readonly kernel: string;
  /** What the program calls it. */
  readonly name: string;
  /** How long the launch took. */
  readonly milliseconds: number;
  /** What its arrays hold together. */
  readonly bytes: number;
  /** The types of its arrays. */
  readonly arrays: readonly string[];
}

/** Launches of which the time of one is the mean. */
const profiledLaunches = 5;

export function allocateFor(device: Device, type: TensorType): DeviceArray {
  const held = heldElements(type.element);
  if (held === undefined) throw new Error(`devices have no ${typeText(type)}`);
  return device.allocate(held.dtype, [Math.max(1, held.each * sizeOf(type.shape))]);
}

/** A plan on a device, with its constants uploaded and its memory allocated. */
export class Program {
  /** The plan that it runs. */
  readonly plan: Plan;
  readonly #device: Device;
  readonly #arena: DeviceArray | undefined;
  readonly #constants: readonly DeviceArray[];
  readonly #allocating: Allocating;
  readonly #ranks: RankEndpoint;
  #own:
    | {
        readonly inputs: readonly DeviceArray[];
        readonly outputs: readonly DeviceArray[];
        readonly bound: BoundProgram;
      }
    | undefined;

  /** Runs share the arena, and the host waits within them: one begins when the one before it has ended. */
  readonly #queue = new WorkQueue();
  /** Launches that were issued since the device was last waited for. */
  #ahead = 0;
  #isDisposed = false;

  private constructor(
    device: Device,
    plan: Plan,
    arena: DeviceArray | undefined,
    constants: readonly DeviceArray[],
    allocating: Allocating,
    ranks: RankEndpoint,
  ) {
    this.#ranks = ranks;
    this.#device = device;
    this.plan = plan;
    this.#allocating = allocating;
    this.#arena = arena;
    this.#constants = constants;
  }

  static async load(
    device: Device,
    plan: Plan,
    { ranks }: { readonly ranks?: RankEndpoint } = {},
  ): Promise<Program> {
    const location = settledLocation();
    return Program.loadWith(device, plan, (work) => atLocation(location, work), ranks);
  }

  /** @internal The same, with what its arrays are attributed to. */
  static async loadWith(
    device: Device,
    plan: Plan,
    allocating: Allocating,
    given?: RankEndpoint,
  ): Promise<Program> {
    requireLoadable(device, plan);
    const ranks = ranksOf(plan, given);
    await device.compileInBackground(kernelsOf(plan, device));
    const arena =
      plan.arenaBytes === 0 ? undefined : allocating(() => device.allocate(u8, [plan.arenaBytes]));
    const constants = await allOrNone(
      plan.constants.map(async (each, place) =>
        allocating(() =>
          sizeOf(each.shape) === 0
            ? device.allocate(each.dtype, [1])
            : device.upload(numbered(each, plan, place, ranks.rank)),
        ),
      ),
      (uploaded) => {
        disposeAll(arena === undefined ? uploaded : [...uploaded, arena]);
      },
    );
    return new Program(device, plan, arena, constants, allocating, ranks);
  }

  /** The program over given arrays, flat or in their shapes; issuing it allocates nothing. */
  bind(inputs: readonly DeviceArray[], outputs: readonly DeviceArray[]): BoundProgram {
    this.#requireKept();
    requireArrays(this.plan, inputs, outputs);
    const bound = this.#bind(inputs, outputs);
    return {
      run: (limits) => this.#inTurn(() => bound.run(limits), limits),
      dispose: () => {
        bound.dispose();
      },
    };
  }

  #inTurn<T>(work: () => Promise<T>, limited = unlimited): Promise<T> {
    return this.#queue.run(async () => {
      this.#requireKept();
      return work();
    }, limited);
  }

  #requireKept(): void {
    if (!this.#isDisposed) return;
    throw new TilewrightError({
      code: "TW4017",
      message: `the program @${this.plan.name} was disposed of before this use`,
      expected: "a program that is kept until its last use",
      found: "one that was disposed of",
    });
  }

  #bind(inputs: readonly DeviceArray[], outputs: readonly DeviceArray[]): BoundProgram {
    const binder = new Binder(
      this.#device,
      this.plan,
      this.#arena,
      this.#constants,
      inputs,
      outputs,
    );
    const { steps } = this.plan;
    const disposeFrom = (first: number): void => {
      disposeBound(binder.made.splice(first));
    };
    const made = (mayDecide: boolean, most?: number): readonly Piece[] => {
      const before = binder.made.length;
      try {
        return binder.pieces(steps, mayDecide, most);
      } catch (error) {
        disposeFrom(before);
        throw error;
      }
    };
    const pieces = made(true);
    // A GPU cannot be stopped in the middle of a recording: within limits it is given short ones, and the host decides loops.
    const { stopsKernels, decides } = this.#device;
    let limitedPieces = stopsKernels && !decides ? pieces : undefined;
    return {
      run: (limits = unlimited) =>
        this.#runAll(
          limits.stop === undefined ? pieces : (limitedPieces ??= made(false, mostAhead)),
          limits,
        ),
      dispose: () => {
        disposeFrom(0);
      },
    };
  }

  /** Runs on host tensors, which are read until the run ends. A step, for limits, is a launch or a decision of the host. */
  async run(inputs: readonly Tensor[], limits: RunLimits = {}): Promise<readonly Tensor[]> {
    this.#requireKept();
    requireTensors(this.plan, inputs);
    return withinLimits(limits, (limited) =>
      this.#inTurn(() => this.#runOn(inputs, limited), limited),
    );
  }

  async #runOn(inputs: readonly Tensor[], limited: LimitedProgram): Promise<readonly Tensor[]> {
    const { inputs: arrays, outputs, bound } = this.#allocating(() => this.#ownArrays());
    const device = this.#device;
    // One after another: each wait listens to the limits, and Node warns of a signal that many listen to.
    for (const [i, { data }] of inputs.entries()) {
      const array = arrays[i];
      if (array === undefined || data.length === 0) continue;
      const values = fromElements(array.dtype, array.shape, data);
      await waited(device, limited, (...wait) => device.write(array, values, ...wait));
    }
    await bound.run(limited);
    await waited(device, limited, (...wait) => device.synchronize(...wait));
    const results: Tensor[] = [];
    for (const [i, type] of this.plan.results.entries())
      results.push(await this.#tensor(outputs[i] as DeviceArray, type, limited));
    return results;
  }

  /**
   * How long each launch takes, by itself and one after another, on what the last `run` left in memory; those of loops and
   * branches once each.
   */
  async profile(): Promise<readonly LaunchTime[]> {
    this.#requireKept();
    return this.#inTurn(() => this.#profile());
  }

  async #profile(): Promise<readonly LaunchTime[]> {
    const { inputs, outputs } = this.#allocating(() => this.#ownArrays());
    const device = this.#device;
    const binder = new Binder(device, this.plan, this.#arena, this.#constants, inputs, outputs);
    const times: LaunchTime[] = [];
    try {
      for (const step of allSteps(this.plan.steps)) {
        if (step.kind !== "launch" && step.kind !== "operation") continue;
        const bound = binder.bound(step);
        bound.launch();
        const all = await device.time(() => {
          for (let i = 0; i < profiledLaunches; i++) bound.launch();
        });
        const buffers = buffersOf(step);
        times.push({
          kernel: step.kind === "launch" ? step.kernel.kernel.name : step.operation.name,
          name: step.name,
          milliseconds: all / profiledLaunches,
          bytes: buffers.reduce((sum, { bytes }) => sum + bytes, 0),
          arrays: buffers.map(({ type }) => typeText(type)),
        });
      }
    } finally {
      disposeBound(binder.made);
    }
    return times;
  }

  #ownArrays() {
    if (this.#own !== undefined) return this.#own;
    const { parameters, results } = this.plan;
    const made: DeviceArray[] = [];
    const allocate = (type: TensorType): DeviceArray => {
      const array = allocateFor(this.#device, type);
      made.push(array);
      return array;
    };
    try {
      const inputs = parameters.map(allocate);
      // A result that lies in a donated argument has no memory of its own.
      const outputs = results.map((type, place) => {
        const taken = this.plan.aliases.get(place);
        return (taken === undefined ? undefined : inputs[taken]) ?? allocate(type);
      });
      this.#own = { inputs, outputs, bound: this.#bind(inputs, outputs) };
    } catch (error) {
      disposeAll(made);
      throw error;
    }
    return this.#own;
  }

  async #tensor(
    array: DeviceArray,
    { element, shape }: TensorType,
    limited: LimitedProgram,
  ): Promise<Tensor> {
    const device = this.#device;
    const data = toElements(
      await waited(device, limited, (...wait) => device.download(array, ...wait)),
    );
    return tensor(element, shape, sizeOf(shape) === 0 ? data.slice(0, 0) : data);
  }

  async #runAll(pieces: readonly Piece[], limited: LimitedProgram): Promise<void> {
    for (const piece of pieces) await this.#runPiece(piece, limited);
  }

  async #runPiece(piece: Piece, limited: LimitedProgram): Promise<void> {
    limited.step();
    switch (piece.kind) {
      case "launches":
        piece.work.launchWith(limited);
        return this.#catchUp(piece.work.kernels.length, limited);
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
      case "collective":
        return this.#collective(piece, limited);
      case "check": {
        const { step, operands } = piece;
        runCheck(step.op, await this.#tensors(step.operands, operands, limited));
      }
    }
  }

  /** What buffers hold, which the host looks at. */
  #tensors(
    buffers: readonly Buffer[],
    arrays: readonly (DeviceArray | undefined)[],
    limited: LimitedProgram,
  ): Promise<readonly Tensor[]> {
    return Promise.all(
      buffers.map(async ({ type }, i) => {
        const array = arrays[i];
        return array === undefined ? emptyTensor(type) : this.#tensor(array, type, limited);
      }),
    );
  }

  /** Through the host, which every device can do. */
  async #collective(
    { step, inputs, outputs }: Extract<Piece, { readonly kind: "collective" }>,
    limited: LimitedProgram,
  ): Promise<void> {
    const values = await this.#tensors(step.inputs, inputs, limited);
    const results = await limited.wait(this.#ranks.run(step.call, values));
    for (const [i, array] of outputs.entries()) {
      const result = results[i];
      if (array === undefined || result === undefined) continue;
      const host = fromElements(array.dtype, array.shape, result.data);
      await waited(this.#device, limited, (...wait) => this.#device.write(array, host, ...wait));
    }
    this.#ahead = 0;
  }

  /** Lets the device come near after some launches, so that few of them are left when a limit is reached. */
  async #catchUp(launches: number, limited: LimitedProgram): Promise<void> {
    const device = this.#device;
    this.#ahead += launches;
    if (this.#ahead < mostAhead || (limited.stop === undefined && !device.stopsKernels)) return;
    this.#ahead = 0;
    await waited(device, limited, (...wait) => device.caughtUp(...wait));
  }

  async #number(array: DeviceArray, limited: LimitedProgram): Promise<number> {
    const device = this.#device;
    const number = await waited(device, limited, (wait) =>
      wait === undefined ? device.element(array, 0) : device.element(array, 0, wait),
    );
    this.#ahead = 0;
    return Number(number);
  }

  /** Gives back everything that it holds. */
  dispose(): void {
    this.#isDisposed = true;
    this.#own?.bound.dispose();
    const arrays = new Set([
      ...(this.#own?.inputs ?? []),
      ...(this.#own?.outputs ?? []),
      ...this.#constants,
    ]);
    this.#own = undefined;
    for (const each of arrays) each.dispose();
    this.#arena?.dispose();
  }
}

/** Those made last first: recordings are of what was made before them. */
function disposeBound(bound: readonly BoundLaunch[]): void {
  runEach(
    [...bound].reverse().map((each) => () => {
      each.dispose();
    }),
  );
}

/** The kernels that binding a plan compiles. */
function kernelsOf(plan: Plan, device: Device): readonly Kernel[] {
  return Array.from(allSteps(plan.steps)).flatMap((step) => {
    if (step.kind === "launch") return [step.kernel.kernel];
    if (step.kind !== "operation") return [];
    const { operation } = step;
    return operation.kernels(sizesOf(step, device.target), device).map(({ kernel }) => kernel);
  });
}
