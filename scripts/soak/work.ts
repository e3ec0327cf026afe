/**
 * What a soak does over and over. Each piece of work checks its results, so that a device that goes wrong after a
 * million launches is found as well as one that keeps what it should give back.
 */
import {
  array,
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

const n = dim("n");
const size = 64;

/** Kernels that differ in a constant: out = factor · x + number, which is right as long as x is finite. */
function numbered(number: number) {
  return kernel(
    {
      name: "numbered",
      grid: { i: cdiv(n, 16) },
      inputs: { x: array(f32, [n]), factor: scalar(f32) },
      outputs: { out: array(f32, [n]) },
    },
    ({ i, x, factor, out }) => {
      const at = slice(i.mul(16), 16);
      const tile = x.at(at).load();
      assert(tile.isFinite(), "x is finite");
      out.at(at).store(tile.mul(factor).add(number));
    },
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

/** A launch that a kernel's assertion ends; the device goes on. */
async function failInKernel(device: Device): Promise<void> {
  const x = fromNumbers(f32, [size], Array<number>(size).fill(NaN));
  const error = await device.run(numbered(1), { x, factor: 1 }).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof TilewrightError)) throw new Error("the assertion was not reported");
}

/** Something to do again and again: `step` says how much it has done. */
export interface Work {
  step(): Promise<number>;
  end(): void;
}

/** Launches of one kernel, a thousand at a time. */
async function launches(name: DeviceName): Promise<Work> {
  const device = await opened(name);
  const x = await device.upload(input);
  const out = await device.upload(fromNumbers(f32, [size], Array<number>(size).fill(0)));
  const bound = device.bind(numbered(3), { x, out, factor: 2 });
  return {
    step: async () => {
      for (let launch = 0; launch < 1000; launch++) bound.launch();
      await device.synchronize();
      requireResult([...toNumbers(await device.download(out))], 2, 3);
      return 1000;
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
      await runNumbered(device, number++);
      return 1;
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
      return 1;
    },
    end: () => undefined,
  };
}

/** All of it in turn, as a long-lived program would. */
async function everything(name: DeviceName): Promise<Work> {
  const steady = await launches(name);
  const device = await opened(name);
  const brief = await rounds(name);
  let turn = 0;
  return {
    step: async () => {
      turn += 1;
      const done = await steady.step();
      for (let each = 0; each < 5; each++) await runNumbered(device, 5 * turn + each);
      await failInKernel(device);
      const large = await device.upload(fromNumbers(f32, [2 ** 18], new Float32Array(2 ** 18)));
      await device.download(large);
      large.dispose();
      return done + 7 + (turn % 10 === 0 ? await brief.step() : 0);
    },
    end: () => {
      steady.end();
      device.dispose();
    },
  };
}

const makers = { launches, kernels, rounds, everything };

export type WorkName = keyof typeof makers;
export const workNames = Object.keys(makers) as readonly WorkName[];

export function makeWork(name: WorkName, device: DeviceName): Promise<Work> {
  return makers[name](device);
}
