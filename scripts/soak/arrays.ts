/**
 * What programs of arrays do for long: what is read without `jit`, gradients outside of it, static values that are all different, and
 * random lives of arrays. After each step the device's account is exact: nothing but what is kept on purpose is in use.
 */
import { add, array, grad, jit, mul, sum, useDevice } from "../../src/arrays/index.ts";
import type { NDArray as ArrayOf } from "../../src/arrays/index.ts";
import { livePrograms } from "../../src/arrays/device.ts";
import { keptPrograms } from "../../src/arrays/programs.ts";
import type { Device } from "../../src/device/device.ts";
import { open } from "../../src/runtime/open.ts";
import type { DeviceName } from "../../src/runtime/open-options.ts";
import { Random } from "../../src/support/random.ts";
import { ArrayPatterns } from "../../test/support/array-patterns.ts";
import { collectGarbage } from "./memory.ts";

type F32 = ArrayOf<"f32">;

/** One of many alike, and what it may leave behind. */
interface Repeated {
  readonly once: (number: number) => Promise<void>;
  readonly end?: () => void;
  readonly mostPrograms: number;
  /** Bytes a program, which hold its arguments and results. */
  readonly programBytes: number;
}

const x = [1, 2, 3];

async function expectValues(y: F32, expected: readonly number[]): Promise<void> {
  const found = (await y.values()) as readonly number[];
  if (found.join() !== expected.map(Math.fround).join())
    throw new Error(`${found.join()}, not ${expected.join()}`);
  y.dispose();
}

const reads = (): Repeated => ({
  once: async (number) => {
    const by = number % 2 === 0 ? 1 : number;
    await expectValues(
      add(array(x), by),
      x.map((each) => each + by),
    );
  },
  mostPrograms: 0,
  programBytes: 0,
});

const gradients = (): Repeated => ({
  once: () => expectValues(grad((w: F32) => sum(mul(w, w)))(array(x)), [2, 4, 6]),
  mostPrograms: 0,
  programBytes: 0,
});

const statics = (): Repeated => {
  const scaled = jit((w: F32, by: number) => mul(w, by));
  return {
    once: (number) =>
      expectValues(
        scaled(array(x), number),
        x.map((each) => each * number),
      ),
    mostPrograms: keptPrograms,
    // Each keeps a few numbers; a GPU rounds their places up.
    programBytes: 64,
  };
};

const patterns = (): Repeated => {
  let lives = new ArrayPatterns(new Random(0));
  return {
    once: async (number) => {
      try {
        await lives.step();
      } catch (error) {
        throw new Error(
          `step ${number % patternSteps} of seed ${Math.floor(number / patternSteps)}`,
          {
            cause: error,
          },
        );
      }
      if ((number + 1) % patternSteps !== 0) return;
      lives.end();
      lives = new ArrayPatterns(new Random((number + 1) / patternSteps));
    },
    end: () => {
      lives.end();
    },
    mostPrograms: keptPrograms,
    programBytes: Infinity,
  };
};
const patternSteps = 200;

export const arrayWork = { reads, gradients, statics, patterns };
export type ArrayWorkName = keyof typeof arrayWork;

function requireAccount(device: Device, { mostPrograms, programBytes }: Repeated): void {
  const programs = livePrograms(device);
  const { used } = device.memory;
  if (programs > mostPrograms) throw new Error(`${programs} programs, not ${mostPrograms}`);
  if (programBytes < Infinity && used > programs * programBytes)
    throw new Error(`${used} bytes are used by ${programs} programs`);
}

/** So often the garbage collector is asked for arrays that nobody reaches. */
const collections = 50;

async function requireEmpty(device: Device): Promise<void> {
  for (let round = 0; round < collections && device.memory.used > 0; round++) {
    collectGarbage();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const { used, allocations } = device.memory;
  if (used > 0) throw new Error(`${used} bytes in ${allocations} arrays are left`);
}

const perStep = 10;

/** Repeats it on the evaluator, or on a device. */
export async function repeat<N extends ArrayWorkName>(name: N, on: DeviceName | "evaluator") {
  const silently = { onNotes: () => undefined };
  const device = on === "evaluator" ? undefined : await open(on, silently);
  await useDevice(device ?? "evaluator");
  const repeated = arrayWork[name]();
  let number = 0;
  return {
    step: async (): Promise<{ [W in N]: number }> => {
      for (let turn = 0; turn < perStep; turn++) await repeated.once(number++);
      // What was disposed of last goes in its turn.
      await new Promise(setImmediate);
      if (device !== undefined) requireAccount(device, repeated);
      return { [name]: perStep } as { [W in N]: number };
    },
    end: async (): Promise<void> => {
      repeated.end?.();
      await useDevice();
      if (device === undefined) return;
      await requireEmpty(device);
      device.dispose();
    },
  };
}
