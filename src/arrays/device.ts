/**
 * Arrays on a device: the one that is chosen, or the default one (default-device.ts). Compiled functions and pending operations run there: their
 * results stay in its memory until they are read, and are given back when they are disposed of or nobody can reach them any more.
 *
 *   await useDevice("cpu");
 *   w = step(w, batch);              issued, not awaited; w lies on the device
 *   console.log(await loss.values());
 *
 * Work is issued in the order of the calls: a program's arena serves one run at a time.
 */
import type { DeviceArray } from "../device/device-array.ts";
import type { Device } from "../device/device.ts";
import { waitWithin } from "../device/wait-limits.ts";
import { WorkQueue } from "../device/work-queue.ts";
import { toElements } from "../formats/hostarray.ts";
import { evaluateWithBreaks, isTensorDatum } from "../graph/evaluate/index.ts";
import { tensor } from "../graph/evaluate/value.ts";
import type { Tensor } from "../graph/evaluate/value.ts";
import { heldType } from "../graph/lower/storage.ts";
import type { MatmulPrecision } from "../graph/ops/matmul-precision.ts";
import { moduleOf } from "../graph/ops/node.ts";
import type { GraphRegion, GraphValue } from "../graph/ops/node.ts";
import { sizeOf } from "../graph/ops/types.ts";
import type { TensorType } from "../graph/ops/types.ts";
import { captureLocation, settledLocation } from "../support/location.ts";
import { LimitedProgram } from "../support/run-limits.ts";
import type { DeviceName } from "../runtime/open-options.ts";
import type { RunLimits } from "../support/run-limits.ts";
import { cpuTarget, defaultTarget } from "../targets/target.ts";
import type { Target } from "../targets/target.ts";
import { DefaultPlace, isForEvaluator, placeOf, tellEvaluator } from "./default-device.ts";
import type { Place } from "./default-device.ts";
import { DevicePrograms, keptPrograms } from "./programs.ts";
import { RankArray } from "./rank-runner.ts";

/** A result that a device computes or has computed. */
interface Held {
  readonly type: TensorType;
  readonly place: Place;
  /** An array of the device, or of the host where the evaluator has stood in for it. */
  readonly ready: Promise<DeviceArray | RankArray | Tensor>;
  isDisposed: boolean;
}

/** The GPU, or the CPU where there is none. */
const defaultPlace = new DefaultPlace(async () => {
  const { openForPrograms } = await import("../runtime/open.ts");
  return openForPrograms();
});

/** Undefined for the evaluator. */
let chosen: Place | undefined = defaultPlace;
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

/** What `useDevice` takes by name. */
export type ArrayDeviceName = DeviceName | "evaluator";

/**
 * Chooses where arrays are computed from now on: a device, or one by its name, such as `"cpu"`, which is opened once and stays open, or
 * `"evaluator"`; without one, the default again. Resolves when the programs of the device that was chosen before have run and are given back;
 * await it before disposing of that device.
 */
export async function useDevice(
  wanted?: Device | ArrayDeviceName,
  options: UseDeviceOptions = {},
): Promise<void> {
  const place = await wantedPlace(wanted);
  const { cacheSize } = options;
  const before = chosen;
  const device = cacheSize === undefined ? place?.device : await place?.open();
  const last = before?.device;
  const left =
    last === undefined || (last === device && cacheSize === undefined)
      ? undefined
      : programs.get(last);
  chosen = place;
  if (last !== undefined && left !== undefined) programs.delete(last);
  if (device !== undefined && cacheSize !== undefined)
    programs.set(device, new DevicePrograms(device, cacheSize));
  if (left !== undefined)
    await queue.run(async () => {
      left.dispose();
    });
}

async function wantedPlace(
  wanted: Device | ArrayDeviceName | undefined,
): Promise<Place | undefined> {
  if (wanted === undefined) return defaultPlace;
  if (wanted === "evaluator") return undefined;
  return placeOf(typeof wanted === "string" ? await opened(wanted) : wanted);
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

/** Where programs run; undefined for the evaluator. */
export function chosenPlace(): Place | undefined {
  return chosen;
}

/** What programs are recorded for where that depends on the device. */
export function chosenTarget(): Target {
  return chosen?.device?.target ?? (chosen?.isDefault === true ? cpuTarget : defaultTarget);
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

/** Runs a graph at a place. `targets` are the values that its results become. */
export function runOnDevice(
  place: Place,
  graph: GraphRegion,
  inputs: readonly DeviceInput[],
  targets: readonly GraphValue[],
  { donated = [], limits = {}, matmulPrecision = "f32", isKept = false }: DeviceRun = {},
): void {
  // An array may be disposed of once the call is made: its memory goes after the run.
  const sources = inputs.map(({ value, data }) => data ?? requireHeld(value));
  const given = donated.flatMap((each) => {
    const source = sources[each];
    return source !== undefined && "ready" in source ? [source] : [];
  });
  for (const entry of given) {
    entry.isDisposed = true;
    forgotten.unregister(entry);
  }
  // They are given back when the device is left, which is after this run.
  const mine = place.device && programsOf(place.device);
  const location = settledLocation();
  const giveUp = async (taken: ReadonlySet<Tensor | Held | undefined>): Promise<void> => {
    // What was given to a run that failed is gone, too.
    for (const array of await settledArrays(given.filter((entry) => !taken.has(entry))))
      array.dispose();
  };
  const work = async (): Promise<readonly (DeviceArray | RankArray | Tensor)[]> => {
    let taken: ReadonlySet<Tensor | Held | undefined> = new Set();
    try {
      if (place.ranks !== undefined) {
        const arrays = await Promise.all(sources.map((source) => rankInput(place, source)));
        return await place.ranks.run(graph, arrays, { donated: [], matmulPrecision });
      }
      const device = place.device ?? (await place.open());
      if (device === undefined) return await evaluated(graph, sources, limits);
      const arrays = await Promise.all(sources.map((source) => inputArray(place, source)));
      const run = { graph, donated, limits, matmulPrecision, isKept, location };
      const results = await (mine ?? programsOf(device)).run(run, arrays);
      taken = new Set([...results.taken].map((each) => sources[each]));
      return results.outputs;
    } catch (error) {
      // Nobody has asked for the device that refuses.
      if (!place.isDefault || !isForEvaluator(error)) throw error;
      tellEvaluator(error);
      return await evaluated(graph, sources, limits);
    } finally {
      await giveUp(taken);
    }
  };
  const run = inTurn(work, limits, () => giveUp(new Set()));
  for (const [i, value] of targets.entries())
    hold(
      value,
      place,
      run.then((outputs) => {
        const output = outputs[i];
        if (output === undefined) throw new Error("a run gives all of its results");
        return output;
      }),
    );
}

/** Runs a graph on the evaluator, wherever its arguments lie. */
async function evaluated(
  graph: GraphRegion,
  sources: readonly (Tensor | Held)[],
  limits: RunLimits,
): Promise<readonly Tensor[]> {
  const inputs = await Promise.all(
    sources.map(async (source) => ("ready" in source ? fetched(source) : source)),
  );
  const results = await evaluateWithBreaks(moduleOf(graph), "main", inputs, limits);
  return results.filter(isTensorDatum);
}

/** Gives back what a device keeps for a graph, after the runs that were asked for. */
export function forgetPrograms(graph: GraphRegion): void {
  for (const each of programs.values())
    void queue.run(async () => {
      each.forget(graph);
    });
}

/** How many programs hold memory of a device now. */
export function livePrograms(device: Device): number {
  return programs.get(device)?.live ?? 0;
}

/** The arrays of values that were computed. */
async function settledArrays(
  entries: readonly Held[],
): Promise<readonly (DeviceArray | RankArray)[]> {
  const settled = await Promise.allSettled(entries.map(({ ready }) => ready));
  return settled.flatMap((each) =>
    each.status === "fulfilled" && !("data" in each.value) ? [each.value] : [],
  );
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

function hold(value: GraphValue, place: Place, ready: Held["ready"]): void {
  const entry: Held = { type: heldType(value.type), place, ready, isDisposed: false };
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
      const array = await entry.ready;
      if (!("data" in array)) array.dispose();
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
async function inputArray(place: Place, source: Tensor | Held): Promise<DeviceArray | Tensor> {
  if (!("ready" in source)) return source;
  const array = source.place === place ? await source.ready : undefined;
  return array === undefined || array instanceof RankArray ? fetched(source) : array;
}

/** An array of ranks, or the data of what lies elsewhere. */
async function rankInput(place: Place, source: Tensor | Held): Promise<RankArray | Tensor> {
  if (!("ready" in source)) return source;
  const array = source.place === place ? await source.ready : undefined;
  return array instanceof RankArray ? array : fetched(source);
}

async function fetched({ place, ready, type }: Held): Promise<Tensor> {
  const array = await ready;
  if ("data" in array) return array;
  if (array instanceof RankArray) return array.read();
  const device = await place.open();
  if (device === undefined) throw new Error("a device has computed what it holds");
  const elements = toElements(await device.download(array));
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
    await entry.place.device?.synchronize();
  });
}

/** The data of a value that lies on a device, waited for as long as the limits allow; `begun` with the same limits, or before. */
export async function downloaded(
  value: GraphValue,
  limits: RunLimits,
  begun: boolean,
): Promise<Tensor> {
  const entry = requireHeld(value);
  // A run that has failed leaves nothing to wait for.
  const work = Promise.all([queue.run(() => fetched(entry)), entry.ready]).then(([data]) => data);
  const { place } = entry;
  const waited = {
    // What stands in for a device that is not open stops, as the CPU does.
    get stopsKernels() {
      return place.device?.stopsKernels ?? true;
    },
    get isStopping() {
      return this.stopsKernels && (begun || place.device?.isStopping === true);
    },
  };
  return waitWithin(work, limits, waited, captureLocation());
}
