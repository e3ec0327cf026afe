/**
 * Memory of the GPU. Where the driver has pools, memory is taken and given back in the order of the
 * stream, so that neither waits for anything, and what is given back stays with the process for the
 * next who asks:
 *
 *   take ── launch ── give back ── take ── launch       the second take gets the same bytes at once
 *
 * What is in use is counted, and bounded where the program has set a limit.
 */
import { MemoryAccount } from "../device/memory-account.ts";
import type { MemoryUse } from "../device/memory-account.ts";
import type { CudaContext } from "./context.ts";
import { dataView } from "./driver.ts";
import type { HostMemory } from "./driver.ts";
import { refusedMemory } from "./errors.ts";
import { outOfMemory, success } from "./results.ts";

/** Numbers of CUmemPool_attribute. */
const poolAttributes = { releaseThreshold: 4, reservedBytes: 5 } as const;

export class DeviceMemory {
  readonly #context: CudaContext;
  /** Where the driver writes addresses. */
  readonly #result: HostMemory;
  readonly #view: DataView;
  readonly #pool: number | undefined;
  readonly #account: MemoryAccount;
  /** Bytes by address. */
  readonly #taken = new Map<number, number>();

  constructor(context: CudaContext, limit?: number) {
    this.#account = new MemoryAccount(limit);
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

  /** The address of so many bytes; 0 for none. Work on the stream, the main one unless given, may use them at once. */
  take(bytes: number, stream = this.#context.stream): number {
    if (bytes === 0) return 0;
    const address = this.#account.take(bytes, () => this.#allocate(bytes, stream));
    this.#taken.set(address, bytes);
    return address;
  }

  #allocate(bytes: number, stream: number): number {
    const [call, result] = this.#ask(bytes, stream);
    if (result === success) return Number(this.#view.getBigUint64(0, true));
    if (result !== outOfMemory || this.#context.loss !== undefined)
      throw this.#failure(call, result, bytes);
    // What was given back may still be in use, or lie in pieces: wait for it, and start afresh.
    this.#context.driver.calls.cuCtxSynchronize();
    this.trim();
    const [again, second] = this.#ask(bytes, stream);
    if (second !== success) throw this.#failure(again, second, bytes);
    return Number(this.#view.getBigUint64(0, true));
  }

  /** Gives memory back once the work issued on the stream so far is done with it. */
  give(address: number, stream = this.#context.stream): void {
    const bytes = this.#taken.get(address);
    if (bytes === undefined) return;
    this.#taken.delete(address);
    this.#account.give(bytes);
    if (this.#context.loss !== undefined) return;
    const { driver } = this.#context;
    const [call, result] =
      this.#pool === undefined
        ? (["cuMemFree", driver.calls.cuMemFree(address)] as const)
        : (["cuMemFreeAsync", driver.calls.cuMemFreeAsync(address, stream)] as const);
    this.#context.check(result, call, "give memory back");
  }

  /** What is in use, and what the driver holds for this process. */
  get use(): MemoryUse {
    if (this.#pool === undefined || this.#context.loss !== undefined) return this.#account.use();
    const { reservedBytes } = poolAttributes;
    const { address } = this.#result;
    const { calls } = this.#context.driver;
    const result = calls.cuMemPoolGetAttribute(this.#pool, reservedBytes, address);
    this.#context.check(result, "cuMemPoolGetAttribute", "look at its memory pool");
    return this.#account.use(Number(this.#view.getBigUint64(0, true)));
  }

  /** Gives back to the driver what is kept for later. */
  trim(): void {
    if (this.#pool !== undefined) this.#context.driver.calls.cuMemPoolTrimTo(this.#pool, 0);
  }

  dispose(): void {
    const { driver, loss } = this.#context;
    if (loss === undefined) this.trim();
    driver.freeHost(this.#result);
  }

  #ask(bytes: number, stream: number): readonly ["cuMemAlloc" | "cuMemAllocAsync", number] {
    const { driver } = this.#context;
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
        poolAttributes.releaseThreshold,
        this.#result.address,
      ),
      "cuMemPoolSetAttribute",
      "keep memory in its pool",
    );
    return pool;
  }
}
