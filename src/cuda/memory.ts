/**
 * Memory of the GPU. Where the driver has pools, memory is taken and given back in the order of the
 * stream, so that neither waits for anything, and what is given back stays with the process for the
 * next who asks:
 *
 *   take ── launch ── give back ── take ── launch       the second take gets the same bytes at once
 */
import type { CudaContext } from "./context.ts";
import { dataView } from "./driver.ts";
import type { HostMemory } from "./driver.ts";
import { refusedMemory } from "./errors.ts";
import { outOfMemory, success } from "./results.ts";

const releaseThreshold = 4;

export class DeviceMemory {
  readonly #context: CudaContext;
  /** Where the driver writes addresses. */
  readonly #result: HostMemory;
  readonly #view: DataView;
  readonly #pool: number | undefined;

  constructor(context: CudaContext) {
    this.#context = context;
    this.#result = context.driver.allocateHost(8);
    this.#view = dataView(this.#result);
    try {
      if (context.gpu.memoryPools) this.#pool = this.#openPool();
    } catch (error) {
      context.driver.freeHost(this.#result);
      throw error;
    }
  }

  /** The address of so many bytes; 0 for none. */
  take(bytes: number): number {
    if (bytes === 0) return 0;
    const [call, result] = this.#ask(bytes);
    if (result === success) return Number(this.#view.getBigUint64(0, true));
    if (result !== outOfMemory || this.#context.loss !== undefined)
      throw this.#failure(call, result, bytes);
    // What was given back may still be in use, or lie in pieces: wait for it, and start afresh.
    const { calls } = this.#context.driver;
    calls.cuCtxSynchronize();
    if (this.#pool !== undefined) calls.cuMemPoolTrimTo(this.#pool, 0);
    const [again, second] = this.#ask(bytes);
    if (second !== success) throw this.#failure(again, second, bytes);
    return Number(this.#view.getBigUint64(0, true));
  }

  /** Gives memory back once the work issued so far is done with it. */
  give(address: number): void {
    if (address === 0 || this.#context.loss !== undefined) return;
    const { driver, stream } = this.#context;
    const [call, result] =
      this.#pool === undefined
        ? (["cuMemFree", driver.calls.cuMemFree(address)] as const)
        : (["cuMemFreeAsync", driver.calls.cuMemFreeAsync(address, stream)] as const);
    this.#context.check(result, call, "give memory back");
  }

  dispose(): void {
    const { driver, loss } = this.#context;
    if (this.#pool !== undefined && loss === undefined) driver.calls.cuMemPoolTrimTo(this.#pool, 0);
    driver.freeHost(this.#result);
  }

  #ask(bytes: number): readonly ["cuMemAlloc" | "cuMemAllocAsync", number] {
    const { driver, stream } = this.#context;
    const { address } = this.#result;
    return this.#pool === undefined
      ? ["cuMemAlloc", driver.calls.cuMemAlloc(address, bytes)]
      : ["cuMemAllocAsync", driver.calls.cuMemAllocAsync(address, bytes, stream)];
  }

  #failure(call: "cuMemAlloc" | "cuMemAllocAsync", result: number, bytes: number): Error {
    if (result !== outOfMemory) return this.#context.failure(result, call, "allocate memory");
    return refusedMemory(call, result, bytes, this.#context.memory());
  }

  /** The device's own pool, told to keep what is given back. */
  #openPool(): number {
    const pool = this.#context.make(
      "cuDeviceGetDefaultMemPool",
      "open its memory pool",
      this.#context.device,
    );
    this.#view.setBigUint64(0, 2n ** 64n - 1n, true);
    this.#context.check(
      this.#context.driver.calls.cuMemPoolSetAttribute(
        pool,
        releaseThreshold,
        this.#result.address,
      ),
      "cuMemPoolSetAttribute",
      "keep memory in its pool",
    );
    return pool;
  }
}
