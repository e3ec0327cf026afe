/**
 * Copies between host and GPU, through staging buffers, piece by piece:
 *
 *   upload     host array ──copy──▶ buffer ──stream──▶ GPU         all is in buffers when the call returns
 *   download   GPU ──stream──▶ buffer ──copy──▶ host array         there once the last event has passed
 *
 * A transfer that finds no free buffer goes on when one comes back; the issue queue keeps later work behind it.
 * What is left of an upload then is copied, so that the program may change its array when the call returns.
 */
import type { Completion } from "./completion.ts";
import type { CudaContext } from "./context.ts";
import { handled } from "./issue-queue.ts";
import type { Begun } from "./issue-queue.ts";
import { largestBuffer } from "./staging.ts";
import type { Staging, StagingBuffer } from "./staging.ts";

/** What a fill begins with: small enough for any staging buffer. */
const firstBytes = 4096;

export class Transfers {
  readonly #context: CudaContext;
  readonly #completion: Completion;
  readonly #staging: Staging;
  /** What is on its way to the host. */
  readonly #arriving = new Set<Promise<void>>();

  constructor(context: CudaContext, completion: Completion, staging: Staging) {
    this.#context = context;
    this.#completion = completion;
    this.#staging = staging;
  }

  /** Resolves when nothing is on its way to the host; undefined where nothing is. */
  get idle(): Promise<void> | undefined {
    if (this.#arriving.size === 0) return undefined;
    return Promise.allSettled(this.#arriving).then(() => undefined);
  }

  /** Copies what the source holds now; the result resolves when all of it is on the stream. */
  upload(source: Uint8Array, address: number): Begun<void> {
    let rest = source;
    let restStart = 0;
    let reached = 0;
    const issued = this.#pieces(source.byteLength, (offset, bytes, buffer) => {
      buffer.bytes.set(rest.subarray(offset - restStart, offset - restStart + bytes));
      reached = offset + bytes;
      const { driver, stream } = this.#context;
      const target = address + offset;
      const result = driver.calls.cuMemcpyHtoDAsync(target, buffer.address, bytes, stream);
      this.#context.check(result, "cuMemcpyHtoDAsync", "copy to the GPU");
      this.#completion.later(() => {
        this.#staging.give(buffer);
      });
    });
    if (issued !== undefined) {
      rest = source.slice(reached);
      restStart = reached;
    }
    return { issued, result: handled(issued ?? Promise.resolve()) };
  }

  /** Repeats a pattern: its first copies come from the host, every further step doubles what is there. */
  fill(address: number, bytes: number, pattern: Uint8Array): Begun<void> {
    const { driver, stream } = this.#context;
    if (pattern.every((byte) => byte === pattern[0])) {
      const result = driver.calls.cuMemsetD8Async(address, pattern[0] ?? 0, bytes, stream);
      this.#context.check(result, "cuMemsetD8Async", "fill memory");
      return { issued: undefined, result: Promise.resolve() };
    }
    const first = Math.min(bytes, pattern.length * Math.ceil(firstBytes / pattern.length));
    const start = new Uint8Array(first);
    for (let at = 0; at < first; at += pattern.length)
      start.set(pattern.subarray(0, first - at), at);
    const uploaded = this.upload(start, address);
    for (let filled = first; filled < bytes; filled *= 2)
      this.move(address, address + filled, Math.min(filled, bytes - filled));
    return uploaded;
  }

  /** Copies within the GPU. */
  move(source: number, target: number, bytes: number): void {
    const { driver, stream } = this.#context;
    const result = driver.calls.cuMemcpyDtoDAsync(target, source, bytes, stream);
    this.#context.check(result, "cuMemcpyDtoDAsync", "copy on the GPU");
  }

  download(address: number, target: Uint8Array): Begun<void> {
    const arrivals: Promise<void>[] = [];
    const issued = this.#pieces(target.byteLength, (offset, bytes, buffer) => {
      const { driver, stream } = this.#context;
      const source = address + offset;
      const result = driver.calls.cuMemcpyDtoHAsync(buffer.address, source, bytes, stream);
      this.#context.check(result, "cuMemcpyDtoHAsync", "copy from the GPU");
      const arrival = handled(this.#arrival(buffer, target.subarray(offset, offset + bytes)));
      arrivals.push(arrival);
      this.#arriving.add(arrival);
      void arrival.catch(() => undefined).then(() => this.#arriving.delete(arrival));
    });
    const all = async (): Promise<void> => {
      await issued;
      await Promise.all(arrivals);
    };
    return { issued, result: handled(all()) };
  }

  /** Moves what has arrived in the buffer to where it belongs. */
  async #arrival(buffer: StagingBuffer, target: Uint8Array): Promise<void> {
    try {
      await this.#completion.wait();
      target.set(buffer.bytes.subarray(0, target.byteLength));
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
        if (buffer === undefined) return this.#completion.wait().then(advance);
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
