/**
 * What a device does to whole arrays, besides running kernels on them: filling, writing, copying, reading. All of it
 * takes its turn among launches. Copies between devices go through the host, and each device does its part in turn:
 *
 *   gpu         launch ── download ── launch                      the array as it is after the first launch
 *                             ╲
 *   simulator        launch ── receive ── launch                  the second launch finds what came
 */
import type { DType, DTypeName, HostValue } from "../formats/dtype.ts";
import { fromNumbers, toElements } from "../formats/hostarray.ts";
import type { GivenArray, HostArray } from "../formats/hostarray.ts";
import { elementCount } from "../formats/shape.ts";
import { requireDType } from "../formats/argument-checks.ts";
import { readElement } from "../formats/values.ts";
import type { KernelInterface } from "../ir/node.ts";
import type { ArgumentValue, CollectedInputs } from "./arguments.ts";
import type { Backend } from "./backend.ts";
import { withLists } from "./argument-lists.ts";
import { arrayParameters, outputShape } from "./binding.ts";
import {
  fillPattern,
  flatIndex,
  requirePointer,
  requireSameElements,
  requireValue,
  sharedTensor,
  withoutAddresses,
  zeroPattern,
} from "./array-access.ts";
import type { SharedTensor } from "./array-access.ts";
import { DeviceArray } from "./device-array.ts";
import type { ArrayRegistry } from "./device-array.ts";
import { requireDeviceArray, requireHostArray } from "./argument-checks.ts";
import { fetchedElements, gather, scatter } from "./strided-view.ts";

export class ArrayOperations {
  readonly #backend: Backend;
  readonly #arrays: ArrayRegistry;

  constructor(backend: Backend, arrays: ArrayRegistry) {
    this.#backend = backend;
    this.#arrays = arrays;
  }

  async zeros(array: DeviceArray): Promise<void> {
    const pattern = zeroPattern(array.dtype);
    await this.#disposingOnFailure(array, () => this.#filled(array, pattern));
  }

  async fill<N extends DTypeName>(array: DeviceArray<N>, value: HostValue<N>): Promise<void> {
    requireDeviceArray("fill", array);
    requireValue(array.dtype, value);
    if (array.contiguous) return this.#filled(array, fillPattern(array.dtype, value));
    const { dtype, shape } = array;
    const values = fromNumbers(dtype, shape, new Array(elementCount(shape)).fill(value));
    return this.#replaced(array, Promise.resolve(values));
  }

  async write<N extends DTypeName>(array: DeviceArray<N>, values: GivenArray<N>): Promise<void> {
    requireDeviceArray("write", array);
    const checked = requireHostArray("write", values);
    requireSameElements("write", array, checked);
    if (array.contiguous) return this.#backend.upload(checked, array.allocationFor(this.#arrays));
    const kept = { ...checked, data: checked.data.slice() as typeof checked.data };
    return this.#replaced(array, Promise.resolve(kept));
  }

  async copy<N extends DTypeName>(from: DeviceArray<N>, to: DeviceArray<N>): Promise<void> {
    requireDeviceArray("copy", from);
    requireDeviceArray("copy", to);
    requireSameElements("copy", to, from);
    const target = to.allocationFor(this.#arrays);
    if (from.belongsTo(this.#arrays) && from.contiguous && to.contiguous)
      return this.#backend.copy(from.allocationFor(this.#arrays), target);
    const values = from.fetch();
    return to.contiguous ? this.#backend.receive(values, target) : this.#replaced(to, values);
  }

  async element<N extends DTypeName>(
    array: DeviceArray<N>,
    index: readonly number[],
  ): Promise<HostValue<N>> {
    requireDeviceArray("element", array);
    const position = flatIndex(array, index);
    // Two elements of 4 bits share a byte, so the pair is fetched.
    const within = array.dtype.bits === 4 ? position % 2 : 0;
    const offset = ((position - within) * array.dtype.bits) / 8;
    const allocation = array.allocationFor(this.#arrays);
    const part = this.#backend.view(allocation, offset, array.dtype, [within + 1]);
    const found = await this.#backend.download(array.dtype, [within + 1], part);
    return readElement(array.dtype, toElements(found), within);
  }

  async upload<N extends DTypeName>(array: DeviceArray<N>, values: HostArray<N>): Promise<void> {
    await this.#disposingOnFailure(array, () =>
      this.#backend.upload(values, array.allocationFor(this.#arrays)),
    );
  }

  async download<N extends DTypeName>(array: DeviceArray<N>): Promise<HostArray<N>> {
    const allocation = array.allocationFor(this.#arrays);
    if (array.contiguous) return this.#backend.download(array.dtype, array.shape, allocation);
    return gather(await this.#span(array), array);
  }

  share(array: DeviceArray): SharedTensor {
    requireDeviceArray("share", array);
    const memory = this.#backend.addressOf(array.allocationFor(this.#arrays));
    if (memory === undefined) throw withoutAddresses("share", this.#backend.name);
    return sharedTensor(array, memory);
  }

  wrap<N extends DTypeName>(
    pointer: bigint | number,
    dtype: DType<N>,
    shape: readonly number[],
  ): DeviceArray<N> {
    requireDType(dtype);
    elementCount(shape);
    const allocation = this.#backend.wrap(requirePointer(pointer), dtype, shape);
    if (allocation === undefined) throw withoutAddresses("wrap", this.#backend.name);
    return new DeviceArray(this.#arrays, dtype, shape, allocation);
  }

  /**
   * The arguments of a run: device arrays for the host arrays among its inputs, being uploaded, and fresh ones for its
   * outputs.
   */
  materialize(
    kernel: KernelInterface,
    { hostArrays, others, dimensions }: CollectedInputs,
    run: {
      readonly allocate: (dtype: DType, shape: readonly number[]) => DeviceArray;
      readonly pending: Promise<unknown>[];
    },
  ): { readonly [name: string]: ArgumentValue } {
    const args = new Map<string, ArgumentValue>(others);
    for (const [name, values] of hostArrays) {
      const array = run.allocate(values.dtype, values.shape);
      args.set(name, array);
      run.pending.push(this.#backend.upload(values, array.allocationFor(this.#arrays)));
    }
    for (const parameter of arrayParameters(kernel))
      if (parameter.role === "output")
        args.set(
          parameter.name,
          run.allocate(parameter.type.dtype, outputShape(parameter, dimensions)),
        );
    return Object.fromEntries(args);
  }

  /** The outputs and in-out arrays of a run, on the host. */
  async results(
    kernel: KernelInterface,
    args: { readonly [name: string]: ArgumentValue },
  ): Promise<{ readonly [name: string]: HostArray | readonly HostArray[] }> {
    const downloads: Promise<readonly [string, HostArray]>[] = [];
    for (const { name, role } of kernel.parameters) {
      const array = args[name];
      if ((role === "output" || role === "inout") && array instanceof DeviceArray)
        downloads.push(this.download(array).then((result) => [name, result] as const));
    }
    return withLists(await Promise.all(downloads));
  }

  #filled(array: DeviceArray, pattern: Uint8Array): Promise<void> {
    return this.#backend.fill(array.allocationFor(this.#arrays), pattern);
  }

  /** Everything from a view's first element to its last. */
  #span<N extends DTypeName>(array: DeviceArray<N>): Promise<HostArray<N>> {
    const count = fetchedElements(array.dtype, array);
    const part = this.#backend.view(array.allocationFor(this.#arrays), 0, array.dtype, [count]);
    return this.#backend.download(array.dtype, [count], part);
  }

  /** Writes a view with strides: nothing comes between fetching its span and writing that back. */
  #replaced<N extends DTypeName>(
    array: DeviceArray<N>,
    values: Promise<HostArray<N>>,
  ): Promise<void> {
    const changed = Promise.all([this.#span(array), values]).then(([span, given]) =>
      scatter(span, array, given),
    );
    return this.#backend.receive(changed, array.allocationFor(this.#arrays));
  }

  async #disposingOnFailure(array: DeviceArray, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      array.dispose();
      throw error;
    }
  }
}
