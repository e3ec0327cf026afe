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
import type { DeviceArray } from "../device/device-array.ts";
import type { Device } from "../device/device.ts";
import { fromLanes, toLanes } from "../formats/hostarray.ts";
import { tensor } from "../graph/evaluate/datum.ts";
import type { Tensor } from "../graph/evaluate/datum.ts";
import { storageOf, tensorTypeOf } from "../graph/lower/storage.ts";
import { graphValue, moduleOf } from "../graph/ops/node.ts";
import type { GraphRegion, GraphValue } from "../graph/ops/node.ts";
import { sizeOf } from "../graph/ops/types.ts";
import type { TensorType } from "../graph/ops/types.ts";
import { compilePlan } from "../graph/plan/compile.ts";
import { Program } from "../graph/plan/program.ts";
import { TilewrightError } from "../support/diagnostics.ts";

/** A result that a device computes or has computed. */
interface Held {
  readonly type: TensorType;
  readonly device: Device;
  readonly ready: Promise<DeviceArray>;
  isDisposed: boolean;
}

let chosen: Device | undefined;
let queue: Promise<unknown> = Promise.resolve();
const held = new WeakMap<GraphValue, Held>();
const programs = new Map<Device, Map<GraphRegion, Promise<Program>>>();

/**
 * Chooses where arrays are computed from now on; without a device, on the evaluator. Resolves when the programs of the
 * device that was chosen before have run and are given back; await it before disposing of that device.
 */
export async function useDevice(device?: Device): Promise<void> {
  const before = chosen;
  chosen = device;
  const compiled = before === undefined || before === device ? undefined : programs.get(before);
  if (before === undefined || compiled === undefined) return;
  programs.delete(before);
  await inTurn(async () => {
    for (const program of compiled.values()) (await program).dispose();
  });
}

export function chosenDevice(): Device | undefined {
  return chosen;
}

/** Whether a value lies on a device, or will. */
export function isHeld(value: GraphValue): boolean {
  return held.has(value);
}

function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const result = queue.then(work);
  // Whoever awaits the result hears of a failure; the next in turn runs all the same.
  queue = result.catch(() => undefined);
  return result;
}

/** The program of a graph, compiled once; compiled functions run the same graph again and again. */
function programOf(device: Device, graph: GraphRegion): Promise<Program> {
  const known = programs.get(device) ?? new Map<GraphRegion, Promise<Program>>();
  programs.set(device, known);
  const program = known.get(graph) ?? Program.load(device, compilePlan(moduleOf(graph), "main"));
  known.set(graph, program);
  return program;
}

function allocate(device: Device, type: TensorType): DeviceArray {
  const dtype = storageOf(type.element);
  if (dtype === undefined) throw new Error(`devices have no ${type.element}`);
  return device.allocate(dtype, [Math.max(1, sizeOf(type.shape))]);
}

/** Runs a graph on the chosen device; inputs are values on it, or their data. */
export function runOnDevice(
  device: Device,
  graph: GraphRegion,
  inputs: readonly { readonly value: GraphValue; readonly data: Tensor | undefined }[],
): readonly GraphValue[] {
  // An array may be disposed of once the call is made: its memory goes after the run.
  const sources = inputs.map(({ value, data }) => data ?? requireHeld(value));
  const run = inTurn(async () => {
    const given = await Promise.all(sources.map((source) => arrayOf(device, source)));
    const program = await programOf(device, graph);
    const outputs = graph.results.map((value) => allocate(device, tensorTypeOf(value)));
    const bound = program.bind(
      given.map(({ array }) => array),
      outputs,
    );
    try {
      await bound.run();
      await device.synchronize();
    } finally {
      bound.dispose();
      for (const { array, isTemporary } of given) if (isTemporary) array.dispose();
    }
    return outputs;
  });
  return graph.results.map(({ type }, i) => {
    const value = graphValue(type);
    const ready = run.then((outputs) => outputs[i] as DeviceArray);
    hold(value, device, ready);
    return value;
  });
}

/** Device memory of values that nobody reaches any more. */
const forgotten = new FinalizationRegistry<Held>((entry) => {
  void disposeHeld(entry);
});

function hold(value: GraphValue, device: Device, ready: Promise<DeviceArray>): void {
  const entry: Held = { type: tensorTypeOf(value), device, ready, isDisposed: false };
  ready.catch(() => undefined);
  held.set(value, entry);
  forgotten.register(value, entry, entry);
}

async function disposeHeld(entry: Held): Promise<void> {
  if (entry.isDisposed) return;
  entry.isDisposed = true;
  forgotten.unregister(entry);
  try {
    await inTurn(async () => {
      (await entry.ready).dispose();
    });
  } catch {
    // What was never computed holds no memory; who reads it hears why.
  }
}

/** Gives a value's memory on the device back; reading it afterwards is an error. */
export function disposeValue(value: GraphValue): void {
  const entry = held.get(value);
  if (entry !== undefined) void disposeHeld(entry);
}

function requireHeld(value: GraphValue): Held {
  const entry = held.get(value);
  if (entry !== undefined && !entry.isDisposed) return entry;
  throw new TilewrightError({
    code: "TW9314",
    message: "an array was used after it was disposed of",
    expected: "an array that still has its memory",
    found: "a disposed array",
  });
}

async function arrayOf(
  device: Device,
  source: Tensor | Held,
): Promise<{ readonly array: DeviceArray; readonly isTemporary: boolean }> {
  if ("ready" in source && source.device === device)
    return { array: await source.ready, isTemporary: false };
  const { lanes, element } = "ready" in source ? await fetched(source) : source;
  const dtype = storageOf(element);
  if (dtype === undefined) throw new Error(`devices have no ${element}`);
  if (lanes.length === 0) return { array: device.allocate(dtype, [1]), isTemporary: true };
  const array = await device.upload(fromLanes(dtype, [lanes.length], lanes));
  return { array, isTemporary: true };
}

async function fetched({ device, ready, type }: Held): Promise<Tensor> {
  const lanes = toLanes(await device.download(await ready));
  return tensor(type.element, type.shape, sizeOf(type.shape) === 0 ? lanes.slice(0, 0) : lanes);
}

/** The data of a value that lies on a device. */
export async function downloaded(value: GraphValue): Promise<Tensor> {
  const entry = requireHeld(value);
  return inTurn(() => fetched(entry));
}
