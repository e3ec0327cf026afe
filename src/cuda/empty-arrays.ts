/**
 * What stands in for arrays without elements where TMA needs memory to be told of: the one element that a map says
 * is there (`ptx/tensor-map-shape.ts`). It is pinned memory of the host, which the GPU reaches like its own: it is ready
 * when it is written, whatever the streams are doing.
 *
 *   0     zeros           loaded where the map fills with zeros
 *   64    0x7ff7 …        loaded where it fills with NaN: the bits that TMA fills with
 *   128   anything        stored to, read by nobody
 */
import type { TensorMapPlan } from "../ptx/executable.ts";
import type { CudaContext } from "./context.ts";

/** TMA writes whole units of 16 bytes. */
const part = 64;
const parts = { zero: 0, nan: part, store: 2 * part } as const;
const nanBytes: readonly number[] = [0xf7, 0x7f];

export class EmptyArrays {
  readonly #context: CudaContext;
  #address: number | undefined;

  constructor(context: CudaContext) {
    this.#context = context;
  }

  /** The address of what a map of such an array describes. */
  standIn({ use, fill }: TensorMapPlan): number {
    this.#address ??= this.#make();
    return this.#address + parts[use === "store" ? "store" : fill];
  }

  dispose(): void {
    const address = this.#address;
    this.#address = undefined;
    if (address !== undefined) this.#context.driver.calls.cuMemFreeHost(address);
  }

  #make(): number {
    const bytes = 3 * part;
    const address = this.#context.make("cuMemHostAlloc", "pin host memory", bytes, 0);
    const content = this.#context.driver.viewHost(address, bytes);
    content.fill(0);
    for (let at = 0; at < part; at += nanBytes.length) content.set(nanBytes, parts.nan + at);
    return address;
  }
}
