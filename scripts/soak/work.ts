/**
 * What a soak does over and over. Each piece of work checks its results, so that a device that goes wrong after a
 * million launches is found as well as one that keeps what it should give back.
 */
import {
  tensor,
  assert,
  cdiv,
  dim,
  f32,
  fromNumbers,
  kernel,
  open,
  scalar,
  slice,
  TilewrightError,
  toNumbers,
} from "tilewright";
import type { Device, DeviceName, KernelDefinition } from "tilewright";
import { refuse } from "../arguments.ts";
import type { ScheduleCounts } from "../../test/support/memory-schedules.ts";
import { repeat } from "./arrays.ts";
import type { ArrayWorkName } from "./arrays.ts";
import { memory, programs } from "./emulator-threads.ts";

export type SoakDevice = DeviceName | "evaluator";

const n = dim("n");
const size = 64;

/** Kernels that differ in a constant: out = factor · x + number, which is right as long as x is finite. */
function numbered(number: number) {
  return kernel(
    {
      name: "numbered",
      grid: { i: cdiv(n, 16) },
      inputs: { x: tensor(f32, [n]), factor: scalar(f32) },
      outputs: { out: tensor(f32, [n]) },
    },
    ({ i, x, factor, out }) => {
      const at = slice(i.mul(16), 16);
      const tile = x.at(at).load();
      assert(tile.isFinite(), "x is finite");
      out.at(at).store(tile.mul(factor).add(number));
    },
  );
}

/** The least of kernels, likewise all different: out = x + number. */
function plain(number: number) {
  return kernel(
    { name: "plain", inputs: { x: scalar(f32) }, outputs: { out: tensor(f32, [1]) } },
    ({ x, out }) => out.at(0).store(x.add(number)),
  );
}

function opened(name: DeviceName): Promise<Device> {
  return open(name, { onNotes: () => undefined, onLeak: () => undefined });
}

const input = fromNumbers(
  f32,
  [size],
  Array.from({ length: size }, (_, index) => index % 8),
);

function requireResult(found: readonly number[], factor: number, number: number): void {
  found.forEach((value, index) => {
    const expected = (index % 8) * factor + number;
    if (value !== expected) throw new Error(`element ${index} is ${value}, not ${expected}`);
  });
}

async function runNumbered(device: Device, number: number): Promise<void> {
  const { out } = await device.run(numbered(number), { x: input, factor: 2 });
  requireResult([...toNumbers(out)], 2, number);
}

/** Of kernels one in so many has tiles; the others are the least that a device can be given, so that there can be many. */
const withTiles = 8;

async function runDifferent(device: Device, number: number): Promise<void> {
  if (number % withTiles === 0) return runNumbered(device, number);
  const { out } = await device.run(plain(number), { x: 2 });
  requireResult([...toNumbers(out)], 1, number + 2);
}

/** A launch that a kernel's assertion ends; the device goes on. */
async function failInKernel(device: Device): Promise<void> {
  const x = fromNumbers(f32, [size], Array<number>(size).fill(NaN));
  const error = await device.run(numbered(1), { x, factor: 1 }).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof TilewrightError)) throw new Error("the assertion was not reported");
}

/** How much was done, by what it is. */
export type Done = {
  -readonly [W in Exclude<WorkName, "everything"> | keyof ScheduleCounts]?: number;
};

/** Something to do again and again: `step` says how much it has done. */
export interface Work {
  step(): Promise<Done>;
  end(): void | Promise<void>;
}

const launchesAStep = 1000;
const kernelsATurn = 40;

/** Launches of one kernel, many at a time. */
async function launches(name: DeviceName): Promise<Work> {
  const device = await opened(name);
  const x = await device.upload(input);
  const out = await device.upload(fromNumbers(f32, [size], Array<number>(size).fill(0)));
  const bound = device.bind(numbered(3), { x, out, factor: 2 });
  return {
    step: async () => {
      for (let launch = 0; launch < launchesAStep; launch++) bound.launch();
      await device.synchronize();
      requireResult([...toNumbers(await device.download(out))], 2, 3);
      return { launches: launchesAStep };
    },
    end: () => {
      bound.dispose();
      for (const each of [x, out]) each.dispose();
      device.dispose();
    },
  };
}

/** Kernels that are all different, on one device. */
async function kernels(name: DeviceName): Promise<Work> {
  const device = await opened(name);
  let number = 0;
  return {
    step: async () => {
      await runDifferent(device, number++);
      return { kernels: 1 };
    },
    end: () => device.dispose(),
  };
}

/** Devices that are opened, meet a failure with arrays in use, and are disposed of. */
async function rounds(name: DeviceName): Promise<Work> {
  let round = 0;
  return {
    step: async () => {
      const device = await opened(name);
      const kept = await device.upload(input);
      const failures: readonly (() => unknown)[] = [
        () => failInKernel(device),
        () => device.run(numbered(1) as KernelDefinition, { x: kept } as never),
        () => device.upload(new Date() as never),
      ];
      await Promise.resolve(failures[round++ % failures.length]?.()).catch((error: unknown) => {
        if (!(error instanceof TilewrightError)) throw error;
      });
      device.dispose();
      return { rounds: 1 };
    },
    end: () => undefined,
  };
}

/** All of it in turn, as a long-lived program would. */
async function everything(name: DeviceName): Promise<Work> {
  const steady = await launches(name);
  const various = await kernels(name);
  const device = await opened(name);
  const brief = await rounds(name);
  let turn = 0;
  return {
    step: async () => {
      turn += 1;
      await steady.step();
      for (let each = 0; each < kernelsATurn; each++) await various.step();
      await failInKernel(device);
      const large = await device.upload(fromNumbers(f32, [2 ** 18], new Float32Array(2 ** 18)));
      await device.download(large);
      large.dispose();
      const ofRounds = turn % 10 === 0 ? await brief.step() : {};
      return { launches: launchesAStep, kernels: kernelsATurn, ...ofRounds };
    },
    end: async () => {
      await steady.end();
      await various.end();
      device.dispose();
    },
  };
}

/** Programs of arrays, which run on the evaluator, too. */
function ofArrays(work: ArrayWorkName): (name: SoakDevice) => Promise<Work> {
  return (name) => repeat(work, name);
}

/** The evaluator runs programs of arrays alone. */
function onDevices(make: (name: DeviceName) => Promise<Work>): (name: SoakDevice) => Promise<Work> {
  return (name) => {
    if (name === "evaluator")
      refuse("--device evaluator is for reads, gradients, statics, patterns");
    return make(name);
  };
}

/** Work of the emulator with threads; seeds count from the first. */
function onThreads(
  make: (firstSeed: number) => Promise<Work>,
): (name: SoakDevice, firstSeed: number) => Promise<Work> {
  return (name, firstSeed) => {
    if (name !== "emulator") refuse("memory and programs are for --device emulator");
    return make(firstSeed);
  };
}

const makers = {
  launches: onDevices(launches),
  kernels: onDevices(kernels),
  rounds: onDevices(rounds),
  everything: onDevices(everything),
  reads: ofArrays("reads"),
  gradients: ofArrays("gradients"),
  statics: ofArrays("statics"),
  patterns: ofArrays("patterns"),
  memory: onThreads(memory),
  programs: onThreads(programs),
};

export type WorkName = keyof typeof makers;
export const workNames = Object.keys(makers) as readonly WorkName[];

export function makeWork(name: WorkName, device: SoakDevice, firstSeed: number): Promise<Work> {
  return makers[name](device, firstSeed);
}
