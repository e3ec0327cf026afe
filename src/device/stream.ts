/**
 * Streams: work beside the device's own, for what is independent. Launches on two streams may run at the same time,
 * unless they share an array that one of them writes; those wait for each other, in the order of the calls:
 *
 *   device   upload a ── upload b                 ── download c
 *   side                        ╲── f(a) → c ────╱
 *   other                        ╲── f(b) → d ───── g(d)
 *
 * So a program gets what it would get without streams, only sooner. The simulator and the emulator do one thing
 * after the other; there a stream changes nothing.
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { madeBy, thisCopy } from "../support/duplicate-library.ts";
import type { BackendStream } from "./backend.ts";
import { disposeSymbol } from "./device-array.ts";
import type { CodeSettings, DeviceModule } from "./foreign-code.ts";
import type { DeviceArguments, Launchable } from "./types.ts";
import type { LaunchOptions } from "./wait-limits.ts";

/** What a stream needs from its device. */
export interface StreamOwner {
  readonly launch: (values: readonly unknown[], stream: Stream) => void;
  readonly forget: (stream: Stream) => void;
}

/** A queue of work on a device: launches in it run in order, those of different streams side by side. */
export class Stream {
  readonly #owner: StreamOwner;
  #stream: BackendStream | undefined;

  /** @internal */
  constructor(owner: StreamOwner, stream: BackendStream) {
    this.#owner = owner;
    this.#stream = stream;
  }

  /** @internal */
  get [madeBy](): object {
    return thisCopy;
  }

  /** Issues a kernel as `device.launch` does, on this stream. */
  launch<K extends Launchable>(
    definition: K,
    args: DeviceArguments<K>,
    options?: LaunchOptions,
  ): void;
  launch(module: DeviceModule, settings: CodeSettings): void;
  launch(...values: readonly unknown[]): void {
    this.#owner.launch(values, this);
  }

  /** Gives the stream back once what was issued on it has ended. Doing it twice is harmless. */
  dispose(): void {
    const stream = this.#stream;
    this.#stream = undefined;
    this.#owner.forget(this);
    stream?.dispose();
  }

  [disposeSymbol](): void {
    this.dispose();
  }

  /** @internal The back end's part, for the device that made it. */
  handleFor(owner: StreamOwner): BackendStream {
    if (this.#stream !== undefined && owner === this.#owner) return this.#stream;
    throw new TilewrightError({
      code: "TW4031",
      message: "this stream takes no work",
      expected: "a stream that this device made, and that was not disposed of",
      found: this.#stream === undefined ? "one that was disposed of" : "one of another device",
    });
  }
}
