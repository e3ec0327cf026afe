/** `open()`: the device that kernels run on. */
import { Device } from "../device/device.ts";
import type { DeviceOptions } from "../device/device-options.ts";
import { TuningTable } from "../device/tuning/table.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { DiagnosticCode } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { optionText } from "../support/options.ts";
import { checkOpenOptions, deviceNames } from "./open-options.ts";
import type { CheckedOptions, DeviceName, OpenOptions } from "./open-options.ts";

type Opener = (options: CheckedOptions & DeviceOptions) => Promise<Device>;

/** Back ends are loaded when they are asked for: a program needs one of them, and each is a good part of the library. */
const openers: { readonly [N in DeviceName]: Opener } = {
  gpu: async (options) => {
    const { openGpu } = await import("../cuda/open.ts");
    const { gpu, onPrint, memoryLimit } = options;
    const backend = await openGpu({
      ...(gpu !== undefined && { gpu }),
      ...(onPrint !== undefined && { onPrint }),
      ...(memoryLimit !== undefined && { memoryLimit }),
    });
    return new Device(backend, options);
  },
  cpu: async (options) => {
    const { threads, onPrint, memoryLimit } = options;
    const { openCpu } = await import("../cpu/device/open.ts");
    return new Device(openCpu({ threads, onPrint, memoryLimit }), options);
  },
  emulator: async (options) => {
    const { target, seed, checks, threads, onPrint, onFindings, memoryLimit } = options;
    const given = { target, seed, checks, threads, onPrint, onFindings, memoryLimit };
    const own = Object.fromEntries(
      Object.entries(given).filter(([, value]) => value !== undefined),
    );
    const { EmulatorBackend } = await import("./emulator-backend.ts");
    return new Device(new EmulatorBackend(own), options);
  },
  simulator: async (options) => {
    const { SimulatorBackend } = await import("./simulator-backend.ts");
    return new Device(new SimulatorBackend(options), options);
  },
};

/** What tells that a machine has no GPU to open; everything else is wrong with one that it has, or with the installation. */
const noGpu: ReadonlySet<DiagnosticCode> = new Set(["TW4501", "TW4502"]);

/**
 * Opens a device: the GPU, or the simulator where there is none, or the one named. `open("cpu")` runs kernels fast on any machine, without the
 * simulator's checks. Dispose of it when done.
 *
 * ```ts
 * const device = await open();
 * try {
 *   const { out } = await device.run(axpy, { x, y });
 * } finally {
 *   device.dispose();
 * }
 * ```
 */
export async function open(name?: DeviceName, options: OpenOptions = {}): Promise<Device> {
  const location = captureLocation();
  if (name !== undefined && !deviceNames.includes(name)) throw unknownDevice(name, location);
  const checked = checkOpenOptions(name, options, location);
  try {
    const measurements = await tuningOf(name, checked);
    const complete = { ...checked, ...(measurements && { measurements }) };
    return name === undefined ? await openBest(complete) : await openers[name](complete);
  } catch (error) {
    throw error instanceof TilewrightError ? error.located(location) : error;
  }
}

/** What the given files hold, after those that the environment names; undefined where neither names any. */
async function tuningOf(
  name: DeviceName | undefined,
  { tuning = [] }: CheckedOptions,
): Promise<TuningTable | undefined> {
  // Only a GPU has measurements of its own; for the others nothing of the driver's side is loaded.
  if (tuning.length === 0 && name !== undefined && name !== "gpu") return undefined;
  const { namedTuning, readTuning } = await import("../cuda/open.ts");
  const named = [...namedTuning(), ...tuning];
  if (named.length === 0) return undefined;
  const tables: TuningTable[] = [];
  for (const each of named) tables.push(typeof each === "string" ? await readTuning(each) : each);
  return TuningTable.union(tables);
}

async function openBest(options: CheckedOptions & DeviceOptions): Promise<Device> {
  try {
    return await openers.gpu(options);
  } catch (error) {
    if (!(error instanceof TilewrightError && noGpu.has(error.code))) throw error;
    const { warnOfFallback } = await import("../cuda/open.ts");
    warnOfFallback("simulator", error);
    return openers.simulator(options);
  }
}

/** What programs run on that no device was chosen for: the GPU, or the CPU where there is none. */
export async function openForPrograms(): Promise<Device> {
  // What makes a kernel slow is of no use to somebody who has not written it.
  const options = { onNotes: () => undefined };
  try {
    return await openers.gpu(options);
  } catch (error) {
    if (!(error instanceof TilewrightError && noGpu.has(error.code))) throw error;
    return openers.cpu(options);
  }
}

function unknownDevice(name: unknown, location: Location): TilewrightError {
  const isName = typeof name === "string";
  return new TilewrightError({
    code: "TW4012",
    message: isName ? `there is no device ${name}` : "open takes the name of a device first",
    location,
    expected: deviceNames.join(", "),
    found: isName ? name : optionText(name),
    remedy: isName
      ? undefined
      : 'write open("simulator", { … }), or open(undefined, { … }) for whatever the machine has',
  });
}
