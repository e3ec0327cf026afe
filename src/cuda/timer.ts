/** The GPU's own clock: the time between two points of the stream. */
import type { CudaContext } from "./context.ts";

const withTiming = 0;

export class Timer {
  readonly #context: CudaContext;
  readonly #events: number[] = [];

  constructor(context: CudaContext) {
    this.#context = context;
  }

  start(): void {
    this.#record();
  }

  stop(): void {
    this.#record();
  }

  /** The time between start and stop; both must have passed. */
  milliseconds(): number {
    const [start = 0, stop = 0] = this.#events;
    return this.#context.float32("cuEventElapsedTime", "measure time", start, stop);
  }

  dispose(): void {
    for (const event of this.#events) this.#context.driver.calls.cuEventDestroy(event);
  }

  #record(): void {
    const event = this.#context.make("cuEventCreate", "make an event", withTiming);
    this.#events.push(event);
    const { driver, stream } = this.#context;
    this.#context.check(
      driver.calls.cuEventRecord(event, stream),
      "cuEventRecord",
      "take the time",
    );
  }
}
