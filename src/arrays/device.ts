/**
 * Arrays on a device. Once a device is chosen, compiled functions and pending operations run there: their results stay in
 * its memory until they are read, and are given back when they are disposed of or nobody can reach them any more.
 *
 *   await useDevice(await open("gpu"));
 *   w = step(w, batch);              issued, not awaited; w lies on the GPU
 *   console.log(await loss.values());
 *
 * Work is issued in the order of the calls: a program's arena serves one run at a time.
 */
import { disposeAll } from "../device/device-array.ts";
import type { DeviceArray } from "../device/device-array.ts";
import type { Device } from "../device/device.ts";
import { waitWithin } from "../device/wait-limits.ts";
import { WorkQueue } from "../device/work-queue.ts";
import { toElements } from "../formats/hostarray.ts";
import { tensor } from "../graph/evaluate/value.ts";
import type { Tensor } from "../graph/evaluate/value.ts";
import { tensorTypeOf } from "../graph/lower/storage.ts";
import type { MatmulPrecision } from "../graph/ops/matmul-precision.ts";
import type { GraphRegion, GraphValue } from "../graph/ops/node.ts";
import { sizeOf } from "../graph/ops/types.ts";
import type { TensorType } from "../graph/ops/types.ts";
import { captureLocation, settledLocation } from "../support/location.ts";
import { LimitedProgram } from "../support/run-limits.ts";
import type { DeviceName } from "../runtime/open-options.ts";
import type { RunLimits } from "../support/run-limits.ts";
import { DevicePrograms, keptPrograms } from "./programs.ts";

/** A result that a device computes or has computed. */
interface Held {
  readonly type: TensorType;
  readonly device: Device;
  readonly ready: Promise<DeviceArray>;
  isDisposed: boolean;
}

let chosen: Device | undefined;
const queue = new WorkQueue();
const held = new WeakMap<GraphValue, Held>();
/** Of the device that is chosen, and of those that are being left. */
const programs = new Map<Device, DevicePrograms>();
/** Values that are made while a scope is open, the innermost last. */
const openScopes: GraphValue[][] = [];

/** Options of `useDevice`. */
export interface UseDeviceOptions {
  /**
   * Programs of compiled functions that the device keeps loaded, of all functions together; 128 unless given. The one that has not run for
   * longest makes room, and is loaded again when it is called.
   */
  readonly cacheSize?: number | undefined;
}

/**
 * Chooses where arrays are computed from now on: a device, or one by its name, such as `"cpu"`, which is opened once and stays open;
 * without one, the evaluator. Resolves when the programs of the device that was chosen before have run and are given back; await it before
 * disposing of that device.
 */
export async function useDevice(
  wanted?: Device | DeviceName,
  options: UseDeviceOptions = {},
): Promise<void> {
  const device = typeof wanted === "string" ? await opened(wanted) : wanted;
  const before = chosen;
  const { cacheSize } = options;
  const left =
    before === undefined || (before === device && cacheSize === undefined)
      ? undefined
      : programs.get(before);
  chosen = device;
  if (before !== undefined && left !== undefined) programs.delete(before);
  if (device !== undefined && cacheSize !== undefined)
    programs.set(device, new DevicePrograms(device, cacheSize));
  if (left !== undefined)
    await queue.run(async () => {
      left.dispose();
    });
}

/** Devices that were chosen by name: they stay open, since arrays lie on them. */
const named = new Map<DeviceName, Promise<Device>>();

async function opened(name: DeviceName): Promise<Device> {
  const known = named.get(name);
  if (known !== undefined) return known;
  const { open } = await import("../runtime/open.ts");
  const device = open(name);
  named.set(name, device);
  // One that does not open is asked for again by the next call.
  device.catch(() => named.delete(name));
  return device;
}

export function chosenDevice(): Device | undefined {
  return chosen;
}

/** Whether a value lies on a device, or will. */
export function isHeld(value: GraphValue): boolean {
  return held.has(value);
}

/**
 * Runs `work` in its turn. Where its signal is aborted before, that is told at once, and `otherwise` takes the turn; its
 * time begins with its turn, since calls are not awaited.
 */
async function inTurn<T>(
  work: () => Promise<T>,
  { signal }: RunLimits,
  otherwise: () => Promise<void>,
): Promise<T> {
  const limited = new LimitedProgram({ signal });
  let hasBegun = false;
  const begin = (): Promise<T> => {
    hasBegun = true;
    return work();
  };
  try {
    return await queue.run(begin, limited);
  } finally {
    limited.end();
    if (!hasBegun) void queue.run(otherwise);
  }
}

function programsOf(device: Device): DevicePrograms {
  const known = programs.get(device) ?? new DevicePrograms(device, keptPrograms);
  programs.set(device, known);
  return known;
}

/** An argument of a run: a value of the device, or data. */
export interface DeviceInput {
  readonly value: GraphValue;
  readonly data: Tensor | undefined;
}

export interface DeviceRun {
  /** Places of inputs whose memory the results may take. */
  readonly donated?: readonly number[];
  readonly limits?: RunLimits;
  readonly matmulPrecision?: MatmulPrecision;
  /** Whether the graph is a compiled function's, which will run it again. */
  readonly isKept?: boolean;
}

/** Runs a graph on the chosen device. `targets` are the values that its results become. */
export function runOnDevice(
  device: Device,
  graph: GraphRegion,
  inputs: readonly DeviceInput[],
  targets: readonly GraphValue[],
  { donated = [], limits = {}, matmulPrecision = "f32", isKept = false }: DeviceRun = {},
): void {
  // An array may be disposed of once the call is made: its memory goes after the run.
  const sources = inputs.map(({ value, data }) => data ?? requireHeld(value));
  const given = donated.flatMap((place) => {
    const source = sources[place];
    return source !== undefined && "ready" in source ? [source] : [];
  });
  for (const entry of given) {
    entry.isDisposed = true;
    forgotten.unregister(entry);
  }
  // They are given back when the device is left, which is after this run.
  const mine = programsOf(device);
  const location = settledLocation();
  const giveUp = async (taken: ReadonlySet<Tensor | Held | undefined>): Promise<void> => {
    // What was given to a run that failed is gone, too.
    disposeAll(await settledArrays(given.filter((entry) => !taken.has(entry))));
  };
  const work = async (): Promise<readonly DeviceArray[]> => {
    let taken: ReadonlySet<Tensor | Held | undefined> = new Set();
    try {
      const arrays = await Promise.all(sources.map((source) => inputArray(device, source)));
      const results = await mine.run(
        { graph, donated, limits, matmulPrecision, isKept, location },
        arrays,
      );
      taken = new Set([...results.taken].map((place) => sources[place]));
      return results.outputs;
    } finally {
      await giveUp(taken);
    }
  };
  const run = inTurn(work, limits, () => giveUp(new Set()));
  for (const [i, value] of targets.entries())
    hold(
      value,
      device,
      run.then((outputs) => outputs[i] as DeviceArray),
    );
}

/** Gives back what a device keeps for a graph, after the runs that were asked for. */
export function forgetPrograms(graph: GraphRegion): void {
  for (const each of programs.values())
    void queue.run(async () => {
      each.forget(graph);
    });
}

/** Gives back what devices keep of data that is disposed of, after the runs that were asked for. */
export function forgetCopies(data: Tensor): void {
  for (const each of programs.values())
    void queue.run(async () => {
      each.forgetCopy(data);
    });
}

/** How many programs hold memory of a device now. */
export function livePrograms(device: Device): number {
  return programs.get(device)?.live ?? 0;
}

/** The arrays of values that were computed. */
async function settledArrays(entries: readonly Held[]): Promise<readonly DeviceArray[]> {
  const settled = await Promise.allSettled(entries.map(({ ready }) => ready));
  return settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
}

/** Says that a value was computed, to the scope that is open. */
export function noteMade(value: GraphValue): void {
  openScopes.at(-1)?.push(value);
}

/** Runs `body`; gives what it returned and the values that were computed for it. */
export function tracked<R>(body: () => R): {
  readonly result: R;
  readonly made: readonly GraphValue[];
} {
  const made: GraphValue[] = [];
  openScopes.push(made);
  try {
    return { result: body(), made };
  } finally {
    openScopes.pop();
  }
}

/** Device memory of values that nobody reaches any more. */
const forgotten = new FinalizationRegistry<Held>((entry) => {
  void disposeHeld(entry);
});

function hold(value: GraphValue, device: Device, ready: Promise<DeviceArray>): void {
  const entry: Held = { type: tensorTypeOf(value), device, ready, isDisposed: false };
  ready.catch(() => undefined);
  held.set(value, entry);
  noteMade(value);
  forgotten.register(value, entry, entry);
}

async function disposeHeld(entry: Held): Promise<void> {
  if (entry.isDisposed) return;
  entry.isDisposed = true;
  forgotten.unregister(entry);
  try {
    await queue.run(async () => {
      (await entry.ready).dispose();
    });
  } catch {
    // What was never computed holds no memory; who reads it hears why.
  }
}

/** Gives a value's memory on a device back, after what was asked for before; on the host there is nothing to give. */
export function disposeHeldValue(value: GraphValue): void {
  const entry = held.get(value);
  if (entry !== undefined) void disposeHeld(entry);
}

function requireHeld(value: GraphValue): Held {
  const entry = held.get(value);
  if (entry !== undefined) return entry;
  throw new Error("a device holds the values that it is asked for");
}

/** An array of the device, or the data of what lies elsewhere. */
async function inputArray(device: Device, source: Tensor | Held): Promise<DeviceArray | Tensor> {
  if (!("ready" in source)) return source;
  return source.device === device ? source.ready : fetched(source);
}

async function fetched({ device, ready, type }: Held): Promise<Tensor> {
  const elements = toElements(await device.download(await ready));
  return tensor(
    type.element,
    type.shape,
    sizeOf(type.shape) === 0 ? elements.slice(0, 0) : elements,
  );
}

/** Resolves when a value that lies on a device is computed. */
export async function ready(value: GraphValue): Promise<void> {
  const entry = requireHeld(value);
  await queue.run(async () => {
    await entry.ready;
    await entry.device.synchronize();
  });
}

/** The data of a value that lies on a device, waited for as long as the limits allow; `begun` with the same limits, or before. */
export async function downloaded(
  value: GraphValue,
  limits: RunLimits,
  begun: boolean,
): Promise<Tensor> {
  const entry = requireHeld(value);
  const { stopsKernels } = entry.device;
  // A run that has failed leaves nothing to wait for.
  const work = Promise.all([queue.run(() => fetched(entry)), entry.ready]).then(([data]) => data);
  const waited = {
    stopsKernels,
    get isStopping() {
      return stopsKernels && (begun || entry.device.isStopping);
    },
  };
  return waitWithin(work, limits, waited, captureLocation());
}
