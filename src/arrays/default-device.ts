/**
 * Where arrays are computed while no device is chosen: on the GPU, or on the CPU where there is none. It is opened by the first program that is
 * worth compiling, stays open, and does not keep the process alive. Where nothing can be compiled, the evaluator computes, and says so once.
 *
 *   await add(x, 1).values()        little work: the evaluator, at once (evaluator-work.ts)
 *   await step(x, y)                a device, opened for it
 *   a page without WebAssembly      the evaluator, with a note
 */
import type { Device } from "../device/device.ts";
import { warn } from "../support/console.ts";
import type { DiagnosticCode } from "../support/diagnostics.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { RankRunner } from "./rank-runner.ts";

/** A device that was chosen, or the default one, which may not be open yet. */
export interface Place {
  readonly isDefault: boolean;
  /** The device, once it is there. */
  readonly device: Device | undefined;
  /** Ranks run whole programs by themselves. */
  readonly ranks?: RankRunner;
  /** The device; undefined where the evaluator has to do. */
  open(): Promise<Device | undefined>;
}

const places = new WeakMap<Device, Place>();

/** A device as a place. */
export function placeOf(device: Device): Place {
  const known = places.get(device);
  if (known !== undefined) return known;
  const place = { isDefault: false, device, open: () => Promise.resolve(device) };
  places.set(device, place);
  return place;
}

/** What tells that nothing is compiled here. */
const notHere: ReadonlySet<DiagnosticCode> = new Set(["TW4703"]);

/** What tells that a program has what no device runs. */
const noDeviceRuns: ReadonlySet<DiagnosticCode> = new Set(["TW9601", "TW9602", "TW4710"]);

/** Whether the evaluator runs what a device has refused to. */
export function isForEvaluator(error: unknown): error is TilewrightError {
  return error instanceof TilewrightError && noDeviceRuns.has(error.code);
}

const told = new Set<DiagnosticCode>();

/** Says once for each reason that the evaluator computes, which is slow. */
export function tellEvaluator({ code, summary }: TilewrightError): void {
  if (told.has(code)) return;
  told.add(code);
  warn(
    `tilewright: programs run on the evaluator, which is slow: ${summary} (${code}); useDevice("evaluator") says nothing`,
  );
}

/** The default device, opened by `openBest` when it is first needed. */
export class DefaultPlace implements Place {
  readonly isDefault = true;
  readonly #openBest: () => Promise<Device>;
  #opened: Promise<Device | undefined> | undefined;
  device: Device | undefined;

  constructor(openBest: () => Promise<Device>) {
    this.#openBest = openBest;
  }

  open(): Promise<Device | undefined> {
    return (this.#opened ??= this.#open());
  }

  async #open(): Promise<Device | undefined> {
    try {
      this.device = await this.#openBest();
      return this.device;
    } catch (error) {
      if (error instanceof TilewrightError && notHere.has(error.code)) {
        tellEvaluator(error);
        return undefined;
      }
      // Something else is wrong, and may be no more by the next call.
      this.#opened = undefined;
      throw error;
    }
  }
}
