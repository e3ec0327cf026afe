/**
 * Arguments with data on the host that programs are given again and again, such as weights: from the second time on a device keeps a copy
 * of them, which later runs are bound to. What is given once, such as a batch, goes through memory that the program has for it.
 *
 *   f(x)    written into the program's own array
 *   f(x)    a copy is made                           x itself is never changed
 *   f(x)    the copy                                 until x is gone, the device is left, or an allocation would fail without it
 */
import type { DeviceArray } from "../device/device-array.ts";
import type { Device } from "../device/device.ts";
import { fromElements } from "../formats/hostarray.ts";
import type { Tensor } from "../graph/evaluate/value.ts";
import { heldElements } from "../graph/lower/storage.ts";

interface Copy {
  readonly array: DeviceArray;
  /** Runs that have been given it and have not ended. */
  runs: number;
}

export class ArgumentCopies {
  readonly #device: Device;
  /** Those that were arguments, with their copies once they have some. */
  readonly #seen = new WeakMap<Tensor, Copy | undefined>();
  readonly #copies = new Set<Copy>();
  readonly #unreachable = new FinalizationRegistry<Copy>((copy) => {
    this.#giveBack(copy);
  });

  constructor(device: Device) {
    this.#device = device;
  }

  /** Runs with the copies of arguments that have one; those whose memory results take over are handed on as they are. */
  async with<T>(
    given: readonly (DeviceArray | Tensor)[],
    donated: readonly number[],
    run: (inputs: readonly (DeviceArray | Tensor)[]) => Promise<T>,
  ): Promise<T> {
    const used: Copy[] = [];
    try {
      const inputs: (DeviceArray | Tensor)[] = [];
      for (const [place, each] of given.entries()) {
        const copy =
          "data" in each && !donated.includes(place) ? await this.#copyOf(each) : undefined;
        if (copy !== undefined) {
          copy.runs += 1;
          used.push(copy);
        }
        inputs.push(copy?.array ?? each);
      }
      return await run(inputs);
    } finally {
      for (const copy of used) copy.runs -= 1;
    }
  }

  async #copyOf(tensor: Tensor): Promise<Copy | undefined> {
    const known = this.#seen.get(tensor);
    if (known !== undefined && this.#copies.has(known)) return known;
    const held = heldElements(tensor.element);
    if (held === undefined || tensor.data.length === 0) return undefined;
    if (!this.#seen.has(tensor)) {
      this.#seen.set(tensor, undefined);
      return undefined;
    }
    const device = this.#device;
    const shape = [tensor.data.length];
    const array = device.arrays.entrusted(() => device.allocate(held.dtype, shape));
    const copy = { array, runs: 0 };
    this.#copies.add(copy);
    this.#seen.set(tensor, copy);
    this.#unreachable.register(tensor, copy, copy);
    try {
      await device.write(array, fromElements(held.dtype, shape, tensor.data));
    } catch (error) {
      this.#giveBack(copy);
      throw error;
    }
    return copy;
  }

  #giveBack(copy: Copy): void {
    this.#unreachable.unregister(copy);
    if (this.#copies.delete(copy)) copy.array.dispose();
  }

  /** Forgets what nobody needs any more. */
  forget(tensor: Tensor): void {
    const copy = this.#seen.get(tensor);
    if (copy !== undefined) this.#giveBack(copy);
  }

  /** Gives back what no run uses; says whether there was anything. */
  giveBackIdle(): boolean {
    const idle = [...this.#copies].filter(({ runs }) => runs === 0);
    for (const copy of idle) this.#giveBack(copy);
    return idle.length > 0;
  }

  dispose(): void {
    for (const copy of [...this.#copies]) this.#giveBack(copy);
  }
}
