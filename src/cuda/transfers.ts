/**
 * Copies between host and GPU, through staging buffers, piece by piece:
 *
 *   upload     host array ──copy──▶ buffer ──stream──▶ GPU         the array is free once all is in buffers
 *   download   GPU ──stream──▶ buffer ──copy──▶ host array         there once the last event has passed
 *
 * A transfer that finds no free buffer goes on when one comes back; the gate keeps later work behind it.
 */
import type { Completion } from "./completion.ts";
import type { CudaContext } from "./context.ts";
import type { Begun } from "./gate.ts";
import { largestBuffer } from "./staging.ts";
import type { Staging, StagingBuffer } from "./staging.ts";

export class Transfers {
  readonly #context: CudaContext;
  readonly #completion: Completion;
  readonly #staging: Staging;

  constructor(context: CudaContext, completion: Completion, staging: Staging) {
    this.#context = context;
    this.#completion = completion;
    this.#staging = staging;
  }

  /** The result resolves when the source is no longer needed. */
  upload(source: Uint8Array, address: number): Begun<void> {
    const issued = this.#pieces(source.byteLength, (offset, bytes, buffer) => {
      buffer.bytes.set(source.subarray(offset, offset + bytes));
      const { driver, stream } = this.#context;
      const target = address + offset;
      const result = driver.calls.cuMemcpyHtoDAsync(target, buffer.address, bytes, stream);
      this.#context.check(result, "cuMemcpyHtoDAsync", "copy to the GPU");
      // Nobody waits for this one; a failure shows at the next wait that somebody does.
      handled(this.#afterwards(buffer, () => undefined));
    });
    return { issued, result: handled(issued ?? Promise.resolve()) };
  }

  download(address: number, target: Uint8Array): Begun<void> {
    const arrivals: Promise<void>[] = [];
    const issued = this.#pieces(target.byteLength, (offset, bytes, buffer) => {
      const { driver, stream } = this.#context;
      const source = address + offset;
      const result = driver.calls.cuMemcpyDtoHAsync(buffer.address, source, bytes, stream);
      this.#context.check(result, "cuMemcpyDtoHAsync", "copy from the GPU");
      const arrival = this.#afterwards(buffer, () => {
        target.set(buffer.bytes.subarray(0, bytes), offset);
      });
      arrivals.push(handled(arrival));
    });
    const all = async (): Promise<void> => {
      await issued;
      await Promise.all(arrivals);
    };
    return { issued, result: handled(all()) };
  }

  /** Runs `then` when the stream has come this far; the buffer is free after that, whatever happens. */
  async #afterwards(buffer: StagingBuffer, then: () => void): Promise<void> {
    try {
      await this.#completion.wait();
      then();
    } catch (error) {
      // The copy may still be under way, and nothing else tells when it ends.
      this.#context.driver.calls.cuCtxSynchronize();
      throw error;
    } finally {
      this.#staging.give(buffer);
    }
  }

  /** Issues the pieces, as many as there are buffers for; a promise where that is not all of them. */
  #pieces(
    total: number,
    issue: (offset: number, bytes: number, buffer: StagingBuffer) => void,
  ): Promise<void> | undefined {
    let offset = 0;
    const advance = (): Promise<void> | undefined => {
      this.#context.enter();
      while (offset < total) {
        const bytes = Math.min(largestBuffer, total - offset);
        const buffer = this.#staging.take(bytes);
        if (buffer === undefined) return this.#staging.returned().then(advance);
        try {
          issue(offset, bytes, buffer);
        } catch (error) {
          this.#staging.give(buffer);
          throw error;
        }
        offset += bytes;
      }
      return undefined;
    };
    return advance();
  }
}

/** A promise whose failure may stay unheard: whoever wants to know still finds it. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
