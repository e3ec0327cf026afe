/**
 * A compiled program run again and again. Arguments that lie on the device are bound where they lie, and what was bound is
 * kept by their places in memory, so that a loop which hands its results back in binds once; host tensors are written
 * into arrays that the program keeps, once as long as the same ones come, and so are small arrays that lie elsewhere at every call. A result lies in
 * the memory of a donated argument where it can; else a small one is copied into an array of its own, and a large one is written there, for
 * which the program is bound anew.
 *
 *   step(params, batch)   donated params      params -> params, one bound program; batch written; loss copied out
 */
import { fromElements } from "../../formats/hostarray.ts";
import { disposeAll } from "../../device/device-array.ts";
import type { DeviceArray } from "../../device/device-array.ts";
import type { Device } from "../../device/device.ts";
import { allOrNone } from "../../support/run-all.ts";
import { atLocation, settledLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import type { LimitedProgram, RunLimits } from "../../support/run-limits.ts";
import type { Tensor } from "../evaluate/value.ts";
import type { TensorType } from "../ops/types.ts";
import { waited, withinLimits } from "./limits.ts";
import type { RankEndpoint } from "../ranks/endpoint.ts";
import type { Plan } from "./plan.ts";
import { allocateFor, Program } from "./program.ts";
import type { Allocating, BoundProgram } from "./program.ts";

/** Bytes of an argument or a result that are rather copied than bound anew. */
const fewBytes = 1 << 20;

/** Runs in a row with the same array at a place, from which on it is bound where it lies although others were there before. */
const runsOfSettled = 3;

/** Bound programs that are kept: a loop without donation alternates between a few sets of arrays. */
const keptBindings = 4;

interface Binding {
  readonly arrays: readonly DeviceArray[];
  readonly bound: BoundProgram;
}

export class Replay {
  readonly #device: Device;
  readonly #program: Program;
  readonly #inputs = new Map<number, DeviceArray>();
  /** The host tensors that lie in `#inputs`; what they hold never changes. */
  readonly #written = new Map<number, WeakRef<Tensor>>();
  readonly #outputs = new Map<number, DeviceArray>();
  /** The arguments of the last run that lay on the device, by their places, and for how many runs in a row. */
  readonly #last = new Map<number, { readonly array: DeviceArray; readonly runs: number }>();
  #bindings: readonly Binding[] = [];
  /** What the run at hand allocates by. */
  #allocating: Allocating;

  private constructor(device: Device, program: Program, allocating: Allocating) {
    this.#device = device;
    this.#program = program;
    this.#allocating = allocating;
  }

  static async load(
    device: Device,
    plan: Plan,
    location: Location = settledLocation(),
    ranks?: RankEndpoint,
  ): Promise<Replay> {
    const allocating = attributedTo(device, location);
    const program = await Program.loadWith(device, plan, allocating, ranks);
    return new Replay(device, program, allocating);
  }

  /** The arguments whose memory results take over. */
  get takenOver(): readonly number[] {
    return [...this.#program.plan.aliases.values()];
  }

  /**
   * Runs on arrays of the device and on host tensors; gives arrays that are the caller's, made at `location`, and no leaks: who
   * replays programs gives back what nobody reaches.
   */
  async run(
    given: readonly (DeviceArray | Tensor)[],
    limits: RunLimits = {},
    location: Location = settledLocation(),
  ): Promise<readonly DeviceArray[]> {
    this.#allocating = attributedTo(this.#device, location);
    const own: DeviceArray[] = [];
    try {
      return await withinLimits(limits, (limited) => this.#run(given, limited, own));
    } catch (error) {
      disposeAll(own);
      throw error;
    }
  }

  /** `own` takes what would leave with the results, so that it is given back where there are none. */
  async #run(
    given: readonly (DeviceArray | Tensor)[],
    limited: LimitedProgram,
    own: DeviceArray[],
  ): Promise<readonly DeviceArray[]> {
    const device = this.#device;
    // What was begun ends before anything is given back.
    const inputs = await waited(device, limited, () =>
      allOrNone(given.map((each, place) => this.#input(each, place, own))),
    );
    const { results, aliases } = this.#program.plan;
    const outputs = results.map((type, place) => {
      const taken = aliases.get(place);
      return (taken === undefined ? undefined : inputs[taken]) ?? this.#output(place, type, own);
    });
    await this.#allocating(() => this.#bound(inputs, outputs)).run(limited);
    const made = await allOrNone(
      outputs.map(async (array, place) => {
        if (this.#outputs.get(place) !== array) return array;
        const copy = this.#allocate(results[place] as TensorType);
        own.push(copy);
        await waited(device, limited, (...wait) => device.copy(array, copy, ...wait));
        return copy;
      }),
    );
    await waited(device, limited, (...wait) => device.synchronize(...wait));
    return made;
  }

  async #input(
    given: DeviceArray | Tensor,
    place: number,
    own: DeviceArray[],
  ): Promise<DeviceArray> {
    if (!("data" in given)) return this.#settled(given, place);
    const type = this.#program.plan.parameters[place] as TensorType;
    // What a result takes over leaves with it; other host tensors are written to the same place each time.
    const isTaken = this.takenOver.includes(place);
    const array = (isTaken ? undefined : this.#inputs.get(place)) ?? this.#allocate(type);
    if (isTaken) own.push(array);
    else this.#inputs.set(place, array);
    if (given.data.length === 0 || this.#written.get(place)?.deref() === given) return array;
    this.#written.delete(place);
    await this.#device.write(array, fromElements(array.dtype, array.shape, given.data));
    if (!isTaken) this.#written.set(place, new WeakRef(given));
    return array;
  }

  /** Where an array is bound: where it lies, unless it is a small one that lies elsewhere each time. */
  async #settled(given: DeviceArray, place: number): Promise<DeviceArray> {
    const before = this.#last.get(place);
    const runs = before?.array === given ? before.runs + 1 : 1;
    this.#last.set(place, { array: given, runs });
    if (given.bytes > fewBytes || this.takenOver.includes(place)) return given;
    const own = this.#inputs.get(place);
    const hasMoved = own !== undefined || (before !== undefined && runs === 1);
    if (!hasMoved || runs >= runsOfSettled) return given;
    const array = own ?? this.#allocate(this.#program.plan.parameters[place] as TensorType);
    this.#inputs.set(place, array);
    this.#written.delete(place);
    const flat = this.#allocating(() => given.reshape(array.shape));
    await this.#device.copy(flat, array);
    return array;
  }

  /** Where a result is written: small ones to the same place each time, to be copied; large ones to where they stay. */
  #output(place: number, type: TensorType, own: DeviceArray[]): DeviceArray {
    const array = this.#outputs.get(place) ?? this.#allocate(type);
    if (array.bytes <= fewBytes) this.#outputs.set(place, array);
    else own.push(array);
    return array;
  }

  #allocate(type: TensorType): DeviceArray {
    return this.#allocating(() => allocateFor(this.#device, type));
  }

  #bound(inputs: readonly DeviceArray[], outputs: readonly DeviceArray[]): BoundProgram {
    const arrays = [...inputs, ...outputs];
    const isSame = (each: Binding): boolean => each.arrays.every((array, i) => array === arrays[i]);
    const known = this.#bindings.find(isSame);
    const binding = known ?? { arrays, bound: this.#program.bind(inputs, outputs) };
    const others = this.#bindings.filter((each) => each !== known);
    for (const { bound } of others.slice(keptBindings - 1)) bound.dispose();
    this.#bindings = [binding, ...others.slice(0, keptBindings - 1)];
    return binding.bound;
  }

  dispose(): void {
    for (const { bound } of this.#bindings) bound.dispose();
    this.#bindings = [];
    for (const array of [...this.#inputs.values(), ...this.#outputs.values()]) array.dispose();
    this.#program.dispose();
  }
}

function attributedTo(device: Device, location: Location): Allocating {
  return (work) => atLocation(location, () => device.arrays.entrusted(work));
}
